"""The comparison of two sides of recorded builds: totals, job by job, and each run of the chosen job. Pure.

Does not know Textual, or how noise is judged.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from stoker.model.text import clean
from stoker.report.comparison import FIGURES, LEAST_RUNS, Change, Comparison, JobPair, Run, Verdict
from stoker.show.comparison_text import UNLIKE, figure_text, share_text
from stoker.show.tui.pages.lines import (
    BLANK,
    GAP,
    Line,
    Part,
    aimed,
    beside,
    elide_end,
    elide_path,
    fit,
    pad,
    section,
    width_of,
)
from stoker.show.tui.pages.names import plain_name
from stoker.show.tui.terminal.glyphs import Glyphs

PairOrder = Literal["change", "CPU", "memory", "name"]

PAIR_ORDERS: tuple[PairOrder, ...] = ("change", "CPU", "memory", "name")
"""Sort orders of jobs, in the order in which a key cycles through them."""

INKS: dict[Verdict, str] = {"worse": "error", "better": "ok", "same": "text_dim", "unknown": "text_dim"}
_RANKS: dict[Verdict, int] = {"worse": 0, "better": 1, "unknown": 2, "same": 3}

DETAIL_LINES = 4
"""Lines about the chosen job: a rule, and CPU time, memory and time of its runs."""

MOST_NOTES = 3
"""Lines about builds that did not end well: two of them, and what follows."""

ONE_RUN = "a side has one run: a change may be chance; compare several: A1,A2 B1,B2"


@dataclass(frozen=True, slots=True)
class SingleJob:
    """A job that exists on one side only."""

    job: str
    after: bool


Entry = JobPair | SingleJob


def pair_entries(found: Comparison, order: PairOrder) -> list[Entry]:
    """Return all jobs, sorted; jobs of one side only come last, except when sorted by name."""
    singles: list[Entry] = [SingleJob(job, after=False) for job in found.gone]
    singles += [SingleJob(job, after=True) for job in found.new]
    pairs = list(found.pairs)
    if order == "name":
        return sorted([*pairs, *singles], key=lambda entry: plain_name(entry.job))
    if order == "CPU":
        pairs.sort(key=lambda pair: -_apart(pair.cpu))
    elif order == "memory":
        pairs.sort(key=lambda pair: -_apart(pair.memory))
    else:
        pairs.sort(key=lambda pair: (_RANKS[pair.verdict], -_weight(pair)))
    return [*pairs, *singles]


def _apart(change: Change) -> float:
    return abs((change.after or 0.0) - (change.before or 0.0))


def _weight(pair: JobPair) -> float:
    """Return the largest relative change among the judged figures; if none is judged, the change in CPU seconds."""
    judged = [c for c in (pair.cpu, pair.memory) if c.verdict in ("worse", "better")]
    return max((abs(c.share or 0.0) for c in judged), default=_apart(pair.cpu))


def texts_of_entry(entry: Entry) -> tuple[str, ...]:
    """Return the texts of a row that the filter searches."""
    return entry.job, _word(entry)


def _word(entry: Entry) -> str:
    if isinstance(entry, SingleJob):
        return "only B" if entry.after else "only A"
    return "" if entry.verdict in ("same", "unknown") else entry.verdict


def comparison(
    found: Comparison, shown: Sequence[Entry], chosen: int, order: PairOrder, width: int, height: int, g: Glyphs
) -> list[Line]:
    """Return the page in `height` lines: both sides, the totals, the jobs `shown`, and the runs of the chosen one."""
    lines = [*_sides(found, width, g), *_totals(found, width, g)]
    if any(found.unfinished):
        notes = (*found.unfinished[0], *found.unfinished[1], UNLIKE)
        lines += [(Part(elide_end(note, width, g.ellipsis), "warn"),) for note in notes[-MOST_NOTES:]]
    if min(found.runs) < LEAST_RUNS:
        lines.append((Part(elide_end(ONE_RUN, width, g.ellipsis), "warn"),))
    if height >= 36:
        lines.append(BLANK)
    details = height - len(lines) >= DETAIL_LINES + 5
    room = max(1, height - len(lines) - 1 - (DETAIL_LINES if details else 0))
    first = max(0, min(chosen - room // 2, len(shown) - room))
    lines.append(_heads(found, shown, order, first, room, width, g))
    rows = [
        aimed(_row(entry, width, g, chosen=at == chosen), f"row:{at}")
        for at, entry in enumerate(shown[first : first + room], first)
    ] or [(Part("none", "text_dim"),)]
    lines += [*rows, *[BLANK] * (room - len(rows))]
    return [*lines, *_details(shown[chosen], width, g)] if details and chosen < len(shown) else lines


def _sides(found: Comparison, width: int, g: Glyphs) -> list[Line]:
    """Return which builds are on which side."""
    lines: list[Line] = []
    for side, names in zip("AB", found.names, strict=True):
        text = elide_end(", ".join(clean(name, 80) for name in names), width - 2, g.ellipsis)
        lines.append((Part(f"{side} ", "person bold"), Part(text, "accent bold")))
    return lines


_VALUE, _CHANGE, _VERDICT = 9, 8, 7


def _totals(found: Comparison, width: int, g: Glyphs) -> list[Line]:
    """Return the figures of the whole build, in two columns if there is room."""
    lines = [_total(change) for change in found.totals]
    size = width_of(lines[0])
    head = section("in all", size, g, (_value_heads(),))
    if width < 2 * size + 2:
        return [head, *lines]
    half = (len(lines) + 1) // 2
    left, right = [head, *lines[:half]], [section("", size, g, (_value_heads(),)), *lines[half:]]
    return beside(left, right, width - size - 3)


def _value_heads() -> Part:
    heads = f"{pad('A', _VALUE, right=True)} {pad('B', _VALUE, right=True)} {pad('change', _CHANGE, right=True)}"
    return Part(f" {heads}  {' ' * _VERDICT}", "text_dim")


def _total(change: Change) -> Line:
    name = Part(pad(FIGURES[change.figure], 20), "text_dim")
    return (name, *_values(change), GAP, Part(pad(_verdict_word(change), _VERDICT), INKS[change.verdict]))


def _values(change: Change) -> tuple[Part, Part]:
    sides = [pad(figure_text(change.figure, value), _VALUE, right=True) for value in (change.before, change.after)]
    ink = INKS[change.verdict] if change.verdict in ("worse", "better") else "text"
    return Part(f" {sides[0]} {sides[1]}", "text"), Part(" " + pad(share_text(change), _CHANGE, right=True), ink)


def _verdict_word(change: Change) -> str:
    return "" if change.verdict in ("same", "unknown") else change.verdict


# -- the jobs ----------------------------------------------------------------------------------------------------

_SIDES_FROM = 110
"""Screen width from which a row shows both sides, not only the later one."""


def _heads(
    found: Comparison, shown: Sequence[Entry], order: PairOrder, first: int, room: int, width: int, g: Glyphs
) -> Line:
    def head(title: str, name: PairOrder) -> str:
        return title + (g.sorted_by if name == order else "")

    cells = []
    for title in ("CPU", "memory"):
        later = head("B" if width >= _SIDES_FROM else f"{title} B", "CPU" if title == "CPU" else "memory")
        earlier = f" {pad(f'{title} A', _VALUE, right=True)}" if width >= _SIDES_FROM else ""
        cells.append(f"{earlier} {pad(later, _VALUE, right=True)} {pad(head('change', 'change'), _CHANGE, right=True)}")
    tail = Part("".join(cells) + " " * (2 + _VERDICT), "text_dim")
    changed = sum(pair.verdict in ("worse", "better") for pair in found.pairs)
    count = len(found.pairs) + len(found.gone) + len(found.new)
    title = f"{count} {'job' if count == 1 else 'jobs'}"
    title += f", {changed} changed" if min(found.runs) >= LEAST_RUNS else ""
    title += f" by name{g.sorted_by}" if order == "name" else ""
    title += f" ({first + 1}{g.en_dash}{first + room})" if len(shown) > room else ""
    return section(elide_end(title, max(8, width - width_of((tail,)) - 1), g.ellipsis), width, g, (tail,))


def _row(entry: Entry, width: int, g: Glyphs, *, chosen: bool) -> Line:
    tail = _tail(entry, width)
    room = max(1, width - 2 - width_of(tail))
    name = pad(elide_path(plain_name(entry.job), room, g.ellipsis), room)
    parts = [Part(f"{g.pointer if chosen else ' '} ", "accent"), Part(name), *tail]
    if chosen:
        parts = [part._replace(ink="cursor_text on cursor") for part in parts]
    return fit(parts, width)


def _tail(entry: Entry, width: int) -> list[Part]:
    """Return the figures of a row: both sides and the change; on narrow screens only the later side and the change."""
    cells: list[Part] = []
    for change in (entry.cpu, entry.memory) if isinstance(entry, JobPair) else (None, None):
        if change is None:
            blank = 2 * (_VALUE + 1) if width >= _SIDES_FROM else _VALUE + 1
            cells.append(Part(" " * (blank + _CHANGE + 1)))
            continue
        both, share = _values(change)
        cells += [both if width >= _SIDES_FROM else Part(both.text[_VALUE + 1 :], both.ink), share]
    word = _word(entry)
    ink = INKS[entry.verdict] if isinstance(entry, JobPair) else "accent"
    return [*cells, Part("  " + pad(word, _VERDICT), ink)]


def _details(entry: Entry, width: int, g: Glyphs) -> list[Line]:
    """Return each run of the chosen job."""
    lines = [section(elide_path(plain_name(entry.job), width - 4, g.ellipsis), width, g)]
    if isinstance(entry, SingleJob):
        side = "B, the later one" if entry.after else "A, the earlier one"
        return [*lines, (Part(f"only in {side}", "text_dim"),)]
    for figure, label in (("cpu_seconds", "CPU time"), ("peak_bytes", "memory"), ("seconds", "time")):
        parts = [Part(pad(label, 9), "text_dim")]
        for side, runs in (("A", entry.before), ("B", entry.after)):
            parts += [Part(f"{side} ", "person bold"), Part(pad(_runs(runs, figure), (width - 13) // 2))]
        lines.append(fit(parts, width))
    return lines


def _runs(runs: Sequence[Run], figure: str) -> str:
    return "  ".join(figure_text(figure, run[figure]) for run in runs)
