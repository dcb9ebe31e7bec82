"""Describes killed jobs: how many, who killed them and why, what happens to them next, and what it cost. Pure.

Knows no screens, and not how the deaths were detected. The texts are safe to print on a terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from stoker.model.events import KilledBy
from stoker.model.killed import (
    DroppedBy,
    all_failed_by_themselves,
    attempt_of,
    failed_by_itself,
    is_final,
    killed_in_attempt,
    last_death_of,
    same_output,
    step_runs_again,
)
from stoker.model.progress import in_next_attempt, will_not_run
from stoker.model.state import BuildState, Failure, KilledJob
from stoker.model.text import clean
from stoker.model.units import format_bytes, format_duration

MAX_WHO = 40
MAX_WHY = 240

_HOW: dict[KilledBy, str] = {
    "shed": "stopped to free memory",
    "person": "killed by a person",
    "memory": "out of memory",
    "unknown": "killed from outside",
}
"""How a job ended, in the order in which the kinds are listed."""


def killed_now(state: BuildState) -> list[KilledJob]:
    """Return the jobs that were killed in this attempt at the step and have not been built since."""
    return [k for k in killed_in_attempt(state) if not is_final(state, k.by)]


def counts_text(state: BuildState) -> str:
    """Return `3 stopped to free memory, 1 killed by ann`; empty if no job was killed in this attempt."""
    return _counted(killed_now(state))


def earlier_text(state: BuildState) -> str:
    """Return what was killed in earlier attempts at the step: `1 killed from outside in earlier attempts`."""
    counts = _counted(k for k in state.killed if k.attempt < attempt_of(state))
    return f"{counts} in earlier attempts" if counts else ""


def outlook_text(state: BuildState) -> str:
    """Return the counts with what happens next: `3 stopped to free memory, will run again`."""
    counts = counts_text(state)
    return f"{counts}, {fate_text(state)}" if counts else ""


def drain_text(state: BuildState) -> str:
    """Return when killed jobs run again, while their build tool starts nothing more: `1 stopped to free memory; the
    step runs again once ninja's 13 jobs have ended`. Empty otherwise."""
    counts, drained = counts_text(state), next((s for s in state.schedulers.values() if s.drains), None)
    if not counts or drained is None or state.phase == "stopping" or failed_by_itself(state) is not None:
        return ""
    left = sum(job.sid == drained.sid for job in state.jobs.values())
    if not left:
        return ""
    jobs = f"{drained.tool}'s {left} jobs have" if left > 1 else f"{drained.tool}'s last job has"
    return f"{counts}; the step runs again once {jobs} ended"


def fate_text(state: BuildState) -> str:
    """Return what happens to the jobs that were killed in this attempt."""
    errors = all_failed_by_themselves(state)
    more = f" and {len(errors) - 1} more" if len(errors) > 1 else ""
    why = f": {_short(errors[0])}{more} failed" if errors else ""
    if state.over:
        return f"not built{why}"
    if not why and state.phase == "stopping":
        why = ": the build is being stopped"
    return f"will not run again{why}" if why else "will run again"


def again_text(state: BuildState) -> str:
    """Return whether the jobs that were killed in this attempt run again, in the fewest words: `to run again`."""
    if state.over:
        return "not built"
    return "to run again" if step_runs_again(state) else "will not run again"


def not_started_text(state: BuildState) -> str:
    """Return how many jobs this attempt does not start any more: `6 will not run` after failures, `6 wait for the next
    attempt` after kills; empty if it may start them all."""
    if left_out := will_not_run(state):
        return f"{left_out} will not run"
    waiting = in_next_attempt(state)
    return f"{waiting} wait for the next attempt" if waiting else ""


def _short(failure: Failure) -> str:
    return clean(failure.output.rpartition("/")[2], MAX_WHO) or "a step"


def how_text(by: KilledBy, who: str = "") -> str:
    """Return how a job ended: `stopped to free memory`, `killed by ann`."""
    return f"killed by {clean(who, MAX_WHO)}" if by == "person" and who else _HOW[by]


def death_text(death: KilledJob) -> str:
    """Return how one job ended, what it held, and why: `stopped to free memory (held 2.1 GiB): 0.9 GiB left, ...`."""
    held = f" (held {format_bytes(death.rss)})" if death.rss else ""
    why = f": {clean(death.why, MAX_WHY)}" if death.why else ""
    return f"{how_text(death.by, death.who)}{held}{why}"


def mark_text(state: BuildState, output: str) -> str:
    """Return the remark for a job that the build tool calls failed although it was killed, or dropped on deck."""
    death = last_death_of(state, output)
    how = how_text(death.by, death.who) if death is not None else "ended by stoker before it began"
    return f"{how}; the build tool calls that a failure"


def dropped_text(count: int, by: DroppedBy = "failure") -> str:
    """Return the line that replaces everything a build tool prints about jobs that were dropped or interrupted: how
    many, and what `by`."""
    jobs, were, each = ("1 job", "was", "it") if count == 1 else (f"{count} jobs", "were", "each")
    what = {
        "failure": f"{jobs} that had not started {were} discarded after the failure",
        "kill": f"{jobs} that had not started {were} discarded after the kill",
        "stop": f"{jobs} {were} ended by the stop or discarded before it",
        "rerun": f"{jobs} {were} ended or discarded here, and ran again",
    }[by]
    return f"{what}; the build tool reports {each} as FAILED"


def end_text(state: BuildState, jid: int, output: str) -> str:
    """Return how a job ended, and if it was killed, what happens to its step: `was killed by ann and runs again`."""
    death = next((death for death in reversed(state.killed) if death.jid == jid), None)
    if death is None:
        return "has ended"
    how = f"was {how_text(death.by, death.who)}"
    if any(same_output(job.output, output or death.output) for job in state.jobs.values()):
        return f"{how} and runs again"
    if death.attempt != attempt_of(state):
        return how
    return f"{how} and {'will run again' if step_runs_again(state) else 'will not run again'}"


def cost_lines(state: BuildState) -> list[str]:
    """Return the cost of kills in the whole build, a line per kind: `stopped to free memory 3 times, 4:10 of work
    lost`. One job may be killed several times, and be built in the end."""
    lines = []
    for by, how in _HOW.items():
        if (lost := state.lost.get(by)) is not None and lost.count:
            often = "once" if lost.count == 1 else f"{lost.count} times"
            lines.append(f"{how} {often}, {format_duration(lost.seconds)} of work lost")
    return lines


def _counted(deaths: Iterable[KilledJob]) -> str:
    counts = Counter((death.by, how_text(death.by, death.who)) for death in deaths)
    order = list(_HOW)
    ranked = sorted(counts.items(), key=lambda item: order.index(item[0][0]))
    return ", ".join(f"{count} {how}" for (_, how), count in ranked)
