"""Shortens reasons to the available cells: drops whole clauses, the last ones first, before it cuts any word. Pure.

A reason's first clause is the most important one (decide/policy). Does not know what the clauses mean.
"""

from __future__ import annotations

import re
from collections.abc import Container

from rich.cells import cell_len

from stoker.show.tui.pages.lines import elide_middle

BREAKS = ("; ", ", ", ": ", " until ", " once ")
"""What begins a clause."""

LEAST_NAME = 8
"""Below this width, a name with its middle cut out is meaningless."""

_WITHIN = re.compile(r"(needs up to [\d.]+ \w+) (?:within [\d:]+|at once)(?=,)")
"""How soon a job would need the memory; less important than how much is unpromised."""

_LONE_WORD = re.compile(r"(?:^|[;,] )\w+$")
"""What stands before a colon and says nothing without what follows it: "last: …"."""

_BRACKET = re.compile(r" \([^()]*\)$")


def shorter(why: str) -> str:
    """Return a reason without the words that can be dropped on a small screen."""
    why = why.replace(" unpromised above the reserve", " unpromised").replace(
        " left above the reserve", " above the reserve"
    )
    return _WITHIN.sub(r"\1", why)


def clauses(text: str, width: int, mark: str = "…", whole: Container[str] = ()) -> str:
    """Return `text` in at most `width` cells: drops dispensable words, then folders, then clauses from the end on.

    Names in `whole` keep their folders. If not even the first clause fits, cuts the middle of its longest name, and
    finally drops whole words.
    """
    for candidate in shortened(text, whole):
        if cell_len(candidate) <= width:
            return candidate
    first = shortened(text, whole)[-1]
    words = first.split(" ")
    at = max(range(len(words)), key=lambda i: cell_len(words[i]))
    room = width - (cell_len(first) - cell_len(words[at]))
    if LEAST_NAME <= room < cell_len(words[at]) and _is_name(words[at]):
        words[at] = elide_middle(words[at], room, mark)
        return " ".join(words)
    return whole_words(first, width, mark)


def shortened(text: str, whole: Container[str] = ()) -> list[str]:
    """Return the text and ever shorter versions of it, in whole words. Names in `whole` keep their folders."""
    versions = [text, shorter(text)]
    words = versions[-1].split(" ")
    bare = " ".join(word if word.rstrip(",;:") in whole else word.rpartition("/")[2] or word for word in words)
    versions.append(bare)
    while (cut := max(bare.rfind(between) for between in BREAKS)) >= 0:
        label = bare.startswith(": ", cut)
        bare = bare[:cut]
        if not (label and _LONE_WORD.search(bare)):
            versions.append(bare)
    if bracket := _BRACKET.search(bare):
        versions.append(bare[: bracket.start()])
    return versions


def _is_name(word: str) -> bool:
    """Return whether a word is a file name, whose two ends are both meaningful."""
    return "." in word.strip(".") or "_" in word


def whole_words(text: str, width: int, mark: str = "…") -> str:
    """Return `text` in at most `width` cells, cut after a whole word if possible."""
    if cell_len(text) <= width:
        return text
    kept = ""
    for word in text.split(" "):
        longer = f"{kept} {word}" if kept else word
        if cell_len(longer) + cell_len(mark) > width:
            break
        kept = longer
    if kept:
        return kept.rstrip(",:;") + mark
    return elide_middle(text.split(" ", 1)[0], max(0, width), mark)
