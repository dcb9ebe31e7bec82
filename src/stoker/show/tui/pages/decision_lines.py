"""Decisions and notices as lines: when, who, what and why. Pure: a moment and a width in, lines out.

Knows neither Textual nor colours (inks name theme tokens), and not where the moment came from.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence, Set
from dataclasses import replace

from rich.cells import cell_len

from stoker.model.events import JobState
from stoker.model.state import BuildState, DecisionEntry, Notice
from stoker.model.text import clean
from stoker.show.governing_text import in_plain_words, is_person, is_usual, who_text
from stoker.show.tui.pages.clauses import LEAST_NAME, clauses, shortened, shorter
from stoker.show.tui.pages.decision_kinds import KINDS, DecisionKind, with_stops_gathered
from stoker.show.tui.pages.lines import BLANK, GAP, Line, Part, elide_end, elide_middle, elide_path, fit, text_of, wrap
from stoker.show.tui.pages.moment import Moment, time_of_day
from stoker.show.tui.pages.names import plain_name
from stoker.show.tui.terminal.glyphs import Glyphs

ENTRY_INDENT = 11
"""Cells before the text of a decision or notice: the time of day, a mark and the blanks between them."""

MAX_ENTRY_LINES = 8

NAMED_WIDTH = 100
"""Width from which stoker's own decisions carry its name, not only a mark."""

WHAT_LEAST = 24
"""Minimum cells for what was decided: a verb and both ends of a file name."""

LEAST_WHY = 12
"""Minimum cells for a reason; with fewer it is left out."""

MOST_NAME = 32
"""Maximum cells of a file name in a decision that takes more than one line."""

ALIKE = ("hold", "admit")
"""First words of stoker's own decisions that are merged into one line with their number if they are consecutive."""

PERSON_SHOWN, PERSON_SHOWN_ALONE = 60.0, 15.0
"""Seconds for which a person's newest decision keeps its line on the dashboard, whatever it has led to since; and where
that is the only line."""

BY_REQUEST = re.compile(r"^(?:asked for|by request)[:;,] ")
"""How the reason of a person's decision begins; beside the person's name it says nothing new."""

NOBODY_BESIDE = ("nothing else runs", "runs alone")
"""How the reason begins for a job that was started because nothing else ran."""

_NEED = re.compile(r"needs (up to |~)(\d[\d.]*) (B|KiB|MiB|GiB|TiB|PiB)\b")
_UNITS = ("B", "KiB", "MiB", "GiB", "TiB", "PiB")


def entries(state: BuildState) -> list[DecisionEntry | Notice]:
    """Return decisions and notices worth showing, by time; similar consecutive ones are merged into one."""
    return _alike_merged(_news(_by_time(state)), _outputs(state, "on_deck"))


def page_entries(state: BuildState, left_at: float | None, now: float) -> list[DecisionEntry | Notice]:
    """Return the same, with one entry for all freezes of a job by stoker and one for its wait, before and after the
    user left."""
    every = _news(with_stops_gathered(_by_time(state), _outputs(state, "frozen"), now, left_at))
    before = [entry for entry in every if left_at is None or entry.time <= left_at]
    parts, waiting = (before, every[len(before) :]), _outputs(state, "on_deck")
    return [entry for part in parts for entry in _alike_merged(part, waiting)]


def _outputs(state: BuildState, of: JobState) -> frozenset[str]:
    return frozenset(job.output for job in state.jobs.values() if job.state == of)


def _by_time(state: BuildState) -> list[DecisionEntry | Notice]:
    both: list[DecisionEntry | Notice] = [*state.decisions, *state.notices]
    return sorted(both, key=lambda e: e.time)


def _news(every: Sequence[DecisionEntry | Notice]) -> list[DecisionEntry | Notice]:
    return [e for e in every if isinstance(e, Notice) or not is_usual(e)]


def _alike_merged(news: Sequence[DecisionEntry | Notice], waiting: Set[str]) -> list[DecisionEntry | Notice]:
    groups: list[list[DecisionEntry | Notice]] = []
    for entry in news:
        verb = _verb(entry)
        if groups and verb and verb == _verb(groups[-1][0]):
            groups[-1].append(entry)
        else:
            groups.append([entry])
    return [_merged(group, waiting) for group in groups]


