"""The table of running jobs as lines, and the details of one job. Pure.

Unaware of Textual; the cursor is a job's number, so it stays on its job while others come and go.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from stoker.model.killed import death_of
from stoker.model.state import BuildState, FinishedJob, Job
from stoker.model.text import clean
from stoker.model.units import format_bytes, format_duration, format_rough
from stoker.show.killed_text import fate_text, how_text
from stoker.show.tui.input.pending import Act
from stoker.show.tui.pages.lines import Line, Part, elide_path, fit, pad, width_of, wrap
from stoker.show.tui.pages.moment import Moment, time_of_day
from stoker.show.tui.terminal.glyphs import Glyphs

TOOL_INKS = {
    "cxx": "tool_cxx",
    "nvcc": "tool_nvcc",
    "link": "tool_link",
    "archive": "tool_archive",
    "other": "tool_other",
}
TOOL_NAMES = {"cxx": "c++", "nvcc": "nvcc", "link": "link", "archive": "ar", "other": "other"}

MAX_OUTPUT = 1000

LEAST_COURSE = 4
"""Steps from which a job's course is worth a line."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column right of the output: its heading, its cells, and between which screen widths it is shown."""

    title: str
    width: int
    from_width: int
    right: bool = True
    until_width: int = sys.maxsize


COLUMNS = (
    Column("tool", 5, 70, right=False),
    Column("phase", 8, 76, right=False),
    Column("pid", 8, 110),
    Column("time", 7, 0),
    Column("memory", 8, 0),
    Column("peak", 8, 72),
    Column("cpu", 6, 64),
)
"""All columns but the first of a build that is only watched. Narrow screens keep time and memory; sizes are at most
"99.9 GiB"."""

GOVERNED = (
    *COLUMNS[:4],
    Column("memory", 8, 0, until_width=70),
    Column("mem/expected", 13, 70),
    Column("peak", 8, 110),
    Column("cpu", 6, 76),
)
"""The same for a governed build, where the memory that a job is expected to need matters more than what it needed."""


def ordered(state: BuildState) -> list[Job]:
    """The jobs that were let go, longest first, then those on deck, longest waiting first.

    A job never changes its place among the others while it runs, nor when it is frozen.
    """
    return sorted(state.jobs.values(), key=_place)


def _place(job: Job) -> tuple[bool, float, int]:
    waits = job.state == "on_deck"
    since = job.started if waits or job.running_since is None else job.running_since
    return waits, since, job.jid


def soloist(state: BuildState) -> Job | None:
    """The job that runs alone, or is to; None if there is none."""
    return next((job for job in ordered(state) if job.alone), None)


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
    """A heading in a rule and up to `rows - 1` jobs; of those on deck that do not fit, one line says how many."""
    jobs = ordered(m.state)
    columns = _columns(m.state, width)
    room = max(1, rows - 1)
    started = sum(job.state != "on_deck" for job in jobs)
    if len(jobs) > room > 1 and started < len(jobs):
        room -= 1
    first = first_row(jobs, cursor, room)
    shown = jobs[first : first + room]
    lines = [_heading(_title(m.state, started, first, len(shown), g), columns, width, g)]
    lines += [_job_line(job, m, columns, width, cursor, g) for job in shown]
    return [*lines, *_more(jobs[first + len(shown) :], width)][:rows]


def _title(state: BuildState, started: int, first: int, shown: int, g: Glyphs) -> str:
    """What the table holds, and which rows of it are seen if not all that were started are."""
    frozen = sum(job.state == "frozen" for job in state.jobs.values())
    title = f"running {started - frozen}" + (f", frozen {frozen}" if frozen else "")
    seen = min(shown, started - first)
    return title if seen == started or seen <= 0 else f"{title} ({first + 1}{g.en_dash}{first + seen})"


def _more(below: list[Job], width: int) -> list[Line]:
    """How many jobs follow that do not fit, where some of them are on deck. Each is in the level's counts, too."""
    waiting = sum(job.state == "on_deck" for job in below)
    if not waiting:
        return []
    text = f"  +{waiting} more on deck"
    if len(below) > waiting:
        text = f"  +{len(below) - waiting} more started, {waiting} on deck"
    return [fit((Part(text, "text_dim"),), width)]


def lately(state: BuildState, width: int, rows: int, g: Glyphs) -> list[Line]:
    """A heading in a rule and up to `rows - 1` jobs that ended last, newest first, under the table's columns."""
    columns = _columns(state, width)
    heading = (Part("finished recently ", "text_dim"), Part(g.rule * max(0, width - 18), "rule"))
    jobs = state.history.recent[: -max(1, rows) : -1]
    return [fit(heading, width), *(_finished_line(job, columns, width, g) for job in jobs)]


