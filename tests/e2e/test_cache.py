"""Real CMake projects behind real compiler caches: what the meter says is what the caches say, and nothing is lost."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from stoker.act.tree import Processes
from stoker.contract.process import start_ticks
from support import caches
from support.program import PYPI_NINJA, Stoker, until

UNITS = 1
"""Heavy sources; a light one and what CMake compiles to know the compiler go through the cache as well."""

PROFILE = """\
cache: {cache}
cache_size: 700M
steps:
  configure:
    command: cmake -GNinja -S . -B build -DCMAKE_MAKE_PROGRAM={ninja}
  compile:
    command: ninja -C build
    scheduler: ninja
"""
MIB = 2**20


@pytest.fixture
def env(stoker: Stoker) -> dict[str, str]:
    stoker.env |= caches.surroundings(stoker.root)
    for name in ("CCACHE_STATSLOG", "CCACHE_MAXSIZE", "SCCACHE_CACHE_SIZE", "SCCACHE_SERVER_UDS"):
        stoker.env.pop(name, None)
    return stoker.env


@pytest.fixture
def project(stoker: Stoker, env: dict[str, str]) -> Path:
    return caches.write_cmake(stoker.root / "project", UNITS)


@pytest.fixture
def light(stoker: Stoker, env: dict[str, str]) -> Path:
    return caches.write_cmake(stoker.root / "project", 0)


def build(stoker: Stoker, project: Path, cache: str) -> tuple[dict[str, Any], str]:
    """Build it by a profile; the status and what was said."""
    folder = stoker.root / "config" / "stoker" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "cached.yaml").write_text(PROFILE.format(cache=cache, ninja=PYPI_NINJA))
    result = stoker.run("run", "--plain", "--no-doctor", "-p", "cached", cwd=project)
    assert result.returncode == 0, result.stderr
    rows = json.loads(stoker.run("ls", "--json").stdout)
    return stoker.ended(str(rows[0]["id"])), result.stderr.decode()


def ask(env: dict[str, str], *command: str) -> str:
    return subprocess.run(command, env=env, capture_output=True, timeout=60, check=True).stdout.decode()


def counters(env: dict[str, str], ccache: str) -> dict[str, int]:
    lines = ask(env, ccache, "--print-stats").splitlines()
    return {name: int(value) for name, value in (line.split("\t") for line in lines)}


def server(env: dict[str, str]) -> int:
    """The process that listens where clients of this test look for sccache's server; 0 while there is none."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                mine = f"SCCACHE_DIR={env['SCCACHE_DIR']}".encode() in (entry / "environ").read_bytes().split(b"\0")
                argv = (entry / "cmdline").read_bytes().rstrip(b"\0").split(b"\0")
            except OSError:
                continue
            if mine and len(argv) == 1 and argv[0].endswith(b"sccache"):
                return int(entry.name)
    return 0


@pytest.mark.long
def test_what_ccache_did_for_a_build_is_metered_and_what_its_hits_saved(
    stoker: Stoker, project: Path, env: dict[str, str]
) -> None:
    ccache = caches.program("ccache")
    cold, _ = build(stoker, project, "auto")
    calls = cold["cache"]["misses"]
    assert (cold["cache"]["tool"], cold["cache"]["hits"]) == ("ccache", 0)
    assert calls == counters(env, ccache)["cache_miss"] > UNITS
    assert cold["cache"]["saved_seconds"] is None
    ask(env, ccache, "--zero-stats")
    shutil.rmtree(project / "build")
    env["PAUSE"] = "3"
    warm, said = build(stoker, project, "auto")
    cache, figures = warm["cache"], counters(env, ccache)
    assert cache["hits"] == figures["direct_cache_hit"] + figures["preprocessed_cache_hit"] == calls
    assert cache["misses"] == figures["cache_miss"] == 0
    assert (cache["percent"], cache["exact"], cache["size"]) == (100.0, True, figures["cache_size_kibibyte"] * 1024)
    assert cache["size_limit"] == 700 * MIB, "the profile's size, as nobody has chosen one"
    assert f"ccache: {calls} hits, 0 misses (100.0 % hits)" in said
    assert UNITS <= cache["saved_jobs"] <= calls
    assert cache["saved_seconds"] > 0.3
    assert "saved: about" in said


