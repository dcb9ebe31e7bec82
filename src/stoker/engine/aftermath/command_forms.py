"""Compares a process's arguments with a command as its scheduler prints it.

Unaware of jobs and of what became of them.
"""

from __future__ import annotations

import shlex
from collections.abc import Collection

Words = tuple[str, ...]


def said(argv: Words) -> Words:
    """Return a job's arguments in the scheduler's own form: for `sh -c TEXT` the text alone."""
    return (argv[2],) if argv[1:2] == ("-c",) and len(argv) == 3 else argv


def forms(command: str) -> Collection[Words]:
    """Return what a printed command may run as: itself, or the arguments of the program that its shell has exec'ed."""
    if not command:
        return ()
    try:
        return ((command,), tuple(shlex.split(command)))
    except ValueError:
        return ((command,),)
