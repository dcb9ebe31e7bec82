"""What happens to viewers, engines and terminals does not happen to the build."""

from __future__ import annotations

import contextlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stoker.act.tree import descendants
from stoker.contract.process import start_ticks
from support.burn import burns, write_burn_makefile, write_burns
from support.overlap import Overlap
from support.procs import Process, below
from support.program import PYPI_NINJA, Stoker, kill_supervisors, stop_supervisors, supervisors_in, until, write_ninja


@pytest.fixture
def slow(tmp_path: Path) -> Path:
    """Eight jobs, of which the last ones wait until the test touches `go`."""
    waits = {n: "until [ -e go ]; do sleep 0.2; done" if n > 4 else "sleep 0.3" for n in range(8)}
    return write_ninja(tmp_path / "slow", [(f"o{n}", f"{waits[n]}; echo did {n}; touch o{n}") for n in range(8)])


def let_go(slow: Path) -> None:
    (slow / "go").touch()


def running(stoker: Stoker, build: str) -> bool:
    """Whether the engine has told of a job that runs."""
    return any(e["type"] == "job_started" and e.get("state") != "on_deck" for e in stoker.events(build))


def finished_outputs(stoker: Stoker, build: str) -> list[str]:
    return sorted(e["output"] for e in stoker.events(build) if e["type"] == "job_finished" and e["outcome"] == "ok")


def fill(path: Path) -> None:
    """Write until there is no room."""
    fd = os.open(path, os.O_WRONLY | os.O_CREAT)
    free = os.fstatvfs(fd).f_bavail * os.fstatvfs(fd).f_frsize
    os.posix_fallocate(fd, 0, free)
    os.close(fd)
    assert os.statvfs(path).f_bavail == 0


def test_a_viewer_finds_the_engine_after_a_logout_took_the_runtime_folder_away(stoker: Stoker) -> None:
    build = stoker.run("run", "--detach", "--name", "s", "--", "sleep", "600").stdout.decode().strip()
    socket_file = stoker.socket(build)
    until(socket_file.exists, "a socket")
    gone = stoker.runtime.rename(stoker.runtime.with_name(f"{stoker.runtime.name}-gone"))  # at once: the engine watches
    stoker.runtime.mkdir(mode=0o700)
    shutil.rmtree(gone)
    until(socket_file.exists, "a socket again")
    viewer = stoker.start("attach", "--json", build)
    assert viewer.stdout is not None
    assert json.loads(viewer.stdout.readline())["link"] == "live"
    assert stoker.run("stop", build).returncode == 0
    viewer.communicate(timeout=30)


def test_a_runtime_folder_that_somebody_else_made_first_does_not_cost_the_controls(stoker: Stoker) -> None:
    stoker.state = stoker.runtime / "state"  # a test's own folder is too long a path for a socket
    stoker.env["XDG_STATE_HOME"] = str(stoker.state)
    (stoker.runtime / "stoker").write_text("planted")
    build = stoker.detach("sleep", "600")
    told = stoker.run("jobs", build, "1")
    assert told.returncode == 0, told.stderr
    assert stoker.run("stop", build).returncode == 0


def test_an_engine_killed_over_its_plan_leaves_the_next_one_free_to_make_it(stoker: Stoker, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "many", [(f"o{n}", f"sleep 1; touch o{n}") for n in range(2000)])
    build = stoker.detach("ninja", "-C", str(folder), "-j2")

    def planned() -> bool:
        return any(e["type"] == "scheduler_planned" and e["source"] == "dry-run" for e in stoker.events(build))

    until(lambda: planned() or list(stoker.folder(build).glob("plans/*/plan-*.work")), "a plan in the making")
    os.kill(stoker.engine_pid(build), signal.SIGKILL)
    until(planned, "a plan")
    assert stoker.status(build)["progress"]["total"] == 2000


