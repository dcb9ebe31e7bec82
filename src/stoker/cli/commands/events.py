"""`stoker events`: what has happened in a build by its journal, or the journal itself."""

from __future__ import annotations

import argparse
import asyncio
import json
from collections.abc import Callable

from stoker.cli import arguments
from stoker.cli.screen import in_colour
from stoker.cli.which_build import find
from stoker.config.paths import BuildPaths
from stoker.model.codec import encode_record
from stoker.model.events import LevelSet, Record, Sampled
from stoker.model.reduce import reduce
from stoker.model.state import BuildState
from stoker.model.update import Update
from stoker.record.builds import is_live
from stoker.record.journal_follower import follow_journal
from stoker.record.journal_reader import read_journal
from stoker.show.plain import PlainRenderer

PROGRESS_SECONDS = 60.0
"""Between two lines of progress: this is read afterwards, when less of it will do."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker events`."""
    arguments.build_id(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="follow it until the build ends")
    parser.add_argument("--json", action="store_true", help="print the journal's records, one JSON object per line")


def run(args: argparse.Namespace) -> int:
    """Print what has happened, in the order in which it did."""
    paths = find(args.id)
    narrator = Narrator()
    hear = _print_record if args.json else narrator.hear
    seq = 0
    for record in read_journal(paths.journal):
        seq = record.seq
        hear(record)
    if not args.json:
        narrator.catch_up()
    if args.follow:
        asyncio.run(_follow(paths, seq, hear))
    return 0


async def _follow(paths: BuildPaths, seq: int, hear: Callable[[Record], None]) -> None:
    async for record in follow_journal(paths.journal, seq, over=lambda: not is_live(paths)):
        hear(record)


def _print_record(record: Record) -> None:
    print(json.dumps(encode_record(record)), flush=True)


class Narrator:
    """Says in plain lines what records mean together."""

    def __init__(self) -> None:
        self._state = BuildState()
        self._renderer = PlainRenderer(colour=in_colour(), interval=PROGRESS_SECONDS)

    def hear(self, record: Record) -> None:
        """Take the next record; those of a tick are printed together, once its sample closes it. A level is dated and
        counted as it was set, not a tick later."""
        self._state = reduce(self._state, record)
        if isinstance(record.event, Sampled | LevelSet) or self._state.over:
            self.catch_up()

    def catch_up(self) -> None:
        """Say what is new since the last time."""
        for line in self._renderer.update(Update(self._state, "replay"), self._state.time):
            print(line, flush=True)
