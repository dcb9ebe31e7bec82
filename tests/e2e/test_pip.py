"""A real package built by pip: ninja is found below it and told truly, although pip shows nothing of it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.program import Stoker, write_ninja

PACKAGE = "levenshtein==0.27.3"
"""Built by scikit-build-core with Cython, CMake and ninja: two compiles and a link, half a minute in all."""

PIP = (sys.executable, "-m", "pip", "--disable-pip-version-check")


@pytest.fixture
def sdist(stoker: Stoker, tmp_path: Path) -> Path:
    """The package's source, from the index that pip is set up with.

    The cache is the test's own: from the person's, pip might take a wheel that it built before.
    """
    stoker.env["PIP_CACHE_DIR"] = str(tmp_path / "cache")
    command = [*PIP, "download", "-q", "--no-deps", "--no-binary", "levenshtein", "--dest", str(tmp_path), PACKAGE]
    done = subprocess.run(command, env=stoker.env, capture_output=True, text=True, check=False)
    found = list(tmp_path.glob("*.tar.gz"))
    assert found, f"this test needs a package index that pip can reach:\n{done.stderr}"
    return found[0]


def watched(stoker: Stoker) -> list[dict[str, Any]]:
    """Every status of the build that starts now, to its end."""
    seen: list[dict[str, Any]] = []
    while not (seen and seen[-1]["ended"]):
        if any(stoker.state.glob("stoker/builds/*/keeper.json")):
            seen.append(stoker.status())
        time.sleep(0.1)
    return seen


@pytest.mark.timeout(300)
def test_the_ninja_below_pip_is_counted_though_pip_hides_it(stoker: Stoker, sdist: Path) -> None:
    target = sdist.parent / "target"
    install = [*PIP, "install", "--no-deps", "--target", str(target), str(sdist)]
    process = stoker.start("run", "--plain", "--", *install)
    seen = watched(stoker)
    out, err = process.communicate()
    assert process.returncode == 0, out + err

    ninjas = [s for s in seen if any(n["tool"] == "ninja" and n["running"] for n in s["schedulers"])]
    assert any(s["progress"]["total_known"] and 0 < s["progress"]["finished"] < s["progress"]["total"] for s in ninjas)
    assert any(job["tool"] == "cxx" and job["output"].endswith(".o") for s in ninjas for job in s["jobs"])
    assert all(s["progress"]["finished"] + s["progress"]["running"] <= s["progress"]["total"] for s in ninjas)
    assert b"Building CXX object" not in out

    end = seen[-1]
    assert (end["state"], end["exit_code"], end["failures"]) == ("done", 0, [])
    assert end["progress"]["finished"] == end["progress"]["total"] >= 3
    assert end["progress"]["failed"] == 0
    assert (target / "Levenshtein").is_dir()


@pytest.mark.parametrize("jobs", [1, 3])
def test_a_build_folder_that_goes_with_its_build_leaves_true_counts(stoker: Stoker, tmp_path: Path, jobs: int) -> None:
    folder = write_ninja(tmp_path / "p", [(f"o{n}", f"sleep {n + 1}; touch o{n}") for n in range(jobs)])
    build = stoker.detach("sh", "-c", f"ninja -C {folder} -j8; rm -rf {folder}")
    end = stoker.ended(build)
    progress = end["progress"]
    assert (end["state"], progress["finished"], progress["total"], progress["failed"]) == ("done", jobs, jobs, 0)