def test_a_killed_engine_loses_no_job_and_the_build_ends_as_it_would(stoker: Stoker, slow: Path) -> None:
    build = stoker.detach("ninja", "-C", str(slow), "-j2")
    until(lambda: len(finished_outputs(stoker, build)) >= 2, "two jobs")
    os.kill(stoker.engine_pid(build), signal.SIGKILL)
    until(lambda: len(finished_outputs(stoker, build)) >= 4, "jobs after the kill")
    os.kill(stoker.engine_pid(build), signal.SIGKILL)
    let_go(slow)
    status = stoker.ended(build)
    assert (status["state"], status["exit_code"]) == ("done", 0)
    assert finished_outputs(stoker, build) == [f"o{n}" for n in range(8)]
    assert (status["progress"]["finished"], status["progress"]["total"]) == (8, 8)
    sequence = [e["seq"] for e in stoker.events(build)]
    assert sequence == list(range(1, len(sequence) + 1))


def set_back(journal: Path, seconds: float) -> None:
    """As if the clock had been set forward by so many seconds since all of this was written down."""
    records = [json.loads(line) for line in journal.read_bytes().splitlines()]
    for record in records:
        record["t"] -= seconds
        if "started" in record:
            record["started"] -= seconds
    journal.write_text("".join(json.dumps(record) + "\n" for record in records))


def test_a_sick_engine_says_where_it_is_and_goes_on(stoker: Stoker, slow: Path) -> None:
    build = stoker.detach(PYPI_NINJA, "-C", str(slow), jobs=2)
    until(lambda: stoker.status(build)["progress"]["running"], "its jobs: an engine that has yet to start would die")
    engine = stoker.engine_pid(build)

    def asked() -> bool:
        os.kill(engine, signal.SIGQUIT)
        return "asyncio" in (stoker.folder(build) / "engine.log").read_text()

    until(asked, "where its threads are")
    assert stoker.engine_pid(build) == engine
    let_go(slow)
    assert stoker.ended(build)["state"] == "done"
    assert [e["pid"] for e in stoker.events(build) if e["type"] == "engine_started"] == [engine]


@pytest.mark.long
@pytest.mark.parametrize("tool", ["ninja", "make"])
def test_a_clock_that_is_set_while_the_engine_is_replaced_costs_no_job(
    stoker: Stoker, tmp_path: Path, tool: str
) -> None:
    write = {"ninja": write_burns, "make": write_burn_makefile}[tool]
    build = stoker.detach(tool, "-C", str(write(tmp_path / "b", burns(3, 600))), "-j3", jobs=3)
    until(lambda: stoker.status(build)["progress"]["running"] == 3, "three jobs")
    engine = stoker.engine_pid(build)
    os.kill(engine, signal.SIGSTOP)
    set_back(stoker.folder(build) / "journal.jsonl", 30)
    os.kill(engine, signal.SIGKILL)
    until(lambda: stoker.engine_pid(build) != engine, "another engine")
    looks = len(stoker.events(build)) + 8
    until(lambda: len(stoker.events(build)) > looks, "some looks of it")
    events = stoker.events(build)
    assert not [event for event in events if event["type"] == "job_finished"]
    assert {event["jid"] for event in events if event["type"] == "job_started"} == {1, 2, 3}
    assert len([event for event in events if event["type"] == "scheduler_started"]) == 1


