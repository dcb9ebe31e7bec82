"""The governor on real processes: who is stopped, who goes on, and what a person's word changes."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Literal
from unittest import mock

import pytest

from stoker.contract.process import stat_fields
from stoker.decide.memory.curves import flat
from stoker.engine.govern.gate_driver import GateDriver
from stoker.engine.govern.governor import Governor, Precautions
from stoker.engine.govern.hosted_gate import HostedGate
from stoker.engine.govern.jobserver import Jobserver
from stoker.engine.govern.level_control import LevelControl, Orders, StepLimits
from stoker.engine.govern.memory_watch import MemoryWatch
from stoker.engine.govern.user_commands import UserCommands
from stoker.engine.jobs.managed_job import ManagedJob
from stoker.engine.jobs.newborn import Birth, Clocks, by_age, managed
from stoker.engine.jobs.remote_watch import RemoteWatch
from stoker.engine.jobs.table import JobTable
from stoker.engine.learn.forecast import Forecast
from stoker.model import events as ev
from stoker.model import state as state_of
from stoker.model.reduce import reduce
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused
from stoker.sense.machine.cgroup import MemoryLimit
from stoker.sense.proc.jobs import JobProcess, JobUse
from stoker.sense.proc.processes import parse_stat
from stoker.sense.proc.procfs import read_once
from stoker.sense.proc.schedulers import SchedulerProcess
from support.jobs import FixedExpectations, use_of
from support.program import until

GIB = 2**30
NINJA = SchedulerProcess(os.getpid(), 1, "ninja", "/", "ninja", ("ninja",), 16, "build.ninja", ())


class World:
    """A governor, jobs as ninja would start them, and a memory that the test sets."""

    def __init__(self, state: BuildState | None = None, jobserver: Path | None = None) -> None:
        self.expected = FixedExpectations()
        self.memory = MemoryLimit("machine", 16 * GIB, 0)
        self.killed: list[tuple[str, str]] = []
        state = state or BuildState()
        self.jobs = JobTable(self.expected, state)
        self.level = LevelControl(state)
        self.level.set_cores(2.0)
        self.level.limit(StepLimits(2.0))
        memory = MemoryWatch(self.jobs, self.level, lambda _held: self.memory)
        self.gate = GateDriver(self.jobs, lambda job, by: self.killed.append((job.job.output, by)), time.monotonic)
        slots = Jobserver(jobserver, self.jobs.living_by_scheduler) if jobserver else None
        self.governor = Governor(
            self.jobs, self.expected, self.level, memory, self.gate, Forecast(), RemoteWatch(list), slots
        )
        self.commands = UserCommands(self.jobs, self.level, self.gate, self.governor)
        self.processes: list[subprocess.Popen[bytes]] = []
        self.events: list[ev.Event] = []

    def start(self, *outputs: str, group: int = 0) -> list[Birth]:
        """Spawn a job for each output, and let the governor receive all at once."""
        births = [self.birth(output, group) for output in outputs]
        self.events += self.receive(births)
        return births

    def receive(self, births: Sequence[Birth]) -> list[ev.Event]:
        clocks = Clocks.now()
        held = not self.gate.open
        return self.governor.receive([managed(birth, time.time(), clocks, held=held) for birth in by_age(births)])

    def job(self, jid: int) -> ManagedJob:
        job = self.jobs.get(jid)
        assert job is not None
        return job

    def see_use(self, jid: int, use: JobUse) -> list[ev.Event]:
        """What a job uses has been measured."""
        return self.gate.correct({self.job(jid): use})

    def birth(self, output: str, group: int = 0) -> Birth:
        child = subprocess.Popen(["sleep", "600"], process_group=group)
        self.processes.append(child)
        process = parse_stat(read_once(f"/proc/{child.pid}/stat") or b"")
        assert process is not None
        job = JobProcess(child.pid, process.start_ticks, NINJA.key, time.time(), ("sleep", "600"), output, "cxx")
        return Birth(len(self.processes), 1, use_of(job), process, NINJA)

    def end(self, birth: Birth) -> None:
        """The job's process ends, and that is noticed."""
        process = self.processes[birth.jid - 1]
        process.kill()
        process.wait()
        job = self.jobs.exit(birth.job.key, time.time(), time.time())
        assert job is not None
        self.gate.exited(job)
        self.events += self.governor.step()

    def stopped(self, births: Sequence[Birth]) -> list[bool]:
        return [stat_fields(b.job.pid)[:1] == [b"T"] for b in births]

    def hand(self, verb: str, **arguments: object) -> list[ev.Event]:
        events = self.commands.carry_out(verb, arguments, "ann")
        self.events += events
        return events

    def whys(self, what: str) -> list[str]:
        """The reasons of the decisions to do that."""
        return [e.why for e in self.events if isinstance(e, ev.Decided) and e.what == what]

    def decided(self) -> list[str]:
        return [f"{e.who}: {e.what}" for e in self.events if isinstance(e, ev.Decided)]


