"""Which failed steps of an attempt were killed, by whom, and whether that is a reason to run the step again.

Pure: everything that is known about the attempt comes in, a verdict with its reason goes out. Unaware of how it became
known, and of how a step is run again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from stoker.decide.recovery.death_messages import is_build_tool, is_compiler, make_target, said_by
from stoker.model.events import KilledBy
from stoker.model.killed import same_output
from stoker.model.text import clean
from stoker.model.units import format_bytes

MAX_RERUNS = 5
"""Times that a step is run again at most. Each time some output is made that was not; who needs more has a machine on
which something else is wrong."""

MORE = 1.5
"""What was killed for memory is taken to need so many times what it was seen to hold: it had not come to its peak."""

OWN_WANT: tuple[KilledBy, ...] = ("memory", "shed", "unknown")
"""Deaths that count towards the bound: the build wanted more memory than there is, or so it seems."""

MAX_NAMES = 5
MAX_NAME = 80
"""Outputs named in one sentence, and characters of each."""

SIGNALLED = 128
KILLED_STATUS = SIGNALLED + 9
"""How a shell, and ninja from 1.12 on, report a command that SIGKILL ended; statuses above the first stand for any
signal."""


@dataclass(frozen=True, slots=True)
class FailedStep:
    """One failed step in the scheduler's words. `exit_code` is None where it is not known; `lines` is what it said."""

    output: str
    command: str
    exit_code: int | None
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known of an attempt beside its output.

    `oom_kills`: processes that the kernel killed for want of memory. `killed`: outputs of jobs of which it is known who
    killed them, or a process of theirs: stoker, a person, or, by its log, the kernel. `unplaced`: how many of
    `oom_kills` neither that nor what another step said accounts for.
    """

    oom_kills: int = 0
    killed: Mapping[str, KilledBy] = field(default_factory=dict)
    unplaced: int = 0


@dataclass(frozen=True, slots=True)
class Death:
    """Why a step failed: it was killed (`by`), or only something `inside` it failed, or else it has an error.

    `outputs` is what to run alone: the step's own, or what failed in a make inside it.
    """

    output: str
    outputs: tuple[str, ...]
    by: KilledBy | None = None
    inside: bool = False

    @property
    def is_error(self) -> bool:
        """Whether it would fail again."""
        return self.by is None and not self.inside


@dataclass(frozen=True, slots=True)
class Attempt:
    """How the attempt was run. `spent` counts those before it in which jobs died for the build's own want. `alone` are
    the outputs that were made first and alone in it, `first` those that were made first, with room for what they were
    known to need.

    `peaks` is the most that the job of an output was seen to hold, `budget` what all may hold; bytes, 0: not known.
    """

    spent: int = 0
    alone: frozenset[str] = frozenset()
    peaks: Mapping[str, int] = field(default_factory=dict)
    budget: int = 0
    first: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Again:
    """Run the step again; what was killed is made `first`. Of those, `alone` are made with nothing beside them, the
    others beside what fits when they take what they were seen to need."""

    first: tuple[str, ...]
    why: str
    alone: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The step has failed. `why` is empty where nothing speaks for another attempt."""

    why: str


def judge(step: FailedStep, evidence: Evidence) -> Death:
    """Judge why a step failed. Where its output speaks of an error too, it is the error."""
    said = {said_by(line) for line in step.lines}
    targets = tuple(dict.fromkeys(t for line in step.lines if (t := make_target(line)) is not None))
    by = _killed_by(step, evidence, said)
    inside = by is None and "error" not in said and is_build_tool(step.command)
    return Death(step.output, targets if targets and step.command else (step.output,), by, inside)


def _killed_by(step: FailedStep, evidence: Evidence, said: Collection[str]) -> KilledBy | None:
    known = next((by for output, by in evidence.killed.items() if same_output(output, step.output)), None)
    if known is not None or "error" in said:
        return known
    if "exhausted" in said:
        return "memory"
    silent = step.exit_code is None and not any(line.strip() for line in step.lines) and is_compiler(step.command)
    # A build tool hands on the status of a step inside it.
    status = step.exit_code == KILLED_STATUS and not is_build_tool(step.command)
    if "killed" in said or silent or status:
        return "memory" if evidence.oom_kills else "unknown"
    # Whoever waits for a killed process may report that in words of its own, and end with a status of its own.
    crashed = step.exit_code is not None and step.exit_code > SIGNALLED
    return "memory" if evidence.unplaced and not crashed and not is_build_tool(step.command) else None