def _merged(alike: Sequence[DecisionEntry | Notice], waiting: Set[str]) -> DecisionEntry | Notice:
    """Return one entry for several similar ones, with the time of the oldest, so that it keeps its place while more
    join; `waiting` are the outputs of the jobs on deck."""
    oldest = alike[0]
    if isinstance(oldest, Notice):
        return oldest
    if len(alike) == 1:
        return in_plain_words(oldest)
    all_of_them = [entry for entry in alike if isinstance(entry, DecisionEntry)]
    why = _of_all([entry.why for entry in all_of_them])
    what = f"{_verb(oldest)} {len(all_of_them)} jobs"
    if _verb(oldest) == "hold":
        still = len(waiting & {entry.what.partition(" ")[2] for entry in all_of_them})
        why = "; ".join(filter(None, (f"{still} wait{'s' * (still == 1)} now" if still else "", why)))
    elif all(entry.why.startswith(NOBODY_BESIDE) for entry in all_of_them):
        what += " one after another"
    elif all_of_them[-1].time - oldest.time >= 1:
        what += f" until {time_of_day(all_of_them[-1].time)}"
    return in_plain_words(replace(oldest, what=what, why=why))


def _of_all(whys: Sequence[str]) -> str:
    """Return the common reason for several jobs: the one they share, or the range of what each needs; else nothing."""
    if len(set(whys)) == 1:
        return whys[0]
    needs = [match for match in map(_NEED.search, whys) if match is not None]
    if len(needs) < len(whys) or len({need[1] for need in needs}) > 1:
        return ""
    ordered = sorted(((need[2], need[3]) for need in needs), key=lambda size: (_UNITS.index(size[1]), float(size[0])))
    (least, unit), (most, last) = ordered[0], ordered[-1]
    from_there = "" if ordered[0] == ordered[-1] else f"{least}-" if unit == last else f"{least} {unit}-"
    return f"each needs {needs[0][1]}{from_there}{most} {last}"


def page_lines(found: Sequence[DecisionEntry | Notice], left_at: float | None, width: int, g: Glyphs) -> list[Line]:
    """Return the entries in full, with a rule between those before and after the user left."""
    before = [entry for entry in found if left_at is None or entry.time <= left_at]
    lines = [line for entry in before for line in entry_lines(entry, width, g)]
    if left_at is not None and found:
        lines.append(left_rule(width, g))
    return [*lines, *(line for entry in found[len(before) :] for line in entry_lines(entry, width, g))]


def line_near(
    found: Sequence[DecisionEntry | Notice], time: float, left_at: float | None, width: int, g: Glyphs
) -> int:
    """Return at which of the lines of `page_lines` the entry begins that is next to a Unix time."""
    nearest = min(range(len(found)), key=lambda at: abs(found[at].time - time))
    ruled = left_at is not None and found[nearest].time > left_at
    return sum(len(entry_lines(entry, width, g)) for entry in found[:nearest]) + ruled


def kinds_line(
    counts: Mapping[DecisionKind, int], every: int, chosen: DecisionKind | None, width: int, g: Glyphs
) -> Line:
    """Return how many entries there are of each kind; the chosen one is marked, and a click chooses one."""
    parts: list[Part] = []
    for name, number, target in (("all", every, ""), *((kind, counts[kind], kind) for kind in KINDS if kind in counts)):
        mark, ink = (g.pointer, "accent bold") if target == (chosen or "") else (" ", "text_dim")
        parts.append(Part(f"{mark}{name} {number} ", ink, f"kind:{target}"))
    return fit(parts, width)


def left_rule(width: int, g: Glyphs) -> Line:
    """Return a rule that marks where the user left."""
    words = " you left here "
    return fit((Part(2 * g.rule, "rule"), Part(words, "accent"), Part(g.rule * width, "rule")), width)