def see(condition: Callable[[], bool]) -> None:
    until(condition, "what was decided")


Serving = Callable[[Path], World]


@pytest.fixture
def serving() -> Iterator[Callable[..., World]]:
    """Makes worlds, with a jobserver at that path."""
    worlds: list[World] = []

    def make(jobserver: Path | None = None) -> World:
        worlds.append(World(jobserver=jobserver))
        return worlds[-1]

    yield make
    for process in (process for world in worlds for process in world.processes):
        process.kill()
        process.send_signal(signal.SIGCONT)
        process.wait()


@pytest.fixture
def world(serving: Callable[[], World]) -> World:
    return serving()


def test_as_many_run_as_there_are_cores_and_the_oldest_on_deck_follows_a_death(world: World) -> None:
    births = world.start("a", "b", "c", "d")
    see(lambda: world.stopped(births) == [False, False, True, True])
    started = {e.output: e.state for e in world.events if isinstance(e, ev.JobStarted)}
    assert started == {"a": "running", "b": "running", "c": "on_deck", "d": "on_deck"}
    world.end(births[1])
    see(lambda: world.stopped(births[2:]) == [False, True])
    assert ev.JobMoved(3, "running") in world.events


def test_no_order_is_worked_out_where_nobody_waits(world: World) -> None:
    world.start("a", "b")
    with mock.patch.object(world.governor, "snapshot") as snapshot:
        assert not world.governor.reasons()
    snapshot.assert_not_called()
    world.start("c")
    assert world.governor.reasons()


def test_a_running_job_that_somebody_stops_is_continued_once_though_it_looks_the_same_each_time(world: World) -> None:
    [birth] = world.start("a")
    os.kill(birth.job.pid, signal.SIGSTOP)
    see(lambda: world.stopped([birth]) == [True])
    same = replace(birth.use, state="frozen")
    events = [event for _ in range(5) for event in world.see_use(birth.jid, same)]
    assert [e.why for e in events if isinstance(e, ev.Decided)] == ["something else had stopped it"]
    assert world.stopped([birth]) == [False]


def test_a_sleeping_job_has_run_for_as_long_as_the_clock_says(world: World) -> None:
    """A job that slept for most of its life was seen all the time: what it held is known."""
    [birth] = world.start("a")
    ran: list[float] = []
    world.expected.sample = lambda *figures: ran.append(figures[-1])  # type: ignore[method-assign]
    for _ in range(3):
        world.see_use(birth.jid, birth.use)
    assert ran == sorted(ran)
    assert len(set(ran)) == 3


def test_answers_can_wait_until_memory_or_a_person_says_otherwise(world: World) -> None:
    world.start("a", "b", "c", "d")
    assert world.governor.is_calm()
    world.hand("pause")
    assert not world.governor.is_calm()
    world.hand("resume")
    assert world.governor.is_calm()
    world.memory = MemoryLimit("machine", 16 * GIB, round(7.5 * GIB))
    world.governor.snapshot()
    assert world.governor.is_calm()
    world.expected.curves["d"] = replace(flat(0.1 * GIB, 60.0), spread=1.0)
    world.expected.version += 1
    assert not world.governor.is_calm(), "one that waits is of an unknown kind, and there is not that much room"
    world.expected.curves["d"] = flat(0.1 * GIB, 60.0)
    world.expected.version += 1
    assert world.governor.is_calm()
    world.gate.hosted.add(world.job(1), (os.getpid(), 1))
    assert not world.governor.is_calm(), "what a newborn asks of a cache's server cannot be held"
    world.gate.hosted = HostedGate()
    world.memory = MemoryLimit("machine", 16 * GIB, 9 * GIB)
    world.governor.snapshot()
    assert not world.governor.is_calm()


