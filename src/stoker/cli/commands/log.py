"""`stoker log`: a build's output."""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Iterable, Iterator
from typing import Any

from stoker.cli import arguments, streams
from stoker.cli.screen import in_colour
from stoker.cli.which_build import find
from stoker.config.regular import open_regular
from stoker.diagnose.dropped_blocks import without_blocks
from stoker.diagnose.output_parts import OutputPart, folds_any, parts_of
from stoker.model.state import BuildState
from stoker.model.text import Ink, Span, sgr, spans
from stoker.record.builds import final_state, is_live
from stoker.show import killed_text

POLL_SECONDS = 0.3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker log`."""
    arguments.build_id(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="follow it until the build ends")
    parser.add_argument("--raw", action="store_true", help="every byte as the build wrote it, also on a terminal")


def run(args: argparse.Namespace) -> int:
    """Print the output: into a pipe or file as it is, onto a terminal only harmless text and colour.

    One line replaces what the build tool prints of jobs that were dropped before they began, as far as that is known,
    and a line that calls a killed job failed says that it was killed; `--raw` gives every byte.
    """
    paths = find(args.id)
    try:
        file = open_regular(paths.output)
    except FileNotFoundError:
        return 0
    with file:
        while True:
            over = not args.follow or not is_live(paths)
            if args.raw:
                _copy(file)
            else:
                _show(file, final_state(paths), terminal=sys.stdout.isatty())
            if over:
                return 0
            time.sleep(POLL_SECONDS)


def _copy(file: Any) -> None:
    while chunk := file.read(1 << 16):
        streams.write_bytes(chunk)
    sys.stdout.buffer.flush()


def _show(file: Any, state: BuildState, *, terminal: bool) -> None:
    """What the file has left."""
    if not terminal and not folds_any(state) and not state.killed:
        _copy(file)
        return
    for part in parts_of(state):
        pieces = without_blocks(_lines(file, part.end), part.is_dropped)
        if terminal:
            _on_terminal(pieces, part, state)
        else:
            _into_pipe(pieces, part, state)
    sys.stdout.flush()


def _on_terminal(pieces: Iterable[bytes | int], part: OutputPart, state: BuildState) -> None:
    """Harmless lines."""
    colour = in_colour()
    for piece in pieces:
        if isinstance(piece, int):
            print(sgr((Span(_dropped(piece, part), Ink(dim=True)),), colour=colour))
            continue
        mark = _mark(piece, part, state)
        said = (Span(mark, Ink(fg="magenta")),) if mark else ()
        print(sgr((*said, *spans(piece.rstrip(b"\n"))), colour=colour))


def _into_pipe(pieces: Iterable[bytes | int], part: OutputPart, state: BuildState) -> None:
    """Lines as they are."""
    for piece in pieces:
        if isinstance(piece, int):
            streams.write_bytes(f"{_dropped(piece, part)}\n".encode())
        else:
            streams.write_bytes(_mark(piece, part, state).encode() + piece)


def _mark(line: bytes, part: OutputPart, state: BuildState) -> str:
    """What stands before a line that calls a job failed which was killed."""
    output = part.output_of(line)
    return f"[{killed_text.mark_text(state, output)}] " if output else ""


def _dropped(count: int, part: OutputPart) -> str:
    return f"stoker: {killed_text.dropped_text(count, part.by)}"


def _lines(file: Any, end: int) -> Iterator[bytes]:
    """The lines from here on, up to the one that reaches byte `end`; long ones in pieces."""
    position = file.seek(0, io.SEEK_CUR)
    while position < end and (line := file.readline(1 << 16)):
        position += len(line)
        yield line
