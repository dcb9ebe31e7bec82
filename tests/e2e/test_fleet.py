"""Profiles with other machines and shared caches, the real things on loopback: what is used, said, and kept secret."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from support import caches
from support.icecream import NEAR, Icecream
from support.program import PYPI_NINJA, Stoker, until
from support.redis_server import redis_server
from support.sccache_dist import TOKEN, SccacheDist

STEPS = f"""\
steps:
  configure:
    command: cmake -GNinja -S . -B build -DCMAKE_MAKE_PROGRAM={PYPI_NINJA}
  compile:
    command: ninja -C build
    scheduler: ninja
"""
SECRET = "hunter2-of-the-test"


@pytest.fixture
def env(stoker: Stoker) -> dict[str, str]:
    stoker.env |= caches.surroundings(stoker.root)
    stoker.env |= {"MINE": SECRET, "PAUSE": "3"}
    return stoker.env


@pytest.fixture
def project(stoker: Stoker, env: dict[str, str]) -> Path:
    return caches.write_cmake(stoker.root / "project", 0)


def write_profile(stoker: Stoker, text: str) -> None:
    folder = stoker.root / "config" / "stoker" / "profiles"
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "shared.yaml").write_text(text + STEPS)


def newest(stoker: Stoker) -> str:
    return str(json.loads(stoker.run("ls", "--json").stdout)[0]["id"])


def built(stoker: Stoker, project: Path, *words: str) -> dict[str, Any]:
    result = stoker.run("run", "--plain", "-p", "shared", *words, cwd=project)
    assert result.returncode == 0, result.stderr.decode()
    return stoker.ended(newest(stoker))


def states(stoker: Stoker, build: str) -> list[str]:
    return [e["found"]["state"] for e in stoker.events(build) if e["type"] == "cache_reached"]


@pytest.mark.long
@pytest.mark.parametrize("cache", ["ccache", "sccache"])
def test_a_shared_cache_is_used_with_its_password_which_is_written_nowhere(
    stoker: Stoker, project: Path, env: dict[str, str], cache: str
) -> None:
    program = caches.program(cache)
    with redis_server(stoker.root, "--requirepass", SECRET) as redis, caches.no_server_left(program, env):
        write_profile(stoker, f"cache: {cache}\nremote_cache: {{url: '{redis.url}', password_from: MINE}}\n")
        first = built(stoker, project)
        assert first["cache"]["misses"] > 0
        shutil.rmtree(project / "build")
        shutil.rmtree(stoker.root / cache, ignore_errors=True)  # what only this machine has
        again = built(stoker, project)
        assert again["cache"]["misses"] == 0, "all of it came from redis"
        assert again["cache"]["hits"] == first["cache"]["misses"]
        assert again["shared_caches"] == []
        said = subprocess.run(
            ["grep", "-rl", SECRET, stoker.folder(again["id"]).parent], capture_output=True, check=False
        )
        assert said.stdout.decode() == ""


@pytest.mark.long
def test_a_shared_cache_that_dies_during_a_build_is_said_and_so_is_that_it_is_back(
    stoker: Stoker, project: Path, env: dict[str, str]
) -> None:
    sccache = caches.program("sccache")
    env["PAUSE"] = "600"
    with redis_server(stoker.root) as redis, caches.no_server_left(sccache, env):
        write_profile(stoker, f"cache: sccache\nremote_cache: {{url: '{redis.url}'}}\n")
        running = stoker.start("run", "--plain", "--no-doctor", "-p", "shared", cwd=project)
        try:
            build = until(lambda: json.loads(stoker.run("ls", "--json").stdout), "a build")[0]["id"]
            until(lambda: stoker.status(build)["jobs"], "a job")
            redis.stop()
            until(lambda: states(stoker, build) == ["silent"], "the news")
            (shared,) = stoker.status(build)["shared_caches"]
            assert (shared["tool"], shared["endpoint"], shared["state"]) == ("sccache", redis.url, "silent")
            redis.go_on()
            until(lambda: states(stoker, build) == ["silent", "answers"], "the good news")
            redis.kill()
            until(lambda: states(stoker, build)[-1] == "silent", "the news again")
            notices = [e["text"] for e in stoker.events(build) if e["type"] == "noticed"]
            assert any("each compilation waits a minute for it" in text and "resume" in text for text in notices)
        finally:
            stoker.run("stop", newest(stoker))
            running.wait(60)


@pytest.mark.long
def test_a_build_does_not_begin_without_the_shared_cache_that_sccaches_server_needs(
    stoker: Stoker, project: Path, env: dict[str, str]
) -> None:
    caches.program("sccache")
    with redis_server(stoker.root) as redis:
        write_profile(stoker, f"cache: sccache\nremote_cache: {{url: '{redis.url}'}}\n")
        redis.stop()
        result = stoker.run("run", "--plain", "-p", "shared", cwd=project)
    said = result.stderr.decode()
    assert result.returncode == 125
    assert f"shared cache {redis.url}: no answer in 2 s; sccache's server does not start" in said
    assert "unset SCCACHE_REDIS_ENDPOINT" in said
    assert json.loads(stoker.run("ls", "--json").stdout) == []


@pytest.mark.long
def test_a_server_is_started_with_the_scheduler_and_the_token_is_in_no_file(
    stoker: Stoker, project: Path, env: dict[str, str]
) -> None:
    sccache = caches.program("sccache")
    write_profile(stoker, "cache: sccache\ndist: {scheduler: 'http://127.0.0.1:9', token_from: MINE}\n")
    with caches.no_server_left(sccache, env):
        found = built(stoker, project)
        status = subprocess.check_output([sccache, "--dist-status"], env=env, timeout=60)
        assert "http://127.0.0.1:9" in json.dumps(json.loads(status))
        assert json.loads((stoker.folder(found["id"]) / "spec.json").read_text())["dist"]["token_from"] == "MINE"
        grep = subprocess.run(["grep", "-rl", SECRET, stoker.root], capture_output=True, check=False)
        assert grep.stdout.decode() == ""


@pytest.mark.long
def test_a_real_scheduler_gets_the_token_and_has_its_server_compile(
    stoker: Stoker, project: Path, env: dict[str, str]
) -> None:
    with SccacheDist(stoker.root / "dist") as far:
        env |= {"MINE": TOKEN, "XDG_CACHE_HOME": str(stoker.root / "cache")}
        write_profile(stoker, f"cache: sccache\ndist: {{scheduler: 'http://{far.scheduler}', token_from: MINE}}\n")
        examined = json.loads(stoker.run("doctor", "-p", "shared", "--json", cwd=project).stdout)
        (check,) = [check for check in examined["checks"] if check["name"] == "sccache-dist"]
        assert (check["status"], "1 machine," in check["why"]) == ("ok", True)
        with caches.no_server_left(far.sccache, env):
            built(stoker, project)
            said = subprocess.check_output([far.sccache, "--show-stats", "--stats-format", "json"], env=env, timeout=60)
        assert sum(json.loads(said)["stats"]["dist_compiles"].values()) > 0
        grep = ["grep", "-rl", TOKEN, str(stoker.state), str(stoker.root / "config")]
        assert subprocess.run(grep, capture_output=True, check=False).stdout.decode() == ""


@pytest.mark.long
@pytest.mark.timeout(600)
def test_a_real_icecream_is_found_by_the_doctor_and_compiles_for_a_profile(
    stoker: Stoker, project: Path, env: dict[str, str]
) -> None:
    with Icecream(near_jobs=1, far_jobs=3) as ice:
        stoker.prefix = ice.prefix
        env |= {name: value for name, value in ice.settings.items() if name != "ICECC_SCHEDULER"}
        write_profile(stoker, f"icecream: {{scheduler: {NEAR}}}\n")
        examined = json.loads(stoker.run("doctor", "-p", "shared", "--json", cwd=project).stdout)
        (check,) = [check for check in examined["checks"] if check["name"] == "icecream"]
        assert (check["status"], check["why"]) == ("ok", f"{NEAR}: 2 machines, 4 jobs at once")
        # The daemon packs the compiler first, which takes minutes on a busy machine.
        assert stoker.start("run", "--plain", "-p", "shared", cwd=project).wait(400) == 0
        assert re.search(r"END \d+ status=0", (ice.folder / "scheduler.log").read_text())
