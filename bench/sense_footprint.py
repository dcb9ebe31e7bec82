"""CPU and memory of sensing a build of 30 jobs with 4 processes each, once a second: `python bench/sense_footprint.py`.

The promise to check: an engine takes at most 1 % of one core and 45 MiB. This is the sensing part of it.
"""

from __future__ import annotations

import os
import resource
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path

from stoker.sense.build_output import BuildOutput
from stoker.sense.jobs import JobTracker
from stoker.sense.machine import MachineReader
from stoker.sense.ninja_files import log_path
from stoker.sense.ninja_log import NinjaLog
from stoker.sense.processes import ProcessTable
from stoker.sense.schedulers import SchedulerFinder

JOBS = 30
TICKS = 20
MANIFEST = "rule r\n  command = sh -c 'sh -c \"sleep 600; :\"; :'; : $out\n"


def main() -> None:
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as name:
        folder = Path(name)
        (folder / "build.ninja").write_text(MANIFEST + "".join(f"build out{i}: r\n" for i in range(JOBS)))
        ninja = Path(sys.executable).parent / "ninja"
        with (folder / "log").open("wb") as log:
            build = subprocess.Popen([ninja, f"-j{JOBS}"], cwd=folder, stdout=log, stderr=log)
        try:
            _measure(folder)
        finally:
            for process in ProcessTable(build.pid).scan().values():
                os.kill(process.pid, signal.SIGKILL)
            build.kill()
            build.wait()


def _measure(folder: Path) -> None:
    table, finder, tracker = ProcessTable(os.getpid()), SchedulerFinder(), JobTracker()
    machine = MachineReader(os.getpid(), str(folder))
    log, output = NinjaLog(Path(log_path(str(folder)))), BuildOutput(folder / "log")
    spent: dict[str, float] = {}
    jobs = processes = 0
    for tick in range(TICKS + 2):
        begin = time.process_time()
        found = table.scan()
        scanned = time.process_time()
        report = tracker.update(found, finder.find(found), time.time())
        tracked = time.process_time()
        machine.read(time.time())
        sampled = time.process_time()
        log.read_new()
        output.read_new()
        if tick >= 2:  # the first two meet everything for the first time
            _add(spent, scan=scanned - begin, jobs=tracked - scanned, machine=sampled - tracked)
            _add(spent, files=time.process_time() - sampled)
        jobs, processes = len(report.running), len(found)
        time.sleep(1)
    machine.close()
    print(f"{jobs} jobs, {processes} processes, {len(os.listdir('/proc'))} entries in /proc")
    for name, seconds in spent.items():
        print(f"{name:8} {1000 * seconds / TICKS:6.2f} ms per tick")
    print(f"{'all':8} {100 * sum(spent.values()) / TICKS:6.2f} % of one core at one tick per second")
    print(f"{'memory':8} {resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024:6.1f} MiB at most")


def _add(spent: dict[str, float], **seconds: float) -> None:
    for name, value in seconds.items():
        spent[name] = spent.get(name, 0.0) + value


if __name__ == "__main__":
    main()
