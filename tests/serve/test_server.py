"""Real sockets: what viewers get, and that a bad one costs nobody but itself."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import fcntl
import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker.config.paths import UnsafeFolderError
from stoker.model import events as ev
from stoker.model.codec import decode, encode_record
from stoker.model.job_tree import ProcessRow, ProcessTree
from stoker.model.reduce import reduce
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused
from stoker.record.jsonlines import dump_line, parse_line
from stoker.serve import server as server_module
from stoker.serve.endpoint import EngineAliveError, answers
from stoker.serve.frames import MAX_CLIENT_FRAME, MAX_SERVER_FRAME, encode_frame
from stoker.serve.server import Server

Frame = dict[str, Any]


class Engine:
    """The part of an engine that the server sees."""

    def __init__(self, path: Path, **options: Any) -> None:
        self.state = BuildState()
        self.commands: list[tuple[str, dict[str, Any], int]] = []
        self.server = Server(path, self.on_command, lambda: self.state, questions={"processes": self.tree}, **options)

    def tree(self, args: dict[str, Any]) -> ProcessTree:
        if args.get("jid") != 7:
            raise CommandRefused("that job has ended")
        return ProcessTree(1.5, (ProcessRow(70, 0, "sh"),), 3)

    async def on_command(self, verb: str, args: dict[str, Any], uid: int) -> None:
        self.commands.append((verb, args, uid))
        if verb == "refuse":
            raise CommandRefused("not today")

    def emit(self, *events: ev.Event) -> None:
        records = [ev.Record(self.state.seq + n, float(n), event) for n, event in enumerate(events, 1)]
        for record in records:
            self.state = reduce(self.state, record)
        self.server.publish([dump_line(encode_record(r)) for r in records], records)


class Viewer:
    """A raw connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def send(self, *messages: Frame) -> None:
        self.writer.write(b"".join(encode_frame(m) for m in messages))
        await self.writer.drain()

    async def receive(self) -> Frame:
        line = await asyncio.wait_for(self.reader.readline(), 20)
        assert line, "the engine closed the connection"
        return parse_line(line)

    async def receive_all(self) -> list[Frame]:
        """Everything up to the end of the connection."""
        data = b""
        with contextlib.suppress(ConnectionError):
            async with asyncio.timeout(20):
                while chunk := await self.reader.read(2**16):
                    data += chunk
        return [parse_line(line) for line in data.splitlines()]

    async def greet(self, *, resume: int | None = None, read_only: bool = False) -> Frame:
        await self.send({"type": "hello", "protocol": 2, "resume": resume, "read_only": read_only})
        return await self.receive()

    async def events(self, count: int) -> list[int]:
        return [(await self.receive())["record"]["seq"] for _ in range(count)]


Connect = Callable[[], Any]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "run" / "b-1.sock"


@pytest.fixture
async def engine(path: Path) -> AsyncIterator[Engine]:
    engine = Engine(path)
    await engine.server.start()
    engine.emit(BEGIN)
    yield engine
    await engine.server.close(linger=0)


@pytest.fixture
async def connect(path: Path) -> AsyncIterator[Callable[[], Any]]:
    viewers: list[Viewer] = []

    async def connect() -> Viewer:
        viewers.append(Viewer(*await asyncio.open_unix_connection(path, limit=MAX_SERVER_FRAME)))
        return viewers[-1]

    yield connect
    for viewer in viewers:
        viewer.writer.transport.abort()
        with contextlib.suppress(ConnectionError):
            await viewer.writer.wait_closed()


BEGIN = ev.BuildStarted("b-1", "torch", ("ninja",), "/src", "/log", "host", 8, 2**34, "0.1.0")


def notice(text: str = "x") -> ev.Noticed:
    return ev.Noticed("info", text)


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def names(folder: Path) -> list[str]:
    return sorted(p.name for p in folder.iterdir())


async def eventually(condition: Callable[[], bool]) -> None:
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.01)
    raise AssertionError("it did not come true")


@pytest.mark.parametrize("read_only", [False, True])
async def test_a_question_is_answered_whoever_asks(engine: Engine, connect: Connect, read_only: bool) -> None:
    viewer = await connect()
    await viewer.greet(read_only=read_only)
    await viewer.send({"type": "command", "n": 1, "verb": "processes", "args": {"jid": 7}})
    answer = await viewer.receive()
    assert answer["ok"]
    assert decode(ProcessTree, answer["value"]) == engine.tree({"jid": 7})
    await viewer.send({"type": "command", "n": 2, "verb": "processes", "args": {"jid": 8}})
    assert await viewer.receive() == {"type": "reply", "n": 2, "ok": False, "error": "that job has ended"}
    assert engine.commands == []