def _finished_line(job: FinishedJob, columns: list[Column], width: int, g: Glyphs) -> Line:
    mark, ink, word = _end_of(job, g)
    peak = "peak" if any(c.title == "peak" for c in columns) else "mem/expected"
    texts = {
        "tool": TOOL_NAMES[job.tool],
        "phase": word,
        "time": format_duration(job.seconds),
        peak: format_bytes(job.peak_rss) if job.peak_rss else "",
    }
    tail = [Part(" " + pad(texts.get(c.title, ""), c.width, right=c.right), "text_dim") for c in columns]
    room = max(1, width - width_of(tail) - 2)
    name = Part(pad(elide_path(clean(job.output, MAX_OUTPUT), room, g.ellipsis), room), "text_dim")
    return fit((Part(f"{mark} ", ink), name, *tail), width)


def _end_of(job: FinishedJob, g: Glyphs) -> tuple[str, str, str]:
    """A mark, an ink, and a word of at most eight cells for how a job has ended."""
    if job.outcome == "failed":
        return g.fail, "error", "failed"
    if job.outcome == "killed":
        return g.killed, "killed", "stopped" if job.killed_by == "shed" else "killed"
    return g.ok, "ok", ""


def _columns(state: BuildState, width: int) -> list[Column]:
    columns = COLUMNS if state.level.target is None else GOVERNED
    return [c for c in columns if c.from_width <= width < c.until_width]


def _heading(title: str, columns: list[Column], width: int, g: Glyphs) -> Line:
    tail = [Part(" " + pad(c.title, c.width, right=c.right), "text_dim") for c in columns]
    room = max(0, width - width_of(tail) - len(title) - 2)
    return fit((Part(f"{title} ", "accent"), Part(g.rule * room, "rule"), Part(" "), *tail), width)


def _job_line(job: Job, m: Moment, columns: list[Column], width: int, cursor: int | None, g: Glyphs) -> Line:
    picked = job.jid == cursor
    mark, state_ink = {"running": (" ", ""), "frozen": (g.frozen, "frozen"), "on_deck": (g.on_deck, "on_deck")}[
        job.state
    ]
    mark = g.pointer if picked and job.state == "running" else mark
    act = m.pending.acts.get(job.jid)
    tail = []
    for column in columns:
        text, ink = _cell(job, column, m.now, g), _ink(job, column, state_ink)
        if act is not None and column.title == "phase":
            text, ink = _doing(job, act), "person bold"
        tail.append(Part(" " + pad(text, column.width, right=column.right), ink))
    room = max(1, width - width_of(tail) - 2)
    output = elide_path(clean(job.output, MAX_OUTPUT), room, g.ellipsis)
    name_ink = "person" if act is not None else state_ink or "text"
    line = (Part(f"{mark} ", state_ink or "accent"), Part(pad(output, room), name_ink), *tail)
    if picked:
        line = tuple(part._replace(ink="cursor_text on cursor") for part in line)
    return fit(line, width)


def _doing(job: Job, act: Act) -> str:
    """What is said of a job between a person's key and the build's answer to it, in at most eight cells."""
    if act == "thaw" and job.state == "on_deck":
        return "starting"
    return {"freeze": "freezing", "thaw": "thawing", "alone": "alone", "together": "together", "kill": "killing"}[act]


def _cell(job: Job, column: Column, now: float, g: Glyphs) -> str:
    if column.title == "tool":
        return TOOL_NAMES[job.tool]
    if column.title == "phase":
        return {"frozen": "frozen", "on_deck": "on deck"}.get(job.state) or clean(job.phase, column.width)
    if column.title == "pid":
        return str(job.pid)
    if column.title == "time":
        return format_duration(now - since(job))
    if column.title == "cpu":
        return g.dash if job.state == "on_deck" else f"{job.cpu:.0f} %"
    if column.title == "mem/expected":
        return of_expected(job, g)
    size = {"memory": job.rss, "peak": job.peak_rss}[column.title]
    return format_bytes(size) if size else g.dash


def since(job: Job) -> float:
    """When a job was let go; on deck, when it began to wait. Unix seconds."""
    return job.started if job.running_since is None else job.running_since


def of_expected(job: Job, g: Glyphs) -> str:
    """What a job holds and what it is expected to need, in one unit: 3.1/4.8 GiB; before it holds any: ~4.8 GiB."""
    if job.expected is None:
        return format_bytes(job.rss) if job.rss else g.dash
    if not job.rss:
        return f"~{format_bytes(job.expected)}"
    held, whole = format_bytes(job.rss).split(), format_bytes(job.expected).split()
    if held[1] != whole[1]:
        unit = max(job.rss, job.expected)
        figure, name = format_bytes(unit).split()
        scale = unit / float(figure)
        held, whole = [f"{job.rss / scale:.1f}", name], [f"{job.expected / scale:.1f}", name]
    return f"{held[0]}/{whole[0]} {whole[1]}"


def _ink(job: Job, column: Column, state_ink: str) -> str:
    if column.title == "tool" and job.state != "on_deck":
        return TOOL_INKS[job.tool]
    if column.title in ("phase", "pid", "peak"):
        return state_ink or "text_dim"
    return state_ink or "text"


