"""The build's output as lines, where one line stands for all that the build tool prints of jobs dropped before they
began: a run of such blocks would push the real error off the screen.

Nothing is indexed: whether a line belongs to a block follows from its neighbours, and a run is read when it is met.
Unaware of screens.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice, pairwise, zip_longest

from stoker.diagnose.dropped_blocks import in_block, is_status
from stoker.diagnose.output_parts import OutputPart, folds_any, part_at, parts_of
from stoker.model.state import BuildState
from stoker.show.tui.text_log import CHUNK, MESSAGE, LogLine, TextLog
from stoker.show.update_source import OutputLog

BATCH = 64
"""Lines read at once along a run."""

LONGEST_RUN = 1 << 14
"""Lines after which a run is taken as ended: hundreds of jobs have fewer, and no key press reads forever."""

MOST_KNOWN = 16
"""Runs that are remembered: a build has one or two."""


class FoldedLog(TextLog):
    """A TextLog whose lines, places and moves treat each run of blocks as one line, with `LogLine.dropped` set."""

    def __init__(self, log: OutputLog, state: BuildState) -> None:
        """`state` is what is known of the dropped jobs: a value, so that the folds do not change under a caller."""
        super().__init__(log)
        self._folds_any = folds_any(state)
        self._parts = parts_of(state)
        self._known: list[LogLine] = []

    def part_of(self, line: LogLine) -> OutputPart:
        """Return the part of the output that a line, or a run, is in: its attempt."""
        return part_at(self._parts, line.start)

    def line_at(self, start: int) -> LogLine:
        """Return the line, or the run, that starts at `start`."""
        return self.fold_at(start) or self._line(start)

    def lines(self, start: int, count: int) -> list[LogLine]:
        """Return up to `count` lines and runs, from the one that holds the byte at `start`."""
        if not self._folds_any:
            return super().lines(start, count)
        fold = self.fold_at(start)
        start = start if fold is None else fold.start
        shown: list[LogLine] = []
        # Whether a status line is left out depends on the line after it, so one more is read.
        while len(shown) < count and (portion := super().lines(start, count - len(shown) + 1)):
            for line, after in zip_longest(portion, portion[1:]):
                begins = self._holds(None, line, after)
                shown.append(self._run_from(line.start) if begins else line)
                start = shown[-1].next
                if begins or len(shown) == count:
                    break
        return shown

    def start_of(self, offset: int) -> int:
        """Return the start of the line or the run that holds the byte at `offset`."""
        fold = self.fold_at(offset)
        return super().start_of(offset) if fold is None else fold.start

    def fold_at(self, offset: int) -> LogLine | None:
        """Return the run that holds the byte at `offset`; None if its line is shown."""
        if not self._folds_any:
            return None
        known = next((run for run in self._known if run.start <= offset < run.next), None)
        if known is not None:
            return known
        start = super().start_of(offset)
        if start >= self.size():
            return None
        here = self._line(start)
        after = next(iter(super().lines(here.next, 1)), None)
        upwards = chain((here,), self._preceding(start), (None,))
        begin: int | None = None
        for line, before in pairwise(islice(upwards, LONGEST_RUN)):
            if line is None or not self._holds(before, line, after):
                break
            begin, after = line.start, line
        return None if begin is None else self._run_from(begin)

    def _below(self, line: LogLine) -> list[LogLine]:
        return super().lines(line.next, MESSAGE)

    def _holds(self, before: LogLine | None, line: LogLine, after: LogLine | None) -> bool:
        """Return whether a line belongs to a block, judged by its neighbours in the same attempt."""
        part = self.part_of(line)
        above, below = (near.raw if near and part.start <= near.start < part.end else b"" for near in (before, after))
        return in_block(above, line.raw, below, part.is_dropped)

    def _run_from(self, start: int) -> LogLine:
        """Return the whole run that starts at `start`."""
        part = part_at(self._parts, start)
        end, count, status, last = start, 0, False, b""
        for line in islice(self._following(start), LONGEST_RUN):
            if line.start >= part.end:
                break
            if part.is_dropped(line.raw):
                count, end, status = count + 1, line.next, False
            elif is_status(line.raw) and not status:
                status = True  # part of the run only if a block follows
            elif not status and in_block(last, line.raw, b"", part.is_dropped):
                end = line.next
            else:
                break
            last = line.raw
        run = LogLine(start, end, b"", count)
        self._known = [*self._known[1 - MOST_KNOWN :], run]
        return run

    def _following(self, start: int) -> Iterator[LogLine]:
        """Yield the lines as they are written, from `start` on."""
        while batch := super().lines(start, BATCH):
            yield from batch
            start = batch[-1].next

    def _preceding(self, start: int) -> Iterator[LogLine]:
        """Yield the lines of this attempt as they are written, from the one before `start` backwards."""
        begin = part_at(self._parts, start).start
        while start > begin:
            first = super().start_of(max(begin, start - CHUNK))
            lines: list[LogLine] = []
            for line in self._following(first):
                if line.start >= start:
                    break
                lines.append(line)
            yield from reversed(lines)
            start = first
