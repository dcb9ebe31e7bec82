"""The dashboard's upper half as lines: header, progress, decisions. Pure: moment and width in, lines out.

Unaware of Textual, of colours (inks name theme tokens) and of where the moment came from.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from rich.cells import cell_len

from stoker.model.progress import Progress, progress_of
from stoker.model.state import BuildState, DecisionEntry, Notice
from stoker.model.status import time_left
from stoker.model.text import clean
from stoker.model.units import format_duration, format_left, format_rough, format_share
from stoker.show.governing_text import is_person
from stoker.show.tui.pages.lines import (
    BLANK,
    GAP,
    Line,
    Part,
    elide_end,
    elide_middle,
    fit,
    spread,
    width_of,
    wrap,
)
from stoker.show.tui.pages.moment import Moment, time_of_day
from stoker.show.tui.terminal.glyphs import Glyphs

ENTRY_INDENT = 11
"""Cells before the text of a decision or notice: the time of day, a mark and the blanks between."""

MAX_ENTRY_LINES = 8

NAMED_WIDTH = 100
"""Width from which the governor is named, and not only marked, beside what it decided."""

WHAT_LEAST = 24
"""Cells that what was decided keeps at least: a verb and both ends of a file's name."""

LEAST_NAME = 8
"""Cells below which a name with its middle cut out says nothing."""

LEAST_BAR = 10
"""Cells that a bar keeps, with the gaps around what follows it; the band of the remaining time gives way to it."""

PHASE_INKS = {
    "done": "ok",
    "failed": "error",
    "stopped": "warn",
    "stopping": "warn",
    "paused": "warn bold reverse",
    "frozen": "warn bold reverse",
}
PAUSING = {"no": "resuming", "soft": "pausing", "hard": "freezing"}
"""What is said between a person's key and the build's answer to it."""


def shown_command(state: BuildState) -> str:
    """The command as one harmless line."""
    return clean(" ".join(state.command))


