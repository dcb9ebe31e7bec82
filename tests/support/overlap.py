"""How many of certain processes are at work at once. Knows nothing of builds."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from support.procs import Process, Watch

AT_WORK_SECONDS = 0.3
"""CPU seconds since its birth or its last stop from which on a process counts as being at work: one that is born to
be held, or that ends as another starts, is not. On a busy machine time says nothing about that."""


class Overlap:
    """Watches while its `watch` block runs; `most` is the largest number seen at work at once."""

    def __init__(self, look: Callable[[], Iterable[Process]]) -> None:
        self._look = look
        self._before: dict[int, float] = {}
        self.most = 0
        self.watch = Watch(self._note)

    def _note(self) -> None:
        at_work = 0
        for p in self._look():
            if p.state in "TZX":
                self._before[p.pid] = p.cpu
            elif p.cpu - self._before.setdefault(p.pid, 0.0) >= AT_WORK_SECONDS:
                at_work += 1
        self.most = max(self.most, at_work)
