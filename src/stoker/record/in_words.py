"""A command and its folder on one line, however narrow, so that builds can be distinguished. Pure."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence

from stoker.model.text import clean

MAX_SHOWN = 10_000
"""Characters of a command and of a folder; a command may have megabytes."""

BETWEEN = " in "


def in_words(command: Sequence[str], folder: str, width: int) -> str:
    """Return `ninja -C build in /home/ann/pytorch` in at most `width` characters, which must be 16 or more.

    If that is too little: the program's own name; the last folders, in half of it or in what the command leaves; and
    both ends of the command.
    """
    where = clean(folder, MAX_SHOWN)
    text = f"{_joined(command)}{BETWEEN}{where}"
    if len(text) <= width:
        return text
    what = _joined([*(os.path.basename(word) or word for word in command[:1]), *command[1:]])
    room = width - len(BETWEEN)
    where = _last_folders(where, max(room // 2, room - len(what)))
    return f"{_cut(what, room - len(where))}{BETWEEN}{where}"


def _joined(command: Sequence[str]) -> str:
    return clean(shlex.join(command), MAX_SHOWN)


def _last_folders(path: str, width: int) -> str:
    """Return `path` in at most `width` characters: as many of its last folders as fit completely, and always the last
    one."""
    if len(path) <= width:
        return path
    *folders, kept = path.strip("/").split("/")
    kept = _cut(kept, width - 2)
    for folder in reversed(folders):
        if len(folder) + len(kept) + 3 > width:
            break
        kept = f"{folder}/{kept}"
    return f"…/{kept}"


def _cut(text: str, width: int) -> str:
    """`text` in at most `width` characters, cut in the middle."""
    tail = max(0, (width - 1) // 2)
    return text if len(text) <= width else f"{text[: width - 1 - tail]}…{text[len(text) - tail :]}"
