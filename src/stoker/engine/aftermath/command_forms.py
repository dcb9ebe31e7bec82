"""Whether a process's arguments are those of a command as its scheduler prints it.

Unaware of jobs and of what became of them.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection

Words = tuple[str, ...]


def said(argv: Words) -> Words:
    """A job's arguments in the scheduler's own words: of `sh -c TEXT` the text alone."""
    return (argv[2],) if argv[1:2] == ("-c",) and len(argv) == 3 else argv


def forms(command: str) -> Collection[Words]:
    """What `said` may give for a printed command: itself, or the arguments of a program its shell has made way for."""
    if not command:
        return ()
    try:
        return ((command,), tuple(shlex.split(command)))
    except ValueError:
        return ((command,),)