def test_what_is_learnt_is_told_of_jobs_that_run_and_wait_once(world: World) -> None:
    world.start("a", "b", "c")
    started = {e.output: e.expected for e in world.events if isinstance(e, ev.JobStarted)}
    assert started == dict.fromkeys("abc", round(0.1 * GIB)), "also of those that were let go at their birth"
    deck = world.governor.deck
    assert deck.outdated() == []
    for output, size in (("a", 0.11), ("b", 0.3), ("c", 0.02)):
        world.expected.curves[output] = flat(size * GIB, 60.0)
    world.expected.version += 1
    told = [world.jobs.describe(job) for job in deck.outdated()]
    assert told == [
        ev.JobMoved(2, "running", round(0.3 * GIB), lasts=60.0),
        ev.JobMoved(3, "on_deck", round(0.02 * GIB), lasts=60.0),
    ]
    assert deck.outdated() == [], "a little more or less is no news"
    moved = world.jobs.describe(next(job for job in world.jobs if job.job.output == "a"))
    assert moved.expected == round(0.11 * GIB), "but a decision and the row beside it have the same figure"


def test_that_a_size_is_a_guess_no_more_is_told_once_though_the_size_stays(world: World) -> None:
    world.expected.curves["c"] = replace(flat(0.1 * GIB, 60.0), spread=0.7)
    world.start("a", "b", "c")
    assert [e.guessed for e in world.events if isinstance(e, ev.JobStarted)] == [False, False, True]
    assert world.governor.deck.outdated() == []
    world.expected.curves["c"] = replace(flat(0.1 * GIB, 60.0), spread=0.3)
    world.expected.version += 1
    told = [world.jobs.describe(job) for job in world.governor.deck.outdated()]
    assert told == [ev.JobMoved(3, "on_deck", round(0.1 * GIB), lasts=60.0)]
    assert world.governor.deck.outdated() == []


def test_the_guess_in_a_reason_is_the_one_in_the_row_beside_it(world: World) -> None:
    world.memory = MemoryLimit("machine", 16 * GIB, round(14.2 * GIB))
    for output in "abc":
        world.expected.curves[output] = replace(flat(0.1 * GIB, 60.0), spread=1.0)
    world.start("a", "b", "c")
    world.events += world.governor.news()
    world.expected.curves["c"] = replace(flat(0.123 * GIB, 60.0), spread=1.0)
    world.expected.version += 1
    world.events += world.governor.step()
    world.events += world.governor.news()
    told = [e for e in world.events if isinstance(e, ev.JobMoved) and e.jid == 3]
    assert [e.expected for e in told] == [round(0.123 * GIB)]
    reasons = [e.why for e in world.events if isinstance(e, ev.JobsWaiting) and 3 in e.jids]
    assert reasons[0].startswith("its size is a guess: ~102 MiB; ")
    assert reasons[-1].startswith("its size is a guess: ~126 MiB; ")


def test_a_job_of_the_console_pool_is_never_stopped(world: World) -> None:
    running = world.start("a", "b")
    (console,) = world.start("console", group=os.getpgrp())
    world.hand("pause", now=True)
    see(lambda: world.stopped(running) == [True, True])
    assert world.stopped([console]) == [False]


def test_a_level_that_changes_while_jobs_run_one_by_one_counts_from_what_was_ordered(world: World) -> None:
    world.hand("level", jobs=8)
    world.level.serialise(one_by_one=True)
    (decided, *_) = world.hand("level", change=1)
    assert isinstance(decided, ev.Decided)
    assert decided.what == "level 8 → 9"
    assert "one by one" in decided.why
    assert world.level.level == 1
    world.level.serialise(one_by_one=False)
    assert world.level.level == 9


@pytest.mark.parametrize(
    ("before", "again", "said"),
    [
        ({}, {"jobs": None}, "automatic already, at present 2"),
        ({"jobs": 8}, {"jobs": 8}, "is 8 already"),
        ({"jobs": 8}, {"change": 0}, "is 8 already"),
        ({"jobs": 1}, {"change": -1}, "is 1 already; to run nothing, pause"),
    ],
)
def test_a_level_that_is_set_already_is_no_decision(
    world: World, before: dict[str, object], again: dict[str, object], said: str
) -> None:
    if before:
        world.hand("level", **before)
    decisions = len(world.decided())
    with pytest.raises(CommandRefused, match=said):
        world.hand("level", **again)
    assert len(world.decided()) == decisions


