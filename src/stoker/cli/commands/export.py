"""`stoker export`: a recorded build in the formats of other tools."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Iterator
from pathlib import Path

from stoker.cli.recorded_build import load, paper_of, time_traces, write_out
from stoker.report.chrome import chrome_trace
from stoker.report.recorded import RecordedBuild
from stoker.report.tables import jsonl, table
from stoker.report.time_traces import merged
from stoker.simulate.trace import lines

FORMATS = ("chrome", "csv", "jsonl", "trace")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker export`."""
    parser.add_argument("id", nargs="?", metavar="ID|FILE", help="a build's ID, or a journal (default: the last build)")
    parser.add_argument(
        "--format",
        choices=FORMATS,
        default="chrome",
        help="chrome: for ui.perfetto.dev; csv, jsonl: one job per line; trace: for simulate (default: chrome)",
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="output file (default: stdout)")


def run(args: argparse.Namespace) -> int:
    """Write a build in another format."""
    write_out(_parts(load(args.id), args.format), args.output)
    return 0


def _parts(build: RecordedBuild, form: str) -> Iterable[str]:
    if form == "chrome":
        return _chrome(build)
    if form == "trace":
        return lines(paper_of(build).jobs)
    return table(build) if form == "csv" else jsonl(build)


def _chrome(build: RecordedBuild) -> Iterator[str]:
    trace = chrome_trace(build, merged(build, time_traces(build)))
    yield json.dumps(trace, separators=(",", ":")) + "\n"
