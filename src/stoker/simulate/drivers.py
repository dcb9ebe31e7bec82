"""The drivers of a simulation: stoker's own policy, and what people use without it.

Each driver sees a machine as it could see a real one, and acts on it. Knows no true curves.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import Protocol

from stoker.decide.memory.curves import Curve
from stoker.decide.policy.decide import decide, spare_places
from stoker.decide.policy.snapshot import Candidate, Decision, LiveJob, View
from stoker.decide.policy.thresholds import Thresholds
from stoker.simulate.oracle import Oracle
from stoker.simulate.simulated_machine import NEVER, Live, Machine

WINDOW_FACTOR, LEAST_WINDOW = 8, 64
"""Children that the scheduler may have, per core and as a minimum: a held one is a stopped shell of about a MiB."""

TICK = 1.0
"""Seconds between two ticks, if nothing happens in between."""

TIGHT_TICK = 0.25
"""The same while memory may run short, as defined by TIGHT."""

TIGHT = 0.5
"""Share of the memory above which it may run short: memory in use, or the peaks of running jobs."""

AHEAD_EVERY = 30.0
"""Seconds between two computations of the job chains in a first build; a live engine has them every few seconds."""

MAX_ROUNDS = 200
"""Maximum rounds of asking and acting in one tick; more than there are jobs to freeze one by one."""


def reserve_of(ram: float) -> float:
    """Return the bytes that are kept free of promises on a machine with `ram` bytes, as in live builds."""
    return Thresholds().reserve_of(ram)


class Driver(Protocol):
    """Decides on a simulated machine."""

    def tick(self, machine: Machine) -> float:
        """Act on the current state; return the time of the next tick unless something happens earlier."""


class Stoker:
    """The gate with stoker's own `decide`."""

    def __init__(self, oracle: Oracle, level: int | None = None) -> None:
        self._oracle = oracle
        self._level = level
        self._last = {"freeze": -NEVER, "shed": -NEVER}
        self._candidates: dict[int, Candidate] = {}
        self._expected: dict[int, Curve] = {}
        self._chains: Sequence[float] = ()
        self._looked_ahead = -NEVER
        self.asked = 0
        self.counts: Counter[str] = Counter()

    def tick(self, machine: Machine) -> float:
        """Ask and act until nothing more is decided, taking a new snapshot each time."""
        self._look_ahead(machine)
        self._learn(machine)
        for _ in range(MAX_ROUNDS):
            for live in machine.offer(max(LEAST_WINDOW, WINDOW_FACTOR * machine.cores)):
                self._candidates[live.jid] = self._candidate(machine, live)
            decisions = decide(self.view(machine), machine.now)
            self.asked += 1
            for decision in decisions:
                self._act(machine, decision)
            if all(d.action == "hold" for d in decisions) or self._full(machine, decisions):
                break
        return machine.now + (TIGHT_TICK if self._tight(machine) else TICK)

    def _tight(self, machine: Machine) -> bool:
        peaks = sum(self._expected[jid].peak for jid in machine.running if jid in self._expected)
        return bool(machine.frozen) or max(peaks, machine.used) > TIGHT * machine.ram

    def _full(self, machine: Machine, decisions: tuple[Decision, ...]) -> bool:
        """Whether nothing can follow: jobs were admitted up to the level, and nothing was frozen, thawed or shed."""
        level = self._level or machine.cores + spare_places(machine.cores)
        return len(machine.running) >= level and all(d.action in ("admit", "hold") for d in decisions)

    def view(self, machine: Machine) -> View:
        """Return what is visible of the machine from outside."""
        return View(
            budget=machine.ram,
            available=machine.ram - machine.used,
            reserve=reserve_of(machine.ram),
            floor=Thresholds().floor_of(machine.ram),
            cpu_slots=machine.cores + spare_places(machine.cores),
            spare=spare_places(machine.cores),
            level=self._level,
            running=tuple(self._see(machine, live) for live in machine.running.values()),
            frozen=tuple(self._see(machine, live) for live in machine.frozen.values()),
            candidates=tuple(self._candidates.values()),
            last_freeze=self._last["freeze"],
            last_shed=self._last["shed"],
            cores=machine.cores,
        )

    def _look_ahead(self, machine: Machine) -> None:
        """Find the job chains if there is a graph: once, or every AHEAD_EVERY seconds if expectations change."""
        due = self._oracle.learns and machine.now >= self._looked_ahead + AHEAD_EVERY
        if machine.has_graph and (due or not self._chains):
            self._looked_ahead = machine.now
            self._chains = machine.chains(lambda job: self._oracle.expect(job).duration)

    def _learn(self, machine: Machine) -> None:
        """Learn from ended jobs; in a first build that changes the expectations of waiting ones."""
        for live in machine.ended:
            self._oracle.ended(live.job)
            self._expected.pop(live.jid, None)
        if machine.ended and self._oracle.learns:
            self._candidates = {jid: self._candidate(machine, live) for jid, live in machine.deck.items()}
            self._expected.clear()
        machine.ended.clear()

    def _candidate(self, machine: Machine, live: Live) -> Candidate:
        return Candidate(
            live.jid,
            live.job.output,
            live.arrived,
            self._oracle.expect(live.job),
            live.passed_over,
            live.jid in machine.alone,
            live.held,
            live.job.width,
            chain=self._chains[live.jid] if self._chains else None,
        )

    def _see(self, machine: Machine, live: Live) -> LiveJob:
        rss, age = machine.size(live), machine.age(live)
        (live.growth.rest if live.frozen else live.growth.note)(age, rss)
        if rss > live.seen_peak:
            live.seen_peak, live.seen_peak_at = rss, age
        curve = self._expected.get(live.jid)
        if curve is None:
            curve = self._expected[live.jid] = self._oracle.expect(live.job)
        return LiveJob(
            live.jid,
            live.job.output,
            live.started,
            age,
            rss,
            curve,
            live.seen_peak,
            live.seen_peak_at,
            machine.phase(live),
            live.growth.rise,
            live.job.width,
            live.jid in machine.alone,
            early=live.early,
            stale=live.growth.stale,
        )

    def _act(self, machine: Machine, decision: Decision) -> None:
        jid, action = decision.jid, decision.action
        self.counts[action] += 1
        if action == "admit":
            live = machine.deck[jid]
            machine.start(live)
            live.early = decision.early
            del self._candidates[jid]
            self._pass_over(machine, live)
        elif action == "hold":
            machine.deck[jid].held = True
            self._candidates[jid] = replace(self._candidates[jid], held=True)
        elif action == "freeze":
            machine.running[jid].early = False
            machine.freeze(machine.running[jid])
        elif action == "thaw":
            machine.thaw(machine.frozen[jid])
        elif action == "shed":
            machine.kill(machine.frozen[jid], by_kernel=True)
        if action in self._last and not decision.by_word:
            self._last[action] = machine.now

    def _pass_over(self, machine: Machine, admitted: Live) -> None:
        chain = self._chains[admitted.jid] if self._chains else 0.0
        for jid, candidate in self._candidates.items():
            if candidate.chain is not None and candidate.chain < chain:
                continue
            if candidate.arrived > admitted.arrived or (candidate.arrived == admitted.arrived and jid > admitted.jid):
                return
            live = machine.deck[jid]
            live.passed_over += 1
            self._candidates[jid] = replace(candidate, passed_over=live.passed_over)


