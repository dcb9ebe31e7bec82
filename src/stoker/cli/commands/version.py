"""`stoker version`."""

from __future__ import annotations

import argparse

from stoker import __version__


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """None."""


def run(_: argparse.Namespace) -> int:
    """Print the version, as --version does."""
    print(f"stoker {__version__}")
    return 0
