"""What watching costs: engine and keeper around a build with many jobs at once. See bench/README.md.

    python bench/footprint.py [--jobs 30] [--seconds 60]

Prints and returns JSON: percent of one core and resident MiB of engine and keeper, and journal bytes per second. The
build is real ninja; each job is a shell with three children of which one burns a little CPU and grows, four processes
a job as `sh -c g++` has them.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

TICKS = os.sysconf("SC_CLK_TCK")
WARM_UP_SECONDS = 5.0

JOB = """
import sys, time
end = time.time() + float(sys.argv[1])
held = bytearray()
while time.time() < end:
    held += bytes(1 << 16)
    sum(range(2000))
    time.sleep(0.25)
"""


def write_build(folder: Path, jobs: int, seconds: float) -> None:
    """One wave of `jobs` jobs that last `seconds` each."""
    (folder / "job.py").write_text(JOB)
    command = f"sleep {seconds} & sleep {seconds} & {sys.executable} -I -S {folder}/job.py {seconds}; touch $out; wait"
    lines = ["rule job", f"  command = {command}"]
    lines += [f"build src/module/kernels/output_{n}.cpp.o: job" for n in range(jobs)]
    (folder / "src/module/kernels").mkdir(parents=True)
    (folder / "build.ninja").write_text("\n".join(lines) + "\n")


def cpu_and_memory(pid: int) -> tuple[float, float]:
    """CPU seconds so far and resident MiB."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / TICKS, int(fields[21]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def measure(jobs: int, seconds: float) -> dict[str, Any]:
    """One build watched for `seconds`, after a warm-up."""
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as name:
        root = Path(name)
        env = {**os.environ, "XDG_STATE_HOME": f"{name}/state", "XDG_RUNTIME_DIR": name}
        write_build(root, jobs, seconds + WARM_UP_SECONDS + 5)
        stoker = [sys.executable, "-P", "-m", "stoker"]
        command = [*stoker, "run", "--detach", "--", "ninja", "-C", name, f"-j{jobs}"]
        build = subprocess.run(command, env=env, check=True, capture_output=True, text=True).stdout.strip()
        folder = root / "state/stoker/builds" / build
        time.sleep(WARM_UP_SECONDS)
        keeper = json.loads((folder / "keeper.json").read_bytes())["keeper_pid"]
        starts = [json.loads(line) for line in (folder / "journal.jsonl").open() if "engine_started" in line]
        pids = {"keeper": keeper, "engine": starts[-1]["pid"]}
        before = {who: cpu_and_memory(pid)[0] for who, pid in pids.items()}
        size = (folder / "journal.jsonl").stat().st_size
        begin = time.monotonic()
        time.sleep(seconds)
        elapsed = time.monotonic() - begin
        result: dict[str, Any] = {"jobs": jobs, "seconds": round(elapsed, 1)}
        for who, pid in pids.items():
            cpu, memory = cpu_and_memory(pid)
            result[who] = {"cpu_percent": round(100 * (cpu - before[who]) / elapsed, 2), "rss_mib": round(memory, 1)}
        result["journal_bytes_per_second"] = round(((folder / "journal.jsonl").stat().st_size - size) / elapsed)
        subprocess.run([*stoker, "stop", "--force", build], env=env, check=True, capture_output=True)
        return result


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=60.0)
    args = parser.parse_args()
    print(json.dumps(measure(args.jobs, args.seconds)))


if __name__ == "__main__":
    main()
