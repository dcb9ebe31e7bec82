"""Compares what stoker shows with reality, second by second, on third-party projects. See bench/README.md.

    python -m bench trust
    python -m bench.trust [--projects FILE] [--only NAME ...] [--sources FOLDER] [--jobs 2] [--json FILE] [--write]

Each project's sources are fetched by `apt-get source` (with source packages among the system's repositories) or by
`pip download`, configured, and built under stoker in its own memory group. Every half second this compares stoker's
state with ninja's own `[finished/total]`, with the process table, and with the group's own account of its memory, and
counts the seconds in which they differ. The exit status is 1 if a total or an end was wrong.
"""

from __future__ import annotations

import argparse
import json
import platform
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections import deque
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from bench.figures import add_arguments, machine, publish, table
from stoker.config.paths import BuildPaths
from stoker.model.status import status_of
from stoker.record.journal_reader import load_state
from support.grouped import Grouped
from support.memory_group import MemoryGroup
from support.procs import Process

PROJECTS = Path(__file__).with_name("trust_projects.json")

LOOK_SECONDS = 0.5

LAG_SECONDS = 3.0
"""What is told follows what happens by a look or two, on a busy machine by more: what differs for longer counts."""

GROUP_BYTES = 12 * 2**30
"""The group's limit: out of the way, on a machine that has it."""

MEMORY_SHARE, MEMORY_BYTES = 0.15, 64 * 2**20
"""By how much of the group's own account, and by how many bytes, stoker's figure may differ."""

TAIL = 64 * 1024
"""Bytes at the end of the output in which ninja's last status line is looked for."""

_LINE = re.compile(rb"^\[(\d+)/(\d+)\] (.*)$", re.MULTILINE)
_RENEWS = re.compile(rb"Re-running CMake|Re-checking globbed|Regenerating build")
"""What ninja says while it renews its manifest, of which it makes a total of its own."""


_OWN = re.compile(rb"^stoker(\.\w+)*$|/stoker/act/\w+\.py$")
"""The module or file by which Python runs a program of stoker's."""


@dataclass(frozen=True, slots=True)
class Project:
    """`source` is `apt:NAME` or `pypi:REQUIREMENT`; {source} and {build} in commands are folders.

    `fails`: the build is to fail, in as many jobs as ninja reports by a FAILED line.
    """

    name: str
    shape: str
    source: str
    configure: Sequence[Sequence[str]]
    build: Sequence[str]
    fails: bool = False


@dataclass(slots=True)
class Difference:
    """One figure that is compared look by look; `seconds` of differing behind the first LAG_SECONDS of each time."""

    seconds: float = 0.0
    examples: list[str] = field(default_factory=list)
    _since: float | None = None

    def look(self, now: float, spent: float, *, differs: bool, what: str) -> None:
        """One more look, `spent` seconds after the one before."""
        if not differs:
            self._since = None
            return
        self._since = self._since or now
        if now - self._since > LAG_SECONDS:
            self.seconds += spent
            if len(self.examples) < 5:
                self.examples.append(what)


@dataclass(slots=True)
class Result:
    """What a project's build came to."""

    project: str
    shape: str
    seconds: float = 0.0
    looks: int = 0
    jobs: int = 0
    lines: int = 0
    unknown: float = 0.0
    state: str = ""
    failed: int = 0
    fails: bool = False
    failed_lines: int = 0
    total_at_end: int = 0
    finished_at_end: int = 0
    differences: dict[str, Difference] = field(
        default_factory=lambda: {name: Difference() for name in ("total", "finished", "running", "memory")}
    )

    @property
    def end_is_right(self) -> bool:
        """Nothing has failed and all is done; or what has failed is what ninja reported."""
        if self.fails:
            return self.state == "failed" and self.failed == self.failed_lines > 0
        return self.state == "done" and not self.failed and self.finished_at_end == self.total_at_end

    @property
    def wrong(self) -> bool:
        """Whether a total or the end was."""
        return not self.end_is_right or self.differences["total"].seconds > 0


def fetched(source: str, folder: Path) -> Path:
    """The unpacked sources, fetched unless they are there."""
    kind, _, name = source.partition(":")
    home = folder / re.sub(r"\W+", "-", source)
    if not home.exists():
        home.mkdir(parents=True)
        get = {
            "apt": ["apt-get", "source", "-q", f"{name}/{platform.freedesktop_os_release()['VERSION_CODENAME']}"],
            "pypi": [sys.executable, "-m", "pip", "download", "-q", "--no-deps", "--no-binary", ":all:", name],
        }[kind]
        subprocess.run(get, cwd=home, check=True, stdout=subprocess.DEVNULL)
        for archive in home.glob("*.tar.gz") if kind == "pypi" else ():
            shutil.unpack_archive(archive, home, filter="data")
    return next(path for path in sorted(home.iterdir()) if path.is_dir())


