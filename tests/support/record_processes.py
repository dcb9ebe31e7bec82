"""Watches processes ten times a second, as the engine could, and writes down what it saw: data for quick tests.

    python tests/support/record_processes.py FILE.json.gz NAME,NAME,... COMMAND...

Records all that is below COMMAND, and below processes with one of these names wherever they run.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

EVERY = 0.1
"""Seconds between two looks; what shows the same processes in the same states as the look before is left out."""


def _stat(pid: str) -> tuple[str, str, list[str]] | None:
    try:
        text = Path("/proc", pid, "stat").read_text(errors="replace")
    except OSError:
        return None
    comm, _, rest = text.partition("(")[2].rpartition(")")
    fields = rest.split()
    return comm, fields[0], fields


def look(names: set[str], root: int, words: dict[str, list[Any]]) -> list[list[Any]]:
    """Who is there now: pid, parent, group, session, state, name, start and CPU in clock ticks, pages."""
    found = {pid: stat for pid in os.listdir("/proc") if pid.isdigit() and (stat := _stat(pid)) is not None}
    wanted = {pid for pid, stat in found.items() if stat[0] in names or int(pid) == root}
    while more := {pid for pid, stat in found.items() if stat[2][1] in wanted} - wanted:
        wanted |= more
    rows = []
    for pid in sorted(wanted, key=int):
        comm, state, f = found[pid]
        rows.append(
            [int(pid), int(f[1]), int(f[2]), int(f[3]), state, comm, int(f[19]), int(f[11]) + int(f[12]), int(f[21])]
        )
        try:
            argv = Path("/proc", pid, "cmdline").read_bytes().decode(errors="replace").split("\0")[:-1]
            place = [argv, os.readlink(f"/proc/{pid}/cwd")]
        except OSError:
            continue
        said = words.setdefault(f"{pid} {f[19]}", [])
        if not said or said[-1][1:] != place:
            said.append([time.time(), *place])
    return rows


def main() -> int:
    target, names, command = Path(sys.argv[1]), set(sys.argv[2].split(",")), sys.argv[3:]
    words: dict[str, list[Any]] = {}
    frames: list[list[Any]] = []
    before: list[Any] = []
    with subprocess.Popen(command) as process:
        began = time.time()
        while process.poll() is None:
            at = time.time()
            rows = look(names, process.pid, words)
            if (seen := [row[:6] for row in rows]) != before:
                frames.append([round(at - began, 2), rows])
                before = seen
            time.sleep(max(0.0, at + EVERY - time.time()))
    with gzip.open(target, "wt") as file:
        json.dump({"command": command, "began": began, "frames": frames, "words": words}, file)
    return process.returncode


if __name__ == "__main__":
    sys.exit(main())
