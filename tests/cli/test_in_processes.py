"""Several things worked out at the same time: in order, with how far all are, and gone when somebody presses Ctrl-C."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable

import pytest

from stoker.cli.in_processes import worked_out


def square(number: int, far: Callable[[float], None]) -> tuple[int, int]:
    far(0.5)
    return number * number, os.getpid()


def failing(number: int, far: Callable[[float], None]) -> int:
    raise ValueError(f"no {number}")


@pytest.mark.parametrize("cores", [1, 4])
def test_what_is_worked_out_comes_in_its_order(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(cores)))
    heard: list[float] = []
    found = worked_out(square, range(6), heard.append)
    assert [number for number, _ in found] == [0, 1, 4, 9, 16, 25]
    assert (os.getpid() in {pid for _, pid in found}) is (cores == 1)
    assert all(0 <= share <= 1 for share in heard)


@pytest.mark.parametrize("cores", [1, 4])
def test_a_fault_is_raised_where_it_was_asked_for(cores: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(os, "sched_getaffinity", lambda _pid: set(range(cores)))
    with pytest.raises(ValueError, match="no "):
        worked_out(failing, range(3), lambda _share: None)


def test_ctrl_c_ends_all_of_them_without_a_word_of_theirs() -> None:
    """The real thing: a group of processes that a terminal would interrupt together."""
    program = (
        "import os, sys, time\n"
        "os.sched_getaffinity = lambda _pid: {0, 1}\n"
        "from stoker.cli.in_processes import worked_out\n"
        "def work(number, far):\n"
        "    os.write(1, b'begun\\n')\n"
        "    time.sleep(1000)\n"
        "try:\n"
        "    worked_out(work, range(2), lambda share: None)\n"
        "except KeyboardInterrupt:\n"
        "    sys.exit(130)\n"
    )
    running = subprocess.Popen(
        [sys.executable, "-c", program], stdout=subprocess.PIPE, stderr=subprocess.PIPE, start_new_session=True
    )
    assert running.stdout is not None
    assert [running.stdout.readline() for _ in range(2)] == [b"begun\n", b"begun\n"]
    os.killpg(running.pid, signal.SIGINT)
    _, errors = running.communicate(timeout=60)
    assert (running.returncode, errors) == (130, b"")
    with pytest.raises(ProcessLookupError):
        os.killpg(running.pid, 0)