def header(m: Moment, width: int, g: Glyphs) -> Line:
    """Name, command, step, phase, elapsed, and the link when it is not simply live."""
    state = m.state
    right = _step(state, width)
    link, ink = link_text(m)
    if link:
        right += [Part(link, ink), GAP]
    right += [*_phase(m, g), GAP]
    right.append(Part(format_duration(m.elapsed), "text bold"))
    room = max(0, width - width_of(right) - 2)
    name = elide_end(clean(state.name) or "build", max(8, room // 2), g.ellipsis)
    command_room = room - cell_len(name) - 2
    left = [Part(name, "accent bold"), GAP]
    if command_room >= 10:
        left.append(Part(elide_middle(shown_command(state), command_room, g.ellipsis), "text_dim"))
    return spread(left, right, width)


def _step(state: BuildState, width: int) -> list[Part]:
    """Which step runs, where there are several, and which attempt at it, where it is not the first."""
    if state.step is None:
        return []
    parts: list[Part] = []
    if state.step.count > 1:
        step = f"step {state.step.index}/{state.step.count}"
        name = clean(state.step.name, 24)
        parts += [Part(f"{step} {name}" if name and width >= 100 else step, "text_dim"), GAP]
    if state.step.attempt > 1:
        parts += [Part(f"attempt {state.step.attempt}", "warn"), GAP]
    return parts


def _phase(m: Moment, g: Glyphs) -> Line:
    """The build's phase; a pause stands out, and so does one that was asked for just now."""
    state, asked = m.state, m.pending.paused
    if asked is not None and asked != state.level.paused:
        return (Part(f" {PAUSING[asked]}{g.ellipsis} ", "warn bold"),)
    mark = {"done": g.ok, "failed": g.fail, "stopped": g.warn, "frozen": g.frozen}.get(state.phase, "")
    words = f"{mark} {state.phase}" if mark else state.phase
    ink = PHASE_INKS.get(state.phase, "text")
    return (Part(f" {words.upper()} " if "reverse" in ink else words, ink),)


def link_text(m: Moment) -> tuple[str, str]:
    """How the build is linked, in words, and the ink; nothing for a live link."""
    if m.link == "lost":
        return "engine lost, reconnecting", "warn bold"
    if m.link == "journal":
        return "from the journal", "text_dim"
    if m.link == "replay":
        return f"replay {clean(m.update.note, 30)}".rstrip(), "accent"
    return ("read-only", "text_dim") if m.read_only and m.link == "live" else ("", "text")


def progress(m: Moment, width: int, g: Glyphs) -> Line:
    """One honest bar with counts, failures and the remaining time; no bar and no percent while the total is unknown."""
    state, p = m.state, progress_of(m.state)
    tail: list[Part] = []
    share = p.share
    if share is not None and p.total_known:
        tail.append(Part(f"{p.finished}/{p.total}", "text bold"))
    elif state.schedulers:
        tail.append(Part(f"{p.finished} done", "text bold"))
    if share is not None:
        tail += [GAP, Part(format_share(share), "text bold")]
    if p.failed:
        tail += [GAP, Part(f"{g.fail} {p.failed} failed", "error bold")]
    if p.killed:
        words = "to run again" if not state.over else "not made"
        tail += [GAP, Part(f"{g.killed} {p.killed} {words}", "killed bold")]
    eta = eta_text(m, p)
    if eta and width_of(tail) + cell_len(eta) + LEAST_BAR > width:
        eta = eta_text(m, p, band=False)
    if eta:
        tail += [GAP, Part(_plain_dashes(eta, g), "text")]
    room = width - width_of(tail) - 2
    if not tail:
        return (Part(g.todo * width, "bar_empty"),)
    return (*progress_bar(share, max(0, room), g, failed=bool(p.failed)), GAP, *tail)


def progress_bar(share: float | None, width: int, g: Glyphs, *, failed: bool = False) -> Line:
    """A thin bar, full only when all is done."""
    done = 0 if share is None else int(share * width)
    ink = "error" if failed else "accent"
    return Part(g.done * done, ink), Part(g.todo * (width - done), "bar_empty")


def eta_text(m: Moment, p: Progress, *, band: bool = True) -> str:
    """The remaining time, with its band unless asked otherwise; says so when nothing is known yet."""
    state = m.state
    if state.over:
        return ""
    left = time_left(state, m.now)
    if left is None:
        live = any(s.ended is None for s in state.schedulers.values())
        return "ETA after the first jobs" if live and p.total_known else ""
    if left[2] < 1:
        return "ETA any moment"
    return f"ETA {format_left(*left)}" if band else f"ETA {format_rough(left[0])}"


def _plain_dashes(text: str, g: Glyphs) -> str:
    return text.replace("–", g.en_dash)


def entries(state: BuildState) -> list[DecisionEntry | Notice]:
    """Decisions and notices in order of time."""
    return sorted([*state.decisions, *state.notices], key=lambda e: e.time)


def decisions(m: Moment, width: int, rows: int, g: Glyphs, *, whole: bool = False) -> list[Line]:
    """The newest decisions and notices, newest last: when, who, what, why; on one line each, or `whole` and wrapped."""
    newest = entries(m.state)[-rows:] if rows else []
    if whole:
        lines = [line for entry in newest for line in entry_lines(entry, width, g)][-rows:]
    else:
        lines = [entry_line(entry, width, g) for entry in newest]
    if not lines and rows:
        lines = [fit((Part("none yet", "text_dim"),), width)]
    return [*lines, *[BLANK] * (rows - len(lines))]


def entry_line(entry: DecisionEntry | Notice, width: int, g: Glyphs) -> Line:
    """A decision (person and governor differ by mark and ink) or a notice, on one line.

    Of a decision's reason the numbers matter most: names give way to it, in their middle. Where there is little room
    the governor shows by its mark alone.
    """
    when = Part(time_of_day(entry.time) + " ", "text_dim")
    if isinstance(entry, Notice):
        mark, ink = {"error": (g.fail, "error"), "warning": (g.warn, "warn"), "info": (g.info, "text_dim")}[
            entry.severity
        ]
        room = width - 11
        return fit((when, Part(f"{mark} ", f"{ink} bold"), Part(elide_end(clean(entry.text), room, g.ellipsis))), width)
    person = is_person(entry)
    who = elide_end(clean(entry.who), 12, g.ellipsis)
    head = Part(f"{g.person if person else g.governor} ", "person" if person else "text_dim")
    if person or width >= NAMED_WIDTH:
        head = head._replace(text=f"{head.text}{who}  ")
    room = max(0, width - ENTRY_INDENT + 2 - cell_len(head.text))
    what, why = fitted(clean(entry.what), clean(entry.why), room, g)
    return fit((when, head, Part(what), GAP, Part(why, "text_dim")), width)


def fitted(what: str, why: str, room: int, g: Glyphs) -> tuple[str, str]:
    """Two texts for one line of `room` cells and a gap: `why` is kept as far as that leaves `what` readable.

    The longest word of `what`, a path as a rule, gives way: first its folders, then the middle of its name.
    """
    left = max(0, room - 2)
    if cell_len(what) + cell_len(why) > left:
        words = what.split(" ")
        at = max(range(len(words)), key=lambda i: len(words[i]))
        words[at] = words[at].rpartition("/")[2] or words[at]
        around = cell_len(" ".join(words)) - cell_len(words[at])
        kept = max(WHAT_LEAST, left - cell_len(why))
        words[at] = elide_middle(words[at], max(LEAST_NAME, kept - around), g.ellipsis)
        what = elide_end(" ".join(words), min(left, max(kept, WHAT_LEAST)), g.ellipsis)
    return what, elide_end(why, max(0, left - cell_len(what)), g.ellipsis)


def entry_lines(entry: DecisionEntry | Notice, width: int, g: Glyphs) -> list[Line]:
    """An entry whole: as one line if it fits, else with its text wrapped below."""
    text = clean(entry.text) if isinstance(entry, Notice) else clean(entry.why)
    room = width - ENTRY_INDENT
    used = 0 if isinstance(entry, Notice) else cell_len(clean(entry.who)) + cell_len(clean(entry.what)) + 4
    if used + cell_len(text) <= room:
        return [entry_line(entry, width, g)]
    if isinstance(entry, Notice):
        head = entry_line(replace(entry, text=""), ENTRY_INDENT, g)
        first, *rest = wrap(text, room, MAX_ENTRY_LINES)
        return [(*head, Part(first)), *((Part(" " * ENTRY_INDENT), Part(piece)) for piece in rest)]
    head = entry_line(replace(entry, why=""), width, g)
    return [head, *((Part(" " * ENTRY_INDENT), Part(piece, "text_dim")) for piece in wrap(text, room, MAX_ENTRY_LINES))]


def section(title: str, width: int, g: Glyphs, tail: Sequence[Part] = ()) -> Line:
    """A heading inside a thin rule; the only frame there is."""
    head = Part(f"{title} ", "accent")
    room = width - cell_len(head.text) - width_of(tail)
    return fit((head, Part(g.rule * max(0, room), "rule"), *tail), width)
