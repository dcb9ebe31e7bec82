"""Recognises what ninja and make print about killed or dropped jobs: they report these as failed, but none is an error.

Ninja prints `FAILED: [code=137] a.o`, before 1.12 without the code; make prints `*** [Makefile:2: a.o] Killed`. Knows
nothing of how and why jobs are killed.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from stoker.model.killed import failed_steps, has_dropped, last_death_of
from stoker.model.state import MAX_FAILURES, BuildState
from stoker.model.text import clean

_SAID = re.compile(
    r"\s{0,200}+FAILED: (?:\[code=137\] )?([^\s\[]\S{0,4096}+)"
    r"|\S{0,200}make(?:\[\d{1,4}+\])?: \*\*\* \[(?:[^\]\s]{1,400}: )?([^\]\s]{1,4096})\] (?:Killed|Error 137)$"
)

_ANY_CODE = re.compile(r"\s{0,200}+FAILED: (?:\[code=\d{1,3}\] )?([^\s\[]\S{0,4096}+)")

IsKilledLine = Callable[[str | bytes], bool]
"""Whether a line only says that a job was killed or dropped."""

OutputOf = Callable[[str | bytes], str]
"""Returns the output of the killed or dropped job that a line calls failed; empty for any other line."""


def names_killed(state: BuildState) -> IsKilledLine:
    """Return a test for such lines in this build's output, from the beginning of its last attempt on."""
    output_of = killed_output(state)
    return lambda line: bool(output_of(line))


def killed_output(state: BuildState) -> OutputOf:
    """Return the function for lines of the last attempt.

    A failure in the journal is a real one, unless the job was killed. If there were more failures than the journal
    lists, it is unknown which are real, so all count as real.
    """
    dropped = has_dropped(state)
    if not (dropped or state.killed) or len(state.failures) >= MAX_FAILURES:
        return lambda _: ""
    failed = {clean(failure.output) for failure in failed_steps(state)}

    def output_of(line: str | bytes) -> str:
        output = _output_in(_SAID.match(clean(line).rstrip()))
        ours = output and output not in failed and (dropped or last_death_of(state, output) is not None)
        return output if ours else ""

    return output_of


def repeated_output(line: str | bytes) -> str:
    """Return the output of the job that a line calls failed in an attempt in which nothing failed by itself; empty for
    any other line."""
    text = clean(line).rstrip()
    return _output_in(_ANY_CODE.match(text) or _SAID.match(text))


def _output_in(said: re.Match[str] | None) -> str:
    return next(filter(None, said.groups()), "") if said is not None else ""
