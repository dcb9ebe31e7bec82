"""Simulates a build for which other machines compile: which part can go there, and which part stays.

Each C and C++ compilation is preprocessed here, sent, compiled there, and its object comes back; everything else is
done here, including nvcc, as with distcc and icecream. Memory is plenty, and the other machines are as fast as this
one. Knows no engine and not the policy of `decide/`: of the ready jobs the one with the longest chain starts first.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stoker.simulate.simulated_machine import lower_bound
from stoker.simulate.trace import TraceJob

FAR_TOOLS = frozenset(("cxx",))
"""Tools whose preprocessed sources another machine compiles."""

GIGABIT = 1e9 / 8
"""Bytes a second."""

STEPS = (10, 30, 100, 300, 1000)
"""Numbers of slots for which a fleet is worth considering."""

MOST_SLOTS = 10_000


@dataclass(frozen=True, slots=True)
class Costs:
    """What sending a compilation costs, per CPU second that it takes when it is not split.

    `here` is the preprocessing, which stays on this machine, and `there` the rest of the compilation: together more
    than one, because the text is read twice. `sent` and `received` are compressed bytes on the wire. `waits` is the
    idle seconds of each exchange, however long the compilation takes.
    """

    here: float
    there: float
    sent: float
    received: float
    waits: float


MEASURED = Costs(here=0.12, there=0.97, sent=130e3, received=5e3, waits=0.02)
"""Measured on real sources of PyTorch (bench/README.md, "Other machines"); `waits` is a guess for a local network: four
round trips, plus the start of a process."""


@dataclass(frozen=True, slots=True)
class Far:
    """Other machines: how many jobs they take at once, and the bandwidth to them in bytes per second each way."""

    slots: int
    bandwidth: float = GIGABIT
    costs: Costs = MEASURED


@dataclass(frozen=True, slots=True)
class RemoteResult:
    """The result, in seconds. `went` compilations were done elsewhere, `most` of them at once; `sent` is bytes.

    `bounds` are lower limits in seconds for any fleet of that kind, by their cause: the cores here, all cores, the
    wire, and the longest chain of jobs.
    """

    slots: int
    bandwidth: float
    makespan: float
    went: int
    most: int
    sent: float
    bounds: dict[str, float]

    @property
    def bound_by(self) -> str:
        """The cause of the highest bound."""
        return max(self.bounds, key=lambda name: self.bounds[name])


def simulate_remote(jobs: Sequence[TraceJob], cores: int, far: Far) -> RemoteResult:
    """Simulate the whole build with so many cores here and the slots of the other machines."""
    return _Run(jobs, cores, far).result()


@dataclass(slots=True)
class _Wire:
    """One direction of the wire, which all transfers share equally; times are seconds.

    `level` is the number of bytes that every transfer has received, so a single heap shows which one ends next.
    """

    bandwidth: float
    level: float = 0.0
    since: float = 0.0
    transfers: list[tuple[float, int]] = field(default_factory=list)

    def add(self, now: float, size: float, jid: int) -> None:
        self._move(now)
        heapq.heappush(self.transfers, (self.level + size, jid))

    def next(self) -> float:
        """Return when the next transfer ends."""
        if not self.transfers:
            return math.inf
        left = max(0.0, self.transfers[0][0] - self.level)
        return self.since + left * len(self.transfers) / self.bandwidth

    def take(self, now: float) -> int:
        """Remove and return the job whose transfer ends now."""
        self._move(now)
        end, jid = heapq.heappop(self.transfers)
        self.level = max(self.level, end)
        return jid

    def _move(self, now: float) -> None:
        if self.transfers:
            self.level += (now - self.since) * self.bandwidth / len(self.transfers)
        self.since = now


class _Run:
    """One build from the first job to the last."""

    def __init__(self, jobs: Sequence[TraceJob], cores: int, far: Far) -> None:
        self._jobs, self._cores, self._far = jobs, cores, far
        made = {job.output: jid for jid, job in enumerate(jobs)}
        self._waits_for = [len(job.deps) for job in jobs]
        self._dependents: list[list[int]] = [[] for _ in jobs]
        for jid, job in enumerate(jobs):
            for dep in job.deps:
                self._dependents[made[dep]].append(jid)
        self._chains = self._longest_chains()
        self._here: list[tuple[float, int]] = []
        self._may_go: list[tuple[float, int]] = []
        for jid, count in enumerate(self._waits_for):
            if not count:
                self._make_ready(jid)
        self._up, self._down = _Wire(far.bandwidth), _Wire(far.bandwidth)
        self._turn: list[tuple[float, int, int, Callable[[int], None]]] = []
        self._count = 0
        self._now, self._busy, self._gone = 0.0, 0, 0
        self._went, self._most, self._sent = 0, 0, 0.0

    def result(self) -> RemoteResult:
        self._fill()
        while True:
            due = self._turn[0][0] if self._turn else math.inf
            up, down = self._up.next(), self._down.next()
            soonest = min(due, up, down)
            if soonest == math.inf:
                break
            self._now = soonest
            if self._now == due:
                _, _, jid, ended = heapq.heappop(self._turn)
                ended(jid)
            elif self._now == up:
                self._compile_there(self._up.take(self._now))
            else:
                self._come_back(self._down.take(self._now))
            self._fill()
        return RemoteResult(
            self._far.slots, self._far.bandwidth, self._now, self._went, self._most, self._sent, self._bounds()
        )

    # -- the life of a job -------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Give every free core work, the longest chain first; a job that may go is sent away while a slot is free."""
        while self._busy < self._cores and (self._here or self._may_go):
            free = self._gone < self._far.slots
            if self._may_go and (not self._here or (free and self._may_go[0] < self._here[0])):
                jid = heapq.heappop(self._may_go)[1]
                self._send(jid) if free else self._work(self._jobs[jid].seconds, jid, self._ended_here)
            else:
                jid = heapq.heappop(self._here)[1]
                self._work(self._jobs[jid].seconds, jid, self._ended_here)

    def _send(self, jid: int) -> None:
        """Take the slot before the source is preprocessed, as distcc and icecream do."""
        self._gone += 1
        self._went += 1
        self._most = max(self._most, self._gone)
        self._work(self._jobs[jid].cpu * self._far.costs.here, jid, self._preprocessed)

    def _work(self, seconds: float, jid: int, ended: Callable[[int], None]) -> None:
        self._busy += 1
        self._later(seconds, jid, ended)

    def _later(self, seconds: float, jid: int, ended: Callable[[int], None]) -> None:
        self._count += 1
        heapq.heappush(self._turn, (self._now + seconds, self._count, jid, ended))

    def _preprocessed(self, jid: int) -> None:
        self._busy -= 1
        size = self._jobs[jid].cpu * self._far.costs.sent
        self._sent += size
        self._up.add(self._now, size, jid)

    def _compile_there(self, jid: int) -> None:
        costs = self._far.costs
        self._later(costs.waits + self._jobs[jid].cpu * costs.there, jid, self._compiled_there)

    def _compiled_there(self, jid: int) -> None:
        size = self._jobs[jid].cpu * self._far.costs.received
        self._sent += size
        self._down.add(self._now, size, jid)

    def _come_back(self, jid: int) -> None:
        self._gone -= 1
        self._ended(jid)

    def _ended_here(self, jid: int) -> None:
        self._busy -= 1
        self._ended(jid)

    def _ended(self, jid: int) -> None:
        for dependent in self._dependents[jid]:
            self._waits_for[dependent] -= 1
            if not self._waits_for[dependent]:
                self._make_ready(dependent)

    def _make_ready(self, jid: int) -> None:
        goes = self._jobs[jid].tool in FAR_TOOLS and self._far.slots > 0
        heapq.heappush(self._may_go if goes else self._here, (-self._chains[jid], jid))

    # -- the figures -------------------------------------------------------------------------------------------

    def _longest_chains(self) -> list[float]:
        """Return for each job its seconds plus those of the longest chain of jobs that waits for it."""
        chains = [0.0] * len(self._jobs)
        for jid in range(len(self._jobs) - 1, -1, -1):
            chains[jid] = self._jobs[jid].seconds + max((chains[d] for d in self._dependents[jid]), default=0.0)
        return chains

    def _bounds(self) -> dict[str, float]:
        costs, slots = self._far.costs, self._far.slots
        away = sum(job.cpu for job in self._jobs if job.tool in FAR_TOOLS) if slots else 0.0
        total = sum(job.cpu for job in self._jobs)
        return {
            "cores here": (total - away * (1 - costs.here)) / self._cores,
            "all cores": (total - away * max(0.0, 1 - costs.here - costs.there)) / (self._cores + slots),
            "wire": away * max(costs.sent, costs.received) / self._far.bandwidth if slots else 0.0,
            "longest chain": lower_bound(self._jobs, 10**9, math.inf),
        }
