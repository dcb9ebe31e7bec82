"""A scheduler's book: what ninja records is matched with what was seen, and nothing counts twice."""

from __future__ import annotations

import json
from dataclasses import replace
from itertools import count
from pathlib import Path

import pytest

from stoker.engine.jobs.managed_job import Life
from stoker.engine.jobs.scheduler_book import PATIENCE_TICKS, SchedulerBook
from stoker.engine.jobs.table import JobTable
from stoker.model.events import JobFinished
from stoker.model.state import BuildState
from stoker.model.tool import Tool
from stoker.sense.ninja.build_log import Entry
from stoker.sense.ninja.plan import Plan, PlanSummary, key_of_argv, table_path, write_table
from stoker.sense.ninja.plan_graph import UNKNOWN, PlanGraph, PlannedEdge, write_graph
from stoker.sense.proc.jobs import JobProcess, JobUse
from stoker.sense.proc.schedulers import SchedulerProcess, SchedulerTool
from support.jobs import FixedExpectations, managed_job

START = 1000.0
NUMBERS = count(100)


class Book(SchedulerBook):
    """A book with the jobs that a test says were seen."""

    def __init__(self, scheduler: SchedulerProcess) -> None:
        self.table = JobTable(FixedExpectations(), BuildState())
        super().__init__(1, scheduler, START, self.table)

    def runs(self, jid: int, seen: JobUse) -> None:
        self.table.add(managed_job(jid, use=seen))

    def vanished(self, jid: int, last_seen: float, noticed: float) -> list[JobFinished]:
        self.table.exit((jid, jid), last_seen, noticed)
        return self.end_unrecorded()

    def all_vanished(self, last_seen: float, noticed: float) -> list[JobFinished]:
        self.end_all(last_seen, noticed)
        return self.end_unrecorded()

    def starts_beside(self, live: int) -> bool:
        """Whether it may start a job while so many live."""
        jids = [next(NUMBERS) for _ in range(live)]
        for jid in jids:
            self.runs(jid, use("other.o"))
        may = self.may_start()
        for jid in jids:
            self.table.exit((jid, jid), START, START)
        self.settle(at_once=True)
        return may


def book(tool: SchedulerTool = "ninja", width: int | None = 4) -> Book:
    return Book(SchedulerProcess(7, 70, tool, "/b", "/bin/ninja", ("ninja",), width, "build.ninja", ()))


def use(output: str, started: float = START + 1, *, tool: Tool = "cxx", peak: int = 500) -> JobUse:
    job = JobProcess(20, 200, (7, 70), started, ("c++", "-o", output), output, tool)
    return JobUse(job, 100, peak, 99.0, 1.5, "cc1plus", "running")


def entry(output: str, start_ms: int = 1000, end_ms: int = 3000, offset: int = 50) -> Entry:
    """As ninja 1.12 and later record it: with the time at which the command began."""
    return Entry(start_ms, end_ms, int((START + start_ms / 1000) * 1e9), output, "abc", offset)


def recorded(b: Book, *entries: Entry, just_scanned: bool = False) -> list[JobFinished]:
    return [e for e in b.recorded(entries, just_scanned=just_scanned) if isinstance(e, JobFinished)]


def test_a_recorded_job_carries_what_was_seen_of_it() -> None:
    b = book()
    b.runs(1, use("a.o"))
    assert b.vanished(1, START + 3, START + 3) == []
    assert recorded(b, entry("a.o")) == [
        JobFinished(1, 1, "a.o", "cxx", 2.0, "ok", peak_rss=500, cpu_seconds=1.5, log_offset=50)
    ]
    assert b.settle(at_once=True) == []


def test_a_vanished_job_has_not_failed_while_something_is_left_of_it_that_ninja_waits_for() -> None:
    b = book()
    b.runs(1, use("a.o"))
    b.vanished(1, START + 3, START + 3)
    for _ in range(9):
        assert b.settle(at_once=False, is_left=lambda _job: True) == []
    assert [(f.jid, f.outcome) for f in b.settle(at_once=False)] == [(1, "failed")]


