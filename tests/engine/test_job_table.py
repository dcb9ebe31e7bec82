"""A job has one life and one end, in whatever order things happen to it and to the engine."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable
from dataclasses import replace

import pytest
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from stoker.engine.jobs.managed_job import ENDS, NEXT, Life, ManagedJob
from stoker.engine.jobs.scheduler_table import SchedulerTable
from stoker.engine.jobs.table import JobTable
from stoker.model import events as ev
from stoker.model.reduce import reduce
from stoker.model.state import BuildState
from stoker.model.tool import tool_name
from stoker.sense.ninja.build_log import Entry
from stoker.sense.proc.jobs import JobProcess
from stoker.sense.proc.schedulers import SchedulerProcess
from support.jobs import NOT_INTERRUPTED, FixedExpectations, managed_job, use_of

NINJA = SchedulerProcess(7, 70, "ninja", "/b", "ninja", ("ninja",), 8, "build.ninja", ())
BEGUN = 1000.0
OUTPUTS = st.sampled_from(["a.o", "b.o", "c.o", ""])


def job_of(jid: int, life: Life, output: str = "a.o") -> ManagedJob:
    return managed_job(jid, life, use=use_of(JobProcess(jid, jid, NINJA.key, BEGUN, ("c++",), output, "cxx")))


class Lives(RuleBasedStateMachine):
    """Jobs of one ninja, an engine that may die, and the journal, which does not."""

    def __init__(self) -> None:
        super().__init__()
        self.state = BuildState()
        self.ends = Counter[int]()
        self.exits = Counter[int]()
        self.born = 0
        self.processes: dict[int, ManagedJob] = {}
        self.engine()
        self.write([ev.BuildStarted("b-1", "b", ("ninja",), "/b", "/log", "host", 2, 1 << 30, "1")])
        self.write([ev.SchedulerStarted(1, "ninja", 7, "/b", "1.12", 8, None, 70)])

    def engine(self) -> None:
        """The table and the book of a new engine."""
        self.table = JobTable(FixedExpectations(), self.state)
        self.schedulers = SchedulerTable(self.table, self.state, NOT_INTERRUPTED)
        self.book, _ = self.schedulers.open(NINJA, BEGUN)

    def write(self, events: Iterable[ev.Event]) -> None:
        for event in (*self.table.take_exits(self.state.last_jid), *events):
            self.state = reduce(self.state, ev.Record(self.state.seq + 1, BEGUN, event))
            if isinstance(event, ev.JobFinished) and event.jid is not None:
                self.ends[event.jid] += 1
            if isinstance(event, ev.JobsExited):
                self.exits.update(event.jids)

    def some(self, number: int, *lives: Life) -> ManagedJob | None:
        """One of the living jobs that stand there."""
        jobs = [job for job in self.table if job.life in lives]
        return jobs[number % len(jobs)] if jobs else None

    @rule(output=OUTPUTS, held=st.booleans())
    def birth(self, output: str, held: bool) -> None:
        self.born += 1
        jid, _ = self.table.number((self.born, self.born))
        job = replace_number(job_of(self.born, Life.NEWBORN, output), jid)
        self.processes[job.job.pid] = job
        self.table.add(job)
        self.table.place(job, Life.ON_DECK if held else Life.RUNNING, 0.0)
        self.write(self.table.announce(job))

    @rule(number=st.integers(0, 9), output=OUTPUTS)
    def learn_its_name(self, number: int, output: str) -> None:
        if job := self.some(number, Life.ON_DECK, Life.RUNNING, Life.FROZEN):
            self.write(self.table.rename(job, output, "cxx"))

    @rule(number=st.integers(0, 9))
    def go(self, number: int) -> None:
        if job := self.some(number, Life.ON_DECK, Life.FROZEN):
            self.write([self.table.move(job, Life.RUNNING, 0.0)])

    @rule(number=st.integers(0, 9))
    def stop(self, number: int) -> None:
        if job := self.some(number, Life.RUNNING):
            self.write([self.table.move(job, Life.FROZEN, 0.0)])

    @rule(number=st.integers(0, 9), why=st.sampled_from(["dropped", "killed", "gone"]))
    def doom(self, number: int, why: str) -> None:
        if job := self.some(number, Life.ON_DECK, Life.RUNNING, Life.FROZEN):
            self.table.doom(job, why)  # type: ignore[arg-type]

    @rule(number=st.integers(0, 9))
    def carry(self, number: int) -> None:
        """Schedulers run in one job now, or in none any more."""
        job = self.some(number, Life.RUNNING)
        self.table.set_carriers({job.job.key} if job else ())

    @rule(number=st.integers(0, 9))
    def compile_elsewhere(self, number: int) -> None:
        if job := self.some(number, Life.RUNNING):
            self.table.take_back(job) if job.host else self.table.send_away(job, "other")

    @rule(number=st.integers(0, 99))
    def exit(self, number: int) -> None:
        if self.processes:
            pid = sorted(self.processes)[number % len(self.processes)]
            del self.processes[pid]
            for _ in range(2):  # by its pidfd, and by the next scan
                self.table.exit((pid, pid), BEGUN + 1, BEGUN + 1)
            self.write([])

    @rule(output=st.sampled_from(["a.o", "b.o", "c.o", "never-seen.o"]), scanned=st.booleans())
    def record(self, output: str, scanned: bool) -> None:
        self.write(self.book.recorded([Entry(0, 900, int((BEGUN + 1) * 1e9), output, "h", 9)], just_scanned=scanned))

    @rule(at_once=st.booleans())
    def settle(self, at_once: bool) -> None:
        self.write(self.book.settle(at_once=at_once))

    @rule(stays=st.booleans())
    def the_engine_dies(self, stays: bool) -> None:
        """The next one finds the living jobs in its first scan, or they have gone meanwhile."""
        self.engine()
        for job in list(self.processes.values()):
            if stays and not job.ended:
                self.adopt(job)
            else:
                del self.processes[job.job.pid]
        self.schedulers.take_up_lost(BEGUN)
        self.write([])

    def adopt(self, old: ManagedJob) -> None:
        jid, known = self.table.number(old.job.key)
        assert known is not None, "the journal has its start"
        assert jid == old.jid
        life = {"on_deck": Life.ON_DECK, "frozen": Life.FROZEN}.get(known.state, Life.RUNNING)
        job = replace_number(job_of(old.job.pid, life, known.output), jid)
        job.known_as = known.state
        self.processes[job.job.pid] = job
        self.table.add(job)
        self.write(self.table.announce(job))

    @invariant()
    def each_job_ends_at_most_once(self) -> None:
        assert all(count == 1 for count in self.ends.values())
        assert all(count == 1 for count in self.exits.values())

    @invariant()
    def the_journal_and_the_table_say_the_same(self) -> None:
        jobs = list(self.table.open_jobs(1))
        present = {job.jid: job.state for job in jobs if job.life is not Life.EXITED}
        assert {jid: job.state for jid, job in self.state.jobs.items()} == present
        assert set(self.state.leaving) == {job.jid for job in jobs if job.life is Life.EXITED}

    @invariant()
    def counts_add_up(self) -> None:
        begun = self.state.last_jid
        assert begun == len(self.state.jobs) + len(self.state.leaving) + len(self.ends)
        lives = Counter(job.life for job in self.table)
        assert sum(lives.values()) == self.table.living(1) == self.table.living_by_scheduler()[NINJA.key]

    @invariant()
    def who_counts_is_known_at_any_moment(self) -> None:
        counting = [job for job in self.table if job.counts]
        assert list(self.table.counting()) == counting
        assert list(self.table.on_deck()) == [j for j in counting if j.life in (Life.NEWBORN, Life.ON_DECK)]
        for life in (Life.RUNNING, Life.FROZEN):
            assert list(self.table.having(life)) == [j for j in counting if j.life is life]
        assert list(self.table.away()) == [job for job in self.table if job.host]

    def teardown(self) -> None:
        self.write(self.schedulers.close(set(), BEGUN + 2, BEGUN + 2))
        assert set(self.ends) == set(range(1, self.state.last_jid + 1)), "each has ended"
        self.each_job_ends_at_most_once()
        assert not list(self.table)


def replace_number(job: ManagedJob, jid: int) -> ManagedJob:
    """The same, by another number than its process's."""
    return replace(job, jid=jid)


