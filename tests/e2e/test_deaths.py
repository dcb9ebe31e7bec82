"""Jobs that die for memory: whom the kernel takes, and what becomes of the build."""

from __future__ import annotations

import contextlib
import json
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from support.grouped import Grouped
from support.memory_group import MIB, MemoryGroup
from support.procs import Process, below, stopped
from support.program import NINJAS, ONE_NINJA_AT_FIRST, PYPI_NINJA, Stoker, until, write_ninja
from support.shapes import clean, climbers, write_project

COMMANDS = ("sleep 600; true", "sh -c 'sleep 600; true'; true", "nice sh -c 'sleep 600; true'; true")
"""Shells that wait for what holds the memory, some of them below other programs that wait."""


def job_processes(scheduler: int) -> list[Process]:
    """All below it but make's own sub-makes, which are schedulers."""
    return [p for p in below([scheduler]) if p.name != "make" and p.state != "Z"]


def without_score(scheduler: int) -> list[str]:
    """The jobs' processes that the kernel would not take before others."""
    found = []
    for p in job_processes(scheduler):
        file = Path(f"/proc/{p.pid}/oom_score_adj")
        if file.exists() and int(file.read_text()) < 500:
            found.append(f"{p.pid} {p.name}")
    return found


def sleepers(scheduler: int) -> int:
    return sum(p.name == "sleep" for p in job_processes(scheduler))


@pytest.mark.parametrize("ninja", ONE_NINJA_AT_FIRST)
def test_the_kernel_is_offered_all_of_a_job_and_not_only_its_shell(stoker: Stoker, tmp_path: Path, ninja: str) -> None:
    """A shell has forked before anybody can look at it; what it forked holds the memory."""
    jobs = [(f"o{n}", COMMANDS[n % 3]) for n in range(6)]
    build = stoker.detach(ninja, "-C", str(write_ninja(tmp_path / "b", jobs)), "-j6", jobs=6)
    # A small machine would start jobs that nobody knows one by one.
    assert stoker.run("jobs", build, "6", "--ignore-memory").returncode == 0
    scheduler = stoker.supervisor(build)["build_pid"]
    until(lambda: sleepers(scheduler) == 6, "six jobs")
    until(lambda: not without_score(scheduler), f"a score for {without_score(scheduler)}")
    assert int(Path(f"/proc/{scheduler}/oom_score_adj").read_text()) == 0
    stoker.run("stop", "--force", build)


def test_the_kernel_is_offered_all_of_makes_jobs_too(stoker: Stoker, tmp_path: Path) -> None:
    folder = tmp_path / "b"
    (folder / "sub").mkdir(parents=True)
    rules = "".join(f"o{n}:\n\t{COMMANDS[n]}\n" for n in range(3))
    (folder / "Makefile").write_text(f"all: o0 o1 o2 sub\nsub:\n\t$(MAKE) -C sub\n.PHONY: sub\n{rules}")
    (folder / "sub" / "Makefile").write_text(f"all: o0 o1 o2\n{rules}")
    build = stoker.detach("make", "-C", str(folder), "-j6", jobs=6)
    scheduler = stoker.supervisor(build)["build_pid"]
    until(lambda: sleepers(scheduler) == 6, "six jobs")
    until(lambda: sum(name.endswith("sleep") for name in without_score(scheduler)) == 0, "a score for all")
    stoker.run("stop", "--force", build)


@pytest.mark.long
@pytest.mark.parametrize("ninja", NINJAS)
def test_jobs_of_an_unknown_tool_that_climb_within_a_second_all_get_made(tmp_path: Path, ninja: str) -> None:
    jobs = climbers(big=3, small=6, mib=280, limit_mib=480).jobs
    folder = write_project(tmp_path / "b", jobs)
    with MemoryGroup((480 + 64) * MIB) as group:
        command = [ninja, "-C", str(folder)]
        assert subprocess.run(group.wrap([*command, "-j8"]), check=False, capture_output=True).returncode != 0
        clean(folder, jobs)
        plain_kills = group.kills
        stoker = Grouped(tmp_path, group)
        try:
            status = stoker.over(stoker.detach(*command, jobs=8))
        finally:
            stoker.end_all()
        assert (status["state"], status["exit_code"]) == ("done", 0)
        assert group.kills - plain_kills <= 1
    assert all((folder / job.output).exists() for job in jobs)


