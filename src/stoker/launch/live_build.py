"""Governs a running build: its level, a pause, its end. Asks the engine or, if none answers, sends signals.

Unaware of how a build is governed.
"""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Mapping

from stoker.act.stop import continue_build, stop_build
from stoker.config.paths import BuildPaths
from stoker.model.reduce import reduce_all
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused
from stoker.record.builds import is_live
from stoker.serve.client import BuildSource
from stoker.serve.connection import EngineClient, ForeignSocketError
from stoker.serve.protocol import NotLetInError, ProtocolError

POLL_SECONDS = 0.3

STARTING_SECONDS = 5.0
"""How long to wait for an engine that does not listen: it needs a second to start, more on a busy machine."""

ENGINE_PATIENCE_SECONDS = 3.0
"""How long an engine may take to answer: it may be stopped or gone."""

STOP_PATIENCE_SECONDS = 60.0
"""How long to wait for the end of a build: the supervisor's grace period and a machine that is short of memory."""


class SilentEngineError(Exception):
    """No engine accepted the command."""


async def ask(paths: BuildPaths, verb: str, arguments: Mapping[str, object]) -> BuildState:
    """Ask the engine, and return the resulting state. Raises CommandRefused and SilentEngineError."""
    try:
        async with asyncio.timeout(STARTING_SECONDS) as waiting:
            client = await _connected(paths)
            waiting.reschedule(asyncio.get_running_loop().time() + ENGINE_PATIENCE_SECONDS)
            async with client:
                await client.command(verb, dict(arguments))
                return reduce_all(client.waiting(), client.hello.snapshot)
    except (ForeignSocketError, NotLetInError) as err:
        raise CommandRefused(str(err)) from err
    except (OSError, ProtocolError) as err:  # TimeoutError is an OSError
        raise SilentEngineError from err


async def _connected(paths: BuildPaths) -> EngineClient:
    """Connect to the engine of a live build; wait for one that does not listen yet, or is being restarted.

    Raises OSError (TimeoutError if one listens but sends nothing) and ProtocolError.
    """
    while True:
        with contextlib.suppress(FileNotFoundError, ConnectionRefusedError):
            async with asyncio.timeout(ENGINE_PATIENCE_SECONDS):
                return await EngineClient.connect(paths.socket)
        await asyncio.sleep(POLL_SECONDS)


async def end_pause(paths: BuildPaths) -> BuildState | int:
    """End a pause, and return the resulting state. Raises CommandRefused and NothingToStopError.

    If no engine answers, continue whatever is stopped by signals, including the engine, and ask it once more. If it
    still does not answer, return the number of processes that were stopped.
    """
    try:
        return await ask(paths, "resume", {})
    except SilentEngineError:
        count = continue_build(paths)
    try:
        return await ask(paths, "resume", {})
    except (SilentEngineError, CommandRefused):
        return count


async def ask_to_stop(paths: BuildPaths, *, force: bool) -> None:
    """Ask the engine, which records who asked, or otherwise the supervisor, to end a build. Raises
    NothingToStopError."""
    try:
        async with asyncio.timeout(ENGINE_PATIENCE_SECONDS):
            await BuildSource(paths, read_only=False).command("stop", force=force)
    except (CommandRefused, TimeoutError):
        stop_build(paths, force)


def await_end(paths: BuildPaths) -> bool:
    """Wait until nothing of a build is left; False if that takes too long."""
    deadline = time.monotonic() + STOP_PATIENCE_SECONDS
    while is_live(paths):
        if time.monotonic() > deadline:
            return False
        time.sleep(POLL_SECONDS)
    return True