@pytest.mark.long
def test_a_persons_own_log_and_size_of_ccache_stay_theirs(stoker: Stoker, light: Path, env: dict[str, str]) -> None:
    caches.program("ccache")
    log = stoker.root / "mine.log"
    Path(env["CCACHE_CONFIGPATH"]).write_text(f"stats_log = {log}\nmax_size = 900M\n")
    log.write_text("# earlier.cpp\ndirect_cache_hit\n")
    found, _ = build(stoker, light, "ccache")
    misses = log.read_text().count("\ncache_miss\n")
    assert misses > 0
    assert (found["cache"]["hits"], found["cache"]["misses"], found["cache"]["exact"]) == (0, misses, False)
    assert not (stoker.folder(found["id"]) / "ccache.log").exists()
    assert "CCACHE_MAXSIZE" not in (stoker.folder(found["id"]) / "spec.json").read_text()
    assert abs(found["cache"]["size_limit"] - 900e6) < 1e6


@pytest.mark.long
def test_sccaches_compilers_count_with_their_jobs_and_its_server_outlives_build_and_stop(
    stoker: Stoker, project: Path, env: dict[str, str]
) -> None:
    sccache = caches.program("sccache")
    with caches.no_server_left(sccache, env):
        cold, _ = build(stoker, project, "sccache")
        stats = json.loads(ask(env, sccache, "--show-stats", "--stats-format", "json"))["stats"]
        calls = cold["cache"]["misses"]
        assert calls == stats["cache_misses"]["counts"]["C/C++"] > UNITS
        jobs = [e for e in stoker.events(cold["id"]) if e["type"] == "job_finished" and e["tool"] == "cxx"]
        assert sum(e.get("peak_rss", 0) > 60 * MIB for e in jobs) == UNITS, "cc1plus runs below the server"
        pid = server(env)
        assert pid, "it serves others, so it stays"
        supervisor = json.loads((stoker.folder(cold["id"]) / "supervisor.json").read_text())
        until(lambda: start_ticks(supervisor["supervisor_pid"]) is None, "the supervisor's end")

        shutil.rmtree(project / "build")
        env["PAUSE"] = "3"
        warm, said = build(stoker, project, "sccache")
        stats = json.loads(ask(env, sccache, "--show-stats", "--stats-format", "json"))["stats"]
        assert warm["cache"]["hits"] == stats["cache_hits"]["counts"]["C/C++"] == calls
        assert warm["cache"]["misses"] == 0
        assert warm["cache"]["saved_seconds"] > 0.3
        assert f"sccache: {calls} hits, 0 misses (100.0 % hits)" in said
        assert server(env) == pid


@pytest.mark.long
def test_a_server_that_the_build_started_serves_on_when_the_build_is_stopped(
    stoker: Stoker, env: dict[str, str]
) -> None:
    project = caches.write_cmake(stoker.root / "project", 8)  # enough for a compiler to be seen
    sccache = caches.program("sccache")
    launcher = {"CMAKE_CXX_COMPILER_LAUNCHER": sccache}
    subprocess.run(
        ["cmake", "-GNinja", f"-DCMAKE_MAKE_PROGRAM={PYPI_NINJA}", "-S", project, "-B", project / "build"],
        env={**env, **launcher},
        capture_output=True,
        timeout=60,
        check=True,
    )
    with caches.no_server_left(sccache, env):
        running = stoker.detach("sh", "-c", f"{PYPI_NINJA} -C build; sleep 600", cwd=project, jobs=1)
        until(lambda: any(job["phase"] == "cc1plus" for job in stoker.status(running)["jobs"]), "a compiler")
        pid = server(env)
        compilers = Processes().below(pid)
        assert compilers
        assert stoker.run("stop", running).returncode == 0
        assert stoker.ended(running)["state"] == "stopped"
        assert start_ticks(pid) is not None, "the server lives"
        until(lambda: not set(compilers) & set(Processes().below(pid)), "the end of the compilers of this build")
        source = project / "main.cpp"
        done = subprocess.run(
            [sccache, "c++", "-c", source, "-o", stoker.root / "other.o"], env=env, timeout=60, check=False
        )
        assert done.returncode == 0, "others are served"


@pytest.mark.long
def test_without_a_cache_a_build_goes_on_and_says_so(stoker: Stoker, light: Path, env: dict[str, str]) -> None:
    tools = stoker.root / "bin"
    tools.mkdir()
    for name in ("cmake", "c++", "g++", "cc", "gcc", "ld", "as", "ar", "ranlib", "sh", "sleep", "uname"):
        if tool := shutil.which(name):
            (tools / name).symlink_to(tool)
    (tools / "ninja").symlink_to(PYPI_NINJA)
    env["PATH"] = str(tools)
    found, said = build(stoker, light, "auto")
    assert found["cache"] is None
    assert "neither ccache nor sccache is on PATH: nothing is cached" in said
    assert os.access(light / "build" / "cached", os.X_OK)
