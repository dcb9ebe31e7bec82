"""Turns what a failure rule allows into an action for this build: at which level, with which names. Or finds none.

Nothing of it comes from the output: names come from the journal's own jobs and from git. Unaware of how it is done.
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
    """The jobs whose death ended the build, and the outputs that were made alone in its last attempt."""

    jobs: tuple[KilledJob, ...] = ()
    alone: frozenset[str] = frozenset()

    @property
    def were_alone(self) -> bool:
        """Whether one died although nothing ran beside it."""
        return any(job.output in self.alone for job in self.jobs)


def action_for(rule: Rule, state: BuildState, folder: str, deaths: Deaths) -> Action | None:
    """What is safe to do about a failure that `rule` found, None if nothing is. Asks git where that is needed.

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
    """What died first and alone, or fewer jobs at a time; nothing where what died had been alone."""
    if deaths.were_alone:
        return None
    if rule.action == "retry-alone" and deaths.jobs:
        return Action("retry-alone", names=tuple(dict.fromkeys(k.output for k in deaths.jobs if k.output)))
    return _lower(state)


def _lower(state: BuildState) -> Action | None:
    """Half as many jobs as ran together; None where one ran at a time.

    Jobs that crash as they start are over before a look: those that failed, which ninja and make wait for when the
    first one does, count as well.
    """
    seen = max((point.running for point in state.timeline.points), default=0)
    ran = max(seen, len(state.failures))
    level = min((n for n in (state.level.target, ran) if n), default=state.cores)
    return Action("retry-at-lower-level", level=max(1, level // 2)) if level > 1 else None
