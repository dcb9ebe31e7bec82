"""Decides which failed steps of an attempt were killed, by whom, and whether that justifies running the step again.

Pure: takes everything known about the attempt, returns a verdict with its reason. Knows neither how the facts were
found nor how a step is run again.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field

from stoker.decide.recovery.death_messages import is_compiler, is_signalled, make_target, said_by
from stoker.model.events import KilledBy
from stoker.model.killed import same_output
from stoker.model.text import clean
from stoker.model.tool import is_build_tool
from stoker.model.units import format_bytes

MAX_RERUNS = 5
"""Maximum number of times that a step runs again. Each time some missing output gets made; if more are needed,
something else is wrong with the machine."""

MORE = 1.5
"""A job killed for memory is assumed to need this multiple of what it was seen to hold: it had not reached its peak."""

OWN_WANT: tuple[KilledBy, ...] = ("memory", "shed", "unknown")
"""Deaths that count towards MAX_RERUNS: the build needed more memory than there is, or so it seems."""

MAX_NAMES = 5
MAX_NAME = 80
"""Outputs named in one sentence, and characters of each."""

SIGNALLED = 128
KILLED_STATUS = SIGNALLED + 9
"""The exit status with which a shell, and ninja from 1.12 on, report a command ended by SIGKILL; statuses above the
first mean any signal."""


STOPPED_STATUSES = tuple(SIGNALLED + number for number in (1, 2, 9, 15))
"""The same for SIGHUP, SIGINT, SIGKILL and SIGTERM, with which builds are stopped."""


@dataclass(frozen=True, slots=True)
class FailedStep:
    """One failed step as the scheduler reports it. `exit_code` is None if unknown; `lines` is the step's output."""

    output: str
    command: str
    exit_code: int | None
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Evidence:
    """What is known about an attempt besides its output.

    `oom_kills`: processes that the kernel killed because memory ran out. `killed`: outputs of jobs that are known to
    have been killed, or to have lost a process, and by whom: stoker, a user, or, according to its log, the kernel.
    `unplaced`: how many of `oom_kills` are explained neither by that nor by another step's output.
    """

    oom_kills: int = 0
    killed: Mapping[str, KilledBy] = field(default_factory=dict)
    unplaced: int = 0


