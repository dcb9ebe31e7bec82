"""What is counted is what ninja counts, whatever its log, its manifest and the build's further attempts do to it."""

from __future__ import annotations

import os
import re
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support.program import ONE_NINJA_AT_FIRST, PYPI_NINJA, Stoker, until, write_ninja

SELF_MADE = """\
rule renew
  command = sleep 0.6; cp build.ninja.in new; mv new build.ninja
  generator = 1
  description = Re-running configure
rule check
  command = sleep 0.2; test -e checked || touch checked
  restat = 1
rule quiet
  command = sleep 0.3; cmp -s $in $out || cp $in $out
  restat = 1
rule same
  command = sleep 0.2; mkdir made_a || mkdir made_b || mkdir made_c
rule long
  command = sleep $seconds; touch $out
build checked: check force
build force: phony
build build.ninja: renew build.ninja.in checked
"""


def self_made(folder: Path, jobs: int) -> Path:
    """A manifest that is renewed at the start, with jobs that no command line tells apart.

    As CMake's with CONFIGURE_DEPENDS: something looks at each start whether it must be renewed.
    """
    folder.mkdir()
    edges = [f"build made_{name}: same\n" for name in "abc"]
    edges += [f"build o{n}: long\n  seconds = 0.{1 + n % 3}\n" for n in range(jobs)]
    edges += ["build copy: quiet source\n", "build late: long copy o0\n  seconds = 0.3\n"]
    goals = ("made_a", "made_b", "made_c", "late", *(f"o{n}" for n in range(jobs)))
    text = SELF_MADE + "".join(edges) + f"default {' '.join(goals)}\n"
    for name in ("build.ninja", "build.ninja.in"):
        (folder / name).write_text(text)
    os.utime(folder / "build.ninja", (1e9, 1e9))
    for name in ("source", "copy"):
        (folder / name).write_text("same")
    os.utime(folder / "copy", (1e9, 1e9))
    return folder


def last_count(stoker: Stoker, build: str) -> tuple[int, int]:
    """Ninja's own last word: finished, total."""
    text = (stoker.folder(build) / "output.log").read_text()
    finished, total = re.findall(r"^\[(\d+)/(\d+)\]", text, re.MULTILINE)[-1]
    return int(finished), int(total)


def counts(status: dict[str, Any]) -> tuple[int, int, int]:
    progress = status["progress"]
    return progress["finished"], progress["total"], progress["failed"]


@pytest.mark.parametrize("ninja", ONE_NINJA_AT_FIRST)
def test_a_manifest_that_renews_itself_leaves_ninjas_own_counts(stoker: Stoker, tmp_path: Path, ninja: str) -> None:
    folder = self_made(tmp_path / "p", 12)
    build = stoker.detach("sh", "-c", f"sleep 0.3; {ninja} -C {folder} -j6", cwd=tmp_path, jobs=4)
    status = stoker.ended(build)
    assert status["state"] == "done"
    finished, _ = last_count(stoker, build)  # ninja 1.13 leaves what it has pruned before in its total
    assert counts(status) == (finished, finished, 0)
    ends = [e for e in stoker.events(build) if e["type"] == "job_finished"]
    assert {e["outcome"] for e in ends} == {"ok"}
    planned = [e["total"] for e in stoker.events(build) if e["type"] == "scheduler_planned"]
    assert min(planned) >= finished


def outputs(stoker: Stoker, build: str) -> list[str]:
    return [e["output"] for e in stoker.events(build) if e["type"] == "job_finished"]


