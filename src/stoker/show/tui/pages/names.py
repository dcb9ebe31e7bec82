"""Jobs' names as a person reads them, and which of many a person looks for. Pure.

Unaware of jobs: names and searched words are plain text.
"""

from __future__ import annotations

import re
from functools import lru_cache

from stoker.model.text import clean

MAX_WORDS = 24
"""Characters of the words looked for that a heading repeats."""

MAX_NAME = 1000
"""Characters of a name: more than any screen has cells for."""

_TARGET_FOLDER = re.compile(r"(?<![^/\s])CMakeFiles/[^/\s]+\.dir/")
_UPWARDS = re.compile(r"(?<![^/\s])(?!__/)[^/\s]+/__/")
"""What CMake puts into an object's path: a folder for its target, and `__` in place of `..`."""

_MOST_FOLDERS = 16


@lru_cache(4096)
def plain_name(text: str) -> str:
    """An output, or a text that names some, as harmless text without the folders that CMake makes for its targets:
    what is left of `a/CMakeFiles/t.dir/__/b/c.cpp.o` is `b/c.cpp.o`."""
    name = clean(text, MAX_NAME)
    shorter = _TARGET_FOLDER.sub("", name)
    if shorter == name:
        return name
    for _ in range(_MOST_FOLDERS):
        name, shorter = shorter, _UPWARDS.sub("", shorter, count=1)
        if name == shorter:
            break
    return shorter.replace("__/", "") if shorter.startswith("__/") else shorter


def found_text(title: str, words: str, found: int, every: int) -> str:
    """The heading of a list: its title, or while words are looked for how many of its entries have them."""
    return f"{found} of {every} match '{clean(words, MAX_WORDS)}'" if words else title


def matches(words: str, *texts: str) -> bool:
    """Whether each of the words stands in one of the texts; capitals matter only if there are any."""
    exact = words != words.lower()
    places = texts if exact else tuple(text.lower() for text in texts)
    return all(any(word in place for place in places) for word in words.split())
