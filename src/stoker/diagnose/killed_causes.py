"""What the causes in a log mean in a build that stoker runs: it knows what was killed in it, and by whom.

The output shows a kill alike whoever did it. Knows nothing of how the deaths were found.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import BinaryIO

from stoker.diagnose.around import LineStart, place_of
from stoker.diagnose.rule import Rule
from stoker.diagnose.step_cause import causes_in_step, step_cause
from stoker.model.diagnosis import Cause
from stoker.model.killed import killed_in_attempt, same_output
from stoker.model.memory_shortage import memory_was_short, most_used_lately
from stoker.model.state import BuildState, Failure, KilledJob
from stoker.model.units import format_bytes

KILLED_RULES = ("compiler-killed", "linker-killed", "step-killed")
"""Rules that find a SIGKILL, and take the kernel for its sender."""

WORDLESS = "compiler-wordless"
"""The rule that takes a step's silence for a kill, which it is only if the step is known to have been killed."""

MAX_STEP = 2**20
"""Bytes of one failed step's output that are searched."""

SHED_TITLE = "Out of memory: stoker ended a job to save the others"
SHED_WHY = (
    "The memory of the build was used up, and stoker ended a job before the kernel would have taken one of its choice. "
    "Jobs that ran together needed more than the machine, the container or the cgroup has."
)
STRANGER_TITLE = "A job was killed, and not by the kernel for lack of memory"
STRANGER_WHY = (
    "Something sent SIGKILL to it. The kernel counts each process that it kills for lack of memory, in the build's "
    "memory group or the machine, and counts none of these: it was a person, a batch system or a watchdog "
    "(earlyoom, systemd-oomd)."
)
STRANGER_REMEDY = (
    "Resume the build: finished objects are kept. If it happens again, look who sends it: journalctl -u systemd-oomd "
    "-u earlyoom, the log of the batch system."
)
NOT_SHORT_TITLE = "Something was killed, and memory was not short"
NOT_SHORT_WHY = (
    "Somebody sent SIGKILL, and no job of the build is known to have been its target. The record shows no lack of "
    "memory: the kernel is not known to have killed for it, and lately at most {most} of {budget} were in use. It was "
    "a person, a batch system or a watchdog (earlyoom, systemd-oomd), unless memory ran out between two looks at it."
)
PERSON_TITLE = "A job was killed by a person"
PERSON_WHY = "Somebody had stoker kill it; it has not failed by itself."
PERSON_REMEDY = "Resume the build: finished objects are kept."


def by_its_killer(cause: Cause, killers: Collection[str]) -> Cause:
    """Return the cause of a kill with the words for who killed; the kernel's stay if it may have been the kernel."""
    if "memory" in killers or not killers:
        return cause
    cause = replace(cause, general=False)  # that it was a kill is known
    if "unknown" in killers:
        return replace(cause, title=STRANGER_TITLE, why=STRANGER_WHY, remedy=STRANGER_REMEDY)
    if "shed" in killers:
        return replace(cause, title=SHED_TITLE, why=SHED_WHY)
    return replace(cause, title=PERSON_TITLE, why=PERSON_WHY, remedy=PERSON_REMEDY)


def is_not_for_memory(cause: Cause, state: BuildState) -> bool:
    """Return whether a kill that no job is known to have died of was hardly for memory, by what was measured."""
    return cause.rule in KILLED_RULES and not killed_in_attempt(state) and memory_was_short(state) is False


def _by_the_record(cause: Cause, state: BuildState) -> Cause:
    if state.machine is None or not is_not_for_memory(cause, state):
        return cause
    most, budget = format_bytes(most_used_lately(state)), format_bytes(state.machine.memory_budget)
    why = NOT_SHORT_WHY.format(most=most, budget=budget)
    return replace(cause, title=NOT_SHORT_TITLE, why=why, remedy=STRANGER_REMEDY, general=False)


def cause_of_step(file: BinaryIO, failure: Failure, killers: Collection[str], rules: Collection[Rule]) -> Cause | None:
    """Return why one step failed, by what it printed and by who may have killed it (model.killed.killers_of); None if
    no rule knows it. Raises OSError."""
    is_killed = failure.killed_by is not None
    cause = step_cause(file, failure.log_start, failure.log_end, rules)
    if cause is None and is_killed:  # it died without a word
        cause = next((_silent(rule) for rule in rules if rule.id == "step-killed"), None)
    if cause is None or not _is_kill(cause, is_killed=is_killed):
        return cause
    return by_its_killer(cause, killers)


def _silent(rule: Rule) -> Cause:
    return Cause(rule.id, rule.title, rule.why, rule.governed or rule.remedy)


def _is_kill(cause: Cause, *, is_killed: bool) -> bool:
    """Whether the cause stands for a kill; `is_killed`: its step is known to have been killed."""
    return cause.rule in KILLED_RULES or (is_killed and cause.rule == WORDLESS)


def placed(file: BinaryIO, begin: LineStart, cause: Cause, failures: Sequence[Failure]) -> Cause:
    """Return the cause with its byte offset, and the job that printed it. Raises OSError."""
    offset = place_of(file, begin, cause.line or begin.line).offset
    job = next((f.output for f in failures if f.log_start <= offset < f.log_end), "")
    return replace(cause, offset=offset, job=job)


def failures_first(file: BinaryIO, causes: Sequence[Cause], state: BuildState, rules: Collection[Rule]) -> list[Cause]:
    """Return the causes with those of kills behind those of failures, which running again does not repair, and with
    who killed, or what for. The causes must be placed. Raises OSError."""
    dead = killed_in_attempt(state)
    if not dead:
        return [_by_the_record(cause, state) for cause in causes]
    # A step that shows a kill may be a make whose compiler was killed, under that compiler's name.
    killed = [*(death.output for death in dead), *(c.job for c in causes if c.rule in KILLED_RULES)]
    failed = [f for f in state.failures if not any(same_output(output, f.output) for output in killed)]
    killers = {death.by for death in dead}
    outputs = {failure.output for failure in failed}
    named = [_with_killer(c, dead, killers) for c in causes]
    first = [c for c in named if c.job in outputs and c.rule not in KILLED_RULES]
    if not first and failed and any(c.rule in KILLED_RULES for c in named):
        first = _of_step(file, failed[0], rules)
    return [*first, *(c for c in named if c not in first)]


def _with_killer(cause: Cause, dead: Sequence[KilledJob], killers: Collection[str]) -> Cause:
    """Return a kill with the words for who killed that job; one that stands for several, or for a job that is not known
    to be killed, with the words for all `killers`."""
    own = {death.by for death in dead if same_output(death.output, cause.job)}
    if not _is_kill(cause, is_killed=bool(own)):
        return cause
    return by_its_killer(cause, own if own and cause.count == 1 else killers)


def _of_step(file: BinaryIO, failure: Failure, rules: Collection[Rule]) -> list[Cause]:
    """Return the causes in what one failed step printed, if only its likely place."""
    begin, found = causes_in_step(file, failure.log_start, failure.log_end, rules, MAX_STEP)
    return [placed(file, begin, c, [failure]) for c in found if c.rule not in KILLED_RULES]