async def test_a_new_viewer_gets_the_state_and_then_what_happens(engine: Engine, connect: Connect) -> None:
    viewer = await connect()
    hello = await viewer.greet()
    assert (hello["type"], hello["protocol"], hello["id"], hello["seq"]) == ("hello", 2, "b-1", 1)
    assert decode(BuildState, hello["snapshot"]) == engine.state
    engine.emit(notice("one"), notice("two"))
    assert [(await viewer.receive())["record"]["text"] for _ in range(2)] == ["one", "two"]


async def test_a_viewer_that_comes_back_gets_what_it_missed(engine: Engine, connect: Connect) -> None:
    engine.emit(*[notice()] * 9)
    viewer = await connect()
    hello = await viewer.greet(resume=4)
    assert hello["snapshot"] is None
    assert await viewer.events(6) == [5, 6, 7, 8, 9, 10]
    newest = await connect()
    assert (await newest.greet(resume=10))["snapshot"] is None
    engine.emit(notice())
    assert await newest.events(1) == await viewer.events(1) == [11]


async def test_one_that_was_away_too_long_or_knows_too_much_gets_the_state(
    engine: Engine, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "BACKLOG_RECORDS", 5)
    engine.emit(*[notice()] * 20)
    for resume, whole in ((15, True), (16, False), (21, False), (22, True), (-1, True)):
        viewer = await connect()
        hello = await viewer.greet(resume=resume)
        assert (hello["snapshot"] is not None) is whole, resume


async def test_the_backlog_is_bounded_in_bytes(
    engine: Engine, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "BACKLOG_BYTES", 10_000)
    engine.emit(*[notice("x" * 1000)] * 50)
    assert engine.server._backlog._bytes <= 10_000
    viewer = await connect()
    assert (await viewer.greet(resume=1))["snapshot"] is not None


async def test_commands_are_answered_by_number(engine: Engine, connect: Connect) -> None:
    viewer = await connect()
    await viewer.greet()
    await viewer.send({"type": "command", "n": 5, "verb": "stop", "args": {"force": True}})
    assert await viewer.receive() == {"type": "reply", "n": 5, "ok": True, "error": ""}
    await viewer.send({"type": "command", "n": 6, "verb": "refuse", "args": {}})
    assert await viewer.receive() == {"type": "reply", "n": 6, "ok": False, "error": "not today"}
    assert engine.commands == [("stop", {"force": True}, os.getuid()), ("refuse", {}, os.getuid())]


async def test_a_read_only_viewer_sees_everything_and_commands_nothing(engine: Engine, connect: Connect) -> None:
    viewer = await connect()
    await viewer.greet(read_only=True)
    await viewer.send({"type": "command", "n": 1, "verb": "stop", "args": {}})
    reply = await viewer.receive()
    assert (reply["ok"], reply["error"]) == (False, "this viewer is read-only")
    assert engine.commands == []
    engine.emit(notice())
    assert await viewer.events(1) == [2]


async def test_a_flood_of_commands_is_slowed_down_and_nobody_else_notices(path: Path, connect: Connect) -> None:
    engine = Engine(path, commands_per_second=1 / 3600)
    await engine.server.start()
    flooding, calm = await connect(), await connect()
    await flooding.greet()
    await calm.greet()
    await flooding.send(*({"type": "command", "n": n, "verb": "x", "args": {}} for n in range(500)))
    for n in range(server_module.COMMAND_BURST):
        assert (await flooding.receive())["n"] == n
    await calm.send({"type": "command", "n": 1, "verb": "stop", "args": {}})
    assert (await calm.receive())["ok"]
    assert [verb for verb, *_ in engine.commands].count("x") == server_module.COMMAND_BURST
    await engine.server.close(linger=0)


GARBAGE = [
    b"\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x00" * 100 + b"\n",
    b"[" * 60_000 + b"\n",
    b'{"type":"hello"}\n',
    b'{"type":"hello","protocol":99}\n',
    b'{"type":"command","n":1,"verb":"stop","args":{}}\n',
    b"x" * (MAX_CLIENT_FRAME * 3),
]