def texts(entry: DecisionEntry | Notice) -> tuple[str, ...]:
    """Return the texts of an entry that the filter searches."""
    return (entry.text,) if isinstance(entry, Notice) else (entry.who, entry.what, entry.why)


def _verb(entry: DecisionEntry | Notice) -> str:
    """Return the first word of a decision of a frequent kind; empty for all others."""
    if isinstance(entry, Notice) or is_person(entry):
        return ""
    verb = entry.what.split(" ", 1)[0]
    return verb if verb in ALIKE else ""


def decisions(m: Moment, width: int, rows: int, g: Glyphs, *, whole: bool = False) -> list[Line]:
    """Return the newest decisions and notices, newest last, on one line each; wrapped in full if `whole`.

    Otherwise only the newest is shown in full, if there is room. A person's last decision stays among them for a while:
    a key may make stoker freeze more jobs than there are lines, and these would hide what they follow from.
    """
    if whole:
        lines = _whole(page_entries(m.state, None, m.now), width, rows, g)
    else:
        lines = _strip(entries(m.state), m.now, width, rows, g)
    if not lines and rows:
        lines = [fit((Part("none yet", "text_dim"),), width)]
    return [*lines, *[BLANK] * (rows - len(lines))]


def _strip(found: Sequence[DecisionEntry | Notice], now: float, width: int, rows: int, g: Glyphs) -> list[Line]:
    """Return the newest entries in at most `rows` lines, a person's last decision among them if it is young."""
    by_person = [at for at, entry in enumerate(found) if isinstance(entry, DecisionEntry) and is_person(entry)]
    kept = by_person[-1] if by_person else len(found) - 1
    shown = PERSON_SHOWN if rows > 1 else PERSON_SHOWN_ALONE
    if not rows or kept == len(found) - 1 or now - found[kept].time >= shown:
        return _newest(found, width, rows, g)
    after = _newest(found[kept + 1 :], width, rows - 1, g)
    before = found[max(0, kept + 1 + len(after) - rows) : kept + 1]
    return [*(entry_line(entry, width, g) for entry in before), *after]


def _newest(found: Sequence[DecisionEntry | Notice], width: int, rows: int, g: Glyphs) -> list[Line]:
    newest = found[-rows:] if rows else []
    last = one_entry(newest[-1], width, rows, g) if newest else []
    return [*(entry_line(entry, width, g) for entry in newest[:-1]), *last][-rows:]


def _whole(found: Sequence[DecisionEntry | Notice], width: int, rows: int, g: Glyphs) -> list[Line]:
    """Return as many of the newest entries as `rows` lines show in full; of the newest its first lines, at least."""
    lines: list[Line] = []
    for entry in reversed(found):
        more = entry_lines(entry, width, g)
        if lines and len(lines) + len(more) > rows:
            break
        lines = [*more, *lines]
    return lines[:rows]


def one_entry(entry: DecisionEntry | Notice, width: int, rows: int, g: Glyphs) -> list[Line]:
    """Return an entry on one line if its reason fits there, else wrapped if there are enough rows."""
    line = entry_line(entry, width, g)
    text = clean(entry.text if isinstance(entry, Notice) else entry.why)
    if rows == 1 or text_of(line).rstrip().endswith((text, shorter(text))):
        return [line]
    if isinstance(entry, Notice):
        lines = entry_lines(entry, width, g)
        return lines if len(lines) <= rows else [line]
    return _flowing(entry, width, rows, g)


def _flowing(entry: DecisionEntry, width: int, rows: int, g: Glyphs) -> list[Line]:
    """Return a decision in at most `rows` lines; its reason starts on the same line and continues below."""
    bare = entry_line(replace(entry, what="", why=""), width, g)
    room = width - len(text_of(bare).rstrip()) - 2 if is_person(entry) or width >= NAMED_WIDTH else width - ENTRY_INDENT
    indent = width - room
    words = " ".join(elide_path(word, MOST_NAME, g.ellipsis) for word in plain_name(entry.what).split(" "))
    ways = [wrap(f"{words}  {why}", max(1, room), rows + 1) for why in shortened(clean(entry.why))]
    whole = next((pieces for pieces in ways if len(pieces) <= rows), None)
    first, *rest = whole or wrap(f"{words}  {shorter(clean(entry.why))}", max(1, room), rows) or [""]
    head = (*fit(bare, indent), Part(first[: len(words)]), Part(first[len(words) :], "text_dim"))
    return [head, *((Part(" " * indent), Part(piece, "text_dim")) for piece in rest)]


