"""Follows the build's output log and extracts what ninja and make print about progress and failures.

Unaware of who wrote the log and of screens; excerpts are raw bytes. Lines may be huge or binary, end in CRLF, carry
colour, or be indented (pip indents the inner build's output when it shows it after a failure).
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

from stoker.sense.proc.procfs import read_from

MAX_PER_READ = 2 * 1024 * 1024
"""Bytes read in one call, so that a chatty build cannot hold up a tick: 10 ms of work, 80 ms if every line is a status
line."""

MAX_LINE = 64 * 1024
"""A longer line is read in pieces; its later pieces never count as the start of a line."""

EXCERPT_LINES = 40
EXCERPT_LINE = 2000
"""Lines of a failure that are kept, and bytes of each."""

BEFORE = 8000
"""Bytes before an error of make that are searched for its reason."""

MAX_STEP_BACK = 20
"""Percent by which CMake's percentage may fall within one make: parallel recipes announce themselves out of order."""

QUIET_SECONDS, SILENT_SECONDS = 0.2, 1.0
"""Nothing must come for so long before a failure is taken to be complete, and for so long if it has neither a word
nor an exit status so far. Ninja writes line by line, and looks through a step's output before: on a busy machine with
pauses. What seems to have died without a word is taken for killed."""

MAX_FAILURES = 100
"""Failures reported from one log; a broken compiler with `-k 0` would give thousands."""

_SGR = rb"(?:\x1b\[[0-9;]*m)*"
_MARKER = re.compile(
    rb"^(?P<indent>[ \t]*)" + _SGR + rb"(?:"
    rb"\[(?P<done>\d{1,7})/(?P<total>\d{1,7})\] "
    rb"|\[ {0,2}(?P<percent>\d{1,3})%\] "
    rb"|(?P<failed>FAILED: )"
    rb"|g?make(?:\[(?P<level>\d{1,3})\])?: \*\*\* (?P<make>\[[^\n]{1,4000})"
    rb"|(?P<stopped>ninja: (?:build stopped|error|fatal))"
    rb")",
    re.MULTILINE,
)
_MAKE_ERROR = re.compile(
    rb"\[(?:(?:[^\s:\]]+:\d+|<builtin>): )?(?P<target>[^\]]+)\] (?:Error (?P<code>\d{1,3})|(?P<word>[A-Z][^\r\n]*))"
)
_SIGNALLED = {
    b"Hangup": 129,
    b"Interrupt": 130,
    b"Quit": 131,
    b"Illegal instruction": 132,
    b"Aborted": 134,
    b"Bus error": 135,
    b"Floating point exception": 136,
    b"Killed": 137,
    b"Segmentation fault": 139,
    b"Terminated": 143,
}
"""What make prints for a command that a signal ended (strsignal(3)), as a shell's exit status: 128 + signal."""

_CODE = re.compile(rb"\[code=(\d{1,3})\] ")
_COLOUR = re.compile(rb"\x1b\[[0-9;]*m")


@dataclass(frozen=True, slots=True)
class StatusLine:
    """Ninja's `[done/total]`, at byte `offset`."""

    offset: int
    done: int
    total: int


@dataclass(frozen=True, slots=True)
class PercentLine:
    """CMake's `[ 45%]` under make, at byte `offset`: printed when a recipe starts, or when a target is complete.

    `each` is by how many percent a recipe has advanced it so far, on average; 0 while that is unknown.
    """

    offset: int
    percent: int
    each: float = 0.0


@dataclass(frozen=True, slots=True)
class ReportedFailure:
    """A step that failed, as the scheduler reports it.

    `command` is empty if make does not print it. `exit_code` is None if it is not printed (ninja before 1.13).
    `excerpt` holds the first lines of its output (for make: the last ones before), raw and without line ends.
    `log_start` and `log_end` are bytes of the log, the whole block.
    """

    output: str
    command: str
    exit_code: int | None
    excerpt: tuple[bytes, ...]
    log_start: int
    log_end: int


Found = StatusLine | PercentLine | ReportedFailure


class _Block:
    """A FAILED block of ninja that is being read."""

    def __init__(self, output: str, code: int | None, start: int, indent: bytes) -> None:
        self.output, self.code, self.start, self.indent = output, code, start, indent
        self.end = start
        self.command: str | None = None
        self.lines: list[bytes] = []

    def add(self, text: bytes, end: int) -> None:
        """The next bytes of the block, whole lines."""
        self.end = end
        if len(self.lines) >= EXCERPT_LINES:
            return
        for line in text.splitlines():
            if self.command is None:
                self.command = os.fsdecode(_plain(line, self.indent))
            elif len(self.lines) < EXCERPT_LINES:
                self.lines.append(_plain(line, self.indent)[:EXCERPT_LINE])

    @property
    def quiet_seconds(self) -> float:
        """For how long nothing must come to take it for complete."""
        return SILENT_SECONDS if self.code is None and not self.lines else QUIET_SECONDS

    def step(self) -> ReportedFailure:
        """What the block says so far."""
        return ReportedFailure(self.output, self.command or "", self.code, tuple(self.lines), self.start, self.end)


class _Recipes:
    """By how much the recipes that CMake's makefiles announce advance their percentage."""

    def __init__(self) -> None:
        self._percent: int | None = None
        self._recipes = 0
        self._gained = 0

    def each(self, percent: int, *, announces: bool) -> float:
        """Return the mean over all recipes announced so far, with another line. A lower percentage is from another
        make."""
        before, self._percent = self._percent, percent
        if before is not None and percent < before - MAX_STEP_BACK:
            self._recipes = self._gained = before = 0
        if announces and before is not None:
            self._recipes += 1
            self._gained += max(0, percent - before)
        return self._gained / self._recipes if self._recipes else 0.0


