"""Finds in the end of a log what stopped it, and which lines above it went on after. Knows nothing of rules.

A message is no cause if the same program went on after it: other steps of ninja ran, a setup.py continued, docker
called the layer done. What stopped the log is then the cause, whether or not a rule knows it.
"""

from __future__ import annotations

import bisect
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import takewhile

from stoker.diagnose.around import Neighbours
from stoker.diagnose.blocks import Block
from stoker.diagnose.likely import ERROR, STOP, kind_of
from stoker.diagnose.wrappers import unwrapped

TAIL = 1 << 16
"""Bytes of a log's end that are looked at: what stopped a build stands there."""

_STATUS = re.compile(r"\[ {0,2}\d{1,7}/\d{1,7}\] ")
_FAILED = "FAILED: "
_STOPPED = "ninja: build stopped"
_TRACEBACK = "Traceback (most recent call last):"
_FRAME = 'File "'
_CHAINED = ("During handling of the above exception", "The above exception was the direct cause")

_PROGRESS = re.compile(
    r"\[ {0,2}\d{1,7}(?:/\d{1,7}\]|%\]) |(?:running|creating|copying|writing|adding|reading|byte-compiling) \S"
    r"|building '|skipping '|Cythonizing |(?:Emitting|Allowing) ninja|\[WARNING\] |Compiling |Looking for python"
    r"|[\w./-]{0,200}(?:[gc]\+\+|gcc|clang|nvcc|/cc)(?:-\d{1,2})? -"
)
"""What setuptools, torch and ninja print as they go on."""

_STEPS_OF_MAKE = 6
"""Steps by which make has gone on: its other jobs print some between an error and what it says of it."""

_CMAKE_ERROR = re.compile(r"CMake Error(?: at |: |$)")
_CMAKE_STATUS = re.compile(r"-- (?!Configuring incomplete)\S")
_MAKE_STOPPED = re.compile(r"\S{0,100}make(?:\[\d{1,4}\])?: \*\*\* \[")
_MAKE_STEP = re.compile(r"\[ {0,2}\d{1,3}%\] ")
_ENOUGH = {_PROGRESS: 3, _CMAKE_STATUS: 3, _MAKE_STEP: _STEPS_OF_MAKE}
"""Lines of progress after a message by which the program has gone on, where one may be printed beside it."""

_OF_ONE_STEP = 60
"""Lines of output above make's message in which its error is looked for."""

_SETUPTOOLS = "error: "
_OUTPUT_ENDS = "[end of output]"

_WORD = re.compile(r"[A-Za-z][A-Za-z0-9_]{2,40}")
_COMMON = frozenset(
    (
        *("cmake", "cmakelists", "error", "fatal", "failed", "find", "found", "could", "missing", "required"),
        *("message", "the", "not", "for", "and", "you", "has", "was", "are", "but", "can", "any", "use", "its"),
        *("more", "which", "have", "been", "does", "line", "cpp", "cxx", "lib", "usr", "bin", "txt", "src", "tmp"),
        *("opt", "none", "only", "when", "with", "from", "that", "this", "file", "directory", "such", "call"),
        *("stack", "most", "recent", "first", "module", "modules", "package", "packages", "version", "include"),
        *("library", "libraries", "build", "source", "please", "install", "installed", "share", "home", "local"),
        *("setup", "python", "cannot", "open"),
    )
)
"""Words that messages about different things share."""

_EXCEPTION = re.compile(r"(?:[a-z_]\w{0,60}\.){0,6}(?P<type>[A-Z]\w{0,60}): (?P<said>\S.{0,400})")
_OF_OTHERS = frozenset(
    (
        *("CalledProcessError", "CommandError", "SystemExit", "KeyboardInterrupt", "CompileError", "LinkError"),
        *("DistutilsError", "DistutilsExecError", "PackageFinderError", "HookMissing", "OSError", "ExecError"),
        *("FileNotFoundError", "MemoryError", "BackendUnavailable", "TimeoutExpired", "UserWarning"),
    )
)
"""Exceptions that mostly say that another program failed, or what it left behind."""

_BY_ANOTHER = re.compile(
    r"\b(?:compil|build|fail|exit|return|error|command|above|ninja|cmake|make\b|subprocess|link)", re.IGNORECASE
)
"""Words by which an exception of any type speaks of a failure before it."""

_FAILURE = re.compile(r"\bfail|\bexit code|\bexit status|\berror code|not able to compile", re.IGNORECASE)
"""The same for a message of CMake's."""

