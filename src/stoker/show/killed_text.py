"""Jobs that were killed, in words: how many, by whom and why, what becomes of them, and what it cost. Pure.

Unaware of screens, and of how they became known. Nothing in the texts can harm a terminal.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable

from stoker.model.events import KilledBy
from stoker.model.killed import is_final, last_death_of
from stoker.model.state import BuildState, KilledJob
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
"""How a job ended, in the order in which kinds are listed."""


def killed_now(state: BuildState) -> list[KilledJob]:
    """The jobs that were killed in this attempt at the step, and have not been made since."""
    attempt = state.step.attempt if state.step is not None else 1
    return [k for k in state.killed if k.attempt == attempt and not is_final(state, k.by)]


def counts_text(state: BuildState) -> str:
    """`3 stopped to free memory, 1 killed by ann`; empty where nobody was killed in this attempt."""
    return _counted(killed_now(state))


def outlook_text(state: BuildState) -> str:
    """The same with what becomes of them: `3 stopped to free memory, will run again`."""
    counts = counts_text(state)
    return f"{counts}, {fate_text(state)}" if counts else ""


def fate_text(state: BuildState) -> str:
    """What becomes of jobs that were killed in this attempt."""
    return "will run again" if not state.over else "not made"


def how_text(by: KilledBy, who: str = "") -> str:
    """How a job ended: `stopped to free memory`, `killed by ann`."""
    return f"killed by {clean(who, MAX_WHO)}" if by == "person" and who else _HOW[by]


def death_text(death: KilledJob) -> str:
    """How one job ended, what it held, and why: `stopped to free memory (2.1 GiB): 0.9 GiB left, ...`."""
    held = f" (held {format_bytes(death.rss)})" if death.rss else ""
    why = f": {clean(death.why, MAX_WHY)}" if death.why else ""
    return f"{how_text(death.by, death.who)}{held}{why}"


def mark_text(state: BuildState, output: str) -> str:
    """What is said where the build tool calls a job failed that was killed, or dropped before it began."""
    death = last_death_of(state, output)
    how = how_text(death.by, death.who) if death is not None else "ended by stoker before it began"
    return f"{how}; the build tool calls that a failure"


def dropped_text(count: int) -> str:
    """What is shown in place of all that a build tool prints of jobs that were dropped before they began."""
    jobs, each = (
        ("1 job that had not started was", "it") if count == 1 else (f"{count} jobs that had not started were", "each")
    )
    return f"{jobs} discarded after the failure; the build tool reports {each} as FAILED"


def cost_lines(state: BuildState) -> list[str]:
    """What kills have cost in the whole build, a line for each kind: `3 stopped to free memory, 4:10 of work lost`."""
    lines = []
    for by, how in _HOW.items():
        if (lost := state.lost.get(by)) is not None and lost.count:
            lines.append(f"{lost.count} {how}, {format_duration(lost.seconds)} of work lost")
    return lines


def _counted(deaths: Iterable[KilledJob]) -> str:
    counts = Counter((death.by, how_text(death.by, death.who)) for death in deaths)
    order = list(_HOW)
    ranked = sorted(counts.items(), key=lambda item: order.index(item[0][0]))
    return ", ".join(f"{count} {how}" for (_, how), count in ranked)