@pytest.mark.long
def test_jobs_that_end_while_no_engine_looks_have_ended_well_and_run_no_more(stoker: Stoker, tmp_path: Path) -> None:
    """Their names are known at once by the compilers' command lines, with no plan: nothing has to wait for a name."""
    folder = tmp_path / "named"
    compiler = folder / "g++"
    edges = [(f"o{n}.o", f"./g++ -c {n}.cc -o o{n}.o") for n in range(4)]
    write_ninja(folder, edges)
    compiler.write_text("#!/bin/sh\nuntil [ -e go$2 ]; do sleep 0.2; done; touch $4\n")
    compiler.chmod(0o755)
    build = stoker.detach("ninja", "-C", str(folder), "-j2", jobs=2)
    until(lambda: stoker.status(build)["progress"]["running"] == 2, "two jobs")
    engine = stoker.engine_pid(build)
    os.kill(engine, signal.SIGSTOP)
    for n in (0, 1):
        (folder / f"go{n}.cc").touch()
    log = folder / ".ninja_log"
    until(lambda: log.exists() and log.read_text().count(".o\t") == 2, "ninja's records")
    os.kill(engine, signal.SIGKILL)
    until(lambda: stoker.status(build)["progress"]["finished"] == 2, "word of them")
    assert stoker.status(build)["progress"]["running"] <= 2
    looks = len(stoker.events(build)) + 8
    until(lambda: len(stoker.events(build)) > looks, "some more looks")
    for n in (2, 3):
        (folder / f"go{n}.cc").touch()
    progress = stoker.ended(build)["progress"]
    assert (progress["finished"], progress["failed"]) == (4, 0)
    ends = [e["jid"] for e in stoker.events(build) if e["type"] == "job_finished"]
    assert sorted(ends) == [1, 2, 3, 4]


@pytest.mark.long
def test_an_engine_killed_over_the_end_is_replaced_and_the_end_is_written(stoker: Stoker, slow: Path) -> None:
    build = stoker.detach("ninja", "-C", str(slow), "-j8")
    engine = stoker.engine_pid(build)
    os.kill(engine, signal.SIGSTOP)
    let_go(slow)
    until((stoker.folder(build) / "exit.json").exists, "the build's end")
    os.kill(engine, signal.SIGKILL)
    stoker.ended(build)
    assert finished_outputs(stoker, build) == [f"o{n}" for n in range(8)]


@pytest.mark.parametrize("signum", [signal.SIGHUP, pytest.param(signal.SIGKILL, marks=pytest.mark.long)])
def test_a_plain_viewer_that_hangs_up_or_dies_leaves_the_build_running(stoker: Stoker, slow: Path, signum: int) -> None:
    viewer = stoker.start("run", "--plain", "--", "ninja", "-C", str(slow), "-j2")
    build = stoker.begun()
    until(lambda: running(stoker, build), "a running job")
    viewer.send_signal(signum)
    viewer.communicate(timeout=60)
    let_go(slow)
    status = stoker.ended(build)
    assert (status["state"], status["progress"]["finished"]) == ("done", 8)


def test_an_interrupt_in_plain_mode_stops_the_build_with_130(stoker: Stoker, slow: Path) -> None:
    viewer = stoker.start("run", "--plain", "--", "ninja", "-C", str(slow), "-j2")
    build = stoker.begun()
    until(lambda: running(stoker, build), "a running job")
    viewer.send_signal(signal.SIGINT)
    viewer.communicate(timeout=60)
    assert viewer.returncode == 130
    assert stoker.status(build)["state"] == "stopped"


def test_a_second_viewer_sees_the_same_state_at_once(stoker: Stoker, slow: Path) -> None:
    build = stoker.detach("ninja", "-C", str(slow), "-j2")
    until(lambda: stoker.status(build)["progress"]["finished"] >= 2, "two jobs")
    first = stoker.start("attach", "--json", "--read-only", build)
    assert first.stdout is not None
    seen = json.loads(first.stdout.readline())
    assert seen["progress"]["finished"] >= 2
    first.kill()
    first.communicate()
    let_go(slow)
    assert stoker.run("attach", "--plain", build).returncode == 0


def two_of_three(progress: dict[str, int]) -> bool:
    """The third was held, or had begun before the level was lowered and is frozen."""
    return progress["running"] == 2 and progress["on_deck"] + progress["frozen"] == 1