@pytest.mark.parametrize("signum", [signal.SIGKILL, pytest.param(signal.SIGTERM, marks=pytest.mark.long)])
def test_what_a_killed_shell_leaves_stopped_does_not_hold_up_its_ninja(
    stoker: Stoker, tmp_path: Path, signum: signal.Signals
) -> None:
    """Ninja waits until nobody has the job's output open."""
    folder = write_ninja(tmp_path / "b", [("o", "sleep 600; true")])
    build = stoker.detach(PYPI_NINJA, "-C", str(folder))
    scheduler = stoker.supervisor(build)["build_pid"]
    until(lambda: sleepers(scheduler), "the job")
    looks = len(stoker.events(build)) + 2
    until(lambda: len(stoker.events(build)) > looks, "a look at it")
    assert stoker.run("pause", "--now", build).returncode == 0
    shell, sleeper = (next(p for p in job_processes(scheduler) if p.name == name) for name in ("sh", "sleep"))
    until(lambda: stopped([sleeper.pid]), "the freeze")
    os.kill(shell.pid, signum)
    with contextlib.suppress(ProcessLookupError):
        os.kill(shell.pid, signal.SIGCONT)
    until(lambda: not stopped([sleeper.pid]), "the end of it, or its going on")
    stoker.run("stop", "--force", build)


CXX = "g++ -std=c++17 -fconstexpr-loop-limit=2147483647 -fconstexpr-ops-limit=4611686018427387904 -c"


def write_compilers(folder: Path, count: int) -> Path:
    """A project for ninja and make whose real compilers run until they are ended."""
    folder.mkdir()
    count_on = "constexpr long f() { long s = 0; for (long i = 0; i < 1L << 50; i++) s += i & 3; return s; }"
    names = [f"u{n}" for n in range(count)]
    for name in names:
        (folder / f"{name}.cpp").write_text(f"{count_on}\nconstexpr long {name} = f();\n")
    builds = "".join(f"build {name}.o: cxx {name}.cpp\n" for name in names)
    (folder / "build.ninja").write_text(f"rule cxx\n  command = {CXX} $in -o $out\n{builds}")
    objects = " ".join(f"{name}.o" for name in names)
    (folder / "Makefile").write_text(f"all: {objects}\n%.o: %.cpp\n\t{CXX} $< -o $@\n")
    return folder


def compilers(top: int) -> int:
    """How many compilers run: of a job on deck one may have begun before it was stopped."""
    return sum(p.name == "cc1plus" and p.state != "T" for p in below([top]))


def outcomes(stoker: Stoker, build: str) -> list[str]:
    """How each job ended, as the journal records it. The report says the same, except that what was interrupted before
    it was let go is discarded there: it never ran."""
    recorded = [e["outcome"] for e in stoker.events(build) if e["type"] == "job_finished"]
    reported = [json.loads(line) for line in stoker.run("export", "--format", "jsonl", build).stdout.splitlines()]
    assert all((job["outcome"] == "dropped") == (job["began"] is None) for job in reported)
    assert len(reported) == len(recorded)
    assert {job["outcome"] for job in reported} <= {*recorded, "dropped"}
    return recorded


