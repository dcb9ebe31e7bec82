"""Jobs that die for memory: whom the kernel takes, and what becomes of the build."""

from __future__ import annotations

import contextlib
import os
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


def test_jobs_that_waited_as_their_ninja_was_killed_have_not_failed(stoker: Stoker, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "b", [(f"o{n}", "sleep 600; true") for n in range(8)])
    build = stoker.detach(PYPI_NINJA, "-C", str(folder), "-j6", jobs=2)
    until(lambda: stoker.status(build)["progress"]["on_deck"] == 4, "four on deck")
    until(lambda: stoker.status(build)["progress"]["total_known"], "the plan")
    os.kill(stoker.supervisor(build)["build_pid"], signal.SIGKILL)
    end = stoker.ended(build)
    assert (end["state"], end["reason"]) == ("failed", "killed by signal 9 (Killed)")
    progress = end["progress"]
    assert (progress["finished"], progress["killed"], progress["total"]) == (0, 0, 8)
    assert progress["failed"] <= 2, "two ran: they may have ended before anybody saw that ninja had"
    rows = stoker.run("export", "--format", "csv", build).stdout.decode().splitlines()
    assert sum(",interrupted," in row for row in rows) >= 4