def test_stopping_leaves_no_orphan_and_ninja_goes_on_where_it_was(stoker: Stoker, tmp_path: Path) -> None:
    edges = [("quick", "touch quick"), *((f"o{n}", f"sleep 1000; touch o{n}") for n in range(3))]
    folder = write_ninja(tmp_path / "long", edges)
    build = stoker.detach("ninja", "-C", str(folder), "-j4")
    told = stoker.run("jobs", build, "2")
    assert told.returncode == 0, "an engine that only just starts is waited for"
    until(lambda: two_of_three(stoker.status(build)["progress"]), "two sleepers")
    supervisor = stoker.supervisor(build)["supervisor_pid"]
    tree = [p for p in descendants(supervisor) if p != stoker.engine_pid(build)]
    assert len(tree) >= 4
    assert stoker.run("stop", build).returncode == 0
    assert not [p for p in tree if start_ticks(p) is not None]
    status = stoker.status(build)
    assert (status["state"], status["decisions"][-1]["what"]) == ("stopped", "stop the build")
    assert stoker.run("stop", build).returncode == 1
    dry = subprocess.run([PYPI_NINJA, "-C", str(folder), "-n"], capture_output=True, check=True)
    assert b"[3/3]" in dry.stdout


def test_stopping_works_without_an_engine(stoker: Stoker, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "long", [("o", "sleep 1000")])
    build = stoker.detach("ninja", "-C", str(folder))
    os.kill(stoker.engine_pid(build), signal.SIGSTOP)
    assert stoker.run("stop", "--force", build).returncode == 0
    assert stoker.ended(build)["state"] == "stopped"


@pytest.mark.parametrize("force", [[], pytest.param(["--force"], marks=pytest.mark.long)])
def test_a_build_whose_supervisor_is_stopped_can_be_stopped(stoker: Stoker, tmp_path: Path, force: list[str]) -> None:
    folder = write_ninja(tmp_path / "long", [("o", "sleep 1000")])
    build = stoker.detach("ninja", "-C", str(folder))
    until(lambda: running(stoker, build), "a running job")
    supervisors = supervisors_in(stoker.supervisor(build))
    stop_supervisors(stoker.supervisor(build))
    stopped = stoker.run("stop", *force, build)
    assert stopped.returncode == 0, stopped.stderr
    assert stoker.status(build)["state"] == "stopped"
    until(lambda: not any(map(start_ticks, supervisors)), "the end of the supervisors")


def test_a_read_only_viewer_cannot_stop_anything(stoker: Stoker, slow: Path) -> None:
    build = stoker.detach("ninja", "-C", str(slow), "-j2")
    stoker.engine_pid(build)
    until(lambda: running(stoker, build), "a running job")
    with socket.socket(socket.AF_UNIX) as s:
        s.connect(str(stoker.socket(build)))
        file = s.makefile("rwb")
        file.write(b'{"type":"hello","protocol":2,"resume":null,"read_only":true}\n')
        file.write(b'{"type":"command","n":1,"verb":"stop","args":{}}\n')
        file.flush()
        reply = next(m for m in map(json.loads, file) if m["type"] == "reply")
    assert reply["ok"] is False
    let_go(slow)
    assert stoker.ended(build)["state"] == "done"


def test_a_login_with_another_runtime_folder_finds_the_same_engine(stoker: Stoker, slow: Path, tmp_path: Path) -> None:
    build = stoker.detach("ninja", "-C", str(slow), "-j2")
    until(lambda: running(stoker, build), "a running job")
    seen = stoker.run("status", "--json", build, XDG_RUNTIME_DIR=str(tmp_path / "elsewhere"))
    assert json.loads(seen.stdout)["link"] == "live"


@pytest.mark.long
def test_figures_that_no_engine_answers_for_are_told_as_such(stoker: Stoker, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "long", [("o", "sleep 1000")])
    build = stoker.detach("ninja", "-C", str(folder))
    until(lambda: running(stoker, build), "a running job")
    os.kill(stoker.engine_pid(build), signal.SIGSTOP)
    assert b"no engine answers" in stoker.run("status", build).stdout


