"""The simulated machine: jobs that hold memory and share cores, a scheduler's window, a kernel that kills.

An exact discrete-event simulation: memory is linear between events, so no peak is missed. Knows what jobs really take;
a driver sees only what it could see on a real machine.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field

from stoker.decide.memory.growth_rate import GrowthRate
from stoker.simulate.trace import TraceJob

MAX_KILLS = 10
"""A job that the kernel killed this often is given up: it needs more than the machine has."""

NEVER = math.inf


@dataclass(slots=True, eq=False)
class Live:
    """One attempt at a job. `at` is the CPU seconds done when the machine's work clock showed `since`."""

    jid: int
    job: TraceJob
    arrived: float
    started: float = NEVER
    at: float = 0.0
    since: float = 0.0
    segment: int = 0
    frozen: bool = False
    turns: int = 0
    """Incremented at every freeze and thaw, which makes events planned earlier void."""
    seen_peak: float = 0.0
    seen_peak_at: float = 0.0
    growth: GrowthRate = field(default_factory=GrowthRate, repr=False)
    passed_over: int = 0
    held: bool = False
    early: bool = False
    """Admitted early, and not stopped since (see `LiveJob`)."""


@dataclass(slots=True)
class RunTally:
    """The totals of a run."""

    peak: float = 0.0
    kills: int = 0
    lost: float = 0.0
    restarts: int = 0
    finished: int = 0
    given_up: list[str] = field(default_factory=list)


