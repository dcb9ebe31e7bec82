"""`stoker log`: a build's output."""

from __future__ import annotations

import argparse
import io
import sys
import time
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from stoker.cli import arguments, streams
from stoker.cli.screen import in_colour
from stoker.cli.which_build import find
from stoker.config.regular import open_regular
from stoker.diagnose.dropped_blocks import has_dropped, names_dropped, was_stopped, without_blocks
from stoker.diagnose.killed_lines import killed_output
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

    One line replaces what the build tool prints of jobs that were dropped before they began, as far as that is known;
    `--raw` gives every byte.
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
    if not terminal and not has_dropped(state):
        _copy(file)
        return
    begin = state.step.log_start if state.step is not None else 0
    before, now = _lines(file, begin), without_blocks(_lines(file, None), names_dropped(state))
    if terminal:
        _on_terminal(before, state, earlier=True)
        _on_terminal(now, state, earlier=False)
    else:
        _into_pipe(chain(before, now), state)
    sys.stdout.flush()


def _on_terminal(pieces: Iterable[bytes | int], state: BuildState, *, earlier: bool) -> None:
    """Harmless lines; those that call a job failed which was killed say so."""
    output_of, colour = killed_output(state, earlier=earlier), in_colour()
    for piece in pieces:
        if isinstance(piece, int):
            print(sgr((Span(_dropped(piece, state), Ink(dim=True)),), colour=colour))
            continue
        output = output_of(piece)
        mark = (Span(f"[{killed_text.mark_text(state, output)}] ", Ink(fg="magenta")),) if output else ()
        print(sgr((*mark, *spans(piece.rstrip(b"\n"))), colour=colour))


def _into_pipe(pieces: Iterable[bytes | int], state: BuildState) -> None:
    """Lines as they are."""
    for piece in pieces:
        streams.write_bytes(piece if isinstance(piece, bytes) else f"{_dropped(piece, state)}\n".encode())


def _dropped(count: int, state: BuildState) -> str:
    return f"stoker: {killed_text.dropped_text(count, stopped=was_stopped(state))}"


def _lines(file: Any, end: int | None) -> Iterator[bytes]:
    """The lines from here on, up to the one that reaches byte `end`; long ones in pieces."""
    position = file.seek(0, io.SEEK_CUR)
    while (end is None or position < end) and (line := file.readline(1 << 16)):
        position += len(line)
        yield line