class BuildOutput:
    """Reads a growing log; `offset` is how far it has looked."""

    def __init__(self, path: Path, offset: int = 0, clock: Callable[[], float] = time.monotonic) -> None:
        self.path = path
        self.offset = offset
        self._clock = clock
        self._grew_at = clock()
        self._carry = b""
        self._inside_line = self._is_inside_line()
        self._block: _Block | None = None
        self._before = b""
        self._make_level: int | None = None
        self._failures = 0
        self._recipes = _Recipes()
        if offset == 0:
            self._recipes.each(0, announces=False)

    @property
    def settled(self) -> int:
        """The byte up to which everything has been reported: a successor may start there."""
        return self._block.start if self._block is not None else self.offset - len(self._carry)

    def skip_to(self, offset: int) -> None:
        """Skip what comes before that byte."""
        self.offset, self._carry, self._block, self._before = offset, b"", None, b""
        self._inside_line = self._is_inside_line()

    def _is_inside_line(self) -> bool:
        return self.offset > 0 and read_from(str(self.path), self.offset - 1, 1) not in (b"", b"\n")

    def read_new(self) -> list[Found]:
        """Return the contents of the next bytes, in order; of each kind of progress only the last.

        A failure comes once its block has ended: by another line of the scheduler, or because nothing more comes.
        """
        data = read_from(str(self.path), self.offset, MAX_PER_READ)
        now = self._clock()
        if not data:
            is_over = self._block is not None and now - self._grew_at >= self._block.quiet_seconds
            return list(self._end_block()) if is_over else []
        self._grew_at = now
        base = self.offset - len(self._carry)
        self.offset += len(data)
        data = self._carry + data
        cut = data.rfind(b"\n") + 1
        if len(data) - cut > MAX_LINE:
            whole, self._carry = data, b""
        else:
            whole, self._carry = data[:cut], data[cut:]
        found = list(self._scan(whole, base))
        self._inside_line = bool(whole) and not whole.endswith(b"\n")
        self._before = (self._before + whole[-BEFORE:])[-BEFORE:]
        return _last_progress(found)

    def finish(self) -> list[Found]:
        """Return what is left when nothing more will be written: a last line without its end, an open failure."""
        found = self.read_new()
        rest, self._carry = self._carry, b""
        found += self._scan(rest, self.offset - len(rest))
        found += self._end_block()
        return _last_progress(found)

    def _scan(self, text: bytes, base: int) -> Iterator[Found]:
        position = 0
        first = 0
        if self._inside_line:
            first = text.find(b"\n") + 1 or len(text)
        for match in _MARKER.finditer(text, first):
            ends_block = not (match["make"] or match["percent"])
            if self._block is not None and ends_block:
                self._block.add(text[position : match.start()], base + match.start())
                yield from self._end_block()
            end = text.find(b"\n", match.end()) + 1 or len(text)
            if match["failed"]:
                self._open_block(text[match.end() : end], base + match.start(), match["indent"])
                position = end
            elif self._block is None or ends_block:
                position = end
                yield from self._marker(match, text, base)
        if self._block is not None:
            self._block.add(text[position:], base + len(text))

    def _marker(self, match: re.Match[bytes], text: bytes, base: int) -> Iterator[Found]:
        if match["done"]:
            yield StatusLine(base + match.start(), int(match["done"]), int(match["total"]))
        elif match["percent"]:
            if (percent := int(match["percent"])) <= 100:
                announces = not text.startswith(b"Built target ", match.end())
                each = self._recipes.each(percent, announces=announces)
                yield PercentLine(base + match.start(), percent, each)
        elif match["make"]:
            yield from self._make_error(match, text, base)

    def _open_block(self, line: bytes, start: int, indent: bytes) -> None:
        line = _COLOUR.sub(b"", line).strip()
        code = _CODE.match(line)
        outputs = line[code.end() if code else 0 :]
        self._block = _Block(os.fsdecode(outputs.split(b" ")[0]), int(code[1]) if code else None, start, indent)

    def _end_block(self) -> Iterator[ReportedFailure]:
        block, self._block = self._block, None
        if block is not None and self._counted():
            yield block.step()

    def _make_error(self, match: re.Match[bytes], text: bytes, base: int) -> Iterator[ReportedFailure]:
        """Each make around a failed one prints `Error 2` for it again: only the innermost is the failure."""
        error = _MAKE_ERROR.match(match["make"])
        if error is None or b"(ignored)" in match["make"]:
            return
        level = int(match["level"] or 0)
        repeats = error["code"] == b"2" and self._make_level is not None and level < self._make_level
        self._make_level = level
        if repeats or not self._counted():
            return
        near = text[max(0, match.start() - BEFORE) : match.start()]
        before = (self._before + near)[-BEFORE:].splitlines()[-EXCERPT_LINES:]
        lines = tuple(_plain(line, match["indent"])[:EXCERPT_LINE] for line in before)
        start = base + match.start() - sum(len(line) + 1 for line in before)
        end = base + (text.find(b"\n", match.end()) + 1 or len(text))
        word = (error["word"] or b"").removesuffix(b" (core dumped)")
        code = int(error["code"]) if error["code"] else _SIGNALLED.get(word)
        yield ReportedFailure(os.fsdecode(error["target"]), "", code, lines, max(0, start), end)

    def _counted(self) -> bool:
        self._failures += 1
        return self._failures <= MAX_FAILURES


def _plain(line: bytes, indent: bytes) -> bytes:
    return line.removeprefix(indent).rstrip(b"\r")


def _last_progress(found: list[Found]) -> list[Found]:
    """Keep all failures; of everything else only the last of each kind."""
    last = {type(f): f for f in found}
    return [f for f in found if isinstance(f, ReportedFailure) or f is last[type(f)]]
