"""stdin, stdout and stderr where whoever started us has closed them, or their disk is full. Unaware of what is said."""

from __future__ import annotations

import contextlib
import io
import os
import sys


def fill() -> None:
    """Open /dev/null in place of closed ones: a file that took the number of stdout would be written over.

    What the locale has no character for becomes a question mark.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  (for as long as the program runs)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")


def give_up_output() -> None:
    """What is still kept for stdout can go nowhere, and the interpreter must not complain of it at its end."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        return
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(nowhere, 1)
    os.close(nowhere)
