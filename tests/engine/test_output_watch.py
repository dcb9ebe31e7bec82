"""What is believed of a build's own output."""

from __future__ import annotations

import os
from pathlib import Path

from stoker.engine.jobs.output_watch import OutputWatch
from stoker.engine.jobs.scheduler_book import SchedulerBook
from stoker.engine.jobs.table import JobTable
from stoker.model.events import Event, FailureFound, Record, Sampled, SchedulerPlanned
from stoker.model.reduce import reduce_all
from stoker.model.samples import MachineSample
from stoker.model.state import BuildState, OutputUse
from stoker.sense.ninja.plan import Plan, PlanSummary
from stoker.sense.proc.schedulers import SchedulerProcess
from support.jobs import FixedExpectations


def new_book() -> SchedulerBook:
    ninja = SchedulerProcess(7, 70, "ninja", "/b", "ninja", ("ninja",), 4, "build.ninja", ())
    return SchedulerBook(1, ninja, 0.0, JobTable(FixedExpectations(), BuildState()))


def book_with_plan(total: int) -> SchedulerBook:
    book = SchedulerBook(
        1,
        SchedulerProcess(7, 70, "ninja", "/b", "ninja", ("ninja",), 4, "build.ninja", ()),
        0.0,
        JobTable(FixedExpectations(), BuildState()),
    )
    book.take_plan(Plan(PlanSummary(total, 0, total, {"cxx": total}, ""), None, 0))
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


def test_a_total_beyond_the_plan_is_believed_like_a_smaller_one(tmp_path: Path) -> None:
    """A dyndep file may add edges, and restat rules before the manifest make ninja 1.13 count some twice."""
    log = tmp_path / "output.log"
    watch, book = OutputWatch(log, BuildState()), book_with_plan(10)
    totals = []
    for finished in (1, 2, 3):
        book.finished = finished
        totals += said(watch, log, book, f"[{finished}/40] other\n")
    assert totals == [40]
    totals = []
    for finished in (4, 5, 6):
        book.finished = finished
        totals += said(watch, log, book, f"[{finished}/10] its own\n")
    assert totals == [10]


def test_the_same_nested_build_at_each_job_is_not_taken_for_the_outer_one(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    watch, book = OutputWatch(log, BuildState()), book_with_plan(10)
    for finished in (1, 2, 3, 4):
        book.finished = finished
        assert said(watch, log, book, f"[{finished}/10] outer\n[1/6] inner\n[6/6] inner\n") == []


def test_the_total_of_what_renews_the_manifest_is_not_told_while_a_plan_is_due(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    watch = OutputWatch(log, BuildState())
    book = SchedulerBook(
        1,
        SchedulerProcess(7, 70, "ninja", "/b", "ninja", ("ninja",), 4, "build.ninja", ()),
        0.0,
        JobTable(FixedExpectations(), BuildState()),
    )
    book.plan_is_due = True
    assert said(watch, log, book, "[1/2] Re-checking globbed directories...\n") == []
    book.plan_is_due = False
    assert said(watch, log, book, "[2/2] Re-running CMake...\n") == [2]


FAILED = "FAILED: [code=137] {0}.o \ng++ -c {0}.cpp\nKilled\n"
STOPPED = "ninja: build stopped: subcommand failed.\n"


def failures(events: list[Event]) -> list[str]:
    return [e.output for e in events if isinstance(e, FailureFound)]


def test_what_ended_a_build_is_found_however_much_was_not_read_before(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    with log.open("wb") as file:
        file.truncate(1200 * 2**20)  # what a test suite or a configure step has said in a few seconds
        file.seek(0, os.SEEK_END)
        file.write(("\n" + FAILED.format("a") + STOPPED).encode())
    assert failures(OutputWatch(log, BuildState()).read_all([])) == ["a.o"]


def test_a_later_engine_begins_where_the_one_before_it_has_read(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    log.write_text("chatter\n" * 1000 + "[1/9] CC a.o\n" + FAILED.format("b"))
    first = OutputWatch(log, BuildState())
    assert failures(first.read([])) == [], "more of it may come"
    later = OutputWatch(log, BuildState(output=OutputUse(read=first.settled)))
    with log.open("a") as file:
        file.write("more of it\n[2/9] CC c.o\n")
    (failure,) = [e for e in later.read([]) if isinstance(e, FailureFound)]
    assert (failure.output, failure.excerpt) == ("b.o", ("Killed", "more of it"))
    assert failure.log_start == 1000 * len("chatter\n") + len("[1/9] CC a.o\n")
    assert later.settled == log.stat().st_size
    assert failures(OutputWatch(log, BuildState(output=OutputUse(read=later.settled))).read_all([])) == []


def test_how_far_was_read_is_in_the_journal() -> None:
    machine = MachineSample(50.0, (50,), 2.0, 2**34, 2**33, 2**33, "machine")
    sampled = [Sampled(machine, (), 0, 0, 0, "", 100, log_read=read) for read in (70, 0)]  # 0: of an older stoker
    state = reduce_all(Record(n, float(n), event) for n, event in enumerate(sampled, 1))
    assert state.output.read == 70


def test_a_log_that_was_cut_ends_what_is_read(tmp_path: Path) -> None:
    log = tmp_path / "output.log"
    log.write_text("chatter\n" * 10)
    assert OutputWatch(log, BuildState(output=OutputUse(read=1000))).read_all([]) == []
    log.unlink()
    assert OutputWatch(log, BuildState()).read_all([]) == []
