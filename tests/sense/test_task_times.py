"""What the kernel says of the time that threads compute, and wait for a core."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from stoker.sense.proc.processes import Process, parse_stat
from stoker.sense.proc.task_times import MOST_THREADS, task_times


def process(pid: int, threads: int = 1) -> Process:
    return Process(pid, 1, pid, pid, "S", "cc1plus", 5, 0, 0, 0, threads)


def written(proc: Path, pid: int, threads: dict[int, str]) -> Path:
    for thread, text in threads.items():
        (proc / str(pid) / "task" / str(thread)).mkdir(parents=True)
        (proc / str(pid) / "task" / str(thread) / "schedstat").write_text(text)
    return proc


def test_every_thread_of_every_process_counts(tmp_path: Path) -> None:
    written(tmp_path, 10, {10: "1500000000 500000000 30\n"})
    written(tmp_path, 20, {20: "2000000000 0 4\n", 21: "250000000 125000000 7\n"})
    found = task_times([process(10), process(20, threads=2)], tmp_path)
    assert found == {10: (1.5, 0.5), 20: (2.0, 0.0), 21: (0.25, 0.125)}


def test_a_process_that_has_gone_is_left_out(tmp_path: Path) -> None:
    written(tmp_path, 10, {10: "1000000000 0 30\n"})
    assert task_times([process(10), process(11), process(12, threads=2)], tmp_path) == {10: (1.0, 0.0)}


def test_a_kernel_without_the_account_says_nothing(tmp_path: Path) -> None:
    assert task_times([process(10)], tmp_path) is None
    written(tmp_path, 20, {20: "0 0 0\n"})
    assert task_times([process(20)], tmp_path) is None


def test_a_crowd_of_threads_is_not_read(tmp_path: Path) -> None:
    written(tmp_path, 10, {10: "1000000000 0 30\n"})
    assert task_times([process(10, threads=MOST_THREADS + 1)], tmp_path) is None


@pytest.mark.skipif(not Path("/proc/self/schedstat").exists(), reason="a kernel without this account")
def test_one_that_sleeps_wants_no_core() -> None:
    with subprocess.Popen([sys.executable, "-c", "print(flush=True); input()"], stdin=-1, stdout=-1) as child:
        assert child.stdout is not None
        child.stdout.readline()
        now = parse_stat(Path(f"/proc/{child.pid}/stat").read_bytes())
        assert now is not None
        while (before := task_times([now])) != task_times([now]):
            pass  # it is on its way from the print to the sleep
        assert before is not None
        assert before[child.pid][0] > 0
        child.kill()