def test_state_and_socket_are_private(stoker: Stoker, slow: Path) -> None:
    build = stoker.detach("ninja", "-C", str(slow), "-j2")
    stoker.engine_pid(build)
    sock = stoker.socket(build)
    until(sock.exists, "the socket")
    assert sock.stat().st_mode & 0o777 == 0o600
    assert sock.parent.stat().st_mode & 0o777 == 0o700
    assert stoker.folder(build).stat().st_mode & 0o777 == 0o700
    for file in ("journal.jsonl", "output.log"):
        assert (stoker.folder(build) / file).stat().st_mode & 0o077 == 0


def test_a_killed_supervisor_costs_nothing(stoker: Stoker, slow: Path) -> None:
    build = stoker.detach("ninja", "-C", str(slow), "-j2")
    until(lambda: running(stoker, build), "a running job")
    killed = [0]
    for _ in range(2):
        killed.append(stoker.supervisor(build)["supervisor_pid"])
        os.kill(killed[-1], signal.SIGKILL)
        until(lambda: stoker.supervisor(build)["supervisor_pid"] != killed[-1], "a standby in its place")
    let_go(slow)
    status = stoker.ended(build)
    assert (status["state"], status["exit_code"]) == ("done", 0)
    assert finished_outputs(stoker, build) == [f"o{n}" for n in range(8)]
    assert (status["progress"]["finished"], status["progress"]["total"], status["progress"]["failed"]) == (8, 8, 0)
    texts = [e["text"] for e in stoker.events(build) if e["type"] == "noticed"]
    assert sum("a standby has taken its place" in text for text in texts) in (1, 2), texts


def test_a_killed_supervisor_without_standbys_is_told_truthfully(stoker: Stoker, slow: Path) -> None:
    build = stoker.detach("ninja", "-C", str(slow), "-j2")
    until(lambda: stoker.status(build)["progress"]["running"], "a running job")
    kill_supervisors(stoker.supervisor(build))
    let_go(slow)
    status = stoker.ended(build)
    assert status["state"] == "failed"
    assert "status is lost" in status["reason"]
    assert (status["progress"]["finished"], status["progress"]["total"]) == (8, 8)
    assert (status["progress"]["failed"], status["failures"]) == (0, [])
    events = stoker.events(build)
    assert len([e for e in events if e["type"] == "scheduler_started"]) == 1
    assert {e["outcome"] for e in events if e["type"] == "job_finished"} == {"ok"}


def test_a_full_disk_under_the_journal_does_not_touch_the_build(stoker: Stoker, tmp_path: Path, slow: Path) -> None:
    stoker.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(stoker.state)], check=True)
    try:
        build = stoker.detach("ninja", "-C", str(slow), "-j2")
        stoker.engine_pid(build)
        filler = stoker.state / "filler"
        fill(filler)
        let_go(slow)
        until(lambda: (slow / "o7").exists(), "the last job")
        until((stoker.folder(build) / "exit.json").exists, "the end")
        time.sleep(2)  # the engine has nothing left to do but to write that down
        filler.unlink()
        status = stoker.ended(build)
        assert (status["state"], status["progress"]["finished"]) == ("done", 8)
    finally:
        stoker.end_all()
        until(
            lambda: subprocess.run(["umount", str(stoker.state)], check=False, capture_output=True).returncode == 0,
            "the unmounting",
        )


