"""The build's CPU, with compilers that are too short to be seen at work."""

from __future__ import annotations

from collections.abc import Iterable

from stoker.sense.proc.build_cpu import BuildCpu
from stoker.sense.proc.processes import CLK_TCK, Process


def measured(cpu: BuildCpu, processes: Iterable[Process], now: float) -> float | None:
    return cpu.measure({process.pid: process for process in processes}, now)


def process(pid: int, own: float, of_children: float = 0.0) -> Process:
    return Process(pid, 1, pid, pid, "R", "cc1plus", 5, round(own * CLK_TCK), round(of_children * CLK_TCK), 0, 1)


def test_the_first_look_says_nothing_and_then_jobs_that_have_ended_count_too() -> None:
    cpu = BuildCpu()
    assert measured(cpu, [process(2, 0.1), process(3, 5.0)], 10.0) is None
    # The compiler worked for another half second, ended, and three that nobody saw took 0.3 s each.
    assert measured(cpu, [process(2, 0.1, of_children=5.5 + 0.9)], 12.0) == 70.0


def test_processes_whose_parent_did_not_wait_for_them_make_nothing_negative() -> None:
    cpu = BuildCpu()
    measured(cpu, [process(2, 0.1), process(3, 5.0)], 10.0)
    assert measured(cpu, [process(2, 0.2)], 11.0) == 10.0, "what it did itself"
    assert measured(cpu, [process(2, 0.7)], 12.0) == 50.0


def test_a_killed_job_takes_nothing_from_what_the_others_use() -> None:
    """Right after a kill the build stood at 0 %, above three jobs with a third of a core each."""
    cpu = BuildCpu()
    measured(cpu, [process(2, 0.1), process(3, 20.0), process(4, 1.0), process(5, 1.0)], 10.0)
    # Job 3 was killed with the shell above it, so nobody got its total; 6 has begun since.
    assert measured(cpu, [process(2, 0.1), process(4, 1.4), process(5, 1.3), process(6, 0.2)], 11.0) == 90.0


def test_a_clock_that_was_set_back_gives_no_figure() -> None:
    cpu = BuildCpu()
    measured(cpu, [process(2, 1.0)], 10.0)
    assert measured(cpu, [process(2, 2.0)], 9.0) is None
    assert measured(cpu, [process(2, 2.5)], 10.0) == 50.0


def test_what_slept_since_the_last_look_used_nothing_and_a_reused_pid_counts_in_full() -> None:
    cpu, sleeper = BuildCpu(), process(2, 3.0)
    measured(cpu, [sleeper, process(3, 5.0)], 10.0)
    reused = process(3, 0.5)._replace(start_ticks=900)
    assert measured(cpu, [sleeper, reused], 11.0) == 50.0
