"""stdin, stdout and stderr: open even if our parent has closed them, and harmless to every terminal.

Everything that this program prints goes through here, so no name, message or traceback sends anything but colours to a
terminal. Unaware of what is printed.
"""

from __future__ import annotations

import contextlib
import io
import locale
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any, TextIO, cast

from stoker.model.text import harmless
from stoker.show.ascii import to_ascii

ENVIRON = Path("/proc/self/environ")
LOCALE_VARIABLES = ("LC_ALL", "LC_CTYPE", "LANG")
"""What says in which characters a terminal writes, in the order in which they count (POSIX, 8.2)."""


class HarmlessStream:
    """A text stream behind the sanitiser. For the terminal of an ASCII locale what it cannot show is replaced, too."""

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self._ascii_only = stream.isatty() and locale_is_ascii()

    def write(self, text: str) -> int:
        """Write what is harmless of `text`; gives the length of all of it."""
        shown = harmless(text)
        self._stream.write(to_ascii(shown) if self._ascii_only else shown)
        return len(text)

    def writelines(self, lines: Iterable[str]) -> None:
        """Write one after the other."""
        for line in lines:
            self.write(line)

    def __getattr__(self, name: str) -> Any:
        """Leave all but writing text to the stream."""
        return getattr(self._stream, name)


def fill() -> None:
    """Open /dev/null in place of closed streams (a file that took the number of stdout would be written over), and put
    the sanitiser before what is printed. What the locale has no character for becomes a question mark.

    Who shares a pipe with us may have set it to refuse what does not fit at once: then most of a long answer was lost.
    """
    for number in (0, 1, 2):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # takes the lowest number that is free: this one
    for number in (1, 2):
        with contextlib.suppress(OSError):
            os.set_blocking(number, True)
    if sys.stdin is None:
        sys.stdin = open(0, encoding="utf-8", closefd=False)  # noqa: SIM115  (for as long as the program runs)
    if sys.stdout is None:
        sys.stdout = open(1, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if sys.stderr is None:
        sys.stderr = open(2, "w", encoding="utf-8", closefd=False)  # noqa: SIM115
    if isinstance(sys.stdout, io.TextIOWrapper) and sys.stdout.errors == "strict":
        sys.stdout.reconfigure(errors="replace")
    sys.stdout, sys.stderr = _behind_sanitiser(sys.stdout), _behind_sanitiser(sys.stderr)


def _behind_sanitiser(stream: TextIO) -> TextIO:
    return stream if isinstance(stream, HarmlessStream) else cast("TextIO", HarmlessStream(stream))


def locale_is_ascii() -> bool:
    """Say whether the locale cannot show block characters.

    Python takes UTF-8 for the C locale (PEP 538, PEP 540) and changes the environment accordingly; the terminal does
    not know of that. So the environment that the program was started in counts.
    """
    if "utf" not in locale.nl_langinfo(locale.CODESET).lower():
        return True
    given = _environment_at_start()
    name = next((value for variable in LOCALE_VARIABLES if (value := given.get(variable))), "C")
    return name in ("C", "POSIX")


def _environment_at_start() -> dict[str, str]:
    try:
        data = ENVIRON.read_bytes()
    except OSError:
        return dict(os.environ)
    pairs = (item.partition(b"=") for item in data.split(b"\0"))
    return {os.fsdecode(name): os.fsdecode(value) for name, _, value in pairs}


def write_bytes(data: bytes) -> None:
    """Every one of these bytes to stdout, past the sanitiser. A stop and its end (Ctrl-Z, fg) may cut a write short."""
    rest = memoryview(data)
    while rest:
        rest = rest[sys.stdout.buffer.write(rest) :]


def give_up_output() -> None:
    """What is still kept for stdout can go nowhere, and the interpreter must not complain of it at its end."""
    with contextlib.suppress(OSError):
        sys.stdout.flush()
        return
    nowhere = os.open(os.devnull, os.O_WRONLY | os.O_CLOEXEC)
    os.dup2(nowhere, 1)
    os.close(nowhere)