class Watch:
    """One build that runs, and what is compared."""

    def __init__(self, stoker: Grouped, build: str, result: Result) -> None:
        self._stoker = stoker
        self._paths = BuildPaths(stoker.folder(build))
        self._result = result
        self._running: deque[tuple[float, int]] = deque()
        self._last = time.monotonic()

    def look(self) -> bool:
        """Compare once; False when the build is over."""
        now = time.monotonic()
        spent, self._last = now - self._last, now
        jobs = sum(not _hosts_make(job) for job in self._stoker.going())
        state = load_state(self._paths.journal)
        status = status_of(state, time.time())
        self._result.looks += 1
        self._count(status, now, spent)
        self._beside_processes(status, jobs, now, spent)
        self._beside_group(status, now, spent)
        return not state.over

    def _count(self, status: dict[str, Any], now: float, spent: float) -> None:
        """Total and finished beside ninja's own line, where it is clear which ninja says it."""
        ninjas = [p for p in self._stoker.ninjas() if p.name == "ninja"]
        line = last_line(self._paths.output)
        told = status["progress"]
        if len(ninjas) != 1 or line is None or any(p.name == "make" for p in self._stoker.ninjas()):
            return
        finished, total, renews = line
        self._result.lines += 1
        if not told["total_known"]:
            self._result.unknown += spent
            return
        differs = told["total"] < total if renews else told["total"] != total
        self._differ("total", now, spent, f"{told['total']} beside ninja's {total}", differs=differs)
        differs = not renews and abs(told["finished"] - finished) > 1
        self._differ("finished", now, spent, f"{told['finished']} beside ninja's {finished}", differs=differs)

    def _beside_processes(self, status: dict[str, Any], jobs: int, now: float, spent: float) -> None:
        """Running jobs beside the most and the least that the process table showed within the last seconds."""
        self._running.append((now, jobs))
        while self._running[0][0] < now - LAG_SECONDS:
            self._running.popleft()
        counts = [count for _, count in self._running]
        running = status["progress"]["running"]
        differs = not min(counts) - 1 <= running <= max(counts) + 1
        what = f"{running} beside {min(counts)} to {max(counts)} in the process table"
        self._differ("running", now, spent, what, differs=differs)

    def _beside_group(self, status: dict[str, Any], now: float, spent: float) -> None:
        """The build's memory beside the group's own account, less what stoker itself holds in there."""
        held = self._stoker.group.held + self._stoker.group.unwritten
        group = held - sum(own_memory(p) for p in self._stoker.inside() if is_stoker(p))
        told = status["memory"]["build"]
        differs = abs(told - group) > max(MEMORY_BYTES, MEMORY_SHARE * group)
        what = f"{told >> 20} MiB beside the group's {group >> 20}"
        self._differ("memory", now, spent, what, differs=differs)

    def _differ(self, name: str, now: float, spent: float, what: str, *, differs: bool) -> None:
        self._result.differences[name].look(now, spent, differs=differs, what=what)


def _hosts_make(job: Sequence[Process]) -> bool:
    """Whether it is a shell around a further make: no job, but those of that make are. LTO's make is part of a link."""
    names = {process.pid: process.name for process in job}
    return any(process.name == "make" and names.get(process.parent) != "lto-wrapper" for process in job)


def last_line(output: Path) -> tuple[int, int, bool] | None:
    """Ninja's last status line: finished, total, and whether it renews its manifest."""
    with output.open("rb") as file:
        file.seek(max(0, output.stat().st_size - TAIL))
        lines = _LINE.findall(file.read())
    return (int(lines[-1][0]), int(lines[-1][1]), bool(_RENEWS.search(lines[-1][2]))) if lines else None


def is_stoker(process: Process) -> bool:
    """Whether it is one of stoker's own, and not of the build, whose words may name a folder of that name."""
    try:
        words = Path(f"/proc/{process.pid}/cmdline").read_bytes().split(b"\0")
    except OSError:
        return False
    return b"python" in words[0] and any(_OWN.search(word) for word in words)


def own_memory(process: Process) -> int:
    """Bytes that are this process's alone."""
    try:
        status = Path(f"/proc/{process.pid}/status").read_text()
    except OSError:
        return 0
    found = re.search(r"RssAnon:\s+(\d+) kB", status)
    return int(found[1]) * 1024 if found else 0


