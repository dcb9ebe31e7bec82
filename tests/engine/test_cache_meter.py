"""The meter of the compiler cache, with real logs and figures, over engines that die and servers that restart."""

from __future__ import annotations

import asyncio
import math
import subprocess
from pathlib import Path

import pytest

from stoker.config.paths import BuildPaths
from stoker.contract.spec_file import BuildSpec
from stoker.decide.memory.prior_classes import Priors
from stoker.engine.learn.cache_meter import CacheMeter, _Asked
from stoker.engine.learn.expectations import Expectations
from stoker.model import events as ev
from stoker.model.cache_use import CacheUse
from stoker.model.state import BuildState
from stoker.record.history import History
from stoker.sense.caches.cache_figures import Figures
from support import caches

ARGV = ("/bin/sh", "-c", "ccache c++ -O2 -c a.cpp -o a.o")
HIT, MISS = "# a.cpp\ndirect_cache_hit\n", "# b.cpp\ncache_miss\n"


class Bench:
    """A build's folder, what it knows of its jobs, and meters of one engine after the other."""

    def __init__(self, root: Path) -> None:
        self.paths = BuildPaths(root)
        self.history = History(root / "history.sqlite3")
        self.known = Expectations(Priors(()), self.history)
        self.spec = BuildSpec("b", str(root), ("x",))

    def meter(self, before: CacheUse | None = None) -> CacheMeter:
        return CacheMeter(self.spec, self.paths, BuildState(cache=before), self.known)

    def log(self, text: str) -> None:
        with self.paths.cache_log.open("a") as file:
            file.write(text)


@pytest.fixture
def bench(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Bench:
    for name, value in caches.surroundings(tmp_path).items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("CCACHE_STATSLOG", raising=False)
    return Bench(tmp_path)


def used(events: list[ev.Event]) -> list[CacheUse]:
    return [e.found for e in events if isinstance(e, ev.CacheUsed)]


async def test_what_the_log_tells_is_told_once_and_when_it_changes(bench: Bench) -> None:
    meter = bench.meter()
    assert await meter.begin() == []
    assert meter.look() == [], "no cache at work, nothing to tell"
    bench.log(MISS)
    assert [(u.tool, u.hits, u.misses) for u in used(meter.look())] == [("ccache", 0, 1)]
    assert meter.look() == []
    bench.log(HIT + HIT)
    assert [(u.hits, u.misses, u.exact) for u in used(meter.look())] == [(2, 1, True)]
    await meter.finish()


async def test_an_engine_that_takes_over_counts_nothing_twice_and_forgets_nothing(bench: Bench) -> None:
    bench.log(HIT + HIT + MISS)
    before = CacheUse("ccache", 1, 1, saved_seconds=20.0, saved_jobs=1)
    meter = bench.meter(before)
    await meter.begin()
    (told,) = used(meter.look())
    assert (told.hits, told.misses, told.saved_seconds, told.saved_jobs) == (2, 1, 20.0, 1)
    bench.known.saved.ended(0.5, 10.5)
    (told,) = used(await meter.finish())
    assert (told.saved_seconds, told.saved_jobs) == (30.0, 2)


async def test_saved_is_what_hits_took_before_and_nothing_where_that_is_unknown(bench: Bench) -> None:
    traits_flags = bench.known._read(ARGV).flags
    bench.history.add("cxx", "a.o", traits_flags, [(0.0, 2.0**20, ""), (8.0, 2.0**28, "cc1plus")])
    bench.history.flush()
    meter = bench.meter()
    await meter.begin()
    bench.log(HIT + HIT)
    for jid, output in enumerate(("a.o", "never-seen.o")):
        bench.known.expect(jid, output, "cxx", ARGV)
        bench.known.finished(jid, output, "cxx", ARGV, ok=True, seconds=0.5)
    (told,) = used(await meter.finish())
    assert told.saved_jobs == 1
    assert told.saved_seconds is not None
    assert math.isclose(told.saved_seconds, 7.5, abs_tol=0.1)


async def test_a_ccache_without_a_log_is_asked_and_only_what_it_did_since_counts(bench: Bench, tmp_path: Path) -> None:
    ccache = caches.program("ccache")
    (tmp_path / "a.c").write_text("int a;\n")

    def compile_it() -> None:
        subprocess.run([ccache, "cc", "-c", "a.c", "-o", "a.o"], cwd=tmp_path, check=True, timeout=60)

    compile_it()
    bench.spec = bench.spec._replace(cache_log=None)
    bench.known.launchers["ccache"] = ccache
    meter = bench.meter()
    await meter.begin()
    compile_it()
    compile_it()
    (told,) = used(await meter.finish())
    assert (told.hits, told.misses, told.exact) == (2, 0, False)
    after = bench.meter(told)
    await after.begin()
    compile_it()
    (told,) = used(await after.finish())
    assert (told.hits, told.misses) == (3, 0)


async def test_asking_goes_on_beside_the_look(bench: Bench) -> None:
    ccache = caches.program("ccache")
    bench.spec = bench.spec._replace(cache_log=None)
    bench.known.launchers["ccache"] = ccache
    meter = bench.meter()
    await meter.begin()
    assert meter.look() == []
    while meter._asking is not None:
        await asyncio.sleep(0.01)
        meter.look()
    assert meter._ask_at > 0


def test_a_server_that_begins_anew_at_nothing_takes_nothing_away() -> None:
    asked = _Asked(())
    asked.begin(Figures(10, 5))
    asked.take(Figures(14, 6))
    assert asked.figures.counts == (4, 1, 0, 0)
    asked.take(Figures(2, 0, size=7))
    assert asked.figures == Figures(6, 1, size=7)
    later = _Asked(asked.base)
    later.take(Figures(3, 0))
    assert later.figures.counts == (7, 1, 0, 0)


def test_of_a_cache_that_is_found_late_only_the_rest_counts() -> None:
    asked = _Asked(())
    asked.late = True
    asked.take(Figures(10, 5))
    assert asked.figures.counts == (0, 0, 0, 0)
    asked.take(Figures(11, 5))
    assert asked.figures.counts == (1, 0, 0, 0)
