"""What ninja prints of jobs that stoker dropped from its deck: it takes each for failed, and none is an error.

It says `FAILED: [code=137] a.o` of one, before 1.12 without the code. Unaware of how jobs are dropped, and of why.
"""

from __future__ import annotations

import re
from collections.abc import Callable

from stoker.model.state import MAX_FAILURES, BuildState
from stoker.model.text import clean

_SAID = re.compile(r"\s{0,200}+FAILED: (?:\[code=137\] )?([^\s\[]\S{0,4096}+)")

Told = Callable[[str | bytes], bool]
"""Whether a line says no more than that a dropped job has failed."""


def told_of_dropped(state: BuildState) -> Told:
    """What such a line is in this build's output, from where its last attempt begins.

    A failure that the journal has is a real one. Where more failed than it lists, nobody knows: all are real then.
    """
    dropped = any(scheduler.dropped for scheduler in state.schedulers.values())
    if not dropped or len(state.failures) >= MAX_FAILURES:
        return lambda _: False
    failed = {clean(failure.output) for failure in state.failures}

    def told(line: str | bytes) -> bool:
        said = _SAID.match(clean(line).rstrip())
        return said is not None and said[1] not in failed

    return told
