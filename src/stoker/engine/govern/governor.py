"""Asks the policy at every birth, death and look what to do, and has the gate do it.

Keeps the level and the pause. Unaware of how jobs are found, of the journal's file and of who watches.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from stoker.act import gate
from stoker.act.tree import Processes, shows_stop
from stoker.contract.process import Key
from stoker.decide.memory.alert import is_sudden, reading_pause
from stoker.decide.memory.ramdisk_growth import SeenRamDisk
from stoker.decide.policy.decide import level_of, look, spare_places
from stoker.decide.policy.snapshot import Decision, View
from stoker.decide.policy.thresholds import Thresholds
from stoker.decide.policy.waits import NO_WAITS
from stoker.engine.govern.hosted_gate import GuestHolder, without_starting
from stoker.engine.govern.jobserver import Lender
from stoker.engine.govern.neighbours import NeighbourWatch
from stoker.engine.govern.promised import Promised
from stoker.engine.govern.waiting import reasons_told
from stoker.engine.jobs.deck import Birth, Deck, Expected, Member
from stoker.engine.jobs.newborn import Clocks, by_age, member_of
from stoker.model import events as ev
from stoker.model import state as state_of
from stoker.model.samples import MachineSample
from stoker.model.state import BuildState
from stoker.model.tool import Tool
from stoker.sense.machine.cgroup import MemoryLimit
from stoker.sense.proc.jobs import JobUse

TIGHT = 0.5
"""Share of the budget from which on memory is in play: peaks of what runs, or what is in use."""

MAX_ROUNDS = 200
"""Rounds of asking and acting at one look; more than any machine has jobs to freeze one by one."""

STUCK_LOOKS = 3
"""Looks at a job that should run and is stopped, until it is set going."""

GREW = 0.1
"""CPU seconds after which a job that should be stopped was let go by somebody else, and is taken to run."""


class Governor:
    """The live jobs of a build, the level, and what is done about both."""

    def __init__(self, expected: Expected, memory: Callable[[], MemoryLimit], state: BuildState) -> None:
        self.deck = Deck(expected)
        self._expected = expected
        self._memory = memory
        level = state.level
        self.wanted: int | None = level.target if level.mode == "manual" else None
        self.paused: ev.Paused = level.paused
        self.guarded = level.guarded
        self.open = False
        """True when the build is being stopped: nothing is held any more."""
        self.cores, self.limit = 1.0, math.inf  # the limit of an automatic level, in this step
        self.thresholds = Thresholds()
        self._sample: MachineSample | None = None
        self._neighbours = NeighbourWatch()
        self._ramdisk = SeenRamDisk()
        self.dear = False
        """Whether a package builder such as pip runs above a scheduler: it starts anew when a job has been ended."""
        self.alone: frozenset[str] = frozenset()
        """Outputs whose jobs run first and alone: they were killed, and nobody knows what they need."""
        self.first: frozenset[str] = frozenset()
        """Outputs whose jobs run first, beside what fits: they were killed, and it is known what they need."""
        self.one_by_one = False
        """Whether one job runs at a time, whatever the level: nothing else has helped."""
        self.on_kill: Callable[[Member, ev.KilledBy], None] = lambda _member, _by: None
        """Told of each job that is killed on purpose, before it is, and who kills it."""
        self.lender: Lender | None = None
        self.guests = GuestHolder()
        self.version = 0
        """Grows with every change to who is stopped."""
        self._seen = MemoryLimit("", 1, 0)
        self._told: ev.LevelSet | None = None
        self._adopted = level.target is not None
        self._last_freeze = self._last_shed = -math.inf
        self._fresh: set[int] = set()
        self._promised = Promised()
        self._waits = NO_WAITS

    def set_out(self, jobs: int | None) -> None:
        """The level a person gave at the start; what was set since then counts more."""
        if self._told is None and not self._adopted:
            self.wanted = jobs

    # -- facts -------------------------------------------------------------------------------------------------

    def receive(self, births: Sequence[Birth], now: float) -> list[ev.Event]:
        """Jobs that were not known: decide about them, hold those that may not run. `now` is Unix time."""
        if not births:
            return []
        clocks = Clocks.now()
        members = [self._member(birth, now, clocks) for birth in by_age(births)]
        self._fresh = {m.jid for m in members}
        places = self._has_places()
        if not places:
            self._hold_fresh(members)
        decided = self.step() if places or self.tight() else []
        self._hold_fresh(members)
        self._fresh = set()
        before = {b.jid: b.before for b in births}
        return [*(e for m in members for e in self._announced(m, before[m.jid])), *decided]

    def _member(self, birth: Birth, now: float, clocks: Clocks) -> Member:
        alone = birth.job.output in self.alone
        member = member_of(birth, now, clocks, held=not self.open, alone=alone)
        member.first = birth.job.output in self.first
        if not member.fixed:
            member.pids.update(gate.raise_oom_score([member.job.pid]))
        if birth.before is not None or (member.state == "running" and not member.fixed):
            self._expected.adopted(birth.jid)
        self.deck.add(member)
        self.version += 1
        return member

    def _has_places(self) -> bool:
        return self.paused == "no" and len(self.deck.having("running")) < self.level

    def _hold_fresh(self, members: Iterable[Member]) -> None:
        """Stop the newborn that are still on deck. Those of an earlier engine are stopped already."""
        for m in members:
            if m.state == "on_deck" and not m.ended:
                # Only ninja's jobs have a group that holds all they may have forked by now.
                m.whole = not m.target.leads
                m.ended = not (all(gate.freeze([m.target])) if m.whole else gate.hold(m.target))

    def _announced(self, m: Member, before: state_of.Job | None) -> list[ev.Event]:
        if before is None:
            return [self._started(m)]
        return [] if before.state == m.state else [self.told(m)]

    def _started(self, m: Member) -> ev.JobStarted:
        job = m.job
        expected = self.deck.news(m) if m.counts else None
        started = round(job.started, 2)
        return ev.JobStarted(
            m.jid, m.sid, job.pid, job.label, job.tool, started, m.state, expected, start_ticks=job.start_ticks
        )

    def observe(self, uses: Mapping[int, JobUse]) -> list[ev.Event]:
        """What the jobs use now, by jid; the same object as before says that nothing of a stopped job was read anew.

        A job that is not in the state it was put into is seen to.
        """
        events: list[ev.Event] = []
        for jid, use in uses.items():
            member = self.deck.get(jid)
            if member is not None and use is not member.seen:
                grew = use.cpu_seconds - member.age
                if not (member.fixed or member.pids.issuperset(use.pids)):
                    gate.raise_oom_score(pid for pid in use.pids if pid not in member.pids)
                member.use(use)
                self._expected.sample(jid, use.cpu_seconds, use.rss, use.phase)
                self.guests.see(member, use)
                if member.state != "running" and use.state == "running" and member.counts:
                    events += self._escaped(member, grew)
                elif member.state == "running" and use.state == "frozen" and member.counts:
                    events += self._stuck(member)
                elif member.counts and (use.starting or use.guests) and member.state == "on_deck":
                    events += self._begun(member)
        return events

    def _begun(self, member: Member) -> list[ev.Event]:
        """Before it was stopped it asked a cache's server for its compilation, which runs; or begun to start one."""
        member.ended = not all(gate.thaw([member.target]))
        return [] if member.ended else [self.moved(member, "running")]

    def _escaped(self, member: Member, grew: float) -> list[ev.Event]:
        """Something of it forked while it was being stopped, or the supervisor let it go while we were away.

        Or it was measured before it was stopped: then there is nothing to do.
        """
        if self.open:  # whoever ends the build has set it going, or it could not act on the signal
            return [self.moved(member, "running")]
        key, lives = member.job.key, member.target.lives
        if not lives or shows_stop(key) or Processes().is_stopped(key):
            return []
        if grew < GREW:
            member.whole = True
            gate.freeze([member.target])
            return []
        return [self.moved(member, "running")]

    def machine(self, sample: MachineSample) -> None:
        """What the machine has for the build now."""
        self.cores = self._expected.cores = sample.cpu_available
        self._sample = sample
        self._ramdisk = self._ramdisk.after(sample.ramdisk, time.monotonic(), busy=bool(self.deck.having("running")))

    def rename(self, jid: int, output: str, tool: Tool) -> Member | None:
        """What a job makes has been learnt."""
        member = self.deck.rename(jid, output, tool)
        if member is not None:
            member.alone = member.alone or output in self.alone
            member.first = member.first or output in self.first
        return member

    def set_carriers(self, nested: Mapping[Key, Key]) -> list[ev.Event]:
        """The jobs in which schedulers run now, by those. One that was stopped goes on: its own jobs can be held."""
        self.deck.set_carriers(nested)
        stopped = [m for m in self.deck if m.carrier and m.state != "running" and not m.ended]
        if stopped:
            gate.thaw([m.target for m in stopped])
        return [self.moved(m, "running") for m in stopped]

    def exited(self, key: Key) -> None:
        """A job's first process has ended; its place is free although its end is not yet written down."""
        member = self.deck.by_key(key)
        if member is not None:
            gate.leave(member.target, member.pids)
            member.ended, member.ended_at = True, time.monotonic()
            member.rss = 0

    def gone(self, jid: int) -> None:
        """A job has vanished from the process table."""
        member = self.deck.remove(jid)
        if member is not None:
            gate.leave(member.target, member.pids)
            self.version += 1

    def _stuck(self, member: Member) -> list[ev.Event]:
        """It should run and is stopped, look after look: set it going, once. Whoever stops it again has a reason."""
        member.stuck += 1
        if member.stuck != STUCK_LOOKS:
            return []
        member.ended = not all(gate.thaw([member.target]))
        return [ev.Decided("governor", f"set {member.job.label} going", "something else had stopped it")]

    def finished(self, event: ev.JobFinished) -> ev.JobFinished:
        """A job's end has been told: learn from it. The time in which it was stopped is not time it took."""
        member = self.deck.settle(event.jid) if event.jid is not None else None
        if member is None or event.jid is None:
            return event
        seconds = round(max(0.0, event.seconds - member.stopped_for(time.monotonic())), 3)
        if event.outcome == "dropped":
            self._expected.lost(event.jid)
            return replace(event, seconds=seconds)
        ok = event.outcome != "failed"
        lesson = self._expected.finished(event.jid, event.output, event.tool, member.job.argv, ok, seconds)
        return replace(event, seconds=seconds, lesson=lesson)

    # -- deciding ----------------------------------------------------------------------------------------------

    @property
    def level(self) -> int:
        """How many jobs may run."""
        if self.one_by_one:
            return 1
        return max(1, int(self._slots)) if self.wanted is None else self.wanted

    @property
    def _slots(self) -> float:
        """How many jobs may run at once while the level is automatic."""
        return min(self.cores + spare_places(self.cores), self.limit, self.thresholds.level or math.inf)

    def view(self) -> View:
        """The world as a decision sees it."""
        memory = self._seen = self._memory()
        stall = self._sample.pressure_memory if self._sample is not None else None
        lent = self.lender.used if self.lender is not None else 0
        return View(
            budget=memory.limit,
            available=memory.available,
            reserve=self.thresholds.reserve_of(memory.limit),
            floor=self.thresholds.floor_of(memory.limit),
            cpu_slots=max(1.0, self._slots - lent),
            level=1 if self.one_by_one else None if self.wanted is None else max(1, self.wanted - lent),
            paused=self.paused,
            pressure=stall.some if stall is not None else None,
            pressure_own=stall is not None and stall.own,
            running=self.deck.live(self.deck.having("running")),
            frozen=self.deck.live(self.deck.having("frozen")),
            candidates=self.deck.candidates(),
            last_freeze=self._last_freeze,
            last_shed=self._last_shed,
            guarded=self.guarded,
            ramdisk=self._ramdisk,
            pressure_line=self._pressure_line,
            spare=max(0, int(self._slots) - int(self.cores)),
            lent=lent,
            dear=self.dear,
        )

    @property
    def _pressure_line(self) -> float:
        return math.inf if self.thresholds.pressure is None else self.thresholds.pressure

    def step(self) -> list[ev.Event]:
        """Ask and act until nothing more is decided, reading memory anew each time."""
        if self.open:
            self.guests.settle(())
            return []
        events: list[ev.Event] = []
        for _ in range(MAX_ROUNDS):
            view = self.view()
            decided, self._waits = look(view, time.monotonic())
            decisions = without_starting(decided, self.deck)
            self._signal(decisions)
            for decision in decisions:
                events += self._carry_out(decision)
            if self._settled(view, decisions):
                break
        self.guests.settle(self.deck)
        self._lend()
        return events

    def _lend(self) -> None:
        """Slots are spare only while nobody on deck wants them."""
        if self.lender is not None:
            spare = self.level - len(self.deck.having("running")) - self.lender.used
            wanted = self.paused != "no" or self.deck.having("on_deck") or self.deck.having("frozen")
            self.lender.offer(0 if spare <= 0 or wanted or self.tight() else spare)

    def _settled(self, view: View, decisions: tuple[Decision, ...]) -> bool:
        """Whether asking again could bring nothing: only admissions, and no place or nobody left."""
        if any(d.action not in ("admit", "hold") for d in decisions):
            return False
        admitted = sum(d.action == "admit" for d in decisions)
        full = len(view.running) + admitted >= level_of(view)
        return admitted == 0 or full or admitted == len(view.candidates)

    def _signal(self, decisions: Iterable[Decision]) -> None:
        """Stop, or set going, all at once whom the decisions name: a pause must not take one scan for each job."""
        acts = {"freeze": gate.freeze, "thaw": gate.thaw}
        for action, act in acts.items():
            members = [m for d in decisions if d.action == action and (m := self.deck.get(d.jid)) and not m.ended]
            for member, done in zip(members, act([m.target for m in members]) if members else (), strict=True):
                member.ended = not done

    def _carry_out(self, decision: Decision) -> list[ev.Event]:
        member = self.deck.get(decision.jid)
        if member is None or member.ended:
            return []
        if decision.action == "hold":
            member.held, member.candidate = True, None
            return [self._decided(member, decision)]
        acts = {"admit": self._admit, "freeze": self._freeze, "thaw": self._thaw, "shed": self._shed}
        return acts[decision.action](member, decision)

    def _admit(self, member: Member, decision: Decision) -> list[ev.Event]:
        told: list[ev.Event] = [self._decided(member, decision)] if member.held or self.tight() else []
        member.admitted, member.early = time.monotonic(), decision.early
        self.deck.pass_over(member)
        if member.jid in self._fresh:  # it may not even have been stopped, and its start is not written down yet
            self._release(member)
            self._move(member, "running")
            return told
        if not self._release(member):
            return []
        return [*told, self.moved(member, "running")]

    def _release(self, member: Member) -> bool:
        # What it had forked when it was stopped may have missed its score.
        member.pids.update(gate.raise_oom_score([member.job.pid]))
        member.ended = not (all(gate.thaw([member.target])) if member.whole else gate.release(member.target))
        return not member.ended

    def _freeze(self, member: Member, decision: Decision) -> list[ev.Event]:
        member.by_word, member.by_person = decision.by_word, False
        if decision.by_word:
            return [self.moved(member, "frozen")]
        self._last_freeze = time.monotonic()
        return [self._decided(member, decision), self.moved(member, "frozen")]

    def _thaw(self, member: Member, decision: Decision) -> list[ev.Event]:
        told: list[ev.Event] = [] if member.by_word else [self._decided(member, decision)]
        member.by_word = False
        return [*told, self.moved(member, "running")]

    def _shed(self, member: Member, decision: Decision) -> list[ev.Event]:
        self._last_shed = time.monotonic()
        return [self.kill(member, "shed", why=decision.why), self._decided(member, decision)]

    def kill(self, member: Member, by: ev.KilledBy, *, who: str = "", why: str = "") -> ev.JobKilled:
        """Kill a job on purpose. The event tells it by its number, since what it makes may not be known yet."""
        self.on_kill(member, by)
        gate.kill(member.target)
        member.ended = True
        return ev.JobKilled(member.job.output, by, member.peak_rss, member.jid, who, why)

    def moved(self, member: Member, state: ev.JobState) -> ev.JobMoved:
        """Note where a job is now, and tell."""
        self._move(member, state)
        return self.told(member)

    def _move(self, member: Member, state: ev.JobState) -> None:
        member.move(state, time.monotonic())
        self.version += 1

    def told(self, member: Member) -> ev.JobMoved:
        """Where a job is, by whose word, and what is expected of it now."""
        by: ev.MovedBy = "person" if member.by_person else "word" if member.by_word else ""
        return ev.JobMoved(member.jid, member.state, self.deck.news(member), by, member.alone, member.alone_by)

    def _decided(self, member: Member, decision: Decision) -> ev.Decided:
        return ev.Decided("governor", f"{decision.action} {member.job.label}", decision.why)

    def let_join(self, members: Iterable[Member]) -> list[ev.Event]:
        """These need not run alone any more: the others go on with them."""
        freed = list(members)
        for member in freed:
            member.alone, member.alone_by, member.candidate = False, "", None
        return [self.told(member) for member in freed]

    def drop(self, sid: int, failed: str, why: str) -> tuple[list[int], list[ev.Event]]:
        """The scheduler will start nothing more, since `failed` has: end what it has started only for our sake.

        Gives their numbers, and events.
        """
        waiting = self.deck.too_many(sid, failed)
        for m in waiting:
            gate.kill(m.target)
            m.ended = True
        if not waiting:
            return [], []
        self.version += 1
        return [m.jid for m in waiting], [ev.Decided("governor", f"drop {len(waiting)} jobs on deck", why)]

    def promised(self, sample: ev.Sampled) -> ev.Sampled:
        """The sample with the most that running and frozen jobs may hold together, and what is kept free of that."""
        most = self._promised.most(self.view, self.version, time.monotonic(), tight=self.tight())
        reserve, growth = self.thresholds.reserve_of(self._seen.limit), self._ramdisk.growth
        return replace(sample, promised=most, reserve=round(reserve + growth), ramdisk_reserve=round(growth))

    def tight(self) -> bool:
        """Whether memory is in play, by what was read of it last: then it is looked at more often."""
        line = TIGHT * self._seen.limit
        if self._seen.used > line or self.deck.having("frozen"):
            return True
        return sum(max(self.deck.curve(m).peak, m.rss) for m in self.deck.having("running")) > line

    def stall_told(self) -> list[ev.Noticed]:
        """That others stall on memory, if that is news; the line at which it is a stall is the one for starts."""
        if self._sample is None:
            return []
        reserve = self.thresholds.reserve_of(self._seen.limit)
        return self._neighbours.look(self._sample, reserve, self._pressure_line, time.monotonic())

    def waits_told(self) -> list[ev.JobsWaiting]:
        """Why those wait that are on deck or frozen, by the last decision, as far as that is news."""
        return [] if self.open else reasons_told(self.deck, self._waits)

    def reading_pause(self) -> float:
        """Seconds after which to ask whether memory is `falling`; infinite while nothing runs that could take it."""
        running = len(self.deck.having("running"))
        working = min(running, math.ceil(self.cores))
        return reading_pause(self._seen.available, working) if running else math.inf

    def falling(self) -> bool:
        """Whether memory, read anew, has fallen so fast that jobs must be measured now."""
        return is_sudden(self._seen.available, self._memory().available)

    def level_told(self) -> list[ev.Event]:
        """The level, if it is not what was told last."""
        before = self._told
        # One at a time is no person's number: an engine that takes over would keep it for all that follows.
        by_hand = self.wanted is not None and not self.one_by_one
        self._told = ev.LevelSet("manual" if by_hand else "auto", self.level, self.paused, self.guarded)
        return [] if self._told == before else [self._told]
