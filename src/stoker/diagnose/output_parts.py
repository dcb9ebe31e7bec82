"""The output by attempts: which reports of failed jobs are none in each of them, because the job was killed, dropped or
interrupted. Every viewer goes by this.

Knows nothing of screens and files.
"""

from __future__ import annotations

import sys
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from stoker.diagnose.dropped_blocks import IsDropped, find_failed
from stoker.diagnose.killed_lines import OutputOf, killed_output, repeated_output
from stoker.model.killed import DroppedBy, failed_steps, has_dropped, killed_in_attempt, last_death_of
from stoker.model.state import BuildState

_HEAD = 8192
"""Bytes of a line that are looked at."""

_BUILD_TOOL_STOPS = b"ninja: build stopped: "


class OutputPart(NamedTuple):
    """The output from byte `start` up to byte `end`, which one attempt wrote, or several that count alike.

    `output_of` finds the jobs that were killed, dropped or interrupted; `is_dropped` says that a line reports one that
    was not killed, so that nothing is to be said of it alone.
    """

    start: int
    end: int
    by: DroppedBy
    output_of: OutputOf
    is_dropped: IsDropped

    def is_error(self, line: bytes) -> bool:
        """Whether a line that looks like an error is one, and not a build tool's word on what did not fail by
        itself."""
        if line.startswith(_BUILD_TOOL_STOPS):
            return self.by not in ("stop", "rerun")
        if not maybe_failed(line):
            return True
        return self.by != "rerun" and not self.output_of(line[:_HEAD])


def maybe_failed(line: bytes) -> bool:
    """Whether a line may be a build tool's word on a job that failed, or on its own end for that."""
    return b"FAILED: " in line or b"*** [" in line or line.startswith(_BUILD_TOOL_STOPS)


def folds_any(state: BuildState) -> bool:
    """Whether the output may contain blocks about jobs that were dropped or interrupted, in whatever attempt."""
    return has_dropped(state) or bool(state.repeated)


def parts_of(state: BuildState) -> tuple[OutputPart, ...]:
    """Return the parts of the whole output, in order; without gaps, and the last one has no end."""
    parts: list[OutputPart] = []
    begin, at = state.step.log_start if state.step is not None else 0, 0
    for again in state.repeated:
        parts += [] if again.start <= at else [_finished(at, again.start)]
        parts.append(_repeated(state, again.start, again.end))
        at = again.end
    parts += [] if begin <= at else [_finished(at, begin)]
    return (*parts, _last(state, begin))


def part_at(parts: Sequence[OutputPart], offset: int) -> OutputPart:
    """Return the part that holds the byte at `offset`."""
    return parts[max(0, bisect_right(parts, offset, key=lambda part: part.start) - 1)]


def _last(state: BuildState, start: int) -> OutputPart:
    output_of = killed_output(state)
    is_dropped = _unless_killed(state, output_of) if has_dropped(state) else _never
    return OutputPart(start, sys.maxsize, _by(state), output_of, is_dropped)


def _by(state: BuildState) -> DroppedBy:
    if state.phase in ("stopping", "stopped"):
        return "stop"
    return "kill" if killed_in_attempt(state) and not failed_steps(state) else "failure"


def _repeated(state: BuildState, start: int, end: int) -> OutputPart:
    """Return the part of an attempt after which the step ran again: nothing in it failed by itself."""
    return OutputPart(start, end, "rerun", repeated_output, _unless_killed(state, repeated_output))


def _finished(start: int, end: int) -> OutputPart:
    """Return the part of steps that are done: what their build tools report as failed is left as it is."""
    return OutputPart(start, end, "failure", lambda _: "", _never)


def _unless_killed(state: BuildState, output_of: OutputOf) -> IsDropped:
    def is_dropped(line: bytes) -> bool:
        if find_failed(line) < 0:
            return False
        output = output_of(line[:_HEAD])
        return bool(output) and last_death_of(state, output) is None

    return is_dropped


def _never(_: bytes) -> bool:
    return False
