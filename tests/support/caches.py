"""Compiler caches for tests: where they are, and surroundings of their own."""

from __future__ import annotations

import contextlib
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

HEAVY = """\
#include <functional>
#include <map>
#include <regex>
#include <string>
std::size_t f{n}(const std::string& s) {{
  std::regex r("a+{n}(b|c)*[d-z]");
  std::map<std::string, std::function<std::size_t()>> m;
  m["x"] = [&] {{ return std::regex_match(s, r) + m.size() + {n}; }};
  return m["x"]();
}}
"""
"""A source that takes a compiler a second or two and some 200 MiB."""


def program(name: str) -> str:
    """A cache's program, beside this Python or on PATH; skips the test where it is nowhere."""
    beside = Path(sys.executable).with_name(name)
    found = str(beside) if beside.exists() else shutil.which(name)
    if found is None:
        pytest.skip(f"{name} is not installed (pip install 'stoker[test]' brings it)")
    return found


def surroundings(folder: Path) -> dict[str, str]:
    """Variables that give caches folders, and a server's address, that nobody else uses."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    return {
        "CCACHE_DIR": str(folder / "ccache"),
        "CCACHE_CONFIGPATH": str(folder / "ccache.conf"),
        "SCCACHE_DIR": str(folder / "sccache"),
        "SCCACHE_CONF": str(folder / "sccache.conf"),
        "SCCACHE_SERVER_PORT": str(port),
        "SCCACHE_IDLE_TIMEOUT": "120",
    }


@contextlib.contextmanager
def no_server_left(sccache: str, env: dict[str, str]) -> Iterator[None]:
    """Ends sccache's server afterwards."""
    try:
        yield
    finally:
        subprocess.run([sccache, "--stop-server"], env=env, capture_output=True, timeout=60, check=False)


def write_cmake(folder: Path, units: int) -> Path:
    """A C++ project of so many heavy units and a light one, which are compiled when $PAUSE seconds are over.

    Compilations that a cache answers are over before stoker knows what a build has to do, else.
    """
    folder.mkdir()
    names = [f"f{n}.cpp" for n in range(units)]
    for n, name in enumerate(names):
        (folder / name).write_text(HEAVY.format(n=n))
    (folder / "slow.sh").write_text("sleep ${PAUSE:-0}\n")
    (folder / "main.cpp").write_text("int main() { return 0; }\n")
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(cached CXX)\n"
        f"add_executable(cached main.cpp {' '.join(names)})\n"
        "add_custom_target(slow ALL COMMAND sh ${CMAKE_SOURCE_DIR}/slow.sh)\nadd_dependencies(cached slow)\n"
    )
    return folder