def measure(project: Project, sources: Path, jobs: int) -> Result:
    """One project, from its sources to the end of its build."""
    result = Result(project.name, project.shape, fails=project.fails)
    root = Path(tempfile.mkdtemp(prefix="stoker-trust-"))
    try:
        source = root / "source"
        shutil.copytree(fetched(project.source, sources), source, symlinks=True)
        names = {"source": str(source), "build": str(root / "build")}
        for command in project.configure:
            subprocess.run([word.format(**names) for word in command], check=True, stdout=subprocess.DEVNULL)
        with MemoryGroup(GROUP_BYTES) as group:
            stoker = Grouped(root, group)
            begin = time.monotonic()
            try:
                build = stoker.detach(*(word.format(**names) for word in project.build), cwd=source, jobs=jobs)
                watch = Watch(stoker, build, result)
                while watch.look():
                    time.sleep(LOOK_SECONDS)
                result.seconds = time.monotonic() - begin
                status = stoker.status(build)
                output = BuildPaths(stoker.folder(build)).output.read_bytes()
                result.failed_lines = len(re.findall(rb"^FAILED: ", output, re.MULTILINE))
            finally:
                stoker.end_all()
                shutil.rmtree(stoker.runtime, ignore_errors=True)
        progress = status["progress"]
        result.state, result.failed, result.jobs = status["state"], progress["failed"], progress["finished"]
        result.finished_at_end, result.total_at_end = progress["finished"], progress["total"]
    finally:
        shutil.rmtree(root, ignore_errors=True)
    return result


HEAD = ("project", "shape", "jobs", "s", "total, s", "finished, s", "running, s", "memory, s", "not known, s", "end")


def row(result: Result) -> list[str]:
    """A project's line: seconds in which each figure differed."""
    told = [f"{result.differences[name].seconds:.0f}" for name in ("total", "finished", "running", "memory")]
    if not result.lines:
        told[:2] = ["–", "–"]
    end = "right" if result.end_is_right else f"WRONG: {result.state}, {result.failed} failed"
    return [
        *(result.project, result.shape, str(result.jobs), f"{result.seconds:.0f}"),
        *told,
        f"{result.unknown:.0f}" if result.lines else "–",
        end,
    ]


def text_of(results: Sequence[Result]) -> str:
    """The table, and what differed."""
    seconds = sum(result.seconds for result in results)
    totals = sum(result.differences["total"].seconds for result in results)
    ends = sum(not result.end_is_right for result in results)
    told = f"{len(results)} builds, {seconds:.0f} s: {totals:.0f} s of wrong totals, {ends} wrong ends."
    return f"{told}\n\n{table(HEAD, [row(result) for result in results])}"


def main() -> int:
    """Build, compare, publish."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--projects", type=Path, default=PROJECTS, metavar="FILE", help="what to build, as JSON")
    parser.add_argument("--only", nargs="*", metavar="NAME", help="of these, by the first word of their names")
    parser.add_argument(
        "--sources", type=Path, metavar="FOLDER", help="keep sources here, or take those that are there"
    )
    parser.add_argument("--jobs", type=int, default=2, help="how many jobs may run at once; default: 2")
    add_arguments(parser)
    args = parser.parse_args()
    projects = [Project(**project) for project in json.loads(args.projects.read_text())]
    if args.only:
        projects = [project for project in projects if project.name.split()[0] in args.only]
    sources = args.sources or Path(tempfile.mkdtemp(prefix="stoker-trust-sources-"))
    results = []
    try:
        for project in projects:
            result = measure(project, sources.resolve(), args.jobs)
            results.append(result)
            print(" | ".join(row(result)), flush=True)
            for name, difference in result.differences.items():
                print(*(f"    {name}: {example}" for example in difference.examples), sep="\n", end="", flush=True)
    finally:
        if args.sources is None:
            shutil.rmtree(sources, ignore_errors=True)
    summary = {
        "builds": len(results),
        "wrong_total_seconds": sum(result.differences["total"].seconds for result in results),
        "wrong_ends": sum(not result.end_is_right for result in results),
        "wrong_running_seconds": sum(result.differences["running"].seconds for result in results),
    }
    text = f"{machine()}.\n\n{text_of(results)}\n"
    publish("trust", [asdict(result) for result in results], text, out=args.json, write=args.write, summary=summary)
    return int(any(result.wrong for result in results))


if __name__ == "__main__":
    sys.exit(main())
