"""Why a step failed, found in its own output by a process of its own."""

from __future__ import annotations

import asyncio
import os
from dataclasses import replace
from pathlib import Path

import pytest

from stoker.act.tree import descendants
from stoker.config.paths import BuildPaths
from stoker.diagnose.killed_causes import STRANGER_TITLE
from stoker.launch.cause_in_child import CauseInChild
from stoker.model.killed import killers_of
from stoker.model.reduce import reduce_all
from stoker.model.state import Failure

OTHER = b"[1/9] CC a.o\nFAILED: a.o\ngcc -c a.c\na.c:1:10: fatal error: zlib.h: No such file or directory\n"
OWN = b"FAILED: b.o\ngcc -c b.c\nb.c:7:10: fatal error: openssl/ssl.h: No such file or directory\n"
KILLED = b"FAILED: d.o\nc++ -c d.cc\nc++: fatal error: Killed signal terminated program cc1plus\n"
UNKNOWN = b"FAILED: c.o\n./generate c.c\nit is Tuesday\n"


def _failed(output: str, start: int, end: int) -> Failure:
    return Failure(0.0, output, "", 1, (), start, end)


@pytest.mark.long
async def test_the_cause_is_that_of_the_step_and_not_of_its_neighbours(tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    paths.output.write_bytes(OTHER + b"[2/9] CC b.o\n" + OWN + UNKNOWN)
    start = len(OTHER) + len(b"[2/9] CC b.o\n")
    find = CauseInChild(paths)
    cause = await find(_failed("b.o", start, start + len(OWN)), ())
    assert cause is not None
    assert "OpenSSL" in cause.title
    assert "libssl-dev" in cause.remedy
    assert (cause.line, cause.offset) == (8, start + OWN.index(b"b.c:7"))
    assert await find(_failed("c.o", start + len(OWN), start + len(OWN + UNKNOWN)), ()) is None


async def test_a_step_that_was_killed_from_outside_has_not_run_out_of_memory(tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    paths.output.write_bytes(KILLED)
    killed = replace(_failed("d.o", 0, len(KILLED)), killed_by="unknown")
    cause = await CauseInChild(paths)(killed, killers_of(reduce_all(()), killed))
    assert cause is not None
    assert (cause.rule, cause.title) == ("compiler-killed", STRANGER_TITLE)
    assert "MAX_JOBS" not in cause.remedy


async def test_a_search_that_fails_does_not_claim_that_no_rule_knows_the_cause(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="no answer"):
        await CauseInChild(BuildPaths(tmp_path / "gone"))(_failed("a.o", 0, 10), ())


async def test_on_a_full_machine_the_search_is_not_behind_the_compilers(tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    os.mkfifo(paths.output)  # the search stands where it opens the log
    before = {*descendants(os.getpid())}
    searching = asyncio.create_task(CauseInChild(paths)(_failed("a.o", 0, 10), ()))
    while True:
        await asyncio.sleep(0.02)
        try:
            log = os.open(paths.output, os.O_WRONLY | os.O_NONBLOCK)
            break
        except OSError:  # nobody reads it yet
            assert not searching.done()
    (child,) = {*descendants(os.getpid())} - before
    assert os.getpriority(os.PRIO_PROCESS, child) == os.getpriority(os.PRIO_PROCESS, 0)
    os.close(log)
    with pytest.raises(OSError, match="no answer"):  # a log that cannot be searched
        await searching
