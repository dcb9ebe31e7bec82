"""Names from the lines above a failure that its own line does not have: Python's version, the folders searched.

Knows nothing of rules.
Like names in the line they end up in commands that people paste, so each has a strict pattern.
"""

from __future__ import annotations

import re

PYTHON, SEARCHED = "python_version", "searched"
NEAR_KINDS = (PYTHON, SEARCHED)

_PYTHONS = (
    re.compile(rb"/include/python(3\.\d{1,2})\b"),
    re.compile(rb"/(?:lib|bin)/python(3\.\d{1,2})\b"),
    re.compile(rb"\bcpython-(3\d{1,2})\b"),
)
"""Where a command names the Python for which it builds, the surest first."""

_FOLDER = re.compile(rb"\s-I ?(/[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}){1,30})/?(?=\s)")
_OF_OTHERS = re.compile(
    rb"\A/usr/(?:local/)?include|\A/usr/lib|/(?:site|dist)-packages/|/include/python3|/cuda(?:-\d|/|\Z)|conda|/envs/|/opt/rocm"
)
"""Folders of the system and of installed packages, which are there."""

_MOST_FOLDERS = 3


def names_near(above: bytes) -> dict[str, str]:
    """Return the names in the lines above a failure; those that are not there are left out."""
    names = {}
    for regex in _PYTHONS:
        if (said := regex.findall(above)) and (last := said[-1].decode()):
            names[PYTHON] = last if "." in last else f"3.{last[1:]}"
            break
    command = next((line for line in reversed(above.split(b"\n")) if _FOLDER.search(line)), b"")
    folders = dict.fromkeys(one for one in _FOLDER.findall(command) if not _OF_OTHERS.search(one))
    if folders:
        names[SEARCHED] = " ".join(one.decode("ascii") for one in list(folders)[:_MOST_FOLDERS])
    return names
