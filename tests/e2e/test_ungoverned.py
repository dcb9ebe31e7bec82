"""Builds without a ninja or make: said in so many words, watched all the same, and told a person's number."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.program import Stoker, until

RUSTC = """\
#!/bin/sh
case "$*" in
*--crate-name*toy*) exec %(rustc)s ;;
*) exec %(real)s "$@" ;;
esac
"""


@pytest.fixture
def crate(stoker: Stoker, tmp_path: Path) -> Path:
    """A crate without dependencies, whose compiler (a sleeping process that is called rustc) waits for a person."""
    real = shutil.which("rustc")
    if shutil.which("cargo") is None or real is None:
        pytest.skip("cargo and rustc are not on PATH")
    sysroot = subprocess.run([real, "--print", "sysroot"], capture_output=True, text=True, check=True).stdout.strip()
    sleeper = tmp_path / "slow" / "rustc"
    sleeper.parent.mkdir()
    shutil.copy(shutil.which("sleep") or "/bin/sleep", sleeper)
    wrapper = tmp_path / "wrapper"
    wrapper.write_text(RUSTC % {"rustc": f"{sleeper} 60", "real": f"{sysroot}/bin/rustc"})
    wrapper.chmod(0o755)
    folder = tmp_path / "crate"
    (folder / "src").mkdir(parents=True)
    (folder / "Cargo.toml").write_text('[package]\nname = "toy"\nversion = "0.1.0"\nedition = "2021"\n')
    (folder / "src" / "main.rs").write_text("fn main() {}\n")
    stoker.env["RUSTC"] = str(wrapper)
    return folder


@pytest.mark.long
def test_what_cargo_runs_is_not_governed_and_that_is_said(stoker: Stoker, crate: Path) -> None:
    build = stoker.detach("cargo", "build", "--offline", cwd=crate, jobs=1)
    until(lambda: stoker.status(build)["level"]["ungoverned"] == {"rustc": 1}, "a compiler that nobody governs")
    status = stoker.status(build)
    assert status["level"]["governed"] is False
    assert status["memory"]["build"] > 0
    for words in (("jobs", build), ("status", build)):
        assert "nothing is governed: 1 rustc runs without a ninja or make" in stoker.run(*words).stdout.decode()
    assert "cannot be held" in stoker.run("status", build).stdout.decode()
    told = [e["text"] for e in stoker.events(build) if e["type"] == "noticed"]
    assert sum(text.startswith("nothing is governed: rustc") for text in told) == 1
    assert any("cargo goes by CARGO_BUILD_JOBS=1" in text for text in told)
    assert stoker.run("stop", build).returncode == 0
    assert stoker.ended(build)["level"]["ungoverned"] == {}


def test_a_level_before_any_scheduler_is_not_told_as_if_it_held_anything(stoker: Stoker, tmp_path: Path) -> None:
    go = tmp_path / "go"
    build = stoker.detach("sh", "-c", f"until [ -e {go} ]; do sleep 0.2; done", jobs=1)
    until(lambda: stoker.status(build)["level"]["target"] == 1, "the level")
    assert "nothing is governed while no ninja or make runs" in stoker.run("jobs", build).stdout.decode()
    go.touch()
    stoker.ended(build)
