"""Whether the record of a build shows a shortage of memory at its end, so that a kill may have been for that. Pure."""

from __future__ import annotations

from stoker.model.state import BuildState

KERNEL_KILLED = "the kernel killed "
"""How a notice of the kernel's kills for lack of memory begins."""

LATELY = 30.0
"""Seconds before the last event that count."""

SHORT = 0.85
"""Share of the budget in use from which on memory is short: daemons such as earlyoom begin to kill at 0.9, and a sample
is up to a second old."""


def memory_was_short(state: BuildState) -> bool | None:
    """Return whether the kernel killed for lack of memory lately, or memory was nearly used up; None if nobody has
    measured it. Of a budget that a person has set the kernel knows nothing: that it is used up is no sign."""
    if any(n.text.startswith(KERNEL_KILLED) and n.time >= state.time - LATELY for n in state.notices):
        return True
    machine = state.machine
    if machine is None or not state.recent.points:
        return None
    is_real = machine.limiting_group or machine.memory_limit_source in ("", "machine")
    return bool(is_real) and most_used_lately(state) >= SHORT * machine.memory_budget


def most_used_lately(state: BuildState) -> int:
    """Return the most bytes that were seen to count against the budget lately."""
    points = state.recent.points
    return max((p.memory_used for p in points if p.time >= points[-1].time - LATELY), default=0)
