"""A neighbour that stalls on memory in a small group of its own is no reason to stop or kill anything of a build."""

from __future__ import annotations

import shutil
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.program import Stoker, write_ninja
from support.thrash import Thrasher, machine_stalls

pytestmark = [pytest.mark.timeout(300), pytest.mark.long]

STALL = 25.0
"""Percent; from 20 on stoker takes notice, and the figure sinks a little while the build runs."""

CLIMB = """
import sys, time
held = []
for _ in range(40):
    held.append(bytes(range(256)) * 40960)
    time.sleep(0.1)
open(sys.argv[1], "w").close()
"""
"""A job that grows by 10 MiB each tenth of a second, to 400 MiB, and costs the machine next to no CPU time."""


@pytest.fixture
def stoker(tmp_path: Path) -> Iterator[Stoker]:
    made = Stoker(tmp_path)
    yield made
    made.end_all()
    shutil.rmtree(made.runtime, ignore_errors=True)


def wait_for_stall() -> None:
    """Until the machine's PSI shows the neighbour; where the kernel has none there is nothing to be misled by."""
    deadline = time.monotonic() + 60
    while (stall := machine_stalls()) is not None and stall < STALL:
        if time.monotonic() > deadline:
            pytest.skip(f"the neighbour does not stall this machine: {stall} %")
        time.sleep(0.2)


def test_jobs_that_grow_run_on_beside_a_neighbour_that_thrashes(stoker: Stoker, tmp_path: Path) -> None:
    (tmp_path / "climb.py").write_text(CLIMB)
    edges = [(f"o{n}", f"{sys.executable} -S {tmp_path}/climb.py o{n}") for n in range(4)]
    folder = write_ninja(tmp_path / "p", edges)
    with Thrasher(tmp_path):
        wait_for_stall()
        build = stoker.detach("ninja", "-C", str(folder), jobs=3)
        deadline = time.monotonic() + 150
        while not stoker.status(build)["ended"] and time.monotonic() < deadline:
            time.sleep(1.0)
        status = stoker.ended(build)
    assert (status["state"], status["progress"]["finished"], status["progress"]["failed"]) == ("done", 4, 0)
    events = stoker.events(build)
    assert [e["what"] for e in events if e["type"] == "decided" and e["what"].startswith(("freeze", "shed"))] == []
    assert [e for e in events if e["type"] == "job_moved" and e["state"] == "frozen"] == []
    assert [e for e in events if e["type"] == "jobs_waiting" and e["cause"] == "pressure"] == []
    if machine_stalls() is not None:
        told = [e["text"] for e in events if e["type"] == "noticed" and "stalls on memory" in e["text"]]
        assert len(told) == 1, told
        assert "not because of this build" in told[0]
