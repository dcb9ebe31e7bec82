"""Jobs' names as a person reads them, and the filter on them. Pure.

Knows no jobs: names and filter words are plain text.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from functools import lru_cache

from rich.cells import cell_len

from stoker.model.text import clean

MAX_WORDS = 24
"""Maximum characters of the filter's words in a heading."""

MAX_NAME = 1000
"""Maximum characters of a name: more than fit on any screen."""

_TARGET_FOLDER = re.compile(r"(?<![^/\s])CMakeFiles/([^/\s]+)\.dir/")
_UPWARDS = re.compile(r"(?<![^/\s])(?!__/)[^/\s]+/__/")
"""What CMake puts into an object's path: a folder for its target, and `__` instead of `..`."""

_MOST_FOLDERS = 16

_OBJECT = re.compile(r"(?<=.)(?:\.\w{1,4})?\.o(?:bj)?$")
"""The suffixes of an object, which all of a build's jobs share."""

_PARTS = re.compile(r"(?<=\w)[._-]")


@lru_cache(4096)
def plain_name(text: str) -> str:
    """Return an output, or a text that names some, sanitised and without the folders that CMake adds for its targets:
    `a/CMakeFiles/t.dir/__/b/c.cpp.o` becomes `b/c.cpp.o`."""
    name = clean(text, MAX_NAME)
    shorter = _TARGET_FOLDER.sub("", name)
    if shorter == name:
        return name
    for _ in range(_MOST_FOLDERS):
        name, shorter = shorter, _UPWARDS.sub("", shorter, count=1)
        if name == shorter:
            break
    return shorter.replace("__/", "") if shorter.startswith("__/") else shorter


def distinct_names(outputs: Iterable[str]) -> Mapping[str, str]:
    """Return each output's plain name. If several have the same one, their CMake targets follow it, or if those are the
    same too, each is whole."""
    alike: dict[str, dict[str, str]] = {}
    for output in outputs:
        name = plain_name(output)
        targets = ", ".join(_TARGET_FOLDER.findall(clean(output, MAX_NAME)))
        alike.setdefault(name, {})[output] = f"{name} ({targets})" if targets else name
    names: dict[str, str] = {}
    for name, longer in alike.items():
        if len(longer) == 1:
            names[next(iter(longer))] = name
        elif len({*longer.values()}) == len(longer):
            names |= longer
        else:
            names |= {output: clean(output, MAX_NAME) for output in longer}
    return names


def stem(name: str) -> str:
    """Return a name without the suffixes of an object: `kernel_42.cpp.o` becomes `kernel_42`."""
    return _OBJECT.sub("", name)


def short_name(name: str, width: int, others: Collection[str], mark: str) -> str:
    """Return an object's name without its suffixes, in at most `width` cells if that is possible and no stem of
    the `others` begins like it: whole, or as many of its first parts as fit."""
    whole = stem(name)
    if cell_len(whole) <= width:
        return whole
    for end in reversed([part.start() for part in _PARTS.finditer(whole)]):
        head = whole[:end]
        if cell_len(head + mark) <= width and not any(o != whole and o.startswith(head) for o in others):
            return head + mark
    return whole


def found_text(title: str, words: str, found: int, every: int) -> str:
    """Return the heading of a list: its title, or with a filter how many of its entries match."""
    return f"{found} of {every} match '{clean(words, MAX_WORDS)}'" if words else title


def matches(words: str, *texts: str) -> bool:
    """Return whether each word occurs in one of the texts; case matters only if `words` has capitals."""
    exact = words != words.lower()
    places = texts if exact else tuple(text.lower() for text in texts)
    return all(any(word in place for place in places) for word in words.split())
