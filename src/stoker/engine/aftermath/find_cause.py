"""Finds out why a build failed: looks for known failures in its last attempt's output, within bounds of time and size.

Killed jobs count too, and take precedence over what they printed. Unaware of how the journal is written and of what is
done about the cause.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import BinaryIO

from stoker.diagnose.around import line_at
from stoker.diagnose.governed import governed
from stoker.diagnose.killed_causes import by_its_killer, failures_first, is_not_for_memory, placed
from stoker.diagnose.killed_lines import names_killed
from stoker.diagnose.log_reading import read_log
from stoker.diagnose.own_rules import usable_rules
from stoker.diagnose.rule import Rule
from stoker.engine.aftermath.recovery import GIVEN_UP
from stoker.engine.aftermath.remedies import Deaths, action_for
from stoker.model.diagnosis import MAX_CAUSES, Cause, Diagnosis, bounded
from stoker.model.killed import killed_in_attempt
from stoker.model.state import BuildState, Failure, KilledJob
from stoker.model.text import clean
from stoker.model.units import format_bytes

MAX_SECONDS = 10.0
"""Time limit for reading the output; the build's exit waits this long at most. Most builds need less than one
second."""

MAX_BYTES = 64 * 2**20
"""Bytes of output that are scanned; a scan covers some 10 MB a second."""

MAX_SKIPPED = 8 * 2**30
"""Bytes of output before that part whose lines are counted, at about a GB a second; anything earlier is ignored."""

MARGIN = 2**20
"""In a larger output, how much to read before the first failed step: a full disk is reported somewhat earlier."""

MEMORY_RULES = ("compiler-killed", "linker-killed", "step-killed", "memory-refused", "kernel-oom")
"""Rules that match a death for memory, the most specific first."""

MAX_KILLED_NAMED = 4
MAX_NAME = 200

TOO_LARGE = "It was killed with nothing beside it: that job by itself needs more memory than the build's budget."
NO_ROOM = (
    "Give the build more memory (a larger machine, a higher limit of the container, swap), "
    'or make that job smaller: fewer architectures (TORCH_CUDA_ARCH_LIST="9.0"), nvcc --threads 1.'
)


async def diagnose_build(output: Path, state: BuildState, folder: str, alone: frozenset[str]) -> Diagnosis:
    """Find out why the build of this state failed, in a thread, within some seconds.

    `folder` is where its last step ran; `alone` are the outputs that ran alone in the last attempt.
    """
    return await asyncio.to_thread(find_causes, output, state, folder, alone)


def find_causes(output: Path, state: BuildState, folder: str, alone: frozenset[str] = frozenset()) -> Diagnosis:
    """The same, blocking. An output that cannot be read yields nothing."""
    rules = usable_rules()
    deaths = Deaths(tuple(_killed_at_last(state)), alone)
    try:
        with output.open("rb") as file:
            causes, complete = _causes(file, state, rules)
            if not deaths.jobs:
                causes = failures_first(file, causes, state, rules)
    except OSError:
        causes, complete = [], False
    if deaths.jobs:
        causes = _memory_first(causes, state, deaths, rules)
    causes = governed(causes, rules)
    known = causes and not causes[0].is_guess and not is_not_for_memory(causes[0], state)
    action = action_for(_rule(rules, causes[0].rule), state, folder, deaths) if known else None
    return bounded(Diagnosis(tuple(causes), tuple(_facts(state, deaths)), action, complete))


def _rule(rules: Sequence[Rule], name: str) -> Rule:
    return next(rule for rule in rules if rule.id == name)


def _causes(file: BinaryIO, state: BuildState, rules: Sequence[Rule]) -> tuple[list[Cause], bool]:
    """Return the causes in the last attempt's output, and whether all of it was read."""
    size = file.seek(0, 2)
    start = state.step.log_start if state.step is not None else 0
    begin = start if size - start <= MAX_BYTES else max(start, _nearer(state.failures, size))
    if begin > MAX_SKIPPED:
        return [], False
    file.seek(begin)
    if begin != start:
        file.readline(MARGIN)
    here = line_at(file, file.tell())
    file.seek(here.offset)
    until, deadline = here.offset + MAX_BYTES, time.monotonic() + MAX_SECONDS
    enough = lambda: file.tell() >= until or time.monotonic() > deadline  # noqa: E731
    reading = read_log(file, rules, here.line, enough, names_killed(state), has_failed=True)
    complete = begin == start and reading.complete
    return [placed(file, here, cause, state.failures) for cause in reading.causes[: 2 * MAX_CAUSES]], complete