_NOT_FOUND = re.compile(
    r"(?:/bin/(?:ba|da)?sh: (?:(?:line )?\d{1,4}: )?|\S{0,100}make(?:\[\d{1,4}\])?: )"
    r"(?P<program>[\w.+/-]{1,100}): (?:[Cc]ommand )?not found"
)
"""What the shell of a Makefile's recipe, or of its $(shell ...), says."""

_FINDER = re.compile(r"pkg-?conf|config\b")
"""Programs that say to a Makefile where libraries are: without an answer its compilers miss headers."""

_STATUS_OF_STEP = re.compile(
    r"\*\*\* \[.{1,600}\] Error (\d{1,3})$|\b(?:exit status|exit code:?|non-zero code:) (\d{1,3})\b"
    r"|FAILED: \[code=(\d{1,3})\]"
)
_NO_SUCH_COMMAND = "127"
"""The exit status of a shell whose command was not found."""

_DONE = re.compile(rb"^#(\d{1,6}) DONE \d", re.MULTILINE)
_LAYER_FAILED = re.compile(rb"^#\d{1,6} ERROR\b", re.MULTILINE)


@dataclass(frozen=True, slots=True)
class StopPlace:
    """Where the log was stopped: lines that belong to the failure, and its own error; numbers count from 1."""

    begin: int
    end: int
    error: int
    text: str
    progress: re.Pattern[str]
    """What is printed where it goes on."""