@pytest.mark.parametrize("tool", ["ninja", "make"])
def test_a_state_disk_that_stays_full_to_the_end_loses_neither_status_nor_counts(
    stoker: Stoker, tmp_path: Path, slow: Path, tool: str
) -> None:
    stoker.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(stoker.state)], check=True)
    (slow / "Makefile").write_text("all: 1 2\n1 2:\n\tuntil [ -e go ]; do sleep 0.2; done\n")
    try:
        viewer = stoker.start("run", "--plain", "--", tool, "-C", str(slow), "-j2")
        build = stoker.begun()
        until(lambda: running(stoker, build), "a running job")
        fill(stoker.state / "filler")
        let_go(slow)
        _, said = viewer.communicate(timeout=60)
        assert (viewer.returncode, b"goes on; look again" in said) == (0, False), said
        until(lambda: not supervisors_in(stoker.supervisor(build)), "the supervisor's end")
        status = stoker.status(build)
        assert (status["state"], status["exit_code"], status["progress"]["running"]) == ("done", 0, 0)
        assert (status["progress"]["finished"], status["progress"]["failed"]) == (8 if tool == "ninja" else 2, 0)
    finally:
        stoker.end_all()
        until(
            lambda: subprocess.run(["umount", str(stoker.state)], check=False, capture_output=True).returncode == 0,
            "the unmounting",
        )


def test_what_dies_for_memory_runs_again_on_a_full_state_disk(stoker: Stoker, tmp_path: Path) -> None:
    """The question whether it does and its answer have room that nothing else can take."""
    dies_once = "until [ -e go ]; do sleep 0.2; done; [ -e died ] || { touch died; kill -9 $$; }; touch o0"
    project = write_ninja(tmp_path / "p", [("o0", dies_once)])
    stoker.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=512k", "tmpfs", str(stoker.state)], check=True)
    try:
        build = stoker.detach("ninja", "-C", str(project))
        until(lambda: running(stoker, build), "a running job")
        fill(stoker.state / "filler")
        (project / "go").touch()
        until((stoker.folder(build) / "exit.json").exists, "the end")
        (stoker.state / "filler").unlink()  # the journal's end may have waited for that
        status = stoker.ended(build)
        assert (status["state"], status["exit_code"], status["progress"]["finished"]) == ("done", 0, 1)
    finally:
        stoker.end_all()
        until(
            lambda: subprocess.run(["umount", str(stoker.state)], check=False, capture_output=True).returncode == 0,
            "the unmounting",
        )


def test_engine_and_plain_viewer_load_neither_textual_nor_what_is_only_wanted_at_the_end() -> None:
    code = (
        "import sys, stoker.engine.loop.engine, stoker.cli.watch;"
        "late = 'stoker.verify', 'stoker.diagnose', 'stoker.config.profiles';"
        "print([m for m in sys.modules if m.startswith(late)]);"
        "import stoker.show.plain, stoker.show.json, stoker.cli.commands.status;"
        "print({'textual', 'rich'} & set(sys.modules))"
    )
    done = subprocess.run([sys.executable, "-c", code], check=True, capture_output=True, text=True)
    assert done.stdout == "[]\nset()\n"


def test_what_ninja_finished_while_the_engine_was_stopped_is_counted_when_the_step_runs_again(
    stoker: Stoker, tmp_path: Path
) -> None:
    ninja = tmp_path / "bin" / "ninja"
    ninja.parent.mkdir()
    ninja.write_text(f"""#!/bin/sh
[ -e tried ] || kill -STOP $(pgrep -P $PPID -f stoker.engine)
exec {PYPI_NINJA} "$@"
""")
    ninja.chmod(0o755)
    (tmp_path / "b.sh").write_text(
        "if [ -e tried ]; then exec touch b; fi\n"
        "touch tried; echo 'virtual memory exhausted: Cannot allocate memory'; exit 1"
    )
    (tmp_path / "build.ninja").write_text(
        "rule a\n  command = touch a\nrule b\n  command = sh b.sh\nbuild a: a\nbuild b: b || a\n"
    )
    assert stoker.run("run", "--plain", "--name", "twice", "--", str(ninja)).returncode == 0
    (folder,) = stoker.state.glob("stoker/builds/*")
    told = [e["output"] for e in stoker.events(folder.name) if e["type"] == "job_finished" and e["outcome"] == "ok"]
    assert told == ["a", "b"]


