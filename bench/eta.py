"""How far the predicted time left is from the truth: `python bench/eta.py --out FOLDER [--real] [--paper]`.

Real builds: a CMake project of 60 C++ files of unlike size and a rebuild of it, under real ninja, whose own estimate
(NINJA_STATUS, %E) is recorded beside. Builds on paper: libraries of unlike folders, played as ninja plays them, with
ninja's estimate by its own formula. Either way the plan is made by the real planner and the forecast hears every start
and end at its time, from ninja's log. Prints a table, writes eta.json. Knows nothing of engines and memory.
"""

from __future__ import annotations

import argparse
import asyncio
import heapq
import json
import os
import random
import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import NamedTuple

from stoker.decide.eta import estimate
from stoker.engine.forecast import Forecast
from stoker.model import events as ev
from stoker.model.reduce import reduce
from stoker.model.state import BuildState
from stoker.sense.ninja_log import NinjaLog
from stoker.sense.plan import Plan, PlanRequest, make_plan

SHARES = (0.1, 0.25, 0.5, 0.75)
"""Parts of a build's time at which predictions are held against the truth."""

NINJA = str(Path(sys.executable).parent / "ninja")


class Ran(NamedTuple):
    """A job as it really ran: seconds since the build's start."""

    output: str
    tool: ev.Tool
    start: float
    end: float


@dataclass
class Build:
    """A build that has run, its plan from before it began, and what ninja said: (seconds, predicted seconds left)."""

    name: str
    width: int
    cores: int
    jobs: list[Ran]
    plan: Plan
    ninja: list[tuple[float, float]] = field(default_factory=list)


@dataclass
class Result:
    """One prediction. All in seconds; `rival` is by counting jobs, as before there was a graph."""

    build: str
    share: float
    left: float
    forecast: float | None = None
    low: float | None = None
    high: float | None = None
    rival: float | None = None
    ninja: float | None = None


# -- hold predictions against the truth ------------------------------------------------------------------------


class Stage:
    """The build's state and its forecast, fed with events."""

    def __init__(self, build: Build) -> None:
        self.state = BuildState()
        self.forecast = Forecast()
        self._seq = 0
        self.tell(0.0, ev.SchedulerStarted(1, "ninja", 1, "/b", "", build.width))
        summary = build.plan.summary
        self.tell(0.0, ev.SchedulerPlanned(1, summary.total, "dry-run", summary.tools))
        self.forecast.planned(1, build.plan)
        machine = ev.MachineSample(0.0, (), float(build.cores), 2**40, 0, 2**40, "machine")
        self._machine = machine
        self.sample(0.0)

    def tell(self, now: float, event: ev.Event) -> None:
        self._seq += 1
        self.state = reduce(self.state, ev.Record(self._seq, now, event))
        self.forecast.heard((event,), now)

    def sample(self, now: float) -> None:
        self.tell(now, ev.Sampled(self._machine, (), 0, 0, 0, "", 0))


def judge(build: Build) -> list[Result]:
    """Play the build once, and ask for the time left at each share of it, and every five seconds before."""
    stage = Stage(build)
    whole = max(job.end for job in build.jobs)
    moments = [(share * whole, share) for share in SHARES]
    looks = [(5.0 * n, 0.0) for n in range(1, int(whole / 5))]
    events: list[tuple[float, int, int]] = [(j.start, 1, n) for n, j in enumerate(build.jobs)]
    events += [(j.end, 0, n) for n, j in enumerate(build.jobs)]
    events.sort()
    results: list[Result] = []
    upcoming = sorted([*moments, *looks])
    for now, begins, number in [*events, (whole + 1, 0, -1)]:
        while upcoming and upcoming[0][0] < now:
            at, share = upcoming.pop(0)
            stage.sample(at)
            found = stage.forecast.look(stage.state, at)
            if share:
                results.append(_result(build, share, whole - at, found, stage, at))
        if number >= 0:
            _play(stage, build.jobs[number], number, bool(begins), now)
    return results


def _play(stage: Stage, job: Ran, number: int, begins: bool, now: float) -> None:
    if begins:
        stage.tell(now, ev.JobStarted(number + 1, 1, number + 1, job.output, job.tool, now))
    else:
        stage.tell(now, ev.JobFinished(number + 1, 1, job.output, job.tool, job.end - job.start, "ok"))


