"""Tests whether a server listens at an address: one look begins a connection, and a later look checks it.

Sends nothing and never blocks. Does not know which server should listen there, or why.
"""

from __future__ import annotations

import contextlib
import ipaddress
import select
import socket
import time

LATE_SECONDS = 3.0
"""A connection that takes longer is given up: there is no answer."""


class ReachQuestion:
    """Tests one address at a time, at most every `every` seconds."""

    def __init__(self, every: float) -> None:
        self._every = every
        self._socket: socket.socket | None = None
        self._asked_at = 0.0

    def look(self, address: str) -> bool | None:
        """Return whether a server listens at that IP address and port; None if there is no new answer, or the address
        is not valid."""
        if self._socket is not None:
            return self._answer(self._socket)
        if not self._asked_at or time.monotonic() - self._asked_at >= self._every:
            self._asked_at = time.monotonic()
            self._begin(address)
        return None

    def _begin(self, address: str) -> None:
        host, _, port = address.rpartition(":")
        with contextlib.suppress(OSError, ValueError):
            where, number = ipaddress.ip_address(host.strip("[]")), int(port)  # a name would block on DNS
            if 0 < number < 65536:
                family = socket.AF_INET6 if where.version == 6 else socket.AF_INET
                self._socket = socket.socket(family, socket.SOCK_STREAM | socket.SOCK_NONBLOCK)
                self._socket.connect_ex((str(where), number))

    def _answer(self, begun: socket.socket) -> bool | None:
        _, connected, _ = select.select((), (begun,), (), 0)
        if not connected and time.monotonic() - self._asked_at < LATE_SECONDS:
            return None
        error = begun.getsockopt(socket.SOL_SOCKET, socket.SO_ERROR)
        self.close()
        return bool(connected) and not error

    def close(self) -> None:
        """Close a connection that was begun."""
        begun, self._socket = self._socket, None
        if begun is not None:
            begun.close()
