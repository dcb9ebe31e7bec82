"""`stoker themes`: what there is, and what is wrong with it."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from stoker.cli.errors import FAILURE
from stoker.config.themes import check_theme, list_themes, theme_folders
from stoker.model.text import clean


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker themes`."""
    parser.add_argument(
        "action", choices=("list", "check"), metavar="list|check", help="show the themes, or check them for errors"
    )
    # A default, or argparse would name it among what is required.
    parser.add_argument("files", nargs="*", default=[], metavar="FILE", help="theme files to check (default: all)")


def run(args: argparse.Namespace) -> int:
    """List the themes, or check files (by default all of them); 1 if one cannot be used."""
    if args.action == "check":
        return _check([Path(f) for f in args.files] or [row.path for row in list_themes(theme_folders())])
    for row in list_themes(theme_folders()):
        print(f"{clean(row.name):<20} {row.kind:<16} {clean(row.description or row.fault)}".rstrip())
    return 0


def _check(files: list[Path]) -> int:
    status = 0
    for file in files:
        for fault in check_theme(file, theme_folders()):
            print(f"stoker: {fault}", file=sys.stderr)
            if fault.severity == "error":
                status = FAILURE
    return status
