"""The summary of a recorded build as lines: figures, remarks and tables. Pure; does not know Textual."""

from __future__ import annotations

import time

from stoker.model.text import clean
from stoker.report.summary import Brief, BriefTable
from stoker.show.tui.pages.lines import BLANK, GAP, Line, Part, elide_end, elide_path, fit, pad, section, wrap
from stoker.show.tui.pages.names import distinct_names
from stoker.show.tui.terminal.glyphs import Glyphs

LABEL = 9
"""Width of a figure's label."""

REMARK_LINES = 4
"""Maximum lines of one remark."""

MOST_FIGURES_SHARE = 0.6
"""Maximum share of a row for figures, so that the row's subject stays readable."""


def summary_head(found: Brief, width: int, g: Glyphs) -> Line:
    """Return outcome, name, and when the build began."""
    mark, ink = {"done": (g.ok, "ok"), "failed": (g.fail, "error"), "stopped": (g.warn, "warn")}.get(
        found.outcome, (g.dot, "accent")
    )
    code = f", exit code {found.exit_code}" if found.exit_code and found.outcome != "stopped" else ""
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(found.started))
    return fit(
        (
            Part(f" {mark} {clean(found.outcome, 20)} ", f"{ink} bold reverse"),
            GAP,
            Part(clean(found.name, 60) or "build", "accent bold"),
            GAP,
            Part(f"{clean(found.id, 60)}, began {began}{code}", "text_dim"),
        ),
        width,
    )


def summary_lines(found: Brief, width: int, g: Glyphs) -> list[Line]:
    """Return everything below the head, without a limit on lines."""
    facts = [*found.figures, ("command", clean(" ".join(found.command))), ("folder", clean(found.cwd))]
    lines: list[Line] = [
        (Part(pad(label, LABEL), "text_dim"), Part(elide_end(text, width - LABEL, g.ellipsis))) for label, text in facts
    ]
    for remark in found.remarks:
        pieces = wrap(clean(remark), width - 2, REMARK_LINES)
        lines += [(Part(f"{g.info if not n else ' '} ", "warn"), Part(piece)) for n, piece in enumerate(pieces)]
    for table in found.tables:
        lines += [BLANK, *_table(table, width, g)]
    return lines


def _table(table: BriefTable, width: int, g: Glyphs) -> list[Line]:
    """Return a heading with the names of the columns, and the rows; figures that do not fit are left out."""
    rows = [tuple(clean(cell, 300) for cell in row) for row in table.rows]
    sizes = [max(len(head), *(len(row[n]) for row in rows)) for n, head in enumerate(table.head)][1:]
    while sizes and sum(sizes) + 2 * len(sizes) > MOST_FIGURES_SHARE * width:
        sizes.pop()

    def figures(cells: tuple[str, ...]) -> Part:
        text = "".join("  " + pad(cell, size, right=True) for cell, size in zip(cells[1:], sizes, strict=False))
        return Part(text, "text_dim" if cells is table.head else "text")

    heads = figures(table.head)
    room = max(1, width - len(heads.text))
    names = distinct_names(row[0] for row in rows)
    lines = [(*section(elide_end(table.title, room - 2, g.ellipsis), room, g), heads)]
    for row in rows:
        name = elide_path(names[row[0]], room, g.ellipsis)
        lines.append(fit((Part(pad(name, room)), figures(row)), width))
    return lines
