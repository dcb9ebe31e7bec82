"""`stoker ls`: the list of builds."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time

from stoker.cli import arguments
from stoker.cli.narration import say
from stoker.launch.repair import repair_all
from stoker.model.text import clean
from stoker.model.units import format_duration
from stoker.record.builds import BuildSummary, builds_with_phase, what_and_where

LEAST_COMMAND = 16
"""Characters of a build's command and folder in the list, in however narrow a terminal."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker ls`."""
    arguments.as_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the builds, newest first."""
    for line in repair_all():
        say(line)
    builds = builds_with_phase()
    if args.json:
        rows = [
            {
                "id": b.id,
                "name": b.name,
                "command": list(b.command),
                "cwd": b.cwd,
                "state": b.phase,
                "started": b.started,
                "ended": b.ended,
                "exit_code": b.exit_code,
                "live": b.live,
            }
            for b in builds
        ]
        print(json.dumps(rows))
        return 0
    if not builds:
        print("stoker: no builds yet; start one with: stoker run -- ninja -C build", file=sys.stderr)
    heads = [_head(b) for b in builds]
    widths = [max(map(len, column)) for column in zip(*heads, strict=True)]
    for b, cells in zip(builds, heads, strict=True):
        head = "".join(f"{cell:<{width}}  " for cell, width in zip(cells, widths, strict=True))
        print(head + what_and_where(b, max(LEAST_COMMAND, _columns() - len(head))))
    return 0


def _head(build: BuildSummary) -> tuple[str, ...]:
    """Return what stands before a build's command in the list."""
    begun = time.localtime(build.started)
    this_year = begun.tm_year == time.localtime().tm_year
    took = format_duration((build.ended or time.time()) - build.started)
    code = f" ({build.exit_code})" if build.exit_code else ""
    return clean(build.id), build.phase + code, time.strftime("%m-%d %H:%M" if this_year else "%Y-%m-%d", begun), took


def _columns() -> int:
    """Return the terminal's columns; what goes elsewhere is whole."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize
