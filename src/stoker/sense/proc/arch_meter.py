"""The CPU time of nvcc's passes by GPU architecture, from the scans of a job's processes.

cicc and ptxas have the architecture on their command line. A pass's usage is seen as long as it lives; what it used
after the last scan comes from its parent, whose account the kernel charges with ended children. Costs nothing if no
such pass runs. Unaware of schedulers and of what is done with the figures.
"""

from __future__ import annotations

import re
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from stoker.contract.process import Key
from stoker.sense.proc.processes import CLK_TCK, PROC, Process, read_cmdline

PASSES = frozenset(("cicc", "ptxas", "nvlink"))
"""The programs that work for one architecture each. What nvcc runs once for all (cudafe++, the host's compiler) is not
among them, nor is the preprocessing for each, which gcc does."""

MAX_ARCHS = 40
"""Architectures of one job; nvcc 13 knows some 30."""

_OPTIONS = ("-arch", "--arch", "--gpu-name", "-gpu-name")
_ARCH = re.compile(r"(?:compute|sm|lto)_(\d{2,3}[af]?)")


class _Pass(NamedTuple):
    """A pass as last seen: its architecture, its parent, and the clock ticks that it had used."""

    arch: str
    parent: int
    ticks: int


@dataclass(slots=True)
class _Account:
    """What is known of one job: which process works for which architecture, and the ticks of ended ones."""

    passes: dict[Key, _Pass] = field(default_factory=dict)
    parents: dict[int, int] = field(default_factory=dict)
    """Ticks of ended children, by parent, at the last look."""
    at: float = 0.0
    ended: dict[str, float] = field(default_factory=dict)


class ArchMeter:
    """Adds up the CPU time by architecture of each job, scan after scan."""

    def __init__(self, proc_root: Path = PROC) -> None:
        self._proc = proc_root
        self._accounts: dict[Key, _Account] = {}
        self._archs: dict[Key, str] = {}
        self.used = False
        """Whether any such pass was seen so far: without one there is nothing to measure or to forget."""

    def measure(self, job: Key, tree: Sequence[Process], now: float) -> Mapping[str, float]:
        """Return the CPU seconds by architecture (`80`, `90a`) of a job with these processes at Unix time `now`."""
        found = [p for p in tree if p.comm in PASSES]
        account = self._accounts.get(job)
        if account is None:
            if not found:
                return {}
            self.used = True
            account = self._accounts[job] = _Account(at=now)
        passes = {key: _Pass(arch, p.ppid, p.cpu_ticks) for p in found if (arch := self._arch(key := _key(p), p.pid))}
        self._settle(account, passes, tree, now)
        account.passes, account.at = passes, now
        account.parents = {p.pid: p.child_ticks for p in tree}
        ticks = dict(account.ended)
        for each in passes.values():
            ticks[each.arch] = ticks.get(each.arch, 0) + each.ticks
        return {arch: round(total / CLK_TCK, 2) for arch, total in sorted(ticks.items())[:MAX_ARCHS]}

    def forget_all_but(self, alive: Container[Key]) -> None:
        """Drop what belongs to jobs and processes that have gone."""
        self._accounts = {key: account for key, account in self._accounts.items() if key in alive}
        self._archs = {key: arch for key, arch in self._archs.items() if key in alive}

    def _settle(self, account: _Account, passes: Mapping[Key, _Pass], tree: Iterable[Process], now: float) -> None:
        """Passes that have ended: what they had used, plus what their parents have been charged for them since.

        A pass uses one core, so since the last scan no more than the time that has passed.
        """
        gone = [each for key, each in account.passes.items() if key not in passes]
        if not gone:
            return
        most = max(0.0, now - account.at) * CLK_TCK
        risen = {p.pid: p.child_ticks - account.parents[p.pid] for p in tree if p.pid in account.parents}
        for each in gone:
            alike = [other for other in gone if other.parent == each.parent]
            rest = (risen.get(each.parent, 0) - sum(other.ticks for other in alike)) / len(alike)
            used = each.ticks + min(most, max(0.0, rest))
            account.ended[each.arch] = account.ended.get(each.arch, 0) + used

    def _arch(self, key: Key, pid: int) -> str:
        """Return the architecture of a pass, read once; empty if its command line names none."""
        if key not in self._archs:
            self._archs[key] = arch_of(read_cmdline(pid, self._proc))
        return self._archs[key]


def arch_of(argv: Sequence[str]) -> str:
    """Return the architecture that a pass of nvcc works for (`80`, `90a`), by its options; empty if they name none."""
    values = [b for a, b in pairwise(argv) if a in _OPTIONS]
    values += [word.partition("=")[2] for word in argv if word.startswith(tuple(f"{name}=" for name in _OPTIONS))]
    return next((match[1] for value in values if (match := _ARCH.fullmatch(value))), "")


def _key(process: Process) -> Key:
    return process.pid, process.start_ticks