class LogEnd:
    """The last lines of a log, of which the first has the number `first`."""

    def __init__(self, tail: bytes, first: int) -> None:
        self._block = Block(tail, first, b"")
        self._first = first
        self._lines = [unwrapped(line) for line in tail.split(b"\n")]
        self._known_before: dict[StopPlace, tuple[int, list[int]]] = {}
        self._layers: dict[int, bytes] = {}
        done = set(_DONE.findall(tail)) if _LAYER_FAILED.search(tail) else set()
        if done:
            self._layers = {n: tag for n, line in enumerate(tail.split(b"\n"), first) if (tag := _layer(line)) in done}
        found = (
            self._failed_step(),
            self._failed_target(),
            self._not_configured(),
            self._exception(),
            self._last_error(),
        )
        self.stops = tuple(stop for stop in found if stop is not None)

    def went_on(self, line: int) -> bool:
        """Return whether the program that printed a line went on after it and was stopped by something else."""
        if line < self._first:
            return False
        if line in self._layers or self._is_optional(line):
            return True
        return any(line < stop.begin and self._goes_on(line, stop) for stop in self.stops)

    def unknown(self, known: Collection[int]) -> StopPlace | None:
        """Return what stopped the log if none of the known lines belongs to it."""
        for stop in self.stops:
            if not any(stop.begin <= line for line in known):
                return stop
        return None

    def near(self, stop: StopPlace) -> Neighbours:
        """Return the neighbours of what stopped the log."""
        start = -1
        for _ in range(stop.error - self._first):
            start = self._block.data.find(b"\n", start + 1)
        return Neighbours(self._block, start + 1, stop.error)

    def _text(self, line: int) -> str:
        return self._lines[line - self._first].strip()

    def _is_optional(self, line: int) -> bool:
        """Return whether a Makefile only asked a program that it did not find: what failed then ended otherwise."""
        asked = _NOT_FOUND.match(self._text(line))
        if asked is None or _FINDER.search(asked["program"]):
            return False
        below = (text.strip() for text in self._lines[line + 1 - self._first :])
        ended = [said.groups() for text in below if (said := _STATUS_OF_STEP.search(text))]
        return bool(ended) and not any(_NO_SUCH_COMMAND in status for status in ended)

    def _goes_on(self, line: int, stop: StopPlace) -> bool:
        """Return whether steps follow a line before the log is stopped, and nothing that says that it stopped there."""
        barrier, steps = self._before(stop)
        enough = _ENOUGH.get(stop.progress, 1)
        if line <= barrier or len(steps) - bisect.bisect_right(steps, line) < enough:
            return False
        return stop.progress is _STATUS or not _words(self._text(line)) & self._words_of(stop)

    def _before(self, stop: StopPlace) -> tuple[int, list[int]]:
        """Return the last line before it that says that something stopped, 0 if none does; and those of progress."""
        if stop not in self._known_before:
            barrier, steps = 0, []
            for line in range(self._first, stop.begin):
                text = self._text(line)
                if kind_of(text) >= STOP or "Configuring incomplete" in text:
                    barrier = line
                if stop.progress.match(text):
                    steps.append(line)
            self._known_before[stop] = barrier, steps
        return self._known_before[stop]

    def _words_of(self, stop: StopPlace) -> set[str]:
        lines = self._lines[stop.begin - self._first : stop.end + 1 - self._first]
        return _words(" ".join(text for text in lines if not text.lstrip().startswith(_FRAME)))

    def _failed_step(self) -> StopPlace | None:
        """Return the first failed step of the ninja that was stopped last, if it shows an error."""
        stopped = [at for at, text in enumerate(self._lines) if text.strip().startswith(_STOPPED)]
        if not stopped:
            return None
        begin = stopped[-2] if len(stopped) > 1 else -1
        for at in range(begin + 1, stopped[-1]):
            if self._lines[at].strip().startswith(_FAILED):
                output = self._lines[at + 2 : stopped[-1]]  # behind the command
                own = list(takewhile(lambda text: not _STATUS.match(text.strip()), output))
                error = _first_error(own)
                return None if error is None else self._stop(at, at + 1 + len(own), at + 2 + error, _STATUS)
        return None

    def _failed_target(self) -> StopPlace | None:
        """Return the error above make's first word that it stops."""
        at = next((at for at, text in enumerate(self._lines) if _MAKE_STOPPED.match(text.strip())), None)
        if at is None:
            return None
        steps = [n for n in range(max(0, at - _OF_ONE_STEP), at) if _MAKE_STEP.match(self._lines[n].strip())]
        begin = steps[-_STEPS_OF_MAKE] if len(steps) >= _STEPS_OF_MAKE else max(0, at - _OF_ONE_STEP)
        error = _first_error(self._lines[begin:at])
        return None if error is None else self._stop(begin + error, at, begin + error, _MAKE_STEP)

    def _not_configured(self) -> StopPlace | None:
        """Return the message of CMake's that stopped the configuration."""
        end = next((at for at, text in enumerate(self._lines) if "-- Configuring incomplete" in text), None)
        heads = [at for at, text in enumerate(self._lines[:end]) if _CMAKE_ERROR.match(text.strip())]
        if end is None or not heads or _FAILURE.search(" ".join(self._lines[heads[0] : end])):
            return None
        return self._stop(heads[0], end, heads[0], _CMAKE_STATUS)

    def _last_error(self) -> StopPlace | None:
        """Return what setuptools says last, if it speaks of no failure before it."""
        said = [text.strip() for text in self._lines]
        end = next((at for at, text in enumerate(said) if text == _OUTPUT_ENDS), len(said))
        at = next((at for at in range(end - 1, -1, -1) if said[at]), None)
        if at is None or not said[at].startswith(_SETUPTOOLS) or kind_of(said[at]) != ERROR:
            return None
        return None if _BY_ANOTHER.search(said[at], len(_SETUPTOOLS)) else self._stop(at, at, at, _PROGRESS)

    def _exception(self) -> StopPlace | None:
        """Return the exception that ended the log, if it speaks of no failure before it."""
        heads = [at for at, text in enumerate(self._lines) if text.strip() == _TRACEBACK]
        if not heads:
            return None
        last = heads[-1]
        indent = _indent(self._lines[last])
        ends = (at for at in range(last + 1, len(self._lines)) if _ends_frames(self._lines[at], indent))
        at = next(ends, None)
        said = _EXCEPTION.fullmatch(self._lines[at].strip()) if at is not None else None
        if at is None or said is None or said["type"] in _OF_OTHERS or _BY_ANOTHER.search(said["said"]):
            return None
        if any(_PROGRESS.match(text.strip()) for text in self._lines[at + 1 :]):
            return None
        begin = last
        for head in reversed(heads[:-1]):
            if not any(text.strip().startswith(_CHAINED) for text in self._lines[head:begin]):
                break
            begin = head
        return self._stop(begin, at, at, _PROGRESS)

    def _stop(self, begin: int, end: int, error: int, progress: re.Pattern[str]) -> StopPlace:
        first = self._first
        return StopPlace(first + begin, first + end, first + error, self._lines[error].strip(), progress)


def _first_error(lines: Sequence[str]) -> int | None:
    return next((at for at, text in enumerate(lines) if kind_of(text.strip()) == ERROR), None)


def _words(text: str) -> set[str]:
    return {word.casefold() for word in _WORD.findall(text)} - _COMMON


def _indent(text: str) -> int:
    return len(text) - len(text.lstrip())


def _ends_frames(text: str, indent: int) -> bool:
    """Return whether a line below the head of a traceback is no frame any more."""
    return bool(text.strip()) and _indent(text) <= indent


def _layer(line: bytes) -> bytes:
    return line[1 : line.find(b" ")] if line.startswith(b"#") else b""
