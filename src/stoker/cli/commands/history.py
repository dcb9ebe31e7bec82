"""`stoker history`: the builds of this folder and what their jobs took; with `--all`, of all folders.

Also what is remembered of jobs for predictions, and how to delete that.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from stoker.cli import arguments
from stoker.cli.errors import FAILURE, CliError
from stoker.cli.recorded_build import progress
from stoker.cli.recorded_screens import full_screen_fits, show_history
from stoker.config.paths import build_paths, history_path
from stoker.model.known_peak import limit_text, peak_rank
from stoker.model.state import BuildState, FinishedJob
from stoker.model.text import clean
from stoker.model.tool import TOOL_NAMES, tool_name
from stoker.model.units import format_bytes, format_duration, format_share
from stoker.record.builds import final_state, list_builds
from stoker.record.history import History, Known, KnownJob
from stoker.record.journal_error import JournalError
from stoker.report.trends import TrendLine, trend

HEAVIEST = 20
"""Jobs listed by default: what fills the memory, on one screen."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker history`."""
    parser.add_argument("-n", type=int, metavar="N", help=f"print text, with the N heaviest jobs (default: {HEAVIEST})")
    parser.add_argument(
        "--all",
        action="store_true",
        help="print the builds of all folders, and all jobs that are remembered for predictions",
    )
    parser.add_argument(
        "--builds",
        action="store_true",
        help="print the builds only, each compared with earlier ones",
    )
    parser.add_argument("--plain", action="store_true", help="print text, even on a terminal")
    parser.add_argument(
        "--forget", action="store_true", help="delete the history of jobs; predictions start over from classes"
    )
    parser.add_argument(
        "--json", action="store_true", help="all remembered jobs as JSON, for programs; with --builds, the builds"
    )
    arguments.theme(parser)


def run(args: argparse.Namespace) -> int:
    """On a terminal, show the builds; else print them and what their jobs took, or what is remembered, or forget that.

    1 if something was wrong with the file.
    """
    if args.n is not None and args.n < 0:
        raise CliError(f"-n {args.n}: a number of jobs, 0 or more")
    if full_screen_fits() and not (args.plain or args.json or args.forget or args.all or args.n is not None):
        return show_history(args.theme)
    heaviest = HEAVIEST if args.n is None else args.n
    if args.builds or not (args.json or args.forget):
        states = _ended_builds("" if args.all else str(Path.cwd()))
        _print_builds(trend(states), as_json=args.json, everywhere=args.all)
        if not args.json:
            _say_running(states)
        if args.builds:
            return 0
        if not args.all:
            _print_jobs(states, heaviest)
            return 0
        if states:
            print()
    return _remembered(args, heaviest)


def _remembered(args: argparse.Namespace, heaviest: int) -> int:
    """Print or forget what is remembered of jobs for predictions."""
    path = history_path()
    if not path.exists():
        return _nothing(path, as_json=args.json)
    history = History(path)
    try:
        forgotten = history.forget() if args.forget else None
        known = history.known(heaviest)
        notes = history.take_notes()
    finally:
        history.close()
    for note in notes:
        print(f"stoker: {clean(note)}", file=sys.stderr)
    if args.json:
        print(json.dumps(_as_json(path, known, forgotten)))
    elif forgotten is not None:
        print(f"stoker: {_counted(forgotten)} forgotten", file=sys.stderr)
    else:
        _print(path, known)
    return FAILURE if notes else 0


def _ended_builds(folder: str) -> list[BuildState]:
    """Return the builds of a folder, or of all, that can be read."""
    found = [build.id for build in list_builds() if not folder or build.cwd == folder]
    states = []
    with progress("reading journals") as far:
        for number, build in enumerate(found):
            with contextlib.suppress(JournalError):
                states.append(final_state(build_paths(build)))
            far((number + 1) / len(found))
    return states


def _say_running(states: Sequence[BuildState]) -> None:
    """Say which builds are missing since they have not ended."""
    running = [clean(state.id) for state in states if not state.over]
    if running:
        verb = "has" if len(running) == 1 else "have"
        print(f"stoker: {', '.join(running)} {verb} not ended yet; see: stoker ls", file=sys.stderr)