TIDIES_UP = """
import os, signal, sys, time
def tidy(*_):
    for _ in range(10):
        time.sleep(0.1)
    open(sys.argv[1] + ".tidied", "w").close()
    os._exit(1)
signal.signal(signal.SIGTERM, tidy)
open(sys.argv[1] + ".began", "w").close()
while True:
    time.sleep(0.05)
"""


@pytest.mark.long
@pytest.mark.parametrize("by", ["a person", "a signal"])
def test_frozen_jobs_that_are_stopped_get_to_tidy_up(stoker: Stoker, tmp_path: Path, by: str) -> None:
    """Also where somebody else stops it: docker, systemd, a shutdown."""
    names = ["a", "b", "c"]
    folder = write_ninja(tmp_path / "tidy", [(n, f"exec {sys.executable} -I -S job.py {n}") for n in names])
    (folder / "job.py").write_text(TIDIES_UP)
    build = stoker.detach("ninja", "-C", str(folder), jobs=3)
    until(lambda: all((folder / f"{n}.began").exists() for n in names), "jobs at work")
    until(lambda: stoker.status(build)["progress"]["running"] == 3, "an engine that knows them")
    assert stoker.run("pause", "--now", build).returncode == 0
    until(lambda: stoker.status(build)["progress"]["frozen"] == 3, "three frozen jobs")
    if by == "a person":
        assert stoker.run("stop", build).returncode == 0
    else:
        os.kill(stoker.supervisor(build)["supervisor_pid"], signal.SIGTERM)
    assert stoker.ended(build)["state"] == "stopped"
    assert sorted(p.name for p in folder.glob("*.tidied")) == [f"{n}.tidied" for n in names]


@pytest.mark.long
def test_a_paused_build_whose_engine_is_gone_goes_on_with_one_job(stoker: Stoker, tmp_path: Path) -> None:
    """A soft pause: the supervisor must not let jobs go up to the level that was set before it."""
    folder = write_burns(tmp_path / "paused", burns(30, 0.5))
    build = stoker.detach("ninja", "-C", str(folder), jobs=2)
    until(lambda: stoker.status(build)["progress"]["running"] == 2, "two jobs")
    assert stoker.run("pause", build).returncode == 0
    until(lambda: stoker.status(build)["progress"]["running"] == 0, "the end of what ran")
    engine, supervisor = stoker.engine_pid(build), stoker.supervisor(build)["supervisor_pid"]
    os.kill(engine, signal.SIGSTOP)
    before = len(recorded(folder))
    overlap = Overlap(lambda: [p for p in below([supervisor]) if p.name == "burn"])
    with overlap.watch:
        until(lambda: len(recorded(folder)) > before, "a job without an engine")  # in twenty seconds at the earliest
        until(lambda: len(recorded(folder)) >= before + 3, "jobs without an engine")
    assert overlap.most == 1
    os.kill(engine, signal.SIGCONT)
    assert stoker.run("stop", "--force", build).returncode == 0
    stoker.ended(build)


def recorded(folder: Path) -> list[str]:
    """What ninja says is done."""
    return (folder / ".ninja_log").read_text().splitlines()[1:]


COMMANDS = (["status"], ["ls"], ["log"], ["events"], ["jobs"], ["attach", "--plain"], ["run", "--detach", "--", "true"])


