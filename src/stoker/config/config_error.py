"""What is wrong with a file that a user wrote, and where. Unaware of file formats."""

from __future__ import annotations

import difflib
from collections.abc import Iterable
from pathlib import Path
from typing import Literal

from stoker.model.text import clean


class ConfigError(Exception):
    """One error: `str()` of it is `PATH:LINE: MESSAGE`, one sanitised line. Line 0 means the file as a whole.

    An error of severity "warning" does not keep the file from being used.
    """

    def __init__(self, path: Path, line: int, message: str, severity: Literal["error", "warning"] = "error") -> None:
        super().__init__(path, line, message)
        self.path = path
        self.line = line
        self.message = clean(message)
        self.severity = severity

    def __str__(self) -> str:
        place = f"{clean(str(self.path))}:{self.line}" if self.line else clean(str(self.path))
        return f"{place}: {'warning: ' if self.severity == 'warning' else ''}{self.message}"


def did_you_mean(wrong: str, known: Iterable[str]) -> str:
    """Return `; did you mean 'memory'?` for the nearest of the known words, else the known words themselves."""
    words = sorted(known)
    near = difflib.get_close_matches(wrong, words, n=1)
    if near:
        return f"; did you mean {near[0]!r}?"
    return f"; known are {', '.join(words)}" if words else ""
