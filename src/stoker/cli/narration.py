"""Messages besides a command's answer: lines on stderr, harmless to any terminal."""

from __future__ import annotations

import sys

from stoker.model.text import clean


def say(line: str) -> None:
    """Print a line at once, prefixed with "stoker:"."""
    print(f"stoker: {clean(line)}", file=sys.stderr, flush=True)


def warn(line: str) -> None:
    """Print a warning."""
    say(f"warning: {line}")