def test_what_a_killed_ninja_leaves_behind_has_not_failed_but_what_it_had_reported_has() -> None:
    b = book()
    for jid, life in enumerate((Life.ON_DECK, Life.FROZEN, Life.RUNNING, Life.RUNNING), 1):
        b.table.add(managed_job(jid, life, use=use(f"{jid}.o")))
    b.all_vanished(START + 3, START + 3)
    ends = b.settle(at_once=True, unrecorded="interrupted", reported={"4.o"})
    assert [f.outcome for f in ends] == ["interrupted", "interrupted", "interrupted", "failed"]


def test_jobs_of_a_make_that_was_killed_are_not_done() -> None:
    b = book("make")
    b.runs(1, use("a.o"))
    b.end_all(START + 3, START + 3)
    assert [f.outcome for f in b.end_unrecorded("interrupted")] == ["interrupted"]


def test_a_record_that_comes_before_the_death_is_seen_counts_once() -> None:
    b = book()
    b.runs(1, use("a.o"))
    assert [f.jid for f in recorded(b, entry("a.o"))] == [1]
    assert b.vanished(1, START + 4, START + 4) == []
    assert b.settle(at_once=True) == []


def test_a_job_too_short_to_be_seen_is_counted_by_its_record() -> None:
    (finished,) = recorded(book(), entry("dir/a.cu.o"))
    assert (finished.jid, finished.tool, finished.seconds) == (None, "nvcc", 2.0)


def test_the_plan_knows_better_than_a_name_which_tool_made_what_was_not_seen(tmp_path: Path) -> None:
    with (tmp_path / "graph").open("wb") as file:
        write_graph(file, [PlannedEdge(("k.o", "k.d"), "nvcc", UNKNOWN, 0)], [()], [""], exact=True)
    b = book()
    b.plan = Plan(PlanSummary(1, 0, 1, {"nvcc": 1}, ""), None, 0, PlanGraph.load(tmp_path / "graph"))
    assert [f.tool for f in recorded(b, entry("k.o"), entry("other.o"))] == ["nvcc", "cxx"]
    b.plan.close()
    assert [f.tool for f in recorded(b, entry("k.o"))] == ["cxx"]


def test_a_nameless_job_of_a_ninja_that_was_slow_to_start_is_known_by_its_records_own_time() -> None:
    b = book()
    begun = START + 7.25
    b.runs(1, use("", begun))
    b.vanished(1, begun + 0.01, begun + 0.01)
    record = entry("a.o", start_ms=2, end_ms=12)._replace(mtime=int(begun * 1e9))
    assert [(f.jid, f.outcome) for f in recorded(b, record)] == [(1, "ok")]
    assert b.settle(at_once=True) == []


def test_a_job_that_vanished_without_a_record_has_failed_but_not_at_once() -> None:
    b = book()
    b.runs(1, use("a.o"))
    b.vanished(1, START + 5, START + 5)
    for _ in range(PATIENCE_TICKS - 1):
        assert b.settle(at_once=False) == []
    (failed,) = b.settle(at_once=False)
    assert (failed.jid, failed.outcome, failed.seconds) == (1, "failed", 4.0)


def test_a_renewed_manifest_whose_record_is_lost_has_not_failed_once_ninja_goes_on() -> None:
    """CMake calls a ninja of its own in it; one of another version begins the log anew."""
    b = book()
    b.runs(1, use("build.ninja"))
    b.vanished(1, START + 2, START + 2)
    b.runs(2, use("a.o", START + 3))
    for _ in range(PATIENCE_TICKS - 1):
        assert b.settle(at_once=False) == []
    (renewed,) = b.settle(at_once=False)
    assert (renewed.outcome, renewed.counted) == ("unknown", False)


def test_a_manifest_whose_renewal_failed_has_failed() -> None:
    b = book()
    b.runs(1, use("build.ninja"))
    b.vanished(1, START + 2, START + 2)
    assert [f.outcome for f in b.settle(at_once=True)] == ["failed"]


