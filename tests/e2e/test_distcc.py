"""Real distcc on loopback: all of its slots are used, and a lost server's jobs begin here one after the other."""

from __future__ import annotations

import os
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker.sense.proc.processes import CLK_TCK, PROC, Process, parse_stat, read_cmdline, read_cwd
from stoker.sense.proc.procfs import read_once
from support.distcc import Farm, write_build
from support.program import PYPI_NINJA, Stoker, until

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

BEGUN = 0.25
"""CPU seconds of a compiler that was not stopped at its birth: a few hundredths is what it has until it is met."""


@pytest.fixture
def farm(stoker: Stoker, tmp_path: Path) -> Iterator[Farm]:
    farm = Farm(tmp_path / "farm")
    yield farm
    stoker.end_all()
    farm.end()


def remote(stoker: Stoker, build: str) -> Counter[str]:
    return Counter(job["host"] for job in stoker.status(build)["jobs"] if job["state"] == "running")


def moves(stoker: Stoker, build: str) -> list[dict[str, Any]]:
    return [e for e in stoker.events(build) if e["type"] == "job_moved"]


def compilers(folder: Path) -> list[Process]:
    """The compilers, and not preprocessors, in the build's folder."""
    read = (parse_stat(read_once(f"/proc/{name}/stat") or b"") for name in os.listdir(PROC) if name.isdigit())
    found = [p for p in read if p is not None and p.comm == "cc1plus" and p.state not in "ZX"]
    return [p for p in found if read_cwd(p.pid) == str(folder) and "-E" not in read_cmdline(p.pid)]


def begun(folder: Path) -> int:
    """How many of them have begun, and are not stopped."""
    return sum(p.state not in "Tt" and p.cpu_ticks / CLK_TCK >= BEGUN for p in compilers(folder))


def held(folder: Path) -> int:
    """How many of them are stopped."""
    return sum(p.state == "T" for p in compilers(folder))


def test_all_slots_are_used_and_nobody_is_held_for_a_core(stoker: Stoker, farm: Farm, tmp_path: Path) -> None:
    farm.start("127.0.0.1", 5)
    farm.start("127.0.0.2", 3)
    stoker.env |= farm.env
    folder = write_build(tmp_path / "build", 20)
    build = stoker.detach(PYPI_NINJA, cwd=folder, jobs=2)
    until(lambda: sum(remote(stoker, build)[h] for h in ("127.0.0.1", "127.0.0.2")) == 8, "8 jobs elsewhere")
    status = stoker.status(build)
    assert status["level"]["local"] <= 2 < status["level"]["running"]
    assert status["remote"]["slots"] == 8
    assert {j["waits_for"] for j in status["jobs"] if j["state"] == "on_deck"} <= {"host"}
    farm.let_go()
    ended = stoker.ended(build)
    assert ended["exit_code"] == 0
    assert 8 <= ended["remote"]["finished"] <= 20, "what a host does within some hundredths of a second is not seen"
    assert {h["name"]: h["fallbacks"] for e in ended["remote"]["engines"] for h in e["hosts"]} == {
        "127.0.0.1": 0,
        "127.0.0.2": 0,
    }
    # What had taken a slot before it was held goes on; its preprocessing keeps to the level.
    assert {m["by"] for m in moves(stoker, build) if m["state"] == "frozen"} <= {"word"}


def test_a_lost_servers_jobs_begin_here_one_after_the_other(stoker: Stoker, farm: Farm, tmp_path: Path) -> None:
    farm.start("127.0.0.1", 8)
    stoker.env |= farm.env
    folder = write_build(tmp_path / "build", 10, heavy=True)
    build = stoker.detach(PYPI_NINJA, cwd=folder, jobs=2)
    until(lambda: remote(stoker, build)["127.0.0.1"] == 8, "8 jobs elsewhere")
    farm.kill("127.0.0.1")
    most = 0
    while stoker.status(build)["state"] not in ("done", "failed"):
        for _ in range(10):
            most = max(most, begun(folder))
            time.sleep(0.05)
    ended = stoker.ended(build)
    assert ended["exit_code"] == 0
    assert 1 <= most <= 2
    (host,) = ended["remote"]["engines"][0]["hosts"]
    assert host["fallbacks"] >= 1
    assert host["errors"] >= 1
    assert [d for d in stoker.events(build) if d["type"] == "decided" and d["what"].startswith("take back ")]
    assert ended["killed"] == []


def test_engines_that_die_while_fallbacks_are_held_leave_nothing_stopped(
    stoker: Stoker, farm: Farm, tmp_path: Path
) -> None:
    farm.start("127.0.0.1", 8)
    stoker.env |= farm.env
    folder = write_build(tmp_path / "build", 10, heavy=True)
    build = stoker.detach(PYPI_NINJA, cwd=folder, jobs=2)
    until(lambda: remote(stoker, build)["127.0.0.1"] == 8, "8 jobs elsewhere")
    farm.kill("127.0.0.1")
    deaths = most = 0
    while stoker.status(build)["state"] not in ("done", "failed"):
        if deaths < 3 and held(folder):
            os.kill(stoker.engine_pid(build), signal.SIGKILL)
            deaths += 1
        for _ in range(20):
            most = max(most, begun(folder))
            time.sleep(0.05)
    assert stoker.ended(build)["exit_code"] == 0
    assert deaths >= 1
    assert 1 <= most <= 2
    assert len([e for e in stoker.events(build) if e["type"] == "engine_started"]) == deaths + 1
    assert held(folder) == 0


def test_what_hosts_finish_while_no_engine_runs_is_counted(stoker: Stoker, farm: Farm, tmp_path: Path) -> None:
    farm.start("127.0.0.1", 8)
    stoker.env |= farm.env
    folder = write_build(tmp_path / "build", 8)
    build = stoker.detach(PYPI_NINJA, cwd=folder, jobs=2)
    until(lambda: remote(stoker, build)["127.0.0.1"] == 8, "8 jobs elsewhere")
    killed = set[int]()
    farm.let_go()
    while len(list(folder.glob("u*.o"))) < 8:
        if (engine := stoker.engine_pid(build)) not in killed and len(killed) < 6:
            os.kill(engine, signal.SIGKILL)
            killed.add(engine)
        time.sleep(0.05)
    ended = stoker.ended(build)
    assert ended["exit_code"] == 0
    (host,) = ended["remote"]["engines"][0]["hosts"]
    assert (host["finished"], host["fallbacks"]) == (8, 0)
