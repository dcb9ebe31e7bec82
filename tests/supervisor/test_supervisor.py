"""The supervisor with real processes and a stand-in for the engine: statuses, signals, orphans, restarts."""

from __future__ import annotations

import json
import math
import os
import pwd
import resource
import shutil
import signal
import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from stoker.act.stop import NothingToStopError, stop_build
from stoker.act.tree import descendants
from stoker.contract.reserved_file import write_reserved
from stoker.contract.spec_file import BuildSpec
from stoker.launch import start as start_module
from stoker.launch.refusals import LaunchError
from stoker.launch.request import BuildRequest
from stoker.launch.start import launch
from stoker.supervisor import program as program_module
from support.program import kill_supervisors, supervisors_in
from support.supervisors import DYING_ENGINE, LATE_ENGINE, Start, alive, exit_of, supervisor_of, until

STEP = {"name": "x", "command": ["x"], "cwd": "/"}

CLEANS_UP = """
import signal, sys, time
def clean(*_):
    time.sleep(1)
    sys.exit(9)
signal.signal(signal.SIGTERM, clean)
print("ready", flush=True)
time.sleep(1000)
"""


@pytest.mark.parametrize(
    ("script", "code", "by_signal"), [("true", 0, None), ("exit 3", 3, None), ("kill -9 $$", 137, 9)]
)
def test_the_exit_status_is_the_builds_own(start: Start, script: str, code: int, by_signal: int | None) -> None:
    ended = exit_of(start("sh", "-c", script))
    assert (ended["exit_code"], ended["signal"], ended["stopped"]) == (code, by_signal, False)


def test_a_command_that_is_missing_ends_with_127_and_says_so_in_the_log(start: Start) -> None:
    paths = start("/nonexistent/tool")
    assert exit_of(paths)["exit_code"] == 127
    assert b"/nonexistent/tool: No such file" in paths.output.read_bytes()


def test_a_file_that_cannot_be_executed_ends_with_126(start: Start, tmp_path: Path) -> None:
    (tmp_path / "data.txt").write_text("no program")
    assert exit_of(start(str(tmp_path / "data.txt")))["exit_code"] == 126


def test_the_log_keeps_every_byte_of_both_streams(start: Start) -> None:
    paths = start("sh", "-c", r"printf 'a\000\033[2J\377'; printf 'err\n' >&2")
    exit_of(paths)
    assert paths.output.read_bytes() == b"a\x00\x1b[2J\xfferr\n"
    assert paths.output.stat().st_mode & 0o777 == 0o600


def test_the_build_inherits_no_ignored_or_blocked_signal(start: Start) -> None:
    paths = start("grep", "-E", "^Sig(Ign|Blk)", "/proc/self/status")
    exit_of(paths)
    assert [line.split()[1] for line in paths.output.read_text().splitlines()] == ["0" * 16, "0" * 16]


def test_a_starter_that_ignores_its_childrens_ends_changes_nothing(start: Start) -> None:
    """As some daemons do; execve(2) keeps what is ignored, and then a child's status is never told."""
    before = signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    try:
        paths = start("sh", "-c", "sh -c 'exit 3'; exit $?")
    finally:
        signal.signal(signal.SIGCHLD, before)
    assert exit_of(paths)["exit_code"] == 3


def test_a_hangup_touches_nothing(start: Start, tmp_path: Path) -> None:
    paths = start("sh", "-c", "until [ -e go ]; do sleep 0.05; done; exit 5")
    os.kill(supervisor_of(paths)["supervisor_pid"], signal.SIGHUP)
    (tmp_path / "go").touch()
    assert exit_of(paths)["exit_code"] == 5


def test_a_stop_ends_the_whole_tree_orphans_too(start: Start) -> None:
    paths = start("sh", "-c", "(setsid sleep 1000 &) ; sleep 1000 & echo started; wait")
    supervisor = supervisor_of(paths)["supervisor_pid"]
    until(lambda: paths.output.exists() and b"started" in paths.output.read_bytes())
    engine = int(until(lambda: (paths.root / "engines").exists() and (paths.root / "engines").read_text()))
    tree = until(lambda: len(pids := descendants(supervisor, engine)) == 3 and pids)
    stop_build(paths, force=False)
    assert exit_of(paths)["stopped"] is True
    until(lambda: not any(map(alive, tree)))