def test_the_present_number_by_hand_is_a_decision_as_it_ends_the_automatic_level(world: World) -> None:
    world.hand("level", jobs=2)
    world.hand("level", jobs=2, ignore_memory=True)
    world.hand("level", jobs=None)
    assert world.decided() == ["ann: level automatic (2) → 2", "ann: level stays 2", "ann: level 2 → automatic"]


def test_a_lower_level_freezes_the_youngest_at_once_and_a_higher_one_thaws_it(world: World) -> None:
    births = world.start("a", "b")
    world.hand("level", jobs=1)
    see(lambda: world.stopped(births) == [False, True])
    world.hand("level", change=1)
    see(lambda: world.stopped(births) == [False, False])
    assert world.decided() == ["ann: level 2 → 1", "ann: level 1 → 2"]
    assert [e.target for e in world.events if isinstance(e, ev.LevelSet)] == [1, 2]


def test_a_soft_pause_lets_jobs_end_and_starts_none(world: World) -> None:
    births = world.start("a", "b", "c")
    world.hand("pause")
    see(lambda: world.stopped(births) == [False, False, True])
    assert world.whys("pause")[-1].endswith("nothing new starts; 2 running jobs will finish")
    world.end(births[0])
    assert world.stopped(births[1:]) == [False, True]
    world.hand("resume")
    see(lambda: world.stopped(births[1:]) == [False, False])


def test_a_pause_before_anything_runs_says_so(world: World) -> None:
    world.hand("pause")
    assert world.whys("pause") == ["asked for: nothing new starts; nothing runs"]


def test_a_hard_pause_freezes_all_and_a_newborn_too(world: World) -> None:
    births = world.start("a", "b")
    world.hand("pause", now=True)
    births += world.start("c")
    see(lambda: world.stopped(births) == [True, True, True])
    world.hand("resume")
    see(lambda: world.stopped(births) == [False, False, True])


def light_and_too_heavy(world: World) -> list[Birth]:
    """Start a job, and one that does not fit beside it and is held."""
    world.expected.sizes = {"heavy": 6 * GIB}
    world.memory = MemoryLimit("machine", 8 * GIB, 5 * GIB)
    births = world.start("light")
    births += world.start("heavy")
    see(lambda: world.stopped(births) == [False, True])
    return births


