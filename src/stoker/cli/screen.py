"""Picks the screen for a build: full-screen, plain lines or JSON. Imports next to nothing: a build waits for it."""

from __future__ import annotations

import argparse
import os
import sys
from typing import TYPE_CHECKING, Literal, TypeAlias

if TYPE_CHECKING:
    from stoker.cli.tui import TuiOptions

Screen: TypeAlias = "TuiOptions | Literal['plain', 'json']"


def pick_screen(args: argparse.Namespace) -> Screen:
    """What was asked for, else full-screen where a terminal can show it, else plain lines. Raises CliError."""
    if args.json:
        return "json"
    if args.plain or not running_in_terminal():
        return "plain"
    from stoker.cli.tui import tui_options

    return tui_options(args.theme)


def running_in_terminal() -> bool:
    """Whether a full-screen program makes sense here."""
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        return False
    return os.environ.get("TERM", "dumb") not in ("", "dumb") and not os.environ.get("CI")


def in_colour() -> bool:
    """Whether stdout is a terminal that has colours, before a person who has not asked for none (no-color.org)."""
    has_colours = sys.stdout.isatty() and os.environ.get("TERM", "dumb") not in ("", "dumb")
    return has_colours and not os.environ.get("NO_COLOR")
