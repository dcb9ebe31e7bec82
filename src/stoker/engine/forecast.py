"""Keeps up with a build what its plans still hold, and tells the time left as a band.

Wires plans, expectations and the build's events to `decide.forecast`. Unaware of processes, of the journal's file and
of screens.
"""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import islice, pairwise

from stoker.decide.curves import Curve
from stoker.decide.eta import estimate
from stoker.decide.forecast import Group, forecast
from stoker.decide.pace import Pace, Source, Young
from stoker.engine.remaining import Kind, Remaining, View
from stoker.engine.work_clock import WorkClock
from stoker.model import events as ev
from stoker.model.state import BuildState, Scheduler
from stoker.model.tool import Tool
from stoker.sense.plan import Plan
from stoker.sense.plan_graph import UNKNOWN, PlanGraph

Expect = Callable[[None, str, Tool, tuple[str, ...]], Curve]
Unseen = Callable[[str, Tool, tuple[str, ...], float], None]
"""What is expected of a job without a number, by its output, its tool and its arguments. The `source` of its curve
begins with "history" if the job ran in an earlier build."""

ASK_PER_LOOK = 100
"""Expectations asked for at one look: 0.1 ms each, to look into the history."""

ASK_IN_VAIN, ASK_FEW = 100, 10
"""After so many answers without any history, only so many are asked at a look."""

MAX_LATE, LATE_SECONDS = 20_000, 270.0
"""Ends remembered for a plan that is still being made, and for how long: PLAN_TIMEOUT and a little."""

MEMORY_SHARE = 0.8
"""Share of the memory that the policy is taken to keep in use, until memory has bound in this build."""

SHARE_STEP = 0.05
"""How much one look changes that share where memory binds: it is then measured over about two minutes."""

LASTING = 0.5
"""Share of the machine's unrest over one minute that is taken to last for the rest of the build."""

CROWDED = 0.25
"""Share of what others take from the machine (as a logarithm) that may as well come back."""

BINDING = 0.9
"""Memory is taken to bind where jobs wait on deck and fewer than this share of the width run."""

MOST_SKEW = 0.7
"""Spread up to which a prior's mean is taken to lie above its middle, as that of a log-normal duration does."""

_RECENT = 50.0
_Running = Mapping[int, Mapping[int, float]]
"""By scheduler the ages of the running edges."""


class _Mean:
    """A mean over the last answers, roughly."""

    def __init__(self) -> None:
        self.value = 0.0
        self._count = 0.0

    def add(self, value: float) -> float:
        self._count = min(self._count + 1.0, _RECENT)
        self.value += (value - self.value) / self._count
        return self.value


