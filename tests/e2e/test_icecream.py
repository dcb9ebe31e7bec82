"""A real build by a real icecream, in network namespaces of the test's own: jobs are where its scheduler says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

import pytest

from support.caches import HEAVY
from support.icecream import Icecream
from support.program import PYPI_NINJA, Stoker, until, write_ninja

UNITS = 5
ENDED = re.compile(r"END \d+ status=0 .* server=(\w+)")

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def ice() -> Iterator[Icecream]:
    with Icecream(near_jobs=1, far_jobs=3) as running:
        yield running


def test_jobs_are_shown_on_the_host_that_compiles_them_and_counted_there(stoker: Stoker, ice: Icecream) -> None:
    folder = stoker.root / "project"
    write_ninja(folder, [(f"f{n}.o", f"icecc g++ -O0 -c f{n}.cpp -o f{n}.o") for n in range(UNITS)])
    for n in range(UNITS):
        (folder / f"f{n}.cpp").write_text(HEAVY.format(n=n))
    stoker.prefix = ice.prefix
    stoker.env |= ice.settings
    build = stoker.detach(PYPI_NINJA, "-j", "8", cwd=folder)
    seen: dict[str, Any] = until(lambda: on_far(stoker.status(build)), "a job on far")
    engine = seen["remote"]["engines"][0]
    assert (engine["kind"], [host["name"] for host in engine["hosts"]]) == ("icecream", ["far"])
    assert engine["hosts"][0]["slots"] == 3
    assert seen["progress"]["remote"] == sum(job["host"] == "far" for job in seen["jobs"])
    end = stoker.ended(build)
    assert (end["state"], end["exit_code"]) == ("done", 0)
    servers = ENDED.findall((ice.folder / "scheduler.log").read_text())
    finished = [e for e in stoker.events(build) if e["type"] == "job_finished"]
    assert len(finished) == len(servers) == UNITS
    assert sum(e.get("host") == "far" for e in finished) == servers.count("far") > 0
    assert end["remote"]["finished"] == servers.count("far")


def on_far(status: dict[str, Any]) -> dict[str, Any] | None:
    """The status if it shows a job on far, and the hosts."""
    there = any(job["host"] == "far" for job in status["jobs"])
    return status if there and status["remote"] and status["remote"]["engines"][0]["hosts"] else None
