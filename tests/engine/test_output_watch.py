"""What is believed of a build's own output."""

from __future__ import annotations

from pathlib import Path

from stoker.engine.output_watch import OutputWatch
from stoker.engine.schedulers import SchedulerBook
from stoker.model.events import SchedulerPlanned
from stoker.model.state import BuildState
from stoker.sense.plan import Plan, PlanSummary
from stoker.sense.schedulers import Scheduler


def book_with_plan(total: int) -> SchedulerBook:
    book = SchedulerBook(1, Scheduler(7, 70, "ninja", "/b", "ninja", ("ninja",), 4, "build.ninja", ()), 0.0)
    book.plan = Plan(PlanSummary(total, 0, total, {"cxx": total}, 0.0, 0, ""), None, 0)
    return book


def said(watch: OutputWatch, log: Path, book: SchedulerBook, text: str) -> list[int | None]:
    with log.open("a") as file:
        file.write(text)
    return [e.total for e in watch.read([book]) if isinstance(e, SchedulerPlanned)]


def test_a_smaller_total_is_believed_when_it_is_heard_again_after_another_job(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    watch, book = OutputWatch(log, BuildState()), book_with_plan(20)
    book.finished = 3
    assert said(watch, log, book, "[3/18] CXX a.o\n") == []
    assert said(watch, log, book, "[3/18] CXX a.o\n") == []
    book.finished = 4
    assert said(watch, log, book, "[4/18] CXX b.o\n") == [18]


def test_the_lines_of_a_ninja_inside_a_job_do_not_change_the_total(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    watch, book = OutputWatch(log, BuildState()), book_with_plan(21)
    book.finished = 5
    assert said(watch, log, book, "[1/6] inner\n[6/6] inner\n") == []
    book.finished = 6
    assert said(watch, log, book, "[7/21] outer\n") == []


def test_a_total_beyond_the_plan_is_somebody_elses(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    watch, book = OutputWatch(log, BuildState()), book_with_plan(10)
    for finished in (1, 2, 3):
        book.finished = finished
        assert said(watch, log, book, f"[{finished}/40] other\n") == []
