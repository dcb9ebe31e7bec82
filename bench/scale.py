"""Tests whether a job costs the same among a hundred thousand as among a thousand. See bench/README.md.

    python -m bench.scale [--rounds 3] [--part engine ...] [--quick] [--json FILE] [--write]

Each part works in its own process, so that its memory can be measured; sizes take turns within a round, and a ratio is
taken within it. `engine` is a real ninja under a real `stoker run`, whose jobs do next to nothing; the other parts get
the input of a build of that size. Exits with 1 if a part's cost per job grows.
"""

from __future__ import annotations

import argparse
import json
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from bench.figures import Spread, add_arguments, machine, publish, spread, table
from bench.overhead import watched
from stoker.report.svg import Axis, lines
from support.program import PYPI_NINJA, Stoker

SIZES = (1000, 10_000, 100_000)
ENGINE_SIZES = (1000, 10_000)
QUICK_SIZES, QUICK_ENGINE_SIZES = (1000, 5000), (1000, 3000)
WIDTH = 8

LOOK_SECONDS = 0.05
"""Between two looks at the engine: a thousand empty jobs take two seconds, and it must be seen at their end."""

FLAT = 1.5
"""A job among the most may cost this many times what one among the fewest does: clocks and caches differ by less."""

MORE_MIB = 45.0
"""Memory may grow by this much up to 100,000 jobs: names of outputs alone are some 6 MiB."""

HOLDS_ALL = {"simulate"}
"""Parts that hold every job in memory, since that is what they were given: 1.3 KiB each."""

PARTS = {
    "engine": "engine, around a real ninja",
    "journal": "journal: number, reduce, write",
    "reduce": "reduce a whole journal",
    "replay": "replay, as fast as it goes",
    "forecast": "time left, from the graph",
    "simulate": "simulate, 16 cores",
}
MADE_BEFORE = {"reduce": ("journal",), "replay": ("journal",)}
"""Parts whose input another one writes."""

Found = dict[str, Any]


def engine(jobs: int, folder: Path) -> Found:
    """A build of so many empty jobs: bare, then governed. `seconds` is the engine's own CPU time."""
    project = folder / f"ninja{jobs}"
    project.mkdir(exist_ok=True)
    rule = "rule r\n  command = : >$out\n"
    edges = "".join(f"build lib{n // 60}/unit_{n}.cpp.o: r\n" for n in range(jobs))
    (project / "build.ninja").write_text(rule + edges)
    command = [PYPI_NINJA, "-C", str(project), f"-j{WIDTH}", "--quiet"]
    begin = time.monotonic()
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
    bare = time.monotonic() - begin
    (project / ".ninja_log").unlink()
    home = Path(tempfile.mkdtemp(dir=folder))
    stoker = Stoker(home)
    words = ("run", "--plain", "-j", str(WIDTH), "--", PYPI_NINJA, "-C", str(project), "--quiet")
    governed, uses = watched(stoker, words, LOOK_SECONDS)
    (journal,) = stoker.state.glob("stoker/builds/*/journal.jsonl")
    told = sum(b'"job_finished"' in line for line in journal.open("rb"))
    result = {
        "part": "engine",
        "jobs": jobs,
        "seconds": uses["engine"].cpu,
        "mib": uses["engine"].mib,
        "mib_before": 0.0,
        "bare_seconds": bare,
        "governed_seconds": governed,
        "bytes": journal.stat().st_size,
        "untold": jobs - told,
    }
    shutil.rmtree(stoker.runtime, ignore_errors=True)
    shutil.rmtree(home, ignore_errors=True)
    return result


def part(name: str, jobs: int, folder: Path) -> Found:
    """One part at one size."""
    if name == "engine":
        return engine(jobs, folder)
    command = [sys.executable, "-m", "bench.scale_parts", name, str(jobs), str(folder)]
    done = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True)
    found: Found = json.loads(done.stdout)
    return found


def measure(names: Iterable[str], rounds: int, *, quick: bool) -> list[Found]:
    """All parts at all sizes, round by round."""
    found = []
    for number in range(rounds):
        for size in QUICK_SIZES if quick else SIZES:
            folder = Path(tempfile.mkdtemp(prefix="stoker-scale-"))
            try:
                for name in _needed(names):
                    small = QUICK_ENGINE_SIZES if quick else ENGINE_SIZES
                    here = dict(zip(QUICK_SIZES if quick else SIZES, small, strict=False)) if name == "engine" else {}
                    jobs = here.get(size, 0 if name == "engine" else size)
                    if jobs:
                        one = {"round": number, **part(name, jobs, folder)}
                        found.append(one)
                        each = 1000 * one["seconds"] / jobs
                        print(f"  {name}, {jobs} jobs: {each:.3f} ms each, {one['mib']:.0f} MiB", flush=True)
            finally:
                shutil.rmtree(folder, ignore_errors=True)
    return found


def _needed(names: Iterable[str]) -> list[str]:
    """These parts, those that they need first, and `reopen` after what it reads."""
    wanted: list[str] = []
    for name in names:
        wanted += [*MADE_BEFORE.get(name, ()), name]
    wanted = list(dict.fromkeys(wanted))
    if "journal" in wanted:
        wanted.insert(wanted.index("journal") + 1, "reopen")
    return wanted


def growth(found: Sequence[Found], value: Callable[[Found], float]) -> Spread:
    """The largest size's value over the smallest's, round by round."""
    few, many = min(f["jobs"] for f in found), max(f["jobs"] for f in found)
    firsts = {f["round"]: value(f) for f in found if f["jobs"] == few}
    lasts = {f["round"]: value(f) for f in found if f["jobs"] == many}
    return spread([lasts[r] / max(1e-9, firsts[r]) for r in firsts])


