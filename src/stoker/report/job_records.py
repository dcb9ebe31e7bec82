"""What became of each job of a recorded build. Pure: events in, values out. Unaware of files and of how it is shown.

Times are Unix seconds, sizes bytes. However long a build is and whatever its journal holds, what is kept is bounded.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Literal, NamedTuple

from stoker.model import events as ev
from stoker.model.killed import same_output
from stoker.model.known_peak import KnownPeak, known_peak, limit_of
from stoker.model.samples import JobSample
from stoker.model.state import Fate
from stoker.model.tool import Tool

MAX_JOBS = 100_000
"""Jobs that are kept: LLVM has 8,000, Chromium 60,000. Later ones are counted only."""

MAX_POINTS = 96
"""Points of one job's memory; when there are twice as many, each two become one."""

MAX_ARCHS = 40
"""GPU architectures of one job that are kept."""

MAX_STOPS = 100
"""Times that a job was frozen, as far as they are kept one by one."""

RecordedFate = Literal[Fate, "dropped", "running"]
"""dropped: it never ran; running: nothing says how it ended."""


class Held(NamedTuple):
    """A job holds `rss` bytes at Unix time `time`, has used `cpu` CPU seconds, and is in the compiler pass `phase`."""

    time: float
    rss: int
    cpu: float
    phase: str


@dataclass(frozen=True, slots=True)
class JobRecord:
    """One job, from its birth to its end. `jid` is None where it was too short to be seen, and `began`, when it was let
    go, where it never ran. `cpu` is None where nobody measured. `stops` are the stretches in which it was frozen;
    `waited` is for how many seconds it stood still, by cause (events.WaitCause). `group` is its group in the graph.
    `expected` and `lasts` are the peak and the CPU seconds that stoker expected of it when it was let go. `archs` are
    the CPU seconds of nvcc's passes by GPU architecture, as far as they were seen. `peak` is the most that it was seen
    to hold, `known_peak` what that says, `limit` what it can have held at most, None where that is unknown."""

    jid: int | None
    sid: int
    output: str
    tool: Tool
    born: float
    began: float | None
    ended: float
    fate: RecordedFate
    killed_by: str = ""
    peak: int = 0
    cpu: float | None = None
    prior: str = ""
    points: tuple[Held, ...] = ()
    stops: tuple[tuple[float, float], ...] = ()
    waited: tuple[tuple[str, float], ...] = ()
    group: int | None = None
    expected: int | None = None
    lasts: float | None = None
    archs: tuple[tuple[str, float], ...] = ()
    known_peak: KnownPeak | None = None
    limit: int | None = None

    @property
    def seconds(self) -> float:
        """For how long it ran, without what it was frozen."""
        return 0.0 if self.began is None else max(0.0, self.ended - self.began - sum(b - a for a, b in self.stops))

    @property
    def waiting(self) -> float:
        """For how long it waited on deck."""
        return max(0.0, (self.ended if self.began is None else self.began) - self.born)


@dataclass(slots=True, eq=False)
class _Open:
    """A job that has not ended yet, as far as the journal has been read."""

    jid: int
    sid: int
    output: str
    tool: Tool
    born: float
    began: float | None
    ended: float | None = None
    points: list[Held] = field(default_factory=list)
    stops: list[tuple[float, float]] = field(default_factory=list)
    stopped: float | None = None
    waits: dict[str, float] = field(default_factory=dict)
    cause: tuple[str, float] | None = None
    cpu: float = 0.0
    expected: int | None = None
    lasts: float | None = None

    def expect(self, e: ev.JobStarted | ev.JobMoved) -> None:
        """What is expected of it, as long as it has not begun."""
        if self.began is None or isinstance(e, ev.JobStarted):
            self.expected, self.lasts = e.expected or self.expected, e.lasts or self.lasts

    def explain(self, cause: str, time: float) -> None:
        """From now on it waits for another reason, or for none."""
        if self.cause is not None:
            name, since = self.cause
            self.waits[name] = self.waits.get(name, 0.0) + max(0.0, time - since)
        self.cause = (cause, time) if cause else None

    def move(self, state: ev.JobState, time: float) -> None:
        """It was let go, frozen or thawed."""
        if state == "running":
            self.began = max(self.born, time) if self.began is None else self.began
            self.explain("", time)
        if state == "frozen" and self.stopped is None:
            self.stopped = time
        elif state != "frozen" and self.stopped is not None:
            if len(self.stops) < MAX_STOPS and time > self.stopped:
                self.stops.append((self.stopped, time))
            self.stopped = None

    def sample(self, seen: JobSample, time: float) -> None:
        """One more measurement of it."""
        before = self.points[-1].time if self.points else (self.began or time)
        self.cpu += max(0.0, time - before) * max(0.0, seen.cpu) / 100
        self.points.append(Held(time, seen.rss, self.cpu, seen.phase))
        if len(self.points) >= 2 * MAX_POINTS:
            pairs = (self.points[i : i + 2] for i in range(0, len(self.points), 2))
            self.points = [max(pair, key=lambda p: p.rss) for pair in pairs]