class Machine:
    """Cores, memory, and a scheduler that offers ready jobs as long as its window has room.

    It offers them in the order in which they become ready, like ninja before 1.12, or those with the longest chain of
    dependent edges first, like ninja since then (`longest_first`).
    """

    def __init__(
        self, jobs: Iterable[TraceJob], cores: int, ram: float, others: float = 0.0, *, longest_first: bool = False
    ) -> None:
        """`others` is the constant other work on the machine, in cores."""
        self.cores = cores
        self._others = others
        self.ram = ram
        self.now = 0.0
        self.used = 0.0
        self.tally = RunTally()
        self.running: dict[int, Live] = {}
        self.frozen: dict[int, Live] = {}
        self.deck: dict[int, Live] = {}
        self.alone: set[int] = set()
        """Jobs that were killed because memory ran out: a driver that can runs them alone."""
        self.ended: list[Live] = []
        """Jobs that ended since the driver's last tick; it clears this."""
        self._jobs = tuple(jobs)
        self._waiting_for, self._dependents = _graph(self._jobs)
        self._edges = self.chains(lambda _job: 1.0) if longest_first else None
        self._turn = 0
        self._ready: list[tuple[float, int, int]] = []
        for jid, needs in self._waiting_for.items():
            if not needs:
                self._make_ready(jid)
        self._left = len(self._jobs)
        self._kills: dict[int, int] = {}
        self._work = 0.0
        """The work clock: seconds that an always running job would have spent on its own core."""
        self._slope = 0.0
        self._width = 0.0
        self._events: list[tuple[float, int, int, Live]] = []
        self._count = 0

    @property
    def over(self) -> bool:
        """True when every job has ended or been given up."""
        return self._left == 0

    @property
    def in_window(self) -> int:
        """How many children the scheduler has: held, frozen or running."""
        return len(self.deck) + len(self.running) + len(self.frozen)

    def offer(self, window: int) -> list[Live]:
        """Let the scheduler start children until its window is full; return those that are new on deck."""
        room = window - self.in_window
        new: list[Live] = []
        while room > 0 and self._ready:
            jid = heapq.heappop(self._ready)[-1]
            live = self.deck[jid] = Live(jid, self._jobs[jid], self.now)
            new.append(live)
            room -= 1
        return new

    @property
    def has_graph(self) -> bool:
        """Whether some jobs wait for others."""
        return bool(self._dependents)

    def chains(self, seconds: Callable[[TraceJob], float]) -> Sequence[float]:
        """Return for each job its `seconds` plus those of the longest chain of jobs that waits for it."""
        chains = [0.0] * len(self._jobs)
        for jid in range(len(self._jobs) - 1, -1, -1):
            behind = max((chains[d] for d in self._dependents.get(jid, ())), default=0.0)
            chains[jid] = seconds(self._jobs[jid]) + behind
        return chains

    def _make_ready(self, jid: int, *, again: bool = False) -> None:
        """Let the scheduler start it; a killed job goes before all others."""
        self._turn += 1
        first = -self._edges[jid] if self._edges is not None else 0.0
        heapq.heappush(self._ready, (-NEVER, -self._turn, jid) if again else (first, self._turn, jid))

    def size(self, live: Live) -> float:
        """Return the bytes that the job holds now."""
        return _size(live.job, live.segment, self.age(live))

    def age(self, live: Live) -> float:
        """Return the CPU seconds that the job has used."""
        return live.at if live.frozen else live.at + (self._work - live.since) * live.job.width

    def phase(self, live: Live) -> str:
        """Return the compiler pass that the job is in."""
        return live.job.points[live.segment].phase

    def start(self, live: Live) -> None:
        """Start a job on deck."""
        del self.deck[live.jid]
        live.started = self.now
        self.used += live.job.points[0].size
        self._run(live)

    def freeze(self, live: Live) -> None:
        """Stop a running job where it is; it keeps its memory."""
        self._stop(live)
        live.frozen = True
        self.frozen[live.jid] = live

    def thaw(self, live: Live) -> None:
        """Continue a frozen job."""
        del self.frozen[live.jid]
        live.frozen = False
        self._run(live)

    def kill(self, live: Live, *, by_kernel: bool = False) -> None:
        """End an attempt: its memory is freed, its work is lost, and the job becomes ready again, before all others."""
        size = self.size(live)
        if live.frozen:
            del self.frozen[live.jid]
        else:
            self._stop(live)
        self.used = max(0.0, self.used - size)
        self.tally.lost += live.at
        if by_kernel:
            self.tally.kills += 1
            self.alone.add(live.jid)
            self._kills[live.jid] = self._kills.get(live.jid, 0) + 1
            if self._kills[live.jid] >= MAX_KILLS:
                self.tally.given_up.append(live.job.output)
                self._release_dependents(live.jid)
                return
        self._make_ready(live.jid, again=True)

    def advance(self, until: float) -> None:
        """Advance to the next end of a job, a kill, or the time `until`, whichever comes first."""
        while not self.ended and self.now < until:
            self._forget_void_events()
            share = min(1.0, self.cores / (self._width + self._others)) if self._width > 0 else 1.0
            work = self._events[0][0] if self._events else NEVER
            step = (work - self._work) / share
            if self.now + step > until:
                self._move((until - self.now) * share, share)
                self.now = until
                return
            if step == NEVER:
                return
            if self._move(work - self._work, share):
                return
            _, _, _, live = heapq.heappop(self._events)
            self._pass_point(live)

    def _forget_void_events(self) -> None:
        while self._events and self._events[0][2] != self._events[0][3].turns:
            heapq.heappop(self._events)

    def _move(self, work: float, share: float) -> bool:
        """Let `work` seconds of the work clock pass; return whether memory ran out on the way and a job was killed."""
        if self.used + self._slope * work > self.ram and self._slope > 0:
            work = max(0.0, min(work, (self.ram - self.used) / self._slope))
            self._shift(work, share)
            self._out_of_memory()
            return True
        self._shift(work, share)
        if self.used > self.ram:
            self._out_of_memory()
            return True
        return False

    def _shift(self, work: float, share: float) -> None:
        self._work += work
        self.now += work / share
        self.used = max(0.0, self.used + self._slope * work)
        self.tally.peak = max(self.tally.peak, min(self.used, self.ram))

    def _out_of_memory(self) -> None:
        """Kill the largest job, as the kernel does."""
        victims = [*self.running.values(), *self.frozen.values()]
        self.kill(max(victims, key=self.size), by_kernel=True)

    def _run(self, live: Live) -> None:
        live.since = self._work
        live.turns += 1
        self.running[live.jid] = live
        self._width += live.job.width
        self._slope += _slope(live.job, live.segment)
        self._plan(live)

    def _stop(self, live: Live) -> None:
        live.at = self.age(live)
        live.since = self._work
        live.turns += 1
        del self.running[live.jid]
        self._width -= live.job.width
        self._slope -= _slope(live.job, live.segment)
        if not self.running:
            self._width = self._slope = 0.0  # discard rounding errors

    def _plan(self, live: Live) -> None:
        """Schedule the next corner of the job's curve as an event."""
        points = live.job.points
        following = points[min(live.segment + 1, len(points) - 1)].age
        due = live.since + max(0.0, following - live.at) / live.job.width
        self._count += 1
        heapq.heappush(self._events, (due, self._count, live.turns, live))

    def _pass_point(self, live: Live) -> None:
        """Handle a job's arrival at a corner of its curve, or at its end."""
        points = live.job.points
        before = _slope(live.job, live.segment)
        if live.segment + 2 >= len(points):
            self._finish(live)
            return
        live.segment += 1
        live.at, live.since = points[live.segment].age, self._work
        jump = points[live.segment].size - points[live.segment - 1].size
        if points[live.segment].age == points[live.segment - 1].age:
            self.used += jump
        self._slope += _slope(live.job, live.segment) - before
        self._plan(live)

    def _finish(self, live: Live) -> None:
        size = live.job.points[-1].size
        self._stop(live)
        self.used = max(0.0, self.used - size)
        if not self.running and not self.frozen:
            self.used = 0.0
        self.tally.finished += 1
        self.ended.append(live)
        self._release_dependents(live.jid)

    def _release_dependents(self, jid: int) -> None:
        self._left -= 1
        for dependent in self._dependents.get(jid, ()):
            self._waiting_for[dependent] -= 1
            if self._waiting_for[dependent] == 0:
                self._make_ready(dependent)


