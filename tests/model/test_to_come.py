"""What is to come agrees with the rows of the jobs, at every moment between two measurements too."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import pytest

from stoker.model import events as ev
from stoker.model.reduce import reduce_all
from stoker.model.samples import JobSample, MachineSample
from stoker.model.state import BuildState
from stoker.model.status import status_of
from stoker.model.to_come import promised, still_to_come

MIB = 2**20
MACHINE = MachineSample(50.0, (40, 60), 2.0, 500 * MIB, 0, 500 * MIB, "--memory")

BEGIN: tuple[ev.Event, ...] = (
    ev.BuildStarted("b-1", "b", ("ninja",), "/src", "/log", "host", 2, 500 * MIB, "0.1.0"),
    ev.StepStarted(1, 1, "build", ("ninja",), 100),
    ev.SchedulerStarted(1, "ninja", 101, "/src/build", "1.13.2", 4),
)


def started(jid: int, expected: int, state: ev.JobState = "running") -> ev.JobStarted:
    return ev.JobStarted(jid, 1, 200 + jid, f"{jid}.o", "cxx", 1000.0, state, expected * MIB)


def sampled(held: dict[int, int], promise: int, besides: int = 0) -> ev.Sampled:
    """The build holds what its jobs do, and so many MiB besides."""
    used = (sum(held.values()) + besides) * MIB
    machine = replace(MACHINE, memory_used=used, memory_available=500 * MIB - used)
    jobs = tuple(JobSample(jid, rss * MIB, 90.0, "cc1plus") for jid, rss in held.items())
    return ev.Sampled(machine, jobs, used, 9, 0, "", 0, promise * MIB)


def seen(*events: ev.Event) -> BuildState:
    return reduce_all([ev.Record(i, 1000.0 + i, event) for i, event in enumerate((*BEGIN, *events), 1)])


def used(state: BuildState) -> int:
    return int(status_of(state, 1010.0)["memory"]["used"]) // MIB


@pytest.mark.parametrize(
    ("promise", "shown"),
    [(1600, 163), (163 + 40, 163), (140, 100), (40, 0), (10, 0)],
    ids=["more than all rows", "all rows", "not all at once", "nothing", "less than they hold"],
)
def test_no_more_is_to_come_than_the_rows_lack_and_less_if_not_all_of_it_comes_at_once(
    promise: int, shown: int
) -> None:
    state = seen(*(started(n, 60) for n in (1, 2, 3)), started(4, 9), sampled({1: 6, 2: 5, 3: 6, 4: 23}, promise))
    assert still_to_come(state) // MIB == shown
    assert status_of(state, 1010.0)["memory"]["promised"] == promised(state) == (40 + shown) * MIB


def test_where_nothing_runs_nothing_is_to_come_whatever_was_promised_a_moment_ago() -> None:
    ran = (started(1, 60), started(2, 80, "on_deck"), sampled({1: 6}, 140))
    assert still_to_come(seen(*ran)) == 54 * MIB, "what waits on deck is promised nothing"
    assert still_to_come(seen(*ran, ev.JobsExited((1,)))) == 0


def test_a_frozen_job_takes_nothing_more() -> None:
    state = seen(started(1, 200), started(2, 100), sampled({1: 150, 2: 40}, 290), ev.JobMoved(1, "frozen"))
    assert still_to_come(state) == 60 * MIB


ENDS: dict[str, Sequence[ev.Event]] = {
    "exit": (ev.JobsExited((1,)),),
    "record": (ev.JobFinished(1, 1, "1.o", "cxx", 5.0, "ok"),),
    "exit, then record": (ev.JobsExited((1,)), ev.JobFinished(1, 1, "1.o", "cxx", 5.0, "ok")),
}


@pytest.mark.parametrize("ends", ENDS.values(), ids=ENDS)
def test_what_a_job_held_leaves_the_figures_with_its_row(ends: Sequence[ev.Event]) -> None:
    before = seen(started(1, 400), started(2, 90, "on_deck"), sampled({1: 339}, 392, besides=21))
    assert (used(before), still_to_come(before) // MIB) == (360, 53)
    after = reduce_all([ev.Record(100 + n, 1011.0, event) for n, event in enumerate(ends)], before)
    assert (used(after), after.memory.build // MIB, still_to_come(after)) == (21, 21, 0)
    assert status_of(after, 1011.0)["memory"]["available"] == (500 - 21) * MIB
    next_one = reduce_all([ev.Record(110, 1011.1, ev.JobMoved(2, "running"))], after)
    assert (used(next_one), still_to_come(next_one) // MIB) == (21, 90), "its own, and nothing of the ended one"
    assert next_one.memory.build_peak == 360 * MIB


def test_what_a_started_job_needs_is_to_come_at_once() -> None:
    state = seen(started(1, 100), sampled({1: 40}, 100), started(2, 30))
    assert still_to_come(state) == 90 * MIB