def test_a_nameless_job_is_known_by_its_start_once_it_has_vanished() -> None:
    b = book()
    first, second = use("", START + 1.01, tool="other"), use("", START + 9.01, tool="other")
    b.runs(1, first)
    b.runs(2, second)
    assert recorded(b, entry("gen/version.h", 9000, 9500)) == []
    b.vanished(2, START + 9.4, START + 9.4)
    assert [f.jid for f in recorded(b, just_scanned=True)] == [2]
    b.vanished(1, START + 9.5, START + 9.5)
    assert [f.jid for f in recorded(b, entry("gen/other.h", 1000, 9600))] == [1]


def planned(folder: Path, *outputs: str) -> Plan:
    with (folder / "graph").open("wb") as file:
        edges = [PlannedEdge((output,), "cxx", UNKNOWN, 0) for output in outputs]
        write_graph(file, edges, [()], [""], exact=True)
    return Plan(PlanSummary(len(outputs), 0, len(outputs), {}, ""), None, 0, PlanGraph.load(folder / "graph"))


def test_a_job_that_the_plan_names_leaves_the_record_of_another_to_the_nameless(tmp_path: Path) -> None:
    """Several edges have one command, which does not name them, and all began in one moment."""
    b = book()
    b.plan = planned(tmp_path, "a.o", "same0", "same1")
    b.runs(1, use("a.o", START + 1.0))
    b.runs(2, use("", START + 1.1, tool="other"))
    b.vanished(1, START + 3, START + 3)
    b.vanished(2, START + 3, START + 3)
    assert [f.jid for f in recorded(b, entry("same0", 1000, 1500), entry("a.o", 1000, 1600))] == [2, 1]


def test_ninjas_clock_is_learnt_from_jobs_with_a_name() -> None:
    b = book()
    b.runs(1, use("a.o", START + 5.0))
    recorded(b, entry("a.o", 1000, 2000))
    nameless = use("", START + 7.0, tool="other")
    b.runs(2, nameless)
    b.vanished(2, START + 8, START + 8)
    assert [f.jid for f in recorded(b, entry("gen.h", 3000, 4000))] == [2]


def test_a_nameless_job_that_is_alive_is_not_taken_for_one_that_started_with_it_and_has_ended() -> None:
    b = book()
    b.runs(1, use("", START + 1.0, tool="other"))
    assert recorded(b, entry("quick", 1000, 1010), entry("next", 1000, 1020)) == []
    assert [(f.jid, f.output) for f in recorded(b, just_scanned=True)] == [(None, "quick"), (None, "next")]


def test_a_job_that_still_runs_under_its_own_name_is_not_taken_for_another() -> None:
    b = book()
    b.runs(1, use("a.o", START + 1.0))
    assert [f.jid for f in recorded(b, entry("b.o", 1000, 2000))] == [None]
    assert [f.jid for f in recorded(b, entry("a.o", 1000, 2500))] == [1]


def test_make_keeps_no_log_so_a_vanished_job_has_ended() -> None:
    b = book("make")
    b.runs(1, use("a.o"))
    (finished,) = b.vanished(1, START + 2, START + 2)
    assert (finished.outcome, finished.output) == ("unknown", "a.o")


def test_the_jobs_of_a_make_that_ended_between_two_looks_have_ended() -> None:
    b = book("make")
    b.runs(1, use("a.o"))
    assert [(f.output, f.outcome) for f in b.all_vanished(START + 2, START + 2)] == [("a.o", "unknown")]
    assert b.all_vanished(START + 2, START + 2) == []


def test_a_job_that_ran_when_its_ninja_was_killed_has_failed_once_no_record_comes() -> None:
    b = book()
    b.runs(1, use("a.o"))
    b.runs(2, use("b.o"))
    assert b.all_vanished(START + 2, START + 2) == []
    assert [f.output for f in recorded(b, entry("b.o"))] == ["b.o"]
    assert [(f.output, f.outcome) for f in b.settle(at_once=True)] == [("a.o", "failed")]


def test_a_ninja_with_all_its_places_taken_starts_nothing_and_a_make_may() -> None:
    ninja, make = book(), book("make")
    unlimited = book(width=None)
    assert [ninja.starts_beside(live) for live in (0, 3, 4, 5)] == [True, True, False, False]
    assert make.starts_beside(5)
    assert unlimited.starts_beside(500)