def test_asking_twice_to_stop_leaves_the_grace_time_alone(start: Start) -> None:
    paths = start(sys.executable, "-c", CLEANS_UP)
    until(lambda: paths.output.exists() and b"ready" in paths.output.read_bytes())
    stop_build(paths, force=False)
    time.sleep(0.3)
    stop_build(paths, force=False)
    assert exit_of(paths)["exit_code"] == 9


def test_a_process_that_ignores_sigterm_is_killed_at_once_by_force(start: Start) -> None:
    paths = start("sh", "-c", "trap '' TERM; echo ready; while :; do sleep 0.1; done")
    until(lambda: paths.output.exists() and b"ready" in paths.output.read_bytes())
    stop_build(paths, force=True)
    ended = exit_of(paths)
    assert (ended["signal"], ended["stopped"]) == (9, True)


def test_stopped_processes_are_ended_too(start: Start) -> None:
    paths = start("sh", "-c", "kill -STOP $$; sleep 1000")
    pid = supervisor_of(paths)["build_pid"]
    until(lambda: Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0] == b"T")
    stop_build(paths, force=False)
    assert exit_of(paths)["stopped"] is True


def test_a_compiler_caches_server_is_not_ended_with_the_build_and_does_not_hold_it_up(
    start: Start, tmp_path: Path
) -> None:
    """In its place a cat by its name, which waits for words, put into the background; and a client, which is ended."""
    cat = shutil.which("cat")
    assert cat is not None
    shutil.copy(cat, tmp_path / "sccache")
    os.mkfifo(tmp_path / "words")
    words = os.open(tmp_path / "words", os.O_RDWR)  # or opening it would wait
    with os.fdopen(words, "rb", buffering=0):
        background = "(setsid ./sccache < words & echo $! > server); (./sccache - < words & echo $! > client); "
        paths = start("sh", "-c", background + "sleep 1000")
        server, client = tmp_path / "server", tmp_path / "client"
        until(lambda: all(file.exists() and file.read_text() for file in (server, client)))
        pids = [int(file.read_text()) for file in (server, client)]
        try:
            until(lambda: all(Path(f"/proc/{pid}/comm").read_text() == "sccache\n" for pid in pids))
            stop_build(paths, force=False)
            assert exit_of(paths)["stopped"] is True
            assert [alive(pid) for pid in pids] == [True, False]
        finally:
            os.kill(pids[0], signal.SIGKILL)


def test_a_killed_engine_comes_back_and_the_build_does_not_notice(start: Start) -> None:
    paths = start("sh", "-c", "sleep 1; exit 7")
    engines = paths.root / "engines"
    first = int(until(lambda: engines.exists() and engines.read_text()))
    os.kill(first, signal.SIGKILL)
    until(lambda: len(engines.read_text().split()) == 2)
    assert exit_of(paths)["exit_code"] == 7


def test_an_engine_that_cannot_come_back_leaves_nothing_frozen(start: Start) -> None:
    script = "sh -c 'kill -STOP $$; exit 0' & child=$!; sleep 0.1; touch frozen; wait $child"
    paths = start("sh", "-c", script, engine="import time; time.sleep(0.5);" + DYING_ENGINE)
    assert exit_of(paths)["exit_code"] == 0
    # Seven in the minute, and one more for the end of the journal.
    until(lambda: len((paths.root / "engines").read_text().split()) == 8)


def test_an_engine_that_was_given_up_gets_to_finish_the_journal(start: Start, tmp_path: Path) -> None:
    paths = start("sh", "-c", "until [ -e go ]; do sleep 0.05; done; exit 6", engine=LATE_ENGINE)
    engines = paths.root / "engines"
    until(lambda: engines.exists() and len(engines.read_text().split()) == 7)
    (tmp_path / "go").touch()
    assert exit_of(paths)["exit_code"] == 6
    until((paths.root / "last-words").exists)


def test_an_engine_that_was_given_up_comes_back_after_a_rest(start: Start, tmp_path: Path) -> None:
    """Seven deaths, a rest, and an eighth engine while the build still runs."""
    paths = start(
        "sh",
        "-c",
        "until [ -e go ]; do sleep 0.05; done",
        engine=LATE_ENGINE,
        figures={"engine_runner.REST_SECONDS": 0.5},
    )
    engines = paths.root / "engines"
    until(lambda: engines.exists() and len(engines.read_text().split()) >= 8)
    assert not paths.exit.exists()
    (tmp_path / "go").touch()
    assert exit_of(paths)["exit_code"] == 0


