"""Asks a program from time to time without blocking the loop: starts it, reads a bit at each look, ends it when late.

Does not know what the program is asked for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import subprocess
import time
from collections.abc import Mapping, Sequence

MAX_ANSWER = 256 * 1024
"""Bytes of an answer that are read: a thousand hosts of 256 characters each."""

AGAIN_LOOKS, AGAIN_SECONDS = 150, 0.02
"""How often an ended build looks for a last answer, and the seconds between two looks."""

LATE_SECONDS = 10.0
"""A program that takes longer is ended: one that finds hosts by multicast DNS takes up to a few seconds."""


class BackgroundQuestion:
    """Asks the same question every `every` seconds. Never blocks."""

    def __init__(self, every: float) -> None:
        self._every = every
        self._process: subprocess.Popen[bytes] | None = None
        self._asked_at = 0.0
        self._data = bytearray()

    def look(self, command: Sequence[str], env: Mapping[str, str]) -> str | None:
        """Return what the program has printed, once it has succeeded; None while there is no new answer.

        Starts the program when that is due. One that cannot be started, fails or is late counts as an empty answer.
        """
        if self._process is None:
            if self._asked_at and time.monotonic() - self._asked_at < self._every:
                return None
            self._asked_at = time.monotonic()
            return self._start(command, env)
        return self._read(self._process)

    def _start(self, command: Sequence[str], env: Mapping[str, str]) -> str | None:
        self._data.clear()
        try:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.DEVNULL,
                env=dict(env),
                cwd="/",
            )
        except (OSError, ValueError):
            return ""
        if self._process.stdout is not None:
            os.set_blocking(self._process.stdout.fileno(), False)
        return None

    def _read(self, process: subprocess.Popen[bytes]) -> str | None:
        ended = process.poll() is not None
        with contextlib.suppress(OSError):
            while process.stdout and len(self._data) < MAX_ANSWER and (more := process.stdout.read(MAX_ANSWER)):
                self._data += more
        if not ended and time.monotonic() - self._asked_at < LATE_SECONDS and len(self._data) < MAX_ANSWER:
            return None
        well = ended and process.returncode == 0
        self.close()
        return self._data[:MAX_ANSWER].decode(errors="replace") if well else ""

    async def again(self, command: Sequence[str], env: Mapping[str, str]) -> str | None:
        """Ask the program now and return its answer; None if that takes longer than about three seconds."""
        self.close()
        self._asked_at = 0.0
        for _ in range(AGAIN_LOOKS):
            if (answer := self.look(command, env)) is not None:
                return answer
            await asyncio.sleep(AGAIN_SECONDS)
        return None

    def close(self) -> None:
        """End the program if it still runs."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.poll() is None:
            process.kill()
        process.wait()
        if process.stdout is not None:
            process.stdout.close()