@pytest.mark.long
def test_what_make_reads_says_and_tries_is_no_job(stoker: Stoker, tmp_path: Path) -> None:
    """As in configure scripts' makefiles: a probe before the build, and helpers around the one thing that is made."""
    (tmp_path / "Makefile").write_text(
        "VERSION := $(shell sleep 1.5; echo 1)\n"
        "all: made\n\techo all\n"
        "made: part\n\tsleep 1.5; cat part > made; touch made\n"
        "part:\n\tif gcc -xc /dev/null -S -o /dev/null; then echo yes > part; fi\n\tprintf 'part %s' $(VERSION)\n"
    )
    script = "make -n >probe 2>&1; make -f probe.mk >/dev/null; sleep 2; make -j2"
    (tmp_path / "probe.mk").write_text("all: ; @sleep 1.2; echo done\n")
    build = stoker.detach("sh", "-c", script, cwd=tmp_path, jobs=2)
    seen = []

    def done() -> bool:
        seen.append(stoker.status(build)["progress"])
        return bool(stoker.events(build)[-1]["type"] == "build_ended")

    until(done, "the end")
    assert [p for p in seen[:-1] if p["total_known"] and p["total"] == 0 and p["percent"] != 100.0] == []
    assert len([name for name in outputs(stoker, build) if "made" in name or "sleep 1.5" in name]) == 1
    assert not [name for name in outputs(stoker, build) if "gcc" in name or "printf" in name or "echo 1" in name]


@pytest.mark.long
def test_cmakes_percentage_does_not_count_what_waits_or_runs(stoker: Stoker, tmp_path: Path) -> None:
    """Its makefiles print it when a recipe starts, and stoker lets many start that then wait on deck."""
    units = 9
    for n in range(units):
        (tmp_path / f"u{n}.c").write_text(f"int u{n};\n")
    slow = tmp_path / "slow"
    work = "n=0; while [ $n -lt 2000000 ]; do n=$((n+1)); done"  # not a sleep, which would end while it is held
    slow.write_text(f'#!/bin/sh\n{work}\nexec "$@"\n')
    slow.chmod(0o755)
    sources = " ".join(f"u{n}.c" for n in range(units))
    (tmp_path / "CMakeLists.txt").write_text(
        f"cmake_minimum_required(VERSION 3.18)\nproject(p C)\nadd_library(u SHARED {sources})\n"
        f"set_target_properties(u PROPERTIES C_COMPILER_LAUNCHER {slow})\n"
    )
    where = tmp_path / "b"
    subprocess.run(["cmake", "-S", tmp_path, "-B", where, "-G", "Unix Makefiles"], check=True, capture_output=True)
    build = stoker.detach("make", "-C", str(where), cwd=tmp_path, jobs=1)
    stoker.ended(build)
    finished, told = 0, []
    for event in stoker.events(build):
        finished += event["type"] == "job_finished"
        if event["type"] == "scheduler_planned" and event.get("percent") is not None:
            told.append((finished, event["percent"]))
            assert event["begun"] >= event["percent"]
    assert any(0 < percent < 100 for _, percent in told)
    assert all(percent <= 100 * (done + 1) / (units + 1) for done, percent in told), told
    links = [name for name in outputs(stoker, build) if "link" in name or "libu" in name]
    assert links in ([], ["libu.so"]), "it may be too short to be seen"


def test_after_a_failure_what_waits_for_it_will_not_run_and_the_rest_is_left(stoker: Stoker, tmp_path: Path) -> None:
    """Also to an engine that takes over, whose plan comes long after the failure."""
    folder = tmp_path / "p"
    outputs = {"o1": "exit 1", "lib": "touch lib", "app": "touch app"}
    outputs["o2"] = "while [ ! -e go ]; do sleep 0.05; done; touch o2"
    write_ninja(folder, list(outputs.items()))
    text = (folder / "build.ninja").read_text().replace("build lib: sh", "build lib: sh o1")
    (folder / "build.ninja").write_text(text.replace("build app: sh", "build app: sh || lib"))
    build = stoker.detach(PYPI_NINJA, "-C", str(folder), "-k0", jobs=2)
    try:
        until(lambda: stoker.status(build)["progress"]["will_not_run"] == 2, "lib and app, which cannot be built")
        engine = stoker.engine_pid(build)
        os.kill(engine, signal.SIGKILL)
        until(lambda: stoker.engine_pid(build) != engine, "another engine")
        until(lambda: b"2 will not run" in stoker.run("status", build).stdout, "the same from its successor")
    finally:
        (folder / "go").touch()
    progress = stoker.ended(build)["progress"]
    assert (progress["finished"], progress["failed"], progress["total"]) == (1, 1, 4)
