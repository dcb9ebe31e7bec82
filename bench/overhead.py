"""Measures what governing costs a build with plenty of memory, compared with bare ninja. See bench/README.md.

    python -m bench.overhead [--seconds 0.1 ...] [--level 8 ...] [--pairs 3] [--work 20] [--vary 0.5] [--write] ...

Jobs burn an exact amount of CPU time. Bare ninja and ninja under `stoker run -j LEVEL` take turns; a ratio is taken
within each pair. The build's own time is from ninja's start to its end; the time before and after is separate.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import select
import shutil
import subprocess
import tempfile
import time
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any

from bench.figures import Spread, add_arguments, load, machine, publish, spread, table
from stoker.report.svg import Axis, Bar, bars
from support.burn import Burn, burns, write_burns
from support.program import PYPI_NINJA, Stoker

TICKS = os.sysconf("SC_CLK_TCK")
MOST_WORK = 4.0
"""How many times the work of a build its jobs may take, one for each place."""

LOOK_SECONDS = 2.0
"""Between two looks at what supervisor and engine have used: bare ninja has nobody looking beside it."""


@dataclass(frozen=True, slots=True)
class Run:
    """Seconds of the whole command and of the build alone; CPU seconds and resident MiB of engine and supervisor; how
    many of its jobs were frozen, and how many killed to free memory."""

    whole: float
    build: float
    engine_cpu: float = 0.0
    supervisor_cpu: float = 0.0
    engine_mib: float = 0.0
    supervisor_mib: float = 0.0
    frozen: int = 0
    shed: int = 0


@dataclass(slots=True)
class Use:
    """The last seen CPU seconds and the peak of one process."""

    cpu: float = 0.0
    mib: float = 0.0

    def look(self, pid: int) -> None:
        """Read it once more; keeps what it has when the process is gone."""
        try:
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            status = Path(f"/proc/{pid}/status").read_text()
        except OSError:
            return
        peak = next((line for line in status.splitlines() if line.startswith("VmHWM")), "")
        if peak:  # a zombie has none
            self.cpu = (int(fields[11]) + int(fields[12])) / TICKS
            self.mib = int(peak.split()[1]) / 1024


class Bench:
    """One project, and a ninja that notes when it starts."""

    def __init__(self, root: Path, jobs: Sequence[Burn], level: int) -> None:
        self.level = level
        self._root = root
        self._project = write_burns(root / "project", jobs)
        self._ninja = root / "ninja"
        self._begun = root / "begun"
        self._ninja.write_text(f'#!/bin/sh\ndate +%s.%N > {self._begun}\nexec {PYPI_NINJA} "$@"\n')
        self._ninja.chmod(0o755)

    def _clean(self) -> None:
        for file in (*self._project.glob("o*"), self._project / ".ninja_log"):
            file.unlink(missing_ok=True)

    def bare(self) -> Run:
        """Ninja by itself, in a session of its own as under stoker: the kernel may share out the CPUs by sessions."""
        self._clean()
        begin = time.time()
        command = [str(self._ninja), "-C", str(self._project), f"-j{self.level}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, start_new_session=True)
        end = time.time()
        return Run(end - begin, end - float(self._begun.read_text()))

    def governed(self) -> Run:
        """The same level under stoker, whose ninja is wide and whose jobs wait on deck."""
        self._clean()
        home = Path(tempfile.mkdtemp(dir=self._root))
        stoker = Stoker(home)
        words = ("run", "--plain", "-j", str(self.level), "--", str(self._ninja), "-C", str(self._project))
        whole, uses = watched(stoker, words)
        (exit_file,) = stoker.state.glob("stoker/builds/*/exit.json")
        build = json.loads(exit_file.read_bytes())["ended"] - float(self._begun.read_text())
        done = [str(event.get("what", "")).partition(" ")[0] for event in stoker.events(exit_file.parent.name)]
        shutil.rmtree(stoker.runtime, ignore_errors=True)
        shutil.rmtree(home, ignore_errors=True)
        engine, supervisor = uses["engine"], uses["supervisor"]
        stops = done.count("freeze"), done.count("shed")
        return Run(whole, build, engine.cpu, supervisor.cpu, engine.mib, supervisor.mib, *stops)


def watched(stoker: Stoker, words: Sequence[str], every: float = LOOK_SECONDS) -> tuple[float, dict[str, Use]]:
    """Run a command of stoker's that must end well: its seconds, and what its supervisor and engine used.

    They are looked at `every` so many seconds: what they do behind the last look is not counted.
    """
    begin = time.monotonic()
    process = subprocess.Popen(
        stoker.argv(*words), env=stoker.env, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    uses = {"supervisor": Use(), "engine": Use()}
    known: dict[str, int] = {}
    ended = os.pidfd_open(process.pid)
    while not select.select([ended], [], [], every)[0]:
        if len(known) < len(uses):
            known = dict(pids(stoker))
        for who, pid in known.items():
            uses[who].look(pid)
    seconds = time.monotonic() - begin
    os.close(ended)
    process.wait()
    assert process.returncode == 0, process.returncode
    return seconds, uses


def pids(stoker: Stoker) -> Iterable[tuple[str, int]]:
    """Supervisor and engine as far as they are there."""
    for file in stoker.state.glob("stoker/builds/*/supervisor.json"):
        yield "supervisor", int(json.loads(file.read_bytes())["supervisor_pid"])
    for file in stoker.state.glob("stoker/builds/*/journal.jsonl"):
        with file.open() as lines:
            head = [line for line, _ in zip(lines, range(3), strict=False)]
        yield from (("engine", json.loads(line)["pid"]) for line in head if '"engine_started"' in line)


def varied(count: int, seconds: float, vary: float) -> list[Burn]:
    """Jobs that take between `seconds` × (1 - vary) and × (1 + vary), in the same order each time."""
    chance = random.Random(1)
    return [
        replace(job, seconds=round(seconds * chance.uniform(1 - vary, 1 + vary), 3)) for job in burns(count, seconds)
    ]


def measure(seconds: float, level: int, pairs: int, work: float, vary: float) -> dict[str, Any]:
    """Pairs of one kind, the first of each pair in turn bare and governed."""
    jobs = max(level, round(work / seconds))
    root = Path(tempfile.mkdtemp(prefix="stoker-overhead-"))
    found: list[tuple[Run, Run]] = []
    try:
        bench = Bench(root, varied(jobs, seconds, vary), level)
        for number in range(pairs):
            if number % 2:
                governed, bare = bench.governed(), bench.bare()
            else:
                bare, governed = bench.bare(), bench.governed()
            found.append((bare, governed))
            ratio = governed.build / bare.build
            print(f"{jobs} jobs of {seconds} s, {level} at once: {bare.build:.2f} s, × {ratio:.3f}", flush=True)
    finally:
        shutil.rmtree(root)
    runs = [{"bare": asdict(bare), "governed": asdict(governed)} for bare, governed in found]
    return {"seconds": seconds, "level": level, "jobs": jobs, "pairs": runs}


def ratio_of(result: dict[str, Any]) -> Spread:
    """How many times as long the governed build took, pair by pair."""
    return spread([pair["governed"]["build"] / pair["bare"]["build"] for pair in result["pairs"]])


def plots_of(results: Sequence[dict[str, Any]]) -> dict[str, str]:
    """Governed over bare, by how long a job is and how many run at once."""
    groups = {f"jobs of {r['seconds']:g} s, {r['level']} at once": [Bar(*ratio_of(r))] for r in results}
    axis = Axis("time of the governed build over that of bare ninja", mark=1.0)
    return {"overhead": bars("What governing adds", ["governed"], groups, axis)}


def row(result: dict[str, Any]) -> list[str]:
    """One kind's line of the table."""
    pairs = result["pairs"]
    ratio = ratio_of(result)
    around = spread([pair["governed"]["whole"] - pair["governed"]["build"] for pair in pairs])
    share = spread([100 * pair["governed"]["engine_cpu"] / pair["governed"]["build"] for pair in pairs])
    supervisor = spread([100 * pair["governed"]["supervisor_cpu"] / pair["governed"]["build"] for pair in pairs])
    return [
        str(result["seconds"]),
        str(result["level"]),
        str(result["jobs"]),
        f"{spread([pair['bare']['build'] for pair in pairs]).median:.1f}",
        ratio.text(3),
        str(len(pairs)),
        f"{around.median:.2f}",
        f"{share.median:.1f}",
        f"{supervisor.median:.2f}",
        f"{max(pair['governed']['engine_mib'] for pair in pairs):.0f}",
        f"{max(pair['governed']['supervisor_mib'] for pair in pairs):.0f}",
    ]


