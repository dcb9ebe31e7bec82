"""Writes to a stream that may block, lose its reader, or lack some characters in its encoding. Knows no builds."""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import Sequence
from typing import TextIO


class Sink:
    """Writes lines to stdout or stderr in a thread, so that a slow reader blocks nothing else.

    After the first error, which `error` then holds, it writes nothing more: the reader may be `| head`.
    """

    def __init__(self, stream: TextIO) -> None:
        self._stream = stream
        self.error: OSError | None = None

    @property
    def broken(self) -> bool:
        """True once a write has failed."""
        return self.error is not None

    async def write(self, lines: Sequence[str]) -> None:
        """Write lines, each with a newline, and flush. Never raises OSError."""
        await self.send("".join(f"{line}\n" for line in lines))

    async def send(self, text: str) -> None:
        """Write text as it is, and flush. Never raises OSError."""
        if not text or self.broken:
            return
        try:
            await asyncio.to_thread(self._write, text)
        except OSError as err:
            self.error = err
            self._silence()

    def _write(self, text: str) -> None:
        encoding = getattr(self._stream, "encoding", None) or "utf-8"
        self._stream.write(text.encode(encoding, "replace").decode(encoding))
        self._stream.flush()

    def _silence(self) -> None:
        """Redirect the stream to /dev/null, so that the interpreter's flush at exit does not fail again."""
        with contextlib.suppress(OSError, ValueError):
            descriptor = self._stream.fileno()
            null = os.open(os.devnull, os.O_WRONLY)
            os.dup2(null, descriptor)
            os.close(null)
