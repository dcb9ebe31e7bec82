"""Runs a script in another Python: in a clean subprocess, with a time limit. Knows nothing of what the script does."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

MARK = "stoker-answer:"
"""Begins a line with an answer: imported packages may print anything."""

AFTER_KILL_SECONDS = 5.0
"""A killed process ends at once, unless it sleeps in a driver from which no signal wakes it."""

_MAX_OUTPUT = 1 << 20
_TAIL = 400


_START = "import sys; sys.path[:] = [p for p in sys.path if p]; exec(compile(sys.argv.pop(1), '<stoker>', 'exec'))"
"""Leaves out the current folder, as `-P` does since Python 3.11, but not packages installed with `pip install --user`,
which `-I` would leave out."""


class NoProbeAnswerError(Exception):
    """The script gave no answer; the message says why, for a person."""


def python_of(environment: Mapping[str, str]) -> str:
    """Return the Python of the person's environment: that of the active virtual or conda environment, otherwise the
    first on PATH.

    Stoker itself may be installed in another environment, where the built package is not installed.
    """
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        python = Path(environment.get(variable, "")) / "bin" / "python"
        if environment.get(variable) and os.access(python, os.X_OK):
            return str(python)
    return shutil.which("python3", path=environment.get("PATH")) or "/usr/bin/python3"


def ask(python: str, script: str, words: Sequence[str], environment: Mapping[str, str], seconds: float) -> Any:
    """Return the last JSON value that the script prints; raises NoProbeAnswerError. Otherwise like `hear`."""
    values, ended = hear(python, script, words, environment, seconds)
    if not values:
        raise NoProbeAnswerError(ended)
    return values[-1]


def hear(
    python: str, script: str, words: Sequence[str], environment: Mapping[str, str], seconds: float
) -> tuple[list[Any], str]:
    """Return the JSON values that the script prints after MARK, one per line, and how it ended; raises
    NoProbeAnswerError.

    It runs as a person would start it, but neither PYTHON variables nor the current folder can replace a package. When
    the time is over, it and everything it started are killed; what it has printed by then counts.
    """
    clean = {k: v for k, v in environment.items() if not k.startswith("PYTHON")}
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                [python, "-c", _START, script, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=clean,
                cwd="/",
                start_new_session=True,
            )
        except OSError as err:
            raise NoProbeAnswerError(f"{python} cannot be started ({err.strerror})") from err
        status = _wait(process, seconds)
        output.seek(0, os.SEEK_END)
        output.seek(max(0, output.tell() - _MAX_OUTPUT))
        text = output.read().decode("utf-8", "replace")
    return list(_values(text)), f"no answer in {seconds:g} s" if status is None else _ended(text, status)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int | None:
    """Return the exit status; None if the process had to be killed."""
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        # The group outlives its leader if that has left something running; an empty group is no error.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        with contextlib.suppress(subprocess.TimeoutExpired):
            process.wait(AFTER_KILL_SECONDS)


def _values(text: str) -> Iterator[Any]:
    for line in text.splitlines():
        if line.startswith(MARK):
            with contextlib.suppress(ValueError, RecursionError):
                yield json.loads(line.removeprefix(MARK))


def _ended(text: str, status: int) -> str:
    last = next((li.strip() for li in reversed(text.splitlines()) if li.strip() and not li.startswith(MARK)), "")
    ended = f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
    return f"{ended}{': ' if last else ''}{last[-_TAIL:]}"
