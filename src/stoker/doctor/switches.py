"""What a CMake option means that comes as a word in the environment. Pure."""

from __future__ import annotations

_ON = frozenset({"ON", "YES", "TRUE", "Y"})
_OFF = frozenset({"OFF", "NO", "FALSE", "N", "IGNORE", "NOTFOUND", "0", ""})
"""cmake-language(7), "if(<constant>)"."""


def switch(value: str | None) -> bool | None:
    """On, off, or None for what is not set or means neither (which CMake takes for off)."""
    if value is None:
        return None
    word = value.strip().upper()
    if word in _OFF or word.endswith("-NOTFOUND"):
        return False
    if word in _ON:
        return True
    try:
        return float(word) != 0
    except ValueError:
        return None
