"""A viewer's connection to one engine: hello, records as they come, commands and their replies.

Unaware of what happens when the engine goes away; `serve.client` searches for it again.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Self

from stoker.model.codec import encode
from stoker.model.events import Record
from stoker.model.update import CommandRefused
from stoker.serve.endpoint import peer_uid
from stoker.serve.frames import MAX_CLIENT_FRAME, MAX_SERVER_FRAME, FrameError, encode_frame, read_frame
from stoker.serve.protocol import (
    PROTOCOL_VERSION,
    Bye,
    ClientHello,
    Command,
    EventMessage,
    ProtocolError,
    Reply,
    ServerHello,
    parse_server_hello,
    parse_server_message,
    to_json,
)

CONNECT_SECONDS = 5.0
"""How long an engine may take to say hello: it is one process on a machine that is short of everything."""

REPLY_SECONDS = 10.0
"""How long an engine may take to answer a command."""

QUEUE_RECORDS = 4096
"""Records that wait for a busy reader; beyond that the socket fills up, and the engine drops us."""


class ForeignSocketError(OSError):
    """Another user's process listens where the engine should; the message is one line for the user."""


class EngineClient:
    """One connection; make it with `connect` and use it as an async context manager."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: ServerHello) -> None:
        self.hello = hello
        self.bye = ""
        """Why the engine closed the connection, if it said so."""
        self._reader = reader
        self._writer = writer
        self._records: asyncio.Queue[Record | None] = asyncio.Queue(QUEUE_RECORDS)
        self._replies: dict[int, asyncio.Future[Reply]] = {}
        self._commands = 0
        self._reading = asyncio.create_task(self._read())

    @classmethod
    async def connect(cls, path: Path, *, resume: int | None = None, read_only: bool = False) -> Self:
        """Connect and exchange hellos; raises OSError (TimeoutError and ForeignSocketError too) or ProtocolError."""
        async with asyncio.timeout(CONNECT_SECONDS):
            reader, writer = await asyncio.open_unix_connection(path, limit=MAX_SERVER_FRAME)
            try:
                _check_owner(path, peer_uid(writer.get_extra_info("socket")))
                writer.write(encode_frame(to_json(ClientHello(PROTOCOL_VERSION, resume, read_only))))
                return cls(reader, writer, await _read_hello(reader))
            except BaseException:
                writer.transport.abort()
                raise

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_exc: object) -> None:
        await self.close()

    async def records(self) -> AsyncIterator[Record]:
        """Yield records as they come, until the connection ends. One reader at a time."""
        while (record := await self._records.get()) is not None:
            yield record

    def waiting(self) -> list[Record]:
        """Return records that have already arrived, so that a burst can be handled as one."""
        found = []
        while not self._records.empty():
            record = self._records.get_nowait()
            if record is None:
                self._records.put_nowait(None)
                break
            found.append(record)
        return found

    async def command(self, verb: str, arguments: dict[str, object], timeout: float = REPLY_SECONDS) -> Any:  # noqa: ASYNC109
        """Send a command, wait for its reply, and return the reply's value; raises CommandRefused, also if no reply
        comes."""
        self._commands += 1
        n = self._commands
        frame = encode_frame(to_json(Command(n, verb, encode(arguments))))
        if len(frame) > MAX_CLIENT_FRAME:
            raise CommandRefused(f"{verb}: the arguments are too long")
        reply: asyncio.Future[Reply] = asyncio.get_running_loop().create_future()
        self._replies[n] = reply
        try:
            if self._reading.done():
                raise CommandRefused("the engine went away")
            self._writer.write(frame)
            async with asyncio.timeout(timeout):
                answer = await reply
        except TimeoutError:
            raise CommandRefused(f"no answer in {timeout:.0f} s; the engine may be busy, look again") from None
        finally:
            self._replies.pop(n, None)
        if not answer.ok:
            raise CommandRefused(answer.error)
        return answer.value

    async def close(self) -> None:
        """Close the connection; the engine ignores that."""
        self._reading.cancel()
        with contextlib.suppress(asyncio.CancelledError):
            await self._reading
        self._writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await self._writer.wait_closed()

    async def _read(self) -> None:
        """Sort what arrives into records and replies."""
        try:
            while (frame := await read_frame(self._reader)) is not None:
                match parse_server_message(frame):
                    case EventMessage(record):
                        await self._records.put(record)
                    case Reply() as reply:
                        waiting = self._replies.get(reply.n)
                        if waiting is not None and not waiting.done():
                            waiting.set_result(reply)
                    case Bye(reason):
                        self.bye = reason
        except (FrameError, ProtocolError) as err:
            self.bye = f"what answers is not an engine: {err}"
        finally:
            for waiting in self._replies.values():
                if not waiting.done():
                    waiting.set_exception(CommandRefused("the engine went away; the build goes on"))
        await self._records.put(None)


def _check_owner(path: Path, uid: int) -> None:
    """Check that an engine runs as the current user; another user's messages are neither trusted nor answered."""
    if uid != os.getuid():
        raise ForeignSocketError(f"what listens on {path} belongs to user {uid}, so it is not your engine")


async def _read_hello(reader: asyncio.StreamReader) -> ServerHello:
    try:
        frame = await read_frame(reader)
    except FrameError as err:
        raise ProtocolError(f"what answers is not an engine: {err}") from err
    if frame is None:
        raise ConnectionResetError("the engine closed the connection")
    return parse_server_hello(frame)