TestLives = Lives.TestCase
TestLives.settings = settings(max_examples=30, stateful_step_count=30, deadline=None)


def test_from_an_end_nothing_follows_and_every_life_leads_to_one() -> None:
    assert set(NEXT) == set(Life)
    assert all(not NEXT[end] for end in ENDS)
    reached = {Life.NEWBORN}
    while more := {after for life in reached for after in NEXT[life]} - reached:
        reached |= more
    assert reached == set(Life)


def test_what_is_against_the_order_of_a_life_is_refused() -> None:
    table = JobTable(FixedExpectations(), BuildState())
    job = job_of(1, Life.ON_DECK)
    table.add(job)
    with pytest.raises(AssertionError, match="cannot be frozen"):
        table.move(job, Life.FROZEN, time.monotonic())
    with pytest.raises(AssertionError, match="cannot be recorded"):
        table.end(job, ev.JobFinished(1, 1, "a.o", "cxx", 1.0, "ok"))
    with pytest.raises(AssertionError, match="is known"):
        table.add(job)


def test_an_exit_is_announced_before_anything_else_but_not_before_the_start_nor_after_the_end() -> None:
    table = JobTable(FixedExpectations(), BuildState())
    first, second = job_of(1, Life.RUNNING), job_of(2, Life.RUNNING)
    for job in (first, second):
        table.add(job)
        table.exit(job.job.key, BEGUN, BEGUN)
    assert table.take_exits(last_jid=1) == [ev.JobsExited((1,))]
    assert table.owes_exits
    assert table.take_exits(last_jid=2) == [ev.JobsExited((2,))]
    third = job_of(3, Life.RUNNING)
    table.add(third)
    table.exit(third.job.key, BEGUN, BEGUN)
    table.end(third, ev.JobFinished(3, 1, "a.o", "cxx", 1.0, "ok"))
    assert table.take_exits(last_jid=3) == []
    assert not table.owes_exits