@pytest.mark.parametrize("ninja", ONE_NINJA_AT_FIRST)
@pytest.mark.parametrize("inside", ["{}", "sh -c '{}; exit 3'"], ids=["itself", "in-a-shell"])
def test_what_ran_and_what_waited_as_its_ninja_was_killed_was_interrupted(
    stoker: Stoker, tmp_path: Path, inside: str, ninja: str
) -> None:
    """The supervisor ends what the ninja leaves, often before the engine has seen that it is gone."""
    folder = write_compilers(tmp_path / "b", 8)
    build = stoker.detach(*shlex.split(inside.format(f"{ninja} -C {folder} -j6")), jobs=2)
    until(lambda: stoker.status(build)["progress"]["on_deck"] == 4, "four on deck")
    until(lambda: stoker.status(build)["progress"]["total_known"], "the plan")
    command = stoker.supervisor(build)["build_pid"]
    until(lambda: compilers(command) == 2, "two compilers")
    inner = [p.pid for p in below([command]) if p.name == "ninja"]
    os.kill(inner[0] if inner else command, signal.SIGKILL)
    end = stoker.ended(build)
    assert (end["state"], end["exit_code"]) == ("failed", 137 if inside == "{}" else 3)
    progress = end["progress"]
    assert (progress["finished"], progress["failed"], progress["killed"], progress["total"]) == (0, 0, 0, 8)
    assert progress["interrupted"] >= 2, "a place that one of them frees may go to one that waits"
    assert outcomes(stoker, build) == ["interrupted"] * 6


def test_what_ran_and_what_waited_as_its_make_was_killed_was_interrupted(stoker: Stoker, tmp_path: Path) -> None:
    build = stoker.detach("make", "-C", str(write_compilers(tmp_path / "b", 4)), "-j3", jobs=2)
    until(lambda: stoker.status(build)["progress"]["on_deck"] == 1, "one on deck")
    make = stoker.supervisor(build)["build_pid"]
    until(lambda: compilers(make) == 2, "two compilers")
    os.kill(make, signal.SIGKILL)
    progress = stoker.ended(build)["progress"]
    assert (progress["finished"], progress["failed"]) == (0, 0)
    assert progress["interrupted"] >= 2, "a place that one of them frees may go to the one that waits"
    assert outcomes(stoker, build) == ["interrupted"] * 3


def test_what_a_ninja_below_another_leaves_as_it_is_killed_was_interrupted(stoker: Stoker, tmp_path: Path) -> None:
    """The outer one goes on."""
    inner = write_compilers(tmp_path / "in", 3)
    outer = write_ninja(tmp_path / "out", [("sub", f"{PYPI_NINJA} -C {inner}; sleep 600")])
    build = stoker.detach(PYPI_NINJA, "-C", str(outer), "-j4", jobs=1)
    until(lambda: stoker.status(build)["progress"]["on_deck"] == 2, "two on deck")
    ninjas = [p.pid for p in below([stoker.supervisor(build)["build_pid"]]) if p.name == "ninja"]
    os.kill(ninjas[0], signal.SIGKILL)

    def ends() -> list[str]:
        finished = (e for e in stoker.events(build) if e["type"] == "job_finished")
        return [e["outcome"] for e in finished if e["sid"] == 2]

    until(lambda: len(ends()) == 3, "the end of its jobs")
    assert set(ends()) == {"interrupted"}
    assert stoker.run("stop", "--force", build).returncode == 0


@pytest.mark.parametrize("force", [(), ("--force",)], ids=["stop", "kill"])
@pytest.mark.parametrize("tool", ["ninja", "make"])
def test_what_a_stop_ends_was_interrupted(stoker: Stoker, tmp_path: Path, tool: str, force: tuple[str, ...]) -> None:
    folder = write_compilers(tmp_path / "b", 4)
    build = stoker.detach(PYPI_NINJA if tool == "ninja" else "make", "-C", str(folder), "-j3", jobs=2)
    until(lambda: stoker.status(build)["progress"]["on_deck"] == 1, "one on deck")
    until(lambda: compilers(stoker.supervisor(build)["build_pid"]) == 2, "two compilers")
    assert stoker.run("stop", *force, build).returncode == 0
    end = stoker.ended(build)
    assert (end["state"], end["failures"]) == ("stopped", [])
    assert (end["progress"]["failed"], end["progress"]["finished"]) == (0, 0)
    assert end["progress"]["interrupted"] >= 2, "a place that one of them frees may go to the one that waits"
    assert outcomes(stoker, build) == ["interrupted"] * 3
