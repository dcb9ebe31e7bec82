"""Limits of cgroup v2 around a build: set, cut and nested, and what a death at them costs."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stoker.sense.machine.oom import OomCounter
from support.burn import burns, write_burns
from support.grouped import Grouped
from support.memory_group import MIB, MemoryGroup
from support.program import PYPI_NINJA, until, write_ninja

pytestmark = pytest.mark.timeout(600)

COUNT = 10
EATS = """
import pathlib, sys
tried = pathlib.Path("tried")
if not tried.exists():
    tried.touch()
    held = [b"x" * 2**20 for _ in range(int(sys.argv[1]))]
pathlib.Path(sys.argv[2]).touch()
"""
Make = Callable[[MemoryGroup], Grouped]


@pytest.fixture
def inside(tmp_path: Path) -> Iterator[Make]:
    """Makes a stoker whose builds run in a group."""
    made: list[Grouped] = []

    def make(group: MemoryGroup) -> Grouped:
        made.append(Grouped(tmp_path, group))
        return made[-1]

    yield make
    for stoker in made:
        stoker.end_all()
        shutil.rmtree(stoker.runtime, ignore_errors=True)


def eating(folder: Path, mib: int) -> Path:
    """Four jobs of a tool that nobody knows; one takes `mib` MiB, the first time only."""
    folder.mkdir()
    (folder / "eat.py").write_text(EATS)
    python = f"{sys.executable} -I -S"
    return write_ninja(folder, [("big", f"{python} eat.py {mib} big"), *((f"o{n}", f"touch o{n}") for n in range(3))])


def behind_a_gate(folder: Path) -> None:
    """Let all jobs of a build.ninja wait for one that ends when there is a file `go`."""
    manifest = folder / "build.ninja"
    lines = [f"{line} || gate" if line.startswith("build ") else line for line in manifest.read_text().splitlines()]
    gate = ["rule gate", "  command = until [ -e go ]; do sleep 0.1; done; touch gate", "build gate: gate", ""]
    manifest.write_text("\n".join([*lines, *gate]))


@pytest.mark.parametrize("name", ["memory.max", "memory.high"])
def test_a_limit_that_is_cut_in_mid_build_is_kept(inside: Make, tmp_path: Path, name: str) -> None:
    """Eight jobs of 60 MiB fit before, and not afterwards."""
    cut = 400 * MIB
    folder = write_burns(tmp_path / "p", burns(COUNT, 0.3, mib=60))
    behind_a_gate(folder)
    with MemoryGroup(1500 * MIB) as group:
        stoker = inside(group)
        build = stoker.detach(PYPI_NINJA, "-C", str(folder), jobs=8)
        until(lambda: stoker.status(build)["progress"]["running"] == 1, "the job before all others")
        (group.folder / name).write_text(str(cut))
        until(lambda: stoker.status(build)["memory"]["budget"] == cut, "the new limit to be seen")
        (folder / "go").touch()
        status = stoker.over(build)
        assert (status["state"], status["exit_code"], group.kills) == ("done", 0, 0), status
        assert status["progress"]["finished"] == COUNT + 1


@pytest.mark.parametrize(("outer", "inner", "budget"), [(500, 0, 500), (500, 900, 500), (900, 500, 500)])
def test_of_nested_limits_the_tightest_counts(
    inside: Make, tmp_path: Path, outer: int, inner: int, budget: int
) -> None:
    folder = write_ninja(tmp_path / "p", [("o", "until [ -e go ]; do sleep 0.1; done; touch o")])
    with MemoryGroup(outer * MIB) as around:
        (around.folder / "cgroup.subtree_control").write_text("+memory")
        with MemoryGroup((inner or 4096) * MIB, around.folder) as group:
            if not inner:
                (group.folder / "memory.max").write_text("max")
            stoker = inside(group)
            build = stoker.detach(PYPI_NINJA, "-C", str(folder))
            until(lambda: stoker.status(build)["memory"]["budget"] == budget * MIB, "the budget")
            (folder / "go").touch()
            assert stoker.over(build)["state"] == "done"


def test_a_death_at_an_outer_limit_is_counted_in_the_builds_own_group() -> None:
    with MemoryGroup(100 * MIB) as around:
        (around.folder / "cgroup.subtree_control").write_text("+memory")
        with MemoryGroup(4096 * MIB, around.folder) as group:
            eater = [sys.executable, "-I", "-S", "-c", "held = [b'x' * 2**20 for _ in range(500)]"]
            assert subprocess.run(group.wrap(eater), check=False).returncode == -9
            assert OomCounter(group.cgroups).read() == group.kills == 1


def test_a_job_that_the_kernel_killed_runs_again_and_the_build_ends_well(inside: Make, tmp_path: Path) -> None:
    folder = eating(tmp_path / "p", 1200)
    with MemoryGroup(500 * MIB) as group:
        stoker = inside(group)
        status = stoker.built(PYPI_NINJA, "-C", str(folder))
        assert (status["state"], status["exit_code"]) == ("done", 0), status
        assert (folder / "big").exists()
        assert group.kills <= 1
        assert status["progress"]["finished"] == status["progress"]["total"] == 4


def test_a_group_that_the_kernel_kills_as_a_whole_leaves_nothing_and_no_lie(inside: Make, tmp_path: Path) -> None:
    """memory.oom.group: supervisor, engine and build go at once, and who asks afterwards hears that it has ended."""
    folder = eating(tmp_path / "p", 1200)
    with MemoryGroup(500 * MIB) as group:
        (group.folder / "memory.oom.group").write_text("1")
        stoker = inside(group)
        build = stoker.detach(PYPI_NINJA, "-C", str(folder))
        until(lambda: not group.pids(), "the end of all of it")
        assert group.kills > 1
        status = stoker.status(build)
        assert status["state"] != "running", status
        assert status["progress"]["running"] == 0, status
        assert b"goes on" not in stoker.run("status", build).stdout
        assert stoker.run("run", "--plain", "--", PYPI_NINJA, "-C", str(folder)).returncode == 0
        assert (folder / "big").exists()
