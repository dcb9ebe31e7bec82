"""What is told of a build, in which order."""

from __future__ import annotations

from pathlib import Path

import pytest

from stoker.config.paths import BuildPaths
from stoker.engine.loop.event_store import Ledger
from stoker.model import events as ev


@pytest.fixture
def ledger(tmp_path: Path) -> Ledger:
    ledger = Ledger(BuildPaths(tmp_path))
    ledger.write([ev.BuildStarted("b-1", "b", ("make",), "/src", "/log", "host", 2, 24 << 30, "0.1.0")])
    ledger.write([ev.SchedulerStarted(1, "make", 101, "/src", "4.3", 2), began(1), began(2)])
    return ledger


def began(jid: int) -> ev.JobStarted:
    return ev.JobStarted(jid, 1, 200 + jid, f"{jid}.o", "cxx", 1000.0)


def ended(jid: int) -> ev.JobFinished:
    return ev.JobFinished(jid, 1, f"{jid}.o", "cxx", 1.0, "ok")


def told(ledger: Ledger) -> list[ev.Event]:
    found: list[ev.Event] = []
    ledger.heard = lambda events, _now: found.extend(events)
    return found


def test_a_job_that_has_left_gives_its_place_up_before_another_takes_it(ledger: Ledger) -> None:
    news = told(ledger)
    ledger.left(2)
    assert ledger.owes
    ledger.write([began(3)])
    assert news == [ev.JobsExited((2,)), began(3)]
    assert (sorted(ledger.state.jobs), sorted(ledger.state.leaving)) == ([1, 3], [2])
    ledger.write([ended(2)])
    assert not ledger.state.leaving
    assert not ledger.owes


def test_a_job_whose_end_is_told_anyway_is_told_of_once(ledger: Ledger) -> None:
    news = told(ledger)
    ledger.left(1)
    ledger.write([ended(1)])
    ledger.left(1)
    ledger.write([ended(2)])
    assert news == [ended(1), ended(2)]


def test_a_job_that_ends_before_its_beginning_is_told_leaves_after_that(ledger: Ledger) -> None:
    news = told(ledger)
    ledger.left(3)
    ledger.write([began(3)])
    assert ledger.owes
    ledger.write([])
    assert news == [began(3), ev.JobsExited((3,))]


async def test_what_the_engine_before_knew_is_as_old_as_its_last_record(ledger: Ledger, tmp_path: Path) -> None:
    """Not as old as the successor's own first one: a job that ended in between would seem to have lived until then."""
    last_record = ledger.state.time + 10.0
    ledger.write([began(3)], last_record)
    await ledger.close()
    successor = Ledger(BuildPaths(tmp_path))
    successor.write([ev.EngineStarted(7, adopted=True)], last_record + 5.0)
    assert successor.watched_until == pytest.approx(last_record, abs=0.001)
    await successor.close()
