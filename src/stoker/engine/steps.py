"""The steps of a build: what its specification says about each, and which of them the journal does not have yet.

Unaware of how a step is run and of what its jobs do.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

from stoker.contract.spec_file import BuildSpec
from stoker.contract.supervisor_files import Run
from stoker.decide.recovery.deaths import MAX_RERUNS
from stoker.model import events as ev
from stoker.model.attempts import redone_by
from stoker.model.state import BuildState


@dataclass(frozen=True, slots=True)
class Roots:
    """Where an observation starts: the supervisor (or, if that is gone, the build), and the step's own process and
    folder.

    `begun` is when that process started, in Unix seconds.
    """

    top: int
    build: int
    cwd: str
    command: tuple[str, ...]
    begun: float


class StepChange(NamedTuple):
    """An attempt that the journal does not have, and the one before it."""

    before: Run | None
    now: Run

    @property
    def new_step(self) -> bool:
        """Whether this is another step, rather than the same one again."""
        return self.before is not None and self.before.step != self.now.step


class Steps:
    """The contents of spec.json, by a step's number, from 1."""

    def __init__(self, spec: BuildSpec) -> None:
        self._spec = spec

    def limit(self, number: int) -> float:
        """Return how many jobs may run at once while the level is automatic; infinity if nothing is specified."""
        level = self._spec.step(number).level
        return math.inf if level is None else float(level)

    def retries(self, number: int) -> int:
        """Return how often the step runs again after deaths for memory."""
        retries = self._spec.step(number).retries
        return MAX_RERUNS if retries is None else retries

    def environment(self, number: int) -> Mapping[str, str]:
        """Return the variables added to the build's environment for the step."""
        return self._spec.step(number).environment

    def alone(self, state: BuildState) -> frozenset[str]:
        """Outputs to build first and alone from the start, as a person asked; in the build's first step only."""
        at_first = state.step is None or state.step.index == self._spec.first
        return frozenset(self._spec.alone) if at_first else frozenset()

    def roots(self, top: int, run: Run) -> Roots:
        """Return where to look for the processes of an attempt; `top` is the process above all of them."""
        step = self._spec.step(run.step)
        return Roots(top, run.pid, step.cwd, step.command, run.begun)

    def started(self, run: Run, oom_kills: int | None) -> ev.StepStarted:
        """Return the event that announces an attempt."""
        step, count = self._spec.step(run.step), len(self._spec.steps)
        return ev.StepStarted(run.step, count, step.name, step.words, run.pid, run.attempt, oom_kills, run.log_start)

    def ended(self, state: BuildState, exit_code: int | None) -> list[ev.Event]:
        """Return the end of the step that the journal recorded last."""
        number = state.step.index if state.step is not None else self._spec.first
        tools = state.step.tools if state.step is not None else ()
        return [*self.surprise(number, tools), ev.StepEnded(number, exit_code)]

    def swept(self, state: BuildState) -> list[ev.Event]:
        """Report what earlier attempts had built in folders that are gone: pip makes setup.py clean up after itself."""
        step = state.step
        if step is None or step.attempt == 1:
            return []
        done = Counter[str]()
        for s in state.schedulers.values():
            if s.step == step.index and s.finished and not s.container and not os.path.isdir(s.directory):
                done[s.directory] += s.finished
        events: list[ev.Event] = [ev.WorkLost(directory) for directory in done]
        text = f"the command removed the folder it works in: {_built_again(done.total())}"
        return [*events, ev.Noticed("warning", text)] if events else []

    def lost(self, state: BuildState, events: Iterable[ev.Event]) -> list[ev.Event]:
        """Report what these new schedulers build again, because the step runs again in another folder."""
        new = [e for e in events if isinstance(e, ev.SchedulerStarted)]
        redone = {s.sid: s for e in new for s in redone_by(e, state.schedulers, state.step)}
        count = sum(s.finished for s in redone.values())
        text = f"the command works in a new temporary folder now: {_built_again(count)}"
        return [ev.Noticed("warning", text)] if count else []

    def surprise(self, number: int, tools: Sequence[str]) -> list[ev.Event]:
        """Report it if other schedulers than the expected one were seen in a step."""
        step = self._spec.step(number)
        wanted = step.scheduler
        known = {"ninja": {"ninja", "samurai"}, "make": {"make"}, "none": set[str]()}.get(wanted)
        if known is None or not tools or known.intersection(tools):
            return []
        text = f"step {step.name} ran {' and '.join(tools)}; its profile expects {wanted if known else 'no scheduler'}"
        return [ev.Noticed("warning", text)]


def _built_again(count: int) -> str:
    jobs = "1 job" if count == 1 else f"{count} jobs"
    return f"{jobs} that had finished before {'is' if count == 1 else 'are'} built again"


def changes(runs: list[Run], state: BuildState) -> list[StepChange]:
    """Return the attempts after the one that the journal recorded last."""
    return [StepChange(runs[n - 1] if n else None, runs[n]) for n in range(_place_of(runs, state) + 1, len(runs))]


def known_run(runs: list[Run], state: BuildState) -> Run:
    """Return the attempt that the journal recorded last."""
    return runs[_place_of(runs, state)]


def _place_of(runs: list[Run], state: BuildState) -> int:
    """Its index in the list, -1 if the journal records none."""
    known = (state.step.index, state.step.attempt) if state.step is not None else None
    return next((n for n, run in enumerate(runs) if (run.step, run.attempt) == known), -1)
