"""Turns what a failure rule allows into an action for this build: at which level, with which names. Or finds none.

Nothing in the action comes from the output: names come from the journal's jobs and from git. Unaware of how the action
is carried out.
"""

from __future__ import annotations

import shutil
from dataclasses import dataclass

from stoker.diagnose.rule import Rule
from stoker.model.diagnosis import Action
from stoker.model.state import BuildState, KilledJob
from stoker.sense.submodules import missing_submodules


@dataclass(frozen=True, slots=True)
class Deaths:
    """The jobs whose death ended the build, and the outputs that ran alone in its last attempt."""

    jobs: tuple[KilledJob, ...] = ()
    alone: frozenset[str] = frozenset()

    @property
    def were_alone(self) -> bool:
        """Whether one of them died although it ran alone."""
        return any(job.output in self.alone for job in self.jobs)


def action_for(rule: Rule, state: BuildState, folder: str, deaths: Deaths) -> Action | None:
    """Return a safe action for a failure that `rule` found, or None. Asks git if necessary.

    `folder` is where the failed step ran.
    """
    if rule.action == "retry":
        return Action("retry")
    if rule.action in ("retry-alone", "retry-at-lower-level"):
        return _smaller(rule, state, deaths)
    if rule.action == "update-submodules":
        missing = missing_submodules(folder)
        return Action("update-submodules", names=missing.paths) if missing is not None else None
    if rule.action == "fetch-large-files":
        return Action("fetch-large-files") if shutil.which("git-lfs") else None
    if rule.action == "set-variable":
        return Action("set-variable", variable=rule.variable)
    return None


def _smaller(rule: Rule, state: BuildState, deaths: Deaths) -> Action | None:
    """Return: run the dead jobs first and alone, or fewer jobs at a time; nothing if they had already run alone."""
    if deaths.were_alone:
        return None
    if rule.action == "retry-alone" and deaths.jobs:
        return Action("retry-alone", names=tuple(dict.fromkeys(k.output for k in deaths.jobs if k.output)))
    return _lower(state)


def _lower(state: BuildState) -> Action | None:
    """Return half as many jobs as ran together; None if one ran at a time.

    Jobs that crash at the start are over before a scan sees them. So the failed jobs, which ninja and make wait for
    after the first failure, count as well.
    """
    seen = max((point.running for point in state.timeline.points), default=0)
    ran = max(seen, len(state.failures))
    level = min((n for n in (state.level.target, ran) if n), default=state.cores)
    return Action("retry-at-lower-level", level=max(1, level // 2)) if level > 1 else None
