"""What a person's word does to running compilers, as /proc, `status --json` and the decisions tell it."""

from __future__ import annotations

import getpass
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.burn import burns, write_burns
from support.grouped import Grouped
from support.memory_group import MIB, MemoryGroup
from support.overlap import Overlap
from support.program import until, write_ninja

pytestmark = pytest.mark.timeout(300)

LEVEL = 3
COUNT = 11


@pytest.fixture
def stoker(tmp_path: Path) -> Iterator[Grouped]:
    with MemoryGroup(4096 * MIB) as group:
        yield Grouped(tmp_path, group)


@pytest.fixture
def build(stoker: Grouped, tmp_path: Path) -> str:
    """A build of jobs that burn a CPU second each, three at once whatever the machine has."""
    folder = write_burns(tmp_path / "p", burns(COUNT, 1.0))
    result = stoker.run("run", "--detach", "-j", str(LEVEL), "--", "ninja", "-C", str(folder))
    assert result.returncode == 0, result.stderr
    name = result.stdout.decode().strip()
    until(lambda: (len(stoker.going()), len(stoker.held())) == (LEVEL, COUNT - LEVEL), "three at work, all others held")
    return name


def told(status: dict[str, Any], what: str) -> bool:
    """Whether this person's decision is among the last."""
    return any(d["who"] == getpass.getuser() and d["what"].startswith(what) for d in status["decisions"])


def ends_well(stoker: Grouped, build: str) -> bool:
    status = stoker.over(build)
    return (status["state"], status["progress"]["finished"], status["progress"]["failed"]) == ("done", COUNT, 0)


@pytest.mark.long
def test_the_level_goes_down_at_once_and_up_again(stoker: Grouped, build: str) -> None:
    assert stoker.run("jobs", build, "1").returncode == 0
    until(lambda: len(stoker.going()) == 1, "one job at work")
    status = stoker.status(build)
    assert (status["level"]["mode"], status["level"]["target"]) == ("manual", 1)
    assert told(status, "level 3 → 1")
    overlap = Overlap(lambda: [p for job in stoker.jobs() for p in job if p.name == "burn"])
    with overlap.watch:
        finished = status["progress"]["finished"]
        until(lambda: stoker.status(build)["progress"]["finished"] >= finished + 2, "two jobs one after the other")
    assert overlap.most == 1
    assert stoker.run("jobs", build, str(LEVEL)).returncode == 0
    until(lambda: len(stoker.going()) == LEVEL, "three jobs at work")
    assert stoker.run("jobs", build, "auto").returncode == 0
    status = stoker.status(build)
    assert status["level"]["mode"] == "auto"
    assert told(status, f"level {LEVEL} → automatic")
    assert ends_well(stoker, build)


@pytest.mark.long
def test_a_soft_pause_lets_what_runs_end_and_starts_nothing(stoker: Grouped, build: str) -> None:
    running = {job[0].pid for job in stoker.going()}
    assert stoker.run("pause", build).returncode == 0
    until(lambda: not stoker.going(), "the end of what ran")
    until(lambda: stoker.status(build)["progress"]["finished"] >= LEVEL, "their end to be told")
    status = stoker.status(build)
    assert (status["state"], status["level"]["paused"]) == ("paused", "soft")
    assert told(status, "pause")
    assert status["progress"]["frozen"] == 0
    assert not running & {job[0].pid for job in stoker.jobs()}
    assert stoker.run("unpause", build).returncode == 0
    until(stoker.going, "jobs at work")
    assert told(stoker.status(build), "unpause")
    assert ends_well(stoker, build)


@pytest.mark.long
def test_pause_now_stops_every_process_of_every_job_and_unpause_goes_on(stoker: Grouped, build: str) -> None:
    assert stoker.run("pause", "--now", build).returncode == 0
    until(lambda: not stoker.going(), "everything stopped")
    status = stoker.status(build)
    assert status["state"] == "frozen"
    assert status["level"]["paused"] == "hard"
    progress = status["progress"]
    assert progress["running"] == 0
    assert progress["frozen"] > 0
    assert progress["frozen"] + progress["on_deck"] + progress["finished"] == COUNT
    assert told(status, "pause now")
    assert all(p.state != "T" for p in stoker.ninjas())
    assert stoker.run("unpause", build).returncode == 0
    until(lambda: len(stoker.going()) == LEVEL, "three jobs at work")
    assert stoker.status(build)["state"] == "running"
    assert ends_well(stoker, build)


def test_a_stop_sets_frozen_jobs_going_and_leaves_nothing(stoker: Grouped, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "p", [(f"o{n}", f"sleep 600; : {n}") for n in range(LEVEL + 2)])
    build = stoker.detach("ninja", "-C", str(folder), jobs=LEVEL)
    until(lambda: (len(stoker.going()), len(stoker.held())) == (LEVEL, 2), "three at work, the others held")
    assert stoker.run("pause", "--now", build).returncode == 0
    until(lambda: not stoker.going(), "everything stopped")
    assert stoker.run("stop", build).returncode == 0
    status = stoker.over(build)
    assert status["state"] == "stopped"


def test_a_level_that_is_none_is_refused_in_one_line(stoker: Grouped) -> None:
    build = stoker.detach("sleep", "600", jobs=LEVEL)
    until(lambda: stoker.status(build)["level"]["target"] == LEVEL, "the level")
    for level in ("0", "many", "-1"):
        refused = stoker.run("jobs", level)
        assert refused.returncode == 2
        assert refused.stderr.count(b"\n") == 1
        assert stoker.status(build)["level"]["target"] == LEVEL
    assert stoker.run("stop", "--force", build).returncode == 0
