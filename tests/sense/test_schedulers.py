from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stoker.sense.commands.scheduler_args import make_arguments, ninja_arguments, width_of_makeflags
from stoker.sense.proc.processes import ProcessTable
from stoker.sense.proc.schedulers import (
    SchedulerFinder,
    SchedulerProcess,
    Versions,
    default_ninja_width,
    has_entered,
    version_in,
)


@pytest.mark.parametrize(
    ("line", "width", "given"),
    [
        ("ninja", None, False),
        ("ninja -j4", 4, True),
        ("ninja -j 4 all", 4, True),
        ("ninja -vj8", 8, True),
        ("ninja -v -k0 -j0", None, True),
        ("ninja -C build -j3 install", 3, True),
        ("ninja all -j 5", 5, True),
    ],
)
def test_width_of_ninja(line: str, width: int | None, given: bool) -> None:
    arguments = ninja_arguments(line.split())
    assert (arguments.width, arguments.width_given) == (width, given)


@pytest.mark.parametrize(
    ("line", "width", "given"),
    [
        ("make", None, False),
        ("make -j4", 4, True),
        ("make -j 4 all", 4, True),
        ("make -j all", None, True),
        ("make -kj4", 4, True),
        ("make -j4k", 4, True),
        ("make --jobs=7", 7, True),
        ("make -l 3 -j2", 2, True),
    ],
)
def test_width_of_make(line: str, width: int | None, given: bool) -> None:
    arguments = make_arguments(line.split())
    assert (arguments.width, arguments.width_given) == (width, given)


def test_targets_manifest_and_directory() -> None:
    ninja = ninja_arguments(["ninja", "-C", "out", "-f", "x.ninja", "-d", "stats", "a", "b", "--quiet", "--", "-c"])
    assert (ninja.targets, ninja.manifest, ninja.directory) == (("a", "b", "-c"), "x.ninja", "out")
    make = make_arguments(
        ["make", "-f", "CMakeFiles/Makefile2", "-C", "a", "-C", "b", "V=1", "-I", "inc", "all", "-j", "2", "x"]
    )
    assert (make.targets, make.manifest, make.directory) == (("all", "x"), "CMakeFiles/Makefile2", "a/b")


@pytest.mark.parametrize("line", ["ninja -t compdb -x", "ninja -n", "ninja -vn", "ninja --version", "ninja -d list"])
def test_a_ninja_that_builds_nothing(line: str) -> None:
    assert ninja_arguments(line.split()).builds_nothing


@pytest.mark.parametrize("line", ["make -n", "make --dry-run", "make -q", "make -v", "make --version"])
def test_a_make_that_builds_nothing(line: str) -> None:
    assert make_arguments(line.split()).builds_nothing


@pytest.mark.parametrize(
    ("flags", "width"),
    [
        ("", 1),
        ("-j8", 8),
        ("j8", 8),
        ("k -j4 --jobserver-auth=3,4", 4),
        (" --jobs=3", 3),
        ("-j", None),
        ("w -- X=-j", 1),
    ],
)
def test_width_in_makeflags(flags: str, width: int | None) -> None:
    assert width_of_makeflags(flags) == width


@pytest.mark.parametrize(("cores", "width"), [(0, 2), (1, 2), (2, 3), (8, 10)])
def test_ninjas_default_width(cores: int, width: int) -> None:
    assert default_ninja_width(cores) == width


def test_version_texts() -> None:
    assert version_in("1.13.2.git.kitware.jobserver-pipe-1\n") == "1.13.2.git.kitware.jobserver-pipe-1"
    assert version_in("GNU Make 4.3\nBuilt for x86_64\n") == "4.3"
    assert version_in("") == ""


async def test_versions_are_asked_of_the_program(ninja: str, tmp_path: Path) -> None:
    versions = Versions()
    assert (await versions.read(ninja)).startswith("1.")
    assert await versions.read(str(tmp_path / "missing")) == ""


class Watch:
    def __init__(self) -> None:
        self.table = ProcessTable(os.getpid())
        self.finder = SchedulerFinder()

    def find(self) -> list[SchedulerProcess]:
        return list(self.finder.find(self.table.scan()).values())


WAITING = "rule wait\n  command = sleep 60; : $out\nbuild a: wait\nbuild b: wait\n"


