"""The alternatives of a rule's expression, to see that each has a use."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from re import _constants, _parser  # type: ignore[attr-defined]  # the only way to look inside of a pattern
from typing import Any

Path = tuple[int, ...]
"""Where an alternative stands: the number of its element, of the alternative taken there, of the element in it..."""

_TOKEN = re.compile(r"\\.|\[\^?\]?(?:\\.|[^\]\\])*\]|.", re.DOTALL)
_REPEATS = (_constants.MAX_REPEAT, _constants.MIN_REPEAT, _constants.POSSESSIVE_REPEAT)
_LEFT_OUT = -1
"""The choice of a repetition that may be empty to be so."""

_GROUPS = (_constants.SUBPATTERN, _constants.ATOMIC_GROUP)


def alternatives(pattern: str) -> list[str]:
    """Return the expressions between which a pattern as a whole chooses; it alone, where it does not choose."""
    found, depth = [""], 0
    for token in _TOKEN.findall(pattern):
        depth += {"(": 1, ")": -1}.get(token, 0)
        if token == "|" and depth == 0:
            found.append("")
        else:
            found[-1] += token
    return found


def ways(pattern: str) -> list[str]:
    """Return a line for each alternative anywhere in a pattern that takes it, with `~` for what may be anything.

    A part that may be left out is an alternative to none.
    """
    parsed = _parser.parse(pattern)
    taken = [{path[:at]: path[at] for at in range(len(path))} for path in _branches(parsed, ())]
    return [_line(parsed, choices, ()) for choices in taken]


def _branches(parsed: Any, at: Path) -> Iterator[Path]:
    for number, (kind, argument) in enumerate(parsed):
        here = (*at, number)
        if kind is _constants.BRANCH:
            for choice, inside in enumerate(argument[1]):
                yield (*here, choice)
                yield from _branches(inside, (*here, choice))
        elif kind in (*_REPEATS, *_GROUPS):
            if kind in _REPEATS and argument[0] == 0:
                yield (*here, _LEFT_OUT)
            yield from _branches(_inside(kind, argument), here)


def _line(parsed: Any, choices: Mapping[Path, int], at: Path) -> str:
    line = ""
    for number, (kind, argument) in enumerate(parsed):
        here = (*at, number)
        if kind is _constants.BRANCH:
            choice = choices.get(here, 0)
            line += _line(argument[1][choice], choices, (*here, choice))
        elif kind in _REPEATS and choices.get(here) != _LEFT_OUT:
            line += _line(argument[2], choices, here) * max(1, argument[0])
        elif kind in _GROUPS:
            line += _line(_inside(kind, argument), choices, here)
        elif kind is _constants.LITERAL:
            line += chr(argument)
        elif kind is _constants.IN:
            line += chr(argument[0][1]) if argument[0][0] is _constants.LITERAL else "~"
        elif kind in (_constants.ANY, _constants.NOT_LITERAL):
            line += "~"
    return line


def _inside(kind: Any, argument: Any) -> Any:
    return argument if kind is _constants.ATOMIC_GROUP else argument[-1]
