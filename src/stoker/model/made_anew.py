"""Whether two paths are one folder to a person, made anew under a name that a program made up. Pure."""

from __future__ import annotations

from itertools import takewhile

TEMPORARY = ("tmp", "pip-")
"""How names begin that Python's tempfile and pip make up."""

MIN_SAME, MIN_RANDOM = 3, 4
"""Characters that the names of two temporary folders share at their start at least ("tmp"), and in how many they differ
behind that: Python makes up 8 of them, pip 8 or 32, and some are equal by chance."""


def is_made_anew(now: str, before: str) -> bool:
    """True when two paths differ, and only in names that a program made up, as in /tmp/tmpk9j6kttq/build."""
    parts, old = now.split("/"), before.split("/")
    different = [(a, b) for a, b in zip(parts, old, strict=False) if a != b]
    temporary = any(a.startswith(TEMPORARY) for a, _ in different)
    return len(parts) == len(old) and temporary and all(_made_up(a, b) for a, b in different)


def _made_up(a: str, b: str) -> bool:
    same = len(list(takewhile(lambda pair: pair[0] == pair[1], zip(a, b, strict=False))))
    return len(a) == len(b) and same >= MIN_SAME and sum(x != y for x, y in zip(a, b, strict=True)) >= MIN_RANDOM
