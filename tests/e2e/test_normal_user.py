"""A build of a normal user on this machine, in a group of which only root may change the limit."""

from __future__ import annotations

import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.burn import burns, write_burns
from support.grouped import Grouped
from support.memory_group import MIB, MemoryGroup
from support.program import PYPI_NINJA, until
from support.somebody import NOBODY, as_somebody, own

pytestmark = [
    pytest.mark.long,
    pytest.mark.timeout(300),
    pytest.mark.skipif(os.geteuid() != 0, reason="this is a normal user already: the other tests are about that"),
]

LIMIT = 500 * MIB
PROJECT = Path(__file__).resolve().parents[2]


@pytest.fixture
def somebody() -> Iterator[Grouped]:
    """A stoker of a user without any capability, whose home, state and builds are that user's own."""
    home = Path(tempfile.mkdtemp(prefix="somebody-"))
    with MemoryGroup(LIMIT) as group:
        made = Grouped(home, group)
        made.prefix = as_somebody((PROJECT, *{Path(sys.prefix), Path(sys.base_prefix)}))
        made.env["HOME"] = str(home)
        own(home)
        own(made.runtime)
        yield made
        made.end_all()
    shutil.rmtree(home)
    shutil.rmtree(made.runtime, ignore_errors=True)


def test_a_normal_user_s_build_is_governed_by_a_limit_that_is_root_s(somebody: Grouped) -> None:
    folder = own(write_burns(somebody.root / "p", burns(6, 0.3, mib=80)))
    status = somebody.built(PYPI_NINJA, "-C", str(folder), "-j8")
    assert (status["state"], status["exit_code"], somebody.group.kills) == ("done", 0, 0), status
    assert status["memory"]["budget"] == LIMIT
    assert (somebody.folder(status["id"]) / "journal.jsonl").stat().st_uid == NOBODY
    assert not (somebody.folder(status["id"]) / "engine.log").read_text()


def test_a_normal_user_can_freeze_and_stop_a_build_and_leaves_nothing(somebody: Grouped) -> None:
    folder = own(write_burns(somebody.root / "p", burns(4, 600)))
    build = somebody.detach(PYPI_NINJA, "-C", str(folder), jobs=2)
    until(lambda: somebody.going() and somebody.held(), "jobs at work and held ones")
    assert somebody.run("pause", "--now", build).returncode == 0
    until(lambda: not somebody.going(), "frozen jobs")
    assert somebody.run("stop", "--force", build).returncode == 0
    assert somebody.over(build)["state"] == "stopped"
