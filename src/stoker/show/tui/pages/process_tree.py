"""The processes of one job as lines: each after its parent, with what it works on and what it uses. Pure.

Does not know Textual, or where the processes come from.
"""

from __future__ import annotations

from collections.abc import Mapping

from stoker.model.job_tree import MAX_NAME, MAX_TASK, Doing, ProcessRow, ProcessTree
from stoker.model.text import clean
from stoker.model.units import format_bytes
from stoker.show.tui.pages.lines import Line, Part, elide_end, elide_middle, fit, pad, section, width_of
from stoker.show.tui.terminal.glyphs import Glyphs

MOST_INDENT = 6
"""Maximum indentation levels; deeper processes are indented equally."""

COLUMNS = (("memory", 9), ("cpu", 6), ("pid", 9))
"""Headings to the right of the names, with their widths."""

MIB = 2**20
"""Bytes below which an exact figure looks like an error."""

STATE_CELLS = 9
WORDS: Mapping[Doing, str] = {"running": "running", "waiting": "waiting", "kernel": "in kernel", "stopped": "stopped"}
INKS: Mapping[Doing, str] = {"running": "text", "waiting": "text_dim", "kernel": "text", "stopped": "frozen"}


def process_lines(tree: ProcessTree, before: ProcessTree | None, width: int, g: Glyphs) -> list[Line]:
    """Return a heading and a line per process; `before` is an earlier snapshot, used to compute the CPU use."""
    tail = [Part(pad(title, cells, right=True), "text_dim") for title, cells in COLUMNS]
    tail.append(Part("  " + pad("state", STATE_CELLS), "text_dim"))
    lines = [section(f"processes {len(tree.rows) + tree.more}", width, g, tail)]
    elsewhere = False
    for row in tree.rows:
        if row.hosted and not elsewhere:
            elsewhere = True
            lines.append(fit((Part("run for it by the compiler cache's server:", "text_dim"),), width))
        lines.append(_line(row, _busy(row, tree, before), width, g))
    if tree.more:
        lines.append((Part(f"  +{tree.more} more", "text_dim"),))
    return lines


def _busy(row: ProcessRow, tree: ProcessTree, before: ProcessTree | None) -> float | None:
    """Return the CPU use since the earlier snapshot, in percent of one core; None if it is unknown."""
    old = next((r for r in before.rows if (r.pid, r.name) == (row.pid, row.name)), None) if before is not None else None
    if old is None or before is None or tree.at <= before.at:
        return None
    return max(0.0, 100 * (row.cpu - old.cpu) / (tree.at - before.at))


def _size(held: int, g: Glyphs) -> str:
    """Return the private memory of a process: almost none before it begins, or while it only waits for another."""
    if 0 < held < MIB:
        return "< 1 MiB"
    return format_bytes(held) if held else g.dash


def _line(row: ProcessRow, busy: float | None, width: int, g: Glyphs) -> Line:
    ink = INKS[row.doing]
    used = g.dash if busy is None else f"{busy:.0f} %"
    texts = (_size(row.rss, g), used, str(row.pid))
    tail = [Part(pad(text, cells, right=True), ink) for text, (_, cells) in zip(texts, COLUMNS, strict=True)]
    tail.append(Part("  " + pad(WORDS[row.doing], STATE_CELLS), ink))
    indent = "  " * min(MOST_INDENT, max(0, row.depth))
    room = max(1, width - width_of(tail) - len(indent))
    name = elide_end(clean(row.name, MAX_NAME), room, g.ellipsis)
    task = elide_middle(clean(row.task, MAX_TASK), max(0, room - len(name) - 1), g.ellipsis)
    what = (Part(indent + name, "text bold" if row.doing == "running" else ink), Part(f" {task}", "text_dim"))
    return (*fit(what, width - width_of(tail)), *tail)