def lower_bound(jobs: Iterable[TraceJob], cores: int, budget: float) -> float:
    """Return the seconds that no policy can beat: by critical path, CPU time over cores, or memory times time over the
    budget."""
    jobs = tuple(jobs)
    path: dict[str, float] = {}
    for job in jobs:
        path[job.output] = job.seconds + max((path[d] for d in job.deps), default=0.0)
    return max(
        max(path.values()),
        sum(j.cpu for j in jobs) / cores,
        sum(j.memory_time for j in jobs) / budget,
    )


def _graph(jobs: tuple[TraceJob, ...]) -> tuple[dict[int, int], dict[int, list[int]]]:
    """Return how many jobs each job waits for, and which ones wait for it. Dependencies come first in `jobs`."""
    made = {job.output: jid for jid, job in enumerate(jobs)}
    waiting: dict[int, int] = {}
    dependents: dict[int, list[int]] = {}
    for jid, job in enumerate(jobs):
        needs = [made[d] for d in job.deps]
        waiting[jid] = len(needs)
        for need in needs:
            dependents.setdefault(need, []).append(jid)
    return waiting, dependents


def _size(job: TraceJob, segment: int, age: float) -> float:
    points = job.points
    left = points[segment]
    return left.size + _slope(job, segment) / job.width * (age - left.age) if segment + 1 < len(points) else left.size


def _slope(job: TraceJob, segment: int) -> float:
    """Return the bytes per second of the work clock in this segment."""
    points = job.points
    if segment + 1 >= len(points):
        return 0.0
    width = points[segment + 1].age - points[segment].age
    return (points[segment + 1].size - points[segment].size) / width * job.width if width > 0 else 0.0
