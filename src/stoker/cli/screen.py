"""Picks the screen for a build: full-screen, plain lines or JSON. Imports next to nothing: a build waits for it."""

from __future__ import annotations

import argparse
import os
import shutil
import sys
from functools import cache
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from stoker.cli.tui_options import TuiOptions

Screen: TypeAlias = "TuiOptions | Literal['plain', 'json']"


def pick_screen(args: argparse.Namespace) -> Screen:
    """Return what was asked for, else full-screen where a terminal can show it, else plain lines. Raises CliError."""
    if args.json:
        return "json"
    if args.plain or not running_in_terminal():
        return "plain"
    if not has_size():
        _say_no_size()
        return "plain"
    from stoker.cli.tui_options import tui_options

    return tui_options(args.theme)


def running_in_terminal() -> bool:
    """Say whether a full-screen program makes sense here."""
    # Textual draws on stderr, and asks the size of stdout.
    if not (sys.stdin.isatty() and sys.stdout.isatty() and sys.stderr.isatty()):
        return False
    return os.environ.get("TERM", "dumb") not in ("", "dumb") and not os.environ.get("CI")


def has_size() -> bool:
    """Say whether somebody has said how large the terminal is; 0x0 is what a new one has until then."""
    return all(shutil.get_terminal_size((0, 0)))


@cache
def _say_no_size() -> None:
    """Once, however often the screen is picked."""
    print("stoker: this terminal has no size, so plain lines; full screen after: stty rows 24 cols 80", file=sys.stderr)


def in_colour() -> bool:
    """Say whether stdout is a terminal that has colours, before a person who has not asked for none (no-color.org)."""
    has_colours = sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
    return has_colours and not os.environ.get("NO_COLOR")