def each(found: Found) -> float:
    """Milliseconds a job."""
    return 1000 * float(found["seconds"]) / int(found["jobs"])


def _median(found: Sequence[Found], jobs: int, key: str) -> float:
    return spread([f[key] for f in found if f["jobs"] == jobs and key in f]).median


def text_of(found: Sequence[Found]) -> str:
    """Milliseconds and MiB at each size, and what else there is to tell."""
    rows = []
    for name, what in PARTS.items():
        own = [f for f in found if f["part"] == name]
        if not own:
            continue
        sizes = sorted({f["jobs"] for f in own})
        grows = growth(own, each)
        cells = [f"{spread([each(f) for f in own if f['jobs'] == n]).median:.3f}" for n in sizes]
        memory = [f"{_median(own, n, 'mib'):.0f}" for n in sizes]
        at = " / ".join(f"{n:,}" for n in sizes)
        rows.append([what, at, " / ".join(cells), grows.text(), " / ".join(memory)])
    head = ["part", "jobs", "ms a job", "most jobs over fewest", "MiB at most"]
    return f"{table(head, rows)}\n\n{' '.join(_more(found))}"


def _more(found: Sequence[Found]) -> Iterable[str]:
    """What is told beside the table, for the largest size of each part."""
    largest = {name: max((f["jobs"] for f in found if f["part"] == name), default=0) for name in {*PARTS, "reopen"}}

    def of(name: str, key: str) -> float:
        return _median([f for f in found if f["part"] == name], largest[name], key)

    if jobs := largest["engine"]:
        ratio = [
            f["governed_seconds"] / f["bare_seconds"] for f in found if f["part"] == "engine" and f["jobs"] == jobs
        ]
        untold = sum(f["untold"] for f in found if f["part"] == "engine")
        yield (
            f"Engine: {jobs:,} jobs that do nothing took {spread(ratio).text()} times as long governed as bare "
            f"({1000 * of('engine', 'bare_seconds') / jobs:.1f} ms each), {of('engine', 'bytes') / jobs:,.0f} bytes of "
            f"journal a job; {untold} of their ends went untold."
        )
    if jobs := largest["journal"]:
        yield (
            f"The journal of {jobs:,} jobs has {of('journal', 'bytes') / 2**20:.0f} MiB; a new engine or `status` "
            f"reads it in {1000 * of('reopen', 'seconds'):.0f} ms, from its last checkpoint on."
        )
    if largest["replay"]:
        yield f"A jump in the replay takes at most {of('replay', 'seek_ms'):.0f} ms."
    if jobs := largest["forecast"]:
        yield (
            f"The planner takes {of('forecast', 'plan_seconds'):.1f} s and {of('forecast', 'planner_mib'):.0f} MiB for "
            f"{jobs:,} jobs, beside the build; a look at the time left {of('forecast', 'look_ms'):.1f} ms, every 5 s."
        )
    if jobs := largest["simulate"]:
        yield (
            f"A trace of {jobs:,} jobs is written in {of('simulate', 'write_seconds'):.1f} s, read in "
            f"{of('simulate', 'read_seconds'):.1f} s, played under `-j16` in {of('simulate', 'fixed_seconds'):.1f} s."
        )


def summary_of(found: Sequence[Found]) -> Mapping[str, Any]:
    """Growth of time and memory of each part."""
    told = {}
    for name in PARTS:
        own = [f for f in found if f["part"] == name]
        if own:
            few, many = min(f["jobs"] for f in own), max(f["jobs"] for f in own)
            more = _median(own, many, "mib") - _median(own, few, "mib")
            told[name] = {"time_growth": growth(own, each), "mib_growth": more, "jobs": [few, many]}
    return told


def grown(summary: Mapping[str, Any]) -> list[str]:
    """Parts that are not flat."""
    return [
        name
        for name, told in summary.items()
        if told["time_growth"][0] > FLAT or (told["mib_growth"] > MORE_MIB and name not in HOLDS_ALL)
    ]


def plots_of(found: Sequence[Found]) -> dict[str, str]:
    """Time for each job over their number."""
    series = {}
    for name, what in PARTS.items():
        own = [f for f in found if f["part"] == name]
        if own:
            sizes = sorted({f["jobs"] for f in own})
            series[what.partition(",")[0].partition(":")[0]] = [
                (float(n), spread([each(f) for f in own if f["jobs"] == n]).median) for n in sizes
            ]
    axes = Axis("jobs of the build", log=True), Axis("ms of CPU time a job", log=True)
    return {"scale": lines("What a job costs as builds grow (flat is good)", series, *axes)}


def main() -> int:
    """Measure and publish; 1 when something grows."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--part", action="append", choices=PARTS, help="only this one (may be given again)")
    parser.add_argument("--quick", action="store_true", help="one round of small sizes")
    add_arguments(parser)
    args = parser.parse_args()
    found = measure(args.part or PARTS, 1 if args.quick else args.rounds, quick=args.quick)
    summary = summary_of(found)
    grows = grown(summary)
    verdict = f"Not flat: {', '.join(grows)}." if grows else "All flat."
    target = f"Flat is at most {FLAT} times the time a job, and {MORE_MIB:.0f} MiB more (but simulate holds its trace)."
    text = f"{machine()}.\n\n{text_of(found)}\n\n{target} {verdict}\n"
    publish("scale", found, text, out=args.json, write=args.write, summary=summary, plots=plots_of(found))
    return int(bool(grows))


if __name__ == "__main__":
    sys.exit(main())