@pytest.mark.parametrize("greeted", [False, True])
@pytest.mark.parametrize("garbage", GARBAGE)
async def test_garbage_closes_its_own_connection_only(
    engine: Engine, connect: Connect, garbage: bytes, greeted: bool
) -> None:
    good = await connect()
    await good.greet()
    bad = await connect()
    if greeted:
        await bad.greet()
        garbage = garbage.replace(b'"verb":"stop"', b'"verb":7')
    bad.writer.write(garbage)
    frames = await bad.receive_all()
    assert [f["type"] for f in frames] in (["bye"], []), "a word why, unless it went with the unread rest"
    assert engine.commands == []
    engine.emit(notice())
    assert await good.events(1) == [2]
    await eventually(lambda: engine.server.viewers == 1)


async def test_who_says_nothing_is_shown_out(path: Path, connect: Connect) -> None:
    engine = Engine(path, hello_seconds=0.05)
    await engine.server.start()
    silent = await connect()
    assert await silent.receive_all() == [{"type": "bye", "reason": "no hello came"}]
    dripping = await connect()
    dripping.writer.write(b'{"type":')
    assert (await dripping.receive_all())[0]["type"] == "bye"
    await engine.server.close(linger=0)


@pytest.mark.long
async def test_a_viewer_that_does_not_read_is_dropped_and_may_come_back(engine: Engine, connect: Connect) -> None:
    good, stuck = await connect(), await connect()
    await good.greet()
    await stuck.greet()
    stuck.reader._transport.pause_reading()
    sent = 0
    while engine.server.viewers == 2:
        engine.emit(notice("x" * 50_000))
        sent += 1
        assert await good.events(1) == [engine.state.seq]
        assert sent * 50_000 < server_module.MAX_QUEUE + 2**21, "what waits for one viewer is bounded"
    assert engine.server.viewers == 1
    back = await connect()
    assert (await back.greet(resume=engine.state.seq - 2))["snapshot"] is None
    assert await back.events(2) == [engine.state.seq - 1, engine.state.seq]


async def test_viewers_are_bounded_and_the_one_too_many_is_told(
    engine: Engine, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server_module, "MAX_CLIENTS", 3)
    viewers = [await connect() for _ in range(3)]
    for viewer in viewers:
        await viewer.greet()
    extra = await connect()
    frames = await extra.receive_all()
    assert frames == [{"type": "bye", "reason": "3 viewers are connected already; close one"}]
    viewers[0].writer.close()
    await eventually(lambda: engine.server.viewers == 2)
    again = await connect()
    assert (await again.greet())["type"] == "hello"


async def test_a_viewer_that_vanishes_leaves_nothing_behind(engine: Engine, connect: Connect) -> None:
    for _ in range(50):
        viewer = await connect()
        await viewer.greet()
        viewer.writer.transport.abort()
    engine.emit(notice())
    await eventually(lambda: engine.server.viewers == 0)
    await eventually(lambda: not engine.server._connections)


# -- the socket's file -----------------------------------------------------------------------------------------


async def test_socket_and_folder_are_private(engine: Engine, path: Path) -> None:
    assert (mode(path), mode(path.parent)) == (0o600, 0o700)
    assert names(path.parent) == ["b-1.sock"]


async def test_closing_says_bye_and_removes_the_socket(path: Path, connect: Connect) -> None:
    engine = Engine(path)
    await engine.server.start()
    viewer = await connect()
    await viewer.greet()
    engine.emit(BEGIN, ev.BuildEnded("done", 0, ""))
    await engine.server.close()
    frames = await viewer.receive_all()
    assert [f["type"] for f in frames] == ["event", "event", "bye"], "the last words arrive before the end"
    assert names(path.parent) == []


async def test_closing_does_not_wait_for_a_viewer_that_does_not_read(path: Path, connect: Connect) -> None:
    engine = Engine(path)
    await engine.server.start()
    stuck = await connect()
    await stuck.greet()
    stuck.reader._transport.pause_reading()
    engine.emit(BEGIN, notice("x" * 900_000))
    async with asyncio.timeout(20):
        await engine.server.close(linger=0.05)