def _result(build: Build, share: float, left: float, found: ev.Estimated | None, stage: Stage, now: float) -> Result:
    result = Result(build.name, share, left)
    if found is not None:
        result.forecast, result.low, result.high = found.seconds, found.low, found.high
    rival = estimate(stage.state, now)
    result.rival = rival.seconds if rival is not None else None
    said = [predicted - (now - at) for at, predicted in build.ninja if at <= now]
    result.ninja = max(0.0, said[-1]) if said else None
    return result


# -- real builds -----------------------------------------------------------------------------------------------


def real_builds(folder: Path, jobs: int) -> Iterator[Build]:
    """A first build, a rebuild of everything, and one after a header of half the libraries has changed."""
    source, build = folder / "source", folder / "build"
    write_project(source)
    configure = ["cmake", "-S", str(source), "-B", str(build), "-GNinja", f"-DCMAKE_MAKE_PROGRAM={NINJA}"]
    subprocess.run(configure, check=True, stdout=subprocess.DEVNULL)
    yield run_real("C++ project, first build", build, jobs)
    subprocess.run([NINJA, "-t", "clean"], cwd=build, check=True, stdout=subprocess.DEVNULL)
    yield run_real("C++ project, all again", build, jobs)
    with (source / "heavy.h").open("a") as file:
        file.write("// changed\n")
    yield run_real("C++ project, a header changed", build, jobs)


def run_real(name: str, build: Path, jobs: int) -> Build:
    """Plan, then build, noting each status line and when it came."""
    started = time.time()
    plan = asyncio.run(_planned(build, started))
    environment = {**os.environ, "NINJA_STATUS": "@ %f %E @ "}
    started = time.time()
    said: list[tuple[float, float]] = []
    last = ""
    command = [NINJA, f"-j{jobs}", "-v"]
    with subprocess.Popen(command, cwd=build, env=environment, stdout=subprocess.PIPE, text=True) as process:
        for line in process.stdout or ():
            words, last = line.split(), line
            if words[:1] == ["@"] and words[2] != "?":
                said.append((time.time() - started, float(words[2])))
    if process.returncode:
        raise RuntimeError(f"ninja ended with {process.returncode}: {last.strip()}")
    entries = NinjaLog(build / ".ninja_log").first_read(started, time.time()).this_run
    tools = {plan.graph.output(e): plan.graph.tools[e] for e in range(len(plan.graph))} if plan.graph else {}
    ran = [Ran(e.output, tools.get(e.output, "other"), e.start_ms / 1000, e.end_ms / 1000) for e in entries]
    return Build(name, jobs, len(os.sched_getaffinity(0)), ran, plan, said)


async def _planned(build: Path, started: float) -> Plan:
    folder = Path(tempfile.mkdtemp(prefix="plan-", dir=build.parent))
    plan, note = await make_plan(PlanRequest(NINJA, str(build), "build.ninja", (), started), folder / "plan.json")
    if plan is None or plan.graph is None:
        raise RuntimeError(note)
    return plan


def write_project(folder: Path) -> None:
    """Six libraries in a row of two, each with files from light to heavy, a generated header, programs at the end."""
    folder.mkdir()
    (folder / "heavy.h").write_text("#include <algorithm>\n#include <map>\n#include <regex>\n#include <string>\n")
    (folder / "light.h").write_text("#include <cstddef>\n#include <vector>\n")
    lines = ["cmake_minimum_required(VERSION 3.16)", "project(unlike CXX)", "set(CMAKE_CXX_FLAGS -O1)"]
    dice = random.Random(1)
    for library in range(6):
        names = []
        for number in range(9):
            name = f"part{library}_{number}"
            names.append(f"{name}.cc")
            weight = max(1, int(dice.lognormvariate(1.0 + library / 4, 0.8)))
            (folder / f"{name}.cc").write_text(_source(name, weight, heavy=library >= 3))
        lines.append(f"add_library(lib{library} STATIC {' '.join(names)})")
        if library >= 2:
            lines.append(f"add_dependencies(lib{library} gen)")
    generate = "COMMAND ${CMAKE_COMMAND} -E sleep 1 COMMAND ${CMAKE_COMMAND} -E touch generated.h"
    lines.insert(3, f"add_custom_command(OUTPUT generated.h {generate})\nadd_custom_target(gen DEPENDS generated.h)")
    for program in range(2):
        (folder / f"main{program}.cc").write_text("int part0_0();\nint main() { return part0_0(); }\n")
        lines.append(f"add_executable(prog{program} main{program}.cc)")
        lines.append(f"target_link_libraries(prog{program} lib0 lib1 lib2 lib3 lib4 lib5)")
    (folder / "CMakeLists.txt").write_text("\n".join(lines) + "\n")


def _source(name: str, weight: int, *, heavy: bool) -> str:
    lines = ['#include "heavy.h"' if heavy else '#include "light.h"']
    for i in range(6 * weight):
        lines.append(
            f"template <int N> struct T{i} {{ static int f(int x) {{ return T{i}<N - 1>::f(x * {i} + N); }} }};"
        )
        lines.append(f"template <> struct T{i}<0> {{ static int f(int x) {{ return x; }} }};")
        lines.append(f"int {name}_{i}(int x) {{ return T{i}<40>::f(x); }}")
    if heavy:
        lines.append(f'bool {name}_r(const std::string& s) {{ return std::regex_match(s, std::regex("a*b")); }}')
    lines.append(f"int {name}() {{ return {name}_0(1); }}")
    return "\n".join(lines) + "\n"


# -- builds on paper -------------------------------------------------------------------------------------------


class PaperJob(NamedTuple):
    """A job on paper: its seconds, and the numbers of those that it waits for."""

    output: str
    tool: ev.Tool
    seconds: float
    deps: tuple[int, ...]


def paper_project(seed: int, size: int) -> list[PaperJob]:
    """Libraries: perhaps a generator, objects, an archive or a link, which later libraries' links wait for."""
    dice = random.Random(seed)
    jobs: list[PaperJob] = []
    links: list[int] = []
    while len(jobs) < size:
        name, cuda = f"lib{len(links)}", dice.random() < 0.15
        first: tuple[int, ...] = ()
        if dice.random() < 0.4:
            before = (dice.choice(links),) if links and dice.random() < 0.3 else ()
            jobs.append(PaperJob(f"{name}/gen.h", "other", dice.lognormvariate(0.5, 0.7), before))
            first = (len(jobs) - 1,)
        mean = dice.lognormvariate(3.4 if cuda else 2.0, 0.6)
        tool: ev.Tool = "nvcc" if cuda else "cxx"
        count = max(2, int(dice.lognormvariate(3.0, 1.0) * (0.4 if cuda else 1.0)))
        objects = range(len(jobs), len(jobs) + count)
        jobs += [
            PaperJob(f"{name}/f{i}.{'cu' if cuda else 'cc'}.o", tool, mean * dice.lognormvariate(0, 0.6), first)
            for i in range(count)
        ]
        others = [link for link in links if dice.random() < 0.2]
        jobs.append(PaperJob(f"{name}/lib.so", "link", dice.lognormvariate(1.2, 0.8), (*objects, *others)))
        links.append(len(jobs) - 1)
    return jobs


COMMANDS = {
    "cxx": "c++ -c {0}.src -o {0}",
    "nvcc": "nvcc -c {0}.cu -o {0}",
    "link": "c++ x.o -o {0}",
    "other": "gen {0}",
}


def write_manifest(jobs: Sequence[PaperJob], folder: Path, earlier: Sequence[float] | None) -> None:
    """The graph for ninja to plan; with what each job took in an earlier build, if it was built before."""
    lines = ["rule r", "  command = $c"]
    for job in jobs:
        lines.append(f"build {job.output}: r {' '.join(jobs[d].output for d in job.deps)}")
        lines.append(f"  c = {COMMANDS[job.tool].format(job.output)}")
    (folder / "build.ninja").write_text("\n".join(lines) + "\n")
    if earlier is not None:
        records = [
            f"0\t{round(1000 * s)}\t1\t{j.output}\t{n + 1:x}"
            for n, (j, s) in enumerate(zip(jobs, earlier, strict=True))
        ]
        (folder / ".ninja_log").write_text("# ninja log v5\n" + "\n".join(records) + "\n")


def play(jobs: Sequence[PaperJob], width: int) -> list[Ran]:
    """As ninja plays it: ready jobs in the order of the manifest, on so many cores."""
    waiting = [len(job.deps) for job in jobs]
    dependents: list[list[int]] = [[] for _ in jobs]
    for number, job in enumerate(jobs):
        for dep in job.deps:
            dependents[dep].append(number)
    ready = [n for n, count in enumerate(waiting) if not count]
    running: list[tuple[float, int]] = []
    ran: list[Ran] = []
    now = 0.0
    while ready or running:
        while ready and len(running) < width:
            number = heapq.heappop(ready)
            job = jobs[number]
            heapq.heappush(running, (now + job.seconds, number))
            ran.append(Ran(job.output, job.tool, now, now + job.seconds))
        now, number = heapq.heappop(running)
        for dependent in dependents[number]:
            waiting[dependent] -= 1
            if not waiting[dependent]:
                heapq.heappush(ready, dependent)
    return ran