class JobBook:
    """Keeps a record of each job, from the events about it."""

    def __init__(self) -> None:
        self.left_out = 0
        self._open: dict[int, _Open] = {}
        self._done: list[JobRecord] = []
        self._deaths: list[ev.JobKilled] = []

    def started(self, e: ev.JobStarted) -> None:
        """A job was born, or its name has been learnt."""
        job = self._open.get(e.jid)
        if job is not None:
            job.output, job.tool = e.output, e.tool
            job.expect(e)
        elif len(self._open) + len(self._done) < MAX_JOBS:
            began = None if e.state == "on_deck" else e.started
            self._open[e.jid] = _Open(
                e.jid, e.sid, e.output, e.tool, e.started, began, expected=e.expected, lasts=e.lasts
            )
        else:
            self.left_out += 1

    def moved(self, e: ev.JobMoved, time: float) -> None:
        """A job was let go, frozen or thawed."""
        if (job := self._open.get(e.jid)) is not None:
            job.expect(e)
            job.move(e.state, time)

    def waiting(self, e: ev.JobsWaiting, time: float) -> None:
        """Why jobs stand still from now on."""
        for jid in e.jids:
            if (job := self._open.get(jid)) is not None:
                job.explain(e.cause, time)

    def exited(self, e: ev.JobsExited, time: float) -> None:
        """Processes have ended."""
        for jid in e.jids:
            if (job := self._open.get(jid)) is not None and job.ended is None:
                job.ended = time

    def sampled(self, jobs: Iterable[JobSample], time: float) -> None:
        """What each job holds now."""
        for seen in jobs:
            job = self._open.get(seen.jid)
            if job is not None and job.ended is None:
                job.sample(seen, time)

    def killed(self, e: ev.JobKilled) -> None:
        """A job did not fail but was killed; it may have ended already, or may be about to."""
        for index in range(len(self._done) - 1, max(-1, len(self._done) - 1 - MAX_STOPS), -1):
            job = self._done[index]
            if job.fate in ("failed", "interrupted") and _meant(e, job.jid, job.output):
                self._done[index] = _with_fate(job, "killed", e.by)
                return
        self._deaths = [*self._deaths[-MAX_STOPS:], e]

    def finished(self, e: ev.JobFinished, time: float) -> None:
        """A job's end is known."""
        job = self._open.pop(e.jid, None) if e.jid is not None else None
        death = None if e.outcome in ("ok", "dropped") else self._death(e)
        if job is None:
            if len(self._open) + len(self._done) >= MAX_JOBS:
                self.left_out += 1
                return
            begun = time - max(0.0, e.seconds)
            never = e.outcome in ("dropped", "interrupted") and death is None
            job = _Open(0, e.sid, e.output, e.tool, begun, None if never else begun, time)
        job.output, job.tool = e.output or job.output, e.tool
        # A stop that finds a job on deck interrupts nothing: the counts of the build say so too.
        fate = "dropped" if e.outcome == "interrupted" and job.began is None else e.outcome
        record = _closed(job, time, "killed" if death is not None else fate, e)
        self._done.append(record if death is None else _with_fate(record, "killed", death.by))

    def _death(self, e: ev.JobFinished) -> ev.JobKilled | None:
        found = next((d for d in self._deaths if _meant(d, e.jid, e.output)), None)
        if found is not None:
            self._deaths.remove(found)
        return found

    def records(self, now: float) -> tuple[JobRecord, ...]:
        """All jobs, in the order in which they were born; `now` is the last moment that is known of."""
        still = (_closed(job, now, "running", None) for job in self._open.values())
        return tuple(sorted((*self._done, *still), key=lambda job: (job.born, job.ended)))


def _closed(job: _Open, time: float, fate: RecordedFate, e: ev.JobFinished | None) -> JobRecord:
    ended = max(job.born, time if job.ended is None else job.ended)
    job.move("running" if job.began is not None else "on_deck", ended)
    job.explain("", ended)
    peak = max([(e.peak_rss if e is not None else None) or 0, *(p.rss for p in job.points)])
    lesson = e.lesson if e is not None else None
    limit, ran = limit_of(lesson), e.seconds if e is not None else math.inf
    measured = (e.cpu_seconds if e is not None else None) or None  # 0.0: it had ended before it was looked at
    return JobRecord(
        job.jid or None,
        job.sid,
        job.output,
        job.tool,
        job.born,
        None if job.began is None else min(job.began, ended),
        ended,
        fate,
        peak=peak,
        cpu=measured if measured is not None else job.cpu if job.points else None,
        prior=lesson.prior if lesson is not None else "",
        points=tuple(job.points),
        stops=tuple((a, min(b, ended)) for a, b in job.stops if a < ended),
        waited=tuple(sorted(job.waits.items())),
        group=e.group if e is not None else None,
        expected=job.expected,
        lasts=job.lasts,
        archs=tuple(e.archs.items())[:MAX_ARCHS] if e is not None else (),
        known_peak=known_peak(ran, peak, limit) if peak else None,
        limit=limit,
    )


def _with_fate(job: JobRecord, fate: RecordedFate, by: str) -> JobRecord:
    return replace(job, fate=fate, killed_by=by)


def _meant(death: ev.JobKilled, jid: int | None, output: str) -> bool:
    if death.jid is not None and jid is not None:
        return death.jid == jid
    return same_output(death.output, output)
