"""Runs all benches, or some, with one command: one after the other, each in its own process. See bench/README.md.

    python -m bench all [--quick] [--out FOLDER] [--write]
    python -m bench scale link ...
    python -m bench list

`--out FOLDER` gets a JSON file per bench, the plots, and README.md: the page with the new tables. `--write` puts tables
and plots into bench/ itself. A failing bench does not stop the others; the exit status reports it.
"""

from __future__ import annotations

import argparse
import json
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from bench.catalogue import BENCHES, Bench
from bench.figures import README, fill, load

QUIET_PERCENT = 10.0
"""Share of all cores that others may use before a timed bench begins; more moves medians of ratios."""

QUIET_SECONDS = 3.0
PATIENCE_SECONDS = 60.0
"""How long to wait for quiet. A machine that has none gets a warning, and its figures."""

FACTOR = 6.0
"""A bench that takes so many times as long as it says hangs."""

CLEAN_UP_SECONDS = 60.0


def main() -> int:
    """Run what was asked for; 1 when any of it failed."""
    names = [bench.name for bench in BENCHES]
    parser = argparse.ArgumentParser(
        prog="python -m bench", description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("names", nargs="*", metavar="NAME", default=["list"], help=f"all, list, or {', '.join(names)}")
    parser.add_argument("--quick", action="store_true", help="about a minute each: fewer rounds, smaller sizes")
    parser.add_argument("--out", type=Path, default=Path("bench-out"), metavar="FOLDER", help="default: bench-out")
    parser.add_argument("--write", action="store_true", help="put tables and plots into bench/ as well")
    args = parser.parse_args()
    if unknown := set(args.names) - {*names, "all", "list"}:
        parser.error(f"no bench {', '.join(sorted(unknown))}; there are {', '.join(names)}")
    if "list" in args.names:
        for bench in BENCHES:
            print(f"{bench.name:16} {bench.minutes[0]:3g} min (--quick {bench.minutes[1]:g})  {bench.shows}")
        return 0
    chosen = [bench for bench in BENCHES if "all" in args.names or bench.name in args.names]
    return run_all(chosen, args.out, quick=args.quick, write=args.write)


def run_all(benches: Sequence[Bench], out: Path, *, quick: bool, write: bool) -> int:
    """One after the other, and the page of them all; 1 when any failed."""
    out.mkdir(parents=True, exist_ok=True)
    print(f"{len(benches)} benches, about {sum(b.minutes[quick] for b in benches):.0f} minutes in all; JSON in {out}/")
    ends: dict[str, str] = {}
    for number, bench in enumerate(benches, 1):
        print(f"\n=== {number} of {len(benches)}: {bench.name}, about {bench.minutes[quick]:g} min: {bench.shows}")
        ends[bench.name] = run(bench, out, quick=quick, write=write)
        print(f"=== {bench.name}: {ends[bench.name]}", flush=True)
    make_page(out)
    print("\n" + "\n".join(f"{name:16} {end}" for name, end in ends.items()))
    print(f"The page: {out / 'README.md'}")
    return int(any(end.startswith("FAILED") for end in ends.values()))


def run(bench: Bench, out: Path, *, quick: bool, write: bool) -> str:
    """One bench to its end, which is told in words."""
    if missing := bench.missing():
        return f"left out: {missing}"
    if bench.timed and (busy := wait_for_quiet()) > QUIET_PERCENT:
        print(f"    WARNING: others use {busy:.0f} % of this machine (load {load():.1f}): the figures will be noisy")
    file = out / f"{bench.name}.json"
    file.unlink(missing_ok=True)
    command = [sys.executable, "-m", f"bench.{bench.name}", "--json", str(file), *(bench.quick if quick else ())]
    begin = time.monotonic()
    limit = FACTOR * 60 * max(1.0, bench.minutes[quick])
    status = ended([*command, *(["--write"] if write else [])], limit)
    if status is None:
        return f"FAILED: it did not end within {limit / 60:.0f} min"
    took = f"{(time.monotonic() - begin) / 60:.1f} min"
    if not file.exists():
        return f"FAILED with status {status} after {took}"
    return f"FAILED its targets (status {status}), {took}" if status else f"done, {took}"


def ended(command: Sequence[str], limit: float) -> int | None:
    """The exit status; None after `limit` seconds, when it is asked to clean up after itself, and then killed."""
    with subprocess.Popen(command) as process:
        try:
            return process.wait(limit)
        except subprocess.TimeoutExpired:
            process.send_signal(signal.SIGINT)
        try:
            process.wait(CLEAN_UP_SECONDS)
        except subprocess.TimeoutExpired:
            process.kill()
        return None


def wait_for_quiet() -> float:
    """Percent of all cores that are busy; returns at once when that is little."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        idle, whole = _cpu_times()
        time.sleep(QUIET_SECONDS)
        idle_after, whole_after = _cpu_times()
        busy = 100 * (1 - (idle_after - idle) / max(1, whole_after - whole))
        if busy <= QUIET_PERCENT or time.monotonic() > deadline:
            return busy


def _cpu_times() -> tuple[int, int]:
    """Ticks idle or waiting for a disk, and all ticks, of all cores."""
    fields = [int(f) for f in Path("/proc/stat").read_text().splitlines()[0].split()[1:9]]
    return fields[3] + fields[4], sum(fields)


def make_page(out: Path) -> None:
    """The page with the tables of every JSON in the folder, and the plots that it shows."""
    page = out / "README.md"
    page.write_text(README.read_text())
    if out.resolve() != README.parent.resolve():
        shutil.copytree(README.parent / "plots", out / "plots", dirs_exist_ok=True, copy_function=_unless_there)
    for file in sorted(out.glob("*.json")):
        told = json.loads(file.read_text())
        if isinstance(told, dict) and "text" in told:
            fill(page, told["bench"], told["text"])


def _unless_there(source: str, target: str) -> str:
    """This run's own plots stay."""
    if not Path(target).exists():
        shutil.copy2(source, target)
    return target


if __name__ == "__main__":
    sys.exit(main())