class Forecast:
    """One build's time left. Tell it every event (`heard`) and every plan (`planned`)."""

    def __init__(self, expect: Expect | None = None) -> None:
        self._expect = expect
        self.on_unseen: Unseen = lambda _output, _tool, _argv, _seconds: None
        """Told of each job that ended well and was too short to be seen; again when a plan tells its command."""
        self._pace = Pace()
        self._clock = WorkClock()
        self._plans: dict[int, Remaining] = {}
        self._asking: dict[int, Iterator[int]] = {}
        self._edges: dict[int, int] = {}
        """Of jobs that are there, by their numbers: looked up in the graph once, and not at each look."""
        self._asked = self._remembered = 0
        self._priors: dict[str, _Mean] = {}
        self._held: dict[str, _Mean] = {}
        self._killed: set[int | str] = set()
        """Jobs that were killed in this attempt at the step, by their numbers and outputs: they run again."""
        self._broken_off: set[int] = set()
        """Schedulers that are gone and left something of their plans to the step's next attempt."""
        self._late: deque[tuple[float, ev.JobFinished]] = deque(maxlen=MAX_LATE)
        self._share = MEMORY_SHARE

    def ask_again(self) -> None:
        """What is expected of jobs has changed: what was learnt of it is forgotten, and learnt anew look by look."""
        self._priors.clear()
        self._held.clear()
        for sid, remaining in self._plans.items():
            remaining.ask_again()
            self._asking[sid] = _scattered(len(remaining.graph))

    # -- news --------------------------------------------------------------------------------------------------

    def planned(self, sid: int, plan: Plan) -> None:
        """A scheduler's plan has been made; it takes the place of an earlier one, and of what broke off before."""
        self._forget_broken_off()
        first = self._plans.pop(sid, None) is None
        self._edges.clear()
        if plan.graph is None:
            return
        remaining = self._plans[sid] = Remaining(plan.graph, self._pace.has_run)
        self._asking[sid] = _scattered(len(plan.graph))
        for tool, seconds in zip(plan.graph.tools, plan.graph.seconds, strict=True):
            if seconds != UNKNOWN:
                self._suppose(tool, seconds)
        for _, event in self._late:
            edge = plan.graph.find(event.output) if event.sid == sid else None
            if edge is not None:
                self._end(remaining, edge, event)
                if first:
                    self._tell_unseen(event, plan.graph, edge)

    def heard(self, events: Iterable[ev.Event], now: float) -> None:
        """What happened up to Unix time `now`; events that tell nothing of durations are passed over."""
        self._clock.advance(now)
        for event in events:
            if isinstance(event, ev.JobStarted):
                self._clock.start(event)
                self._met(event)
            elif isinstance(event, ev.JobMoved):
                self._clock.move(event)
            elif isinstance(event, ev.JobsExited):
                self._clock.rest(event.jids)
            elif isinstance(event, ev.JobFinished):
                self._finished(event, now)
            elif isinstance(event, ev.Sampled):
                self._clock.sample(event.jobs, event.machine.cpu_available)
            else:
                self._heard_of_attempt(event)

    def _heard_of_attempt(self, event: ev.Event) -> None:
        if isinstance(event, ev.SchedulerEnded):
            self._scheduler_ended(event.sid)
        elif isinstance(event, ev.JobKilled):
            self._put_back(event)
        elif isinstance(event, ev.WorkLost):
            self._work_lost()
        elif isinstance(event, ev.StepStarted):
            self._killed.clear()
            if event.attempt == 1:
                self._forget_broken_off()

    def _scheduler_ended(self, sid: int) -> None:
        self._clock.forget(sid)
        if sid in self._plans and self._plans[sid].broken_off:
            self._broken_off.add(sid)
        else:
            self._forget(sid)

    def _forget(self, sid: int) -> None:
        self._plans.pop(sid, None)
        self._asking.pop(sid, None)

    def _forget_broken_off(self) -> None:
        for sid in self._broken_off:
            self._forget(sid)
        self._broken_off.clear()

    def _put_back(self, event: ev.JobKilled) -> None:
        """A job was killed, and runs again with the step; its end may be told already, or may be told later."""
        self._killed |= {key for key in (event.jid, event.output) if key}
        for remaining in self._plans.values():
            edge = remaining.graph.find(event.output) if event.output else None
            if edge is not None:
                remaining.put_back(edge)

    def _work_lost(self) -> None:
        """What the schedulers of the attempt before had built is gone: all of their plans is still to be done."""
        for sid in self._broken_off:
            graph = self._plans[sid].graph
            self._plans[sid] = Remaining(graph, self._pace.has_run)
            self._asking[sid] = _scattered(len(graph))

    def _met(self, event: ev.JobStarted) -> None:
        """A job is there: what is expected of it is asked now, so that its end can be held against that."""
        self._edges.pop(event.jid, None)  # it may have learnt its name
        remaining, edge = self._planned(event.sid, event.jid, event.output)
        if remaining is not None and edge is not None:
            self._ask(remaining, edge)
            if event.state == "running":
                remaining.begin(edge)

    def _finished(self, event: ev.JobFinished, now: float) -> None:
        seconds = self._clock.end(event.jid, event.seconds)
        self._late.append((now, event))
        while self._late[0][0] < now - LATE_SECONDS:
            self._late.popleft()
        remaining, edge = self._planned(event.sid, event.jid, event.output)
        if event.jid is not None:
            self._edges.pop(event.jid, None)
        if remaining is None or edge is None:
            if event.outcome == "ok":
                self._pace.add(event.tool, event.output.rpartition("/")[0], seconds)
                if event.jid is None:
                    self.on_unseen(event.output, event.tool, (), event.seconds)
            return
        if event.outcome == "ok":
            self._learn(remaining, edge, seconds)
            self._tell_unseen(event, remaining.graph, edge)
        self._end(remaining, edge, event)

    def _end(self, remaining: Remaining, edge: int, event: ev.JobFinished) -> None:
        """The edge has ended, unless it was killed."""
        if event.outcome != "ok" and not self._killed.isdisjoint({event.jid, event.output}):
            remaining.put_back(edge)
        else:
            remaining.finish(edge)

    def _planned(self, sid: int, jid: int | None, output: str) -> tuple[Remaining | None, int | None]:
        """The plan of a job's scheduler and the job's edge in it, as far as there are such."""
        remaining = self._plans.get(sid)
        if remaining is None:
            return None, None
        edge = self._edges.get(jid) if jid is not None else None
        if edge is None:
            edge = remaining.graph.find(output)
            if edge is not None and jid is not None:
                self._edges[jid] = edge
        return remaining, edge

    def _tell_unseen(self, event: ev.JobFinished, graph: PlanGraph, edge: int) -> None:
        if event.jid is None and event.outcome == "ok":
            self.on_unseen(event.output, graph.tools[edge], _argv(graph, edge), event.seconds)

    def _learn(self, remaining: Remaining, edge: int, seconds: float) -> None:
        tool = remaining.graph.tools[edge]
        self._pace.add(tool, remaining.folder(edge), seconds)
        source, expected = remaining.expected(edge)
        if source != "class":
            self._pace.compare(source, tool, expected, seconds)

    # -- the time left -----------------------------------------------------------------------------------------

    def look(self, state: BuildState, now: float) -> ev.Estimated | None:
        """The time left at Unix time `now`, None while nothing is known to base it on.

        Without the graph of what runs at the top of the build it is told from counts and percentages. Between two
        attempts at a step it is what the first has left, and what was killed in it.
        """
        self._clock.advance(now)
        live = [s for s in state.schedulers.values() if s.ended is None]
        tops = [s for s in live if s.parent is None]
        unknown = not tops or any(s.sid not in self._plans for s in tops)
        if unknown and not self._broken_off:
            return estimate(state, now)
        self._ask_some()
        self._pace.speed = self._clock.speed
        if not self._pace.knows(tool for remaining in self._plans.values() for tool in remaining.tools):
            return None
        return self._told(state, live, tops)

    def _told(self, state: BuildState, live: Sequence[Scheduler], tops: Sequence[Scheduler]) -> ev.Estimated:
        running, others = self._running(state)
        young = [y for sid, edges in running.items() for y in self._plans[sid].young(edges)]
        self._pace.watch([*young, *(Young(tool, "", age) for tool, age in others)])
        held = {tool: mean.value for tool, mean in self._held.items()}
        view = View(self._pace, held)
        groups: list[Group] = []
        for sid, edges in running.items():
            groups += self._plans[sid].groups(view, edges, len(groups))
        groups += [Group((view.running(Kind("class", tool, 0), "", 0.0, age, 0.0),), ()) for tool, age in others]
        width = self._width(state, tops)
        in_use = sum(self._plans[sid].held(edge, held) for sid, edges in running.items() for edge in edges)
        binds = len(others) + sum(map(len, running.values())) < BINDING * width and _someone_waits(state)
        memory = self._memory(state, in_use if binds else None)
        unrest = math.hypot(LASTING * self._clock.unrest, CROWDED * math.log(self._clock.speed))
        found = forecast(groups, view.doubts, width, memory, unrest)
        share = self._share_left(live) / self._clock.speed
        return ev.Estimated(*(round(share * t, 1) for t in (found.seconds, found.low, found.high)))

    def _running(self, state: BuildState) -> tuple[_Running, list[tuple[Tool, float]]]:
        """The running edges and their ages; and tool and age of running jobs that no plan knows."""
        found: dict[int, dict[int, float]] = {sid: {} for sid in self._plans}
        others: list[tuple[Tool, float]] = []
        for job in state.jobs.values():
            self._clock.adopt(job)
            if job.state == "on_deck":
                continue
            remaining, edge = self._planned(job.sid, job.jid, job.output)
            if remaining is None or edge is None:
                others.append((job.tool, self._clock.age(job.jid)))
            else:
                remaining.begin(edge)
                found[job.sid][edge] = self._clock.age(job.jid)
        return found, others

    def _share_left(self, live: Iterable[Scheduler]) -> float:
        """How much of what the plans hold is still to be done: ninja's own total falls as restat rules prune."""
        planned = told = 0
        for scheduler in live:
            remaining, plan = self._plans.get(scheduler.sid), scheduler.plan
            if remaining is not None and plan is not None and plan.source == "status" and plan.total is not None:
                planned += remaining.left
                told += min(remaining.left, max(0, plan.total - scheduler.finished - scheduler.failed))
        return told / planned if planned else 1.0

    # -- the machine -------------------------------------------------------------------------------------------

    def _width(self, state: BuildState, tops: Iterable[Scheduler]) -> float:
        """How many jobs get a core of their own."""
        allowed = state.level.target or sum(s.width or math.inf for s in tops)
        return min(float(max(1, allowed)), self._clock.cores)

    def _memory(self, state: BuildState, in_use: float | None) -> float:
        """Bytes that jobs can hold on average where memory binds; `in_use`: those that they hold now, if it does."""
        if state.machine is None or not state.level.guarded:
            return math.inf
        room = state.machine.memory_available + state.build_rss - state.memory_reserve
        room = max(room, state.machine.memory_budget // 10, 1)
        if in_use:
            self._share += SHARE_STEP * (min(1.0, in_use / room) - self._share)
        return self._share * room

    # -- expectations ------------------------------------------------------------------------------------------

    def _ask_some(self) -> None:
        """Learn what is expected of some more of the edges."""
        in_vain = self._asked >= ASK_IN_VAIN and not self._remembered
        for sid, remaining in self._plans.items():
            for edge in islice(self._asking[sid], ASK_FEW if in_vain else ASK_PER_LOOK):
                self._ask(remaining, edge)

    def _ask(self, remaining: Remaining, edge: int) -> None:
        if self._expect is not None and remaining.may_ask(edge):
            graph = remaining.graph
            curve = self._expect(None, graph.output(edge), graph.tools[edge], _argv(graph, edge))
            self._answered(remaining, edge, curve)

    def _answered(self, remaining: Remaining, edge: int, curve: Curve) -> None:
        tool, seconds = remaining.graph.tools[edge], curve.duration
        held = _memory_time(curve) / seconds if seconds > 0 else curve.peak
        self._asked += 1
        self._held.setdefault(tool, _Mean()).add(held)
        if curve.source.startswith("history"):
            self._remembered += 1
            source: Source = "history" if curve.source == "history" else "other flags"
            remaining.expect(edge, source, seconds, held)
            self._suppose(tool, seconds)
        else:
            self._suppose(tool, seconds * math.exp(min(curve.time_spread, MOST_SKEW) ** 2 / 2))

    def _suppose(self, tool: Tool, seconds: float) -> None:
        """What is known of some jobs of a tool is supposed of those of which nothing is known."""
        self._pace.suppose(tool, self._priors.setdefault(tool, _Mean()).add(seconds))


def _argv(graph: PlanGraph, edge: int) -> tuple[str, ...]:
    """A command line like the edge's own."""
    command = graph.command(edge)
    return ("/bin/sh", "-c", command) if command else ()


def _someone_waits(state: BuildState) -> bool:
    return any(job.state == "on_deck" for job in state.jobs.values())


def _memory_time(curve: Curve) -> float:
    """Bytes times seconds over a whole life."""
    return sum((b.age - a.age) * (a.size + b.size) / 2 for a, b in pairwise(curve.points))


def _scattered(count: int) -> Iterator[int]:
    """All numbers below `count`, each once, so that the first ones come from everywhere."""
    step = max(1, round(count * 0.618))
    while math.gcd(step, count) > 1:
        step += 1
    return (i * step % count for i in range(count))
