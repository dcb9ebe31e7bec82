"""What ninja and make print of jobs that were killed or dropped: they take each for failed, and none is an error.

Ninja says `FAILED: [code=137] a.o`, before 1.12 without the code; make says `*** [Makefile:2: a.o] Killed`. Unaware of
how jobs are killed, and of why.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from stoker.model.killed import failed_steps, last_death_of
from stoker.model.state import MAX_FAILURES, BuildState
from stoker.model.text import clean

_SAID = re.compile(
    r"\s{0,200}+FAILED: (?:\[code=137\] )?([^\s\[]\S{0,4096}+)"
    r"|\S{0,200}make(?:\[\d{1,4}+\])?: \*\*\* \[(?:[^\]\s]{1,400}: )?([^\]\s]{1,4096})\] (?:Killed|Error 137)$"
)

IsKilledLine = Callable[[str | bytes], bool]
"""Whether a line says no more than that a job was killed or dropped."""


def names_killed(state: BuildState) -> IsKilledLine:
    """Return a test for such lines in this build's output, from where its last attempt begins."""
    output_of = killed_output(state)
    return lambda line: bool(output_of(line))


def killed_output(state: BuildState, *, earlier: bool = False) -> Callable[[str | bytes], str]:
    """Return a function from a line to the output that it names; "" unless it is such a line.

    `earlier`: of attempts before the last.
    A failure that the journal has is a real one, unless it was killed. Where more failed than it lists, nobody knows:
    all are real then.
    """
    dropped = not earlier and any(scheduler.dropped for scheduler in state.schedulers.values())
    if not (dropped or state.killed) or len(state.failures) >= MAX_FAILURES:
        return lambda _: ""
    failed = {clean(failure.output) for failure in failed_steps(state)}

    def output_of(line: str | bytes) -> str:
        said = _SAID.match(clean(line).rstrip())
        output = (said[1] or said[2]) if said is not None else ""
        ours = output and output not in failed and (dropped or last_death_of(state, output) is not None)
        return output if ours else ""

    return output_of
