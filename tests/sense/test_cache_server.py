"""Whether a build will call sccache, and whether its server answers."""

from __future__ import annotations

import socket
from pathlib import Path

import pytest

from stoker.sense.caches.cache_server import PORT, answers, ask, is_called, port_of


@pytest.mark.parametrize(
    ("line", "called"),
    [
        ("CMAKE_CXX_COMPILER_LAUNCHER:STRING=sccache", True),
        ("CMAKE_CUDA_COMPILER_LAUNCHER:UNINITIALIZED=/opt/bin/sccache", True),
        ("CMAKE_C_COMPILER_LAUNCHER:STRING=env;A=1;sccache", True),
        ("CMAKE_CXX_COMPILER_LAUNCHER:STRING=ccache", False),
        ("CMAKE_CXX_COMPILER_LAUNCHER:STRING=", False),
        ("//CMAKE_CXX_COMPILER_LAUNCHER:STRING=sccache", False),
        ("SCCACHE_PROGRAM:FILEPATH=/usr/bin/sccache", False),
    ],
)
def test_cmakes_cache_tells_whether_compilers_are_behind_it(tmp_path: Path, line: str, called: bool) -> None:
    (tmp_path / "CMakeCache.txt").write_text(f"# a comment\nA:BOOL=ON\n{line}\nB:STRING=x\n")
    assert is_called({}, ["/nonexistent", str(tmp_path)]) is called


@pytest.mark.parametrize(
    ("name", "value", "called"),
    [
        ("CXX", "sccache g++", True),
        ("CMAKE_CXX_COMPILER_LAUNCHER", "/usr/bin/sccache", True),
        ("CC", "/home/sccache/bin/gcc", False),
        ("PATH", "/usr/lib/sccache", False),
    ],
)
def test_the_environment_tells_it_as_well(name: str, value: str, called: bool) -> None:
    assert is_called({name: value}, []) is called


async def test_a_server_is_looked_for_where_clients_look(tmp_path: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = str(server.getsockname()[1])
        assert await answers({"SCCACHE_SERVER_PORT": port})
    assert not await answers({"SCCACHE_SERVER_PORT": port})
    with socket.socket(socket.AF_UNIX) as local:
        local.bind(str(tmp_path / "s"))
        local.listen()
        assert await answers({"SCCACHE_SERVER_UDS": str(tmp_path / "s"), "SCCACHE_SERVER_PORT": port})
    assert not await answers({"SCCACHE_SERVER_UDS": str(tmp_path / "none")})


@pytest.mark.parametrize("value", ["", "0", "65536", "-1", "99999999999", "x"])
def test_a_port_that_is_none_is_the_usual_one(value: str) -> None:
    assert port_of({"SCCACHE_SERVER_PORT": value}) == PORT


async def test_who_fails_or_is_not_there_tells_nothing() -> None:
    assert await ask(("/bin/sh", "-c", "echo yes"), {}, "/") == "yes\n"
    assert await ask(("/bin/sh", "-c", "echo no; exit 1"), {}, "/") is None
    assert await ask(("/nonexistent",), {}, "/") is None
