"""A viewer follows a build through everything that can happen to its engine."""

from __future__ import annotations

import asyncio
import json
import os
import socket
import sys
import tempfile
from collections.abc import AsyncIterator, Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker.config.paths import BuildPaths, builds_dir
from stoker.model import events as ev
from stoker.model.reduce import reduce, reduce_all
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused, Update
from stoker.record.builds import LOST_REASON
from stoker.record.journal_reader import read_journal
from stoker.record.journal_writer import JournalWriter
from stoker.serve import client as client_module
from stoker.serve import connection
from stoker.serve.client import BuildSource, EngineClient
from stoker.serve.protocol import ProtocolError
from stoker.serve.server import Server
from stoker.show.update_source import UpdateSource

BEGIN = ev.BuildStarted("b-1", "torch", ("ninja",), "/src", "/log", "host", 8, 2**34, "0.1.0")
SCHEDULER = ev.SchedulerStarted(1, "ninja", 42, "/out", "1.13", 8)
END = ev.BuildEnded("done", 0, "")


def finished(n: int) -> ev.JobFinished:
    return ev.JobFinished(None, 1, f"{n}.o", "cxx", 1.0, "ok")


class Engine:
    """Journal, state and server, wired as a real engine wires them."""

    def __init__(self, paths: BuildPaths) -> None:
        self.journal = JournalWriter(paths.journal)
        self.state = reduce_all(read_journal(paths.journal))
        self.commands: list[tuple[str, dict[str, Any]]] = []
        self.answer: asyncio.Event | None = None
        self.server = Server(paths.socket, self.on_command, lambda: self.state)

    async def on_command(self, verb: str, args: dict[str, Any], uid: int) -> None:
        self.commands.append((verb, args))
        if self.answer is not None:
            await self.answer.wait()
        if verb == "refuse":
            raise CommandRefused("not today")

    def emit(self, *events: ev.Event) -> None:
        records, lines = [], []
        for event in events:
            record, line = self.journal.append(event, 1000.0)
            self.state = reduce(self.state, record)
            records.append(record)
            lines.append(line)
        self.journal.flush()
        self.server.publish(lines, records)

    async def die(self) -> None:
        """As suddenly as SIGKILL, but for the socket's file, which the next one has to replace."""
        self.server._endpoint._identity = None
        await self.server.close(linger=0)
        self.journal.close()


@pytest.fixture
def short_path() -> Iterator[Path]:
    """A folder for sockets, whose paths may not be as long as a test's own folder is."""
    with tempfile.TemporaryDirectory(prefix="stoker-test-") as folder:
        yield Path(folder)


