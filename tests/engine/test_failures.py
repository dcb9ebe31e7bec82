"""When a job counts as failed although nothing was said of it, and when not."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest

from stoker.engine.aftermath.failures import SURE_SECONDS, Failures
from stoker.engine.jobs.managed_job import ManagedJob
from stoker.model import events as ev
from support.jobs import managed_job

FAILED = ev.JobFinished(7, 1, "a.o", "cxx", 4.0, "failed")
BEGUN = ev.JobStarted(9, 1, 99, "c.o", "cxx", 1000.0)


class Watched:
    """A ninja with jobs on deck, looked at once a second."""

    def __init__(self, failures: int | None = 1, *, stopping: bool = False) -> None:
        self.dropped: list[str] = []
        scheduler = SimpleNamespace(pid=5, failures=failures, tool="ninja")
        self.book: Any = SimpleNamespace(
            sid=1,
            scheduler=scheduler,
            finished=3,
            errors=0,
            keeps_log=True,
            is_known=self._known,
        )
        self.planned = {"a.o"}
        governor: Any = SimpleNamespace(drop=self._drop)
        self.recorded: set[tuple[int, str]] = set()
        self.said: list[ev.Event] = []
        output: Any = SimpleNamespace(read=lambda _books: self.said)
        is_recorded = lambda sid, name: (sid, name) in self.recorded  # noqa: E731
        self.failures = Failures(output, governor, lambda _failure: (True, []), is_recorded, lambda: stopping)
        self.now = 1000.0

    def _known(self, output: str) -> bool:
        return output in self.planned

    def _drop(self, _sid: int, output: str, _why: str) -> tuple[list[ManagedJob], list[ev.Event]]:
        self.dropped.append(output)
        return [managed_job(8)], []

    def look(self, *events: ev.Event, recorded: int = 0, state: str = "S") -> None:
        self.now += 1
        self.book.finished += recorded
        processes: Any = {5: SimpleNamespace(state=state)}
        self.failures.look(events, [self.book], processes, self.now)


@pytest.fixture
def ninja() -> Watched:
    return Watched()


def test_a_job_without_a_record_has_failed_once_a_later_one_has_its_own(ninja: Watched) -> None:
    ninja.look(FAILED)
    ninja.look(recorded=1)
    assert ninja.dropped == []
    for _ in range(int(SURE_SECONDS)):
        ninja.look()
    assert ninja.dropped == ["a.o"]
    for _ in range(10):
        ninja.look(recorded=1)
    assert ninja.dropped == ["a.o"]


def test_a_log_that_tells_of_nothing_tells_of_no_failure(ninja: Watched) -> None:
    """That of a ninja in a container, or on a disk that is not there any more."""
    for _ in range(60):
        ninja.look(FAILED)
    assert ninja.dropped == []


def test_a_job_of_which_the_log_has_a_record_after_all_has_not_failed(ninja: Watched) -> None:
    ninja.recorded.add((1, "a.o"))
    ninja.look(FAILED)
    for _ in range(60):
        ninja.look(recorded=1)
    assert ninja.dropped == []


def test_a_job_that_may_be_any_edge_may_be_one_that_has_its_record(ninja: Watched) -> None:
    """As where several edges have one command, or no plan could be made."""
    ninja.planned.clear()
    ninja.look(FAILED)
    for _ in range(60):
        ninja.look(recorded=1)
    assert ninja.dropped == []


def test_a_ninja_that_starts_another_job_has_met_no_failure(ninja: Watched) -> None:
    ninja.look(FAILED)
    ninja.look(BEGUN, recorded=1)
    for _ in range(60):
        ninja.look()
    assert ninja.dropped == []


@pytest.mark.parametrize("state", ["R", "D", "T"])
def test_a_ninja_that_is_busy_or_stopped_may_still_write_its_record(ninja: Watched, state: str) -> None:
    ninja.look(FAILED)
    for _ in range(60):
        ninja.look(recorded=1, state=state)
    ninja.look(ev.JobFinished(None, 1, "a.o", "cxx", 4.0, "ok"))
    for _ in range(60):
        ninja.look(recorded=1)
    assert ninja.dropped == []


def test_a_job_that_was_dropped_and_fails_when_its_step_runs_again_has_failed(ninja: Watched) -> None:
    ninja.look(FAILED)
    for _ in range(int(SURE_SECONDS) + 1):
        ninja.look(recorded=1)
    ninja.said = [ev.FailureFound("8.o", "c++ 8.cc", 1, (), 0, 9)]
    assert ninja.failures.read([ninja.book], ninja.now) == []
    ninja.failures.begin_command()
    assert ninja.failures.read([ninja.book], ninja.now) == ninja.said


def test_one_that_is_told_to_keep_going_goes_on() -> None:
    ninja = Watched(failures=None)
    ninja.look(FAILED)
    for _ in range(60):
        ninja.look(recorded=1)
    assert ninja.dropped == []


def test_a_failure_names_jobs_by_the_words_that_the_journal_has_of_their_command(ninja: Watched) -> None:
    named: list[dict[str, str]] = []
    ninja.book.name_lost = lambda reported: named.append(dict(reported))
    ninja.failures.name_lost([ninja.book])
    assert named == []
    ninja.said = [ev.FailureFound("o5", "./burn o5 0.5 20", 137, (), 0, 0)]
    ninja.failures.read([ninja.book], ninja.now)
    ninja.failures.name_lost([ninja.book])
    assert named == [{"burn o5 0.5 20": "o5"}]


def test_what_a_stop_has_ended_has_not_failed_but_an_error_before_that_has() -> None:
    ended = ev.FailureFound(
        "a.o", "g++ -c a.cpp", 1, ("g++: fatal error: Terminated signal terminated program cc1plus",), 0, 9
    )
    failed = ev.FailureFound("b.o", "g++ -c b.cpp", 1, ("b.cpp:1:1: error: 'x' does not name a type",), 9, 20)
    for stopping in (True, False):
        watched = Watched(stopping=stopping)
        watched.said = [ended, failed]
        heard = watched.failures.read([watched.book], 1000.0)
        assert heard == ([failed] if stopping else [ended, failed])
        assert ("a.o" in watched.failures.reported) is not stopping
        assert "b.o" in watched.failures.reported
