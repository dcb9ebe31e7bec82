"""The short-lived process that finds out what a running ninja has to do: `python -P -m stoker.sense.ninja.plan_maker`.

Reads a request (SPEC.json) and writes a plan (OUT.json and its table) for `plan.Plan`. Runs ninja's own dry run on a
shadow manifest with copies of the logs, never on the live ones; see `shadow_manifest`. Unaware of the engine.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from types import FrameType
from typing import IO, Any, NamedTuple

from stoker.model.tool import COMPILERS, Tool
from stoker.sense.commands.classify import SOURCES, classify_text
from stoker.sense.commands.shell import last_argv
from stoker.sense.ninja.build_files import is_manifest, log_path
from stoker.sense.ninja.build_log import FirstRead, NinjaLog
from stoker.sense.ninja.graph_groups import grouped
from stoker.sense.ninja.graph_reader import GraphError, read_dot, tasks_of
from stoker.sense.ninja.inside import enter
from stoker.sense.ninja.plan import (
    PlanSummary,
    TableRow,
    graph_path,
    key_of_command,
    manifest_stamp,
    table_path,
    write_table,
)
from stoker.sense.ninja.plan_graph import UNKNOWN, PlannedEdge, write_graph
from stoker.sense.ninja.shadow_manifest import ShadowError, ShadowManifest

MAX_EDGES = 1_000_000
"""Edges beyond which a plan is abandoned; Android's whole tree has about that many."""

MAX_KINDS, MAX_KINDS_SIZE = 1_000, 4 * 1024 * 1024
"""Command lines kept to show what kinds there are, and characters of them all; PyTorch has some 300 kinds."""

_MARK = "@stoker@ "
"""NINJA_STATUS of the dry run: begins each line that is a command."""

_COMMAND, _OUTPUT = '    "command": ', '    "output": '
"""How `ninja -t compdb` begins the lines of interest, in every version that has it."""


class _Commands(NamedTuple):
    """The outputs by the command's key, of edges with one command the last one first; the tools of finished ones;
    the commands of edges that renew the manifest, by their outputs; the keys of commands that several edges have,
    and of those of edges that have ended in this run."""

    outputs: Mapping[bytes, list[str]]
    finished_tools: Mapping[str, int]
    renewing: Mapping[str, str]
    shared: Container[bytes]
    ended: Container[bytes]

    def take_output(self, command: str) -> str | None:
        """Return the output of the next edge with this command that has not ended."""
        outputs = self.outputs.get(key_of_command(command))
        return outputs.pop() if outputs else None

    def has_ended(self, command: str) -> bool:
        """Say whether an edge with this command has ended in this run."""
        return key_of_command(command) in self.ended

    def is_shared(self, command: str) -> bool:
        """Say whether several edges have this command, though perhaps only one of them is still to run."""
        return key_of_command(command) in self.shared


class _Planned(NamedTuple):
    """An edge that the dry run would run; `command` is the number of a command line like its own.

    `size` is that of its source in bytes, 0 where there is none.
    """

    output: str
    tool: Tool
    seconds: float
    command: int
    size: int


class _Kinds:
    """Command lines that differ in more than the name of what they make: one for all objects of a library."""

    def __init__(self) -> None:
        self.texts = [""]
        self._numbers: dict[bytes, int] = {}
        self._size = 0

    def number(self, command: str, output: str) -> int:
        """The number of a command line like this one; 0 where there are too many to keep."""
        stem = output.rpartition("/")[2].partition(".")[0]
        key = key_of_command("\0".join(word for word in command.split() if not stem or stem not in word))
        known = self._numbers.get(key)
        if known is not None:
            return known
        if len(self.texts) > MAX_KINDS or self._size + len(command) > MAX_KINDS_SIZE:
            return 0
        self._size += len(command)
        self._numbers[key] = len(self.texts)
        self.texts.append(command)
        return len(self.texts) - 1


@dataclass(slots=True)
class _Plan:
    """What `main` writes: figures, the table's rows, and the edges still to run with the command that names them."""

    summary: PlanSummary
    rows: list[TableRow] = field(default_factory=list)
    edges: list[_Planned] = field(default_factory=list)
    commands: Sequence[str] = ()
    graph_command: Sequence[str] = ()


class PlanError(Exception):
    """No plan can be made; the message says why."""


class OutOfTimeError(PlanError):
    """It would take too long."""


