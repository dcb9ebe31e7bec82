"""Why a step failed, found in its own output by a process of its own."""

from __future__ import annotations

from pathlib import Path

from stoker.config.paths import BuildPaths
from stoker.launch.cause_in_child import CauseInChild
from stoker.model.state import Failure

OTHER = b"[1/9] CC a.o\nFAILED: a.o\ngcc -c a.c\na.c:1:10: fatal error: zlib.h: No such file or directory\n"
OWN = b"FAILED: b.o\ngcc -c b.c\nb.c:7:10: fatal error: openssl/ssl.h: No such file or directory\n"
UNKNOWN = b"FAILED: c.o\n./generate c.c\nit is Tuesday\n"


def _failed(output: str, start: int, end: int) -> Failure:
    return Failure(0.0, output, "", 1, (), start, end)


async def test_the_cause_is_that_of_the_step_and_not_of_its_neighbours(tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    paths.output.write_bytes(OTHER + b"[2/9] CC b.o\n" + OWN + UNKNOWN)
    start = len(OTHER) + len(b"[2/9] CC b.o\n")
    find = CauseInChild(paths)
    cause = await find(_failed("b.o", start, start + len(OWN)))
    assert cause is not None
    assert "OpenSSL" in cause.title
    assert "libssl-dev" in cause.remedy
    assert (cause.line, cause.offset) == (8, start + OWN.index(b"b.c:7"))
    assert await find(_failed("c.o", start + len(OWN), start + len(OWN + UNKNOWN))) is None


async def test_a_log_that_is_gone_has_no_cause(tmp_path: Path) -> None:
    assert await CauseInChild(BuildPaths(tmp_path / "gone"))(_failed("a.o", 0, 10)) is None
