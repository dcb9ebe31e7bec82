"""`stoker events`: a build's journal."""

from __future__ import annotations

import argparse
import asyncio
import json
import time

from stoker.cli import arguments
from stoker.cli.which_build import find
from stoker.config.paths import BuildPaths
from stoker.model.codec import encode_record
from stoker.model.events import Record
from stoker.model.text import clean
from stoker.record.builds import is_live
from stoker.record.journal_reader import follow_journal, read_journal


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker events`."""
    arguments.build_id(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="go on as it grows, until the build ends")
    arguments.as_json(parser)


def run(args: argparse.Namespace) -> int:
    """Print the journal, one event a line."""
    paths = find(args.id)
    seq = 0
    for record in read_journal(paths.journal):
        seq = record.seq
        _print_record(record, as_json=args.json)
    if args.follow:
        asyncio.run(_follow(paths, seq, as_json=args.json))
    return 0


async def _follow(paths: BuildPaths, seq: int, *, as_json: bool) -> None:
    async for record in follow_journal(paths.journal, seq, over=lambda: not is_live(paths)):
        _print_record(record, as_json=as_json)


def _print_record(record: Record, *, as_json: bool) -> None:
    data = encode_record(record)
    if as_json:
        print(json.dumps(data), flush=True)
        return
    clock = time.strftime("%H:%M:%S", time.localtime(record.time))
    facts = {k: v for k, v in data.items() if k not in ("v", "seq", "t", "type")}
    print(f"{clock} {record.event.kind:<18} {clean(json.dumps(facts, ensure_ascii=False), 500)}", flush=True)
