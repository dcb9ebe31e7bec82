"""Every job of the build from birth to end: the only place that holds a job's state.

A job is identified by its first process, (pid, start in clock ticks), and by its number in the journal. Only the
methods here change a job's state; they return the events that announce the change, or say what the caller must
announce. Sends no signal, reads no process; unaware of decisions and of the journal's file.
"""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Protocol

from stoker.contract.process import Key
from stoker.decide.memory.curves import Curve
from stoker.engine.jobs.managed_job import EXITED, NEXT, STOPPED, WAITING, Doom, Life, ManagedJob
from stoker.model import events as ev
from stoker.model import state as state_of
from stoker.model.lessons import Lesson
from stoker.model.remote import HOSTLESS
from stoker.model.state import BuildState
from stoker.model.tool import Tool
from stoker.model.units import format_bytes
from stoker.sense.commands.classify import compiles_c
from stoker.sense.proc.jobs import JobUse

NAMED_AFTER_SOURCES = (".c.o", ".cc.o", ".cpp.o", ".cxx.o")
"""Objects whose names show their language, as in most ninja builds: their command lines need not be read for it."""

NEWS_SHARE = 0.2
"""A change of the expected peak that is worth an event: every job that ends changes the expectations of all similar
ones a little."""

_END_OF: Mapping[ev.JobOutcome, Life] = {
    "ok": Life.RECORDED,
    "unknown": Life.UNRECORDED,
    "failed": Life.FAILED,
    "dropped": Life.DROPPED,
    "interrupted": Life.UNRECORDED,
}


class JobExpectations(Protocol):
    """Predicts how much memory and time a job takes, and learns from what it took."""

    def set_cores(self, cores: float) -> None:
        """Note how many cores the build may use."""

    @property
    def version(self) -> int:
        """Another number when a job that was asked about before may have another curve."""

    def expect(self, jid: int, output: str, tool: str, argv: tuple[str, ...], pid: int) -> Curve:
        """Return the job's curve, by everything learned so far and by what the job `pid` reads."""

    def width(self, argv: tuple[str, ...]) -> float:
        """Return how many cores it keeps busy."""

    def sample(self, jid: int, cpu_seconds: float, rss: float, phase: str, ran: float) -> None:
        """Learn what it uses now, after it has run for so many seconds by the clock: 0 until it is released."""

    def adopted(self, jid: int) -> None:
        """Note that nobody saw its beginning."""

    def finished(
        self, jid: int, output: str, tool: str, argv: tuple[str, ...], ok: bool, seconds: float
    ) -> Lesson | None:
        """Learn from its end after so many seconds of running; return what it taught."""

    def lost(self, jid: int) -> None:
        """Forget it: it never ran."""


