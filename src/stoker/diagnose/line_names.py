"""The names in a line that a remedy may repeat: a header, a module, a library. Knows nothing of rules or logs.

People paste a remedy into a shell, and a line of a build's output may contain anything. So every name has a kind, and a
name that does not look like its kind is not repeated: the remedy has the kind in capitals instead (HEADER).
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from stoker.diagnose.log_values import UNKNOWN
from stoker.diagnose.near_names import NEAR_KINDS

_PART = r"[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}"
_ANY_PART = rf"\.?{_PART}"
_PATH = rf"(?:\.\./){{0,8}}/?{_ANY_PART}(?:/{_ANY_PART}){{0,30}}"
"""A path, which may begin above the current folder; a hidden folder may be in it (.venv)."""

KINDS: Mapping[str, re.Pattern[str]] = {
    "architecture": re.compile(r"(?:sm|compute)_[0-9]{2,3}[af]?"),
    "file": re.compile(_PATH),
    "header": re.compile(rf"{_PART}(?:/{_PART}){{0,12}}"),
    "host": re.compile(r"[A-Za-z0-9][A-Za-z0-9.-]{0,252}"),
    "library": re.compile(_PART),
    "module": re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}(?:\.[A-Za-z_][A-Za-z0-9_]{0,63}){0,7}"),
    "number": re.compile(r"[0-9]{1,9}"),
    "option": re.compile(r"--?[A-Za-z][A-Za-z0-9_.+=-]{0,99}"),
    "package": re.compile(_PART),
    "path": re.compile(_PATH),
    "program": re.compile(_PART),
    "script": re.compile(_PATH),
    "symbol": re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,199}(?:::~?[A-Za-z_][A-Za-z0-9_]{0,199}){0,12}"),
    "target": re.compile(_PART),
    "url": re.compile(rf"https?://[A-Za-z0-9][A-Za-z0-9.-]{{0,252}}(?::[0-9]{{1,5}})?(?:/{_PART}){{0,20}}/?"),
    "variable": re.compile(r"[A-Z_][A-Z0-9_]{0,63}"),
    "version": re.compile(r"[0-9][A-Za-z0-9_.+-]{0,31}"),
    "warning": re.compile(r"[A-Za-z0-9][A-Za-z0-9+=-]{0,79}"),
}
"""The pattern that a whole name of each kind must match: nothing that a shell takes for more than a word, options only
of their own kind, `..` only before a path."""

OWN = ("provider", "install", "links")
"""The project that a name belongs to, what brings it, and the options that link it: stoker's own words, for rules that
look names up."""

EACH = "each"
"""The place for what a rule repeats for every name of a kind."""

PLACE = re.compile(rf"\{{({'|'.join((*KINDS, *OWN, *NEAR_KINDS, *UNKNOWN, EACH))})\}}")
"""The place of a name or a value of the log in a remedy: `{header}`."""

OPTIONAL = re.compile(r"⟦([^⟦⟧|]*+)(?:\|([^⟦⟧]*+))?⟧")
"""Words that need all names in them, and what is said without one: `⟦curl -I {url}|the address⟧`."""


def names_in(match: re.Match[str]) -> dict[str, str]:
    """Return the names that a pattern found, by kind, except those that do not look like their kind."""
    found = match.groupdict()
    if symbol := found.get("symbol"):
        found["symbol"] = symbol.partition("(")[0]  # C++ names a function with its parameters
    return {kind: name for kind, name in found.items() if name and kind in KINDS and KINDS[kind].fullmatch(name)}


def filled(text: str, names: Mapping[str, str]) -> str:
    """Return a remedy with the names in their places; HEADER replaces an unknown header."""

    def chosen(optional: re.Match[str]) -> str:
        known = all(names.get(kind) or UNKNOWN.get(kind) for kind in PLACE.findall(optional[1]))
        return optional[1] if known else optional[2] or ""

    text = OPTIONAL.sub(chosen, text) if "⟦" in text else text
    return PLACE.sub(lambda place: names.get(place[1]) or UNKNOWN.get(place[1], place[1].upper()), text)
