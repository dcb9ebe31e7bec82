"""sccache's server: whether one answers, and how it and ccache are queried.

Querying sccache starts its server if none runs, so this checks for one first. Unaware of what the figures are for.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import re
from collections.abc import Iterable, Mapping, Sequence

from stoker.sense.proc.printed import printed
from stoker.sense.proc.procfs import read_all

PORT = 4226
"""Where sccache's server listens unless SCCACHE_SERVER_PORT or SCCACHE_SERVER_UDS say otherwise (its docs)."""

CONNECT_SECONDS = 0.5
ASK_SECONDS = 3.0
"""Limits; measured are 1 ms, and 5 to 10 ms for a whole query. A cache on a hanging file server must not block
anything."""

MAX_CMAKE_CACHE = 4 * 2**20
"""Bytes of a CMakeCache.txt that are read; PyTorch's has 0.3 MiB."""

_VARIABLES = (
    *(f"CMAKE_{language}_COMPILER_LAUNCHER" for language in ("C", "CXX", "CUDA")),
    *("CC", "CXX", "NVCC", "PYTORCH_NVCC", "RUSTC_WRAPPER"),
)
_NAMED = re.compile(r"(?:^|[\s/;])sccache(?:$|[\s;])")
_LAUNCHER = re.compile(rb"^CMAKE_\w+_COMPILER_LAUNCHER:\w+=(?:.*[/;])?sccache(?:;|$)", re.MULTILINE)

ASK = {
    "ccache": ("--print-stats",),
    "sccache": ("--show-stats", "--stats-format", "json"),
}


def is_called(env: Mapping[str, str], folders: Iterable[str]) -> bool:
    """Say whether a build with this environment, or one that CMake has configured in these folders, calls sccache."""
    if any(_NAMED.search(env.get(name, "")) for name in _VARIABLES):
        return True
    caches = (read_all(os.path.join(folder, "CMakeCache.txt"), MAX_CMAKE_CACHE) for folder in folders)
    return any(_LAUNCHER.search(text) for text in caches if text)


async def answers(env: Mapping[str, str]) -> bool:
    """Say whether an sccache server listens where clients with this environment look for it."""
    path = env.get("SCCACHE_SERVER_UDS", "")
    try:
        if path:
            where = "\0" + path.removeprefix("\\x00") if path.startswith("\\x00") else path
            connecting = asyncio.open_unix_connection(where)
        else:
            connecting = asyncio.open_connection("127.0.0.1", port_of(env))
        _, writer = await asyncio.wait_for(connecting, CONNECT_SECONDS)
    except (OSError, ValueError, TimeoutError):
        return False
    writer.close()
    with contextlib.suppress(OSError):
        await writer.wait_closed()
    return True


def port_of(env: Mapping[str, str]) -> int:
    """Return the port in this environment, or the default one."""
    value = env.get("SCCACHE_SERVER_PORT", "")
    return int(value) if value.isascii() and value.isdecimal() and 0 < int(value) < 65536 else PORT


async def ask(command: Sequence[str], env: Mapping[str, str], cwd: str) -> str | None:
    """Return what a cache's command prints; None if it cannot be started, fails, or takes more than ASK_SECONDS."""
    return await printed(command, ASK_SECONDS, env=env, cwd=cwd)


async def start(program: str, env: Mapping[str, str], config: str = "") -> bool:
    """Start sccache's server, in the background and for everyone who uses it later; return whether it reports success.

    `config` replaces the user's own configuration file. It may contain a secret: it is passed in anonymous memory, and
    disappears with the server.
    """
    if not config:
        return await _start(program, env)
    memory = os.memfd_create("sccache-config")
    try:
        os.write(memory, config.encode())
        return await _start(program, {**env, "SCCACHE_CONF": f"/proc/self/fd/{memory}"}, memory)
    finally:
        os.close(memory)


async def _start(program: str, env: Mapping[str, str], *kept_open: int) -> bool:
    try:
        process = await asyncio.create_subprocess_exec(
            program,
            "--start-server",
            # The server keeps this for as long as it lives.
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.DEVNULL,
            stderr=asyncio.subprocess.DEVNULL,
            env=env,
            cwd="/",
            start_new_session=True,
            pass_fds=kept_open,
        )
    except OSError:
        return False
    try:
        return await asyncio.wait_for(process.wait(), ASK_SECONDS) == 0
    except TimeoutError:
        with contextlib.suppress(ProcessLookupError):
            process.kill()
        await process.wait()
        return False
