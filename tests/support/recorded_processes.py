"""Processes as `record_processes.py` saw them, given back as a /proc that readers of processes can be pointed at."""

from __future__ import annotations

import gzip
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from stoker.sense.proc.processes import CLK_TCK, Process

RECORDED = Path(__file__).resolve().parents[1] / "data" / "fleet"
PAGE_SIZE = os.sysconf("SC_PAGE_SIZE")


class Recording:
    """One recording; `root` becomes what /proc was at each look."""

    def __init__(self, name: str, root: Path) -> None:
        data: dict[str, Any] = json.loads(gzip.decompress((RECORDED / f"{name}.json.gz").read_bytes()))
        self.root = root
        self._frames = data["frames"]
        self._words = data["words"]
        self._begun = min(row[6] for _, rows in self._frames for row in rows if row[5] == "ninja")

    def looks(self) -> Iterator[tuple[float, dict[int, Process]]]:
        """The seconds since the build began, and the processes."""
        shown: dict[int, tuple[Any, ...]] = {}
        for at, rows in self._frames:
            found = {row[0]: self._process(row) for row in rows}
            for pid in shown.keys() - found.keys():
                shutil.rmtree(self.root / str(pid))
            look = {pid: self._files(process, at) for pid, process in found.items()}
            for pid, files in look.items():
                if shown.get(pid) != files:
                    self._show(pid, *files)
            shown = look
            yield at, found

    @staticmethod
    def _process(row: list[Any]) -> Process:
        pid, parent, group, session, state, name, start, ticks, pages = row
        return Process(pid, parent, group, session, state, name, start, ticks, 0, pages * PAGE_SIZE, 1)

    def started(self, start_ticks: int, _: float) -> float:
        """When a process began, in the seconds of `looks`; in the place of `start_wall`."""
        return float(start_ticks - self._begun) / CLK_TCK

    def _files(self, p: Process, at: float) -> tuple[str, list[str], str]:
        """Its lines in stat, cmdline and cwd."""
        words = self._words.get(f"{p.pid} {p.start_ticks}", ())
        said = [(argv, folder) for since, argv, folder in words if since <= at]
        argv, folder = said[-1] if said and p.state != "Z" else ([], "/")
        ids = f"{p.pid} ({p.comm}) {p.state} {p.ppid} {p.pgrp} {p.session}"
        return f"{ids} 0 0 0 0 0 0 0 0 0 0 0 20 0 1 0 {p.start_ticks} 0 256 0\n", argv, folder

    def _show(self, pid: int, stat: str, argv: list[str], folder: str) -> None:
        place = self.root / str(pid)
        place.mkdir(parents=True, exist_ok=True)
        (place / "stat").write_text(stat)
        (place / "comm").write_text(stat.partition("(")[2].rpartition(")")[0] + "\n")
        (place / "cmdline").write_bytes(b"".join(os.fsencode(word) + b"\0" for word in argv))
        (place / "cwd").unlink(missing_ok=True)
        (place / "cwd").symlink_to(folder)