def test_what_does_not_fit_waits_and_says_so_once(world: World) -> None:
    _, heavy = light_and_too_heavy(world)
    world.governor.step()
    assert [d for d in world.decided() if "heavy" in d] == ["governor: hold heavy"]
    reason = next(e.why for e in world.events if isinstance(e, ev.Decided) and e.what == "hold heavy")
    assert "GiB" in reason
    world.memory = MemoryLimit("machine", 8 * GIB, GIB // 2)
    world.events += world.governor.step()
    see(lambda: world.stopped([heavy]) == [False])
    assert [d for d in world.decided() if "heavy" in d] == ["governor: hold heavy", "governor: admit heavy"]


def test_a_warning_says_once_that_one_job_alone_exceeds_the_budget(world: World) -> None:
    (birth,) = world.start("huge")
    assert not any(isinstance(e, ev.Noticed) for e in world.governor.news())
    world.memory = MemoryLimit("machine", 8 * GIB, 9 * GIB)
    world.governor.snapshot()
    (warning,) = (e.text for e in world.governor.news() if isinstance(e, ev.Noticed))
    assert warning.startswith("huge runs alone")
    assert "9.0 GiB are used, more than the budget of 8.0 GiB" in warning
    assert not any(isinstance(e, ev.Noticed) for e in world.governor.news())
    assert world.stopped([birth]) == [False], "it goes on: nothing else could make room"


def test_no_warning_says_that_a_job_runs_alone_beside_frozen_ones_that_hold_memory(world: World) -> None:
    births = world.start("huge", "other")
    world.hand("job", jid=2, act="freeze")
    see(lambda: world.stopped(births) == [False, True])
    for jid, held in ((1, 6 * GIB), (2, 3 * GIB)):
        world.job(jid).rss = held
    world.memory = MemoryLimit("machine", 8 * GIB, 9 * GIB)
    world.governor.snapshot()
    (warning,) = (e.text for e in world.governor.news() if isinstance(e, ev.Noticed))
    assert "alone" not in warning
    assert "huge holds 6.0 GiB and is the only one that runs, 1 frozen job holds 3.0 GiB: 9.0 GiB are used" in warning


def test_a_person_may_ignore_memory_in_so_many_words(world: World) -> None:
    births = light_and_too_heavy(world)
    world.hand("level", jobs=2, ignore_memory=True)
    see(lambda: world.stopped(births) == [False, False])
    assert not next(e for e in world.events if isinstance(e, ev.LevelSet)).guarded


def test_a_start_by_hand_says_what_it_may_cost_where_memory_is_short(world: World) -> None:
    light_and_too_heavy(world)
    world.governor.step()
    world.events += world.governor.news()
    world.hand("job", jid=2, act="thaw")
    see(lambda: world.whys("start heavy") != [])
    assert "others may be frozen, or stopped to run again later" in world.whys("start heavy")[0]


def test_single_jobs_obey_a_person(world: World) -> None:
    births = world.start("a", "b", "c")
    world.hand("job", jid=1, act="freeze")
    see(lambda: world.stopped(births) == [True, False, False])
    world.hand("job", jid=1, act="thaw")
    see(lambda: world.stopped(births)[0] is False)
    world.hand("job", jid=2, act="kill")
    assert world.processes[1].wait() == -signal.SIGKILL
    assert world.killed == [("b", "person")]
    assert [(e.output, e.by, e.jid, e.who) for e in world.events if isinstance(e, ev.JobKilled)] == [
        ("b", "person", 2, "ann")
    ]


def test_a_job_runs_alone_when_a_person_says_so_and_then_the_others_go_on(world: World) -> None:
    births = world.start("a", "b", "c")
    world.hand("job", jid=2, act="alone")
    see(lambda: world.stopped(births) == [True, False, True])
    assert world.whys("run b alone") == ["by request; 2 others wait until it has ended"], "on deck or running"
    assert world.whys("freeze a") == ["b runs alone"], "a freeze of its own, with its reason"
    world.end(births[1])
    see(lambda: world.stopped([births[0], births[2]]) == [False, False])


def test_when_a_job_that_ran_alone_has_ended_no_other_still_waits_for_it(world: World) -> None:
    """The answer to its end says so itself: the next sample of everything may be a second away."""
    births = world.start("a", "b", "c", "d", "e")
    world.events += world.hand("job", jid=2, act="alone")
    told = {jid: e.why for e in world.events if isinstance(e, ev.JobsWaiting) for jid in e.jids}
    assert {told[jid] for jid in (3, 4, 5)} == {"b runs alone"}
    world.end(births[1])
    told |= {jid: e.why for e in world.events if isinstance(e, ev.JobsWaiting) for jid in e.jids}
    running = [jid for jid in (1, 3, 4, 5) if stat_fields(births[jid - 1].job.pid)[:1] != [b"T"]]
    assert running
    assert not any("runs alone" in told[jid] for jid in (3, 4, 5) if jid not in running)


def test_a_freeze_for_a_job_alone_has_its_end_in_the_record_like_any_other(world: World) -> None:
    """Otherwise the newest decision is a freeze that is long over."""
    births = world.start("a", "b", "c")
    world.hand("job", jid=2, act="alone")
    see(lambda: world.stopped(births) == [True, False, True])
    assert not world.whys("thaw a")
    world.hand("job", jid=2, act="together")
    see(lambda: not world.stopped(births)[0])
    assert [why.partition(";")[0] for why in world.whys("thaw a")] == ["nothing runs alone any more"]
    world.hand("pause", now=True)
    see(lambda: all(world.stopped(births)))
    world.hand("resume")
    see(lambda: not world.stopped(births)[0])
    assert len(world.whys("thaw a")) == 1, "what a pause froze is told with the pause"


def test_only_those_that_have_not_begun_wait_for_a_job_that_has_not_begun_itself(world: World) -> None:
    births = world.start("a", "b", "c", "d")
    see(lambda: world.stopped(births) == [False, False, True, True])
    world.hand("job", jid=3, act="alone")
    assert world.whys("run c alone") == ["by request; 1 other waits until it has ended"], "it waits for a and b"


def test_an_end_of_a_pause_promises_no_more_than_the_level_allows(world: World) -> None:
    births = world.start("a", "b", "c")
    see(lambda: world.stopped(births) == [False, False, True])
    world.hand("pause", now=True)
    see(lambda: all(world.stopped(births)))
    world.hand("level", jobs=1)
    world.hand("resume")
    assert world.whys("unpause") == ["asked for: of 2 frozen the level of 1 lets 1 go on, 1 on deck must wait"]
    see(lambda: sum(world.stopped(births)) == 2)


def test_an_end_of_a_pause_counts_only_what_the_pause_froze(world: World) -> None:
    births = world.start("a", "b", "c")
    world.hand("job", jid=1, act="freeze")
    see(lambda: world.stopped(births)[0])
    running = sum(not stopped for stopped in world.stopped(births))
    world.hand("pause", now=True)
    see(lambda: all(world.stopped(births)))
    world.hand("resume")
    (why,) = world.whys("unpause")
    assert f"lets {running} frozen go on" in why
    world.hand("pause")
    world.hand("resume")
    assert "frozen" not in world.whys("unpause")[-1], "a soft pause froze nothing"


@pytest.mark.parametrize(("verb", "arguments"), [("job", {"jid": 2, "act": "together"}), ("level", {"jobs": None})])
def test_a_job_that_runs_alone_lets_the_others_go_on_when_a_person_says_so(
    world: World, verb: str, arguments: dict[str, object]
) -> None:
    births = world.start("a", "b", "c")
    world.hand("job", jid=2, act="alone")
    see(lambda: world.stopped(births) == [True, False, True])
    world.hand(verb, **arguments)
    see(lambda: sum(world.stopped(births)) == 1)  # two may run
    moved = [e for e in world.events if isinstance(e, ev.JobMoved) and e.jid == 2]
    assert [(e.alone, e.alone_by) for e in moved] == [(True, "ann"), (False, "")]


def test_of_two_jobs_that_are_to_run_alone_the_one_asked_for_last_does(world: World) -> None:
    births = world.start("a", "b", "c")
    world.hand("job", jid=2, act="alone")
    world.hand("job", jid=1, act="alone")
    see(lambda: world.stopped(births) == [False, True, True])
    with pytest.raises(CommandRefused, match="runs alone already"):
        world.hand("job", jid=1, act="alone")
    with pytest.raises(CommandRefused, match="does not run alone"):
        world.hand("job", jid=2, act="together")


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("level", {"jobs": 0}),
        ("level", {"jobs": "many"}),
        ("level", {"jobs": True}),
        ("level", {"change": 1.5}),
        ("job", {"jid": 99, "act": "freeze"}),
        ("job", {"jid": 1, "act": "explode"}),
        ("job", {"jid": 1, "act": "thaw"}),
        ("job", {}),
        ("resume", {}),
        ("dance", {}),
    ],
)
def test_nonsense_is_refused_and_changes_nothing(world: World, verb: str, arguments: dict[str, object]) -> None:
    births = world.start("a", "b", "c")
    before = [False, False, True]
    see(lambda: world.stopped(births) == before)
    with pytest.raises(CommandRefused):
        world.hand(verb, **arguments)
    assert world.stopped(births) == before
    assert world.level.level == 2


