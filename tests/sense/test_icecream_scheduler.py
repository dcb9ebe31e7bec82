"""Icecream's scheduler, asked over a real connection: one that answers, one that goes away, and one that lies."""

from __future__ import annotations

import asyncio
import contextlib
import os
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.sense.remote import icecream_scheduler as scheduler
from stoker.sense.remote.icecream_scheduler import SchedulerAddress, SchedulerLink, find_scheduler, own_names
from stoker.sense.remote.icecream_text import Listing

GREETING = (
    b"200-ICECC 1.4: 25s uptime, 2 hosts, 0 jobs in queue (40 total).\n200 Use 'help' for help and 'quit' to quit.\n"
)
HOST = b" far (10.77.0.2:10245) [x86_64] speed=63.75 jobs=2/3 load=111\n"

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


@asynccontextmanager
async def listening(answer: Answer, port: int = 0) -> AsyncIterator[SchedulerAddress]:
    """A scheduler whose text port does this for each connection."""
    tasks: list[asyncio.Task[None]] = []

    async def serve(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        async def whole() -> None:
            with contextlib.suppress(OSError):
                await answer(reader, writer)

        tasks.append(asyncio.create_task(whole()))
        await asyncio.wait(tasks[-1:])
        writer.close()
        with contextlib.suppress(OSError):
            await writer.wait_closed()

    server = await asyncio.start_server(serve, "127.0.0.1", port)
    async with server:
        yield SchedulerAddress("127.0.0.1", int(server.sockets[0].getsockname()[1]) - 1)
    for task in tasks:
        task.cancel()
    await asyncio.sleep(0)
    await asyncio.sleep(0.01)


async def honest(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(GREETING)
    while await reader.readline() == b"listcs\n":
        writer.write(HOST + b"200 done\n")


async def test_one_connection_serves_many_questions() -> None:
    calls = []

    async def counted(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        calls.append(1)
        await honest(reader, writer)

    async with listening(counted) as place:
        link = SchedulerLink(place)
        answers = [await link.ask() for _ in range(3)]
        assert [a.hosts[0].name for a in answers if a is not None] == ["far"] * 3
        assert link.own_address == "127.0.0.1"
        link.close()
    assert len(calls) == 1


async def test_a_scheduler_that_has_gone_gives_nothing_and_is_found_again_when_it_is_back() -> None:
    async with listening(honest) as place:
        link = SchedulerLink(place)
        assert await link.ask() is not None
        link.close()
    assert await link.ask() is None
    async with listening(honest, place.port + 1):
        assert await link.ask() is not None
        link.close()


async def flood(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """No line end, for ever."""
    while not writer.is_closing():
        writer.write(b"x" * 65536)
        await writer.drain()


async def mute(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    await reader.read()


async def endless(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(GREETING)
    while not writer.is_closing():
        writer.write(HOST * 1000)
        await writer.drain()


async def curt(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(GREETING + HOST)


@pytest.mark.parametrize("answer", [flood, mute, endless, curt])
async def test_one_that_lies_costs_a_bounded_time_and_gives_nothing(
    answer: Answer, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(scheduler, "ANSWER_SECONDS", 0.3)

    async with listening(answer) as place:
        link = SchedulerLink(place)
        assert await link.ask() is None
        link.close()


bits = st.one_of(st.binary(max_size=60), st.sampled_from([GREETING, HOST, b"200 done\n", b"\n200 done\n", b"200 "]))


@settings(max_examples=30)
@given(st.lists(bits, max_size=8).map(b"".join))
def test_whatever_a_scheduler_sends_is_a_listing_or_nothing(sent: bytes) -> None:
    async def random(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(sent)
        await writer.drain()

    async def ask() -> Listing | None:
        async with listening(random) as address:
            link = SchedulerLink(address)
            try:
                return await link.ask()
            finally:
                link.close()

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(scheduler, "ANSWER_SECONDS", 0.05)
        listing = asyncio.run(ask())
    assert listing is None or all(host.name.isprintable() for host in listing.hosts)


@pytest.mark.parametrize(
    ("env", "place"),
    [
        ({"USE_SCHEDULER": "build1"}, SchedulerAddress("build1", 8765)),
        ({"USE_SCHEDULER": "build1:9000"}, SchedulerAddress("build1", 9000)),
        ({"ICECC_SCHEDULER": "one", "USE_SCHEDULER": "two"}, SchedulerAddress("one", 8765)),
        ({"USE_SCHEDULER": "build1:99999"}, None),
        ({"USE_SCHEDULER": ":1"}, None),
        ({"USE_SCHEDULER": "build1:x"}, None),
        ({}, None),
    ],
)
def test_the_environment_names_the_scheduler(env: dict[str, str], place: SchedulerAddress | None) -> None:
    assert find_scheduler(env, ()) == place


TABLE = """\
  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode
   0: 0100007F:1F90 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 1 1
   1: 01004D0A:A3F2 02004D0A:223D 06 00000000:00000000 00:00000000 00000000     0        0 2 1
   2: 01004D0A:A3F4 03004D0A:223D 01 00000000:00000000 00:00000000 00000000   111        0 3 1
"""
TABLE6 = """\
  sl  local_address                         remote_address                        st tx_queue rx_queue
   0: 0000000000000000FFFF0000{0}:A3F4 0000000000000000FFFF0000{1}:223D 01 0:0 00:0 0 111 0 3 1
""".replace("{0}", "01004D0A").replace("{1}", "04004D0A")


@pytest.mark.skipif(sys.byteorder != "little", reason="the table is a little-endian machine's")
@pytest.mark.parametrize(("table", "host"), [(TABLE, "10.77.0.3"), (TABLE6, "10.77.0.4")])
def test_else_the_daemons_own_connection_shows_where_it_is(tmp_path: Path, table: str, host: str) -> None:
    file = tmp_path / "tcp"
    file.write_text(table)
    assert find_scheduler({}, (str(tmp_path / "none"), str(file))) == SchedulerAddress(host, 8765)


@pytest.mark.parametrize(
    "table", ["", "x\ny\n", "a\n0: 1 2:223D 01 4\n", "a\n0: 1 0Z004D0A:223D 01 4\n", "a\n0: 1 2:ZZ 01\n"]
)
def test_a_table_that_is_none_names_nobody(tmp_path: Path, table: str) -> None:
    file = tmp_path / "tcp"
    file.write_text(table)
    assert find_scheduler({}, (str(file),)) is None


def test_this_machine_is_known_among_the_hosts_by_its_address() -> None:
    hosts = [("near", "10.77.0.1"), ("far", "10.77.0.2")]
    assert own_names(hosts, "10.77.0.1") == {"near"}
    assert own_names([(os.uname().nodename, "1.2.3.4"), *hosts], "9.9.9.9") == {os.uname().nodename}
    assert own_names(hosts, "9.9.9.9") == frozenset()
