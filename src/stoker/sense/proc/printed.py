"""Runs a program and returns what it prints, within a time limit and a bound. Unaware of what it is asked for."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Mapping, Sequence

MAX_PRINTED = 256 * 1024
"""Bytes of an answer that are read; sccache's statistics have 3 KiB."""


async def printed(
    command: Sequence[str], seconds: float, *, env: Mapping[str, str] | None = None, cwd: str | None = None
) -> str | None:
    """Return what a command prints; None if it cannot be started, fails, or takes more than `seconds`."""
    try:
        process = await asyncio.create_subprocess_exec(
            *command,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.DEVNULL,
            env=env,
            cwd=cwd,
        )
    except (OSError, ValueError):  # the latter for an invalid argument
        return None
    try:
        return await asyncio.wait_for(_answer(process), seconds)
    except TimeoutError:
        return None
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                process.kill()
            await process.wait()


async def _answer(process: asyncio.subprocess.Process) -> str | None:
    if process.stdout is None:
        return None
    data = await process.stdout.read(MAX_PRINTED)
    while len(data) < MAX_PRINTED and (more := await process.stdout.read(MAX_PRINTED - len(data))):
        data += more
    return data.decode(errors="replace") if await process.wait() == 0 else None