def test_after_a_real_error_what_is_on_deck_is_dropped_and_what_runs_goes_on(world: World) -> None:
    births = world.start("a", "b", "c", "d")
    for job in world.jobs:
        job.admitted -= 60.0
    jobs, events = world.governor.drop(1, "a", "a failed")
    assert [job.jid for job in jobs] == [3, 4]
    assert [type(e) for e in events] == [ev.Decided]
    assert all(world.processes[n].wait() == -signal.SIGKILL for n in (2, 3))
    assert world.stopped(births[:2]) == [False, False]


def test_a_new_engine_finds_each_job_where_the_old_one_left_it(world: World) -> None:
    births = [world.birth(output) for output in ("running", "deck", "frozen", "unwritten", "released")]
    for birth in births[1:4]:
        os.kill(birth.job.pid, signal.SIGSTOP)
    see(lambda: world.stopped(births) == [False, True, True, True, False])
    told: list[state_of.Job | None] = [
        _told(births[0], "running"),
        _told(births[1], "on_deck"),
        _told(births[2], "frozen"),
        None,
        _told(births[4], "on_deck"),
    ]
    processes = [parse_stat(read_once(f"/proc/{b.job.pid}/stat") or b"") for b in births]
    adopted = [b._replace(before=t, process=p) for b, t, p in zip(births, told, processes, strict=True) if p]
    world.level.order(Orders(paused="soft"))
    events = world.receive(adopted)
    assert [job.state for job in world.jobs] == ["running", "on_deck", "frozen", "on_deck", "running"]
    assert [e for e in events if isinstance(e, ev.JobMoved)] == [ev.JobMoved(5, "running")]
    assert 1 in world.expected.adopted_jobs


