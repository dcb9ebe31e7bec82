"""The jobs that were dropped from the deck after a real error: the scheduler takes each of them for failed.

Unaware of who drops them, and of processes.
"""

from __future__ import annotations

from collections.abc import Iterable

from stoker.engine.aftermath.command_forms import Words, forms, said
from stoker.model.events import FailureFound

KILLED = 137
"""What a scheduler says of a dropped job, 128 + SIGKILL; ninja before 1.12 says nothing."""


class Dropped:
    """Known by output, and by command line: what a job makes may not have been learnt when it is dropped."""

    def __init__(self) -> None:
        self._outputs: set[str] = set()
        self._commands: set[Words] = set()

    def add(self, outputs: Iterable[str], commands: Iterable[Words]) -> None:
        """Jobs that were dropped: what they make, and their arguments as the kernel tells them."""
        self._outputs.update(outputs)
        self._commands.update(map(said, commands))

    def explains(self, failure: FailureFound) -> bool:
        """Whether this failure is only that of a dropped job."""
        if failure.output in self._outputs:
            return True
        if failure.exit_code not in (None, KILLED):
            return False
        return not self._commands.isdisjoint(forms(failure.command))