def details(job: Job, state: BuildState, now: float, width: int, g: Glyphs) -> list[Line]:
    """Everything that is known of one job that has not ended, for a box of `width` cells."""
    return _box(job.output, _present(job, state, now, g), width)


def last_details(job: Job, state: BuildState, width: int) -> list[Line]:
    """The same of a job that has ended since it was seen as `job`."""
    ended = next((j for j in reversed(state.history.recent) if j.jid == job.jid), None)
    if job.jid in state.leaving:
        rows = [("state", "its process has ended; the build tool has not reported how")]
    elif ended is None:
        never = job.running_since is None
        rows = [("state", "dropped: it waited on deck and never ran" if never else "has ended")]
    else:
        death = death_of(state, ended.output, ended.jid) if ended.outcome == "killed" else None
        words = {"ok": "has ended well", "failed": "has failed", "unknown": "has ended", "killed": "was killed"}
        if ended.killed_by is not None:
            words["killed"] = f"was {how_text(ended.killed_by, death.who if death is not None else '')}"
        rows = [("state", words[ended.outcome]), ("took", format_duration(ended.seconds))]
        if ended.outcome == "killed":
            rows += [("why", clean(death.why))] if death is not None and death.why else []
            rows.append(("then", fate_text(state)))
        rows.append(("ended", time_of_day(ended.ended)))
    peak = max(job.peak_rss, ended.peak_rss or 0 if ended is not None else 0)
    rows = [("tool", TOOL_NAMES[job.tool]), *rows, ("pid", str(job.pid))]
    rows += [("memory", f"at most {format_bytes(peak)}")] if peak else []
    return _box(ended.output if ended is not None else job.output, [*rows, *_whose(job, state)], width)


def _present(job: Job, state: BuildState, now: float, g: Glyphs) -> list[tuple[str, str]]:
    waits = job.running_since is None
    rows = [
        ("tool", f"{TOOL_NAMES[job.tool]}  {clean(job.phase, 40)}".rstrip()),
        ("state", _state_text(job)),
        *([("because", reason)] if (reason := reason_text(job)) else []),
        ("pid", str(job.pid)),
        ("waiting for" if waits else "running for", format_duration(now - since(job))),
        ("memory", f"{format_bytes(job.rss)}, at most {format_bytes(job.peak_rss)} so far"),
        *_over_time(job.course.rss, job.expected or 0, g),
        ("cpu", f"{job.cpu:.0f} % of one core"),
        *_over_time(job.course.cpu, 100, g),
    ]
    if job.expected is not None:
        lasts = "" if job.lasts is None else f", for about {format_rough(job.lasts)} on a core of its own"
        rows.append(("expected", f"{format_bytes(job.expected)} at its peak{lasts}"))
    if state.estimate is not None and state.estimate.critical == job.jid:
        rows.append(("critical", "the longest chain of jobs to the end begins here"))
    return [*rows, *_whose(job, state)]


def _over_time(values: Sequence[int], least: int, g: Glyphs) -> list[tuple[str, str]]:
    """What a job has held or used over its life, as growing columns up to `least` or more."""
    if len(values) < LEAST_COURSE:
        return []
    top, last = max(1, least, *values), len(g.levels) - 1
    return [("", "".join(g.levels[max(bool(value), round(value / top * last))] for value in values))]


def _state_text(job: Job) -> str:
    alone = f", alone ({clean(job.alone_by, 20)})" if job.alone_by else ", alone" if job.alone else ""
    return job.state.replace("_", " ") + alone


def reason_text(job: Job) -> str:
    """Why a job waits; empty for one that runs, and where it is not known yet."""
    if job.state == "running":
        return ""
    if job.waits:
        return clean(job.waits)
    return "frozen by hand until it is thawed" if job.moved_by == "person" else ""


def _whose(job: Job, state: BuildState) -> list[tuple[str, str]]:
    scheduler = state.schedulers.get(job.sid)
    if scheduler is None:
        return []
    return [("started by", f"{scheduler.tool} {clean(scheduler.version, 20)} in {clean(scheduler.directory)}")]


def _box(output: str, rows: Sequence[tuple[str, str]], width: int) -> list[Line]:
    lines: list[Line] = [(Part(piece, "text bold"),) for piece in _broken(clean(output, MAX_OUTPUT), width, 6)]
    lines.append(())
    for label, value in rows:
        prose = label in ("because", "why", "state", "expected", "critical")
        first, *rest = (wrap(value, width - 13, 4) if prose else _broken(value, width - 13, 4)) or [""]
        lines.append((Part(pad(label, 13), "text_dim"), Part(first)))
        lines += [(Part(" " * 13), Part(piece)) for piece in rest]
    return lines


def _broken(text: str, width: int, limit: int) -> list[str]:
    """A path or value in pieces of `width`: paths have no blanks to break at."""
    width = max(1, width)
    return [text[i : i + width] for i in range(0, min(len(text), width * limit), width)]