class Fixed:
    """Plain ninja with `-j N`: no gate, ignores memory."""

    def __init__(self, level: int) -> None:
        self._level = level

    def tick(self, machine: Machine) -> float:
        """Start everything in the window."""
        machine.ended.clear()
        machine.offer(self._level)
        for live in tuple(machine.deck.values()):
            machine.start(live)
        return NEVER


class PressureLimited:
    """A start limiter like BitBake's: at -j CORES, nothing new starts while memory pressure is above a threshold.

    The model of pressure: no task stalls while more than RECLAIM of the memory is free; below that the share of time
    stalled rises linearly to 100 % when nothing is free. On a machine without swap it comes late, as BitBake's manual
    says of real pressure.
    """

    RECLAIM = 0.10
    THRESHOLD = 10.0
    TICK = 1.0

    def tick(self, machine: Machine) -> float:
        """Start jobs up to the number of cores while the pressure allows."""
        machine.ended.clear()
        machine.offer(machine.cores)
        for live in tuple(machine.deck.values()):
            if machine.running and self._pressure(machine) > self.THRESHOLD:
                break
            machine.start(live)
        return machine.now + self.TICK if machine.deck else NEVER

    def _pressure(self, machine: Machine) -> float:
        free = (machine.ram - machine.used) / machine.ram
        return 100.0 * max(0.0, 1.0 - free / self.RECLAIM)