def test_a_ninja_whose_plan_holds_no_more_than_runs_starts_nothing() -> None:
    b = book()
    b.take_plan(Plan(PlanSummary(3, 0, 3, {"cxx": 3}, ""), None, 0))
    assert [b.starts_beside(live) for live in (0, 2, 3)] == [True, True, False]
    b.runs(1, use("a.o"))
    recorded(b, entry("a.o"))
    assert [b.starts_beside(live) for live in (0, 1, 2)] == [True, True, False]


def by_end(output: str, start_ms: int, end_ms: int) -> Entry:
    """As ninja 1.11 records it: with the time of the file, which the command made at its end."""
    return Entry(start_ms, end_ms, int((START + 5 + end_ms / 1000) * 1e9), output, "abc", 50)


def test_a_record_that_tells_a_jobs_end_is_not_paired_with_a_job_that_started_then() -> None:
    b = book()
    first, second = use("", START + 5.0, tool="other"), use("", START + 6.0, tool="other")
    b.runs(1, first)
    b.runs(2, second)
    b.vanished(1, START + 6.0, START + 6.0)
    b.vanished(2, START + 9.0, START + 9.0)
    found = recorded(b, by_end("one.h", 0, 1000), by_end("two.h", 1000, 4000))
    assert [(f.jid, f.output) for f in found] == [(1, "one.h"), (2, "two.h")]


def test_ninjas_clock_begins_anew_behind_its_manifest() -> None:
    b = book()
    b.runs(1, use("a.o", START + 6.0))
    assert [f.counted for f in recorded(b, by_end("build.ninja", 0, 1000))] == [False]
    recorded(b, by_end("a.o", 0, 500))
    nameless = use("", START + 7.0, tool="other")
    b.runs(2, nameless)
    b.vanished(2, START + 8, START + 8)
    assert [f.jid for f in recorded(b, by_end("gen.h", 1000, 2000))] == [2]


def test_what_was_counted_before_the_manifest_was_renewed_counts_no_more() -> None:
    b = book()
    told = b.recorded([entry("checked", 0, 10), entry("build.ninja", 10, 500)], just_scanned=False)
    assert [e.tools for e in told if not isinstance(e, JobFinished)] == [{"other": 1}]
    assert b.finished == 0
    recorded(b, entry("a.o", 0, 100))
    b.take_plan(Plan(PlanSummary(9, 1, 8, {}, "", renewing=frozenset(("checked", "build.ninja"))), None, 0))
    assert (b.recount(), b.finished) == ([], 1)


def test_what_a_late_plan_says_renewed_the_manifest_counts_no_more() -> None:
    b = book()
    recorded(b, entry("checked", 0, 10), entry("a.o", 20, 500))
    b.take_plan(Plan(PlanSummary(9, 1, 8, {}, "", renewing=frozenset(("checked", "build.ninja"))), None, 0))
    assert [e.tools for e in b.recount()] == [{"other": 1}]
    assert b.recount() == []
    assert [f.counted for f in recorded(b, entry("checked", 0, 10), entry("b.o", 20, 600))] == [False, True]
    assert b.finished == 2


def test_a_record_that_was_counted_before_its_job_was_seen_to_end_still_tells_that_it_ended_well() -> None:
    b = book()
    b.runs(1, use("not-its-name", START + 1.0))
    assert [f.jid for f in recorded(b, entry("a.stamp", 1000, 3000))] == [None]
    b.vanished(1, START + 3.0, START + 3.0)
    (ended,) = b.settle(at_once=True)
    assert (ended.jid, ended.output, ended.outcome, ended.counted) == (1, "a.stamp", "ok", False)


def test_a_job_that_ended_while_nobody_looked_is_paired_with_its_record() -> None:
    """Seen last a second after its start; it ran for eight more, and was found to be gone after thirty."""
    b = book()
    nameless = use("", START + 5.0, tool="other")
    b.runs(1, nameless)
    b.vanished(1, START + 6.0, START + 35.0)
    assert [(f.jid, f.output, f.outcome) for f in recorded(b, by_end("one.h", 0, 9000))] == [(1, "one.h", "ok")]


