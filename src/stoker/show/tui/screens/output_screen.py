"""The output screen: a window over a log of any size, with search, a list of errors, and following.

Does not know where the log is stored; it only reads bytes.
"""

from __future__ import annotations

import asyncio
import re
import sys
from bisect import bisect_left
from collections.abc import Iterable, Sequence
from dataclasses import replace
from itertools import accumulate

from textual.app import ComposeResult
from textual.widgets import Input

from stoker.diagnose.output_parts import maybe_failed
from stoker.model.text import PLAIN_INK, spans
from stoker.model.units import format_bytes
from stoker.show import killed_text
from stoker.show.tui.folded_log import FoldedLog
from stoker.show.tui.input import actions
from stoker.show.tui.input.actions import bindings
from stoker.show.tui.pages.folded_line import folded_line
from stoker.show.tui.pages.lines import Line, Part, crop, fit, from_spans, section, spread, text_of, width_of
from stoker.show.tui.screens.entry_line import LONGEST, EntryLine
from stoker.show.tui.screens.page_screen import PageScreen, key_hints
from stoker.show.tui.text_log import ERRORS, LogLine, TextLog, pattern_of, scan, scan_back

MAX_ERRORS = 2000
"""Maximum error lines listed; with more, the first ones matter most."""

DOUBTFUL = 8192
"""Maximum bytes kept of a line about a failed job."""

MAX_HITS, COUNTED = 2000, 256 * 2**20
"""Maximum matches that are counted, and bytes that are searched for them: a person looks at a few."""

FOLDED = "in hidden lines: see stoker log --raw"
"""What is said of a match in lines that one line stands for."""

ABOVE = 3
"""Lines shown above the target of a jump."""


