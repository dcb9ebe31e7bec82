"""Makes docs/dashboard.svg, the picture at the top of the README, from a recorded build.

    python docs/make_picture.py JOURNAL SECONDS [WIDTHxHEIGHT] [THEME] [OUT.svg] [KEYS...]

JOURNAL is a build's journal.jsonl, SECONDS the moment of it to show. Further words are keys to press first.
"""

from __future__ import annotations

import asyncio
import html
import re
import sys
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from itertools import groupby, takewhile
from pathlib import Path

from stoker.config.themes import load_themes, theme_folders
from stoker.model.job_tree import ProcessTree
from stoker.model.reduce import reduce_all
from stoker.model.update import CommandRefused, Update
from stoker.record.journal_reader import read_journal
from stoker.record.output_log import FileLog
from stoker.show.tui.app import StokerApp


class Still:
    """A source that shows one moment of a journal, for ever."""

    read_only = False

    def __init__(self, journal: Path, seconds: float) -> None:
        records = list(read_journal(journal))
        end = records[0].time + seconds
        self._state = reduce_all(takewhile(lambda r: r.time <= end, records))
        self.log = FileLog(journal.with_name("output.log"))

    async def updates(self) -> AsyncIterator[Update]:
        """The one moment."""
        yield Update(self._state, "ended" if self._state.over else "live")
        await asyncio.Event().wait()

    async def command(self, verb: str, **arguments: object) -> None:
        """Nothing runs."""

    async def processes(self, jid: int) -> ProcessTree:  # noqa: ARG002
        """Refuse: a journal has none."""
        raise CommandRefused("a recording has no processes")


async def picture(source: Still, size: tuple[int, int], theme: str, keys: Sequence[str]) -> str:
    """The screen as SVG."""
    themes, _ = load_themes(theme_folders())
    app = StokerApp(source, themes=themes, theme_name=theme)
    async with app.run_test(size=size) as pilot:
        await pilot.pause(1.5)
        for key in keys:
            await pilot.press(key)
            await pilot.pause(1.2)
        return app.export_screenshot(title="stoker")


FONT_FACE = re.compile(r"@font-face \{.*?\}\s*", re.DOTALL)
"""Fonts from somebody's server: a picture in a checkout asks nobody."""

LEADING_SPACES = re.compile(r'x="([\d.]+)"( y="[\d.]+") textLength="([\d.]+)"([^>]*)>((?:&#160;)+)([^<]+)</text>')


def shift_leading_spaces(svg: str) -> str:
    """Some renderers drop spaces at a text's beginning, and columns would not line up: begin behind them instead."""

    def shifted(match: re.Match[str]) -> str:
        x, y, length, rest, spaces, text = match.groups()
        count = spaces.count(";")
        cell = float(length) / (count + len(html.unescape(text)))
        left = float(x) + count * cell
        return f'x="{left:.1f}"{y} textLength="{float(length) - count * cell:.1f}"{rest}>{text}</text>'

    return LEADING_SPACES.sub(shifted, svg)


BLOCKS = " ▁▂▃▄▅▆▇█"
"""The columns of charts, each an eighth of a line higher than the one before."""

BLOCK_TEXT = re.compile(r'<text class="([^"]+)" x="([\d.]+)" y="([\d.]+)"[^>]*>((?:[▁▂▃▄▅▆▇█]|&#160;)+)</text>')

CELL, LINE, BASELINE = 12.2, 24.4, 18.5
"""A cell's width and height, and how far it begins above the baseline, in the pixels of Rich's export."""


def draw_blocks(svg: str) -> str:
    """Draw chart columns as rectangles: no font's blocks fill a line, and charts would have gaps between lines."""

    def drawn(match: re.Match[str]) -> str:
        ink, x, y, text = match.groups()
        bottom, rects = float(y) - BASELINE + LINE, []
        for level, run in groupby(enumerate(html.unescape(text)), lambda cell: BLOCKS.find(cell[1])):
            cells = list(run)
            if level > 0:
                high = LINE * level / (len(BLOCKS) - 1)
                place = f'x="{float(x) + cells[0][0] * CELL:.1f}" y="{bottom - high:.2f}"'
                size = f'width="{len(cells) * CELL:.1f}" height="{high:.2f}"'
                rects.append(f'<rect class="{ink}" {place} {size} shape-rendering="crispEdges"/>')
        return "".join(rects)

    return BLOCK_TEXT.sub(drawn, svg)


def widen_background(svg: str) -> str:
    """Continue the screen's background to the window's edges, so that its last column does not touch the frame."""
    size = re.search(r'viewBox="0 0 ([\d.]+) ([\d.]+)"', svg)
    grounds = re.finditer(r'<rect fill="(#\w+)" x="[\d.]+" y="[\d.]+" width="([\d.]+)"', svg)
    cells: Counter[str] = Counter()
    for ground in grounds:
        cells[ground[1]] += round(float(ground[2]))
    if size is None or not cells:
        return svg
    [(colour, covered)] = cells.most_common(1)
    if covered < float(size[1]) * float(size[2]) / LINE / 2:  # a theme with the terminal's own background
        return svg
    wide = f'width="{float(size[1]) - 3:.1f}" height="{float(size[2]) - 50:.1f}"'
    back = f'<rect fill="{colour}" x="1.5" y="41" {wide}/>'
    svg = re.sub(
        r'(<clipPath id="[^"]+-clip-terminal">\s*<rect x="0" y="0" width=")[\d.]+', rf"\g<1>{float(size[1]) - 10}", svg
    )
    return svg.replace('<g transform="translate(9, 41)"', f'{back}<g transform="translate(9, 41)"', 1)


def main(words: Sequence[str]) -> None:
    """Parse the words, write the picture."""
    journal, seconds, *rest = words
    size, theme, out, *keys = [*rest, *("100x30", "dark", "docs/dashboard.svg")[len(rest) :]]
    width, height = (int(n) for n in size.split("x"))
    source = Still(Path(journal), float(seconds))
    svg = asyncio.run(picture(source, (width, height), theme, keys))
    svg = FONT_FACE.sub("", svg)
    Path(out).write_text(widen_background(draw_blocks(shift_leading_spaces(svg))))


if __name__ == "__main__":
    main(sys.argv[1:])
