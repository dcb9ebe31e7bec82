"""Measures the engine's cost of scanning a build of 30 jobs with 4 processes each, once a second. See bench/README.md.

    python -m bench.sense_footprint [--rounds 3] [--quick] [--json FILE] [--write]

Target: an engine takes at most 1 % of one core and 45 MiB. This is the sensing part of it.
"""

from __future__ import annotations

import argparse
import os
import resource
import signal
import subprocess
import tempfile
import time
from pathlib import Path

from bench.figures import add_arguments, machine, publish, spread, table
from stoker.sense.machine.gpu import GpuReader
from stoker.sense.machine.machine import MachineReader
from stoker.sense.ninja.build_files import log_path
from stoker.sense.ninja.build_log import NinjaLog
from stoker.sense.ninja.build_output import BuildOutput
from stoker.sense.proc.jobs import JobTracker
from stoker.sense.proc.processes import ProcessTable
from stoker.sense.proc.schedulers import SchedulerFinder
from support.program import PYPI_NINJA

JOBS = 30
TICKS = 20
PARTS = {
    "scan": "the process table",
    "jobs": "which processes are whose jobs",
    "machine": "memory, CPU, pressure, disk, GPU",
    "files": "ninja's log and the output",
}
MANIFEST = "rule r\n  command = sh -c 'sh -c \"sleep 600; :\"; :'; : $out\n"


Found = dict[str, float]


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round of 8 looks")
    add_arguments(parser)
    args = parser.parse_args()
    found = [measure(8 if args.quick else TICKS) for _ in range(1 if args.quick else args.rounds)]
    each = {part: spread([f[part] for f in found]) for part in PARTS}
    rows = [[part, what, each[part].text()] for part, what in PARTS.items()]
    whole = spread([sum(f[part] for part in PARTS) for f in found])
    rows.append(["all", "", whole.text()])
    about = (
        f"{found[0]['running']:.0f} jobs, {found[0]['processes']:.0f} processes: {whole.median / 10:.2f} % of one core "
        f"at one look a second, {max(f['mib'] for f in found):.0f} MiB at most."
    )
    text = f"{machine()}.\n\n{about}\n\n{table(['part', 'reads', 'ms of CPU a look'], rows)}\n"
    publish("sense_footprint", found, text, out=args.json, write=args.write, summary={**each, "all": whole})


def measure(looks: int) -> Found:
    """One build, looked at so often."""
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as name:
        folder = Path(name)
        (folder / "build.ninja").write_text(MANIFEST + "".join(f"build out{i}: r\n" for i in range(JOBS)))
        with (folder / "log").open("wb") as log:
            build = subprocess.Popen([PYPI_NINJA, f"-j{JOBS}"], cwd=folder, stdout=log, stderr=log)
        try:
            return _measure(folder, looks)
        finally:
            for process in ProcessTable(build.pid).scan().values():
                os.kill(process.pid, signal.SIGKILL)
            build.kill()
            build.wait()


def _measure(folder: Path, looks: int) -> Found:
    table, finder, tracker = ProcessTable(os.getpid()), SchedulerFinder(), JobTracker()
    reader = MachineReader(os.getpid(), str(folder), gpu=GpuReader())
    log, output = NinjaLog(Path(log_path(str(folder)))), BuildOutput(folder / "log")
    spent: dict[str, float] = {}
    jobs = processes = 0
    for tick in range(looks + 2):
        begin = time.process_time()
        found = table.scan()
        scanned = time.process_time()
        report = tracker.update(found, finder.find(found), time.time())
        tracked = time.process_time()
        reader.read(time.time())
        sampled = time.process_time()
        log.read_new()
        output.read_new()
        if tick >= 2:  # the first two meet everything for the first time
            _add(spent, scan=scanned - begin, jobs=tracked - scanned, machine=sampled - tracked)
            _add(spent, files=time.process_time() - sampled)
        jobs, processes = len(report.running), len(found)
        time.sleep(1)
    reader.close()
    return {
        **{part: 1000 * seconds / looks for part, seconds in spent.items()},
        "running": jobs,
        "processes": processes,
        "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    }


def _add(spent: dict[str, float], **seconds: float) -> None:
    for name, value in seconds.items():
        spent[name] = spent.get(name, 0.0) + value


if __name__ == "__main__":
    main()
