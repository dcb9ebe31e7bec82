"""`stoker report`: a recorded build as one HTML file."""

from __future__ import annotations

import argparse
import sys
from functools import partial
from pathlib import Path

from stoker.cli.in_processes import worked_out
from stoker.cli.recorded_build import load, progress, time_traces, write_out
from stoker.report.arch_costs import arch_costs
from stoker.report.page import Extras, page
from stoker.report.paper import NothingRanError, on_paper
from stoker.report.recorded import RecordedBuild
from stoker.report.time_traces import arch_seconds, templates
from stoker.report.whatif import note, paper_runs, what_if

MOST_TEMPLATES = 20
"""Templates that are listed."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker report`."""
    parser.add_argument("id", nargs="?", metavar="ID|FILE", help="a build's ID, or a journal (default: the last build)")
    parser.add_argument(
        "--no-paper", action="store_true", help="skip the simulations, which take minutes for thousands of jobs"
    )
    parser.add_argument("-o", "--output", type=Path, metavar="FILE", help="output file (default: ID.html; - is stdout)")


def run(args: argparse.Namespace) -> int:
    """Write the page, and say where it is."""
    build = load(args.id)
    path = None if args.output == Path("-") else args.output or Path(f"{_name(build.state.id)}.html")
    write_out([page(build, _extras(build, paper=not args.no_paper))], path)
    if path is not None:
        print(f"stoker: {path}", file=sys.stderr)
    return 0


def _extras(build: RecordedBuild, *, paper: bool) -> Extras:
    """What is not in the journal itself, or takes a while to work out."""
    traces = list(time_traces(build))
    archs = arch_costs(build, arch_seconds(traces))
    longest = templates(traces)[:MOST_TEMPLATES]
    if not paper:
        return Extras(templates=longest, archs=archs)
    try:
        model = on_paper(build)
    except NothingRanError:
        return Extras(templates=longest, archs=archs)
    with progress("simulating the build") as far:
        tried = worked_out(partial(what_if, model), paper_runs(model), far)
    found = [one for one in tried if one is not None]
    return Extras(found, note(model, found[0].seconds - model.outside), longest, archs)


def _name(build: str) -> str:
    """A file's name from a build's ID, which in somebody else's journal may hold anything."""
    return "".join(c if c.isascii() and (c.isalnum() or c in "-_") else "_" for c in build)[:100] or "build"
