"""Whatever waits says why: in `status --json`, and in the journal as often as the reason changes."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from support.burn import burns, write_burns
from support.grouped import Grouped
from support.memory_group import MIB, MemoryGroup
from support.program import until, write_ninja

pytestmark = pytest.mark.timeout(300)


@pytest.fixture
def stoker(tmp_path: Path) -> Iterator[Grouped]:
    with MemoryGroup(360 * MIB) as group:
        yield Grouped(tmp_path, group)


def waiting(stoker: Grouped, build: str, *causes: str) -> list[dict[str, Any]]:
    """The jobs that wait, once one of them does for one of these causes; each of them has a reason in words."""

    def look() -> list[dict[str, Any]]:
        jobs = [job for job in stoker.status(build)["jobs"] if job["state"] != "running"]
        assert all(job["waits"] for job in jobs), jobs
        return jobs if any(job["waits_for"] in causes for job in jobs) else []

    found: list[dict[str, Any]] = until(look, f"a job that waits for {causes}")
    return found


@pytest.mark.long
def test_a_job_with_a_free_place_says_that_it_waits_for_memory_and_for_a_pause(stoker: Grouped, tmp_path: Path) -> None:
    folder = write_burns(tmp_path / "p", burns(10, 1.0, 120))
    build = stoker.detach("ninja", "-C", str(folder), jobs=6)
    held = waiting(stoker, build, "memory", "room")
    short = [job["waits"] for job in held if job["waits_for"] in ("memory", "room")]
    assert all(re.search(r"\d .?i?B", words) for words in short), short
    assert stoker.run("pause", build).returncode == 0
    assert all(job["waits_for"] == "paused" for job in waiting(stoker, build, "paused") if job["state"] == "on_deck")
    assert stoker.run("unpause", build).returncode == 0
    status = stoker.over(build)
    assert (status["state"], status["progress"]["finished"]) == ("done", 10)
    told = [e for e in stoker.events(build) if e["type"] == "jobs_waiting"]
    assert len(told) < 40, "a line for each change, and not for each look"


@pytest.mark.long
def test_where_all_places_are_taken_that_is_what_a_job_waits_for(stoker: Grouped, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "p", [(f"o{n}", "sleep 600") for n in range(6)])
    build = stoker.detach("ninja", "-C", str(folder), jobs=1)
    # Nobody knows what `sleep` needs: its guess may not fit beside the one that runs, and is said first.
    jobs = waiting(stoker, build, "place", "memory")
    assert any(job["waits"].endswith("the only place is taken") for job in jobs)
    stoker.run("stop", "--force", build)
