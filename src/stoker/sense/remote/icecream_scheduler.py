"""Asks icecream's scheduler who compiles what, over one persistent connection.

The scheduler's address comes from the build's environment, otherwise from the connection that this machine's own daemon
has to it; it is never searched for by broadcast. Does not know what the answers are used for.
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
"""The scheduler's default port; its text port is the next one (scheduler.cpp)."""

ANSWER_SECONDS = 2.0
"""Limit for a connection, and for an answer; on loopback a millisecond was measured."""

GREETING_LINES = 2

END = b"\n" + DONE + b"\n"

_ESTABLISHED = "01"
_TABLES = ("/proc/self/net/tcp", "/proc/self/net/tcp6")
MAX_NAME = 128
"""Characters of a scheduler's name that are shown."""

MAX_TABLE = 4 * 1024 * 1024
"""Bytes read of the table of connections: 28,000 connections."""


class SchedulerAddress(NamedTuple):
    """A scheduler's address; `port` is the one for daemons."""

    host: str
    port: int

    def __str__(self) -> str:
        """Return it as a user would write it, cleaned: the name may come from anywhere."""
        return clean(f"{self.host}:{self.port}", MAX_NAME)


def find_scheduler(env: Mapping[str, str], tables: Iterable[str] = _TABLES) -> SchedulerAddress | None:
    """Return the scheduler that this environment names, otherwise the one that this machine is connected to."""
    named = env.get("ICECC_SCHEDULER") or env.get("USE_SCHEDULER")
    if named:
        return _named(named)
    return next((found for table in tables if (found := _connected(read_all(table, MAX_TABLE) or b""))), None)


def _named(value: str) -> SchedulerAddress | None:
    """Parse `HOST` or `HOST:PORT`, as icecream does (comm.cpp)."""
    host, colon, port = value.rpartition(":")
    if not colon:
        return SchedulerAddress(value, PORT)
    number = int(port) if port.isascii() and port.isdecimal() and len(port) <= 5 else 0
    return SchedulerAddress(host, number) if host and 0 < number < 65535 else None


def _connected(table: bytes) -> SchedulerAddress | None:
    """Return the remote end of a connection to the scheduler's port, from a table of proc_net_tcp(5)."""
    for line in table.decode("ascii", "replace").splitlines()[1:]:
        fields = line.split(maxsplit=4)
        address, _, port = fields[2].partition(":") if len(fields) > 3 and fields[3] == _ESTABLISHED else ("", "", "")
        with contextlib.suppress(ValueError):
            if int(port or "0", 16) == PORT:
                return SchedulerAddress(_address(address), PORT)
    return None


def _address(digits: str) -> str:
    """Return an address from the kernel's table: 32-bit words in the machine's byte order."""
    raw = bytes.fromhex(digits)
    if sys.byteorder == "little":
        raw = b"".join(raw[at : at + 4][::-1] for at in range(0, len(raw), 4))
    address = ipaddress.ip_address(raw)
    mapped = address.ipv4_mapped if isinstance(address, ipaddress.IPv6Address) else None
    return str(mapped or address)


_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class SchedulerLink:
    """The connection. `ask` opens it if there is none; a lost one is reopened at the next question."""

    def __init__(self, address: SchedulerAddress) -> None:
        self.address = address
        self._streams: _Streams | None = None
        self.own_address = ""
        """This machine's address on that connection, by which the scheduler knows it unless a router translates it."""
        self.took = 0.0
        """CPU seconds that parsing the last answer took."""

    async def ask(self) -> Listing | None:
        """Return what the scheduler lists now; None without a valid answer within ANSWER_SECONDS."""
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
        """Connect, and skip the two lines of greeting."""
        reader, writer = await asyncio.open_connection(self.address.host, self.address.port + 1, limit=MAX_ANSWER)
        self._streams = reader, writer
        name = writer.get_extra_info("sockname")
        self.own_address = str(name[0]) if isinstance(name, tuple) else ""
        for _ in range(GREETING_LINES):
            if not (await reader.readline()).endswith(b"\n"):
                raise EOFError
        return reader, writer

    def close(self) -> None:
        """Close the connection; a later question opens a new one."""
        if self._streams is not None:
            self._streams[1].close()
            self._streams = None


async def _answer(reader: asyncio.StreamReader) -> bytes:
    """Return the lines before the one that ends an answer; ValueError if that does not come within MAX_ANSWER."""
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
    """Return which of these hosts (name, address) are this machine: by address, otherwise by name."""
    named = tuple(hosts)
    by_address = {name for name, address in named if address == own_address}
    return frozenset(by_address or {name for name, _ in named if name == socket.gethostname()})