class JobTable:
    """All jobs whose process or whose result is still open."""

    def __init__(self, expected: JobExpectations, state: BuildState) -> None:
        """`state` is what earlier engines have announced."""
        self._expected = expected
        self._jobs: dict[int, ManagedJob] = {}
        self._by_key: dict[Key, ManagedJob] = {}
        self._open: dict[int, dict[int, ManagedJob]] = {}
        self._next_jid = state.last_jid + 1
        self._predecessors = {job.pid: job for job in (*state.jobs.values(), *state.leaving.values())}
        self._already_left = frozenset(state.leaving)
        self._exits: list[ManagedJob] = []
        self.version = 0
        """Increases with every change to which jobs are stopped or present."""
        self._lists: dict[Life | str, tuple[ManagedJob, ...]] = {}
        """What was asked for since the last such change: each decision asks a dozen times."""
        self._lists_version = 0
        self.launched = False
        """Whether any job so far had a launcher that may have another machine compile it."""

    # -- looking jobs up ---------------------------------------------------------------------------------------

    def __iter__(self) -> Iterator[ManagedJob]:
        """Return the live jobs, oldest first."""
        return (job for job in self._jobs.values() if job.lives)

    def get(self, jid: int) -> ManagedJob | None:
        """Return the live job of that number."""
        job = self._jobs.get(jid)
        return job if job is not None and job.lives else None

    def by_key(self, key: Key) -> ManagedJob | None:
        """Return the job with that first process, until the process has gone."""
        return self._by_key.get(key)

    def owner(self, pid: int) -> ManagedJob | None:
        """Return the job that was seen to have that process; of several the youngest, since pids are reused."""
        return next((j for j in reversed(self._jobs.values()) if pid == j.job.pid or pid in j.pids), None)

    def counting(self) -> tuple[ManagedJob, ...]:
        """Return the jobs that take a place or wait for one: all that a decision may concern, oldest first."""
        return self._kept("counting", lambda: [j for j in self._jobs.values() if j.counts])

    def having(self, life: Life) -> tuple[ManagedJob, ...]:
        """Return those of them in that state."""
        return self._kept(life, lambda: [j for j in self.counting() if j.life is life])

    def on_deck(self) -> tuple[ManagedJob, ...]:
        """Return those of them that wait to be released, including newborn ones."""
        return self._kept("on deck", lambda: [j for j in self.counting() if j.life in WAITING])

    def away(self) -> tuple[ManagedJob, ...]:
        """Return the jobs that another machine compiles."""
        return self._kept("away", lambda: [j for j in self._jobs.values() if j.host and j.lives])

    def _kept(self, which: Life | str, choose: Callable[[], list[ManagedJob]]) -> tuple[ManagedJob, ...]:
        """Return the jobs under that name, chosen again if any job has changed since."""
        if self._lists_version != self.version:
            self._lists, self._lists_version = {}, self.version
        kept = self._lists.get(which)
        if kept is None:
            kept = self._lists[which] = tuple(choose())
        return kept

    def open_jobs(self, sid: int) -> Collection[ManagedJob]:
        """Return a scheduler's jobs whose end has not been announced; valid until the table changes."""
        return self._open.get(sid, {}).values()

    def exited(self, sid: int) -> list[ManagedJob]:
        """Return a scheduler's jobs that have exited and wait for a record, or to be given up on."""
        return [j for j in self.open_jobs(sid) if j.life is EXITED]

    def living(self, sid: int) -> int:
        """Return how many of a scheduler's jobs are alive."""
        return sum([j.lives for j in self.open_jobs(sid)])

    def living_by_scheduler(self) -> Counter[Key]:
        """Return how many jobs of each scheduler are alive."""
        return Counter([j.job.scheduler for j in self])

    def counts(self) -> str:
        """Say in words how many jobs run and how many wait."""
        away = f" here, {n} on other machines" if (n := len(self.away())) else ""
        return f"{len(self.having(Life.RUNNING))} run{away}, {len(self.on_deck())} on deck"

    def held_bytes(self) -> int:
        """Return what all jobs hold, as last measured."""
        return sum([j.rss for j in self._jobs.values()])

    # -- what is expected of them ------------------------------------------------------------------------------

    def curve(self, job: ManagedJob) -> Curve:
        """What is expected of the job."""
        if job.curve is None or job.curve_version != self._expected.version:
            known, job.curve_version = job.job, self._expected.version
            job.curve = self._expected.expect(job.jid, known.output, known.tool, known.argv, known.pid)
        return job.curve

    def peak(self, job: ManagedJob) -> int:
        """Bytes; at least what the job has held already, whatever similar jobs take."""
        return round(max(self.curve(job).peak, job.peak_rss))

    def has_news(self, job: ManagedJob) -> bool:
        """Say whether the expected peak differs clearly from the announced one, or is no longer a guess, or only one
        now."""
        is_other = abs(self.peak(job) - job.announced_peak) > NEWS_SHARE * job.announced_peak
        return is_other or self.curve(job).is_guess != job.announced_guess

    def _peak_to_announce(self, job: ManagedJob) -> int | None:
        """Return the expected peak unless it is as announced, so that a row agrees with the decision beside it."""
        is_guess = self.curve(job).is_guess
        if format_bytes(self.peak(job)) == format_bytes(job.announced_peak) and is_guess == job.announced_guess:
            return None
        job.announced_peak, job.announced_guess = self.peak(job), is_guess
        return job.announced_peak

    def _seconds(self, job: ManagedJob) -> float:
        """Return for how long the job is expected to run on the cores that it keeps busy."""
        return round(self.curve(job).duration / max(1.0, job.width), 1)

    # -- birth -------------------------------------------------------------------------------------------------

    def number(self, key: Key) -> tuple[int, state_of.Job | None]:
        """Return the number of a process that is a job: a new one, or the one that an earlier engine gave it."""
        before = self._predecessors.get(key[0])
        if before is not None and before.start_ticks in (None, key[1]):
            del self._predecessors[key[0]]
            return before.jid, before
        self._next_jid += 1
        return self._next_jid - 1, None

    def add(self, job: ManagedJob) -> None:
        """Add a job that is not known yet."""
        _require(job.jid not in self._jobs, f"job {job.jid} is known")
        _require(job.job.key not in self._by_key, f"process {job.job.key} is a job already")
        job.width = self._expected.width(job.job.argv)
        begun = job.known_as is not None or (job.life is Life.RUNNING and not job.fixed)
        if begun and job.watched:
            self._expected.adopted(job.jid)
        self.launched = self.launched or bool(job.job.sends or job.host)
        self._jobs[job.jid] = self._by_key[job.job.key] = job
        self._open.setdefault(job.sid, {})[job.jid] = job
        self.version += 1

    def announce(self, job: ManagedJob) -> list[ev.Event]:
        """Announce the job's start, or for a job of the journal its current state, if that is new."""
        if job.known_as is not None:
            return [] if job.known_as == job.state else [self.describe(job)]
        known, expected = job.job, self._peak_to_announce(job) if job.counts else None
        return [
            ev.JobStarted(
                job.jid,
                job.sid,
                known.pid,
                known.label,
                known.tool,
                round(known.started, 2),
                job.state,
                expected,
                known.start_ticks,
                None if expected is None else self._seconds(job),
                expected is not None and job.announced_guess,
                known.tool == "cxx" and not known.output.endswith(NAMED_AFTER_SOURCES) and compiles_c(known.argv),
            )
        ]

    def lost_between_engines(self, sids: Collection[int]) -> list[state_of.Job]:
        """Return jobs of these schedulers that are in the journal and have no process left; each once."""
        lost = [job for job in self._predecessors.values() if job.sid in sids]
        self._predecessors.clear()
        return lost

    def rename(self, job: ManagedJob, output: str, tool: Tool) -> list[ev.Event]:
        """Take in the plan's name for a job whose end has not been announced."""
        _require(not job.ended, f"job {job.jid} has ended")
        if job.name == output:
            return []
        job.edge = (output, tool)
        if not (output and job.lives):
            return []
        job.job = replace(job.job, output=output, tool=tool)
        job.candidate = job.curve = None
        started = round(job.job.started, 2)
        return [ev.JobStarted(job.jid, job.sid, job.job.pid, output, tool, started, job.state)]

    # -- life --------------------------------------------------------------------------------------------------

    def move(self, job: ManagedJob, life: Life, clock: float) -> ev.JobMoved:
        """Note that a job has been stopped or released: the signal has been sent."""
        self.place(job, life, clock)
        return self.describe(job)

    def place(self, job: ManagedJob, life: Life, clock: float) -> None:
        """The same for a newborn job, whose start has yet to be announced and includes its state."""
        self._enter(job, life, clock)
        job.early = job.early and life is Life.RUNNING  # whoever stops it
        if life is Life.FROZEN:
            job.growth.rest(job.age, job.rss)

    def describe(self, job: ManagedJob) -> ev.JobMoved:
        """Return a job's state, who ordered it, and what is expected of it now."""
        expected = self._peak_to_announce(job)
        lasts = None if expected is None else self._seconds(job)
        guessed = expected is not None and job.announced_guess
        return ev.JobMoved(job.jid, job.state, expected, job.moved_by, job.alone, job.alone_by, lasts, guessed)

    def doom(self, job: ManagedJob, why: Doom) -> None:
        """Note that a live job cannot continue: its exit will be noticed in a moment."""
        _require(job.lives, f"job {job.jid} does not live")
        job.doom = why
        self.version += 1

    def measure(self, job: ManagedJob, use: JobUse) -> None:
        """Note what a live job uses now."""
        job.measure(use)
        ran = job.ran_for(time.monotonic())
        self._expected.sample(job.jid, use.cpu_seconds, use.rss, use.phase, ran)

    def exit(self, key: Key, last_seen: float, noticed: float) -> ManagedJob | None:
        """A job's first process has ended between these Unix times; returns None if that was already known."""
        job = self._by_key.pop(key, None)
        if job is None:
            return None
        job.rss, job.was_stopped = 0, job.life in STOPPED
        if job.ended:  # its record came first
            del self._jobs[job.jid]
            return job
        self._enter(job, Life.EXITED, time.monotonic())
        job.exited_at, job.last_seen, job.noticed = job.since, last_seen, noticed
        if job.jid not in self._already_left:
            self._exits.append(job)
        return job

    def take_exits(self, last_jid: int) -> list[ev.Event]:
        """Return the exits to announce: not if a job's end has been announced, nor before the start of any job above
        `last_jid`."""
        gone = sorted(j.jid for j in self._exits if not j.ended and j.jid <= last_jid)
        self._exits = [j for j in self._exits if not j.ended and j.jid > last_jid]
        return [ev.JobsExited(tuple(gone))] if gone else []

    @property
    def owes_exits(self) -> bool:
        """Say whether an exit still has to be announced."""
        return bool(self._exits)

    def end(self, job: ManagedJob, event: ev.JobFinished) -> ev.JobFinished:
        """End a job, once. The time in which it was stopped does not count; adds what it taught."""
        _require(event.jid == job.jid, f"job {job.jid} ends as {event.jid}")
        if event.outcome != "ok" and job.doom == "dropped":
            event = replace(event, outcome="dropped")
        if job.was_away and not job.returned:
            event = replace(event, host=job.was_away)
        life = _END_OF[event.outcome]
        killed = life is Life.FAILED and job.doom == "killed"
        self._enter(job, Life.KILLED if killed else life, time.monotonic())
        del self._open[job.sid][job.jid]
        if job.job.key not in self._by_key:
            del self._jobs[job.jid]
        seconds = round(max(0.0, event.seconds - job.idle), 3)
        event = replace(event, seconds=seconds, elsewhere=round(min(seconds, job.elsewhere), 3))
        if not job.watched:
            return event
        if life is Life.DROPPED or job.was_away:  # what it held and used was on another machine
            self._expected.lost(job.jid)
            return event
        well = event.outcome not in ("failed", "interrupted")
        lesson = self._expected.finished(job.jid, event.output, event.tool, job.job.argv, well, seconds)
        return replace(event, lesson=lesson, archs=job.seen.archs)

    def _enter(self, job: ManagedJob, life: Life, clock: float) -> None:
        _require(life in NEXT[job.life], f"job {job.jid} cannot be {life.value}: it is {job.life.value}")
        job.idle = job.stopped_for(clock)
        job.life, job.since, job.candidate, job.wait = life, clock, None, None
        self.version += 1

    # -- other machines ----------------------------------------------------------------------------------------

    def any_launched(self, uses: Iterable[JobUse]) -> bool:
        """Say whether any job so far, or one of these, had a launcher: without one no other machine is involved."""
        self.launched = self.launched or any(use.sends is not None for use in uses)
        return self.launched

    def send_away(self, job: ManagedJob, host: str) -> None:
        """Another machine compiles a running job from now on, or it waits for one that will: it takes no place here."""
        _require(job.life is Life.RUNNING, f"job {job.jid} cannot be away: it is {job.life.value}")
        job.host = host
        if host not in HOSTLESS:
            job.was_away = host
        job.returned = False  # another host may take a job that one has given back
        self.version += 1

    def credit(self, job: ManagedJob, host: str) -> None:
        """Note that another machine had compiled an exited job, which nobody has seen there."""
        job.was_away = host

    def bring_home(self, job: ManagedJob) -> None:
        """A remote job prepares something here before it continues elsewhere."""
        _require(bool(job.host), f"job {job.jid} was not away")
        job.host = ""
        self.version += 1

    def take_back(self, job: ManagedJob) -> None:
        """A remote job works here again."""
        _require(bool(job.host), f"job {job.jid} was not away")
        job.host, job.returned, job.elsewhere = "", True, job.ran_for(time.monotonic())
        job.begin_here()
        self.version += 1

    # -- orders that outlive a decision ------------------------------------------------------------------------

    def set_alone(self, job: ManagedJob, who: str) -> ev.JobMoved:
        """The job runs alone from now on, as the person `who` wants it."""
        job.alone, job.alone_by, job.moved_by, job.candidate = True, who, "", None
        return self.describe(job)

    def let_join(self, jobs: Iterable[ManagedJob]) -> list[ev.Event]:
        """These jobs need not run alone any more."""
        freed = list(jobs)
        for job in freed:
            job.alone, job.alone_by, job.candidate = False, "", None
        return [self.describe(job) for job in freed]

    def set_carriers(self, carriers: Collection[Key]) -> list[ManagedJob]:
        """Note in which jobs schedulers run now; return those among them that are stopped."""
        for job in self:
            if job.carrier is not (carries := job.job.key in carriers):
                job.carrier = carries
                self.version += 1
        return [j for j in self if j.carrier and j.is_stopped]


def _require(condition: bool, otherwise: str) -> None:
    """If a precondition does not hold, the table is wrong, and a new engine rebuilds it from the journal."""
    if not condition:
        raise AssertionError(otherwise)
