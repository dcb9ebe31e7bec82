"""Measures what watching costs: engine and supervisor around a build with many jobs at once. See bench/README.md.

    python -m bench.footprint [--jobs 30] [--seconds 60] [--rounds 3] [--quick] [--json FILE] [--write]

Percent of one core and resident MiB of engine and supervisor, and the journal's growth; for comparison the same of the
ninja that they watch. Each job is a shell with three children, one of which burns a little CPU time and grows: four
processes per job, like `sh -c g++`.
"""

from __future__ import annotations

import argparse
import os
import shutil
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import add_arguments, machine, publish, spread, table
from support.procs import below
from support.program import PYPI_NINJA, Stoker

TICKS = os.sysconf("SC_CLK_TCK")
WARM_UP_SECONDS = 5.0
TARGETS = {"engine": (1.0, 45.0), "supervisor": (0.1, 15.0)}
"""Percent of one core and MiB, with 30 jobs."""

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
    root = Path(tempfile.mkdtemp(prefix="stoker-footprint-"))
    stoker = Stoker(root)
    try:
        write_build(root, jobs, seconds + WARM_UP_SECONDS + 5)
        started = stoker.run("run", "--detach", "-j", str(jobs), "--", PYPI_NINJA, "-C", str(root))
        assert started.returncode == 0, started.stderr
        build = started.stdout.decode().strip()
        time.sleep(WARM_UP_SECONDS)
        supervisor = stoker.supervisor(build)["supervisor_pid"]
        ninja = next(p.pid for p in below([supervisor]) if p.name == "ninja")
        result = _watched(
            {"supervisor": supervisor, "engine": stoker.engine_pid(build), "ninja": ninja}, stoker, build, seconds
        )
        return {"jobs": jobs, "processes": len(below([ninja])), **result}
    finally:
        stoker.end_all()
        shutil.rmtree(stoker.runtime, ignore_errors=True)
        shutil.rmtree(root, ignore_errors=True)


def _watched(pids: Mapping[str, int], stoker: Stoker, build: str, seconds: float) -> dict[str, Any]:
    journal = stoker.folder(build) / "journal.jsonl"
    before = {who: cpu_and_memory(pid)[0] for who, pid in pids.items()}
    size, begin = journal.stat().st_size, time.monotonic()
    time.sleep(seconds)
    elapsed = time.monotonic() - begin
    result: dict[str, Any] = {"seconds": round(elapsed, 1)}
    for who, pid in pids.items():
        cpu, memory = cpu_and_memory(pid)
        result[who] = {"cpu_percent": round(100 * (cpu - before[who]) / elapsed, 2), "rss_mib": round(memory, 1)}
    result["journal_bytes_per_second"] = round((journal.stat().st_size - size) / elapsed)
    return result


def text_of(rounds: Sequence[Mapping[str, Any]]) -> str:
    """The table, and how fast the journal grows."""
    rows = []
    for who in ("engine", "supervisor", "ninja"):
        cpu, memory = (spread([r[who][key] for r in rounds]) for key in ("cpu_percent", "rss_mib"))
        target = f"{TARGETS[who][0]:g} %, {TARGETS[who][1]:.0f} MiB" if who in TARGETS else "(watched)"
        rows.append([who, cpu.text(), f"{memory.high:.1f}", target])
    grows = spread([r["journal_bytes_per_second"] for r in rounds]).median
    head = ["", "CPU, % of one core", "resident MiB, at most", "target"]
    first = rounds[0]
    about = (
        f"{first['jobs']} running jobs, {first['processes']} processes, watched for {first['seconds']:.0f} s at a time."
    )
    return f"{about}\n\n{table(head, rows)}\n\nThe journal grows by {grows:,.0f} bytes a second."


def missed(rounds: Sequence[Mapping[str, Any]]) -> bool:
    """Whether a target is not met."""
    return any(
        spread([r[who]["cpu_percent"] for r in rounds]).median > cpu or max(r[who]["rss_mib"] for r in rounds) > memory
        for who, (cpu, memory) in TARGETS.items()
    )


def main() -> int:
    """Measure and publish; 1 when a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=30)
    parser.add_argument("--seconds", type=float, default=60.0)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--quick", action="store_true", help="one round of 20 s")
    add_arguments(parser)
    args = parser.parse_args()
    count, seconds = (1, 20.0) if args.quick else (args.rounds, args.seconds)
    rounds = [measure(args.jobs, seconds) for _ in range(count)]
    summary = {
        who: {key: spread([r[who][key] for r in rounds]).median for key in ("cpu_percent", "rss_mib")}
        for who in ("engine", "supervisor", "ninja")
    }
    text = f"{machine()}.\n\n{text_of(rounds)}\n"
    publish("footprint", rounds, text, out=args.json, write=args.write, summary=summary)
    return int(args.jobs <= 30 and missed(rounds))


if __name__ == "__main__":
    sys.exit(main())