def test_without_its_supervisor_a_build_can_still_be_stopped(start: Start) -> None:
    paths = start("sh", "-c", "sleep 1000 & echo started; wait")
    until(lambda: paths.output.exists() and b"started" in paths.output.read_bytes())
    engine = int(until(lambda: (paths.root / "engines").exists() and (paths.root / "engines").read_text()))

    def none_is_left() -> bool:
        kill_supervisors(supervisor_of(paths))  # a standby may have come meanwhile
        return not any(alive(pid) for pid in supervisors_in(supervisor_of(paths)))

    until(none_is_left)
    stop_build(paths, force=False)
    until(lambda: not alive(supervisor_of(paths)["build_pid"]))
    os.kill(engine, signal.SIGKILL)
    with pytest.raises(NothingToStopError):
        stop_build(paths, force=False)


def test_a_state_folder_that_cannot_be_written_is_named_before_anything_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "file"))
    with pytest.raises(LaunchError, match="set XDG_STATE_HOME"):
        launch(BuildRequest(BuildSpec("x", str(tmp_path), ("touch", str(tmp_path / "ran")))))
    assert not (tmp_path / "ran").exists()


@pytest.fixture
def scopes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A user manager that starts no scope; the calls to systemd-run."""
    (tmp_path / "run" / "systemd" / "private").mkdir(parents=True)
    tools = tmp_path / "bin"
    tools.mkdir()
    fake = tools / "systemd-run"
    fake.write_text(f'#!/bin/sh\necho "$@" >>{tmp_path}/calls\nexit 1\n')
    fake.chmod(0o755)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path / "run"))
    monkeypatch.setenv("PATH", f"{tools}:{os.environ['PATH']}")
    monkeypatch.setattr(start_module, "LINGER", tmp_path / "linger")
    return tmp_path / "calls"


def test_a_systemd_scope_is_used_where_the_user_lingers_and_given_up_where_it_fails(
    tmp_path: Path, scopes: Path, start: Start
) -> None:
    (tmp_path / "linger").mkdir()
    (tmp_path / "linger" / pwd.getpwuid(os.getuid()).pw_name).touch()
    assert exit_of(start("true"))["exit_code"] == 0
    assert "--user --scope" in scopes.read_text()


def test_no_scope_is_used_that_the_last_logout_would_end(scopes: Path, start: Start) -> None:
    assert exit_of(start("true"))["exit_code"] == 0
    assert not scopes.exists()


def test_a_supervisor_that_does_not_get_going_leaves_no_build_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    fake = tmp_path / "supervisor.py"
    fake.write_text(
        f"import os; os.fork() or os.setpgid(0, 0); open('{tmp_path}/' + str(os.getpid()), 'w')\nwhile 1: pass"
    )
    monkeypatch.setattr(program_module, "SUPERVISOR", fake)

    def pids() -> list[int]:
        return [int(p.name) for p in tmp_path.iterdir() if p.name.isdigit()]

    patience = SimpleNamespace(**{**vars(time), "monotonic": lambda: math.inf if len(pids()) == 2 else 0.0})
    monkeypatch.setattr(start_module, "time", patience)  # it is over once both are there
    with pytest.raises(LaunchError, match="supervisor did not start"):
        launch(BuildRequest(BuildSpec("x", str(tmp_path), ("true",))))
    assert len(pids()) == 2
    until(lambda: not any(map(alive, pids())))


def test_what_is_to_run_and_how_it_ended_is_for_the_owner_alone(start: Start) -> None:
    paths = start("true")
    exit_of(paths)
    assert {f.stat().st_mode & 0o777 for f in (paths.spec, paths.exit, paths.supervisor)} == {0o600}
    assert not paths.exit.with_name("exit.json.new").exists()  # it is written once: room for the next is not needed


def test_a_disk_that_takes_only_a_part_of_a_file_leaves_the_one_that_was_there(tmp_path: Path) -> None:
    """In its place a limit of a file's size, at which a write is short and the next one fails."""
    path = str(tmp_path / "supervisor.json")
    write_reserved(path, b'{"step": 1}')
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (40, hard))
        with pytest.raises(OSError, match="too large"):
            write_reserved(path, b'{"past": "%s"}' % (b"x" * 100))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert json.loads((tmp_path / "supervisor.json").read_bytes()) == {"step": 1}
