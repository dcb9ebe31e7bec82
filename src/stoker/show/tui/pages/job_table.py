"""The table of running jobs as lines. Pure.

Does not know Textual, or how jobs are filtered and ordered.
"""

from __future__ import annotations

import math
import re
import sys
from collections import Counter
from collections.abc import Collection, Container
from dataclasses import dataclass

from rich.cells import cell_len

from stoker.model.known_peak import LEAST_MEASURED
from stoker.model.progress import progress_of
from stoker.model.state import BuildState, FinishedJob, Job
from stoker.model.text import clean
from stoker.model.tool import tool_name
from stoker.model.units import format_bytes, format_duration, format_of
from stoker.show.tui.input.pending import Act
from stoker.show.tui.pages.clauses import LEAST_NAME, clauses, shortened
from stoker.show.tui.pages.job_list import JobView, first_row, listed, names_of, seconds_of
from stoker.show.tui.pages.lines import Line, Part, aimed, elide_end, elide_middle, elide_path, fit, pad, width_of, wrap
from stoker.show.tui.pages.moment import Moment
from stoker.show.tui.pages.names import found_text, matches, plain_name, short_name, stem
from stoker.show.tui.terminal.glyphs import Glyphs

TOOL_INKS = {
    "cxx": "tool_cxx",
    "nvcc": "tool_nvcc",
    "link": "tool_link",
    "archive": "tool_archive",
    "other": "tool_other",
}

WAITING = ("tool", "phase", "pid")
"""Columns that a waiting job's reason replaces."""

NAME_SHARE, NAME_STEP = 0.5, 8
"""Maximum share of the room for name and reason that a waiting job's name takes; it grows in steps of NAME_STEP cells,
so that reasons do not move with every new job."""


LEAST_REASON_WIDTH = 56
"""Screen width from which a waiting job's row shows its reason beside its name."""

NEXT = "; next: "
"""Precedes the reason of the first job that does not fit into the table."""

BRIEFLY = {
    "memory kept for ": "kept for ",
    "would have to be stopped at once": "would stop at once",
    "waits after ": "after ",
}
"""Beginnings of reasons, and shorter forms for rows that have no room for them and a name."""

NO_MEMORY = "too little memory"
"""The reason in a row, in place of one that consists of figures."""

FROZEN = "frozen: "
"""Precedes the reason of a frozen job where there is room: in its row nothing else but a sign says what it is."""

_SIZE = re.compile(r"\d (?:[KMGT]i)?B\b")

_BEGINS_WITH_SIZE = re.compile(r"[\d.]+ (?:[KMGT]i)?B\b")

_MEASURED = re.compile(rf"{_SIZE.pattern}|\d %|\d:\d\d")
"""A figure that changes while its reason stays."""

_ALONE_AFTER = re.compile(r"runs alone once (\d+) jobs? ha(?:s|ve) ended")
"""The reason of a job that is to run alone, after its own name."""

MOST_DIGITS = 7
"""Characters of two sizes that fit into "mem/expected" with "/", "+" or "?", and their unit."""

UNMEASURED = "too short"
"""Shown as the peak of a job that was too short to measure."""

OLD_REASON = 5.0
"""Age of a reason, in seconds, from which it is shown."""

LEAST_WITH_WHY, MOST_WHY, LEAST_REASON = 6, 3, 32
"""Lines of the table from which the picked job's reason is shown below it, its maximum lines, and the cells that the
next job's reason needs after the counts."""

MOST_NAMED = 24
"""Maximum cells of the job's name before its reason."""


@dataclass(frozen=True, slots=True)
class Column:
    """A column to the right of the output: its heading, its width, and the screen widths at which it is shown."""

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
    Column("peak", len(UNMEASURED), 72),
    Column("cpu", 6, 64),
)
"""The columns after the name, for a build that is only watched. Narrow screens keep time and memory; sizes are at most
"99.9 GiB"."""

GOVERNED = (
    *COLUMNS[:4],
    Column("memory", 8, 0, until_width=70),
    Column("mem/expected", 13, 70),
    Column("peak", len(UNMEASURED), 110),
    Column("cpu", 6, 76),
)
"""The same for a governed build, where the expected memory of a job matters more than its peak."""


