"""How much a link or an archive can hold, by the sizes of the files that it reads; tools that hold next to nothing.

Reads sizes of files, through the job's own process: it may be in a container. Unaware of what is expected otherwise.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence

from stoker.sense.commands.classify import is_light, link_script
from stoker.sense.commands.shell import SimpleCommand, simple_commands

LIGHT = 8 * 2**20
"""Bytes of a job that copies, links or removes files."""

LINK_BASE, LINK_FACTOR = 32 * 2**20, 3.0
"""A linker maps its inputs and builds its output in memory; ld.bfd takes up to twice their sum."""

ARCHIVE_BASE, ARCHIVE_FACTOR = 8 * 2**20, 2.0
"""llvm-ar holds its inputs and the result, GNU ar a member at a time."""

MOST_FILES = 2000
"""Inputs that are looked at; the rest are taken to be as large on average."""

MOST_TEXT = 2**20
"""Bytes of a response file or a link script that are read."""

_INPUTS = (".o", ".obj", ".lo", ".a", ".so", ".lib", ".dylib", ".bc")

_UNKNOWN = ("-flto", "-dlink", "--device-link", "nvlink", "-fuse-linker-plugin", "-plugin-opt")
"""Options and programs of links that compile: their inputs say little."""


def held_at_most(argv: Sequence[str], tool: str, pid: int) -> float | None:
    """Return the bytes that a job can hold at most, by what it reads; None if nothing says so."""
    if is_light(argv):
        return LIGHT
    if tool not in ("link", "archive"):
        return None
    words = list(_words(argv, pid))
    if tool == "link" and any(word.rsplit("/", 1)[-1].startswith(_UNKNOWN) for word in words):
        return None
    inputs = [word for word in words if word.endswith(_INPUTS) or ".so." in word]
    sizes = [size for word in inputs[:MOST_FILES] if (size := _size(word, pid)) is not None]
    # The output may lie there from an earlier run, and then counts too; without one input, nothing is known.
    if not sizes:
        return None
    base, factor = (LINK_BASE, LINK_FACTOR) if tool == "link" else (ARCHIVE_BASE, ARCHIVE_FACTOR)
    return base + factor * sum(sizes) * len(inputs) / len(sizes)


def _words(argv: Sequence[str], pid: int) -> Iterator[str]:
    """Yield the words of a job's commands, and of the files that hold more of them."""
    script = link_script(argv)
    commands = simple_commands(("sh", "-c", _text(script, pid))) if script else simple_commands(argv)
    for command in commands:
        for word in command.argv:
            if word.startswith("@"):
                yield from (_placed(inner.strip("\"'"), command) for inner in _text(word[1:], pid).split())
            else:
                yield _placed(word, command)


def _placed(word: str, command: SimpleCommand) -> str:
    """Return an input as the job's process would call it: after a `cd`, in that folder."""
    return os.path.join(command.directory, word) if command.directory and word.endswith(_INPUTS) else word


def _path(name: str, pid: int) -> str:
    return f"/proc/{pid}/root{name}" if name.startswith("/") else f"/proc/{pid}/cwd/{name}"


def _size(name: str, pid: int) -> int | None:
    try:
        return os.stat(_path(name, pid)).st_size
    except (OSError, ValueError):
        return None


def _text(name: str, pid: int) -> str:
    try:
        with open(_path(name, pid), encoding="utf-8", errors="replace") as file:
            return file.read(MOST_TEXT)
    except (OSError, ValueError):
        return ""
