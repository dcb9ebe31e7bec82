"""Decides what a whole log says: its known failures, otherwise the likely place of an unknown one, or that all went
well.

Knows nothing of where the log comes from.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Literal

from stoker.diagnose.around import Neighbours
from stoker.diagnose.blocks import NEAR, Block, Readable, blocks, shortened
from stoker.diagnose.likely import ended_well, is_of_runner, last_lines, progress_at_end, unfinished, unknown
from stoker.diagnose.match import Match, cause_of
from stoker.diagnose.rule import Rule
from stoker.diagnose.scan import TEXT_SHOWN, Scanner
from stoker.diagnose.wrappers import unwrapped
from stoker.model.diagnosis import LOG_BEGINS_LATE, LOG_UNFINISHED, Cause
from stoker.model.text import plain

FOLLOWS = 10
"""Lines after a known failure that builds may survive in which an unknown one counts as its result."""

_STATUS = re.compile(r"\[\d{1,7}/\d{1,7}\] ")
"""What ninja prints above a failed job."""

_NO_TEXT = bytes({*range(1, 32), 127} - set(b"\a\b\t\n\f\r\x1b"))
"""Control characters that no tool prints. Zeros do not count: a log with two writers may have a hole of them."""

_MOST_CONTROLS = 0.02
"""The largest share of them in text: programs and archives have 10 % and more, junk in logs far less."""

Verdict = Literal["known", "general", "unknown", "begins-late", "unfinished", "ended-well", "nothing"]
"""`general`: a rule knows the failure, but the line leaves the cause open. `nothing`: the log has no content."""


_GUESSED: Mapping[str, Verdict] = MappingProxyType({LOG_BEGINS_LATE: "begins-late", LOG_UNFINISHED: "unfinished"})


@dataclass(frozen=True, slots=True)
class LogReading:
    """What a log says, the first cause first. If none is known, the only cause is a guess, if there is any text at all.

    `ended_well`: the log ends like that of a build that ended well, which survived any failure before. `complete` is
    False if only a part was read. `is_text` is False for a program, an archive and the like.
    """

    causes: tuple[Cause, ...] = ()
    ended_well: bool = False
    complete: bool = True
    is_text: bool = True

    @property
    def verdict(self) -> Verdict:
        """The same in one word, for programs."""
        if self.ended_well:
            return "ended-well"
        if not self.causes:
            return "nothing"
        if self.causes[0].is_guess:
            return _GUESSED.get(self.causes[0].rule, "unknown")
        return "general" if self.causes[0].general else "known"


def read_log(
    file: Readable,
    rules: Collection[Rule],
    line: int = 1,
    enough: Callable[[], bool] = lambda: False,
    no_error: Callable[[str], bool] = lambda _: False,
    *,
    has_failed: bool = False,
    is_whole: Callable[[], bool] = lambda: True,
) -> LogReading:
    """Return what a log says from the start of `line` on. Raises OSError.

    After each portion `enough` is asked whether to stop. Lines for which `no_error` is true are skipped. `has_failed`:
    the build is known to have failed, whatever its last lines say. `is_whole`: called at the file's end: whether this
    is also the log's end.
    """
    scanner = Scanner(rules, no_error)
    tail, complete = Block(b"", line, b""), True
    sizes, controls = [], []
    for block in blocks(file, line):
        scanner.look_at(block)
        sizes.append(len(block.data))
        controls.append(len(block.data) - len(block.data.translate(None, _NO_TEXT)))
        tail = block
        if enough():
            complete = not block.after
            break
    complete = complete and is_whole()
    matches = scanner.matches()
    causes = [cause_of(match) for match in matches]
    if not has_failed and _is_no_text(controls, sizes) and _is_no_text(controls[:1], sizes[:1]):
        return LogReading(complete=complete, is_text=False)
    well = complete and not has_failed and _well_line(tail) > scanner.last_line()
    may_run = complete and not (has_failed or well or scanner.last_line() or scanner.likely.is_of_failure)
    likely = (_unfinished(tail) if may_run else None) or (None if well else _likelier(scanner, matches))
    if likely is not None:
        causes.insert(0, likely)
    if not causes and not well and not has_failed and complete:
        causes = _last_lines(tail)
    return LogReading(tuple(_until(no_error, cause) for cause in causes), well, complete)


def _until(no_error: Callable[[str], bool], cause: Cause) -> Cause:
    """Return the cause with the lines around it, up to what the build tool prints about a job that was killed or
    dropped."""
    if cause.line is None:
        return cause
    behind = cause.line - cause.context_line + 1
    end = next((at for at in range(behind, len(cause.context)) if no_error(cause.context[at])), None)
    if end is None:
        return cause
    if end > behind and _STATUS.match(cause.context[end - 1]):
        end -= 1
    return replace(cause, context=cause.context[:end])


def _likelier(scanner: Scanner, matches: list[Match]) -> Cause | None:
    """Return the likely place if it is a likelier cause than the matches: after what the build survived, and before
    what follows from it."""
    if matches and all(match.survivable for match in matches):
        ending = scanner.ending()
        stop = ending.unknown({match.line for match in matches})
        if stop is not None:
            return unknown(ending.near(stop), stop.text)
    place = scanner.likely.cause()
    if place is None or not all(match.survivable or match.rule.follows for match in matches):
        return None
    line = place.line or 0
    survived = [match for match in matches if not match.rule.follows]
    behind = max((match.line + (0 if match.survived else FOLLOWS) for match in survived), default=0)
    follows = [match for match in matches if match.rule.follows]
    before = min((match.line for match in follows if not match.rule.consequence), default=None)
    if line <= behind or (matches and scanner.likely.is_consequence) or (follows and not scanner.likely.is_error):
        return None
    return place if before is None or line < before else None


def _is_no_text(controls: list[int], sizes: list[int]) -> bool:
    return sum(controls) > sum(sizes) * _MOST_CONTROLS


def _unfinished(last: Block) -> Cause | None:
    """Return the cause that the build is still running where the log ends; None if it does not look so."""
    at = progress_at_end([unwrapped(line) for line in _end_of(last).splitlines()])
    data = last.data.rstrip()
    return None if at is None or not data else unfinished(*_last_line(last, data), at)


def _last_lines(last: Block) -> list[Cause]:
    """Return the log's end as a guess; nothing for a blank one."""
    data = last.data.rstrip()
    while (at := data.rfind(b"\n")) >= 0 and is_of_runner(unwrapped(data[at + 1 :][:NEAR]).strip()):
        data = data[:at].rstrip()
    return [last_lines(*_last_line(last, data))] if data else []


def _last_line(last: Block, data: bytes) -> tuple[Neighbours, str]:
    """Return the place of the last line of `data`, and its text; `data` is the log's last block without its end."""
    start = data.rfind(b"\n") + 1
    near = Neighbours(last._replace(data=data), start, last.line + data.count(b"\n"))
    return near, plain(shortened(data[start:]), TEXT_SHOWN)


def _end_of(last: Block) -> bytes:
    return (last.before + last.data[-NEAR:])[-NEAR:]


def _well_line(last: Block) -> int:
    """Return the number of the line near the log's end that says that all went well; 0 if none does."""
    back = ended_well([unwrapped(line) for line in _end_of(last).splitlines()])
    count = last.data.count(b"\n") + (not last.data.endswith(b"\n"))
    return last.line + count - back if back else 0