def test_the_records_of_a_samurai_tell_when_a_job_ended() -> None:
    """It keeps no start and no end, only the file's time."""
    b = book("samurai")
    jobs = {jid: use("", START + jid, tool="other") for jid in (1, 2)}
    for jid, job in jobs.items():
        b.runs(jid, job)
        b.vanished(jid, START + jid + 5, START + jid + 5)
    records = [Entry(0, 0, int((START + jid + 5) * 1e9), f"out{jid}", "h", 50) for jid in (1, 2)]
    assert [f.jid for f in recorded(b, *records)] == [1, 2]


def test_of_a_ninja_that_has_recorded_all_that_it_had_to_do_no_job_has_failed() -> None:
    b = book()
    b.take_plan(Plan(PlanSummary(1, 0, 1, {"other": 1}, ""), None, 0))
    recorded(b, entry("made", 0, 2000))
    b.runs(1, use("", START + 9, tool="other"))
    b.all_vanished(START + 9.5, START + 9.5)
    assert [(f.outcome, f.counted) for f in b.settle(at_once=True)] == [("unknown", False)]


@pytest.mark.parametrize("known", ["plan", "status line"])
def test_a_nameless_job_of_a_machine_that_stalled_gets_the_record_that_is_left_once_ninja_has_recorded_all(
    known: str,
) -> None:
    b = book()
    if known == "plan":
        b.take_plan(Plan(PlanSummary(2, 0, 2, {"other": 2}, ""), None, 0))
    else:
        b.said_total = 2
    b.runs(1, use("ninja", START + 1.0, tool="other"))
    b.runs(2, use("o2", START + 1.0, tool="other"))
    b.vanished(1, START + 1.1, START + 1.1)
    b.vanished(2, START + 1.1, START + 1.1)
    recorded(b, entry("o2", 1000, 4600), entry("o1", 2900, 4600))
    assert [(f.jid, f.outcome, f.counted) for f in b.settle(at_once=True)] == [(1, "ok", False)]


def test_a_job_that_ended_unseen_long_before_it_is_missed_gets_its_record() -> None:
    """No pair by name has set ninja's clock yet, and the engine that looks now began seconds after the job's end."""
    b = book()
    b.runs(1, use("burn o1", START + 1.0, tool="other"))
    b.vanished(1, START + 1.5, START + 6.0)
    record = Entry(0, 1950, int((START + 1.15) * 1e9), "o1", "abc", 50)  # ninja's own clock began a second late
    assert [(f.jid, f.outcome) for f in recorded(b, record)] == [(1, "ok")]


def test_a_plan_names_a_job_that_has_vanished_before_it_came(tmp_path: Path) -> None:
    b = book()
    b.runs(1, use("burn o1", tool="other"))
    b.vanished(1, START + 3, START + 3)
    file = tmp_path / "plan"
    file.write_text(json.dumps({"total": 9, "finished": 0, "planned": 9, "tools": {}, "stamp": ""}))
    with table_path(file).open("wb") as table:
        write_table(table, [(key_of_argv(use("burn o1").job.argv), "o1", "other")])
    plan = Plan.load(file)
    assert plan is not None
    b.take_plan(plan)
    assert b.name_jobs() == []
    assert [(f.output, f.outcome) for f in b.settle(at_once=True)] == [("o1", "failed")]


def test_a_job_that_failed_between_two_engines_fails_under_the_name_that_the_output_gives_it() -> None:
    """The journal knew it by words of its command, and its process is gone: it would count beside its failure."""
    b = book()
    seen = use("burn o1 0.5", tool="other")
    b.runs(1, replace(seen, job=replace(seen.job, argv=())))
    b.runs(2, use("burn o1 0.5", tool="other"))
    b.vanished(1, START + 3, START + 3)
    b.name_lost({"burn o1 0.5": "o1"})
    assert [(f.jid, f.output, f.outcome) for f in b.settle(at_once=True)] == [(1, "o1", "failed")]