class OutputScreen(PageScreen):
    """The output, followed or not. `top` is the byte offset of the first visible line."""

    SCOPE = "output"
    BINDINGS = bindings("output")

    def __init__(self) -> None:
        super().__init__()
        self.top = 0
        self.follow = True
        self.left = 0
        self.words = ""
        self.note = ""
        self.errors: list[int] = []
        self.only_errors = False
        self._before_errors = (0, True)
        """What `top` and `follow` were before only errors were shown."""
        self._errors_at = 0
        self._doubtful: dict[int, LogLine] = {}
        self._pattern: re.Pattern[bytes] | None = None
        self._found = -1
        self.wrapped = False
        self._hits: list[int] = []
        self._counted_to = 0
        self._folded: tuple[object, FoldedLog] | None = None
        self._dropped: object = (0, ())
        self._lines_shown = 1

    def compose(self) -> ComposeResult:
        """Create the page and the search line, which is hidden at first."""
        yield from super().compose()
        yield EntryLine("words to find, then Enter; Esc leaves")

    @property
    def _log(self) -> FoldedLog:
        """Return the log with what is known of dropped jobs; the same one until anything changes."""
        state, log = self.moment.state, self.viewer.source.log
        known = (log.size(), state.schedulers, state.failures, state.killed, state.step, state.phase)
        if self._folded is None or self._folded[0] != known:
            self._folded = (known, FoldedLog(log, state))
        return self._folded[1]

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the window over the log, and a status line."""
        self._recount()
        log = self._log
        rows = max(1, height - 1)
        if self.only_errors:
            shown = [line for error in self._visible_errors(rows) for line in error]
        else:
            last = log.tail(rows)
            # A match near the end leaves no rows empty: it is marked. An error is known by its place below the top.
            if self.follow or (self.words and not self.wrapped and self.top > last):
                self.top = last
            shown = log.lines(self.top, rows)
        limit = width * rows if self.wrapped else self.left + width + 8
        pieces = [self._pieces(self._drawn(line, limit, width), width, rows) for line in shown]
        self._lines_shown = _fitting(pieces[::-1] if self.follow else pieces, rows)
        every = [piece for of_line in pieces for piece in of_line]
        lines = every[-rows:] if self.follow else every[:rows]
        if not lines:
            lines = [(Part(self._nothing(log.size()), "text_dim"),)]
        lines += [()] * (rows - len(lines))
        end = shown[-1 if self.follow else self._lines_shown - 1].next if shown else 0
        return [*lines, self._status(width, end, log.size())]

    def _nothing(self, size: int) -> str:
        """Return what is shown if there are no lines."""
        over = self.moment.state.over
        if not size:
            return "The build has written nothing." if over else "The build has written nothing yet."
        if self.note:
            return ""
        back = self.moment.key("log.errors")
        return f"No line looks like an error{'' if over else ' so far'}; {back} shows all lines again."

    def idle(self, action: actions.KeyAction) -> str:
        """Return why an action does nothing now: no search yet, or no output yet."""
        if action.method in ("log_next", "log_previous") and self._pattern is None:
            return f"search for something first, with {self.moment.key('log.search')}"
        if action.id in ("log.search", "log.next-error") and not self._log.size():
            return "nothing is written yet"
        return ""

    def relevant(self, action: actions.KeyAction) -> bool:
        """Hide the key for following while the output is followed."""
        return super().relevant(action) and not (action.id == "log.last" and self.follow)

    def label(self, action: actions.KeyAction) -> str:
        """Return the footer's name of an action; the key for errors also shows all lines again, and Esc does that or
        ends a search first."""
        if action.id == "back" and (self.only_errors or self.words or self.note):
            return "all lines" if self.only_errors else "end search"
        return "all" if action.id == "log.errors" and self.only_errors else super().label(action)

    def footer(self, width: int) -> Line:
        """Return the footer; while words are typed, no letter is a key."""
        if self.focused is None:
            return super().footer(width)
        return fit(key_hints((("enter", "find"), ("esc", "close"))), width)

    def _drawn(self, line: LogLine, limit: int, width: int) -> Line:
        """Return a line with its mark and the matches in it, up to `limit` cells."""
        if line.dropped:
            return self._folded_line(line, width)
        inks = inked(line.raw, limit, error=bool(ERRORS.search(line.raw)) and self._counts(line))
        return self._marked((*self._ours(line), *inks), line)

    def _folded_line(self, line: LogLine, width: int) -> Line:
        """Return what stands for the lines on dropped jobs, marked if the current match is in them."""
        room = sys.maxsize if self.wrapped else width
        mark, text = folded_line(line.dropped, room, self.glyphs, self._log.part_of(line).by)
        found = bool(self.words) and line.start <= self._found < line.next
        return mark, text._replace(ink="cursor_text on cursor") if found else text

    def _pieces(self, line: Line, width: int, rows: int) -> list[Line]:
        """Return the screen rows of a line: one, cropped; or if lines are wrapped, as many as it needs up to `rows`."""
        if not self.wrapped:
            return [crop(line, self.left, width)]
        count = min(rows, max(1, -(-width_of(line) // width)))
        return [crop(line, at * width, width) for at in range(count)]

    def _visible_errors(self, rows: int) -> list[list[LogLine]]:
        """Return the errors from the top on, each with its message; at the end of the list, the last page of them."""
        errors = self._counted_errors()
        at = len(errors) if self.follow else bisect_left(errors, self.top)
        shown, room = self._messages(errors[at:], rows), rows
        room -= sum(map(len, shown))
        while at > 0 and (error := self._log.with_message(errors[at - 1])) and len(error) <= room:
            shown.insert(0, error)
            room -= len(error)
            at -= 1
        return shown

    def _messages(self, errors: Sequence[int], rows: int) -> list[list[LogLine]]:
        """Return as many errors, each with its message, as begin within `rows`; lines of a message are not counted."""
        messages: list[list[LogLine]] = []
        count, end = 0, 0
        for start in errors:
            if count >= rows:
                break
            if start >= end:
                messages.append(self._log.with_message(start))
                count, end = count + len(messages[-1]), messages[-1][-1].next
        return messages

    def _counted_errors(self) -> list[int]:
        """Return the error lines without those of jobs known to be dropped."""
        return [start for start in self.errors if start not in self._doubtful or self._counts(self._doubtful[start])]

    def _counts(self, line: LogLine) -> bool:
        """Return whether a line that looks like an error is one: not if it only reports a killed or dropped job."""
        return self._log.part_of(line).is_error(line.raw)

    def _ours(self, line: LogLine) -> Line:
        """Return the remark before a line that calls a killed or dropped job failed; nothing for other lines."""
        output = self._log.part_of(line).output_of(line.raw[:DOUBTFUL]) if maybe_failed(line.raw) else ""
        if not output:
            return ()
        return (Part(f"{self.glyphs.killed} {killed_text.mark_text(self.moment.state, output)}: ", "killed bold"),)

    def _counts_at(self, hit: int) -> bool:
        line = self._log.line_at(self._log.start_of(hit))
        return not line.dropped and self._counts(line)

    def _place(self, hit: int) -> int:
        """Return where a match is shown: all those in lines that one line stands for are one place."""
        fold = self._log.fold_at(hit)
        return hit if fold is None else fold.start

    def _marked(self, line: Line, raw: LogLine) -> Line:
        """Highlight the searched words in a line, and the current match most: the cursor is on it."""
        if not self.words:
            return line
        text = text_of(line)
        searched, words = (text, self.words) if self.words != self.words.lower() else (text.lower(), self.words)
        at = searched.find(words) if len(searched) == len(text) else -1
        marked: list[Part] = []
        done, current = 0, self._place_in(raw)
        while at >= 0:
            marked += crop_text(line, done, at)
            ink = "cursor_text on cursor" if current == 0 else "text on selection"
            marked.append(Part(text[at : at + len(words)], ink))
            current -= 1
            done = at + len(words)
            at = searched.find(words, done)
        return (*marked, *crop_text(line, done, len(text)))

    def _place_in(self, raw: LogLine) -> int:
        """Return which match in a line is the current one, from 0; -1 if none is."""
        if self._pattern is None or not raw.start <= self._found < raw.next:
            return -1
        return sum(1 for _ in self._pattern.finditer(raw.raw[: self._found - raw.start]))

    def _found_text(self) -> str:
        """Return the number of the current match: 3 of 17."""
        at = bisect_left(self._hits, self._found)
        if not self.words or at == len(self._hits) or self._hits[at] != self._found:
            return ""
        more = "+" if len(self._hits) >= MAX_HITS or self._counted_to < min(self._log.size(), COUNTED) else ""
        return f"{at + 1} of {len(self._hits)}{more}  "

    def _recount(self) -> None:
        """Count the matches again when more jobs were dropped, because their lines are hidden from now on."""
        state = self.moment.state
        dropped = (sum(scheduler.dropped for scheduler in state.schedulers.values()), state.repeated)
        if dropped == self._dropped:
            return
        self._dropped = dropped
        self._hits, self._counted_to = [], 0
        if self._pattern is not None:
            self._found = self._place(self._found)
            self.run_worker(self._count(self._pattern), exclusive=True, group="count")

    async def _count(self, pattern: re.Pattern[bytes]) -> None:
        """Count all matches, from where the last count ended."""
        end = min(self._log.size(), COUNTED)
        async for portion in scan(self.viewer.source.log, pattern, self._counted_to, end):
            self._hits += unique(self._hits[-1:], map(self._place, portion.hits))
            self._counted_to = portion.at
            if len(self._hits) >= MAX_HITS:
                break
            await asyncio.sleep(0)
        self.redraw()

    def _status(self, width: int, end: int, size: int) -> Line:
        outcome = self.moment.state.outcome
        following = f"the build has ended: {outcome}" if outcome else "follows the build"
        place = following if self.follow else f"{100 * end // size if size else 100} %"
        if self.only_errors:
            count = len(self._counted_errors())
            place = "1 line that looks like an error" if count == 1 else f"{count} lines that look like errors"
        right = [
            Part(self._found_text() + (f"{self.note}  " if self.note else ""), "accent"),
            Part(f"{place}  {format_bytes(size)}", "text_dim"),
        ]
        title = "errors only" if self.only_errors else "output"
        if self.wrapped:
            title += ", wrapped"
        elif self.left:
            title += f", from column {self.left + 1}"
        return spread(section(title, width, self.glyphs), [Part(" "), *right], width)

    # Moving. Any move upwards ends following; reaching the end starts it again.

    def _rows(self) -> int:
        return max(1, self.size.height - 2)

    def action_move(self, by: int) -> None:
        """Scroll down by `by` lines."""
        log = self._log
        if self.only_errors:
            self._step_errors(by)
        elif by < 0:
            self.top = log.back(self.top, -by)
            self.follow = False
        elif not self.follow:
            last = log.tail(self._lines_shown if self.wrapped else self._rows())
            self.top = min(last, next(iter(log.lines(self.top, by + 1)[by:]), log.line_at(self.top)).start)
            self.follow = self.top >= last
        self.redraw()

    def _step_errors(self, by: int) -> None:
        shown, errors = self._visible_errors(self._rows()), self._counted_errors()
        if shown:
            at = max(0, min(len(errors) - 1, errors.index(shown[0][0].start) + by))
            self.top, self.follow = errors[at], False

    def action_move_page(self, by: int) -> None:
        """Scroll down by `by` pages."""
        self.action_move(by * (self._lines_shown if self.wrapped else self._rows()))

    def action_shift(self, by: int) -> None:
        """Scroll right by `by` columns."""
        self.left = max(0, self.left + by)
        self.redraw()

    def action_log_wrap(self) -> None:
        """Switch between wrapping and cropping long lines."""
        self.wrapped = not self.wrapped
        self.redraw()

    def action_log_first(self) -> None:
        """Go to the beginning."""
        self.top, self.follow = 0, False
        self.redraw()

    def action_log_last(self) -> None:
        """Go to the end, and follow it."""
        self.follow = True
        self.redraw()

    def jump(self, offset: int) -> None:
        """Show the line at a byte offset, below a few lines of context. May be called before the screen is shown."""
        self.only_errors = False
        log = self._log
        start = log.start_of(offset)
        self._found = offset
        self.top, self.follow = log.back(start, ABOVE), False
        self.redraw()

    # Searching. Every scan is a worker that reads in portions and yields to key events in between.

    def action_log_search(self) -> None:
        """Open the search line."""
        self.query_one(EntryLine).open()

    def undo(self) -> bool:
        """Close the search line, or else end the search and its highlights; return False if there was none."""
        if self.query_one(EntryLine).close():
            pass
        elif self.note or self.words or self.only_errors:
            self.workers.cancel_node(self)
            if self.only_errors:
                self._leave_errors()
            self.note, self.words = "", ""
        else:
            return False
        self.redraw()
        return True

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """Search for the typed words, from the top of the window on."""
        event.stop()
        self._found = self.top - 1
        self.undo()
        self.words = event.value[:LONGEST]
        self._pattern = pattern_of(self.words) if self.words else None
        self._hits, self._counted_to = [], 0
        self.action_log_next()

    def action_log_next(self) -> None:
        """Go to the next match; after the last one, to the first."""
        if self._pattern is not None:
            self.run_worker(self._search(self._pattern, forward=True), exclusive=True, group="search")
            self.run_worker(self._count(self._pattern), exclusive=True, group="count")

    def action_log_previous(self) -> None:
        """Go to the previous match; before the first one, to the last."""
        if self._pattern is not None:
            self.run_worker(self._search(self._pattern, forward=False), exclusive=True, group="search")

    def action_log_next_error(self) -> None:
        """Go to the next line that looks like an error."""
        self.only_errors = False
        self.run_worker(self._search(ERRORS, forward=True), exclusive=True, group="search")

    async def _search(self, pattern: re.Pattern[bytes], *, forward: bool) -> None:
        """Search from the current match to the end, then wrap around."""
        size, source = self._log.size(), self.viewer.source.log
        origin = self._found if self._found >= 0 or forward else self.top
        if forward and self._found >= 0 and (pattern is ERRORS or self._log.fold_at(self._found) is not None):
            origin = self._log.line_at(self._log.start_of(self._found)).next - 1
        spans_to_scan = [(origin + 1, size), (0, origin + 1)] if forward else [(0, origin), (origin, size)]
        for wrapped, (start, end) in enumerate(spans_to_scan):
            portions = scan(source, pattern, start, end) if forward else scan_back(source, pattern, start, end)
            async for portion in portions:
                hits = iter(portion.hits if forward else reversed(portion.hits))
                hit = next((hit for hit in hits if pattern is not ERRORS or self._counts_at(hit)), None)
                if hit is not None:
                    self.note = ("wrapped to the top" if forward else "wrapped to the end") if wrapped else ""
                    if self._log.fold_at(hit) is not None:
                        self.note = FOLDED
                    self.jump(self._place(hit))
                    return
                await self._breathe(f"searching {portion.at * 100 // max(1, size)} %")
        what = "no error found" if pattern is ERRORS else "not found"
        self.note = f"{what} in {format_bytes(size)}" + ("" if self.moment.state.over else " so far")
        self.redraw()

    def action_log_errors(self) -> None:
        """Show only the lines that look like errors, or all lines again."""
        if self.only_errors:
            self._leave_errors()
        else:
            self._before_errors = (self.top, self.follow)
            self.only_errors, self.top, self.follow = True, 0, False
            self.run_worker(self._collect_errors(), exclusive=True, group="search")
        self.redraw()

    def _leave_errors(self) -> None:
        """Show all lines again, where they stood before."""
        self.only_errors = False
        self.top, self.follow = self._before_errors

    async def _collect_errors(self) -> None:
        """Find error lines from where the last scan ended."""
        log = TextLog(self.viewer.source.log)  # it may turn out later which lines are left out
        size = log.size()
        async for portion in scan(self.viewer.source.log, ERRORS, self._errors_at, size):
            for hit in portion.hits:
                start = log.start_of(hit)
                if not self.errors or start > self.errors[-1]:
                    self.errors.append(start)
                    self._note_doubtful(log.line_at(start))
            self._errors_at = portion.at
            if len(self.errors) >= MAX_ERRORS:
                break
            await self._breathe(f"searching {portion.at * 100 // max(1, size)} %")
        self.note = ""
        self.redraw()

    def _note_doubtful(self, line: LogLine) -> None:
        """Keep a build tool's line about a failed job: stoker may turn out to have dropped that job."""
        if maybe_failed(line.raw):
            self._doubtful[line.start] = replace(line, raw=line.raw[:DOUBTFUL])

    async def _breathe(self, note: str) -> None:
        """Yield to keys and frames, and show the progress of the search."""
        self.note = note
        await asyncio.sleep(0)


def _fitting(pieces: Sequence[Sequence[Line]], rows: int) -> int:
    """Return how many of these lines fit on `rows` rows; at least one."""
    taken = list(accumulate(len(of_line) for of_line in pieces))
    return max(1, sum(rows_so_far <= rows for rows_so_far in taken))


def unique(before: Sequence[int], places: Iterable[int]) -> list[int]:
    """Return sorted places without those that repeat each other or one of `before`."""
    known = {*before}
    return [place for place in dict.fromkeys(places) if place not in known]


def inked(raw: bytes, limit: int, *, error: bool) -> Line:
    """Return a line in the build's colours; an error line without colours is highlighted."""
    line = from_spans(spans(raw, limit))
    plain = all(part.ink == PLAIN_INK for part in line)
    return tuple(part._replace(ink="error bold") for part in line) if plain and error else line


def crop_text(line: Line, start: int, end: int) -> list[Part]:
    """Return the characters start..end of a line, with their inks."""
    parts: list[Part] = []
    at = 0
    for part in line:
        text = part.text[max(0, start - at) : max(0, end - at)]
        if text:
            parts.append(part._replace(text=text))
        at += len(part.text)
    return parts
