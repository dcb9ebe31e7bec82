"""Builds that memory decides: what dies under plain ninja gets through under stoker, bit for bit; real errors stay."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import signal
import subprocess
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from support.burn import compile_burner
from support.grouped import LONG, Grouped
from support.heavy import Unit, clean, digests, mixed, write_heavy_ninja
from support.memory_group import MIB, MemoryGroup
from support.procs import command
from support.program import NINJAS, ONE_NINJA_AT_FIRST, PYPI_NINJA, until, write_ninja

pytestmark = pytest.mark.timeout(3 * LONG)

UNITS = mixed(3, 8, mib=500, seconds=3.0)
LIMIT = 800 * MIB
"""One heavy source and some light ones fit, two heavy ones do not; ninja itself starts three at once on two cores."""

ROOMY = 4096 * MIB
VICTIM = "heavy01"

Make = Callable[[int], Grouped]


@pytest.fixture
def grouped(tmp_path: Path) -> Iterator[Make]:
    """Makes a stoker in a memory group of so many bytes."""
    made: list[Grouped] = []

    def make(limit: int) -> Grouped:
        made.append(Grouped(tmp_path, MemoryGroup(limit)))
        return made[-1]

    yield make
    for stoker in made:
        stoker.group.close()
        shutil.rmtree(stoker.runtime, ignore_errors=True)


@pytest.fixture(scope="module")
def unconstrained(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    """What the outputs are when nothing limits the build."""
    folder = write_heavy_ninja(tmp_path_factory.mktemp("free"), UNITS)
    subprocess.run([PYPI_NINJA, "-C", str(folder), "-j2"], check=True, capture_output=True)
    return digests(folder)


@pytest.fixture
def heavy(tmp_path: Path) -> Path:
    """The project that memory decides, not built yet."""
    return write_heavy_ninja(tmp_path / "heavy", UNITS)


def build(stoker: Grouped, folder: Path, ninja: str = PYPI_NINJA) -> dict[str, Any]:
    """A clean build under stoker to its end, with room for three jobs on any machine; its last status."""
    clean(folder)
    return stoker.built(ninja, "-C", str(folder), jobs=3)


def got_through(stoker: Grouped, status: dict[str, Any]) -> bool:
    return (status["state"], status["exit_code"], stoker.group.kills) == ("done", 0, 0)


# -- memory ------------------------------------------------------------------------------------------------------------


@pytest.mark.long
@pytest.mark.parametrize("ninja", NINJAS[:1])
def test_what_dies_of_memory_under_plain_ninja_gets_through_untouched(
    grouped: Make, heavy: Path, unconstrained: dict[str, str], ninja: str
) -> None:
    with MemoryGroup(LIMIT) as group:
        plain = subprocess.run(group.wrap([ninja, "-C", str(heavy)]), capture_output=True, check=False)
        assert plain.returncode != 0
        assert group.kills > 0

    stoker = grouped(LIMIT)
    status = build(stoker, heavy, ninja)
    assert got_through(stoker, status), status
    assert digests(heavy) == unconstrained
    assert status["memory"]["budget"] == LIMIT
    assert any(d["who"] == "governor" and re.search(r"\d+ MiB", d["why"]) for d in status["decisions"])


@pytest.mark.long
def test_what_the_first_build_taught_serves_the_second(
    grouped: Make, heavy: Path, unconstrained: dict[str, str]
) -> None:
    stoker = grouped(LIMIT)
    assert got_through(stoker, build(stoker, heavy))
    again = build(stoker, heavy)
    assert got_through(stoker, again), again
    assert digests(heavy) == unconstrained
    started = [e for e in stoker.events(again["id"]) if e["type"] == "job_started"]
    expected = {e["output"]: e["expected"] for e in started if e.get("expected")}
    assert expected["obj/light03.o"] < 200 * MIB < 400 * MIB < expected["obj/heavy01.o"]


@pytest.mark.long
def test_a_limit_that_sinks_while_the_build_runs_is_kept(
    grouped: Make, heavy: Path, unconstrained: dict[str, str]
) -> None:
    waits = (
        "rule wait\n  command = until [ -e go ]; do sleep 0.2; done; touch $out\nbuild waited: wait\ndefault waited\n"
    )
    with (heavy / "build.ninja").open("a") as manifest:
        manifest.write(waits)  # so that the build does not end before
    stoker = grouped(1600 * MIB)
    running = stoker.detach(PYPI_NINJA, "-C", str(heavy))
    until(lambda: stoker.status(running)["progress"]["finished"] >= 1, "a job")
    until(lambda: stoker.group.held < LIMIT // 2, "a moment with little memory in use")
    stoker.group.lower_limit(LIMIT)
    until(lambda: stoker.status(running)["memory"]["budget"] == LIMIT, "the new limit to be seen")
    (heavy / "go").touch()
    status = stoker.over(running)
    assert got_through(stoker, status), status
    assert digests(heavy) == unconstrained


# -- real errors -------------------------------------------------------------------------------------------------------

ERROR = "int main() { return no_such_name; }\n"


def erring(folder: Path) -> Path:
    """A compile error among jobs that work for longer, the first of which ends after ninja has seen it; none depends on
    another."""
    compile_burner(folder)
    (folder / "bad.cpp").write_text(ERROR)
    jobs = [(f"o{n}", f"./burn o{n} 2") for n in range(12)]
    seen = "until [ -e failed ]; do sleep 0.2; done; while kill -0 $(cat failed); do sleep 0.2; done 2>/dev/null"
    first = ("o0", f"{seen}; touch o0")
    bad = ("bad.o", "g++ -c bad.cpp -o bad.o; status=$?; echo $$ >its; mv its failed; exit $status")
    return write_ninja(folder, [first, bad, *jobs[1:]])


def built(folder: Path) -> set[str]:
    return {file.name for file in folder.glob("o*")}


@pytest.mark.parametrize("ninja", ONE_NINJA_AT_FIRST)
def test_a_compile_error_ends_the_build_as_it_ends_plain_ninja(grouped: Make, tmp_path: Path, ninja: str) -> None:
    plain, watched = erring(tmp_path / "plain"), erring(tmp_path / "watched")
    bare = subprocess.run([ninja, "-C", str(plain), "-j2"], capture_output=True, check=False)
    stoker = grouped(ROOMY)
    status = stoker.built(ninja, "-C", str(watched), "-j2")
    assert (status["state"], status["exit_code"]) == ("failed", bare.returncode)
    assert built(watched) == built(plain) == {"o0"}
    assert [f["output"] for f in status["failures"]] == ["bad.o"]
    assert status["progress"]["failed"] == 1
    assert status["step"]["attempt"] == 1
    assert (stoker.folder(status["id"]) / "output.log").read_bytes().count(b"FAILED: ") == 1


@pytest.mark.long
def test_what_waits_on_deck_is_not_built_after_a_compile_error(grouped: Make, tmp_path: Path) -> None:
    folder = erring(tmp_path / "p")
    stoker = grouped(ROOMY)
    status = stoker.built("ninja", "-C", str(folder))
    assert status["state"] == "failed"
    assert len(built(folder)) < 6  # those beside it, and those that took a place before its end was known
    assert status["progress"]["failed"] == 1


# -- killed compilers --------------------------------------------------------------------------------------------------


def compilers(stoker: Grouped, unit: str) -> list[int]:
    """The processes that compile this source now."""
    return [p.pid for p in stoker.inside() if p.name == "cc1plus" and f"{unit}.cpp" in command(p.pid)]


def run_at_once(events: list[dict[str, Any]], output: str) -> int:
    """The most compilers that ran beside the one that made `output`, in its last run. What is made of its output may
    start before the record of its end is written."""
    running: set[int] = set()
    names: dict[int, str] = {}
    beside: list[int] = []
    for e in events:
        if e["type"] == "job_started":
            names[e["jid"]] = e["output"]
            if e["output"] == output:
                beside = []
        if e["type"] in ("job_started", "job_moved"):
            compiles = names[e["jid"]].startswith("obj/") and e.get("state", "running") == "running"
            (running.add if compiles else running.discard)(e["jid"])
        if e["type"] == "job_finished":
            running.discard(e["jid"])
        if any(names[jid] == output for jid in running):
            beside.append(len(running) - 1)
    return max(beside)


@pytest.mark.long
def test_a_compiler_that_is_killed_from_outside_runs_again_alone(
    grouped: Make, heavy: Path, unconstrained: dict[str, str]
) -> None:
    stoker = grouped(ROOMY)
    running = stoker.detach(PYPI_NINJA, "-C", str(heavy))
    os.kill(until(lambda: compilers(stoker, VICTIM), "the victim")[0], signal.SIGKILL)
    status = stoker.over(running)
    assert (status["state"], status["exit_code"]) == ("done", 0), status
    assert status["step"]["attempt"] == 2
    assert digests(heavy) == unconstrained
    assert status["progress"]["finished"] == status["progress"]["total"]
    assert run_at_once(stoker.events(running), f"obj/{VICTIM}.o") == 0


@pytest.mark.long
def test_a_compiler_that_is_killed_every_time_ends_the_build_with_the_truth(grouped: Make, tmp_path: Path) -> None:
    folder = write_heavy_ninja(tmp_path / "p", [Unit(VICTIM, 200, 2.0), Unit("other", 70, 0.3)])
    stoker = grouped(ROOMY)
    over = threading.Event()

    def hunt() -> None:
        while not over.wait(0.02):
            for pid in compilers(stoker, VICTIM):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    hunter = threading.Thread(target=hunt)
    hunter.start()
    try:
        status = stoker.built(PYPI_NINJA, "-C", str(folder))
    finally:
        over.set()
        hunter.join()
    assert status["state"] == "failed"
    assert status["exit_code"] not in (0, None)
    assert re.search(r"kill", status["reason"])
    assert VICTIM in status["reason"]
    assert 2 <= status["step"]["attempt"] <= 8
