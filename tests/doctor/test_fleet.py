"""Other machines and shared caches, as the doctor finds them: real servers, and programs that say too much."""

from __future__ import annotations

import contextlib
import json
import shutil
import socket
import subprocess
import threading
import time
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path

import pytest

from stoker.doctor import find_fleet as find_fleet_module
from stoker.doctor.facts import Surroundings
from stoker.doctor.find_fleet import ask_dist, ask_icecream, find_fleet
from stoker.doctor.fleet_facts import DistccHost, DistccTrial, Fleet, SchedulerAnswer
from stoker.doctor.judge_fleet import judge_fleet
from stoker.doctor.need import Need
from support.clinic import Clinic
from support.redis_server import free_port, listens, redis_server

HERE = Surroundings(Need(), {}, 2.0, "apt-get")
LISTCS = """200-ICECC 1.4: 5s uptime, 2 hosts, 0 jobs in queue (0 total).
200 Use 'help' for help and 'quit' to quit.
 near (10.0.0.1:10245) [x86_64] speed=0.00 jobs=0/4 load=0
 far (10.0.0.2:10245) [x86_64] speed=0.00 jobs=1/24 load=12
200 done
"""


def test_a_redis_that_is_stopped_is_found_in_the_time_and_one_that_is_killed(clinic: Clinic, tmp_path: Path) -> None:
    with redis_server(tmp_path) as redis:
        clinic.env["SCCACHE_REDIS_ENDPOINT"] = redis.url
        clinic.env["SCCACHE_SERVER_PORT"] = str(free_port())
        name = f"shared cache {redis.url}"
        assert clinic.check(name).status == "ok"
        redis.stop()
        began = time.monotonic()
        fleet = find_fleet(Surroundings(Need(), clinic.env, 3.0))
        assert time.monotonic() - began < 10.0, "it may be given 2 s, and the machine is busy"
        (check,) = judge_fleet(fleet, HERE)
        assert check.status == "fail"
        assert "no answer in 2 s; sccache's server does not start" in check.why
        assert check.remedy.startswith("unset SCCACHE_REDIS_ENDPOINT")
        with socket.socket() as server:
            server.bind(("127.0.0.1", int(clinic.env["SCCACHE_SERVER_PORT"])))
            server.listen()
            (check,) = judge_fleet(find_fleet(Surroundings(Need(), clinic.env, 0.3)), HERE)
            assert check.status == "warn"
            assert "each compilation waits a minute" in check.why
        redis.kill()
        assert "connection refused" in clinic.check(name).why


def test_a_dead_cache_of_ccache_is_a_warning(clinic: Clinic) -> None:
    clinic.env["CCACHE_REMOTE_STORAGE"] = f"redis://:hunter2@127.0.0.1:{free_port()}"
    (check,) = judge_fleet(find_fleet(Surroundings(Need(), clinic.env, 1.0)), HERE)
    assert check.status == "warn"
    assert "nothing is taken from it" in check.why
    assert "hunter2" not in repr(check)


@contextlib.contextmanager
def scheduler(answer: bytes) -> Iterator[str]:
    """Something that answers every question by HTTP with this."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/api/v1/scheduler/status" else 404)
            self.end_headers()
            self.wfile.write(answer)

        def log_message(self, format: str, *args: object) -> None:  # noqa: A002  (the base's own name)
            """Say nothing."""

    with HTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}"
        finally:
            server.shutdown()
            thread.join()


def test_the_scheduler_of_sccache_dist_says_what_it_has() -> None:
    with scheduler(b'{"num_servers":3,"num_cpus":96,"in_progress":0}') as url:
        assert ask_dist(url, 5.0) == SchedulerAnswer(url, 3, 96)
    for nonsense in (b"<html>", b"[]", b'{"num_servers":"many"}', b"[" * 100_000):
        with scheduler(nonsense) as url:
            assert "no scheduler of sccache-dist" in ask_dist(url, 5.0).problem
    assert ask_dist(f"http://127.0.0.1:{free_port()}", 5.0).problem == "connection refused"
    assert ask_dist("http://[::1", 1.0).problem


@contextlib.contextmanager
def says(text: bytes) -> Iterator[int]:
    """A port whose next one is a scheduler's for people, which says this."""
    for _ in range(50):
        with contextlib.suppress(OSError), socket.create_server(("127.0.0.1", free_port())) as server:

            def serve(server: socket.socket = server) -> None:
                with contextlib.suppress(OSError), server.accept()[0] as connection:
                    connection.recv(4096)
                    connection.sendall(text)

            thread = threading.Thread(target=serve)
            thread.start()
            try:
                yield server.getsockname()[1] - 1
            finally:
                with contextlib.suppress(OSError):
                    server.shutdown(socket.SHUT_RDWR)
                thread.join()
            return


