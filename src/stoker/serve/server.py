"""The engine's end of the socket: who may connect, what each viewer gets, and limits on misbehaving viewers.

Unaware of what commands do and of screens. A viewer can at worst lose its own connection.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import time
from collections import deque
from collections.abc import Awaitable, Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from stoker import __version__
from stoker.model.events import Record
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused
from stoker.serve.endpoint import Endpoint, peer_uid
from stoker.serve.frames import MAX_CLIENT_FRAME, FrameError, encode_frame, read_frame
from stoker.serve.protocol import (
    PROTOCOL_VERSION,
    Bye,
    ClientHello,
    Command,
    ProtocolError,
    Reply,
    ServerHello,
    event_frame,
    parse_command,
    parse_hello,
    to_json,
)

MAX_CLIENTS = 32
"""Connections at one time: more viewers of one build than people."""

MAX_QUEUE = 1 << 20
"""Bytes that may wait for one viewer: several minutes of a build with 30 jobs, and 32 MiB for all viewers."""

BATCH_SECONDS = 0.5
"""Records that come sooner than this after the last ones go out together: with short jobs, waking viewers for each
record costs more than everything else about it. The effect of a command is sent at once."""

HELLO_SECONDS = 10.0
"""How long a connection may take to say hello."""

REFUSE_SECONDS = 1.0
"""The same for a connection beyond the limit."""

CLOSE_SECONDS = 2.0
"""How long a viewer that is being closed may take to read the last messages."""

BACKLOG_RECORDS = 4096
BACKLOG_BYTES = 4 * 2**20
"""What is kept for viewers that reconnect: about half an hour of samples."""

COMMAND_BURST = 20
COMMANDS_PER_SECOND = 10.0
"""Keys that are held down repeat at up to 30 a second; beyond this a connection is read more slowly."""

CommandHandler = Callable[[str, dict[str, Any], int], Awaitable[None]]
"""Carries out (verb, arguments, the viewer's uid); raises CommandRefused."""

QuestionHandler = Callable[[dict[str, Any]], object]
"""Answers with a value that `model.codec` can encode, and changes nothing; raises CommandRefused."""


class Server:
    """Sends the journal's lines to viewers and takes their commands.

    `get_state` returns the newest state; it must include every record by the time that record is published. `questions`
    are answered by verb, also for read-only viewers. `allowed_uid` is the user who may connect, in addition to root; by
    default the socket's own.
    """

    def __init__(
        self,
        path: Path,
        on_command: CommandHandler,
        get_state: Callable[[], BuildState],
        *,
        questions: Mapping[str, QuestionHandler] | None = None,
        allowed_uid: int | None = None,
        hello_seconds: float = HELLO_SECONDS,
        commands_per_second: float = COMMANDS_PER_SECOND,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._endpoint = Endpoint(path, allowed_uid)
        self._on_command = on_command
        self._get_state = get_state
        self._questions = dict(questions or {})
        self._hello_seconds = hello_seconds
        self._commands_per_second = commands_per_second
        self._clock = clock
        self._backlog = _Backlog()
        self._connections: set[asyncio.Task[None]] = set()
        self._viewers: set[asyncio.StreamWriter] = set()
        self._server: asyncio.Server | None = None
        self._wanted = False
        self._batch: list[bytes] = []
        self._sent_at = -math.inf
        self._timer: asyncio.TimerHandle | None = None

    @property
    def viewers(self) -> int:
        """Connections that have said hello."""
        return len(self._viewers)

    async def start(self) -> None:
        """Listen. Raises EngineAliveError if an engine already does, UnsafeFolderError, or OSError.

        Then `listen_again` tries again.
        """
        self._wanted = True
        listening = self._endpoint.open()
        self._server = await asyncio.start_unix_server(self._accept, sock=listening, limit=MAX_CLIENT_FRAME)

    async def listen_again(self) -> None:
        """Recreate the socket's file if it is gone, or never was ours; raises like `start`. Connected viewers stay.

        The system removes $XDG_RUNTIME_DIR with a user's last logout, and creates it again at the next login.
        """
        if not self._wanted or (self._server is not None and self._endpoint.path.exists()):
            return
        if self._server is not None:
            self._server.close()
            self._server = None
        await self.start()

    def publish(self, lines: Sequence[bytes], records: Sequence[Record]) -> None:
        """Send records, whose journal lines are `lines`, to every viewer, soon. Never blocks, never raises."""
        if not lines:
            return
        frames = [event_frame(line) for line in lines]
        for record, frame in zip(records, frames, strict=True):
            self._backlog.add(record.seq, frame)
        self._batch += frames
        loop = asyncio.get_running_loop()
        left = self._sent_at + BATCH_SECONDS - loop.time()
        if left <= 0:
            self._flush()
        elif self._timer is None:
            self._timer = loop.call_later(left, self._flush)

    def _flush(self) -> None:
        """Send now what waits to be sent."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        self._sent_at = asyncio.get_running_loop().time()
        data = b"".join(self._batch)
        self._batch.clear()
        for viewer in tuple(self._viewers) if data else ():
            self._send(viewer, data)

    async def close(self, linger: float = 2.0, reason: str = "the engine ends") -> None:
        """Say bye, give viewers up to `linger` seconds to read what is on its way, and remove the socket."""
        self._wanted = False
        if self._server is not None:
            self._server.close()
            self._server = None
        self._endpoint.close()
        bye = encode_frame(to_json(Bye(reason)))
        self._flush()
        for viewer in tuple(self._viewers):
            self._send(viewer, bye)
            viewer.close()
        waiting = {task for task in self._connections if task is not asyncio.current_task()}
        if waiting:
            _, late = await asyncio.wait(waiting, timeout=linger)
            for task in late:
                task.cancel()
            await asyncio.gather(*late, return_exceptions=True)

    # -- one connection ----------------------------------------------------------------------------------------

    def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.get_running_loop().create_task(self._converse(reader, writer))
        self._connections.add(task)
        task.add_done_callback(self._connections.discard)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        """Handle a connection from its first byte to its last; whatever happens, only this one ends."""
        try:
            uid = peer_uid(writer.get_extra_info("socket"))
            if self._endpoint.allows(uid):
                await self._talk(reader, writer, uid)
        except (FrameError, ProtocolError) as err:
            self._send(writer, encode_frame(to_json(Bye(str(err)))))
        except TimeoutError:
            self._send(writer, encode_frame(to_json(Bye("no hello came"))))
        except asyncio.CancelledError:
            writer.transport.abort()
            raise
        finally:
            self._viewers.discard(writer)
            await _close(writer)

    async def _talk(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, uid: int) -> None:
        if len(self._connections) > MAX_CLIENTS:
            with contextlib.suppress(TimeoutError):  # closed with an unread hello, the viewer would get a reset instead
                async with asyncio.timeout(REFUSE_SECONDS):
                    await read_frame(reader)
            raise ProtocolError(f"{MAX_CLIENTS} viewers are connected already; close one")
        hello = await self._greet(reader, writer)
        if hello is not None:
            await self._obey(reader, writer, hello, uid)

    async def _greet(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> ClientHello | None:
        async with asyncio.timeout(self._hello_seconds):
            frame = await read_frame(reader)
        if frame is None:
            return None
        hello = parse_hello(frame)
        # From here to the end nothing awaits: no record can come between the snapshot and the first one sent.
        self._flush()
        state = self._get_state()
        missed = self._backlog.after(hello.resume, state.seq)
        snapshot = state if missed is None else None
        answer = ServerHello(PROTOCOL_VERSION, state.id, __version__, state.seq, snapshot)
        writer.write(encode_frame(to_json(answer)) + (missed or b""))
        self._viewers.add(writer)
        return hello

    async def _obey(
        self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, hello: ClientHello, uid: int
    ) -> None:
        allowance = _Allowance(self._commands_per_second, self._clock)
        while (frame := await read_frame(reader)) is not None:
            command = parse_command(frame)
            await allowance.take()
            reply = await self._carry_out(command, hello, uid)
            self._flush()  # a reply comes after the effects of the command
            if not self._send(writer, encode_frame(to_json(reply))):
                return

    async def _carry_out(self, command: Command, hello: ClientHello, uid: int) -> Reply:
        question = self._questions.get(command.verb)
        if hello.read_only and question is None:
            return Reply(command.n, ok=False, error="this viewer is read-only")
        try:
            if question is not None:
                return Reply(command.n, ok=True, value=question(dict(command.args)))
            await self._on_command(command.verb, dict(command.args), uid)
        except CommandRefused as refusal:
            return Reply(command.n, ok=False, error=str(refusal))
        return Reply(command.n, ok=True)

    def _send(self, writer: asyncio.StreamWriter, data: bytes) -> bool:
        """Queue `data`; drop a viewer that has stopped reading, which may reconnect and resume."""
        transport = writer.transport
        if transport.is_closing():
            return False
        if transport.get_write_buffer_size() > MAX_QUEUE:
            self._viewers.discard(writer)
            transport.abort()
            return False
        transport.write(data)
        return True


class _Backlog:
    """The last records as frames, for viewers that reconnect."""

    def __init__(self) -> None:
        self._frames: deque[tuple[int, bytes]] = deque()
        self._bytes = 0

    def add(self, seq: int, frame: bytes) -> None:
        self._frames.append((seq, frame))
        self._bytes += len(frame)
        while len(self._frames) > BACKLOG_RECORDS or self._bytes > BACKLOG_BYTES:
            self._bytes -= len(self._frames.popleft()[1])

    def after(self, seq: int | None, newest: int) -> bytes | None:
        """Return the frames of the records after `seq` up to `newest`; None if not all are here."""
        if seq is None or seq > newest:
            return None
        if seq == newest:
            return b""
        if not self._frames or self._frames[0][0] > seq + 1:
            return None
        return b"".join(frame for number, frame in self._frames if number > seq)


class _Allowance:
    """A token bucket: beyond its burst, commands wait, and so does what the viewer sends after them."""

    def __init__(self, per_second: float, clock: Callable[[], float]) -> None:
        self._per_second = per_second
        self._clock = clock
        self._tokens = float(COMMAND_BURST)
        self._at = clock()

    async def take(self) -> None:
        while True:
            now = self._clock()
            self._tokens = min(COMMAND_BURST, self._tokens + (now - self._at) * self._per_second)
            self._at = now
            if self._tokens >= 1:
                self._tokens -= 1
                return
            await asyncio.sleep((1 - self._tokens) / self._per_second)


async def _close(writer: asyncio.StreamWriter) -> None:
    """Close once the other end has taken what is queued; do not wait long for one that does not read."""
    writer.close()
    try:
        async with asyncio.timeout(CLOSE_SECONDS):
            await writer.wait_closed()
    except (ConnectionError, TimeoutError):
        pass
    finally:
        writer.transport.abort()
