"""`stoker ls`: the list of builds."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections.abc import Sequence

from stoker.cli import arguments
from stoker.cli.errors import FAILURE, CliError
from stoker.cli.narration import say
from stoker.cli.screen import in_colour
from stoker.launch.repair import repair_all
from stoker.model.state import Phase
from stoker.model.text import PLAIN_INK, Ink, Span, clean, sgr
from stoker.model.units import format_duration, format_rough
from stoker.record.builds import BuildSummary, builds_with_estimates, matching, no_build, what_and_where

LEAST_COMMAND = 16
"""Characters of a build's command and folder in the list, in however narrow a terminal."""

NAME = 20
"""Characters of a build's name on a terminal; the ID before it says which one it is."""

WIDE = 100
"""Columns of a terminal from which on there is room for when each build was started."""

STATE = 2
"""The column of a terminal's list that is coloured."""

INKS: dict[Phase, Ink] = {"done": Ink(fg="green"), "failed": Ink(fg="red"), "stopped": Ink(fg="yellow")}
LIVE = Ink(fg="cyan")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker ls`."""
    text = "only the builds with this ID, name, or prefix of either (default: all)"
    parser.add_argument("id", nargs="?", metavar="ID", help=text)
    arguments.as_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print all builds, or those that a word means: those that live, then the others, newest first. Raises CliError."""
    for line in repair_all():
        say(line)
    builds = builds_with_estimates()
    if args.id is not None and not (builds := matching(builds, args.id)):
        raise CliError(no_build(args.id), FAILURE)
    if args.json:
        print(json.dumps([_as_json(build) for build in builds]))
    elif not builds:
        say("no builds yet; start one with: stoker run -- ninja -C build")
    else:
        _print(builds)
    return 0


def _as_json(build: BuildSummary) -> dict[str, object]:
    return {
        "id": build.id,
        "name": build.name,
        "command": list(build.command),
        "cwd": build.cwd,
        "state": build.phase,
        "started": build.started,
        "ended": build.ended,
        "exit_code": build.exit_code,
        "live": build.live,
        "elsewhere": build.elsewhere or None,
        "stalled": build.stalled,
        "seconds_left": None if build.left is None else round(build.left, 1),
    }


def _print(builds: Sequence[BuildSummary]) -> None:
    """On a terminal in its width, below headings; elsewhere whole, with the whole ID, which begins with the name."""
    terminal, colour = sys.stdout.isatty(), in_colour()
    columns = shutil.get_terminal_size().columns if terminal else sys.maxsize
    heads = headings(columns)
    rows = [cells_of(build, columns) if terminal else (clean(build.id), *_how(build)) for build in builds]
    widths = [max(map(len, column)) for column in zip(*rows, *([heads] if terminal else []), strict=True)]
    if terminal:
        print(sgr([Span(_joined(_padded(heads, widths)) + "COMMAND", Ink(bold=True))], colour=colour))
    for build, row in zip(builds, rows, strict=True):
        cells = _padded(row, widths)
        what = what_and_where(build, max(LEAST_COMMAND, columns - len(_joined(cells))))
        state = STATE if terminal else STATE - 1
        line = [
            Span(_joined(cells[:state])),
            Span(cells[state], INKS.get(build.phase, LIVE)),
            Span("  " + _joined(cells[state + 1 :])),
            Span(what, PLAIN_INK if build.live else Ink(dim=True)),
        ]
        print(sgr(line, colour=colour))


def _padded(cells: Sequence[str], widths: Sequence[int]) -> list[str]:
    return [f"{cell:<{width}}" for cell, width in zip(cells, widths, strict=True)]


def _joined(cells: Sequence[str]) -> str:
    return "".join(f"{cell}  " for cell in cells)


def headings(columns: int) -> tuple[str, ...]:
    """Return the headings of a list in so many columns, but for the command's."""
    return ("ID", "NAME", "STATE", "TOOK", "LEFT", *(("STARTED",) if columns >= WIDE else ()))


def cells_of(build: BuildSummary, columns: int) -> tuple[str, ...]:
    """Return a cell for each of these headings."""
    name = clean(build.name)
    short = name if len(name) <= NAME else name[: NAME - 1] + "…"
    state, started, took, left = _how(build)
    return clean(build.short_id), short, state, took, left, *((started,) if columns >= WIDE else ())


def _aside(build: BuildSummary) -> str:
    if build.elsewhere:
        return f" in {clean(build.elsewhere, 16)}"
    if build.stalled:
        return " (nothing runs)"
    # With which status a stopped tool ends is chance: by the signal, or by itself.
    return f" ({build.exit_code})" if build.exit_code and build.phase != "stopped" else ""


def _how(build: BuildSummary) -> tuple[str, str, str, str]:
    begun = time.localtime(build.started)
    this_year = begun.tm_year == time.localtime().tm_year
    return (
        build.phase + _aside(build),
        time.strftime("%m-%d %H:%M" if this_year else "%Y-%m-%d", begun),
        format_duration((build.ended or time.time()) - build.started),
        "" if build.left is None else format_rough(build.left),
    )
