"""Builds to compare a forecast with: a real C++ project under real ninja, recorded builds, and synthetic projects.

Recorded builds (bench/builds) are real graphs with the CPU seconds that each job really took, twice; they are replayed
on any number of cores in ninja's order, undisturbed by other work. Each build comes with the plan that the real planner
made before it began, the start and end of each job, and what ninja itself predicted meanwhile. Knows nothing of
forecasts.
"""

from __future__ import annotations

import asyncio
import contextlib
import gzip
import heapq
import json
import os
import random
import subprocess
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, NamedTuple

from stoker.model.tool import Tool
from stoker.sense.ninja.build_log import NinjaLog
from stoker.sense.ninja.plan import Plan, PlanSummary
from stoker.sense.ninja.plan_graph import UNKNOWN, PlanGraph, PlannedEdge, write_graph
from stoker.sense.ninja.plan_process import PlanRequest, make_plan
from stoker.sense.proc.processes import CLK_TCK, ProcessTable
from support.program import PYPI_NINJA as NINJA


class Ran(NamedTuple):
    """A job as it really ran: seconds since the build's start."""

    output: str
    tool: Tool
    start: float
    end: float


@dataclass
class Build:
    """A build that has run, and the plan from before it began.

    `ninja` has what ninja said: (seconds since the start, predicted seconds left). `cpu` has the CPU seconds of all
    its jobs up to a moment: what others left of the machine.
    """

    name: str
    width: int
    cores: int
    jobs: list[Ran]
    plan: Plan
    ninja: list[tuple[float, float]]
    cpu: list[tuple[float, float]] = field(default_factory=list)


def real_builds(folder: Path) -> Iterator[Build]:
    """A first build, a rebuild of everything, and one after a header of half the libraries has changed."""
    jobs = len(os.sched_getaffinity(0))
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
    plan = asyncio.run(planned(build, time.time()))
    environment = {**os.environ, "NINJA_STATUS": "@ %f %E @ "}
    said: list[tuple[float, float]] = []
    last = ""
    started = time.time()
    command = [NINJA, f"-j{jobs}", "-v"]
    with (
        subprocess.Popen(command, cwd=build, env=environment, stdout=subprocess.PIPE, text=True) as process,
        _cpu_of(process.pid, started) as cpu,
    ):
        for line in process.stdout or ():
            words, last = line.split(), line
            if words[:1] == ["@"] and words[2] != "?":
                said.append((time.time() - started, float(words[2])))
    if process.returncode:
        raise RuntimeError(f"ninja ended with {process.returncode}: {last.strip()}")
    entries = NinjaLog(build / ".ninja_log").first_read(started, time.time()).this_run
    tools = {plan.graph.output(e): plan.graph.tools[e] for e in range(len(plan.graph))} if plan.graph else {}
    ran = [Ran(e.output, tools.get(e.output, "other"), e.start_ms / 1000, e.end_ms / 1000) for e in entries]
    return Build(name, jobs, len(os.sched_getaffinity(0)), ran, plan, said, cpu)


@contextlib.contextmanager
def _cpu_of(pid: int, started: float) -> Iterator[list[tuple[float, float]]]:
    """CPU seconds of a process tree, ended children among them, once a second."""
    found: list[tuple[float, float]] = []
    over = threading.Event()

    def look() -> None:
        table = ProcessTable(pid)
        table.include(pid)
        while not over.wait(1.0):
            ticks = sum(p.cpu_ticks + p.child_ticks for p in table.scan().values())
            found.append((time.time() - started, max(ticks / CLK_TCK, found[-1][1] if found else 0.0)))

    thread = threading.Thread(target=look)
    thread.start()
    try:
        yield found
    finally:
        over.set()
        thread.join()


async def planned(build: Path, started: float) -> Plan:
    folder = Path(tempfile.mkdtemp(prefix="plan-", dir=build.parent))
    plan, note = await make_plan(PlanRequest(str(NINJA), str(build), "build.ninja", (), started), folder / "plan.json")
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


class PaperJob(NamedTuple):
    """A job on paper: its seconds, and the numbers of those that it waits for."""

    output: str
    tool: Tool
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
        tool: Tool = "nvcc" if cuda else "cxx"
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


RECORDED = Path(__file__).with_name("builds")
"""One gzipped JSON for each: `deps` of the groups, and `edges` as [output, tool, group, bytes of the source, CPU
seconds of the first build, those of another one]."""


def recorded_builds(folder: Path, widths: Sequence[int]) -> Iterator[Build]:
    """Each recorded build on so many cores: for the first time, and again with what ninja's log remembers."""
    for file in sorted(RECORDED.glob("*.json.gz")):
        data = json.loads(gzip.decompress(file.read_bytes()))
        name = file.name.partition(".")[0]
        for width in widths:
            yield _recorded(name, data, width, folder, again=False)
            if any(first != again for *_, first, again in data["edges"]):
                yield _recorded(name, data, width, folder, again=True)


def _recorded(name: str, data: dict[str, Any], width: int, folder: Path, *, again: bool) -> Build:
    edges = data["edges"]
    planned = [
        PlannedEdge((output,), tool, first if again else UNKNOWN, group, 0, size)
        for output, tool, group, size, first, _ in edges
    ]
    path = folder / f"{name}-{width}-{again}"
    with path.open("wb") as file:
        write_graph(file, planned, data["deps"], [""], exact=True)
    tools = Counter(edge[1] for edge in edges)
    plan = Plan(PlanSummary(len(edges), 0, len(edges), tools, ""), None, 0, PlanGraph.load(path))
    # A joint between two edges is a job that takes no time.
    joints = len(edges)
    before = [tuple(joints + d for d in deps) for deps in data["deps"]]
    members: list[list[int]] = [[] for _ in data["deps"]]
    for number, edge in enumerate(edges):
        members[edge[2]].append(number)
    jobs = [PaperJob(o, tool, second if again else first, before[g]) for o, tool, g, _, first, second in edges]
    jobs += [PaperJob("", "other", 0.0, (*own, *deps)) for own, deps in zip(members, before, strict=True)]
    ran = [job for job in play(jobs, width) if job.output]
    earlier = {o: first for o, _, _, _, first, _ in edges} if again else {}
    kind = "again" if again else "first"
    return Build(f"{name}, {kind}", width, width, ran, plan, ninjas_words(ran, earlier))


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
    """For each size (jobs, cores): first builds, and again with an earlier .ninja_log, of this or a slower machine."""
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
                plan = asyncio.run(planned(place, time.time()))
                known = dict(zip((j.output for j in jobs), earlier, strict=True)) if earlier else {}
                yield Build(f"paper, {size} jobs on {width}, {kind}", width, width, ran, plan, ninjas_words(ran, known))
