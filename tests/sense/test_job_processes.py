"""The processes of a job, read from real ones."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable

from stoker.contract.process import key_of
from stoker.model.job_tree import MAX_ROWS, ProcessTree
from stoker.sense.proc.job_processes import processes_of
from stoker.sense.proc.jobs import JobProcess, JobUse
from stoker.sense.proc.processes import ProcessTable


def use_of(root: subprocess.Popen[bytes]) -> JobUse:
    """What a scan would say of it."""
    pid, start = key_of(root.pid)
    job = JobProcess(pid, start, (1, 1), 0.0, ("sh",), "x.o", "cxx")
    below = (p for p in ProcessTable(pid).scan())
    return JobUse(job, 0, 0, 0.0, 0.0, "sh", "running", pids=(pid, *below))


def eventually(root: subprocess.Popen[bytes], holds: Callable[[ProcessTree], bool]) -> ProcessTree:
    for _ in range(500):
        tree = processes_of(use_of(root))
        if holds(tree):
            return tree
        time.sleep(0.02)
    raise AssertionError(tree)


def test_a_tree_has_each_process_behind_its_parent_and_says_who_is_stopped() -> None:
    script = "sleep 61 & sh -c 'sleep 62; :' & wait"
    began = [(0, "sh"), (1, "sleep"), (1, "sh"), (2, "sleep")]  # a fork has its parent's name until it executes
    with subprocess.Popen(["sh", "-c", script], start_new_session=True) as root:
        try:
            tree = eventually(root, lambda t: [(r.depth, r.name) for r in t.rows] == began)
            assert [r.task for r in tree.rows].count("62") == 1
            assert not any(r.hosted for r in tree.rows)
            eventually(root, lambda t: {r.doing for r in t.rows} == {"waiting"})
            os.killpg(root.pid, signal.SIGSTOP)
            eventually(root, lambda t: {r.doing for r in t.rows} == {"stopped"})
        finally:
            os.killpg(root.pid, signal.SIGKILL)


def test_what_has_ended_is_not_there_and_a_crowd_is_bounded() -> None:
    crowd = "i=0; while [ $i -lt 70 ]; do sleep 60 & i=$((i+1)); done; wait"
    with subprocess.Popen(["sh", "-c", crowd], start_new_session=True) as root:
        try:
            tree = eventually(root, lambda t: len(t.rows) + t.more == 71)
            assert (len(tree.rows), tree.more) == (MAX_ROWS, 71 - MAX_ROWS)
            use = use_of(root)
        finally:
            os.killpg(root.pid, signal.SIGKILL)
    assert processes_of(use).rows == ()


def test_a_hostile_name_comes_as_it_is_and_bounded() -> None:
    """The kernel keeps 15 bytes of any name; screens clean it."""
    with subprocess.Popen(
        ["sh", "-c", "printf '\\033]0;x\\n' > /proc/self/comm; sleep 60; :"], start_new_session=True
    ) as root:
        try:
            tree = eventually(root, lambda t: len(t.rows) == 2)
            assert all(len(r.name) <= 15 for r in tree.rows)
        finally:
            os.killpg(root.pid, signal.SIGKILL)
