"""A process's arguments -> what it works on, in a few words: `sm_90 attention.cu`, `parser.cpp`, `libfoo.so`. Pure.

Unaware of processes. If the arguments name no file, it is the command itself.
"""

from __future__ import annotations

import os.path
import re
from collections.abc import Sequence
from itertools import pairwise

from stoker.model.job_tree import MAX_TASK
from stoker.sense.commands.classify import SOURCES, describe
from stoker.sense.commands.shell import shell_text, simple_commands

MAX_ARGUMENTS = 4096
"""Arguments that are read: a linker gets tens of thousands, and its output is among the first."""

MOST_ARCHS = 3
"""GPU architectures that are named; if there are more, only their number is given."""

_ARCH = re.compile(r"(?<![a-z0-9_])(?:sm|compute)_(\d{2,3}[af]?)(?![0-9a-z])")
_MADE = (".o", ".obj", ".so", ".a", ".ptx", ".cubin", ".fatbin", ".ii", ".s", ".gch", ".pch")
_NAMED_SOURCE = ("--orig_src_file_name", "-dumpbase", "-main-file-name")
"""Options by which compiler drivers pass the name that a person knows to passes that work on temporary files. The
assembler gets no such name, and a source that nobody knows: there the output says more."""


def task_of(argv: Sequence[str]) -> str:
    """Return what a process with these arguments works on, in at most MAX_TASK characters; for a shell what it has
    started."""
    args = argv[1 : MAX_ARGUMENTS + 1]
    if shell_text(argv) is not None:
        started = (command.argv for command in simple_commands(argv))
        named = (f"{os.path.basename(words[0])} {task}" for words in started if (task := _file(words)))
        return next(named, describe(argv))[:MAX_TASK]
    file = _file(argv[: MAX_ARGUMENTS + 1])
    if not file:
        return " ".join(describe(argv).split(" ")[1:])[:MAX_TASK]
    return " ".join([*_archs(args), file])[:MAX_TASK]


def _archs(args: Sequence[str]) -> list[str]:
    """The GPU architectures that are named, without repetition."""
    found = dict.fromkeys(match.group() for arg in args for match in _ARCH.finditer(arg[:MAX_TASK]))
    chips = [name for name in found if name.startswith("sm_")] or list(found)
    return [*chips[:MOST_ARCHS], *([f"+{len(chips) - MOST_ARCHS}"] if len(chips) > MOST_ARCHS else [])]


def _without_twice(name: str) -> str:
    """Return the name without its last suffix, if it has that twice: gcc passes on `a.cpp.cpp` for an output
    `a.cpp.o`."""
    stem, ending = os.path.splitext(name)
    return stem if ending and stem.endswith(ending) else name


def _file(argv: Sequence[str]) -> str:
    """Return the name of the source, otherwise of the output, otherwise of the input; empty if no argument is a
    file."""
    args = argv[1:]
    for option, value in pairwise(args):
        if option in _NAMED_SOURCE and value.endswith(SOURCES):
            return _without_twice(os.path.basename(value))
    files = [arg for arg in args if not arg.startswith("-")]
    source = next((arg for arg in reversed(files) if arg.endswith(SOURCES)), "")
    made = next((value for option, value in pairwise(args) if option in ("-o", "--output-file")), "")
    other = next((arg for arg in files if arg.endswith(_MADE) or ".so." in arg), "")
    first = (made, source) if os.path.basename(argv[0]) == "as" else (source, made)
    return os.path.basename(next(filter(None, (*first, other)), ""))