async def test_a_dead_engines_socket_is_taken_over(path: Path, connect: Connect) -> None:
    path.parent.mkdir(mode=0o700)
    with socket.socket(socket.AF_UNIX) as dead:
        dead.bind(str(path))
        dead.listen()
    assert names(path.parent) == ["b-1.sock"]
    assert not answers(path)
    engine = Engine(path)
    await engine.server.start()
    viewer = await connect()
    assert (await viewer.greet())["type"] == "hello"
    await engine.server.close(linger=0)


async def test_an_engine_that_could_not_listen_does_when_there_is_a_folder_for_its_socket(
    path: Path, connect: Connect
) -> None:
    """Its engine started between a person's last logout and the next login."""
    path.parent.parent.joinpath("run").write_text("")
    engine = Engine(path)
    with pytest.raises((UnsafeFolderError, OSError)):
        await engine.server.start()
    with pytest.raises((UnsafeFolderError, OSError)):
        await engine.server.listen_again()
    path.parent.unlink()
    await engine.server.listen_again()
    viewer = await connect()
    assert (await viewer.greet())["type"] == "hello"
    await engine.server.close(linger=0)
    await engine.server.listen_again()
    assert names(path.parent) == [], "it has ended"


async def test_where_folders_cannot_be_locked_viewers_connect_all_the_same(
    path: Path, connect: Connect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As on Lustre without -o flock."""

    def refuse(_fd: int, _operation: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", refuse)
    engine = Engine(path)
    await engine.server.start()
    viewer = await connect()
    assert (await viewer.greet())["type"] == "hello"
    await engine.server.close(linger=0)
    assert names(path.parent) == []


async def test_a_living_engine_is_not_replaced(engine: Engine, path: Path, connect: Connect) -> None:
    second = Engine(path)
    with pytest.raises(EngineAliveError):
        await second.server.start()
    viewer = await connect()
    assert (await viewer.greet())["id"] == "b-1"


async def test_an_engine_removes_no_socket_but_its_own(path: Path) -> None:
    first, second = Engine(path), Engine(path)
    await first.server.start()
    os.unlink(path)
    await second.server.start()
    await first.server.close(linger=0)
    assert names(path.parent) == ["b-1.sock"]
    await second.server.close(linger=0)
    assert names(path.parent) == []


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """A folder that everybody may pass through, which pytest's own are not."""
    with tempfile.TemporaryDirectory(prefix="stoker-test-") as folder:
        os.chmod(folder, 0o711)
        yield Path(folder)


CONNECT_AS = """
import os, socket, sys
os.setgid(12345); os.setuid(12345)
s = socket.socket(socket.AF_UNIX); s.settimeout(20)
try:
    s.connect(sys.argv[1])
    s.sendall(b'{"type":"hello","protocol":2,"resume":null,"read_only":false}\\n')
    print(repr(s.recv(100)))
except (PermissionError, ConnectionError) as e:
    print(type(e).__name__)
"""


async def connect_as_another_user(path: Path) -> str:
    process = await asyncio.create_subprocess_exec(sys.executable, "-c", CONNECT_AS, str(path), stdout=subprocess.PIPE)
    out, _ = await process.communicate()
    return out.decode().strip()


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
async def test_another_user_cannot_even_reach_the_socket(engine: Engine, path: Path) -> None:
    assert await connect_as_another_user(path) == "PermissionError"


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
async def test_another_user_who_reaches_it_is_told_nothing(open_folder: Path) -> None:
    engine = Engine(open_folder / "run" / "b-1.sock")
    await engine.server.start()
    for path, opened in ((open_folder / "run", 0o711), (open_folder / "run" / "b-1.sock", 0o666)):
        os.chmod(path, opened)
    assert await connect_as_another_user(open_folder / "run" / "b-1.sock") in (
        "b''",
        "ConnectionResetError",
        "BrokenPipeError",
    )
    await engine.server.close(linger=0)


async def test_root_and_the_owner_may_connect_and_nobody_else(path: Path, connect: Connect) -> None:
    engine = Engine(path, allowed_uid=12345)
    await engine.server.start()
    viewer = await connect()
    if os.getuid() == 0:
        assert (await viewer.greet())["type"] == "hello"
    else:
        assert await viewer.receive_all() == []
    assert engine.server._endpoint.allows(12345)
    assert engine.server._endpoint.allows(0)
    assert not engine.server._endpoint.allows(1)
    await engine.server.close(linger=0)