def test_a_real_ninja(ninja: str, tmp_path: Path, start: Callable[..., Any], until: Callable[..., Any]) -> None:
    build = tmp_path / "out" / "build"
    build.mkdir(parents=True)
    (build / "build.ninja").write_text(WAITING)
    start(ninja, "-C", "out/build", "-j", "7", "a", cwd=tmp_path)
    watch = Watch()
    until(watch.find)
    # A job between fork and exec still looks like its ninja, on a busy machine for longer than two looks.
    [found] = [s for s in watch.find() if s.parent is None]
    assert (found.tool, found.width, found.targets, found.parent) == ("ninja", 7, ("a",), None)
    assert found.directory == str(build.resolve())
    assert os.path.samefile(found.exe, ninja)


@pytest.mark.parametrize(
    ("directory", "asked", "entered"),
    [
        ("/src/out/build", "out/build", True),
        ("/src", "out/build", False),
        ("/src/lab", "ab", False),
        ("/src/lab/ab", "ab", True),
        ("/src/build", "../build/", True),
        ("/src/.out", "./.out", True),
        ("/out", "/out", True),
        ("/src", ".", True),
        ("/src", "", True),
        ("", "ab", False),
    ],
)
def test_a_folder_is_entered_once_its_whole_name_is_that_of_the_process(
    directory: str, asked: str, entered: bool
) -> None:
    assert has_entered(directory, asked) is entered


def test_a_python_wrapper_named_ninja_is_not_counted(
    any_ninja: str,
    tmp_path: Path,
    start: Callable[..., Any],
    until: Callable[..., Any],
) -> None:
    (tmp_path / "build.ninja").write_text(WAITING)
    wrapper = tmp_path / "bin" / "ninja"
    wrapper.parent.mkdir()
    wrapper.write_text(f"#!{sys.executable}\nimport subprocess, sys\nsubprocess.call([{any_ninja!r}, *sys.argv[1:]])\n")
    wrapper.chmod(0o755)
    start(str(wrapper), "a", cwd=tmp_path)
    watch = Watch()
    until(watch.find)
    [found] = watch.find()
    assert os.path.samefile(found.exe, any_ninja)


@pytest.mark.parametrize("arguments", [["-n"], ["-t", "commands"], ["cmTC_1234"]])
def test_probes_are_left_out(
    arguments: list[str],
    tmp_path: Path,
    start: Callable[..., Any],
    until: Callable[..., Any],
    needs: Callable[..., Any],
) -> None:
    """A program that is named ninja and lives on: the real one would be gone at once."""
    needs("cc")
    source = tmp_path / "ninja.c"
    source.write_text("#include <unistd.h>\nint main(void) { return pause(); }\n")
    subprocess.run(["cc", "-o", tmp_path / "ninja", source], check=True)
    process = start(str(tmp_path / "ninja"), *arguments, cwd=tmp_path)
    table, finder = ProcessTable(os.getpid()), SchedulerFinder()
    until(lambda: process.pid in table.scan())
    for _ in range(3):
        assert finder.find(table.scan()) == {}


def test_a_folder_of_cmakes_probes_is_left_out(
    tmp_path: Path, any_ninja: str, start: Callable[..., Any], until: Callable[..., Any]
) -> None:
    scratch = tmp_path / "CMakeFiles" / "CMakeScratch" / "TryCompile-x"
    scratch.mkdir(parents=True)
    (scratch / "build.ninja").write_text(WAITING)
    (tmp_path / "build.ninja").write_text(WAITING)
    start(any_ninja, cwd=scratch)
    real = start(any_ninja, cwd=tmp_path)
    watch = Watch()
    until(lambda: any(s.pid == real.pid for s in watch.find()))
    assert [s.directory for s in watch.find()] == [str(tmp_path.resolve())]


def test_makes_below_make_have_a_parent(
    tmp_path: Path, start: Callable[..., Any], until: Callable[..., Any], needs: Callable[..., Any]
) -> None:
    needs("make")
    (tmp_path / "sub").mkdir()
    (tmp_path / "Makefile").write_text("all:\n\tcd sub && $(MAKE) all\n")
    (tmp_path / "sub" / "Makefile").write_text("all: x\nx:\n\tsleep 60; :\n")
    top = start("make", "-j3", cwd=tmp_path, env={"MAKEFLAGS": ""})
    watch = Watch()
    until(lambda: len(watch.find()) == 2)
    found = {s.parent: s for s in watch.find()}
    assert found[None].pid == top.pid
    assert found[None].width == 3
    assert found[top.pid].directory == str((tmp_path / "sub").resolve())
    assert found[top.pid].width == 3
