"""Started jobs as bars on the time axis of the memory chart: since when, and expected until when. Pure.

Knows neither Textual nor colours (inks name theme tokens), and not where the moment came from.
"""

from __future__ import annotations

from stoker.model.state import Job
from stoker.show.tui.pages.job_list import names_of, since
from stoker.show.tui.pages.job_table import TOOL_INKS
from stoker.show.tui.pages.lines import BLANK, Line, Part, elide_path, fit, pad
from stoker.show.tui.pages.memory_chart import TimeAxis, axis_of
from stoker.show.tui.pages.moment import Moment
from stoker.show.tui.terminal.glyphs import Glyphs

MARGIN = 34
"""Cells to the left of the columns, for the jobs' names."""

CRITICAL = " critical path"
"""Follows the job on the critical path."""


def gantt(m: Moment, width: int, rows: int, g: Glyphs) -> list[Line]:
    """Return exactly `rows` lines, the oldest jobs first."""
    axis = axis_of(m.state, width - MARGIN)
    started = sorted((job for job in m.state.jobs.values() if job.state != "on_deck"), key=since)
    estimate = m.state.estimate
    critical = estimate.critical if estimate is not None else None
    names = names_of(m.state)
    lines = [_bar(job, names[job.output], axis, width, g, critical=job.jid == critical) for job in started[:rows]]
    return [*lines, *[BLANK] * (rows - len(lines))]


def _bar(job: Job, name: str, axis: TimeAxis, width: int, g: Glyphs, *, critical: bool) -> Line:
    name = pad(elide_path(name or f"pid {job.pid}", MARGIN - 3, g.ellipsis), MARGIN - 2, right=True)
    begun = axis.now if job.running_since is None else job.running_since
    first = min(axis.past - 1, max(0, axis.column(begun)))
    frozen = job.state == "frozen"
    ran = Part((g.other if frozen else g.full) * (axis.past - first), "frozen" if frozen else TOOL_INKS[job.tool])
    left = 0.0 if job.lasts is None else max(0.0, job.lasts - job.age(axis.now))
    comes = min(axis.columns - axis.past, round(left / axis.step) or (job.lasts is not None))
    ink = "accent bold" if critical else "text_dim"
    bar = (Part(" " * first), ran, Part(g.promised * comes, "text_dim"))
    return fit((Part(f"{name} ", ink), Part(g.axis, "text_dim"), *bar, Part(CRITICAL if critical else "", ink)), width)
