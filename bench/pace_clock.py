"""Measures real projects with plenty of memory, built again under stoker and both kinds of ninja, in wall-clock time.

    python -m bench.pace_clock [--only NAME ...] [--rounds 2] [--sources FOLDER] [--json FILE] [--write]

A first build under stoker teaches it and fills the page cache. Then bare ninja of either kind and stoker take turns, in
an order that rotates by one each round; a ratio is taken within each round. Each build begins with a copy of the
configured folder, and none is given a number of jobs. A round of all projects takes twenty minutes on two cores, the
first builds seven. Sources are fetched as for `bench.trust`. The exit status is 1 if a target is missed.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from bench.figures import Spread, add_arguments, load, machine, publish, spread, table
from bench.trust import fetched
from support.program import NINJAS, Stoker

PROJECTS = Path(__file__).with_name("pace_projects.json")

LONGEST_FIRST = (1, 12)
"""The first ninja that starts first what the longest chain of edges waits for."""

MEDIAN, MOST = 1.00, 1.01
"""Stoker over ninja to 1.11: the median must be less, and no project's more. Over later ones the median alone counts,
which may be 1."""


@dataclass(frozen=True, slots=True)
class Project:
    """`source` is `apt:NAME` or `pypi:REQUIREMENT`; {source} and {build} in the command are folders."""

    name: str
    source: str
    configure: Sequence[str]


@dataclass(slots=True)
class Times:
    """Seconds of whole commands, round by round: by ninja's version, and of stoker; `edges` that each build runs."""

    project: str
    edges: int
    first: float
    bare: dict[str, list[float]]
    stoker: list[float] = field(default_factory=list)
    inside: list[float] = field(default_factory=list)
    """Of stoker's, from the start of the first job to the end of the build's command."""

    def over(self, version: str) -> list[float]:
        """Stoker over that ninja, in each round."""
        return [own / bare for own, bare in zip(self.stoker, self.bare[version], strict=True)]


class Bench:
    """One project, configured once."""

    def __init__(self, root: Path, project: Project, sources: Path) -> None:
        self._configured, self._build = root / "configured", root / "build"
        self._stoker = Stoker(root)
        names = {"source": str(fetched(project.source, sources)), "build": str(self._build)}
        command = [word.format(**names) for word in project.configure]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        self._build.rename(self._configured)

    def edges(self, ninja: str) -> int:
        """How many edges a build runs."""
        self._fresh()
        words = [ninja, "-C", str(self._build), "-n"]
        told = subprocess.run(words, check=True, capture_output=True, text=True).stdout
        return int(re.findall(r"^\[\d+/(\d+)\]", told, re.MULTILINE)[-1])

    def bare(self, ninja: str) -> float:
        """Ninja by itself, in a session of its own as under stoker."""
        self._fresh()
        begin = time.monotonic()
        subprocess.run(
            [ninja, "-C", str(self._build)], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
            start_new_session=True,
        )  # fmt: skip
        return time.monotonic() - begin

    def governed(self, ninja: str) -> tuple[float, float]:
        """The same under stoker, whose history stays from build to build: the whole command, and from the first job's
        start to the end of ninja."""
        self._fresh()
        words = self._stoker.argv("run", "--plain", "--", ninja, "-C", str(self._build))
        begin = time.monotonic()
        subprocess.run(
            words, check=True, env=self._stoker.env, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )  # fmt: skip
        whole = time.monotonic() - begin
        newest = max(self._stoker.state.glob("stoker/builds/*/exit.json"), key=lambda file: file.stat().st_mtime)
        events = self._stoker.events(newest.parent.name)
        begun = min(float(e["started"]) for e in events if e["type"] == "job_started")
        return whole, float(json.loads(newest.read_bytes())["ended"]) - begun

    def close(self) -> None:
        """Remove what is outside of its folder."""
        shutil.rmtree(self._stoker.runtime, ignore_errors=True)

    def _fresh(self) -> None:
        """Begin with the configured folder, and with nothing that is yet to be written."""
        shutil.rmtree(self._build, ignore_errors=True)
        subprocess.run(["cp", "-a", str(self._configured), str(self._build)], check=True)
        os.sync()


def version_of(ninja: str) -> str:
    """Major and minor version."""
    told = subprocess.run([ninja, "--version"], check=True, capture_output=True, text=True).stdout
    return ".".join(told.split(".")[:2])


