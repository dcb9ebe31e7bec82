"""Reasons in as many cells as there are: whole clauses give way, the last ones first, before any word does. Pure.

A reason's first clause says what matters most (decide/policy). Unaware of what the clauses mean.
"""

from __future__ import annotations

import re

from rich.cells import cell_len

from stoker.show.tui.pages.lines import elide_middle

BREAKS = ("; ", ", ", ": ")
"""What stands between clauses."""

LEAST_NAME = 8
"""Cells below which a name with its middle cut out says nothing."""

_WITHIN = re.compile(r"(needs up to [\d.]+ \w+) (?:within [\d:]+|at once)(?=,)")
"""How soon a job would need it: of less weight than what is spare."""

_BRACKET = re.compile(r" \([^()]*\)$")


def shorter(why: str) -> str:
    """A reason without the words that a small screen has no room for."""
    return _WITHIN.sub(r"\1", why.replace(" above the reserve", ""))


def clauses(text: str, width: int, mark: str = "…") -> str:
    """`text` in at most `width` cells: without what goes without saying, folders, and clauses from the end on.

    Where not even the first clause fits, the middle of its longest name goes, and at the very last whole words.
    """
    for candidate in shortened(text):
        if cell_len(candidate) <= width:
            return candidate
    first = shortened(text)[-1]
    words = first.split(" ")
    at = max(range(len(words)), key=lambda i: cell_len(words[i]))
    room = width - (cell_len(first) - cell_len(words[at]))
    if LEAST_NAME <= room < cell_len(words[at]) and _is_name(words[at]):
        words[at] = elide_middle(words[at], room, mark)
        return " ".join(words)
    return whole_words(first, width, mark)


def shortened(text: str) -> list[str]:
    """The text, and ever shorter ways to say it in whole words."""
    found = [text, shorter(text)]
    bare = " ".join(word.rpartition("/")[2] or word for word in found[-1].split(" "))
    found.append(bare)
    while (cut := max(bare.rfind(between) for between in BREAKS)) >= 0:
        bare = bare[:cut]
        found.append(bare)
    if bracket := _BRACKET.search(bare):
        found.append(bare[: bracket.start()])
    return found


def _is_name(word: str) -> bool:
    """Whether a word is a file's name, of which both ends say something."""
    return "." in word.strip(".") or "_" in word


def whole_words(text: str, width: int, mark: str = "…") -> str:
    """`text` in at most `width` cells, cut behind a word where there is one."""
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
