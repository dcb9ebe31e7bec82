"""A real redis on loopback for tests, which can be stopped and killed."""

from __future__ import annotations

import contextlib
import shutil
import signal
import socket
import subprocess
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

START_SECONDS = 20.0


@dataclass
class Redis:
    """A server of the test's own."""

    port: int
    process: subprocess.Popen[bytes]

    @property
    def url(self) -> str:
        return f"redis://127.0.0.1:{self.port}"

    def stop(self) -> None:
        """It accepts connections, by the kernel, and answers nothing."""
        self.process.send_signal(signal.SIGSTOP)

    def go_on(self) -> None:
        self.process.send_signal(signal.SIGCONT)

    def kill(self) -> None:
        self.process.kill()
        self.process.wait()


def free_port() -> int:
    """A port of loopback where nobody listens."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    assert isinstance(port, int)
    return port


@contextlib.contextmanager
def redis_server(folder: Path, *options: str, port: int = 0) -> Iterator[Redis]:
    """A redis that keeps nothing on disk; skips the test where there is none."""
    program = shutil.which("redis-server")
    if program is None:
        pytest.skip("redis-server is not installed (apt-get install redis-server)")
    port = port or free_port()
    words = [program, "--bind", "127.0.0.1", "--port", str(port), "--save", "", "--appendonly", "no", *options]
    with (folder / "redis.log").open("ab") as log:
        process = subprocess.Popen(words, cwd=folder, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + START_SECONDS
        while not _answers(port):
            assert process.poll() is None, (folder / "redis.log").read_text()
            assert time.monotonic() < deadline, "redis does not start"
            time.sleep(0.02)
        yield Redis(port, process)
    finally:
        process.kill()
        process.wait()


def listens(port: int) -> bool:
    """Whether somebody listens at this port of loopback."""
    with socket.socket() as asking:
        return asking.connect_ex(("127.0.0.1", port)) == 0


def _answers(port: int) -> bool:
    with socket.socket() as asking:
        asking.settimeout(1.0)
        if asking.connect_ex(("127.0.0.1", port)):
            return False
        asking.sendall(b"PING\r\n")
        return asking.recv(16)[:1] in (b"+", b"-")