def _nearer(failures: Sequence[Failure], size: int) -> int:
    """Return where to start in an output that is too large: before the first failed step, otherwise near the end."""
    return min((f.log_start for f in failures), default=size - MAX_BYTES + MARGIN) - MARGIN


# -- deaths ----------------------------------------------------------------------------------------------------


def _killed_at_last(state: BuildState) -> list[KilledJob]:
    """Return the jobs whose death ended the build, if nothing else failed in the last attempt; empty for any other
    end."""
    dead = [k for k in killed_in_attempt(state) if k.by != "person"]
    outputs = {k.output for k in dead}
    given_up = any(d.what == GIVEN_UP for d in state.decisions)
    return dead if given_up and all(f.output in outputs for f in state.failures) else []


def _memory_first(causes: list[Cause], state: BuildState, deaths: Deaths, rules: Sequence[Rule]) -> list[Cause]:
    """Return the cause that explains the deaths, before all others; made up if the output does not mention them."""
    named = [cause for name in MEMORY_RULES for cause in causes if cause.rule == name]
    first = named[0] if named else _silent(deaths.jobs, state, rules)
    killers = {k.by for k in deaths.jobs}
    if deaths.were_alone and "memory" in killers:
        first = replace(first, why=TOO_LARGE, remedy=NO_ROOM)
    else:
        first = by_its_killer(first, killers)
    return [first, *(cause for cause in causes if cause.rule != first.rule and not cause.is_guess)]


def _silent(dead: Sequence[KilledJob], state: BuildState, rules: Sequence[Rule]) -> Cause:
    """Deaths that no known message in the output reports."""
    rule = _rule(rules, "compiler-killed" if any(k.by in ("memory", "shed") for k in dead) else "step-killed")
    failure = next((f for f in state.failures if f.output == dead[0].output), None)
    offset = failure.log_start if failure is not None else None
    text = f"FAILED: {clean(failure.output, MAX_NAME)}" if failure is not None else ""
    return Cause(rule.id, rule.title, rule.why, rule.remedy, offset=offset, text=text, job=dead[0].output)


_BY = {"memory": "for lack of memory", "unknown": "by SIGKILL from an unknown sender", "shed": "by stoker for memory"}


def _facts(state: BuildState, deaths: Deaths) -> list[str]:
    """Describe who was killed at what size, out of how much, and why there was no further attempt."""
    facts = []
    if not deaths.were_alone:  # otherwise the reason has the figures
        facts = [f"killed {how}: {_sizes(some)}" for by, how in _BY.items() if (some := _by(deaths.jobs, by))]
    if deaths.jobs and state.machine is not None:
        limit = state.machine.memory_limit_source
        where = "the machine" if limit == "machine" else f"the cgroup {clean(limit.rpartition('/')[2], MAX_NAME)}"
        facts.append(f"the build's budget is {format_bytes(state.machine.memory_budget)} ({where})")
    return facts + [d.why for d in state.decisions if d.what == GIVEN_UP][-1:]


def _by(jobs: Sequence[KilledJob], who: str) -> list[KilledJob]:
    return [job for job in jobs if job.by == who]


def _sizes(jobs: Sequence[KilledJob]) -> str:
    """Return names without folders, each with the most memory that it was seen to hold."""
    names = [clean(job.output.rpartition("/")[2], MAX_NAME) for job in jobs]
    names = [f"{name} at {format_bytes(job.rss)}" if job.rss else name for name, job in zip(names, jobs, strict=True)]
    more = f" and {len(names) - MAX_KILLED_NAMED} more" if len(names) > MAX_KILLED_NAMED else ""
    return ", ".join(names[:MAX_KILLED_NAMED]) + more
