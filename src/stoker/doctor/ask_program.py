"""Runs other programs without trusting them: a time limit, a bound on their output, nothing left running.

Unaware of what they are asked.
"""

from __future__ import annotations

import contextlib
import os
import select
import signal
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

MAX_OUTPUT = 1 << 18
"""Bytes kept of a program's output; a compiler's version has a few hundred."""

T = TypeVar("T")


class Answer(NamedTuple):
    """What a program wrote to stdout and stderr, and what went wrong: empty if it ended with status 0.

    `late` is True if it ran out of time: that says little about the program on a busy machine.
    """

    text: str
    problem: str = ""
    late: bool = False


class LateError(Exception):
    """Something did not end in time."""


def ask(argv: Sequence[str], env: Mapping[str, str], seconds: float, given: bytes = b"") -> Answer:
    """Run a program in the C locale with `given` (less than a pipe holds) as its input. Never raises OSError."""
    try:
        process = subprocess.Popen(
            argv,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            env={**env, "LC_ALL": "C"},
            start_new_session=True,
        )
    except (OSError, ValueError) as err:
        return Answer("", f"it cannot be started ({getattr(err, 'strerror', None) or err})")
    assert process.stdin is not None  # noqa: S101  (both are pipes)
    assert process.stdout is not None  # noqa: S101
    with contextlib.suppress(BrokenPipeError):
        process.stdin.write(given)
        process.stdin.close()
    deadline = time.monotonic() + seconds
    try:
        said = _read(process.stdout.fileno(), deadline)
        if len(said) >= MAX_OUTPUT:
            return Answer("", f"it says more than {MAX_OUTPUT // 1024} KiB")
        text = said.decode("utf-8", "replace")
        status = process.wait(max(0.01, deadline - time.monotonic()))
    except subprocess.TimeoutExpired:
        return Answer("", f"no answer in {seconds:g} s", late=True)
    finally:
        # The group outlives its leader when that has left something running; an empty group is no error.
        with contextlib.suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
    return Answer(text, _ended(status, text))


def _read(descriptor: int, deadline: float) -> bytes:
    """Return what is printed until the end, the deadline or the bound."""
    poll = select.poll()
    poll.register(descriptor, select.POLLIN | select.POLLHUP)
    said = bytearray()
    while len(said) < MAX_OUTPUT and (remaining := deadline - time.monotonic()) > 0:
        if not poll.poll(remaining * 1000):
            break
        data = os.read(descriptor, 65536)
        if not data:
            break
        said += data
    return bytes(said)


def _ended(status: int, text: str) -> str:
    if status == 0:
        return ""
    last = next((line.strip() for line in reversed(text.splitlines()) if line.strip()), "")[:200]
    how = f"it was ended by signal {-status}" if status < 0 else f"it ended with status {status}"
    return f"{how}{': ' if last else ''}{last}"


class Later(Generic[T]):
    """A call that runs in parallel, in a daemon thread: one that never returns cannot hold up the end.

    (A dead file server and a hung driver do not return, whatever signal they get.)
    """

    def __init__(self, task: Callable[[], T]) -> None:
        self._task = task
        self._value: list[T] = []
        self._error: Exception | None = None
        self._thread = threading.Thread(target=self._work, daemon=True)
        self._thread.start()

    def result(self, seconds: float) -> T:
        """Return its value, or raise the exception that it ended with. Raises LateError after `seconds`."""
        self._thread.join(seconds)
        if self._error is not None:
            raise self._error
        if not self._value:
            raise LateError(f"no answer in {seconds:g} s")
        return self._value[0]

    def ended(self, seconds: float) -> bool:
        """Return whether it has come to an end, after `seconds` at most."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _work(self) -> None:
        try:
            self._value.append(self._task())
        except Exception as err:  # noqa: BLE001  (it is raised where the value is asked for)
            self._error = err
