"""What stopped jobs add to the load average."""

from __future__ import annotations

import pytest

from stoker.sense.proc.held_load import HeldLoad
from stoker.sense.proc.processes import Process


def processes(*rows: tuple[int, int, str]) -> dict[int, Process]:
    return {pid: Process(pid, ppid, pid, 1, state, "sh", pid, 0, 0, 0, 1) for pid, ppid, state in rows}


def test_shells_that_wait_in_the_kernel_for_a_stopped_child_become_load_within_minutes() -> None:
    held = processes((2, 1, "D"), (3, 2, "T"), (4, 1, "D"), (5, 4, "T"))
    load = HeldLoad()
    assert load.measure(held, 1000.0) == 0.0
    assert 1.0 < load.measure(held, 1060.0) < load.measure(held, 1120.0) < 2.0
    assert load.measure(held, 1600.0) == pytest.approx(2.0, abs=0.01)
    assert load.measure({}, 2200.0) == pytest.approx(0.0, abs=0.01)


def test_what_waits_for_a_disk_or_is_only_stopped_is_not_counted() -> None:
    others = processes((2, 1, "D"), (3, 2, "R"), (4, 1, "T"), (5, 4, "T"), (6, 1, "D"))
    load = HeldLoad()
    load.measure(others, 1000.0)
    assert load.measure(others, 1600.0) == 0.0
