"""What a CMake option means that comes as a word in the environment. Pure."""

from __future__ import annotations

_ON = frozenset({"ON", "YES", "TRUE", "Y"})
_OFF = frozenset({"OFF", "NO", "FALSE", "N", "IGNORE", ""})


def switch(value: str | None) -> bool | None:
    """Return on or off as `if(NAME)` has it, None for what is not set.

    Anything but a few words is on, "disabled" as well (cmake-commands(7), "if(<variable>)").
    """
    if value is None:
        return None
    return not (value.upper() in _OFF or value in ("0", "NOTFOUND") or value.endswith("-NOTFOUND"))


def is_word(value: str) -> bool:
    """Return whether a value is what people write for on or off; other words are taken for on, which few expect."""
    return switch(value) is False or value.upper() in _ON or value.isdecimal()
