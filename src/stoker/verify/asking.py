"""Asks another Python a question: a script in a clean subprocess, with a time limit. Unaware of what is asked."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

MARK = "stoker-answer:"
"""Starts the line that holds the answer: imported packages may print whatever they like."""

_MAX_OUTPUT = 1 << 20
_TAIL = 400


class NoAnswerError(Exception):
    """The question was not answered; the message says why, for a person."""


def python_of(environment: Mapping[str, str]) -> str:
    """The Python of the person's environment: the active virtual or conda environment's, else the first on PATH.

    Stoker itself may live in an environment of its own, where what was built is not installed.
    """
    for variable in ("VIRTUAL_ENV", "CONDA_PREFIX"):
        python = Path(environment.get(variable, "")) / "bin" / "python"
        if environment.get(variable) and os.access(python, os.X_OK):
            return str(python)
    return shutil.which("python3", path=environment.get("PATH")) or "/usr/bin/python3"


def ask(python: str, script: str, words: Sequence[str], environment: Mapping[str, str], seconds: float) -> Any:
    """The JSON value that the script prints after MARK; raises NoAnswerError.

    It runs isolated (`-I`): neither PYTHONPATH nor the current folder can put another package in the way. When the
    time is over, it and everything it started is killed.
    """
    clean = {k: v for k, v in environment.items() if not k.startswith("PYTHON")}
    with tempfile.TemporaryFile() as output:
        try:
            process = subprocess.Popen(
                [python, "-I", "-c", script, *words],
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                env=clean,
                cwd="/",
                start_new_session=True,
            )
        except OSError as err:
            raise NoAnswerError(f"{python} cannot be started ({err.strerror})") from err
        status = _wait(process, seconds)
        output.seek(0, os.SEEK_END)
        output.seek(max(0, output.tell() - _MAX_OUTPUT))
        text = output.read().decode("utf-8", "replace")
    return _answer(text, status)


def _wait(process: subprocess.Popen[bytes], seconds: float) -> int:
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired as err:
        raise NoAnswerError(f"no answer in {seconds:.0f} s") from err
    finally:
        # The group outlives its leader when that has left something running; an empty group is no error.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answer(text: str, status: int) -> Any:
    for line in reversed(text.splitlines()):
        if line.startswith(MARK):
            try:
                return json.loads(line.removeprefix(MARK))
            except ValueError:
                break
    last = next((li.strip() for li in reversed(text.splitlines()) if li.strip()), "")[-_TAIL:]
    ended = f"ended by signal {-status}" if status < 0 else f"ended with status {status}"
    raise NoAnswerError(f"{ended}{': ' if last else ''}{last}")