def test_jobs_born_in_one_instant_are_let_go_in_their_order(world: World) -> None:
    births = [world.birth(output) for output in "abcd"]
    ticks = births[0].job.start_ticks
    together = [b._replace(use=use_of(replace(b.job, start_ticks=ticks))) for b in births]
    world.level.order(Orders(paused="hard"))
    world.receive(together)
    assert len({job.arrived for job in world.jobs}) == 1


@pytest.mark.parametrize("act", ["freeze", "alone"])
def test_what_a_person_did_to_a_job_outlives_the_engine(world: World, act: str) -> None:
    births = world.start("a", "b")
    world.hand("job", jid=1, act=act)
    see(lambda: world.stopped(births) == [act == "freeze", act == "alone"])
    told = {e.jid: e for e in world.events if isinstance(e, ev.JobMoved)}
    heirs = []
    for birth in births:
        moved = told.get(birth.jid, ev.JobMoved(birth.jid, "running"))
        process = parse_stat(read_once(f"/proc/{birth.job.pid}/stat") or b"")
        assert process is not None
        before = replace(_told(birth, moved.state), moved_by=moved.by, alone=moved.alone)
        heirs.append(birth._replace(before=before, process=process))
    next_one = World(BuildState())
    next_one.receive(heirs)
    assert world.stopped(births) == [act == "freeze", act == "alone"]
    other = 1 if act == "freeze" else 0
    next_one.jobs.exit(births[other].job.key, 0.0, 0.0)
    next_one.governor.step()
    see(lambda: world.stopped(births) == [act == "freeze", False])


def test_jobs_that_a_ninja_starts_by_slots_run_up_to_the_level(serving: Serving, tmp_path: Path) -> None:
    """As a plain ninja in a script does. In its place, and as the scheduler of these jobs: this process."""
    (tmp_path / "b-1").mkdir()
    os.mkfifo(tmp_path / "b-1" / "jobserver")
    world = serving(tmp_path / "b-1" / "jobserver")
    world.level.order(Orders(level=4))
    births = world.start("a")
    client = os.open(tmp_path / "b-1" / "jobserver", os.O_RDWR | os.O_NONBLOCK)
    assert os.read(client, 9) == b"+++"
    births += world.start("b", "c", "d")
    world.events += world.governor.step()
    time.sleep(0.05)
    assert world.stopped(births) == [False] * 4
    with pytest.raises(BlockingIOError):
        os.read(client, 9)
    os.close(client)


def _told(birth: Birth, state: ev.JobState) -> state_of.Job:
    job, since = birth.job, None if state == "on_deck" else birth.job.started
    peak = round(0.1 * GIB)
    return state_of.Job(
        birth.jid, 1, job.pid, job.output, "cxx", job.started, state=state, expected=peak, running_since=since
    )


def test_a_job_that_somebody_else_set_going_is_stopped_again_unless_it_has_worked(world: World) -> None:
    births = world.start("a", "b", "c", "d")
    see(lambda: world.stopped(births[2:]) == [True, True])
    for birth in births[2:]:
        os.kill(birth.job.pid, signal.SIGCONT)
    uses = {b.jid: _use(b, cpu) for b, cpu in ((births[2], 0.0), (births[3], 5.0))}
    events = world.gate.correct({world.job(jid): use for jid, use in uses.items()})
    see(lambda: world.stopped(births[2:]) == [True, False])
    assert events == [ev.JobMoved(4, "running")]


def test_what_is_set_going_to_be_ended_is_not_stopped_again(world: World) -> None:
    births = world.start("a", "b", "c")
    see(lambda: world.stopped(births) == [False, False, True])
    world.gate.release_all()
    os.kill(births[2].job.pid, signal.SIGCONT)
    see(lambda: world.stopped(births) == [False] * 3)
    assert world.see_use(3, _use(births[2], 0.0)) == [ev.JobMoved(3, "running")]
    time.sleep(0.05)
    assert world.stopped(births) == [False] * 3


def _use(birth: Birth, cpu_seconds: float, state: Literal["running", "frozen"] = "running") -> JobUse:
    return JobUse(birth.job, 2**20, 2**20, 0.0, cpu_seconds, "sleep", state)


