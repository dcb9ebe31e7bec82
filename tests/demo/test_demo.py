"""The demo is a real build: ninja builds it, its program checks itself, its error is a real one."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

from stoker.cli.errors import OWN_FAILURE
from stoker.cli.main import main
from stoker.demo import find_compiler, find_ninja, make_demo
from stoker.demo.cxx import cxx_project
from stoker.demo.sizing import CXX_BUDGET, MIB, cxx_plan, heavy_memory

COMPILER = find_compiler()
KINDS = [
    pytest.param(COMPILER, marks=pytest.mark.skipif(not COMPILER, reason="no C++ compiler here"), id="cxx"),
    pytest.param("", id="python"),
]


def make(folder: Path, compiler: str, *, fail: bool = False) -> tuple[str, ...]:
    return make_demo(folder, find_ninja(), seconds=1, available=2 * 2**30, fail=fail, compiler=compiler).command


def build(command: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(command, capture_output=True, text=True, check=False)


def contents(folder: Path) -> dict[str, str]:
    return {str(path.relative_to(folder)): path.read_text() for path in folder.rglob("*") if path.is_file()}


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("compiler", KINDS)
def test_it_builds_and_is_then_up_to_date(tmp_path: Path, compiler: str) -> None:
    folder = tmp_path / "a folder $HOME"
    command = make(folder, compiler)
    first = build(command)
    assert first.returncode == 0, first.stdout
    text = (folder / "selftest.txt").read_text()
    assert "burn evenly" in text if compiler else "bin/furnace" in text
    assert "no work to do" in build(command).stdout


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("compiler", KINDS)
def test_its_error_is_a_real_one(tmp_path: Path, compiler: str) -> None:
    run = build(make(tmp_path, compiler, fail=True))
    assert run.returncode == 1
    assert "FAILED: " in run.stdout
    assert "obj/check_gauge.o" in run.stdout
    assert "error: " in run.stdout
    assert not (tmp_path / "selftest.txt").exists()


@pytest.mark.parametrize("compiler", ["/usr/bin/c++", ""])
def test_the_same_arguments_give_the_same_small_files(tmp_path: Path, compiler: str) -> None:
    make(tmp_path / "one", compiler)
    make(tmp_path / "two", compiler)
    files = contents(tmp_path / "one")
    assert files == contents(tmp_path / "two")
    assert all(len(text) < 64 * 1024 for text in files.values())
    assert files.keys() >= {"build.ninja"}


@pytest.mark.skipif(not COMPILER, reason="no C++ compiler here")
def test_a_kernel_takes_real_memory_but_no_more_than_planned(tmp_path: Path) -> None:
    size = 12
    files = cxx_project(cxx_plan(1, CXX_BUDGET), COMPILER, fail=False)
    (tmp_path / "furnace.h").write_text(files["include/furnace.h"])
    kernel = files["kernel.cpp.in"].replace("@NAME@", "kernel_00").replace("@SIZE@", str(size))
    (tmp_path / "kernel.cpp").write_text(kernel)
    peak = peak_of([COMPILER, "-std=c++17", "-O1", "-I.", "-c", "kernel.cpp", "-o", "kernel.o"], tmp_path)
    assert heavy_memory(size) / 4 <= peak <= heavy_memory(size)


def test_python_work_takes_the_memory_it_is_given(tmp_path: Path) -> None:
    make(tmp_path, "")
    peak = peak_of([sys.executable, "work.py", "out", "0.5", "100"], tmp_path)
    assert 100 * MIB <= peak <= 150 * MIB


def test_without_much_memory_it_is_python_work(tmp_path: Path) -> None:
    demo = make_demo(tmp_path, find_ninja(), seconds=1, available=512 * MIB)
    assert (tmp_path / "work.py").exists()
    assert demo.budget == 256 * MIB


def test_a_compiler_that_does_not_work_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake = tmp_path / "g++"
    fake.write_text("#!/bin/sh\nexit 1\n")
    fake.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("CXX", raising=False)
    assert find_compiler() == ""
    monkeypatch.setenv("CXX", str(fake))
    assert find_compiler() == ""


def test_without_the_wheel_the_systems_ninja_serves(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "ninja", None)
    system = tmp_path / "ninja-build"
    system.write_text("#!/bin/sh\n")
    system.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert find_ninja() == str(system)


def test_without_any_ninja_one_line_says_what_to_do(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "ninja", None)
    monkeypatch.setenv("PATH", str(tmp_path))
    assert main(["demo", "--plain"]) == OWN_FAILURE
    (line,) = capsys.readouterr().err.splitlines()
    assert "pip install ninja" in line


def peak_of(command: list[str], folder: Path) -> int:
    """Peak resident bytes of the largest process of a command that must succeed."""
    meter = (
        "import resource, subprocess, sys\n"
        "subprocess.run(sys.argv[1:], check=True)\n"
        "print(resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)\n"
    )
    run = subprocess.run(
        [sys.executable, "-c", meter, *command], cwd=folder, capture_output=True, text=True, check=True, env=os.environ
    )
    return int(run.stdout) * 1024
