"""The table of running jobs as lines, and the details of one job. Pure.

Unaware of Textual; the cursor is a job's number, so it stays on its job while others come and go.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.model.state import BuildState, FinishedJob, Job
from stoker.model.text import clean
from stoker.model.units import format_bytes, format_duration
from stoker.show.tui.glyphs import Glyphs
from stoker.show.tui.lines import Line, Part, elide_path, fit, pad, width_of
from stoker.show.tui.moment import Moment

TOOL_INKS = {
    "cxx": "tool_cxx",
    "nvcc": "tool_nvcc",
    "link": "tool_link",
    "archive": "tool_archive",
    "other": "tool_other",
}
TOOL_NAMES = {"cxx": "c++", "nvcc": "nvcc", "link": "link", "archive": "ar", "other": "other"}

MAX_OUTPUT = 1000


@dataclass(frozen=True, slots=True)
class Column:
    """A column right of the output: its heading, cells, and the screen width from which it is shown."""

    title: str
    width: int
    from_width: int
    right: bool = True


COLUMNS = (
    Column("tool", 5, 70, right=False),
    Column("phase", 8, 76, right=False),
    Column("pid", 8, 110),
    Column("time", 7, 0),
    Column("memory", 8, 0),
    Column("peak", 8, 72),
    Column("expected", 8, 110),
    Column("cpu", 6, 64),
)
"""All columns but the first. Narrow screens keep time and memory; sizes are at most "99.9 GiB"."""


def ordered(state: BuildState) -> list[Job]:
    """The jobs, longest running first: a job never changes its place among the others."""
    return sorted(state.jobs.values(), key=lambda j: (j.started, j.jid))


def first_row(jobs: list[Job], cursor: int | None, rows: int) -> int:
    """The row to begin with so that the cursor's job is seen, in the middle where it can be."""
    at = next((i for i, job in enumerate(jobs) if job.jid == cursor), 0)
    return max(0, min(at - rows // 2, len(jobs) - rows))


def moved(jobs: list[Job], cursor: int | None, by: int, remembered: int = 0) -> int | None:
    """The cursor `by` rows on; from nowhere (or from a job that has ended) it starts at the remembered row."""
    if not jobs:
        return None
    at = next((i for i, job in enumerate(jobs) if job.jid == cursor), None)
    goal = min(remembered, len(jobs) - 1) if at is None else at + by
    return jobs[max(0, min(len(jobs) - 1, goal))].jid


def table(m: Moment, width: int, rows: int, cursor: int | None, g: Glyphs) -> list[Line]:
    """A heading in a rule and up to `rows - 1` jobs."""
    jobs = ordered(m.state)
    columns = _columns(m.state, width)
    room = max(1, rows - 1)
    first = first_row(jobs, cursor, room)
    shown = jobs[first : first + room]
    title = f"running {len(jobs)}"
    if len(jobs) > room:
        title += f" ({first + 1}{g.en_dash}{first + len(shown)})"
    lines = [_heading(title, columns, width, g)]
    lines += [_job_line(job, m.now, columns, width, cursor, g) for job in shown]
    return lines


def lately(state: BuildState, width: int, rows: int, g: Glyphs) -> list[Line]:
    """A heading in a rule and up to `rows - 1` jobs that ended last, newest first, under the table's columns."""
    columns = _columns(state, width)
    heading = (Part("finished lately ", "text_dim"), Part(g.rule * max(0, width - 16), "rule"))
    jobs = state.recent[: -max(1, rows) : -1]
    return [fit(heading, width), *(_finished_line(job, columns, width, g) for job in jobs)]


def _finished_line(job: FinishedJob, columns: list[Column], width: int, g: Glyphs) -> Line:
    told = {
        "tool": TOOL_NAMES[job.tool],
        "phase": "failed" if job.outcome == "failed" else "",
        "time": format_duration(job.seconds),
        "peak": format_bytes(job.peak_rss) if job.peak_rss else "",
    }
    tail = [Part(" " + pad(told.get(c.title, ""), c.width, right=c.right), "text_dim") for c in columns]
    room = max(1, width - width_of(tail) - 2)
    failed = job.outcome == "failed"
    mark = Part(f"{g.fail if failed else g.ok} ", "error" if failed else "ok")
    return fit(
        (mark, Part(pad(elide_path(clean(job.output, MAX_OUTPUT), room, g.ellipsis), room), "text_dim"), *tail), width
    )


def _columns(state: BuildState, width: int) -> list[Column]:
    expected = any(job.expected is not None for job in state.jobs.values())
    return [c for c in COLUMNS if width >= c.from_width and (c.title != "expected" or expected)]


def _heading(title: str, columns: list[Column], width: int, g: Glyphs) -> Line:
    tail = [Part(" " + pad(c.title, c.width, right=c.right), "text_dim") for c in columns]
    room = max(0, width - width_of(tail) - len(title) - 2)
    return fit((Part(f"{title} ", "accent"), Part(g.rule * room, "rule"), Part(" "), *tail), width)


def _job_line(job: Job, now: float, columns: list[Column], width: int, cursor: int | None, g: Glyphs) -> Line:
    picked = job.jid == cursor
    mark, state_ink = {"running": (" ", ""), "frozen": (g.frozen, "frozen"), "on_deck": (g.on_deck, "on_deck")}[
        job.state
    ]
    mark = g.pointer if picked and job.state == "running" else mark
    cells = [(_cell(job, c, now, g), _ink(job, c, state_ink)) for c in columns]
    tail = [Part(" " + pad(text, c.width, right=c.right), ink) for (text, ink), c in zip(cells, columns, strict=True)]
    room = max(1, width - width_of(tail) - 2)
    output = elide_path(clean(job.output, MAX_OUTPUT), room, g.ellipsis)
    line = (Part(f"{mark} ", state_ink or "accent"), Part(pad(output, room), state_ink or "text"), *tail)
    if picked:
        line = tuple(part._replace(ink="cursor_text on cursor") for part in line)
    return fit(line, width)


def _cell(job: Job, column: Column, now: float, g: Glyphs) -> str:
    if column.title == "tool":
        return TOOL_NAMES[job.tool]
    if column.title == "phase":
        return {"frozen": "frozen", "on_deck": "on deck"}.get(job.state) or clean(job.phase, column.width)
    if column.title == "pid":
        return str(job.pid)
    if column.title == "time":
        return format_duration(now - job.started)
    if column.title == "cpu":
        return f"{job.cpu:.0f} %"
    size = {"memory": job.rss, "peak": job.peak_rss, "expected": job.expected}[column.title]
    return format_bytes(size) if size else g.dash


def _ink(job: Job, column: Column, state_ink: str) -> str:
    if column.title == "tool":
        return TOOL_INKS[job.tool]
    if column.title in ("phase", "pid", "peak", "expected"):
        return state_ink or "text_dim"
    return state_ink or "text"


def details(job: Job, state: BuildState, now: float, width: int) -> list[Line]:
    """Everything that is known of one job, for a box of `width` cells."""
    scheduler = state.schedulers.get(job.sid)
    rows = [
        ("tool", f"{TOOL_NAMES[job.tool]}  {clean(job.phase, 40)}".rstrip()),
        ("state", job.state.replace("_", " ")),
        ("pid", str(job.pid)),
        ("running for", format_duration(now - job.started)),
        ("memory", f"{format_bytes(job.rss)}, at most {format_bytes(job.peak_rss)} so far"),
        ("cpu", f"{job.cpu:.0f} % of one core"),
    ]
    if job.expected is not None:
        rows.append(("expected", format_bytes(job.expected)))
    if scheduler is not None:
        rows.append(("started by", f"{scheduler.tool} {clean(scheduler.version, 20)} in {clean(scheduler.directory)}"))
    lines: list[Line] = [(Part(piece, "text bold"),) for piece in _broken(clean(job.output, MAX_OUTPUT), width, 6)]
    lines.append(())
    for label, value in rows:
        first, *rest = _broken(value, width - 13, 4) or [""]
        lines.append((Part(pad(label, 13), "text_dim"), Part(first)))
        lines += [(Part(" " * 13), Part(piece)) for piece in rest]
    return lines


def _broken(text: str, width: int, limit: int) -> list[str]:
    """A path or value in pieces of `width`: paths have no blanks to break at."""
    width = max(1, width)
    return [text[i : i + width] for i in range(0, min(len(text), width * limit), width)]
