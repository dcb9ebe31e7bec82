"""Launchers that have another machine compile: how they show in a command line and among processes. Pure.

Unaware of whether any machine is there.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Mapping, Sequence

from stoker.model.remote import RemoteKind
from stoker.sense.commands.shell import shell_text, split_commands

LAUNCHERS: Mapping[str, RemoteKind] = {"distcc": "distcc", "icecc": "icecream", "sccache": "sccache"}
"""The programs, which the kernel calls by the same names."""

_MASQUERADES: Mapping[str, RemoteKind] = {"distcc": "distcc", "icecc": "icecream", "icecream": "icecream"}
"""Folders with links to a launcher that bear the names of compilers: /usr/lib/distcc/g++, /usr/lib/icecc/bin/g++."""

_BEFORE = frozenset(("ccache", "sccache", "env", "nice", "ionice", "time", "nohup", "setsid", "exec"))
"""What may stand before such a launcher; its options and NAME=VALUE words, too."""

_WORD_BEFORE = re.compile(r"-|\d|\w+=")


def sent_by(argv: Sequence[str]) -> RemoteKind | None:
    """Return the engine whose launcher stands before a compiler in this command line, None if none does."""
    if not any(name in word for word in argv for name in LAUNCHERS):
        return None
    text = shell_text(argv)
    commands = [tuple(argv)] if text is None else split_commands(text)
    return next((kind for command in commands if (kind := _launcher(command)) is not None), None)


def _launcher(command: Sequence[str]) -> RemoteKind | None:
    found: RemoteKind | None = None
    for word in command:
        name = os.path.basename(word)
        if name in LAUNCHERS:
            found = LAUNCHERS[name]  # of several the innermost sends: a cache asks it for what it has not
        elif masquerade := _masquerade(word):
            return masquerade
        elif name not in _BEFORE and not _WORD_BEFORE.match(word):
            return found
    return found


def _masquerade(word: str) -> RemoteKind | None:
    folder, _, last = os.path.dirname(word).rpartition("/")
    return _MASQUERADES.get(os.path.basename(folder) if last == "bin" else last)
