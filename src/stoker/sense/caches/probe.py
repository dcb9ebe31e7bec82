"""Probes whether a shared cache answers, with the shortest message of its protocol and a timeout. Blocks; for a thread.

A stopped server still accepts connections, because the kernel does that for it: only an answer counts. Sends no secret,
and reads and writes nothing there. Unaware of the consequences of the answer.
"""

from __future__ import annotations

import contextlib
import socket
import ssl
import time
from typing import NamedTuple

from stoker.sense.caches.endpoints import CachePlace

MAX_ANSWER = 512
"""Bytes that are read: the first line is enough."""

_WORDS = {"redis": b"*1\r\n$4\r\nPING\r\n", "memcached": b"version\r\n"}
_BEGINS = {"redis": (b"+", b"-"), "memcached": (b"VERSION", b"ERROR"), "http": (b"HTTP/",)}
"""How an answer starts, including refusals for lack of a password: somebody is there."""


class Answered(NamedTuple):
    """How long the answer took in seconds; `problem` says briefly why there was none, empty if there was.

    `silent`: somebody is there, or nobody reports that nobody is; a client waits until it times out.
    """

    seconds: float
    problem: str = ""
    silent: bool = False


def cost(place: CachePlace, answered: Answered) -> str:
    """Return what a compilation pays for a cache that does not answer.

    Measured with redis stopped and killed: sccache 0.16 waits 60.6 s in both cases, ccache 4.14 10 s and not at all.
    """
    if place.tool == "sccache":
        return "each compilation waits a minute for it"
    return "each compilation waits 10 s for it" if answered.silent else "nothing is taken from it"


def probe(endpoint: CachePlace, seconds: float) -> Answered:
    """Probe once. Never raises; a hanging name server may take longer than `seconds`."""
    began = time.monotonic()
    try:
        with _connected(endpoint, seconds) as connection:
            connection.sendall(_words(endpoint))
            problem = _judged(_first(connection, began + seconds), endpoint)
    except TimeoutError:
        return Answered(time.monotonic() - began, f"no answer in {seconds:g} s", silent=True)
    except (OSError, ValueError) as err:
        problem = (getattr(err, "strerror", None) or str(err) or type(err).__name__).lower()
    return Answered(time.monotonic() - began, problem)


def _connected(endpoint: CachePlace, seconds: float) -> socket.socket:
    """Return a connection whose operations each time out after so many seconds."""
    if endpoint.socket:
        connection = socket.socket(socket.AF_UNIX)
        connection.settimeout(seconds)
        try:
            connection.connect(endpoint.socket)
        except OSError:
            connection.close()
            raise
        return connection
    plain = socket.create_connection((endpoint.host, endpoint.port), seconds)
    if not endpoint.tls:
        return plain
    context = ssl.create_default_context()
    # Nothing is entrusted to it: the cache judges the certificate by its own rules.
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    try:
        return context.wrap_socket(plain, server_hostname=endpoint.host)
    except BaseException:
        plain.close()
        raise


def _words(endpoint: CachePlace) -> bytes:
    if endpoint.protocol != "http":
        return _WORDS[endpoint.protocol]
    host = f"{endpoint.host}:{endpoint.port}"
    return f"HEAD {endpoint.path} HTTP/1.1\r\nHost: {host}\r\nConnection: close\r\n\r\n".encode("ascii", "replace")


def _first(connection: socket.socket, deadline: float) -> bytes:
    """Return the beginning of the answer, at least a line of it unless it ends earlier. Raises TimeoutError."""
    said = b""
    while b"\n" not in said and len(said) < MAX_ANSWER:
        connection.settimeout(max(0.001, deadline - time.monotonic()))
        data = connection.recv(MAX_ANSWER)
        if not data:
            break
        said += data
    with contextlib.suppress(OSError):
        connection.shutdown(socket.SHUT_RDWR)
    return said


def _judged(said: bytes, endpoint: CachePlace) -> str:
    if not said:
        return "it hangs up without an answer"
    return (
        "" if said.startswith(_BEGINS[endpoint.protocol]) else f"what listens there is not a {endpoint.protocol} server"
    )
