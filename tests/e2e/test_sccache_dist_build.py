"""Real builds by a real sccache-dist on loopback: what stoker counts is what sccache counts."""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker.model.remote import HOSTLESS
from support.caches import HEAVY
from support.program import PYPI_NINJA, Stoker, until, write_ninja
from support.sccache_dist import SccacheDist

UNITS = 3
KERNEL = "__global__ void k(float* x) { x[threadIdx.x] *= 2; }\nvoid run(float* x) { k<<<1, 32>>>(x); }\n"
ARCHS = "-gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90"

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]


@pytest.fixture
def dist(stoker: Stoker) -> Iterator[SccacheDist]:
    with SccacheDist(stoker.root / "dist") as running:
        stoker.env |= running.settings
        yield running


def write(folder: Path, units: int, *, kernel: bool) -> Path:
    edges = [(f"f{n}.o", f"sccache g++ -O0 -c f{n}.cpp -o f{n}.o") for n in range(units)]
    if kernel:
        edges.append(("kernel.o", f"sccache nvcc {ARCHS} -c kernel.cu -o kernel.o"))
        (folder / "kernel.cu").write_text(KERNEL)
    for n in range(units):
        (folder / f"f{n}.cpp").write_text(HEAVY.format(n=n))
    return write_ninja(folder, edges)


def compiled(status: dict[str, Any]) -> int:
    """What stoker says that the servers have compiled."""
    return sum(host["compiled"] for engine in status["remote"]["engines"] for host in engine["hosts"])


def test_what_is_compiled_elsewhere_is_counted_as_sccache_counts_it_and_the_second_run_hits(
    stoker: Stoker, dist: SccacheDist
) -> None:
    kernel = shutil.which("nvcc") is not None
    folder = stoker.root / "project"
    folder.mkdir()
    write(folder, UNITS, kernel=kernel)
    build = stoker.detach(PYPI_NINJA, "-j", "2", cwd=folder)
    seen: dict[str, Any] = until(lambda: elsewhere(stoker.status(build)), "a job elsewhere")
    assert seen["progress"]["remote"] == sum(job["host"] not in HOSTLESS for job in seen["jobs"]) > 0
    assert seen["remote"]["engines"][0]["kind"] == "sccache"
    assert seen["remote"]["slots"] > 0
    end = stoker.ended(build)
    assert (end["state"], end["exit_code"]) == ("done", 0)
    stats = dist.stats()
    assert sum(stats["dist_compiles"].values()) == compiled(end) >= UNITS
    assert stats["dist_errors"] == sum(h["errors"] for e in end["remote"]["engines"] for h in e["hosts"])
    if not stats["dist_errors"]:
        finished = [e for e in stoker.events(build) if e["type"] == "job_finished"]
        assert sum(bool(e.get("host")) for e in finished) == UNITS + kernel
    for made in folder.glob("*.o"):
        made.unlink()
    (folder / ".ninja_log").unlink()
    again = stoker.ended(stoker.detach(PYPI_NINJA, "-j", "2", cwd=folder))
    assert again["cache"]["hits"] >= UNITS > again["cache"]["misses"], "of nvcc's passes, one may differ each time"
    more = sum(dist.stats()["dist_compiles"].values()) - sum(stats["dist_compiles"].values())
    assert more <= again["cache"]["misses"]


def elsewhere(status: dict[str, Any]) -> dict[str, Any] | None:
    """The status if it shows a job elsewhere, and the engine."""
    return status if status["progress"]["remote"] and status["remote"] else None


def test_when_the_server_dies_no_more_is_compiled_here_at_once_than_the_level_allows(
    stoker: Stoker, dist: SccacheDist
) -> None:
    folder = stoker.root / "project"
    folder.mkdir()
    write(folder, 4, kernel=False)
    build = stoker.detach(PYPI_NINJA, "-j", "4", cwd=folder, jobs=1)
    until(lambda: elsewhere(stoker.status(build)), "a job elsewhere")
    dist.stop("server")
    end = stoker.ended(build)
    assert (end["state"], end["exit_code"]) == ("done", 0)
    events = stoker.events(build)
    taken_back = [e for e in events if e["type"] == "decided" and e["what"].startswith("take back")]
    assert taken_back, json.dumps(end["remote"])
    running = [[job for job in e["jobs"] if works_here(job)] for e in events if e["type"] == "sampled"]
    assert max(map(len, running)) <= 2, "one may be seen in the moment before it is stopped"


def works_here(job: dict[str, Any]) -> bool:
    """Whether a sampled job compiles on this machine."""
    return not job.get("host") and job.get("state", "running") == "running" and job["phase"] == "cc1plus"
