"""Asks icecream's scheduler who compiles what, over one connection that is kept.

Where it listens is read from the build's environment, else seen from the connection that this machine's own daemon has
to it: it is never searched for by broadcast. Unaware of what the answers are for.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import socket
import sys
import time
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from stoker.model.text import clean
from stoker.sense.proc.procfs import read_all
from stoker.sense.remote.icecream_text import DONE, MAX_ANSWER, Listing, read_listing

PORT = 8765
"""Where the scheduler listens unless it is started otherwise; its text port is the next one (scheduler.cpp)."""

ANSWER_SECONDS = 2.0
"""For a connection and for an answer, each; measured on loopback is a millisecond."""

GREETING_LINES = 2

END = b"\n" + DONE + b"\n"

_ESTABLISHED = "01"
_TABLES = ("/proc/self/net/tcp", "/proc/self/net/tcp6")
MAX_NAME = 128
"""Characters of a scheduler's name that are shown."""

MAX_TABLE = 4 * 1024 * 1024
"""Bytes read of the table of connections: 28,000 of them."""


class SchedulerAddress(NamedTuple):
    """Where a scheduler listens; `port` is the one for daemons."""

    host: str
    port: int

    def __str__(self) -> str:
        """As a person would write it; the name may come from anywhere."""
        return clean(f"{self.host}:{self.port}", MAX_NAME)


def find_scheduler(env: Mapping[str, str], tables: Iterable[str] = _TABLES) -> SchedulerAddress | None:
    """Where the scheduler is that this environment names, else the one that this machine is connected to."""
    named = env.get("ICECC_SCHEDULER") or env.get("USE_SCHEDULER")
    if named:
        return _named(named)
    return next((found for table in tables if (found := _connected(read_all(table, MAX_TABLE) or b""))), None)


def _named(value: str) -> SchedulerAddress | None:
    """`HOST` or `HOST:PORT`, as icecream reads it (comm.cpp)."""
    host, colon, port = value.rpartition(":")
    if not colon:
        return SchedulerAddress(value, PORT)
    number = int(port) if port.isascii() and port.isdecimal() and len(port) <= 5 else 0
    return SchedulerAddress(host, number) if host and 0 < number < 65535 else None


def _connected(table: bytes) -> SchedulerAddress | None:
    """The far end of a connection to the scheduler's port, by a table of proc_net_tcp(5)."""
    for line in table.decode("ascii", "replace").splitlines()[1:]:
        fields = line.split(maxsplit=4)
        address, _, port = fields[2].partition(":") if len(fields) > 3 and fields[3] == _ESTABLISHED else ("", "", "")
        with contextlib.suppress(ValueError):
            if int(port or "0", 16) == PORT:
                return SchedulerAddress(_address(address), PORT)
    return None


def _address(digits: str) -> str:
    """The address in a table of the kernel: words of 32 bits in the machine's own order."""
    raw = bytes.fromhex(digits)
    if sys.byteorder == "little":
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    address = ipaddress.ip_address(raw)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class SchedulerLink:
    """The connection. `ask` makes it when there is none; one that was lost is made anew at the next question."""

    def __init__(self, address: SchedulerAddress) -> None:
        self.address = address
        self._streams: _Streams | None = None
        self.own_address = ""
        """This machine's address on that connection: the scheduler's name for it, as long as no router changes it."""
        self.took = 0.0
        """Seconds that reading the last answer took."""

    async def ask(self) -> Listing | None:
        """What the scheduler lists now; None if it does not answer, within ANSWER_SECONDS, as one does."""
        try:
            if self._streams is None:
                self._streams = await asyncio.wait_for(self._connect(), ANSWER_SECONDS)
            reader, writer = self._streams
            writer.write(b"listcs\n")
            answer = await asyncio.wait_for(_answer(reader), ANSWER_SECONDS)
        except (OSError, ValueError, TimeoutError, EOFError):
            self.close()
            return None
        began = time.thread_time()
        listing = read_listing(answer)
        self.took = time.thread_time() - began
        return listing

    async def _connect(self) -> _Streams:
        """Connect, and pass over the two lines of greeting."""
        reader, writer = await asyncio.open_connection(self.address.host, self.address.port + 1, limit=MAX_ANSWER)
        self._streams = reader, writer
        name = writer.get_extra_info("sockname")
        self.own_address = str(name[0]) if isinstance(name, tuple) else ""
        for _ in range(GREETING_LINES):
            if not (await reader.readline()).endswith(b"\n"):
                raise EOFError
        return reader, writer

    def close(self) -> None:
        """Ask no more; a later question connects anew."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _answer(reader: asyncio.StreamReader) -> bytes:
    """The lines before the one that ends an answer; ValueError where that does not come within MAX_ANSWER."""
    data = b"\n"
    while not data.endswith(END):
        more = await reader.read(MAX_ANSWER)
        if not more:
            raise EOFError
        data += more
        if len(data) > MAX_ANSWER:
            raise ValueError("an answer without an end")
    return data[1 : -len(END)]


def own_names(hosts: Iterable[tuple[str, str]], own_address: str) -> frozenset[str]:
    """Which of these hosts, by name and address, is this machine: by its address, else by its name."""
    named = tuple(hosts)
    by_address = {name for name, address in named if address == own_address}
    return frozenset(by_address or {name for name, _ in named if name == socket.gethostname()})