def measure(project: Project, sources: Path, ninjas: dict[str, str], under: str, rounds: int) -> Times:
    """One project: the first build, and then turns."""
    root = Path(tempfile.mkdtemp(prefix="stoker-pace-"))
    try:
        bench = Bench(root, project, sources)
        first, _ = bench.governed(under)
        times = Times(project.name, bench.edges(under), first, {version: [] for version in ninjas})

        def governed() -> None:
            whole, inside = bench.governed(under)
            times.stoker.append(whole)
            times.inside.append(inside)

        turns: list[Callable[[], None]] = [
            *(lambda v=v, n=n: times.bare[v].append(bench.bare(n)) for v, n in ninjas.items()),
            governed,
        ]
        for number in range(rounds):
            for turn in range(len(turns)):
                turns[(turn + number) % len(turns)]()
            told = ", ".join(f"x {times.over(version)[-1]:.3f} of {version}" for version in ninjas)
            print(f"{project.name}: stoker {times.stoker[-1]:.1f} s, {told}", flush=True)
        bench.close()
        return times
    finally:
        shutil.rmtree(root, ignore_errors=True)


def measured(project: Project, sources: Path, ninjas: dict[str, str], under: str, rounds: int) -> Times | None:
    """One project; None, and a word of it, where its sources or tools are not what it needs."""
    try:
        return measure(project, sources, ninjas, under, rounds)
    except subprocess.CalledProcessError as error:
        print(f"{project.name} is left out: {error}", flush=True)
        return None


def row(times: Times) -> list[str]:
    """A project's line."""
    bare = [f"{spread(seconds).median:.1f}" for seconds in times.bare.values()]
    ratios = [spread(times.over(version)).text(3) for version in times.bare]
    around = spread([whole - inside for whole, inside in zip(times.stoker, times.inside, strict=True)]).median
    return [times.project, str(times.edges), *bare, *ratios, f"{around:.2f}"]


def missed(results: Sequence[Times]) -> list[str]:
    """The targets that were not reached, in words."""
    found = []
    for version in results[0].bare if results else ():
        medians = {times.project: spread(times.over(version)).median for times in results}
        middle = spread(list(medians.values())).median
        later = tuple(map(int, version.split("."))) >= LONGEST_FIRST
        if middle > MEDIAN or (middle == MEDIAN and not later):
            found.append(f"median over ninja {version}: {middle:.3f}")
        if not later:
            found += [f"{name} over ninja {version}: {m:.3f}" for name, m in medians.items() if m > MOST]
    return found


def main() -> int:
    """Build, compare, publish."""
    projects = [Project(**project) for project in json.loads(PROJECTS.read_text())]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", nargs="+", choices=[project.name for project in projects], metavar="NAME")
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--sources", type=Path, metavar="FOLDER", help="keep sources here, or take those there")
    add_arguments(parser)
    args = parser.parse_args()
    before = load()
    ninjas = dict(sorted((version_of(ninja), ninja) for ninja in NINJAS))
    under = next(iter(ninjas.values()))
    sources = args.sources or Path(tempfile.mkdtemp(prefix="stoker-pace-sources-"))
    try:
        chosen = [project for project in projects if not args.only or project.name in args.only]
        results = [t for p in chosen if (t := measured(p, sources.resolve(), ninjas, under, args.rounds)) is not None]
    finally:
        if args.sources is None:
            shutil.rmtree(sources, ignore_errors=True)
    head = ["project", "edges", *(f"ninja {v}, s" for v in ninjas), *(f"stoker, × {v}" for v in ninjas), "around, s"]
    late = missed(results)
    told = f"{machine()}; load before: {before:.1f}; {args.rounds} rounds. Missed: {'; '.join(late) or 'nothing'}."
    summary = {version: over_all(results, version) for version in ninjas if results}
    text = f"{told}\n\n{table(head, [row(times) for times in results])}\n"
    publish(
        "pace_clock", [asdict(t) for t in results], text, out=args.json, write=args.write, summary=summary
    )  # fmt: skip
    return int(bool(late))


def over_all(results: Sequence[Times], version: str) -> Spread:
    """Over the projects, of each the median."""
    return spread([spread(times.over(version)).median for times in results])


if __name__ == "__main__":
    sys.exit(main())