@pytest.mark.long
@pytest.mark.parametrize("words", COMMANDS, ids=lambda words: words[0])
def test_any_command_heals_a_build_whose_supervisor_and_engine_were_all_killed(
    stoker: Stoker, tmp_path: Path, words: list[str]
) -> None:
    """Nobody is left who would let go what waits on deck."""
    folder = write_burns(tmp_path / "orphaned", burns(6, 1.0))
    build = stoker.detach("ninja", "-C", str(folder), jobs=1)
    until(lambda: stoker.status(build)["progress"]["on_deck"], "jobs on deck")
    ninja = stoker.supervisor(build)["build_pid"]
    stoker.kill_supervisors_and_engine(build)
    until(lambda: all_stopped(below([ninja])), "nothing that runs")
    said = stoker.run(*words).stderr.decode()
    assert f"{build}: supervisor and engine were killed; a watchdog and an engine take their place" in said
    status = stoker.ended(build)
    assert len(recorded(folder)) == 6
    assert (status["state"], status["exit_code"]) == ("failed", None)
    assert "status is lost" in status["reason"]
    assert (status["progress"]["finished"], status["progress"]["total"], status["progress"]["failed"]) == (6, 6, 0)
    assert not stoker.run(*words[:1] if words[0] != "run" else words).stderr.count(b"take their place")


def all_stopped(jobs: list[Process]) -> bool:
    return all(p.state in "TDZ" for p in jobs if p.name == "burn")


@pytest.mark.long
def test_a_screen_that_is_open_heals_the_build_too(stoker: Stoker, tmp_path: Path) -> None:
    folder = write_burns(tmp_path / "watched", burns(12, 1.0))
    viewer = stoker.start("run", "--plain", "-j", "1", "--", "ninja", "-C", str(folder))
    build = stoker.begun()
    until(lambda: stoker.status(build)["progress"]["on_deck"], "jobs on deck")
    stoker.kill_supervisors_and_engine(build)
    _, said = viewer.communicate(timeout=60)
    assert len(recorded(folder)) == 12
    assert b"status is lost" in said


def test_jobs_that_outlive_supervisor_engine_and_scheduler_are_not_left_stopped(stoker: Stoker, tmp_path: Path) -> None:
    folder = write_burns(tmp_path / "outlived", burns(40, 0.3))
    build = stoker.detach("ninja", "-C", str(folder), jobs=1)
    until(lambda: stoker.status(build)["progress"]["on_deck"], "jobs on deck")
    ninja = stoker.supervisor(build)["build_pid"]
    jobs = [p.pid for p in below([ninja])]
    stoker.kill_supervisors_and_engine(build)
    os.kill(ninja, signal.SIGKILL)
    until(lambda: not any(map(start_ticks, jobs)), "the end of all jobs")
    assert stoker.status(build)["state"] == "failed"


@pytest.mark.long
def test_one_viewer_too_many_is_told_so_and_reads_the_journal(stoker: Stoker, slow: Path) -> None:
    build = stoker.detach("ninja", "-C", str(slow), "-j2")
    stoker.engine_pid(build)
    until(lambda: running(stoker, build), "a running job")
    with contextlib.ExitStack() as viewers:
        for _ in range(32):
            viewer = viewers.enter_context(socket.socket(socket.AF_UNIX))
            viewer.connect(str(stoker.socket(build)))
            viewer.sendall(b'{"type":"hello","protocol":2,"resume":null,"read_only":true}\n')
            assert viewer.recv(1)
        said = stoker.run("status", build).stdout.decode()
        assert "from the journal: 32 viewers are connected already; close one" in said
        assert "no engine answers" not in said
        refused = stoker.run("jobs", build, "3").stderr.decode()
        assert refused == "stoker: 32 viewers are connected already; close one\n"
        let_go(slow)
        attached = stoker.run("attach", "--plain", build)
        assert attached.returncode == 0
        assert b"lost" not in attached.stderr
    assert stoker.ended(build)["state"] == "done"


@pytest.mark.parametrize("kib", [20000, 30000, 40000, 50000, 60000])
def test_too_little_memory_for_the_program_is_told_in_one_line(stoker: Stoker, kib: int) -> None:
    stoker.prefix = ["sh", "-c", f'ulimit -v {kib}; exec "$@"', "sh"]
    done = stoker.run("run", "--plain", "--", "true")
    lines = done.stderr.decode().splitlines()
    assert b"Traceback" not in done.stderr
    assert done.returncode == 0 or "ulimit" in lines[-1], lines