@dataclass(frozen=True, slots=True)
class Death:
    """Why a step failed: it was killed (`by`), or only something `inside` it failed, or it has an error.

    `outputs` is what to run alone: the step's own output, or what failed in a make inside it.
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
    """How the attempt was run. `spent` counts earlier attempts that lost jobs because the build itself ran out of
    memory. `alone` are the outputs that were made first and alone in it, `first` those that were made first, with room
    for their known needs.

    `peaks` is the most that the job of an output was seen to hold, `budget` what all may hold; bytes, 0 if unknown.
    """

    spent: int = 0
    alone: frozenset[str] = frozenset()
    peaks: Mapping[str, int] = field(default_factory=dict)
    budget: int = 0
    first: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Again:
    """Run the step again; the killed outputs are made `first`. Those in `alone` run with nothing next to them, the
    others next to whatever fits besides their `needs` (bytes)."""

    first: tuple[str, ...]
    why: str
    alone: tuple[str, ...] = ()
    needs: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class GiveUp:
    """The step has failed. `why` is empty if there was no case for another attempt."""

    why: str


def judge(step: FailedStep, evidence: Evidence) -> Death:
    """Return why a step failed. If its output also reports an error, the error counts."""
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
    # A build tool passes on the status of a step inside it.
    status = step.exit_code == KILLED_STATUS and not is_build_tool(step.command)
    if "killed" in said or silent or status:
        return "memory" if evidence.oom_kills else "unknown"
    # A parent of a killed process may report that in its own words, and end with its own status.
    crashed = step.exit_code is not None and step.exit_code > SIGNALLED
    return "memory" if evidence.unplaced and not crashed and not is_build_tool(step.command) else None


def shows_stop(step: FailedStep) -> bool:
    """Return whether a step that failed while its build was being stopped shows nothing but the stop: a signal ended
    it, or a compiler inside it. If its output reports an error, the error counts."""
    if step.exit_code in STOPPED_STATUSES:
        return True
    others = [line for line in step.lines if not is_signalled(line)]
    if any(said_by(line) == "error" for line in others):
        return False
    silent = step.exit_code is None and not any(line.strip() for line in others) and is_compiler(step.command)
    return len(others) < len(step.lines) or silent or is_build_tool(step.command)


def verdict(deaths: Sequence[Death], attempt: Attempt) -> Again | GiveUp:
    """Decide whether the step runs again: only if all failures were kills, and no killed job had run alone."""
    killed = [d for d in deaths if d.by is not None]
    if not killed:
        return GiveUp("")
    errors = [d for d in deaths if d.is_error]
    if errors:
        how, it = ("itself", "it") if len(errors) == 1 else ("themselves", "them")
        return GiveUp(f"{_names(errors)} failed by {how}; {_count(killed)} killed beside {it}: {_names(killed)}")
    was_alone = next((d for d in killed if attempt.alone.intersection(d.outputs)), None)
    if was_alone is not None:
        return GiveUp(_even_alone(was_alone, attempt))
    spent = attempt.spent + any(d.by in OWN_WANT for d in killed)
    if spent > MAX_RERUNS:
        return GiveUp(f"{_by_cause(killed)}; the step was run again {attempt.spent} times already")
    needs = {output: need_after(d.by, attempt.peaks.get(output, 0)) for d in killed for output in d.outputs}
    alone = tuple(dict.fromkeys(o for d in killed for o in d.outputs if _must_be_alone(d, o, attempt)))
    room = {output: need for output, need in needs.items() if output not in alone}
    return Again(tuple(needs), f"{_by_cause(killed)}; {_how_again(needs, alone)}", alone, room)


def _must_be_alone(death: Death, output: str, attempt: Attempt) -> bool:
    """Return whether it must run alone: its needs are unknown, or that much room did not suffice before."""
    return death.by == "unknown" or not attempt.peaks.get(output) or output in attempt.first


def _how_again(needs: Mapping[str, float], alone: Sequence[str]) -> str:
    """Say how the killed outputs run; `needs` has what each is assumed to need."""
    first = list(needs)
    runs = "they run" if len(first) > 1 else "it runs"
    if len(alone) == len(first):
        return f"{runs} first and alone"
    room = format_bytes(sum(need for output, need in needs.items() if output not in alone))
    apart = f"; alone: {', '.join(map(_name, alone[:MAX_NAMES]))}" if alone else ""
    return f"{runs} first, beside what fits where ~{room} is kept for {'them' if len(first) > 1 else 'it'}{apart}"


def need_after(by: KilledBy | None, seen: float) -> float:
    """Return the memory that a killed job is assumed to need, given what it was seen to hold. One that a person killed
    did not lack memory."""
    return seen if by == "person" else MORE * seen


def will_run_again(death: Death) -> str:
    """Say what follows the death of a compiler while others still run."""
    return f"{_by_cause([death])}; it is to run again once what runs and waits has ended"


def will_not_run_again(death: Death, error: str) -> str:
    """The same where the step is not run again, because the step that makes `error` failed by itself."""
    return f"{_by_cause([death])}; it is not to run again, as {_name(error)} failed by itself"


def taken_back(error: Death, killed: Sequence[str]) -> str:
    """Say that what was killed before a step failed by itself does not run again."""
    more = f" and {len(killed) - MAX_NAMES} more" if len(killed) > MAX_NAMES else ""
    names = ", ".join(map(_name, killed[:MAX_NAMES])) + more
    verb = "is" if len(killed) == 1 else "are"
    return f"{_name(error.output)} failed by itself; {names}, killed before, {verb} not to run again"


_HOW: Mapping[KilledBy | None, str] = {
    "memory": "killed for memory",
    "unknown": "killed by SIGKILL from an unknown sender",
    "shed": "stopped to free memory",
    "person": "killed by a person",
}


def _even_alone(death: Death, attempt: Attempt) -> str:
    """Say why a second death is final, with figures if there are any."""
    name, how = _name(death.output), _HOW[death.by]
    if death.by != "memory":
        return f"{name} was {how} again, although it ran alone"
    peak = max(attempt.peaks.get(output, 0) for output in (death.output, *death.outputs))
    size = f", at {format_bytes(peak)}" if peak else ""
    size += f" of {format_bytes(attempt.budget)}" if peak and attempt.budget else ""
    return f"{name} was {how} even alone{size}"


def _by_cause(killed: Sequence[Death]) -> str:
    """Summarize the kills, such as "2 jobs were killed for memory: a.o, b.o; 1 killed by a person: c.o"."""
    parts: list[str] = []
    for by, how in _HOW.items():
        some = [d for d in killed if d.by == by]
        if some:
            parts.append(f"{len(some) if parts else _count(some)} {how}: {_names(some)}")
    return "; ".join(parts)


def _count(killed: Sequence[Death]) -> str:
    return "1 job was" if len(killed) == 1 else f"{len(killed)} jobs were"


def _names(deaths: Sequence[Death]) -> str:
    names = [_name(d.output) for d in deaths]
    more = f" and {len(names) - MAX_NAMES} more" if len(names) > MAX_NAMES else ""
    return ", ".join(names[:MAX_NAMES]) + more


def _name(output: str) -> str:
    return clean(output, MAX_NAME)
