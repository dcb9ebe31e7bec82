"""What the meter says of the memory that is promised, and when it looks anew."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import partial

import pytest

from stoker.decide.memory.curves import flat
from stoker.decide.policy.snapshot import Candidate, LiveJob, View
from stoker.engine.govern.level_control import LevelControl
from stoker.engine.govern.memory_watch import MemoryWatch
from stoker.engine.jobs.managed_job import ManagedJob
from stoker.engine.jobs.table import JobTable
from stoker.model.state import BuildState
from stoker.sense.machine.cgroup import MemoryLimit
from support.jobs import FixedExpectations, managed_job

MIB, GIB = 2**20, 2**30


def view(*rss: int, on_deck: int = 0) -> View:
    jobs = tuple(LiveJob(n, f"{n}.o", float(n), 1.0, held, flat(held, 60.0), held) for n, held in enumerate(rss))
    deck = (Candidate(99, "99.o", 0.0, flat(GIB, 60.0), rss=on_deck),) if on_deck else ()
    return View(8 * GIB, 8 * GIB, reserve=0.0, floor=0.0, cpu_slots=4.0, running=jobs, candidates=deck)


class Memory(MemoryWatch):
    """Jobs that come and go, and a clock, as a test says."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        jobs = JobTable(FixedExpectations(), BuildState())
        super().__init__(jobs, LevelControl(BuildState()), lambda _held: MemoryLimit("", 8 * GIB, 0))
        self._table, self._patch = jobs, monkeypatch

    def start(self, job: ManagedJob) -> None:
        self._table.add(job)

    def most(self, look: Callable[[], View], version: int, now: float, *, tight: bool) -> int:
        self._table.version = version
        self._patch.setattr(time, "monotonic", lambda: now)
        self._patch.setattr(self, "tight", lambda: tight)
        return self.promise(look).most


@pytest.fixture
def promised(monkeypatch: pytest.MonkeyPatch) -> Memory:
    return Memory(monkeypatch)


def look(*rss: int, on_deck: int = 0) -> Callable[[], View]:
    return partial(view, *rss, on_deck=on_deck)


def nobody_looks() -> View:
    raise AssertionError("a look is work")


def test_what_jobs_hold_is_promised_and_nothing_where_none_runs(promised: Memory) -> None:
    assert promised.most(look(), 1, 0.0, tight=False) == 0
    assert promised.most(look(GIB, GIB), 2, 2.0, tight=False) == 2 * GIB


def test_what_held_compilers_on_deck_hold_is_nobodys_promise(promised: Memory) -> None:
    assert promised.most(look(on_deck=170 * MIB), 1, 0.0, tight=True) == 0
    assert promised.most(look(GIB, on_deck=170 * MIB), 2, 1.0, tight=True) == GIB


def test_a_job_that_starts_while_an_answer_is_kept_counts_with_its_peak(promised: Memory) -> None:
    first = promised.most(look(GIB), 1, 0.0, tight=False)
    promised.start(managed_job(7))
    assert promised.most(nobody_looks, 2, 1.0, tight=False) == first + round(0.1 * GIB)


def test_an_answer_is_kept_only_while_it_can_hardly_be_another(promised: Memory) -> None:
    first = promised.most(look(GIB), 1, 0.0, tight=False)
    assert promised.most(nobody_looks, 1, 4.0, tight=False) == first
    assert promised.most(nobody_looks, 2, 1.0, tight=False) == first, "jobs may be short"
    assert promised.most(look(2 * GIB), 1, 1.0, tight=True) == 2 * GIB, "memory is in play"
    assert promised.most(look(3 * GIB), 2, 3.0, tight=False) == 3 * GIB, "another job runs"
    assert promised.most(look(4 * GIB), 2, 9.0, tight=False) == 4 * GIB, "some time has gone by"
