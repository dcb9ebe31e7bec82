"""How many of certain processes are at work at once. Knows nothing of builds."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable

from support.procs import Process, Watch

AT_WORK_SECONDS = 0.5
"""Continuously not stopped for so long counts as being at work: a job that is born to be held, or that ends as
another starts, is not."""


class Overlap:
    """Watches while its `watch` block runs; `most` is the largest number seen at work at once."""

    def __init__(self, look: Callable[[], Iterable[Process]]) -> None:
        self._look = look
        self._since: dict[int, float] = {}
        self.most = 0
        self.watch = Watch(self._note)

    def _note(self) -> None:
        now = time.monotonic()
        going = [p.pid for p in self._look() if p.state not in "TZX"]
        self._since = {pid: self._since.get(pid, now) for pid in going}
        self.most = max(self.most, sum(now - since >= AT_WORK_SECONDS for since in self._since.values()))
