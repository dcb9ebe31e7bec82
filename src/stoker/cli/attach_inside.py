"""`stoker attach podman://NAME[/ID]`: has the stoker inside a container show a build that runs there.

Unaware of builds. The engine's exec carries keys, colours and the exit status.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence

from stoker.cli.errors import FAILURE, NOT_FOUND, USAGE, CliError
from stoker.model.text import clean

_ADDRESS = re.compile(r"(podman|docker)://([A-Za-z0-9][\w.-]{0,254})(?:/([A-Za-z0-9][\w.-]{0,254}))?", re.ASCII)
_SCHEME = re.compile(r"[a-z]+://")

ANSWER_SECONDS = 20.0
"""Seconds for a stoker in a container to print its version; it takes half a second, and more on a busy machine."""

HANDED_ON = ("TERM", "COLORTERM", "NO_COLOR")


def is_inside(word: str | None) -> bool:
    """Return whether a word names a place rather than a build."""
    return word is not None and _SCHEME.match(word) is not None


def attach_inside(address: str, options: Sequence[str]) -> int:
    """Become the engine's exec of `stoker attach` there, with these options. Raises CliError."""
    match = _ADDRESS.fullmatch(address)
    if match is None:
        raise CliError(f"{clean(address, 80)!r} is not an address; write podman://NAME, or docker://NAME/ID", USAGE)
    engine, name, build = match.groups()
    program = shutil.which(engine)
    if program is None:
        raise CliError(f"{engine}: not found on PATH; install it", NOT_FOUND)
    _check(program, engine, name)
    terminal = ["-it"] if sys.stdin.isatty() and sys.stdout.isatty() else ["-i"]
    terminal += [word for variable in HANDED_ON if variable in os.environ for word in ("-e", variable)]
    words = [program, "exec", *terminal, name, "stoker", "attach", *options, *([build] if build else [])]
    sys.stdout.flush()
    os.execv(program, words)  # noqa: S606  (a list, and no shell)


def _check(program: str, engine: str, name: str) -> None:
    """Say in one line why there is nothing to attach to. Raises CliError."""
    try:
        asked = subprocess.run(
            [program, "exec", name, "stoker", "--version"],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ANSWER_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as err:
        raise CliError(f"{engine} does not answer; see: {engine} ps", FAILURE) from err
    if asked.returncode == 0:
        return
    said = clean(asked.stderr.strip().rpartition(b"\n")[2], 200)
    if "no such container" in said.lower() or "no container with" in said.lower():
        raise CliError(f"there is no container {name!r}; '{engine} ps' lists those that run", FAILURE)
    if "not found" in said:
        why = f"there is no stoker in container {name!r}; install it there, or start the build outside: "
        raise CliError(f"{why}stoker run -- {engine} run ...", FAILURE)
    raise CliError(f"container {name!r}: {said}", FAILURE)