@pytest.fixture
def paths(tmp_path: Path, short_path: Path, monkeypatch: pytest.MonkeyPatch) -> BuildPaths:
    """The folder of a build whose supervisor is this process: it lives."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(short_path))
    monkeypatch.setattr(client_module, "FIRST_RETRY_SECONDS", 0.01)
    monkeypatch.setattr(client_module, "LAST_RETRY_SECONDS", 0.02)
    monkeypatch.setattr(client_module, "STARTING_SECONDS", 0.0)
    paths = BuildPaths(builds_dir() / "b-1")
    paths.root.mkdir(parents=True)
    live_as(paths, os.getpid())
    return paths


@pytest.fixture
def planted_folder(short_path: Path) -> Path:
    """A folder in which another user may listen, and which everybody may pass through."""
    short_path.chmod(0o777)
    return short_path


def live_as(paths: BuildPaths, pid: int, start: int | None = None) -> None:
    if start is None:
        start = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])
    supervisor = {
        "supervisor_pid": pid,
        "supervisor_start": start,
        "build_pid": 2**22 + 1,
        "build_start": 1,
        "started": 1000.0,
    }
    paths.supervisor.write_text(json.dumps(supervisor))


@pytest.fixture
async def start(paths: BuildPaths) -> AsyncIterator[Callable[[], Any]]:
    engines: list[Engine] = []

    async def start() -> Engine:
        engines.append(Engine(paths))
        await engines[-1].server.start()
        return engines[-1]

    yield start
    for engine in engines:
        await engine.server.close(linger=0)
        engine.journal.close()


async def until(updates: AsyncIterator[Update], condition: Callable[[Update], bool]) -> Update:
    async with asyncio.timeout(20):
        async for update in updates:
            if condition(update):
                return update
    raise AssertionError("the updates ended")


def jobs(update: Update) -> int:
    return update.state.schedulers[1].finished if update.state.schedulers else 0


Start = Callable[[], Any]


async def test_a_live_build_is_shown_as_it_goes_and_ends(paths: BuildPaths, start: Start) -> None:
    engine = await start()
    engine.emit(BEGIN, SCHEDULER)
    source: UpdateSource = BuildSource(paths, read_only=True)
    updates = source.updates()
    first = await anext(updates)
    assert (first.link, first.state) == ("live", engine.state)
    engine.emit(finished(1), finished(2))
    assert (await until(updates, lambda u: jobs(u) == 2)).state == engine.state
    engine.emit(END)
    rest = [u async for u in updates]
    assert rest[-1] == Update(engine.state, "ended")


async def test_a_reader_that_is_busy_while_the_build_ends_hears_of_the_end(paths: BuildPaths, start: Start) -> None:
    engine = await start()
    engine.emit(BEGIN, SCHEDULER)
    updates = BuildSource(paths).updates()
    await anext(updates)
    following = [task for task in asyncio.all_tasks() if "BuildSource._follow" in repr(task)]
    engine.emit(END)
    async with asyncio.timeout(20):
        await asyncio.wait(following)
        assert [u.link async for u in updates] == ["ended"]


async def test_a_slow_reader_gets_the_newest_state_and_no_backlog(paths: BuildPaths, start: Start) -> None:
    engine = await start()
    engine.emit(BEGIN, SCHEDULER)
    updates = BuildSource(paths).updates()
    await anext(updates)
    for n in range(1000):
        engine.emit(finished(n))
        await asyncio.sleep(0)
    seen = 0
    async with asyncio.timeout(20):
        while jobs(await anext(updates)) < 1000:
            seen += 1
    assert seen < 500, "a backlog would be a thousand"


async def test_a_restarted_engine_is_found_again_and_no_job_is_missed(paths: BuildPaths, start: Start) -> None:
    engine = await start()
    engine.emit(BEGIN, SCHEDULER, finished(1))
    updates = BuildSource(paths).updates()
    await until(updates, lambda u: jobs(u) == 1)
    await engine.die()
    lost = await until(updates, lambda u: u.link == "lost")
    assert "the engine" in lost.note
    assert jobs(lost) == 1

    engine = await start()
    engine.emit(ev.EngineStarted(2, adopted=True), finished(2))
    again = await until(updates, lambda u: u.link == "live")
    again = await until(updates, lambda u: jobs(u) == 2) if jobs(again) < 2 else again
    assert again.state == engine.state
    assert again.state.engine_starts == 1
    engine.emit(finished(3), END)
    last = [u async for u in updates][-1]
    assert (last.link, jobs(last), last.state.seq) == ("ended", 3, 7)


async def test_without_an_engine_the_journal_is_read_from_disk(paths: BuildPaths, start: Start) -> None:
    engine = await start()
    engine.emit(BEGIN, SCHEDULER, finished(1))
    await engine.die()
    updates = BuildSource(paths).updates()
    lost = await anext(updates)
    assert (lost.link, jobs(lost)) == ("lost", 1)
    journal = JournalWriter(paths.journal)
    journal.append(finished(2), 1001.0)
    journal.flush()
    assert (await until(updates, lambda u: jobs(u) == 2)).link == "lost"
    journal.append(END, 1002.0)
    journal.close()
    assert [u async for u in updates][-1].link == "ended"


async def test_before_its_engine_is_up_a_build_has_a_name(paths: BuildPaths) -> None:
    paths.spec.write_text(json.dumps({"name": "torch", "command": ["ninja"], "cwd": "/src", "created": 1000.0}))
    update = await anext(BuildSource(paths).updates())
    assert (update.link, update.note) == ("lost", "the engine is starting")
    assert (update.state.id, update.state.name, update.state.command) == ("b-1", "torch", ("ninja",))


async def test_an_engine_that_takes_a_moment_to_start_is_waited_for(
    paths: BuildPaths, start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(client_module, "STARTING_SECONDS", 60.0)
    updates = BuildSource(paths).updates()
    waiting = asyncio.ensure_future(anext(updates))
    await asyncio.sleep(0.1)
    engine = await start()
    engine.emit(BEGIN)
    assert (await waiting).link == "live"


async def test_a_build_that_dies_with_its_supervisor_ends_for_the_viewer_too(paths: BuildPaths, start: Start) -> None:
    engine = await start()
    engine.emit(BEGIN, SCHEDULER, finished(1))
    updates = BuildSource(paths).updates()
    await until(updates, lambda u: jobs(u) == 1)
    live_as(paths, 2**22 + 1, 1)
    await engine.die()
    last = await until(updates, lambda u: u.link == "ended")
    assert (last.state.outcome, last.state.reason, jobs(last)) == ("failed", LOST_REASON, 1)


async def test_an_ended_build_is_one_update(paths: BuildPaths) -> None:
    journal = JournalWriter(paths.journal)
    for event in (BEGIN, SCHEDULER, finished(1), END):
        journal.append(event, 1000.0)
    journal.close()
    assert [(u.link, u.state.outcome, jobs(u)) async for u in BuildSource(paths).updates()] == [("ended", "done", 1)]


async def test_an_engine_that_hangs_counts_as_lost(
    paths: BuildPaths, monkeypatch: pytest.MonkeyPatch, start: Start
) -> None:
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.1)
    engine = await start()
    engine.emit(BEGIN, SCHEDULER, finished(1))
    await engine.die()
    os.unlink(paths.socket)
    with socket.socket(socket.AF_UNIX) as hanging:
        hanging.bind(str(paths.socket))
        hanging.listen()
        update = await anext(BuildSource(paths).updates())
    assert (update.link, update.note, jobs(update)) == ("lost", "the engine does not answer; looking again", 1)


async def test_commands_reach_the_engine_and_refusals_come_back(paths: BuildPaths, start: Start) -> None:
    engine = await start()
    engine.emit(BEGIN)
    source = BuildSource(paths)
    await source.command("stop", force=False)
    updates = source.updates()
    await anext(updates)
    await source.command("stop", force=True)
    assert engine.commands == [("stop", {"force": False}), ("stop", {"force": True})]
    with pytest.raises(CommandRefused, match="not today"):
        await source.command("refuse")
    with pytest.raises(CommandRefused, match="too long"):
        await source.command("stop", why="x" * 100_000)
    with pytest.raises(CommandRefused, match="read-only"):
        await BuildSource(paths, read_only=True).command("stop", force=False)


async def test_without_an_engine_a_command_is_refused_at_once(paths: BuildPaths) -> None:
    with pytest.raises(CommandRefused, match="the engine does not answer"):
        await BuildSource(paths).command("stop", force=False)


async def test_an_engine_that_dies_over_a_command_is_a_refusal(paths: BuildPaths, start: Start) -> None:
    engine = await start()
    engine.emit(BEGIN)
    engine.answer = asyncio.Event()
    asking = asyncio.ensure_future(BuildSource(paths).command("stop", force=False))
    async with asyncio.timeout(20):
        while not engine.commands:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
    await engine.die()
    with pytest.raises(CommandRefused, match="the engine went away"):
        await asking


async def test_an_engine_that_does_not_answer_is_a_refusal(paths: BuildPaths, start: Start) -> None:
    engine = await start()
    engine.emit(BEGIN)
    engine.answer = asyncio.Event()
    async with await EngineClient.connect(paths.socket) as client:
        with pytest.raises(CommandRefused, match="no answer in"):
            await client.command("stop", {}, timeout=0.05)
    engine.answer.set()


@pytest.mark.parametrize("answer", [b"HTTP/1.1 400 Bad Request\n", b"[]\n", b'{"type":"hello","protocol":9,"seq":1}\n'])
async def test_what_is_no_engine_is_named_as_such(paths: BuildPaths, answer: bytes) -> None:
    async def impostor(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(answer)
        await reader.read()
        writer.close()

    paths.socket.parent.mkdir(exist_ok=True)
    server = await asyncio.start_unix_server(impostor, paths.socket)
    with pytest.raises(ProtocolError):
        await EngineClient.connect(paths.socket)
    update = await anext(BuildSource(paths).updates())
    assert update.link == "lost"
    server.close()


LISTEN_AS_ANOTHER_USER = """
import os, socket, sys
s = socket.socket(socket.AF_UNIX)
os.setgid(12345); os.setuid(12345)
s.bind(sys.argv[1]); s.listen(); os.chmod(sys.argv[1], 0o666)
print("listens", flush=True)
for _ in range(3):
    c, _ = s.accept()
    try:
        c.sendall(b'{"type":"hello","protocol":2,"id":"b-1","version":"9","seq":7,"snapshot":{"id":"FAKE","name":"FAKE"}}\\n')
        print(c.recv(1000), flush=True)
    except ConnectionError:
        print(b"", flush=True)
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="becoming another user takes root")
async def test_another_users_process_is_no_engine_and_is_told_nothing(paths: BuildPaths, planted_folder: Path) -> None:
    paths.socket_note.write_text(str(planted_folder / "b-1.sock"))
    planted = await asyncio.create_subprocess_exec(
        sys.executable, "-c", LISTEN_AS_ANOTHER_USER, str(paths.socket), stdout=asyncio.subprocess.PIPE
    )
    assert planted.stdout is not None
    await planted.stdout.readline()
    with pytest.raises(OSError, match="belongs to user 12345"):
        await EngineClient.connect(paths.socket)
    source = BuildSource(paths)
    with pytest.raises(CommandRefused, match="belongs to user 12345"):
        await source.command("stop")
    update = await anext(source.updates())
    assert update.link == "lost"
    assert "belongs to user 12345" in update.note
    assert update.state.name == "b-1"
    heard, _ = await planted.communicate()
    assert heard.split() == [b"b''"] * 3


async def test_several_viewers_see_the_same(paths: BuildPaths, start: Start) -> None:
    engine = await start()
    engine.emit(BEGIN, SCHEDULER)

    async def watch() -> BuildState:
        async for update in BuildSource(paths, read_only=True).updates():
            state = update.state
        return state

    watching = [asyncio.ensure_future(watch()) for _ in range(5)]
    async with asyncio.timeout(20):
        while engine.server.viewers < 5:  # noqa: ASYNC110
            await asyncio.sleep(0.01)
        for n in range(200):
            engine.emit(finished(n))
            await asyncio.sleep(0)
        engine.emit(END)
        assert await asyncio.gather(*watching) == [engine.state] * 5
