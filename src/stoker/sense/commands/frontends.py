"""Recognises package builders, below which a failed scheduler costs more than its own jobs. Pure.

pip and similar programs start the whole package again after a failure, often in another folder. Unaware of processes.
"""

from __future__ import annotations

import os
import re
from collections.abc import Sequence

_PROGRAM = re.compile(r"(?:pip|pipx|uv|pyproject-build|python-build|poetry|pdm|hatch|cibuildwheel|conda-build)[\d.]*")
_PYTHON = re.compile(r"(?:python|pypy)[\d.]*")
_MODULES = frozenset(("pip", "build", "uv", "poetry", "pdm", "hatch", "cibuildwheel", "conda_build"))


def builds_packages(argv: Sequence[str]) -> bool:
    """Whether this is pip or another program that builds a package as a whole."""
    words = [word for word in argv if word]
    if not words:
        return False
    program = os.path.basename(words[0])
    if not _PYTHON.fullmatch(program):
        return _PROGRAM.fullmatch(program) is not None
    for number, word in enumerate(words[1:], 1):
        if word == "-m":
            return words[number + 1 : number + 2] != [] and words[number + 1].partition(".")[0] in _MODULES
        if not word.startswith("-"):
            return _PROGRAM.fullmatch(os.path.basename(word)) is not None
    return False
