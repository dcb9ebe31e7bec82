"""`stoker history`: what is remembered of jobs in earlier builds, and how to forget it."""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from stoker.cli.errors import FAILURE, CliError
from stoker.config.paths import history_path
from stoker.model.text import clean
from stoker.model.units import format_bytes, format_duration
from stoker.record.history import History, Known, KnownJob

HEAVIEST = 20
"""Jobs listed by default: what fills the memory, on one screen."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker history`."""
    parser.add_argument(
        "-n", type=int, default=HEAVIEST, metavar="N", help=f"heaviest jobs to show (default: {HEAVIEST})"
    )
    parser.add_argument("--forget", action="store_true", help="empty it: the next build begins with what classes say")
    parser.add_argument("--json", action="store_true", help="JSON, for programs")


def run(args: argparse.Namespace) -> int:
    """Show what is remembered, or forget it; 1 if something was wrong with the file."""
    if args.n < 0:
        raise CliError(f"-n {args.n}: a number of jobs, 0 or more")
    path = history_path()
    if not path.exists():
        return _nothing(path, as_json=args.json)
    history = History(path)
    try:
        forgotten = history.forget() if args.forget else None
        known = history.known(args.n)
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


def _nothing(path: Path, *, as_json: bool) -> int:
    if as_json:
        print(json.dumps(_as_json(path, Known(), None)))
    else:
        print("stoker: nothing is remembered yet; builds that end well fill it", file=sys.stderr)
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
        "cpu_seconds": round(job.seconds, 2),
        "runs": job.runs,
        "used": job.used,
    }


def _counted(jobs: int) -> str:
    return f"{jobs} {'job' if jobs == 1 else 'jobs'}"


def _print(path: Path, known: Known) -> None:
    tools = ", ".join(f"{jobs} {clean(tool)}" for tool, jobs in known.tools)
    print(
        f"{known.jobs} jobs{f' ({tools})' if tools else ''}, {known.runs} runs, {format_bytes(_size(path))} in {path}"
    )
    if known.heaviest:
        print(f"\n{'peak':>9}  {'CPU time':>8}  {'runs':>4}  {'last run':<10}  {'tool':<7}  output")
    for job in known.heaviest:
        day = time.strftime("%Y-%m-%d", time.localtime(job.used))
        print(
            f"{format_bytes(job.peak):>9}  {format_duration(job.seconds):>8}  {job.runs:>4}  {day:<10}"
            f"  {clean(job.tool):<7}  {clean(job.output)}"
        )
