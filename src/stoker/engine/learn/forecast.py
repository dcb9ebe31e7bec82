"""Tracks which jobs of the plans are still left, and estimates the time left.

Connects plans, expectations and the build's events to `decide.time_left`. It learns from events alone, so a successor
engine learns the same from the journal. Unaware of processes, of the journal's file and of screens.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from itertools import islice
from types import MappingProxyType
from typing import NamedTuple

from stoker.decide.time_left.durations import Durations, ExpectedJob, RunSoFar, Took, expected_job, weight
from stoker.decide.time_left.estimate import Left, counted, time_left, ways_to_end
from stoker.engine.learn.remaining import Remaining, SourceKey, source_of
from stoker.model import events as ev
from stoker.model.killed import step_runs_again
from stoker.model.lessons import Stated
from stoker.model.state import BuildState, Job, Scheduler
from stoker.model.tool import Tool
from stoker.sense.ninja.plan import Plan
from stoker.sense.ninja.plan_graph import PlanGraph


class Foretold(NamedTuple):
    """Returns what is known of a job in advance: what was stated for it (or None), and the bytes that it holds on
    average."""

    stated: Stated | None
    held: float


Foretell = Callable[[str, Tool, tuple[str, ...]], Foretold]
Unseen = Callable[[str, Tool, tuple[str, ...], float], None]

LEARNT_FROM = (
    *(ev.BuildStarted, ev.StepStarted, ev.SchedulerStarted, ev.SchedulerEnded, ev.LevelSet),
    *(ev.JobFinished, ev.JobKilled, ev.FailureFound, ev.WorkLost, ev.RemoteSeen),
)
"""The events from which a successor engine learns what its predecessor knew."""

ASK_AT_ONCE = 200
"""Expectations requested in one go: 0.1 ms each, to query the history."""

MAX_LATE, LATE_SECONDS = 20_000, 270.0
"""Ends remembered for a plan in progress, and for how long: PLAN_TIMEOUT and a little."""

MAX_FAILED = 10_000
"""Failed jobs remembered of a scheduler, for a plan that comes later: that of a successor engine."""

MAX_SOURCES = 20_000
"""Files remembered that have been built."""

MEMORY_SHARE = 0.8
"""The share of the memory that the policy is assumed to keep in use."""

CRITICAL_SHARE = 0.8
"""The share of the remaining time from which the end depends on a chain of jobs: neither is known exactly."""

FULL_SHARE = 0.1
"""The share of the remaining work that counts as if it had run with all places in use: a generator that runs alone at
first says little about the rest. It counts as far as jobs have not waited for memory: where they have, that is why
places were empty, and the rest needs memory, too."""


NO_CPU: Mapping[int, float] = MappingProxyType({})


class _Sums(NamedTuple):
    """What was available and what was done while the build had other machines, or while it had lost them all.

    `places` are place-seconds: a build that is paused or between two schedulers has no places. `worked`: the seconds in
    which there were any; `spent`: those of ended jobs.
    """

    places: float = 0.0
    worked: float = 0.0
    spent: float = 0.0
    ended: int = 0


class _Places:
    """How many jobs might run at once, over time, and what came of it."""

    def __init__(self) -> None:
        self.now = 1.0
        """Jobs that might run if the build is not paused."""
        self.chosen = False
        """Whether schedulers start more jobs than may run, so that stoker chooses which of them run first."""
        self.alone = False
        """Whether it had other machines and has lost all of them. If one is listed again, as distcc does after a minute
        whatever has become of it, that counts only once it has compiled a job."""
        self._cores = 1.0
        self._level = math.inf
        self._slots = 0
        self._widths: dict[int, float] = {}
        self._paused = False
        self._since: float | None = None
        self._alone_since = 0.0
        self._apart = {True: _Sums(), False: _Sums()}
        """By `alone`."""

    def hear(self, event: ev.Event, now: float) -> None:
        """Take in an event that changes the number; ignore others."""
        if not isinstance(event, (ev.BuildStarted, ev.LevelSet, ev.RemoteSeen, ev.SchedulerStarted, ev.SchedulerEnded)):
            return
        self._apart[self.alone], self._since = self.sums(now), now
        if isinstance(event, ev.BuildStarted):
            self._cores = float(max(1, event.cores))
        elif isinstance(event, ev.LevelSet):
            self._level, self._paused = float(event.target), event.paused != "no"
        elif isinstance(event, ev.RemoteSeen):
            had, self._slots = self._slots, sum(engine.slots for engine in event.engines)
            if had and not self._slots and not self.alone:
                self.alone, self._alone_since = True, now
        elif isinstance(event, ev.SchedulerEnded):
            self._widths.pop(event.sid, None)
        elif event.parent is None:
            self._widths[event.sid] = float(event.width or math.inf)
        self._count()

    def end(self, event: ev.JobFinished, now: float) -> None:
        """Add a job that has run and ended."""
        if event.host and self.alone and self._slots:
            self._apart[True], self._since = self.sums(now), now
            self.alone = False
            self._count()
        sums, seconds = self._apart[self.alone], event.seconds
        if self.alone:
            seconds = self.within(seconds - event.elsewhere, now)
        self._apart[self.alone] = sums._replace(spent=sums.spent + seconds, ended=sums.ended + 1)

    def within(self, seconds: float, now: float) -> float:
        """Return how much of the last `seconds` counts: while the build is alone, only since it has been so."""
        return max(0.0, min(seconds, now - self._alone_since)) if self.alone else seconds

    def sums(self, now: float) -> _Sums:
        """Return the sums up to Unix time `now`: of the time alone if the build is so now, otherwise of the other."""
        sums = self._apart[self.alone]
        if self._since is None or self._paused or not self._widths:
            return sums
        seconds = max(0.0, now - self._since)
        return sums._replace(places=sums.places + self.now * seconds, worked=sums.worked + seconds)

    def _count(self) -> None:
        if self._widths:
            slots = 0 if self.alone else self._slots
            places = min(self._level + slots, sum(self._widths.values()))
            self.now = max(1.0, self._cores if math.isinf(places) else places)
            self.chosen = sum(self._widths.values()) > self.now


class Forecast:
    """One build's time left. It receives every event (`heard`) and every plan (`planned`)."""

    def __init__(self, foretell: Foretell | None = None, learn_unseen: Unseen | None = None) -> None:
        """`learn_unseen` is called for each successful job that was too short to be seen; again when a plan has its
        command."""
        self._foretell = foretell
        self._learn_unseen = learn_unseen
        self._durations = Durations()
        self._places = _Places()
        self._spent = 0.0
        self._sources: dict[SourceKey, float] = {}
        self._plans: dict[int, Remaining] = {}
        self._graphless: set[int] = set()
        self._chains: dict[int, Sequence[float]] = {}
        """By scheduler, for each group of its plan the seconds of the longest chain of jobs that waits for it."""
        self.chains_version = 0
        """Increases whenever the results of `chain` may have changed."""
        self._first_seen: dict[int, float] = {}
        """When schedulers without a plan so far were first seen."""
        self._killed: set[int | str] = set()
        """Jobs that were killed in this attempt at the step, by their numbers and outputs: they run again."""
        self._live: set[int] = set()
        """Schedulers that plan and have not ended."""
        self._failed: dict[int, set[str]] = {}
        """By scheduler that runs, the outputs of the jobs that have failed."""
        self._late: deque[tuple[float, ev.JobFinished]] = deque(maxlen=MAX_LATE)

    def ask_again(self) -> None:
        """Expectations of jobs have changed: ask again, tick by tick."""
        for remaining in self._plans.values():
            remaining.ask_again()

    # -- news --------------------------------------------------------------------------------------------------

    def planned(self, sid: int, plan: Plan) -> None:
        """Take in a scheduler's plan; it replaces an earlier one, and what was left from an interrupted attempt."""
        self._forget_what_broke_off()
        self._chains.pop(sid, None)
        first = self._plans.pop(sid, None) is None
        if plan.graph is None:
            self._graphless.add(sid)
            return
        remaining = self._plan(sid, plan.graph)
        for _, event in self._late:
            edge = plan.graph.find(event.output) if event.sid == sid else None
            if edge is not None:
                self._end(remaining, edge, event)
                if first:
                    self._report_unseen(event, plan.graph, edge)
        for output in self._failed.get(sid, ()):
            edge = plan.graph.find(output)
            if edge is not None:
                remaining.fail(edge)

    def _plan(self, sid: int, graph: PlanGraph) -> Remaining:
        remaining = self._plans[sid] = Remaining(graph)
        for source, seconds in self._sources.items():
            remaining.compiled(source, seconds)
        return remaining

    def foretold(self, event: ev.JobFinished) -> ev.JobFinished:
        """Return the end of a job with its group and what was stated for it, for the journal."""
        remaining, edge = self._planned(event.sid, event.output)
        if remaining is None or edge is None:
            return event if event.outcome != "ok" else replace(event, stated=weight(event.tool, event.output))
        event = replace(event, group=remaining.graph.groups[edge])
        if event.outcome != "ok":
            return event
        stated = remaining.stated(edge)
        return replace(event, stated=replace(stated, amount=round(stated.amount, 4)))

    def recall(self, event: ev.JobFinished) -> None:
        """A job of a build that this one resumes had ended."""
        if event.outcome == "ok" and event.counted:
            self._learn(event)

    def heard(self, events: Iterable[ev.Event], now: float) -> None:
        """Take in what happened up to Unix time `now`; ignore events that say nothing about durations."""
        for event in events:
            self._places.hear(event, now)
            if isinstance(event, ev.JobFinished):
                self._finished(event, now)
            elif isinstance(event, ev.SchedulerStarted):
                self._live |= {event.sid} if event.tool != "make" else set()
            elif isinstance(event, ev.SchedulerEnded):
                self._scheduler_ended(event.sid)
            elif isinstance(event, ev.FailureFound):
                self._reported(event.output)
            elif isinstance(event, ev.JobKilled):
                self._put_back(event)
            elif isinstance(event, ev.WorkLost):
                for sid in self._broken_off():  # all of their plans is still to be done
                    self._plan(sid, self._plans[sid].graph).gone = True
            elif isinstance(event, ev.StepStarted):
                self._step_started(event.attempt)

    def _step_started(self, attempt: int) -> None:
        self._killed.clear()
        if attempt == 1:
            self._forget_what_broke_off()

    def _scheduler_ended(self, sid: int) -> None:
        self._live.discard(sid)
        self._failed.pop(sid, None)
        if sid in self._plans and self._plans[sid].broken_off:
            self._plans[sid].gone = True
        else:
            self._plans.pop(sid, None)

    def _broken_off(self) -> list[int]:
        """Note schedulers that are gone and left part of their plans to the step's next attempt."""
        return [sid for sid, remaining in self._plans.items() if remaining.gone]

    def _forget_what_broke_off(self) -> None:
        for sid in self._broken_off():
            del self._plans[sid]

    def _put_back(self, event: ev.JobKilled) -> None:
        """A job was killed, and runs again with the step; its end may already be recorded, or come later."""
        self._killed |= {key for key in (event.jid, event.output) if key}
        for failed in self._failed.values():
            failed.discard(event.output)
        for remaining in self._plans.values():
            edge = remaining.graph.find(event.output) if event.output else None
            if edge is not None:
                remaining.put_back(edge)

    def _finished(self, event: ev.JobFinished, now: float) -> None:
        self._late.append((now, event))
        while self._late[0][0] < now - LATE_SECONDS:
            self._late.popleft()
        if event.outcome != "dropped" and not self._was_killed(event):  # what was killed has to be done again
            self._spent += event.seconds
            self._places.end(event, now)
        if event.outcome == "ok" and event.counted:
            self._learn(event)
        remaining, edge = self._planned(event.sid, event.output)
        self._report_unseen(event, remaining.graph if remaining else None, edge)
        if remaining is not None and edge is not None:
            self._end(remaining, edge, event)
        if event.outcome == "failed" and not self._was_killed(event):
            self._remember_failed(event.sid, event.output)
        elif event.outcome == "ok":
            self._failed.get(event.sid, set()).discard(event.output)

    def _was_killed(self, event: ev.JobFinished) -> bool:
        return event.outcome != "ok" and not self._killed.isdisjoint({event.jid, event.output})

    def _reported(self, output: str) -> None:
        """The output reports that a job has failed. Only of a job that was too short to be seen does nothing else say
        so: of any other, text alone proves nothing."""
        fits = [sid for sid in self._live if self._may_be_of(sid, output)] if output not in self._killed else []
        if len(fits) != 1:
            return
        self._remember_failed(fits[0], output)
        remaining, edge = self._planned(fits[0], output)
        if remaining is not None and edge is not None:
            remaining.fail(edge)

    def _may_be_of(self, sid: int, output: str) -> bool:
        """Say whether a job that was never seen may belong to that scheduler."""
        remaining, edge = self._planned(sid, output)
        if remaining is None:
            return sid not in self._graphless
        return edge is not None and remaining.waits(edge)

    def _remember_failed(self, sid: int, output: str) -> None:
        failed = self._failed.setdefault(sid, set())
        if len(failed) < MAX_FAILED:
            failed.add(output)

    def blocked(self, state: BuildState) -> list[ev.JobsBlocked]:
        """Return how many jobs wait for failed ones, of each scheduler of which the state says otherwise."""
        if self._killed and not step_runs_again(state):
            for remaining in self._plans.values():
                remaining.give_up_killed()
        counts = {sid: remaining.blocked for sid, remaining in self._plans.items() if not remaining.gone}
        schedulers = state.schedulers
        return [
            ev.JobsBlocked(sid, count)
            for sid, count in counts.items()
            if sid in schedulers and schedulers[sid].blocked != count
        ]

    def _end(self, remaining: Remaining, edge: int, event: ev.JobFinished) -> None:
        """The edge has ended, well or not, unless it was killed."""
        if self._was_killed(event):
            remaining.put_back(edge)
        elif event.outcome in ("failed", "interrupted"):
            remaining.fail(edge)
        else:
            remaining.finish(edge)

    def _learn(self, event: ev.JobFinished) -> None:
        stated = event.stated or weight(event.tool, event.output)
        job = expected_job(stated, event.tool, event.output)
        seconds = max(0.0, event.seconds - event.elsewhere)
        cpu = event.cpu_seconds or 0.0 if not event.elsewhere else 0.0
        self._durations.add(job, seconds, elsewhere=bool(event.host), cpu=cpu)
        if stated.by == "size" and len(self._sources) < MAX_SOURCES:
            source = source_of(event.output, stated)
            self._sources[source] = seconds
            for remaining in self._plans.values():
                remaining.compiled(source, seconds)

    def _planned(self, sid: int, output: str) -> tuple[Remaining | None, int | None]:
        """Return the plan of a job's scheduler and the job's edge in it, if they exist."""
        remaining = self._plans.get(sid)
        return remaining, remaining.graph.find(output) if remaining is not None else None

    def _report_unseen(self, event: ev.JobFinished, graph: PlanGraph | None, edge: int | None) -> None:
        if self._learn_unseen is None or event.jid is not None or event.outcome != "ok":
            return
        if graph is None or edge is None:
            self._learn_unseen(event.output, event.tool, (), event.seconds)
        else:
            self._learn_unseen(event.output, graph.tools[edge], _argv(graph, edge), event.seconds)

    # -- the time left -----------------------------------------------------------------------------------------

    def look(self, state: BuildState, now: float, cpu: Mapping[int, float] = NO_CPU) -> ev.Estimated | None:
        """Estimate the time left at Unix time `now`; None while there is nothing to base it on. `cpu` holds the CPU
        seconds that running jobs have used, by their numbers.

        Without the graph of the top-level schedulers, it is estimated from counts and percentages. Between two attempts
        at a step it covers what the first has left, and what was killed in it.
        """
        live = [s for s in state.schedulers.values() if s.ended is None]
        tops = [s for s in live if s.parent is None]
        unknown = not tops or any(s.sid not in self._plans for s in tops)
        if unknown and not self._broken_off():
            return None if any(self._will_have_graph(s, now) for s in tops) else counted(state, now)
        self.ask()
        remembered = Took()
        for remaining in self._plans.values():
            remembered = remaining.with_remembered(remembered)
        self._durations.suppose(remembered)
        if not self._durations.scaled and any(r.needs_scale for r in self._plans.values()):
            return None
        return self._estimate(state, live, now, cpu)

    def _will_have_graph(self, scheduler: Scheduler, now: float) -> bool:
        """Say whether its plan is in progress; counting alone may be off by factors in the meantime."""
        sid = scheduler.sid
        if scheduler.tool != "ninja" or sid in self._plans or sid in self._graphless:
            return False
        return now - self._first_seen.setdefault(sid, now) < LATE_SECONDS

    def _estimate(
        self, state: BuildState, live: Sequence[Scheduler], now: float, cpu: Mapping[int, float]
    ) -> ev.Estimated:
        running, others = self._running(state, now, cpu)
        young = [
            (self._plans[sid].expected(edge), run) for sid, edges in running.items() for edge, run in edges.items()
        ]
        places, alone = self._places, self._places.alone
        self._durations.update([*young, *others], alone=alone)
        memory = self._memory(state)
        left, deps, firsts = Left(most=memory), list[Sequence[int]](), dict[int, int]()
        for sid, edges in running.items():
            remaining, first = self._plans[sid], len(deps)
            firsts[sid] = first
            remaining.add_to(left, edges, self._durations, first)
            deps += [[first + d for d in before] for before in remaining.graph.deps]
        for job, run in others:
            deps.append(())
            seen = self._durations.seen(job)
            left.add(job, len(deps) - 1, self._durations.remainder(job, run), 0.0, seen=seen)
        ages = [run.age for _, run in (*young, *others)]
        sums = places.sums(now)
        full = FULL_SHARE * (1.0 - _held_share(state, sums.ended)) * left.seconds
        used = 1.0
        if sums.places + full > 0.0:
            used = (sums.spent + sum(places.within(age, now) for age in ages) + full) / (sums.places + full)
        found = time_left(
            left,
            deps,
            width=max(1.0, used * places.now),
            done=self._spent + sum(ages),
            ended=sums.ended,
            rule=self._rule_of_three(len(others), sums),
            longest_first=places.chosen,
            memory=memory,
        )
        self._chains = _by_scheduler(ways_to_end(left, deps), firsts)
        self.chains_version += 1
        pruned, critical = self._share_left(live), self._critical(state, now, found.seconds)
        seconds, low, high = (round(pruned * t, 1) for t in (found.seconds, found.low, found.high))
        return ev.Estimated(seconds, low, high, critical)

    def _critical(self, state: BuildState, now: float, left: float) -> int | None:
        """Return the running job whose chain takes about as long as all that is `left`, in seconds; None if none does:
        the end then depends on how many jobs run at once, and on no job more than on another.

        Of several such jobs, the one that was it before stays it.
        """
        longest: dict[int, float] = {}
        for job in state.jobs.values():
            chain = self.chain(job.sid, job.output, self._age(job, now)) if job.state != "on_deck" else None
            if chain is not None:
                longest[job.jid] = chain
        found = [jid for jid, chain in longest.items() if chain >= CRITICAL_SHARE * left]
        before = state.estimate.critical if state.estimate is not None else None
        return before if before in found else max(found, key=lambda jid: longest[jid], default=None)

    def chain(self, sid: int, output: str, age: float = 0.0) -> float | None:
        """Return the seconds left of a job that has run for `age`, and of the longest chain of jobs that waits for it.

        None if no plan has the job, or there is no estimate yet.
        """
        remaining, edge = self._planned(sid, output)
        ways = self._chains.get(sid)
        if remaining is None or edge is None or ways is None:
            return None
        return self._durations.remainder(remaining.expected(edge), RunSoFar(age)) + ways[remaining.graph.groups[edge]]

    def _rule_of_three(self, others: int, sums: _Sums) -> float:
        """Return the seconds left if jobs continue to end as they did; 0 while none has."""
        left = others + sum(remaining.left for remaining in self._plans.values())
        return sums.worked * left / sums.ended if sums.ended else 0.0

    def _age(self, job: Job, now: float) -> float:
        """Return for how long it has worked at Unix time `now`; what has lost its host begins from scratch here."""
        return 0.0 if job.host and self._places.alone else job.age_here(now)

    def _running(
        self, state: BuildState, now: float, cpu: Mapping[int, float]
    ) -> tuple[dict[int, dict[int, RunSoFar]], list[tuple[ExpectedJob, RunSoFar]]]:
        """Return the running edges and what they have run by scheduler; and running jobs that are in no plan."""
        found: dict[int, dict[int, RunSoFar]] = {sid: {} for sid in self._plans}
        others: list[tuple[ExpectedJob, RunSoFar]] = []
        for job in state.jobs.values():
            if job.state == "on_deck":
                continue
            remaining, edge = self._planned(job.sid, job.output)
            run = RunSoFar(self._age(job, now), 0.0 if job.host or job.elsewhere else cpu.get(job.jid, 0.0))
            if remaining is not None and edge is not None:
                remaining.begin(edge)
                found[job.sid][edge] = run
            elif job.sid in self._plans or not self._is_below_job(state, job):
                expected = expected_job(weight(job.tool, job.output), job.tool, job.output)
                others.append((expected, run))
        return found, others

    def _is_below_job(self, state: BuildState, job: Job) -> bool:
        """Say whether it is part of another scheduler's job, which counts as a whole."""
        scheduler = state.schedulers.get(job.sid)
        return scheduler is not None and scheduler.parent is not None

    def _share_left(self, live: Iterable[Scheduler]) -> float:
        """Return how much of the plans is still to be done: ninja's own total falls as restat rules prune."""
        planned = counted_left = 0
        for scheduler in live:
            remaining, plan = self._plans.get(scheduler.sid), scheduler.plan
            if remaining is not None and plan is not None and plan.source == "status" and plan.total is not None:
                planned += remaining.left
                more = plan.total - scheduler.finished - scheduler.failed - remaining.blocked
                counted_left += min(remaining.left, max(0, more))
        return counted_left / planned if planned else 1.0

    def _memory(self, state: BuildState) -> float:
        """Return the bytes that jobs can hold on average."""
        elsewhere = state.remote.slots and not self._places.alone  # what another machine compiles holds memory there
        if state.machine is None or not state.level.guarded or elsewhere:
            return math.inf
        room = state.machine.memory_available + state.memory.build - state.memory.reserve
        return MEMORY_SHARE * max(room, state.machine.memory_budget // 10, 1)

    # -- expectations ------------------------------------------------------------------------------------------

    def ask(self) -> None:
        """Request the expectations of some more edges."""
        if self._foretell is None:
            return
        for remaining in self._plans.values():
            graph = remaining.graph
            for edge in islice(remaining.to_ask, ASK_AT_ONCE):
                stated, held = self._foretell(graph.output(edge), graph.tools[edge], _argv(graph, edge))
                if stated is None or (stated.by == "prior" and remaining.stated(edge).by == "log"):
                    stated = remaining.stated(edge)
                remaining.state(edge, stated, held)


def _held_share(state: BuildState, ended: int) -> float:
    """Return the share of the jobs so far that have waited for memory; `ended` of them are over."""
    return min(1.0, state.restraint.held / max(1, ended + len(state.jobs)))


def _by_scheduler(ways: Sequence[float], firsts: Mapping[int, int]) -> dict[int, Sequence[float]]:
    """Return the parts as one sequence; `firsts` says where each scheduler's begins, in this order."""
    ends = [*list(firsts.values())[1:], len(ways)]
    return {sid: ways[first:end] for (sid, first), end in zip(firsts.items(), ends, strict=True)}


def _argv(graph: PlanGraph, edge: int) -> tuple[str, ...]:
    """Return a command line like the edge's own."""
    command = graph.command(edge)
    return ("/bin/sh", "-c", command) if command else ()