HEAD = (
    "job, s",
    "at once",
    "jobs",
    "bare ninja, s",
    "governed, × bare",
    "pairs",
    "before and after, s",
    "engine, % of a core",
    "supervisor, %",
    "engine, MiB",
    "supervisor, MiB",
)


def main() -> None:
    """Measure and publish."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--seconds", type=float, action="append", help="CPU seconds of a job (0.05, 0.1, 1 and 10)")
    parser.add_argument("--level", type=int, action="append", help="jobs at once (2, 8, 32 and 128)")
    parser.add_argument("--pairs", type=int, default=3)
    parser.add_argument(
        "--work", type=float, default=60.0, help="CPU seconds of a build, at least a job for each place"
    )
    parser.add_argument(
        "--vary", type=float, default=0.0, help="jobs take up to this share more or less; equal ones march in step"
    )
    add_arguments(parser)
    args = parser.parse_args()
    before = load()
    kinds = [(s, n) for s in args.seconds or (0.05, 0.1, 1.0, 10.0) for n in args.level or (2, 8, 32, 128)]
    if not args.level:  # else 128 jobs of 10 s would take longer than all the rest
        kinds = [(s, n) for s, n in kinds if s * n <= MOST_WORK * args.work]
    results = [measure(seconds, level, args.pairs, args.work, args.vary) for seconds, level in kinds]
    head = f"{machine()}; load before: {before:.1f}."
    text = f"{head}\n\n{table(HEAD, [row(result) for result in results])}\n"
    ratios = {f"{r['seconds']} s, {r['level']} at once": ratio_of(r) for r in results}
    publish("overhead", results, text, out=args.json, write=args.write, summary=ratios, plots=plots_of(results))


if __name__ == "__main__":
    main()
