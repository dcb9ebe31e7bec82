"""Offers tools inside jobs the slots that no candidate needs, and counts how many of those are in use beyond the deck.

A slot may be one of the deck's jobs already: a ninja or make without its own -j, called by a script, takes one for each
of its jobs except the first. And a killed tool does not return its slots. Unaware of why a slot is spare.
"""

from __future__ import annotations

import os
import time
from collections import Counter
from collections.abc import Callable, Container, Mapping
from pathlib import Path

from stoker.act.jobserver_fifo import JobserverFifo
from stoker.contract.process import Key
from stoker.sense.proc.processes import PROC, parse_stat
from stoker.sense.proc.procfs import read_link, read_once

CHECK_SECONDS = 5.0
"""How often to look for processes that may hold slots, while some are used: it reads every process's descriptors."""


class Jobserver:
    """The slots of one build's pool. `living` counts the deck's live jobs by scheduler.

    Raises OSError if the pool cannot be opened.
    """

    def __init__(self, path: Path, living: Callable[[], Mapping[Key, int]], proc_root: Path = PROC) -> None:
        self._pool = JobserverFifo(path)
        self._living = living
        self._proc = proc_root
        self._path = os.path.realpath(path)
        self._clients: dict[Key, bool] = {}
        self._checked = time.monotonic()

    @property
    def used(self) -> int:
        """Slots that tools use in addition to the deck's jobs."""
        taken = self._pool.taken
        return max(0, taken - self._on_deck(self._living())) if taken else 0

    def offer(self, spare: int) -> None:
        """Offer `spare` slots. Slots that no process can hold any more come back."""
        self._pool.offer(spare)
        used = self.used
        if used and time.monotonic() - self._checked >= CHECK_SECONDS:
            self._checked = time.monotonic()
            schedulers = {key[0] for key, client in self._clients.items() if client}
            self._pool.lose(max(0, used - self._most_held({*schedulers, os.getpid()})))

    def _on_deck(self, living: Mapping[Key, int]) -> int:
        """Each scheduler has its first job for free, like every tool."""
        known = self._clients
        self._clients = {key: known[key] if key in known else self._holds(key[0]) for key in living}
        return sum(jobs - 1 for key, jobs in living.items() if jobs and self._clients[key])

    def _most_held(self, others: Container[int]) -> int:
        """Return how many slots all processes that have the pool open, except those `others`, can hold at most.

        A slot stands for a job, and a job is a child or a thread; each tool has its first one for free.
        """
        names = (name for name in os.listdir(self._proc) if name.isdigit())
        stats = (parse_stat(read_once(f"{self._proc}/{name}/stat") or b"") for name in names)
        processes = [process for process in stats if process is not None]
        children = Counter(process.ppid for process in processes)
        tools = (process for process in processes if process.pid not in others and self._holds(process.pid))
        return sum(children[tool.pid] + tool.nthreads - 1 for tool in tools)

    def _holds(self, pid: int) -> bool:
        """Say whether a process has the pool open; not if we may not look into it."""
        folder = f"{self._proc}/{pid}/fd"
        try:
            names = os.listdir(folder)
        except OSError:
            return False
        return any(read_link(f"{folder}/{name}") == self._path for name in names)