class LoadLimited:
    """Ninja with `-l N` at its own default level, two more than there are cores; ignores memory, as the real one does.

    It wakes when a job ends, and starts as many jobs as the last minute's load average is below the limit
    (CanRunMore in ninja's build.cc), always at least one. The load is Linux's: every 5 s it moves by 1 - exp(-5/60)
    towards the number of running jobs, so a minute of jobs may start before it reacts.
    """

    STEP, MINUTE = 5.0, 60.0

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._load = 0.0
        self._stepped = 0.0
        self._ran = 0

    def tick(self, machine: Machine) -> float:
        """Start as many jobs as load and level allow."""
        machine.ended.clear()
        self._follow(machine.now)
        room = min(machine.cores + 2 - len(machine.running), int(self._limit - self._load))
        machine.offer(machine.in_window + max(room, 0 if machine.running else 1))
        for live in tuple(machine.deck.values()):
            machine.start(live)
        self._ran = len(machine.running)
        return NEVER

    def _follow(self, now: float) -> None:
        """Update the load average; the same jobs have run since the last tick."""
        keep = math.exp(-self.STEP / self.MINUTE)
        while self._stepped + self.STEP <= now:
            self._stepped += self.STEP
            self._load = keep * self._load + (1 - keep) * self._ran


class KillAndRestart:
    """A governor with one way to change ninja's level: kill it with everything that runs, and restart it.

    It behaves like the best-known script of this kind: levels 32 16 8 4 2; used memory above THRESHOLD of the machine
    means one level down and PAUSE seconds of sleep; after UPSHIFT_AFTER finished jobs at a reduced level it goes up if
    the use, scaled by the ratio of the levels, stays below the threshold. It wakes when a job ends, or every TICK
    seconds. The script also deletes recently finished objects, good ones included; that is left out, because a
    simulated build might never end.
    """

    LEVELS = (32, 16, 8, 4, 2)
    THRESHOLD = 50 / 64
    PAUSE = 30.0
    UPSHIFT_AFTER = 5
    TICK = 15.0

    def __init__(self) -> None:
        self._index = 0
        self._finished = 0
        self._asleep_until = 0.0

    def tick(self, machine: Machine) -> float:
        """Start what the level allows; change the level by killing."""
        self._finished += len(machine.ended)
        machine.ended.clear()
        if machine.now < self._asleep_until:
            return self._asleep_until
        self._shift(machine)
        if machine.now < self._asleep_until:
            return self._asleep_until
        machine.offer(self.LEVELS[self._index])
        for live in tuple(machine.deck.values()):
            machine.start(live)
        return machine.now + self.TICK

    def _shift(self, machine: Machine) -> None:
        used, limit = machine.used, self.THRESHOLD * machine.ram
        if used > limit and self._index + 1 < len(self.LEVELS):
            self._restart(machine, self._index + 1, self.PAUSE)
        elif self._index > 0 and self._finished >= self.UPSHIFT_AFTER:
            ratio = self.LEVELS[self._index - 1] / self.LEVELS[self._index]
            if used * ratio < limit:
                self._restart(machine, self._index - 1, 0.0)

    def _restart(self, machine: Machine, index: int, pause: float) -> None:
        for live in sorted(machine.running.values(), key=lambda j: j.jid, reverse=True):
            machine.kill(live)
        machine.tally.restarts += 1
        self._index, self._finished = index, 0
        self._asleep_until = machine.now + pause
