"""Finds why one step failed, in what that step wrote. Knows no builds: the caller knows where that is in a log."""

from __future__ import annotations

import io
from collections.abc import Collection, Sequence
from dataclasses import replace
from typing import BinaryIO

from stoker.diagnose.around import LineStart, line_at, place_of
from stoker.diagnose.governed import governed
from stoker.diagnose.log_reading import read_log
from stoker.diagnose.rule import Rule
from stoker.model.diagnosis import Cause, Diagnosis, bounded

MAX_BYTES = 4 * 2**20
"""Bytes of a step's output that are searched; a compiler's errors take a few KiB."""


def step_cause(file: BinaryIO, start: int, end: int, rules: Collection[Rule]) -> Cause | None:
    """Return the first cause in the bytes from `start` to `end`, with its place in the whole log; None if no rule knows
    it. Raises OSError."""
    begin, causes = causes_in_step(file, start, end, rules, MAX_BYTES)
    cause = next((cause for cause in governed(causes, rules) if not cause.is_guess), None)
    if cause is None:
        return None
    offset = place_of(file, begin, cause.line or begin.line).offset
    return bounded(Diagnosis((replace(cause, offset=offset),))).cause


def causes_in_step(
    file: BinaryIO, start: int, end: int, rules: Collection[Rule], most: int
) -> tuple[LineStart, Sequence[Cause]]:
    """Return where the bytes from `start` to `end` begin, and the causes in them, if only a likely place; `most`
    bytes are read. Raises OSError."""
    begin = line_at(file, start)
    file.seek(begin.offset)
    own = io.BytesIO(file.read(max(0, min(end - begin.offset, most))))
    return begin, read_log(own, rules, begin.line, has_failed=True).causes
