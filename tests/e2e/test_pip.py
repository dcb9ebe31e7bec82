"""A package built by pip: ninja is found below it and told truly, although pip shows nothing of it."""

from __future__ import annotations

import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

from support.program import PATIENCE, UNIT, Stoker, until, write_ninja
from support.setuplike import write_setuplike

pytestmark = pytest.mark.long

PACKAGE = "levenshtein==0.27.3"
"""Built by scikit-build-core with Cython, CMake and ninja: two compiles and a link, half a minute in all."""

UNITS = 2
CMAKE = """\
cmake_minimum_required(VERSION 3.18)
project(small CXX)
add_library(units OBJECT {sources})
set_target_properties(units PROPERTIES POSITION_INDEPENDENT_CODE ON)
add_library(small MODULE last.cpp $<TARGET_OBJECTS:units>)
add_custom_target(held COMMAND sh -c "until [ -e {go} ]; do sleep 0.2; done" VERBATIM)
add_dependencies(small held)
install(TARGETS small DESTINATION small)
"""
PYPROJECT = """\
[build-system]
requires = ["scikit-build-core"]
build-backend = "scikit_build_core.build"
[project]
name = "small"
version = "1"
"""
"""A package of our own, built by scikit-build-core and CMake as many are; one job in its midst waits for a file."""

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


@pytest.fixture
def package(stoker: Stoker, tmp_path: Path) -> Path:
    """The package of our own; it waits for `go` in its folder."""
    stoker.env["PIP_CACHE_DIR"] = str(tmp_path / "cache")
    folder = tmp_path / "small"
    folder.mkdir()
    names = [f"unit{n}.cpp" for n in range(UNITS)]
    for n, name in enumerate(names):
        (folder / name).write_text(UNIT.format(n=n))
    (folder / "last.cpp").write_text(UNIT.format(n=UNITS))
    (folder / "CMakeLists.txt").write_text(CMAKE.format(sources=" ".join(names), go=folder / "go"))
    (folder / "pyproject.toml").write_text(PYPROJECT)
    return folder


def in_mid_build(status: dict[str, Any]) -> bool:
    """Some compilers have ended; another, and the linker, wait for the job that waits."""
    p = status["progress"]
    return bool(p["total_known"] and (p["finished"], p["running"], p["total"]) == (UNITS, 1, UNITS + 3))


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_ninja_below_pip_is_counted_though_pip_hides_it(stoker: Stoker, package: Path) -> None:
    target = package.parent / "target"
    install = [*PIP, "install", "--no-deps", "--target", str(target), str(package)]
    process = stoker.start("run", "--plain", "--", *install)
    until(lambda: any(stoker.state.glob("stoker/builds/*/supervisor.json")), "a build")
    while not in_mid_build(stoker.status()):
        assert process.poll() is None, process.communicate()
        time.sleep(0.1)
    (ninja,) = (s for s in stoker.status()["schedulers"] if s["running"])
    assert ninja["tool"] == "ninja"
    (package / "go").touch()
    out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, out + err
    assert b"Building CXX object" not in out
    end = stoker.status()
    assert (end["state"], end["exit_code"], end["failures"]) == ("done", 0, [])
    assert end["progress"]["finished"] == end["progress"]["total"] == UNITS + 3
    told = [e for e in stoker.events(end["id"]) if e["type"] == "job_finished" and e["tool"] == "cxx"]
    assert sorted(Path(e["output"]).name for e in told) == ["last.cpp.o", "unit0.cpp.o", "unit1.cpp.o"]
    assert list(target.glob("small/*small*"))


def watched(stoker: Stoker) -> list[dict[str, Any]]:
    """Every status of the build that starts now, to its end."""
    seen: list[dict[str, Any]] = []
    while not (seen and seen[-1]["ended"]):
        if any(stoker.state.glob("stoker/builds/*/supervisor.json")):
            seen.append(stoker.status())
        time.sleep(0.1)
    return seen


@pytest.mark.long
@pytest.mark.timeout(300)
def test_the_ninja_of_a_real_package_is_counted_at_every_moment(stoker: Stoker, sdist: Path) -> None:
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


def test_what_a_shipped_profile_has_built_outlives_the_failure_of_its_step(stoker: Stoker, tmp_path: Path) -> None:
    """pip has setup.py clean up its build folder when it fails: hours of finished kernels."""
    ran = tmp_path / "ran"
    once = (
        f"[ -e {tmp_path}/killed ] || {{ until [ -e o1 ]; do sleep 0.1; done; touch {tmp_path}/killed; kill -9 $$; }}"
    )
    edges = [("o0", f"{once}; touch o0"), ("o1", f"echo >>{ran}; touch o1"), ("all", "touch all")]
    checkout, modules = write_setuplike(tmp_path / "checkout", edges)
    stoker.env["PYTHONPATH"] = str(modules)
    words = ("--no-doctor", "--set", f"python={sys.executable}")
    build = stoker.run("run", "--detach", "-j2", "-p", "flash-attention", *words, cwd=checkout).stdout.decode().strip()
    status = stoker.ended(build)
    output = (stoker.folder(build) / "output.log").read_text()
    assert (status["state"], status["step"]["attempt"]) == ("done", 2), output
    assert ran.read_text() == "\n", "it was made once"
    assert list((checkout / "dist").glob("flash_attn-1-*.whl"))
