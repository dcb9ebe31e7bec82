"""Decisions and notices as lines: when, who, what and why. Pure: moment and width in, lines out.

Unaware of Textual, of colours (inks name theme tokens) and of where the moment came from.
"""

from __future__ import annotations

from dataclasses import replace

from rich.cells import cell_len

from stoker.model.state import BuildState, DecisionEntry, Notice
from stoker.model.text import clean
from stoker.show.governing_text import is_person, is_usual
from stoker.show.tui.pages.lines import BLANK, GAP, Line, Part, elide_end, elide_middle, elide_path, fit, text_of, wrap
from stoker.show.tui.pages.moment import Moment, time_of_day
from stoker.show.tui.pages.names import plain_name
from stoker.show.tui.terminal.glyphs import Glyphs

ENTRY_INDENT = 11
"""Cells before the text of a decision or notice: the time of day, a mark and the blanks between."""

MAX_ENTRY_LINES = 8

NAMED_WIDTH = 100
"""Width from which the governor is named, and not only marked, beside what it decided."""

WHAT_LEAST = 24
"""Cells that what was decided keeps at least: a verb and both ends of a file's name."""

MOST_NAME = 32
"""Cells of a file's name in a decision that takes more than one line."""

LEAST_NAME = 8
"""Cells below which a name with its middle cut out says nothing."""


PLAIN = {"admit": "start", "shed": "stop"}
"""First words of the governor's decisions, and what those say who have read nothing about it."""

ALIKE = ("hold", "admit")
"""First words of the governor's decisions of which many follow each other: one line says how many."""


def entries(state: BuildState) -> list[DecisionEntry | Notice]:
    """Decisions and notices that are news, in order of time; many alike in a row are one, with the newest's reason."""
    found: list[DecisionEntry | Notice] = []
    count, alike = 1, ""
    both: list[DecisionEntry | Notice] = [*state.decisions, *state.notices]
    for entry in sorted(both, key=lambda e: e.time):
        if isinstance(entry, DecisionEntry) and is_usual(entry):
            continue
        verb = _verb(entry)
        if isinstance(entry, DecisionEntry) and verb:
            count = count + 1 if verb == alike else 1
            if count > 1:
                found.pop()
            found.append(_said(replace(entry, what=f"{verb} {count} jobs") if count > 1 else entry))
        else:
            found.append(_said(entry) if isinstance(entry, DecisionEntry) else entry)
        alike = verb
    return found


def texts(entry: DecisionEntry | Notice) -> tuple[str, ...]:
    """What an entry says, to be looked through."""
    return (entry.text,) if isinstance(entry, Notice) else (entry.who, entry.what, entry.why)


def _said(entry: DecisionEntry) -> DecisionEntry:
    """A decision in plain words."""
    verb, blank, rest = entry.what.partition(" ")
    return replace(entry, what=PLAIN[verb] + blank + rest) if not is_person(entry) and verb in PLAIN else entry


def _verb(entry: DecisionEntry | Notice) -> str:
    """The first word of a decision of which there are many; empty for all others."""
    if isinstance(entry, Notice) or is_person(entry):
        return ""
    verb = entry.what.split(" ", 1)[0]
    return verb if verb in ALIKE else ""


def decisions(m: Moment, width: int, rows: int, g: Glyphs, *, whole: bool = False) -> list[Line]:
    """The newest decisions and notices, newest last: when, who, what, why; on one line each, or `whole` and wrapped.

    Of those on one line each the newest is whole all the same, where it can be.
    """
    newest = entries(m.state)[-rows:] if rows else []
    if whole:
        lines = [line for entry in newest for line in entry_lines(entry, width, g)][-rows:]
    else:
        last = one_entry(newest[-1], width, rows, g) if newest else []
        lines = [*(entry_line(entry, width, g) for entry in newest[:-1]), *last][-rows:]
    if not lines and rows:
        lines = [fit((Part("none yet", "text_dim"),), width)]
    return [*lines, *[BLANK] * (rows - len(lines))]


def one_entry(entry: DecisionEntry | Notice, width: int, rows: int, g: Glyphs) -> list[Line]:
    """An entry on one line if its reason fits there, else wrapped if there are the rows for it."""
    line = entry_line(entry, width, g)
    text = clean(entry.text if isinstance(entry, Notice) else entry.why)
    if rows == 1 or text_of(line).rstrip().endswith((text, shorter(text))):
        return [line]
    if isinstance(entry, Notice):
        lines = entry_lines(entry, width, g)
        return lines if len(lines) <= rows else [line]
    return _flowing(entry, width, rows, g)


def _flowing(entry: DecisionEntry, width: int, rows: int, g: Glyphs) -> list[Line]:
    """A decision whose reason begins behind it and goes on below, in at most `rows` lines."""
    bare = entry_line(replace(entry, what="", why=""), width, g)
    room = width - len(text_of(bare).rstrip()) - 2 if is_person(entry) or width >= NAMED_WIDTH else width - ENTRY_INDENT
    indent = width - room
    words = " ".join(elide_path(word, MOST_NAME, g.ellipsis) for word in plain_name(entry.what).split(" "))
    first, *rest = wrap(f"{words}  {shorter(clean(entry.why))}", max(1, room), rows) or [""]
    head = (*fit(bare, indent), Part(first[: len(words)]), Part(first[len(words) :], "text_dim"))
    return [head, *((Part(" " * indent), Part(piece, "text_dim")) for piece in rest)]


def shorter(why: str) -> str:
    """A reason without the words that a small screen has no room for."""
    return why.replace(" above the reserve", "")


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
    what, why = plain_name(entry.what), clean(entry.why)
    if cell_len(what) + cell_len(why) + 2 > room:
        why = shorter(why)
    what, why = fitted(what, why, room, g)
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
    used = 0 if isinstance(entry, Notice) else cell_len(clean(entry.who)) + cell_len(plain_name(entry.what)) + 4
    if used + cell_len(text) <= room:
        return [entry_line(entry, width, g)]
    if isinstance(entry, Notice):
        head = entry_line(replace(entry, text=""), ENTRY_INDENT, g)
        first, *rest = wrap(text, room, MAX_ENTRY_LINES)
        return [(*head, Part(first)), *((Part(" " * ENTRY_INDENT), Part(piece)) for piece in rest)]
    head = entry_line(replace(entry, why=""), width, g)
    return [head, *((Part(" " * ENTRY_INDENT), Part(piece, "text_dim")) for piece in wrap(text, room, MAX_ENTRY_LINES))]