def table(m: Moment, width: int, rows: int, view: JobView, g: Glyphs) -> list[Line]:
    """Return a heading and up to `rows - 1` jobs; one line gives the number of jobs on deck that do not fit."""
    jobs = listed(m.state, m.now, view)
    columns = _columns(m.state, width)
    why = _below(m, view, width, g) if rows >= LEAST_WITH_WHY else []
    room = max(1, rows - 1 - len(why))
    started = sum(job.state != "on_deck" for job in jobs)
    if len(jobs) > room > 1 and started < len(jobs):
        room -= 1
    first = first_row(jobs, view.cursor, room)
    shown = jobs[first : first + room]
    title = _title(jobs, started, first, len(shown), g) + _held(m.state, jobs)
    title = found_text(title, view.words, len(jobs), len(m.state.jobs))
    title += _unlisted(m.state) if view.words else ""
    lines = [_heading(title, columns, width, view, g)]
    names = names_of(m.state)
    longest = max((cell_len(names[job.output]) for job in shown if reason_text(job) or job_host(job)), default=0)
    named = NAME_STEP * (longest // NAME_STEP + 1)
    known = _known_names(m.state)
    for job in shown:
        line = _job_line(job, names[job.output], m, columns, width, view.cursor, named, g, known)
        lines.append(aimed(line, f"job:{job.jid}"))
    above = any(job.state == "on_deck" for job in shown)
    return [*lines, *_more(jobs[first + len(shown) :], width, g, reason=not (why or above)), *why][:rows]


def _title(jobs: list[Job], started: int, first: int, shown: int, g: Glyphs) -> str:
    """Return what the table contains, and which rows are visible if not all started jobs are."""
    frozen = sum(job.state == "frozen" for job in jobs)
    title = f"running {started - frozen}" + (f", frozen {frozen}" if frozen else "")
    seen = min(shown, started - first)
    if 0 < seen < started:
        title += f", row {first + 1}" if seen == 1 else f", rows {first + 1}{g.en_dash}{first + seen}"
    return title


def _held(state: BuildState, jobs: list[Job]) -> str:
    """Return how much of the build's memory these jobs hold, in the unit of the whole: the rest is in its other
    processes, in programs that jobs share, and in jobs that have just ended."""
    held = sum(job.rss for job in jobs)
    if not 0 < held <= state.memory.build:
        return ""
    part, _, whole = format_of(held, state.memory.build).partition(" of ")
    return f", {part} of the build's {whole}"


def _unlisted(state: BuildState) -> str:
    """Return how many jobs no row stands for, as nobody has started them: a filter may be for one of those."""
    p = progress_of(state)
    left = p.never_ran - len(state.jobs) - len(state.leaving)
    return f"; {left} more not started yet" if p.total_known and left > 0 else ""


def _more(below: list[Job], width: int, g: Glyphs, *, reason: bool) -> list[Line]:
    """Return how many jobs do not fit, if some of them are on deck, and with `reason` why the first of those waits.

    All of them are also in the level's counts.
    """
    waiting = [job for job in below if job.state == "on_deck"]
    if not waiting:
        return []
    text = f"  +{len(waiting)} more on deck"
    if len(below) > len(waiting):
        text = f"  +{len(below) - len(waiting)} more started, {len(waiting)} on deck"
    room = width - cell_len(text) - len(NEXT)
    if reason and (why := reason_text(waiting[0])) and room >= LEAST_REASON:
        text += NEXT + clauses(_without_figures(why), room, g.ellipsis)
    return [fit((Part(elide_end(text, width, g.ellipsis), "text_dim"),), width)]


def _below(m: Moment, view: JobView, width: int, g: Glyphs) -> list[Line]:
    """Return the lines below the table: why the picked job waits, or how it ended and that nothing is picked now."""
    if not view.ended:
        return _why_lines(m.state.jobs.get(view.cursor or 0), m.now, width, g)
    least, ended = min(cell_len(view.ended), MOST_NAMED), f" {view.end}; nothing is picked"
    whole = f"{ended}: {m.key('job.down')} picks a job"
    rest = next((text for text in (whole, ended) if cell_len(text) + least <= width - 2), f" {view.end}")
    name = elide_path(view.ended, max(1, width - 2 - cell_len(rest)), g.ellipsis)
    return [fit((Part(f"  {name}{rest}", "text_dim"),), width)]


def _why_lines(job: Job | None, now: float, width: int, g: Glyphs) -> list[Line]:
    """Return why the picked job waits, in full: its row shows only a part of it. The job is named, as the wheel picks
    another one while the eye is on the first."""
    why = dated_reason(job, now) if job is not None else ""
    if job is None or not why:
        return []
    name = plain_name(job.output) or f"pid {job.pid}"
    head = f"{elide_path(name, min(MOST_NAMED, width // 4), g.ellipsis)} waits: "
    first, *more = wrap(head + why, max(1, width - 4), MOST_WHY)
    lines = [(Part(f"  {first[: len(head)]}", "on_deck"), Part(first[len(head) :]))]
    return [fit(line, width) for line in (*lines, *((Part(f"    {piece}"),) for piece in more))]


def lately(state: BuildState, width: int, rows: int, g: Glyphs, words: str = "") -> list[Line]:
    """Return a heading and up to `rows - 1` recently finished jobs that match `words`, newest first, in the table's
    columns."""
    columns = _columns(state, width)
    heading = (Part("finished recently ", "text_dim"), Part(g.rule * max(0, width - 18), "rule"))
    jobs = [job for job in reversed(state.history.recent) if matches(words, plain_name(job.output))][: max(0, rows - 1)]
    names = names_of(state)
    return [fit(heading, width), *(_finished_line(job, names[job.output], columns, width, g) for job in jobs)]


def _finished_line(job: FinishedJob, named: str, columns: list[Column], width: int, g: Glyphs) -> Line:
    mark, ink, word = _end_of(job, g)
    peak = "peak" if any(c.title == "peak" for c in columns) else "mem/expected"
    texts = {
        "tool": tool_name(job.tool, job.output, is_c=job.is_c),
        "phase": word,
        "time": format_duration(job.seconds),
        peak: peak_text(job),
    }
    tail = [Part(" " + pad(texts.get(c.title, ""), c.width, right=c.right), "text_dim") for c in columns]
    room = max(1, width - width_of(tail) - 2)
    name = Part(pad(elide_path(named, room, g.ellipsis), room), "text_dim")
    return fit((Part(f"{mark} ", ink), name, *tail), width)


def peak_text(job: FinishedJob) -> str:
    """Return the peak memory of a job, with a + if it may have been more, what it was less than if it was too short to
    measure, or that it was; empty if nobody saw a longer one."""
    if job.peak is not None:
        return job.peak.text
    return UNMEASURED if job.seconds < LEAST_MEASURED else ""


def _end_of(job: FinishedJob, g: Glyphs) -> tuple[str, str, str]:
    """Return a mark, an ink, and a word of at most eight cells for how a job ended."""
    if job.outcome == "failed":
        return g.fail, "error", "failed"
    if job.outcome == "killed":
        return g.killed, "killed", "stopped" if job.killed_by == "shed" else "killed"
    if job.outcome == "interrupted":
        return g.warn, "warn", "stopped"
    return g.ok, "ok", ""


def _columns(state: BuildState, width: int) -> list[Column]:
    columns = COLUMNS if state.level.target is None else GOVERNED
    return [c for c in columns if c.from_width <= width < c.until_width]


def _heading(title: str, columns: list[Column], width: int, view: JobView, g: Glyphs) -> Line:
    tail = [part for column in columns for part in _head(column, view, g)]
    title += f" by name{g.sorted_by}" if view.order == "name" else ""
    title = clauses(title, max(0, width - width_of(tail) - 2), g.ellipsis)
    room = max(0, width - width_of(tail) - len(title) - 2)
    named = aimed((Part(f"{title} ", "accent"), Part(g.rule * room, "rule")), "sort:name")
    return fit((*named, Part(" "), *tail), width)


def _head(column: Column, view: JobView, g: Glyphs) -> Line:
    """Return a column's heading after a blank, marked if the jobs are sorted by it; a click sorts by it."""
    orders = ["memory" if title == "mem" else title for title in column.title.split("/")]
    marks = [g.sorted_by if order == view.order else "" for order in orders]
    text = "/".join(f"{title}{mark}" for title, mark in zip(column.title.split("/"), marks, strict=True))
    texts = (" " + pad(text, column.width, right=column.right)).split("/")
    slashes = ["/"] * (len(texts) - 1) + [""]
    return tuple(
        Part(f"{text}{slash}", "text_dim", f"sort:{order}")
        for text, slash, order in zip(texts, slashes, orders, strict=True)
    )


def _job_line(
    job: Job,
    name: str,
    m: Moment,
    columns: list[Column],
    width: int,
    cursor: int | None,
    named: int,
    g: Glyphs,
    known: _Names,
) -> Line:
    picked = job.jid == cursor
    mark, state_ink = {"running": (" ", ""), "frozen": (g.frozen, "frozen"), "on_deck": (g.on_deck, "on_deck")}[
        job.state
    ]
    mark = g.pointer if picked and job.state == "running" else mark
    act = m.pending.acts.get(job.jid)
    waits = bool(reason_text(job)) and act is None and width >= LEAST_REASON_WIDTH
    on = job_host(job) if act is None else ""
    tail = []
    for column in columns:
        if (waits or on) and column.title in WAITING:
            continue
        text, ink = _cell(job, column, m.now, g), _ink(job, column, state_ink)
        if act is not None and column.title == "phase":
            text, ink = _doing(job, act), "person bold"
        tail.append(Part(" " + pad(text, column.width, right=column.right), ink))
    room = max(1, width - width_of(tail) - 2)
    name_ink = "person" if act is not None else state_ink or "text"
    if waits or on:
        named = min(named, int(room * NAME_SHARE))
        tail = [_reason(job, room - named, g, known) if waits else _host(on, room - named, g), *tail]
        room = named
    output = elide_path(name, room, g.ellipsis)
    line = (Part(f"{mark} ", state_ink or "accent"), Part(pad(output, room), name_ink), *tail)
    if picked:
        line = tuple(part._replace(ink="cursor_text on cursor") for part in line)
    return fit(line, width)


def _reason(job: Job, width: int, g: Glyphs, known: _Names) -> Part:
    """Return why a job waits, after a blank, shortened to fit the row: its box shows it in full."""
    why = _briefly(_without_figures(reason_text(job)), job, width - 1, g, known)
    return Part(" " + pad(clauses(why, width - 1, g.ellipsis, known.alike), width - 1), "text_dim")


def _briefly(why: str, job: Job, width: int, g: Glyphs, known: _Names) -> str:
    """Return a reason, in a shorter form if no whole clause of it fits. Beside its own row, a job needs no name."""

    def least() -> str:
        return shortened(why, known.alike)[-1]

    name = plain_name(job.output) + " "
    if why.startswith(name) and cell_len(why) > width:
        why = _ALONE_AFTER.sub(r"alone: waits for \1", why.removeprefix(name))
    for long, short in BRIEFLY.items():
        if why.startswith(long) and cell_len(least()) > width:
            why = short + why.removeprefix(long)
    if (excess := cell_len(least()) - width) <= 0:
        named = job.state != "frozen" or "frozen" in why or cell_len(FROZEN + least()) > width
        return why if named else FROZEN + why
    return " ".join(
        _short(word, cell_len(word) - excess, known, g) if stem(word) != word else word for word in least().split(" ")
    )


def _short(name: str, width: int, known: _Names, g: Glyphs) -> str:
    """Return an object's name in `width` cells, without its middle if no part of it is enough: a reason that ends
    before the name says nothing."""
    short = short_name(name, width, known.stems, g.ellipsis)
    return elide_middle(short, width, g.ellipsis) if cell_len(short) > width >= LEAST_NAME else short


@dataclass(frozen=True, slots=True)
class _Names:
    """The names of all jobs: `alike` are those that differ from another one only in their folders, `stems` all file
    names without the suffixes of objects."""

    alike: Container[str]
    stems: Collection[str]


def _known_names(state: BuildState) -> _Names:
    names = {plain_name(job.output) for job in state.jobs.values()}
    number = Counter(name.rpartition("/")[2] for name in names)
    alike = frozenset(name for name in names if number[name.rpartition("/")[2]] > 1)
    return _Names(alike, frozenset(stem(name.rpartition("/")[2]) for name in names))


def _without_figures(why: str) -> str:
    """Return a reason without sizes: they are of the moment when the job began to wait for it, and beside them stand
    those of now. Below the table and in the job's box they stand with their age."""
    if why.startswith(("needs up to ", "needs ~")):
        return NO_MEMORY
    if why.startswith("its size is a guess: ") and "; " in why:
        return f"waits after {why.partition('; after ')[2].rpartition(', as ')[0]}"
    if _BEGINS_WITH_SIZE.match(why):  # what is left, or lacks: without the size, no whole sentence remains
        why = f"{NO_MEMORY}{''.join(why.partition('; ')[1:])}"
    first, *more = why.replace("memory is kept for ", "memory kept for ", 1).split("; ")
    first = first.partition(": ")[0] if _SIZE.search(first) else first
    return "; ".join([first, *(clause for clause in more if not _SIZE.search(clause))])


def _host(on: str, width: int, g: Glyphs) -> Part:
    """Return which other machine compiles a job, after a blank."""
    return Part(" " + pad(elide_end(f"{g.becomes} {on}", width - 1, g.ellipsis), width - 1), "accent")


def job_host(job: Job) -> str:
    """Return the other machine that compiles a job; empty while this one does."""
    return clean(job.host) if job.state == "running" else ""


def _doing(job: Job, act: Act) -> str:
    """Return the state of a job between a key press and the build's reaction, in at most eight cells."""
    if act == "thaw" and job.state == "on_deck":
        return "starting"
    return {"freeze": "freezing", "thaw": "thawing", "alone": "alone", "together": "together", "kill": "killing"}[act]


def _cell(job: Job, column: Column, now: float, g: Glyphs) -> str:
    if column.title == "tool":
        return tool_name(job.tool, job.output, is_c=job.is_c)
    if column.title == "phase":
        return {"frozen": "frozen", "on_deck": "on deck"}.get(job.state) or clean(job.phase, column.width)
    if column.title == "pid":
        return str(job.shown_pid)
    if column.title == "time":
        return format_duration(seconds_of(job, now))
    if column.title == "cpu":
        return g.dash if job.state == "on_deck" or job.cpu_due else f"{job.cpu:.0f} %"
    if column.title == "mem/expected":
        return of_expected(job, g)
    size = {"memory": job.rss, "peak": job.peak_rss}[column.title]
    return format_bytes(size) if size else g.dash


def of_expected(job: Job, g: Glyphs) -> str:
    """Return what a job holds and is expected to need, in one unit: 3.1/4.8 GiB; before it holds any: ~4.8 GiB.

    5.1/5.2+ GiB if it has exceeded what was expected: it will need what it has held, or more. 3.1/4.8? GiB and
    ~4.8 GiB? if that is a guess.
    """
    if job.expected is None or job_host(job):
        return format_bytes(job.rss) if job.rss else g.dash
    if not job.rss:
        return f"~{format_bytes(job.expected)}{'?' if job.guessed else ''}"
    expected = max(job.expected, job.peak_rss)
    held, whole = format_bytes(job.rss).split(), format_bytes(expected).split()
    if held[1] != whole[1]:
        unit = max(job.rss, expected)
        figure, name = format_bytes(unit).split()
        scale = unit / float(figure)
        held, whole = [f"{job.rss / scale:.1f}", name], [f"{expected / scale:.1f}", name]
    sign = "+" if job.expected <= job.peak_rss else "?" if job.guessed else ""
    if not sign:
        return f"{held[0]}/{whole[0]} {whole[1]}"
    # The column has no room for a sign and three digits with a fraction on both sides.
    figure = whole[0] if len(held[0] + whole[0]) <= MOST_DIGITS else str(math.ceil(float(whole[0])))
    return f"{held[0]}/{figure}{sign} {whole[1]}"


def _ink(job: Job, column: Column, state_ink: str) -> str:
    if column.title == "tool" and job.state != "on_deck":
        return TOOL_INKS[job.tool]
    if column.title in ("phase", "pid", "peak"):
        return state_ink or "text_dim"
    return state_ink or "text"


def dated_reason(job: Job, now: float) -> str:
    """Return why a job waits, and the age of that reason if its figures may differ from those on the screen."""
    why, age = reason_text(job), now - job.waits_since
    is_old = bool(job.waits) and age >= OLD_REASON and bool(_MEASURED.search(why))
    return f"{why} (as of {format_duration(age)} ago)" if is_old else why


def reason_text(job: Job) -> str:
    """Return why a job waits; empty if it runs, or if the reason is not known yet."""
    if job.state == "running":
        return ""
    if job.waits:
        return plain_name(job.waits)
    return "frozen by hand until it is thawed" if job.moved_by == "person" else ""
