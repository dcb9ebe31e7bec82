"""Settings for all tests."""

from __future__ import annotations

import contextlib
import functools
import os
import shutil
import signal
import sys
from collections.abc import Iterator, Sequence
from fnmatch import fnmatch
from pathlib import Path

import pytest
from hypothesis import HealthCheck, is_hypothesis_test, settings

from support.program import Stoker

# Property tests are bounded by their examples, never by a clock: a busy machine must not fail one for being slow.
settings.register_profile("stoker", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("stoker")

# Each worker of `pytest -n` imports all tests, and a build starts several interpreters: where no byte code is kept, as
# in many a container image, they would compile the same files again and again.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)

HANGS_SECONDS = 3600
"""Seconds after which a property test is taken to hang: pytest's bound for single tests is for one example."""

LONG_ONES = ("simulate", "e2e", "cli", "launch", "supervisor", "verify", "package")
"""Folders whose files take longest, by what a test of theirs takes. They begin first, so that in the end no worker of
`pytest -n` waits alone for one of them."""

MARKED = {
    "long": (b"mark.long", b"ONE_NINJA_AT_FIRST"),
    "platform": (b"mark.platform",),
    "soak": (b"mark.soak",),
}
"""By what a file can be known that has tests with a marker."""


@pytest.fixture
def stoker(tmp_path: Path) -> Iterator[Stoker]:
    """The real program, with a state of its own."""
    program = Stoker(tmp_path)
    yield program
    program.end_all()
    shutil.rmtree(program.runtime, ignore_errors=True)


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test that `-m long` asks for: all imports take each worker of `pytest -n` seconds."""
    words = MARKED.get(config.option.markexpr, ())
    if not words or not fnmatch(collection_path.name, "test_*.py") or _has_one_of(collection_path, words):
        return None
    return True


@functools.cache
def _has_one_of(file: Path, words: Sequence[bytes]) -> bool:
    text = file.read_bytes()
    return any(word in text for word in words)


def pytest_collection(session: pytest.Session) -> None:
    """Let each worker of `pytest -n` import other files first. In a fresh copy they would all rewrite the assertions of
    the same file at the same time, which takes each of them three times as long as all imports; what one of them has
    rewritten, the others read."""
    worker = getattr(session.config, "workerinput", None)
    if worker is None:
        return
    named = [Path(word.partition("::")[0]) for word in session.config.args]
    files = sorted(file for path in named for file in ([path] if path.is_file() else path.rglob("test_*.py")))
    share = int(worker["workerid"].removeprefix("gw"))
    for file in files[share :: worker["workercount"]]:
        if pytest_ignore_collect(file, session.config) is None:
            with contextlib.suppress(Exception, pytest.skip.Exception):  # is reported where the file's turn comes
                pytest.Module.from_parent(session, path=file.absolute()).obj  # noqa: B018  # imports it


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    ranks = {name: rank for rank, name in enumerate(LONG_ONES)}
    items.sort(key=lambda item: ranks.get(item.path.parent.name, len(ranks)))
    for item in items:
        if isinstance(item, pytest.Function) and is_hypothesis_test(item.function):
            item.add_marker(pytest.mark.timeout(HANGS_SECONDS))
        for marker in MARKED.keys() & {mark.name for mark in item.iter_markers()}:
            if not _has_one_of(item.path, MARKED[marker]):
                raise pytest.UsageError(f"{item.nodeid}: its file says nothing of MARKED[{marker!r}], in conftest.py")


# The workers of `pytest -n` have these of somebody's terminal; a test's own terminal has a size of its own.
for name in ("COLUMNS", "LINES"):
    os.environ.pop(name, None)

# A shell starts a job in the background with SIGINT and SIGQUIT ignored, nohup with SIGHUP, and children inherit that.
# Tests press Ctrl-C and hang up, so that they must mean the same wherever the tests were started.
for number in (signal.SIGINT, signal.SIGQUIT, signal.SIGHUP):
    if signal.getsignal(number) is signal.SIG_IGN:
        signal.signal(number, signal.default_int_handler if number == signal.SIGINT else signal.SIG_DFL)
