"""A build on paper with other machines that compile for it: what of it can go there, and what stays.

Each C and C++ compilation is preprocessed here, sent, compiled there, and its object comes back; all else is done here,
nvcc too, as distcc and icecream have it. Memory is plenty, and the machines there are as quick as this one. Unaware of
any engine, and of the policy of `decide/`: what is ready starts with the longest chain first.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from stoker.simulate.simulated_machine import lower_bound
from stoker.simulate.trace import TraceJob

FAR_TOOLS = frozenset(("cxx",))
"""What another machine compiles from a preprocessed source."""

GIGABIT = 1e9 / 8
"""Bytes a second."""

STEPS = (10, 30, 100, 300, 1000)
"""Slots at which people think of a fleet."""

MOST_SLOTS = 10_000


@dataclass(frozen=True, slots=True)
class Costs:
    """What sending a compilation costs, for each CPU second that it takes in one piece.

    `here` is what its preprocessing takes, which stays, and `there` what is left to compile: together more than one, as
    the text is read twice. `sent` and `received` are packed bytes on the wire. `waits` are the seconds of each exchange
    in which nobody works, whatever the compilation takes.
    """

    here: float
    there: float
    sent: float
    received: float
    waits: float


MEASURED = Costs(here=0.12, there=0.97, sent=130e3, received=5e3, waits=0.02)
"""Of real sources of PyTorch (bench/README.md, "Other machines"); `waits` is a guess for a network of one's own: four
round trips, and the time of a process to start."""


@dataclass(frozen=True, slots=True)
class Far:
    """Other machines: jobs that they take at once, and bytes a second that the wire from here carries each way."""

    slots: int
    bandwidth: float = GIGABIT
    costs: Costs = MEASURED


@dataclass(frozen=True, slots=True)
class RemoteResult:
    """What came of it, in seconds. `went` compilations were done elsewhere, `most` of them at once; `sent` is bytes.

    `bounds` are seconds below which no fleet of that kind gets, by what sets them: the cores here, the wire, the slots,
    and the longest chain of jobs.
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
        """What sets the highest bound."""
        return max(self.bounds, key=lambda name: self.bounds[name])


def simulate_remote(jobs: Sequence[TraceJob], cores: int, far: Far) -> RemoteResult:
    """Run the whole build on paper, on so many cores here and with the others' slots."""
    return _Run(jobs, cores, far).result()


@dataclass(slots=True)
class _Wire:
    """One direction of the wire, which all transfers share in equal parts; times are seconds.

    Each byte that every transfer has got moves `level` up by one: so one heap says which is through next.
    """

    bandwidth: float
    level: float = 0.0
    since: float = 0.0
    transfers: list[tuple[float, int]] = field(default_factory=list)

    def add(self, now: float, size: float, jid: int) -> None:
        self._move(now)
        heapq.heappush(self.transfers, (self.level + size, jid))

    def next(self) -> float:
        """When the next transfer is through."""
        if not self.transfers:
            return math.inf
        left = max(0.0, self.transfers[0][0] - self.level)
        return self.since + left * len(self.transfers) / self.bandwidth

    def take(self, now: float) -> int:
        """The job whose transfer is through now."""
        self._move(now)
        end, jid = heapq.heappop(self.transfers)
        self.level = max(self.level, end)
        return jid

    def _move(self, now: float) -> None:
        if self.transfers:
            self.level += (now - self.since) * self.bandwidth / len(self.transfers)
        self.since = now


class _Run:
    """One build from its first job to its last."""

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

    # -- the way of a job --------------------------------------------------------------------------------------

    def _fill(self) -> None:
        """Give every free core work: what goes away first, as long as a slot is free; then what stays."""
        while self._busy < self._cores and (self._here or self._may_go):
            free = self._gone < self._far.slots
            if self._may_go and (not self._here or (free and self._may_go[0] < self._here[0])):
                jid = heapq.heappop(self._may_go)[1]
                self._send(jid) if free else self._work(self._jobs[jid].seconds, jid, self._ended_here)
            else:
                jid = heapq.heappop(self._here)[1]
                self._work(self._jobs[jid].seconds, jid, self._ended_here)

    def _send(self, jid: int) -> None:
        """The slot is taken before the source is preprocessed, as distcc and icecream do."""
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

    # -- what there is to say of it ----------------------------------------------------------------------------

    def _longest_chains(self) -> list[float]:
        """For each job its seconds, and those of the longest chain of jobs that waits for it."""
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