def ninjas_words(ran: Sequence[Ran], earlier: dict[str, float]) -> list[tuple[float, float]]:
    """What ninja 1.12 and later would say (status_printer.cc, RecalculateProgressPrediction)."""
    said: list[tuple[float, float]] = []
    spent, known_left = 0.0, sum(earlier.values())
    for done, job in enumerate(sorted(ran, key=lambda j: j.end), start=1):
        spent += job.end - job.start
        known_left -= earlier.get(job.output, 0.0)
        known = done + (len(ran) - done if earlier else 0)
        mean = (spent + known_left) / known
        left = known_left + mean * (len(ran) - known)
        said.append((job.end, job.end * left / spent if spent else 0.0))
    return said


def paper_builds(folder: Path, seeds: int, sizes: Sequence[tuple[int, int]]) -> Iterator[Build]:
    for size, width in sizes:
        for seed in range(seeds):
            dice = random.Random(1000 + seed)
            jobs = paper_project(seed, size)
            ran = play(jobs, width)
            # The sources have changed since the earlier build, and perhaps the machine was half as fast.
            before = [job.seconds * dice.lognormvariate(0, 0.2) for job in jobs]
            slower = [2.0 * seconds for seconds in before]
            for kind, earlier in (("first", None), ("again", before), ("again, faster machine", slower)):
                place = Path(tempfile.mkdtemp(dir=folder)) / "b"
                place.mkdir()
                write_manifest(jobs, place, earlier)
                plan = asyncio.run(_planned(place, time.time()))
                known = dict(zip((j.output for j in jobs), earlier, strict=True)) if earlier else {}
                yield Build(f"paper, {size} jobs on {width}, {kind}", width, width, ran, plan, ninjas_words(ran, known))


# -- the table -------------------------------------------------------------------------------------------------


def table(results: Sequence[Result]) -> Iterator[str]:
    """Median of |log2(predicted / truth)| as a factor, by build and share; and how often the band held the truth."""
    yield "| build | done | n | forecast | by counting | ninja's own | truth within the band |"
    yield "|---|---|---|---|---|---|---|"
    for name in dict.fromkeys(r.build for r in results):
        for share in SHARES:
            rows = [r for r in results if r.build == name and r.share == share]
            inside = [r for r in rows if r.low is not None and r.high is not None and r.low <= r.left <= r.high]
            told = [_error(rows, kind) for kind in (lambda r: r.forecast, lambda r: r.rival, lambda r: r.ninja)]
            yield f"| {name} | {share:.0%} | {len(rows)} | {' | '.join(told)} | {len(inside)}/{len(rows)} |"


def _error(rows: Sequence[Result], kind: Callable[[Result], float | None]) -> str:
    """Mean error with its sign, and the median without, in percent of the truth."""
    errors = [100 * (told / r.left - 1) for r in rows if (told := kind(r)) is not None and r.left > 0]
    if not errors:
        return "says nothing"
    return f"{statistics.mean(errors):+.0f} % (±{statistics.median(map(abs, errors)):.0f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True)
    parser.add_argument("--real", action="store_true", help="only the real builds")
    parser.add_argument("--paper", action="store_true", help="only the builds on paper")
    parser.add_argument("--seeds", type=int, default=10)
    parser.add_argument("--jobs", type=int, default=2)
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    folder = Path(tempfile.mkdtemp(prefix="eta-", dir=args.out))
    results: list[Result] = []
    try:
        if not args.paper:
            for build in real_builds(folder, args.jobs):
                results += judge(build)
        if not args.real:
            for build in paper_builds(folder, args.seeds, ((100, 4), (400, 16), (2000, 16), (2000, 64))):
                results += judge(build)
    finally:
        shutil.rmtree(folder, ignore_errors=True)
    (args.out / "eta.json").write_text(json.dumps([asdict(r) for r in results], indent=1))
    print("\n".join(table(results)))


if __name__ == "__main__":
    main()
