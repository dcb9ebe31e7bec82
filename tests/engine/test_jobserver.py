"""Slots for tools inside jobs: those that are jobs of the deck count once, and those of killed tools not for ever."""

from __future__ import annotations

import contextlib
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.contract.process import Key, start_ticks
from stoker.engine.govern import jobserver as lending
from stoker.engine.govern.jobserver import Jobserver

TAKES = """
import os, signal, subprocess, sys
signal.signal(signal.SIGCHLD, signal.SIG_IGN)
pool = os.open(sys.argv[1], os.O_RDWR | os.O_NONBLOCK)
taken = os.read(pool, int(sys.argv[2]))
jobs = [subprocess.Popen(["sleep", "600"], pass_fds=[]) for _ in range(len(taken) + 1)]
print(len(taken), flush=True)
sys.stdin.read()
for job in jobs:
    job.kill()
os.write(pool, taken)
"""


class Borrowers:
    """Tools that take slots, and a lender that has none to give at first."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "b-1" / "jobserver"
        self.path.parent.mkdir()
        os.mkfifo(self.path)
        self.living: dict[Key, int] = {}
        self.lender = Jobserver(self.path, lambda: self.living)
        self.tools: list[subprocess.Popen[bytes]] = []

    def take(self, count: int) -> subprocess.Popen[bytes]:
        """A tool that has taken so many, if they are there, and uses them; it gives them back when its input ends."""
        words = [sys.executable, "-I", "-S", "-c", TAKES, str(self.path), str(count)]
        tool = subprocess.Popen(words, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True)
        self.tools.append(tool)
        assert tool.stdout is not None
        assert int(tool.stdout.readline()) == count
        return tool

    def runs_jobs(self, pid: int, count: int) -> None:
        """That process is a scheduler which has so many jobs on the deck."""
        self.living[(pid, start_ticks(pid) or 0)] = count


@pytest.fixture
def borrowers(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Borrowers]:
    monkeypatch.setattr(lending, "CHECK_SECONDS", 0.0)
    found = Borrowers(tmp_path)
    yield found
    for tool in found.tools:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(tool.pid, signal.SIGKILL)
        tool.communicate()


def test_a_schedulers_slots_are_jobs_of_the_deck_already(borrowers: Borrowers) -> None:
    borrowers.lender.offer(5)
    scheduler = borrowers.take(3)
    borrowers.runs_jobs(scheduler.pid, 4)
    borrowers.runs_jobs(os.getppid(), 9)  # one with a number of its own, which takes none
    assert borrowers.lender.used == 0
    borrowers.take(2)
    assert borrowers.lender.used == 2
    borrowers.lender.offer(0)
    assert borrowers.lender.used == 2, "that tool lives"


def test_what_a_killed_tool_held_can_be_taken_again(borrowers: Borrowers) -> None:
    borrowers.lender.offer(3)
    tool = borrowers.take(3)
    borrowers.lender.offer(0)
    assert borrowers.lender.used == 3
    tool.send_signal(signal.SIGKILL)
    tool.wait()
    borrowers.lender.offer(0)
    assert borrowers.lender.used == 0
    borrowers.lender.offer(3)
    borrowers.take(3)


def test_what_a_killed_tool_held_can_be_taken_again_while_another_one_works(borrowers: Borrowers) -> None:
    borrowers.lender.offer(6)
    killed, works = borrowers.take(4), borrowers.take(2)
    os.killpg(killed.pid, signal.SIGKILL)
    killed.wait()
    borrowers.lender.offer(0)
    used = borrowers.lender.used
    assert 2 <= used < 4, "as many as the other one's jobs can stand for"
    borrowers.lender.offer(4)
    borrowers.take(4)
    works.communicate()
    assert borrowers.lender.used == used + 4 - 2


def test_what_comes_back_of_itself_is_not_used_any_more(borrowers: Borrowers) -> None:
    borrowers.lender.offer(2)
    tool = borrowers.take(2)
    assert borrowers.lender.used == 2
    tool.communicate()
    assert borrowers.lender.used == 0