def test_the_scheduler_of_icecream_lists_its_machines() -> None:
    with says(LISTCS.encode()) as port:
        assert ask_icecream(f"127.0.0.1:{port}", 5.0) == SchedulerAnswer(f"127.0.0.1:{port}", 2, 28)
    with says(b"SSH-2.0-OpenSSH_9.2\r\n") as port:
        assert "no scheduler of icecream" in ask_icecream(f"127.0.0.1:{port}", 5.0).problem
    assert ask_icecream("127.0.0.1:99999", 1.0).problem


def test_what_a_person_is_to_do_of_each() -> None:
    def only(fleet: Fleet) -> tuple[str, str, str]:
        (check,) = judge_fleet(fleet, HERE)
        return check.status, check.why, check.remedy

    assert only(Fleet(unset=("MINE",)))[::2] == ("fail", "read -rs MINE && export MINE")
    assert only(Fleet(dist=SchedulerAnswer("http://a:1", 3, 96)))[:2] == (
        "ok",
        "http://a:1: 3 machines, 96 jobs at once",
    )
    assert "no machine has come" in only(Fleet(dist=SchedulerAnswer("http://a:1")))[1]
    assert "all is compiled here" in only(Fleet(icecc="/icecc", icecream=SchedulerAnswer("a", problem="no answer")))[1]
    assert only(Fleet(distcc=DistccTrial("")))[2] == "apt-get install distcc"
    other = DistccTrial("/distcc", (DistccHost("a/4", 0.1, compiler="GCC: (D) 13.1"),), compiler="GCC: (D) 12.2")
    assert "objects of two compilers are linked" in only(Fleet(distcc=other))[1]


def test_nothing_is_said_of_a_build_that_uses_none(clinic: Clinic) -> None:
    assert list(judge_fleet(find_fleet(Surroundings(Need(), clinic.env, 1.0)), HERE)) == []


def test_a_distcc_that_cannot_list_its_hosts_or_reach_one(clinic: Clinic) -> None:
    clinic.env["DISTCC_HOSTS"] = "build1/4"
    clinic.program("distcc", "#!/bin/sh\necho 'distcc[7] ERROR: bad host' >&2\nexit 3\n")
    assert "its hosts cannot be listed" in clinic.check("distcc").why
    clinic.program(
        "distcc",
        "#!/bin/sh\n[ $1 = --show-hosts ] && echo build1/4 && exit\n"
        "echo 'distcc[7] (dcc_connect) ERROR: failed to connect to build1' >&2\nexit 100\n",
    )
    check = clinic.check("distcc host build1/4")
    assert check.status == "warn"
    assert "failed to connect to build1" in check.why


@pytest.fixture
def distccd(tmp_path: Path) -> Iterator[str]:
    """A real server of distcc on loopback."""
    program = shutil.which("distccd")
    if program is None:
        pytest.skip("distccd is not installed (apt-get install distcc)")
    port = free_port()
    words = [program, "--no-detach", "--daemon", "--listen", "127.0.0.1", "--allow", "127.0.0.1", "--jobs", "2"]
    words += ["--port", str(port), "--enable-tcp-insecure", "--log-stderr"]
    with (tmp_path / "distccd.log").open("wb") as log:
        process = subprocess.Popen(words, stdout=log, stderr=log)
    try:
        deadline = time.monotonic() + 20
        while not listens(port) and time.monotonic() < deadline:
            time.sleep(0.05)
        yield f"127.0.0.1:{port}/2"
    finally:
        process.terminate()
        process.wait()


@pytest.mark.long
def test_a_real_distccd_compiles_a_line_and_a_dead_one_does_not(
    distccd: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(find_fleet_module, "PATIENCE", 20.0)  # others may keep the machine busy
    env = {"PATH": "/usr/bin:/bin", "DISTCC_DIR": str(tmp_path), "HOME": str(tmp_path)}
    nobody = f"127.0.0.1:{free_port()}/4"
    env["DISTCC_HOSTS"] = f"{distccd} {nobody} localhost/2"
    trial = find_fleet(Surroundings(Need(), env, 20.0)).distcc
    assert trial is not None
    good, bad = trial.hosts
    assert (good.name, good.problem) == (distccd, "")
    assert good.compiler == trial.compiler
    assert good.compiler.startswith("GCC: (")
    assert bad.name == nobody
    assert bad.problem


def test_json_of_a_scheduler_may_hold_anything() -> None:
    for value in (None, [1], {"num_servers": 1e400}, {"num_servers": True, "num_cpus": -1}):
        with scheduler(json.dumps(value).encode()) as url:
            assert isinstance(ask_dist(url, 5.0), SchedulerAnswer)
