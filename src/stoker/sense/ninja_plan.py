"""The short-lived process that finds out what a running ninja has to do: `python -P -m stoker.sense.ninja_plan`.

Reads a request (SPEC.json) and writes a plan (OUT.json and its table) for `plan.Plan`. Runs ninja's own dry run on a
shadow manifest with copies of the logs, never on the live ones; see `ninja_shadow`. Unaware of the engine.
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
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from types import FrameType
from typing import NamedTuple

from stoker.model.events import Tool
from stoker.sense.classify import classify_text
from stoker.sense.ninja_files import log_path
from stoker.sense.ninja_log import FirstRead, NinjaLog
from stoker.sense.ninja_shadow import ShadowError, ShadowManifest
from stoker.sense.plan import PlanSummary, TableRow, key_of_command, manifest_stamp, table_path, write_table
from stoker.sense.shell import last_argv

MAX_EDGES = 1_000_000
"""Edges after which a plan is given up; Android's whole tree has about that many."""

_MARK = "@stoker@ "
"""NINJA_STATUS of the dry run: begins each line that is a command."""

_COMMAND, _OUTPUT = '    "command": ', '    "output": '
"""How `ninja -t compdb` begins the lines of interest, in every version that has it."""


class _Graph(NamedTuple):
    """Of every edge that has inputs: its output by the command's key; and the tools of this run's finished ones."""

    outputs: Mapping[bytes, str]
    finished_tools: Mapping[str, int]


class PlanError(Exception):
    """No plan can be made; the message says why."""


def main(arguments: Sequence[str]) -> int:
    """Make the plan; the exit status is 0 also when the plan only holds a note why there is no total."""
    spec_path, out_path = map(Path, arguments)
    spec = json.loads(spec_path.read_bytes())
    os.nice(19)
    signal.signal(signal.SIGALRM, _out_of_time)
    signal.alarm(max(1, int(spec["timeout"])))
    stamp = manifest_stamp(spec["directory"], spec["manifest"])
    rows: list[TableRow] = []
    try:
        summary = _plan(spec, stamp, rows)
    except (PlanError, ShadowError, OSError) as err:
        summary = PlanSummary(None, 0, 0, {}, 0.0, 0, stamp, f"the total is not known beforehand: {err}")
    with table_path(out_path).open("wb") as file:
        write_table(file, rows)
    out_path.write_text(json.dumps(asdict(summary)))
    return 0


def _out_of_time(_signal: int, _frame: FrameType | None) -> None:
    raise PlanError("the dry run took too long")


def _plan(spec: Mapping[str, object], stamp: str, rows: list[TableRow]) -> PlanSummary:
    directory, manifest, work = Path(str(spec["directory"])), str(spec["manifest"]), Path(str(spec["work"]))
    targets = spec["targets"] if isinstance(spec["targets"], list) else []
    shadow = ShadowManifest(directory, manifest, work).write()
    log = _copied_log(log_path(str(directory), manifest), work, float(str(spec["started"])), manifest)
    ninja = [str(spec["exe"]), "-f", str(shadow)]
    finished = {e.output for e in log.this_run}
    graph = _read_graph([*ninja, "-t", "compdb"], directory, finished)
    tools = Counter(graph.finished_tools)
    tools["other"] += len(log.this_run) - sum(graph.finished_tools.values())
    planned, seconds, known = 0, 0.0, 0
    flags = ["-n", "-v", "-d", "keeprsp", "-d", "keepdepfile"]
    for command in _dry_run([*ninja, *flags, *map(str, targets)], directory):
        planned += 1
        work_done = classify_text(command)
        output = graph.outputs.get(key_of_command(command)) or work_done.output or ""
        tools[work_done.tool] += 1
        rows += _rows(command, output, work_done.tool)
        if output in log.history:
            seconds, known = seconds + log.history[output], known + 1
    total = len(log.this_run) + planned
    return PlanSummary(total, len(log.this_run), planned, dict(+tools), round(seconds, 3), known, stamp)


def _rows(command: str, output: str, tool: Tool) -> Iterator[TableRow]:
    """Under both faces of the job's process: `sh -c COMMAND`, and what the shell becomes."""
    yield key_of_command(command), output, tool
    argv = last_argv(command)
    if argv:
        yield key_of_command("\0".join(argv)), output, tool


def _copied_log(live: str, work: Path, started: float, manifest: str) -> FirstRead:
    """Copies of the two logs. First the one that ninja writes first: then the second knows all that the first does."""
    for name in (".ninja_log", ".ninja_deps"):
        source = os.path.join(os.path.dirname(live), name)
        if os.path.exists(source):
            shutil.copyfile(source, work / name)
    return NinjaLog(work / ".ninja_log").first_read(started, time.time(), manifest)


def _read_graph(command: list[str], directory: Path, finished: set[str]) -> _Graph:
    outputs: dict[bytes, str] = {}
    tools: Counter[str] = Counter()
    text = ""
    for line in _lines(command, directory):
        if line.startswith(_COMMAND):
            text = _json_string(line[len(_COMMAND) :])
        elif line.startswith(_OUTPUT):
            output = _json_string(line[len(_OUTPUT) :])
            outputs.setdefault(key_of_command(text), output)
            if output in finished:
                tools[classify_text(text).tool] += 1
            if len(outputs) > MAX_EDGES:
                raise PlanError(f"more than {MAX_EDGES} edges")
    return _Graph(outputs, tools)


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
    """What ninja prints, line by line. Raises PlanError with ninja's own complaint if it fails."""
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