def _print_builds(lines: Sequence[TrendLine], *, as_json: bool, everywhere: bool) -> None:
    """Print builds, the oldest first."""
    if as_json:
        print(json.dumps([{**asdict(line), "name": clean(line.name)} for line in lines]))
    elif not lines and everywhere:
        print("stoker: no build has ended yet", file=sys.stderr)
    elif not lines:
        text = "no build of this folder has ended yet; those of all folders: stoker history --all"
        print(f"stoker: {text}", file=sys.stderr)
    else:
        figures = f"{'took':>8}  {'usual':>6}  {'jobs':>6}  {'memory':>9}  {'cached':>6}"
        print(f"{'began':<16}  {'ID':<4}  {figures}  outcome  command")
        print("\n".join(map(_build_line, lines)))


def _succeeded(job: FinishedJob, state: BuildState) -> bool:
    """Whether a job ran to its end: make does not say of its own jobs, but of a build that succeeded all did."""
    return job.outcome == "ok" or (job.outcome == "unknown" and state.outcome == "done")


def _print_jobs(states: Sequence[BuildState], count: int) -> None:
    """Print the heaviest jobs that succeeded in some builds, each once, as it was when it was heaviest."""
    heaviest: dict[str, FinishedJob] = {}
    for job in (job for state in states for job in state.history.heaviest if _succeeded(job, state)):
        known = heaviest.get(job.output)
        if known is None or peak_rank(job.peak) > peak_rank(known.peak):
            heaviest[job.output] = job
    jobs = sorted(heaviest.values(), key=lambda job: peak_rank(job.peak), reverse=True)[:count]
    if jobs:
        print(f"\n{'peak':>9}  {'took':>8}  {'tool':<7}  heaviest jobs")
    for job in jobs:
        tool, peak = tool_name(job.tool, job.output, is_c=job.is_c), job.peak.text if job.peak is not None else ""
        print(f"{peak:>9}  {format_duration(job.seconds):>8}  {tool:<7}  {clean(job.output)}")


def _build_line(line: TrendLine) -> str:
    began = time.strftime("%Y-%m-%d %H:%M", time.localtime(line.started))
    share = "" if line.share is None else f"x{line.share:.2f}"
    hits = "" if line.cache_hits is None else format_share(line.cache_hits)
    return (
        f"{began}  {clean(line.id)[-4:]}  {format_duration(line.seconds):>8}  {share:>6}  {line.jobs or 0:>6}"
        f"  {format_bytes(line.peak or 0):>9}  {hits:>6}  {line.outcome:<7}  {clean(' '.join(line.command), 60)}"
    )


def _nothing(path: Path, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(_as_json(path, Known(), None)))
    else:
        print("stoker: no history yet; each successful build adds to it", file=sys.stderr)
    return 0


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0


def _as_json(path: Path, known: Known, forgotten: int | None) -> dict[str, object]:
    data: dict[str, object] = {
        "path": str(path),
        "bytes": _size(path),
        "jobs": known.jobs,
        "runs": known.runs,
        "tools": [{"tool": tool, "jobs": jobs} for tool, jobs in known.tools],
        "heaviest": [_job_as_json(job) for job in known.heaviest],
    }
    return data if forgotten is None else {**data, "forgotten": forgotten}


def _job_as_json(job: KnownJob) -> dict[str, object]:
    return {
        "output": job.output,
        "tool": job.tool,
        "peak": round(job.peak),
        "bound": not job.runs,
        "cpu_seconds": round(job.seconds, 2),
        "runs": job.runs,
        "used": job.used,
    }


def _kind(tool: str) -> str:
    """Return what people read of a tool's jobs together: C is compiled by what compiles C++."""
    return "c/c++" if tool == "cxx" else TOOL_NAMES.get(tool) or clean(tool)


def _tool(tool: str, output: str) -> str:
    return tool_name(tool, output) if tool in TOOL_NAMES else clean(tool)


def _counted(jobs: int) -> str:
    return f"{jobs} {'job' if jobs == 1 else 'jobs'}"


def _print(path: Path, known: Known) -> None:
    tools = ", ".join(f"{jobs} {_kind(tool)}" for tool, jobs in known.tools)
    print(
        f"{known.jobs} jobs{f' ({tools})' if tools else ''}, {known.runs} runs, {format_bytes(_size(path))} in {path}"
    )
    if known.heaviest:
        print(f"\n{'peak':>9}  {'CPU time':>8}  {'runs':>4}  {'last run':<10}  {'tool':<7}  output")
    for job in known.heaviest:
        day = time.strftime("%Y-%m-%d", time.localtime(job.used))
        peak = format_bytes(job.peak) if job.runs else limit_text(job.peak)
        print(
            f"{peak:>9}  {format_duration(job.seconds):>8}  {job.runs:>4}  {day:<10}"
            f"  {_tool(job.tool, job.output):<7}  {clean(job.output)}"
        )
