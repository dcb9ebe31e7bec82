"""`stoker report`: a recorded build as one HTML file."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from stoker.cli.recorded_build import load, time_traces, write_out
from stoker.report.arch_costs import arch_costs
from stoker.report.page import Extras, page
from stoker.report.time_traces import arch_seconds, templates

MOST_TEMPLATES = 20
"""Templates that are listed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker report`."""
    parser.add_argument("id", nargs="?", metavar="ID|FILE", help="a build's ID, or a journal (default: the last build)")
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="where to (default: ID.html; - is stdout)")


def run(args: argparse.Namespace) -> int:
    """Write the page, and say where it is."""
    build = load(args.id)
    traces = list(time_traces(build))
    extras = Extras(templates=templates(traces)[:MOST_TEMPLATES], archs=arch_costs(build.state, arch_seconds(traces)))
    to_stdout = args.output == Path("-")
    path = None if to_stdout else args.output or Path(f"{_name(build.state.id)}.html")
    write_out([page(build, extras)], path)
    if path is not None:
        print(f"stoker: {path}", file=sys.stderr)
    return 0


def _name(build: str) -> str:
    """A file's name from a build's ID, which in somebody else's journal may hold anything."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in build)[:100] or "build"