def main(arguments: Sequence[str]) -> int:
    """Make the plan; the exit status is 0 also if the plan only holds a note why there is no total."""
    spec_path, out_path = map(Path, arguments)
    spec = json.loads(spec_path.read_bytes())
    os.nice(19)
    signal.signal(signal.SIGALRM, _out_of_time)
    # They are opened before a container is entered, from where they could not be reached.
    with table_path(out_path).open("wb") as table, graph_path(out_path).open("wb") as graph, out_path.open("w") as out:
        plan = _made(spec)
        if plan.edges:
            note = _write_graph(plan, Path(spec["directory"]), graph)
            plan.summary = replace(plan.summary, note=note)
        write_table(table, plan.rows)
        json.dump(asdict(plan.summary), out)
    return 0


def _made(spec: dict[str, Any]) -> _Plan:
    """The plan, or one that only says why there is none."""
    stamp = ""
    try:
        if spec["inside"]:
            spec["work"] = enter(spec["inside"])
            os.environ.clear()  # what else is there does not concern a container's ninja
        signal.alarm(max(1, int(spec["timeout"])))
        stamp = manifest_stamp(spec["directory"], spec["manifest"])
        return _plan(spec, stamp)
    except (PlanError, ShadowError, OSError) as err:
        why = err.strerror if isinstance(err, OSError) and not err.filename else err
        return _Plan(PlanSummary(None, 0, 0, {}, stamp, f"the total is not known beforehand: {why}"))


def _out_of_time(_signal: int, _frame: FrameType | None) -> None:
    raise OutOfTimeError("the dry run took too long")


def _plan(spec: Mapping[str, object], stamp: str) -> _Plan:
    directory, manifest, work = Path(str(spec["directory"])), str(spec["manifest"]), Path(str(spec["work"]))
    targets = [str(t) for t in spec["targets"]] if isinstance(spec["targets"], list) else []
    shadow = ShadowManifest(directory, manifest, work).write()
    log = _copied_log(log_path(str(directory), manifest), work, float(str(spec["started"])), manifest)
    ninja = [str(spec["exe"]), "-f", str(shadow)]
    before = _before_manifest([*ninja, "-t", "graph", os.path.normpath(manifest)], directory)
    finished = _counted(log, manifest, before)
    commands = _read_commands([*ninja, "-t", "compdb"], directory, finished, before)
    tools = Counter(commands.finished_tools)
    tools["other"] += len(finished) - sum(commands.finished_tools.values())
    rows: list[TableRow] = []
    for output, command in commands.renewing.items():
        rows += _rows(command, output, classify_text(command).tool)
    edges: list[_Planned] = []
    kinds = _Kinds()
    flags = ["-n", "-v", "-d", "keeprsp", "-d", "keepdepfile"]
    for command in _dry_run([*ninja, *flags, *targets], directory):
        work_done = classify_text(command)
        known = commands.take_output(command)
        if known is None and commands.has_ended(command):
            continue  # It makes no file, like CMake's custom targets, and seems to be still to run once it has.
        output = known or work_done.output or ""
        rows += _rows(command, "" if commands.is_shared(command) else output, work_done.tool)
        if output in before:
            continue
        tools[work_done.tool] += 1
        seconds, kind = log.history.get(output, UNKNOWN), kinds.number(command, output)
        size = _source_size(command, directory) if work_done.tool in COMPILERS else 0
        edges.append(_Planned(output, work_done.tool, seconds, kind, size))
    done = len(finished)
    summary = PlanSummary(done + len(edges), done, len(edges), dict(+tools), stamp, renewing=sorted(commands.renewing))
    return _Plan(summary, rows, edges, kinds.texts, [*ninja, "-t", "graph", *targets])


def _before_manifest(graph: list[str], directory: Path) -> frozenset[str]:
    """The outputs of the manifest's own edge and of all edges before it, by what `ninja -t graph MANIFEST` prints."""
    try:
        names = read_dot(_lines(graph, directory)).names
    except OutOfTimeError:
        raise
    except (GraphError, PlanError):  # it is no target: nothing renews it
        return frozenset()
    return frozenset(names.values())


def _counted(log: FirstRead, manifest: str, renewing: Container[str]) -> frozenset[str]:
    """Return what ninja counts as finished by now: it restarts its count once it has regenerated its manifest."""
    counted: set[str] = set()
    for entry in log.this_run:
        if is_manifest(entry.output, manifest):
            counted.clear()
        elif entry.output not in renewing:
            counted.add(entry.output)
    return frozenset(counted)


