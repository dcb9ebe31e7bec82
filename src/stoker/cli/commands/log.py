"""`stoker log`: a build's output."""

from __future__ import annotations

import argparse
import io
import sys
import time
from typing import Any

from stoker.cli import arguments, streams
from stoker.cli.screen import in_colour
from stoker.cli.which_build import find
from stoker.config.paths import BuildPaths
from stoker.config.regular import open_regular
from stoker.diagnose.killed_lines import killed_output
from stoker.model.text import Ink, Span, sgr, spans
from stoker.record.builds import final_state, is_live
from stoker.show import killed_text

POLL_SECONDS = 0.3


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker log`."""
    arguments.build_id(parser)
    parser.add_argument("-f", "--follow", action="store_true", help="follow it until the build ends")


def run(args: argparse.Namespace) -> int:
    """Print the output: every byte into a pipe or file, only harmless text and colour onto a terminal."""
    paths = find(args.id)
    terminal = sys.stdout.isatty()
    try:
        file = open_regular(paths.output)
    except FileNotFoundError:
        return 0
    with file:
        while True:
            over = not args.follow or not is_live(paths)
            if terminal:
                _show(file, paths)
            else:
                _copy(file)
            if over:
                return 0
            time.sleep(POLL_SECONDS)


def _copy(file: Any) -> None:
    while chunk := file.read(1 << 16):
        streams.write_bytes(chunk)
    sys.stdout.buffer.flush()


def _show(file: Any, paths: BuildPaths) -> None:
    """Harmless lines; those that call a job failed which was killed say so."""
    state, colour = final_state(paths), in_colour()
    begin = state.step.log_start if state.step is not None else 0
    now, before = killed_output(state), killed_output(state, earlier=True)
    position = file.seek(0, io.SEEK_CUR)
    while line := file.readline(1 << 16):
        position += len(line)
        output = (now if position > begin else before)(line)
        mark = (Span(f"[{killed_text.mark_text(state, output)}] ", Ink(fg="magenta")),) if output else ()
        print(sgr((*mark, *spans(line.rstrip(b"\n"))), colour=colour))
    sys.stdout.flush()