def verdict(deaths: Sequence[Death], attempt: Attempt) -> Again | GiveUp:
    """Decide whether the step runs again: only if everything that failed was killed, and nothing of it had run
    alone."""
    killed = [d for d in deaths if d.by is not None]
    if not killed:
        return GiveUp("")
    error = next((d for d in deaths if d.is_error), None)
    if error is not None:
        return GiveUp(f"{_name(error.output)} failed by itself; {_count(killed)} beside it: {_names(killed)}")
    was_alone = next((d for d in killed if attempt.alone.intersection(d.outputs)), None)
    if was_alone is not None:
        return GiveUp(_even_alone(was_alone, attempt))
    spent = attempt.spent + any(d.by in OWN_WANT for d in killed)
    if spent > MAX_RERUNS:
        return GiveUp(f"{_by_cause(killed)}; the step was run again {attempt.spent} times already")
    first = tuple(dict.fromkeys(output for d in killed for output in d.outputs))
    alone = tuple(dict.fromkeys(o for d in killed for o in d.outputs if _must_be_alone(d, o, attempt)))
    slowly = "; one job at a time, as nothing else has helped" if spent == MAX_RERUNS else ""
    return Again(first, f"{_by_cause(killed)}; {_how_again(first, alone, attempt)}{slowly}", alone)


def _must_be_alone(death: Death, output: str, attempt: Attempt) -> bool:
    """Return whether nothing may run beside it: it is not known what it needs, or that much was free for it already."""
    return death.by == "unknown" or not attempt.peaks.get(output) or output in attempt.first


def _how_again(first: Sequence[str], alone: Sequence[str], attempt: Attempt) -> str:
    runs = "they run" if len(first) > 1 else "it runs"
    if len(alone) == len(first):
        return f"{runs} first and alone"
    room = format_bytes(sum(MORE * attempt.peaks.get(output, 0) for output in first if output not in alone))
    apart = f"; alone: {', '.join(map(_name, alone[:MAX_NAMES]))}" if alone else ""
    return f"{runs} first, beside what fits where ~{room} is kept for {'them' if len(first) > 1 else 'it'}{apart}"


def will_run_again(death: Death) -> str:
    """Say what happens after the death of a compiler, while others still run."""
    return f"{_by_cause([death])}; it is to run again once what runs and waits has ended"


_HOW: Mapping[KilledBy | None, str] = {
    "memory": "for memory",
    "unknown": "by SIGKILL from an unknown sender",
    "shed": "by stoker to save the others",
    "person": "by a person",
}


def _even_alone(death: Death, attempt: Attempt) -> str:
    """Say why a second death is the last, in figures where there are any."""
    name, how = _name(death.output), _HOW[death.by]
    if death.by != "memory":
        return f"{name} was killed {how} again, although it ran alone"
    peak = max(attempt.peaks.get(output, 0) for output in (death.output, *death.outputs))
    size = f", at {format_bytes(peak)}" if peak else ""
    size += f" of {format_bytes(attempt.budget)}" if peak and attempt.budget else ""
    return f"{name} was killed {how} even alone{size}"


def _by_cause(killed: Sequence[Death]) -> str:
    """Say such as "2 compilers were killed for memory: a.o, b.o; 1 by a person: c.o"."""
    parts: list[str] = []
    for by, how in _HOW.items():
        some = [d for d in killed if d.by == by]
        if some:
            parts.append(f"{len(some) if parts else _count(some)} {how}: {_names(some)}")
    return "; ".join(parts)


def _count(killed: Sequence[Death]) -> str:
    return "1 compiler was killed" if len(killed) == 1 else f"{len(killed)} compilers were killed"


def _names(deaths: Sequence[Death]) -> str:
    names = [_name(d.output) for d in deaths]
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _name(output: str) -> str:
    return clean(output, MAX_NAME)
