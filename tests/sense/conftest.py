from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

Start = Callable[..., subprocess.Popen[bytes]]


def _ninjas() -> list[str]:
    """The PyPI wheel's ninja beside this Python, and the system's, where both are there."""
    found = [Path(sys.executable).parent / "ninja", Path("/usr/bin/ninja")]
    return [str(p) for p in found if p.exists()]


@pytest.fixture(params=_ninjas())
def ninja(request: pytest.FixtureRequest) -> str:
    return str(request.param)


@pytest.fixture
def any_ninja() -> str:
    return _ninjas()[0]


@pytest.fixture
def start() -> Iterator[Start]:
    """Start processes that are surely gone at the end, with all that they started in their session."""
    started: list[subprocess.Popen[bytes]] = []

    def run(*command: str, cwd: Path, env: dict[str, str] | None = None) -> subprocess.Popen[bytes]:
        process = subprocess.Popen(
            command,
            cwd=cwd,
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
        started.append(process)
        return process

    yield run
    for process in started:
        _end_tree(process)


def _end_tree(process: subprocess.Popen[bytes]) -> None:
    """Ninja's jobs have groups of their own but share the session."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with contextlib.suppress(OSError, IndexError, ValueError):
                fields = (entry / "stat").read_text().rpartition(")")[2].split()
                if int(fields[3]) == process.pid:
                    os.kill(int(entry.name), signal.SIGKILL)
    process.wait()


@pytest.fixture
def until() -> Callable[[Callable[[], object]], None]:
    """Poll until something holds; a minute is for ever."""

    def wait(condition: Callable[[], object]) -> None:
        deadline = time.monotonic() + 60
        while not condition():
            assert time.monotonic() < deadline, "waited in vain"
            time.sleep(0.02)

    return wait


@pytest.fixture
def needs() -> Callable[..., None]:
    """Skip where a program is missing."""

    def check(*programs: str) -> None:
        for program in programs:
            if shutil.which(program) is None:
                pytest.skip(f"{program} is not installed")

    return check
