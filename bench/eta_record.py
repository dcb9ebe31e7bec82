"""Records a ninja build for the bench of the time left: its graph and the CPU seconds per job. See bench/README.md.

    python -m bench.eta_record BUILD_FOLDER NAME

BUILD_FOLDER must be configured, with nothing built. The commands run here one after the other, as `ninja -t commands`
lists them, because ninja does not report the CPU seconds of single commands.
Writes bench/builds/NAME.json.gz. Knows nothing of forecasts.
"""

from __future__ import annotations

import argparse
import asyncio
import gzip
import json
import os
import shlex
import subprocess
import time
from pathlib import Path

from bench.eta_builds import RECORDED, planned
from support.program import PYPI_NINJA as NINJA


def record(build: Path) -> dict[str, object]:
    """The plan, and then each job's seconds; a job of the plan without a command of its own takes none."""
    graph = asyncio.run(planned(build, time.time())).graph
    if graph is None:
        raise RuntimeError("ninja tells no graph")
    outputs = _outputs(build)
    seconds: dict[str, float] = {}
    listed = subprocess.run([NINJA, "-t", "commands"], cwd=build, check=True, capture_output=True, text=True)
    for command in listed.stdout.splitlines():
        for output in (own := outputs.get(command, ())):
            (build / output).parent.mkdir(parents=True, exist_ok=True)
        taken = _run(command, build)
        if own:
            seconds[own[0]] = taken
    edges = [
        (output, graph.tools[e], graph.groups[e], graph.sizes[e], taken, taken)
        for e in range(len(graph))
        for output in (graph.output(e),)
        for taken in (round(seconds.get(output, 0.0), 3),)
    ]
    return {"deps": [list(before) for before in graph.deps], "edges": edges}


def _outputs(build: Path) -> dict[str, list[str]]:
    """What each command makes."""
    database = subprocess.run([NINJA, "-t", "compdb"], cwd=build, check=True, capture_output=True, text=True)
    outputs: dict[str, list[str]] = {}
    for entry in json.loads(database.stdout):
        outputs.setdefault(entry["command"], []).append(entry["output"])
    return outputs


def _run(command: str, folder: Path) -> float:
    """CPU seconds of a command with all that it starts; raises where it fails."""
    script = f"cd {shlex.quote(str(folder))} && {{ {command}\n}} >/dev/null 2>&1"
    pid = os.posix_spawn("/bin/sh", ["sh", "-c", script], os.environ)
    _, status, usage = os.wait4(pid, 0)
    if status:
        raise RuntimeError(f"failed: {command}")
    return usage.ru_utime + usage.ru_stime


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("build", type=Path)
    parser.add_argument("name")
    args = parser.parse_args()
    text = json.dumps(record(args.build.resolve()), separators=(",", ":"))
    (RECORDED / f"{args.name}.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


if __name__ == "__main__":
    main()
