"""`stoker home`: all builds on one screen; attaches to the selected one."""

from __future__ import annotations

import argparse
import os
import shutil

from stoker.cli import arguments
from stoker.cli.commands.ls import LEAST_COMMAND, cells_of, headings
from stoker.cli.errors import USAGE, CliError
from stoker.cli.narration import say
from stoker.cli.screen import has_size, running_in_terminal
from stoker.cli.tui_options import tui_options
from stoker.cli.watch import show_until_left
from stoker.cli.which_build import find
from stoker.launch.repair import repair_all
from stoker.model.state import Phase
from stoker.record.builds import BuildSummary, builds_with_estimates, what_and_where
from stoker.show.tui.home import STATE, HomeApp, HomeRow

INKS: dict[Phase, str] = {"done": "ok", "failed": "error", "stopped": "warn"}

PADDING = 2
"""Cells that the table puts around each of its cells."""

TRIVIAL_SECONDS = 2.0
"""Seconds within which a build that ended well is one of no interest: `true`, or a build with nothing to do."""

MARK_CELLS = PADDING + 1
"""Cells of the column that marks the picked row."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker home`."""
    arguments.theme(parser)


def run(args: argparse.Namespace) -> int:
    """Show the list, and each build that is chosen, until the person leaves the list."""
    if not (running_in_terminal() and has_size()):
        raise CliError("this terminal cannot show a full screen; 'stoker ls' prints the builds", USAGE)
    screen = tui_options(args.theme)
    for line in repair_all():
        say(line)
    chosen: str | None = ""
    while chosen is not None:
        app = HomeApp(
            _rows,
            screen.theme,
            ascii_only=screen.ascii_only,
            no_colour=bool(os.environ.get("NO_COLOR")),
            chosen=chosen,
        )
        chosen = app.run(mouse=screen.settings.mouse == "on")
        if chosen is not None:
            chosen = show_until_left(find(chosen), screen)[0].id
    return 0


def with_share(cells: tuple[str, ...], build: BuildSummary) -> tuple[str, ...]:
    """Say behind a build's state how much of it is done."""
    if build.share is None:
        return cells
    state = f"{cells[STATE]} {int(build.share * 100)} %"
    return (*cells[:STATE], state, *cells[STATE + 1 :])


def is_trivial(build: BuildSummary) -> bool:
    """Return whether a build succeeded at once."""
    return build.phase == "done" and build.ended is not None and build.ended - build.started < TRIVIAL_SECONDS


def _rows() -> tuple[tuple[str, ...], tuple[HomeRow, ...]]:
    """Return headings, and a row for each build; its command takes what the other columns leave of the terminal."""
    columns = shutil.get_terminal_size().columns
    builds, heads = builds_with_estimates(), headings(columns)
    cells = [with_share(cells_of(build, columns), build) for build in builds]
    taken = sum(PADDING + max(map(len, column)) for column in zip(heads, *cells, strict=True))
    width = max(LEAST_COMMAND, columns - taken - PADDING - MARK_CELLS)
    rows = (
        HomeRow(build.id, (*row, what_and_where(build, width)), INKS.get(build.phase, "accent"), is_trivial(build))
        for build, row in zip(builds, cells, strict=True)
    )
    return (*heads, "COMMAND"), tuple(rows)