def entry_line(entry: DecisionEntry | Notice, width: int, g: Glyphs) -> Line:
    """Return a decision or a notice on one line; a person's decision differs from stoker's by mark and ink.

    The numbers in the reason matter most, so names are cut in their middle to make room for them. On a narrow screen
    stoker is identified by its mark only.
    """
    when = Part(time_of_day(entry.time) + " ", "text_dim")
    if isinstance(entry, Notice):
        mark, ink = {"error": (g.fail, "error"), "warning": (g.warn, "warn"), "info": (g.info, "text_dim")}[
            entry.severity
        ]
        room = width - 11
        return fit((when, Part(f"{mark} ", f"{ink} bold"), Part(clauses(clean(entry.text), room, g.ellipsis))), width)
    person = is_person(entry)
    who = elide_end(who_text(entry), 12, g.ellipsis)
    head = Part(f"{g.person if person else g.governor} ", "person" if person else "text_dim")
    if person or width >= NAMED_WIDTH:
        head = head._replace(text=f"{head.text}{who}  ")
    room = max(0, width - ENTRY_INDENT + 2 - cell_len(head.text))
    what, why = plain_name(entry.what), clean(entry.why)
    if person and cell_len(what) + cell_len(why) + 2 > room:
        why = BY_REQUEST.sub("", why)
    what, why = fitted(what, why, room, g)
    return fit((when, head, Part(what), GAP, Part(why, "text_dim")), width)


def fitted(what: str, why: str, room: int, g: Glyphs) -> tuple[str, str]:
    """Fit two texts into `room` cells with a gap: as many clauses of `why` as leave `what` readable.

    The longest word of `what`, usually a path, is shortened: first its folders, then the middle of its name.
    """
    left = max(0, room - 2)
    if left - min(cell_len(what), WHAT_LEAST) < LEAST_WHY:
        return elide_path(what, left, g.ellipsis), ""
    if cell_len(what) + cell_len(why) > left:
        why = clauses(why, max(0, left - min(cell_len(what), WHAT_LEAST)), g.ellipsis)
    if cell_len(what) + cell_len(why) > left:
        words = what.split(" ")
        at = max(range(len(words)), key=lambda i: len(words[i]))
        words[at] = words[at].rpartition("/")[2] or words[at]
        around = cell_len(" ".join(words)) - cell_len(words[at])
        kept = max(WHAT_LEAST, left - cell_len(why))
        words[at] = elide_middle(words[at], max(LEAST_NAME, kept - around), g.ellipsis)
        what = elide_end(" ".join(words), min(left, max(kept, WHAT_LEAST)), g.ellipsis)
    return what, clauses(why, max(0, left - cell_len(what)), g.ellipsis)


def entry_lines(entry: DecisionEntry | Notice, width: int, g: Glyphs) -> list[Line]:
    """Return an entry in full: on one line if it fits, else with its text wrapped below."""
    text = clean(entry.text) if isinstance(entry, Notice) else clean(entry.why)
    room = width - ENTRY_INDENT
    used = 0 if isinstance(entry, Notice) else cell_len(who_text(entry)) + cell_len(plain_name(entry.what)) + 4
    if used + cell_len(text) <= room:
        return [entry_line(entry, width, g)]
    if isinstance(entry, Notice):
        head = entry_line(replace(entry, text=""), ENTRY_INDENT, g)
        first, *rest = wrap(text, room, MAX_ENTRY_LINES)
        return [(*head, Part(first)), *((Part(" " * ENTRY_INDENT), Part(piece)) for piece in rest)]
    head = entry_line(replace(entry, why=""), width, g)
    return [head, *((Part(" " * ENTRY_INDENT), Part(piece, "text_dim")) for piece in wrap(text, room, MAX_ENTRY_LINES))]