def test_what_was_measured_before_a_job_was_held_does_not_set_it_free(world: World) -> None:
    """Found late, it had worked already: taken for running, it would have stayed stopped for ever."""
    births = world.start("a", "b", "c")
    see(lambda: world.stopped(births) == [False, False, True])
    assert world.see_use(3, _use(births[2], 0.7)) == []
    world.end(births[0])
    see(lambda: world.stopped(births[1:]) == [False, False])


def test_a_job_that_should_run_and_stays_stopped_is_set_going_once(world: World) -> None:
    (birth,) = world.start("a")
    for times in (1, 2):
        os.kill(birth.job.pid, signal.SIGSTOP)
        see(lambda: world.stopped([birth]) == [True])
        for _ in range(5):
            world.events += world.see_use(1, _use(birth, 0.0, "frozen"))
        see(lambda: world.stopped([birth]) == [times == 2])  # noqa: B023  (called before the next turn)
    assert world.decided() == ["governor: set a going"]


def test_a_job_on_deck_that_turns_out_to_run_a_scheduler_goes_on(world: World) -> None:
    """Its own jobs are held; it takes no place of the level, and would never get one."""
    births = world.start("a", "b", "outer")
    see(lambda: world.stopped(births) == [False, False, True])
    events = world.gate.carry({(1, 1): births[2].job.key})
    see(lambda: world.stopped(births) == [False, False, False])
    assert events == [ev.JobMoved(3, "running")]


def test_time_on_deck_is_not_time_that_a_job_took(world: World) -> None:
    world.start("a", "b")
    (birth,) = world.start("c")
    job = world.job(birth.jid)
    job.since -= 30.0
    world.end(birth)
    event = ev.JobFinished(birth.jid, 1, "c", "cxx", 300.0, "ok")
    assert 30.0 < world.jobs.end(job, event).seconds <= 270.0
    assert world.expected.learnt[0][:2] == ("c", True)


def test_while_the_build_is_being_stopped_nothing_is_held(world: World) -> None:
    world.gate.release_all()
    births = world.start("a", "b", "c", "d")
    time.sleep(0.05)
    assert world.stopped(births) == [False] * 4


def test_one_at_a_time_in_the_last_attempt_is_nobodys_number_for_the_next_engine(world: World) -> None:
    world.hand("level", jobs=8)
    world.governor.take_precautions(Precautions(one_by_one=True))
    told = next(e for e in world.level.news() if isinstance(e, ev.LevelSet))
    assert (told.mode, told.target) == ("auto", 1)
    journal = reduce(BuildState(), ev.Record(1, 1000.0, told))
    assert LevelControl(journal).orders.level is None


def test_a_job_that_another_machine_compiles_takes_no_place_and_is_nobodys_to_stop(world: World) -> None:
    births = world.start("a.o", "b.o", "c.o", "d.o")
    see(lambda: world.stopped(births) == [False, False, True, True])
    world.jobs.send_away(world.job(1), "far")
    world.events += world.governor.step()
    see(lambda: world.stopped(births) == [False, False, False, True])
    with pytest.raises(CommandRefused, match=r"far compiles a\.o; nothing of it runs here"):
        world.hand("job", jid=1, act="freeze")
    world.hand("pause", now=True)
    see(lambda: world.stopped(births) == [False, True, True, True])


def test_a_job_that_falls_back_is_stopped_and_goes_on_before_new_ones(world: World) -> None:
    births = world.start("a.o", "b.o", "c.o", "d.o")
    world.jobs.send_away(world.job(1), "far")
    world.events += world.governor.step()
    see(lambda: world.stopped(births) == [False, False, False, True])
    world.events += [*world.gate.take_back({world.job(1): ()}), *world.governor.step()]
    see(lambda: world.stopped(births) == [True, False, False, True])
    assert "governor: take back a.o" in world.decided()
    world.end(births[1])
    see(lambda: world.stopped([births[0], *births[2:]]) == [False, False, True])
    world.jobs.send_away(world.job(1), "near")
    assert not world.job(1).returned, "another host may get what one has given back"
    world.jobs.take_back(world.job(1))
    finished = world.jobs.end(
        world.jobs.exit(births[0].job.key, 0, 0) or world.job(1), ev.JobFinished(1, 1, "a.o", "cxx", 3.0, "ok")
    )
    assert finished.host == "", "it was compiled here"
    assert finished.lesson is None