def test_a_job_in_which_a_scheduler_begins_takes_no_place_from_then_on() -> None:
    table = JobTable(FixedExpectations(), BuildState())
    job = job_of(1, Life.RUNNING)
    table.add(job)
    assert table.having(Life.RUNNING) == (job,)
    table.set_carriers({job.job.key})
    assert table.having(Life.RUNNING) == ()
    table.set_carriers(())
    assert table.having(Life.RUNNING) == (job,)


def test_a_job_on_deck_that_compiles_c_is_not_called_cpp() -> None:
    """Autotools call an object foo.o, whatever it is made from, and cc1 shows itself only once it runs."""
    state = BuildState()
    events: list[ev.Event] = [ev.SchedulerStarted(1, "make", 7, "/b", "4.3", 8)]
    table = JobTable(FixedExpectations(), state)
    for jid, argv in ((1, ("cc", "-c", "foo.c", "-o", "foo.o")), (2, ("c++", "-c", "bar.cc", "-o", "bar.o"))):
        process = JobProcess(jid, jid, NINJA.key, BEGUN, argv, argv[-1], "cxx")
        events += table.announce(managed_job(jid, Life.ON_DECK, use=use_of(process)))
    for event in events:
        state = reduce(state, ev.Record(state.seq + 1, BEGUN, event))
    assert [tool_name(job.tool, job.output, is_c=job.is_c) for job in state.jobs.values()] == ["cc", "c++"]
    renamed = reduce(state, ev.Record(9, BEGUN, ev.JobStarted(1, 1, 1, "src/foo.o", "cxx", BEGUN, "on_deck")))
    assert renamed.jobs[1].is_c, "its name has become known"