def _source_size(command: str, directory: Path) -> int:
    """Bytes of the first source that a compilation names; 0 if it is still to be made."""
    source = next((word for word in command.split() if word.endswith(SOURCES)), "")
    try:
        return os.path.getsize(directory / source) if source else 0
    except (OSError, ValueError):
        return 0


def _write_graph(plan: _Plan, directory: Path, file: IO[bytes]) -> str:
    """Write which edge waits for which; a note if that is not available. The plan is valid without it."""
    by_output = {edge.output: edge for edge in plan.edges if edge.output}
    try:
        tasks = tasks_of(read_dot(_lines(list(plan.graph_command), directory)), by_output)
        groups = grouped(tasks)
        signal.alarm(0)
    except (GraphError, PlanError, OSError) as err:
        return f"the time left is estimated by counting jobs, because the graph is not available: {err}"
    edges: list[PlannedEdge] = []
    for task, group in zip(tasks, groups.of_task, strict=True):
        named = next((by_output[o] for o in task.outputs if o in by_output), None)
        if named is not None:
            edges.append(PlannedEdge(task.outputs, named.tool, named.seconds, group, named.command, named.size))
    write_graph(file, edges, groups.deps, plan.commands, exact=groups.exact)
    return ""


def _rows(command: str, output: str, tool: Tool) -> Iterator[TableRow]:
    """Both forms of the job's process: `sh -c COMMAND`, and what the shell becomes."""
    yield key_of_command(command), output, tool
    argv = last_argv(command)
    if argv:
        yield key_of_command("\0".join(argv)), output, tool


def _copied_log(live: str, work: Path, started: float, manifest: str) -> FirstRead:
    """Copy the two logs. First the one that ninja writes first: then the second includes all that the first does."""
    for name in (".ninja_log", ".ninja_deps"):
        source = os.path.join(os.path.dirname(live), name)
        if os.path.exists(source):
            shutil.copy2(source, work / name)  # when it was written last says which entries are older than the run
    return NinjaLog(work / ".ninja_log").first_read(started, time.time(), manifest)


def _read_commands(
    command: list[str], directory: Path, finished: Container[str], before_manifest: Container[str]
) -> _Commands:
    outputs: dict[bytes, list[str]] = {}
    edges: Counter[bytes] = Counter()
    ended: set[bytes] = set()
    renewing: dict[str, str] = {}
    tools: Counter[str] = Counter()
    text, count = "", 0
    for line in _lines(command, directory):
        if line.startswith(_COMMAND):
            text = _json_string(line[len(_COMMAND) :])
        elif line.startswith(_OUTPUT):
            output, key = _json_string(line[len(_OUTPUT) :]), key_of_command(text)
            edges[key] += 1
            if output in before_manifest:
                renewing[output] = text
            if output in finished:
                tools[classify_text(text).tool] += 1
                ended.add(key)
            else:
                outputs.setdefault(key, []).append(output)
            count += 1
            if count > MAX_EDGES:
                raise PlanError(f"more than {MAX_EDGES} edges")
    for same in outputs.values():
        same.reverse()
    return _Commands(outputs, tools, renewing, {key for key, n in edges.items() if n > 1}, ended)


def _json_string(text: str) -> str:
    try:
        value = json.loads(text.rstrip().removesuffix(","))
    except ValueError:
        return ""
    return value if isinstance(value, str) else ""


def _dry_run(command: list[str], directory: Path) -> Iterator[str]:
    count = 0
    for line in _lines(command, directory):
        if line.startswith(_MARK):
            count += 1
            if count > MAX_EDGES:
                raise PlanError(f"more than {MAX_EDGES} edges")
            yield line[len(_MARK) :].rstrip("\n")


def _lines(command: list[str], directory: Path) -> Iterator[str]:
    """Yield what ninja prints, line by line. Raises PlanError with ninja's own message if it fails."""
    environment = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "CLICOLOR_FORCE")}
    environment["NINJA_STATUS"] = _MARK
    with subprocess.Popen(
        command,
        cwd=directory,
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="surrogateescape",
    ) as process:
        complaint = ""
        try:
            for line in process.stdout or ():
                if line.startswith(("ninja: error: ", "ninja: fatal: ")):
                    complaint = line.strip()
                yield line
        except BaseException:
            process.kill()
            raise
    if process.returncode:
        raise PlanError(complaint.removeprefix("ninja: ") or f"ninja -n ended with status {process.returncode}")


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
