"""Which builds there are, which live, how each ended: from files and real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NoReturn

import pytest

from stoker.config.paths import BuildPaths, builds_dir
from stoker.config.regular import open_regular
from stoker.engine.aftermath.ending import ending_of
from stoker.model import events as ev
from stoker.record import builds as builds_module
from stoker.record.builds import (
    LOST_REASON,
    NoSuchBuildError,
    builds_with_estimates,
    final_state,
    is_live,
    list_builds,
    prune_builds,
    resolve,
)
from stoker.record.folders import unended_builds
from stoker.record.journal_writer import JournalWriter

T0 = 1_700_000_000.0

MakeBuild = Callable[..., BuildPaths]


@pytest.fixture(autouse=True)
def private_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))


@pytest.fixture
def supervisor() -> Iterator[subprocess.Popen[bytes]]:
    """A process that stands for a supervisor."""
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(600)"]) as process:
        yield process
        process.kill()


def start_ticks(pid: int) -> int:
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[19])


def supervisor_json(pid: int, start: int) -> dict[str, Any]:
    return {"supervisor_pid": pid, "supervisor_start": start, "build_pid": 2**22 + 1, "build_start": 1, "started": T0}


DEAD = supervisor_json(2**22 + 1, 1)


def make_build(
    build_id: str,
    *,
    name: str = "torch",
    age: float = 0.0,
    events: tuple[ev.Event, ...] = (),
    supervisor: dict[str, Any] | None = None,
    ended: dict[str, Any] | None = None,
    cwd: str = "/src",
) -> BuildPaths:
    paths = BuildPaths(builds_dir() / build_id)
    paths.root.mkdir(parents=True)
    started = T0 - age
    paths.spec.write_text(json.dumps({"name": name, "command": ["ninja"], "cwd": cwd, "created": started}))
    journal = JournalWriter(paths.journal)
    begin = ev.BuildStarted(build_id, name, ("ninja",), cwd, str(paths.output), "host", 8, 2**34, "0.1.0")
    for n, event in enumerate((begin, *events)):
        journal.append(event, started + n)
    journal.close()
    paths.supervisor.write_text(json.dumps(supervisor or DEAD))
    if ended is not None:
        paths.exit.write_text(json.dumps(ended))
    return paths


DONE = ev.BuildEnded("done", 0, "")


def live(process: subprocess.Popen[bytes]) -> dict[str, Any]:
    return supervisor_json(process.pid, start_ticks(process.pid))


def test_no_builds_at_all() -> None:
    assert list_builds() == []
    with pytest.raises(NoSuchBuildError, match="there is no build yet"):
        resolve(None)


def test_the_list_is_newest_first_and_says_how_each_ended(supervisor: subprocess.Popen[bytes]) -> None:
    make_build("old-1", age=300, events=(ev.StepStarted(1, 1, "b", (), 1), DONE))
    make_build("bad-2", age=200, events=(ev.BuildEnded("failed", 2, "x.o"),))
    make_build("now-3", age=100, events=(ev.StepStarted(1, 1, "b", (), 1),), supervisor=live(supervisor))
    make_build("new-4", supervisor=live(supervisor))
    rows = [(b.id, b.phase, b.exit_code, b.live) for b in list_builds()]
    assert rows == [
        ("new-4", "starting", None, True),
        ("now-3", "running", None, True),
        ("bad-2", "failed", 2, False),
        ("old-1", "done", 0, False),
    ]
    old = list_builds()[-1]
    assert (old.started, old.ended, old.name, old.command) == (T0 - 300, T0 - 298, "torch", ("ninja",))


def test_a_build_that_is_being_stopped_says_so(supervisor: subprocess.Popen[bytes]) -> None:
    events = (ev.StepStarted(1, 1, "b", (), 1), ev.StopRequested("ada", force=False))
    make_build("b-1", events=events, supervisor=live(supervisor))
    assert list_builds()[0].phase == "stopping"


def test_a_supervisor_with_the_same_pid_but_another_birth_is_another_process(
    supervisor: subprocess.Popen[bytes],
) -> None:
    paths = make_build("b-1", supervisor=supervisor_json(supervisor.pid, start_ticks(supervisor.pid) - 1))
    assert not is_live(paths)
    state = final_state(paths)
    assert (state.outcome, state.exit_code, state.reason) == ("failed", None, LOST_REASON)


def test_the_build_alone_keeps_it_live(supervisor: subprocess.Popen[bytes]) -> None:
    alone = {**DEAD, "build_pid": supervisor.pid, "build_start": start_ticks(supervisor.pid)}
    paths = make_build("b-1", supervisor=alone)
    assert is_live(paths)
    assert not final_state(paths).over


def test_a_zombie_is_no_supervisor(supervisor: subprocess.Popen[bytes]) -> None:
    paths = make_build("b-1", supervisor=live(supervisor))
    assert is_live(paths)
    supervisor.kill()
    os.waitid(os.P_PID, supervisor.pid, os.WEXITED | os.WNOWAIT)
    assert not is_live(paths)


@pytest.mark.parametrize(
    ("ended", "outcome", "reason"),
    [
        ({"exit_code": 0, "signal": None, "ended": T0 + 60, "stopped": False}, "done", ""),
        ({"exit_code": 3, "signal": None, "ended": T0 + 60, "stopped": False}, "failed", "exit status 3"),
        ({"exit_code": 137, "signal": 9, "ended": T0 + 60, "stopped": False}, "failed", "killed by SIGKILL"),
        ({"exit_code": 143, "signal": 15, "ended": T0 + 60, "stopped": True}, "stopped", "stopped by a person"),
        ({"exit_code": 0, "signal": None, "ended": T0 + 60, "stopped": True}, "stopped", "stopped by a person"),
    ],
)
def test_an_end_that_no_engine_wrote_comes_from_the_supervisor(
    ended: dict[str, Any], outcome: str, reason: str
) -> None:
    paths = make_build("b-1", ended=ended)
    state = final_state(paths)
    assert (state.outcome, state.exit_code, state.reason) == (outcome, ended["exit_code"], reason)
    assert state.ended == T0 + 60
    told = ending_of(paths, state)
    assert (told.outcome, told.exit_code) == (state.outcome, state.exit_code), "as an engine would have written it"
    row = list_builds()[0]
    assert (row.phase, row.exit_code, row.ended, row.live) == (outcome, ended["exit_code"], T0 + 60, False)


def test_the_journals_own_end_wins_over_the_supervisors() -> None:
    ended = {"exit_code": 1, "signal": None, "ended": T0 + 60, "stopped": False}
    paths = make_build("b-1", events=(ev.BuildEnded("failed", 1, "2 jobs failed"),), ended=ended)
    assert final_state(paths).reason == "2 jobs failed"


@pytest.mark.parametrize("content", ["", "{", "[]", '{"exit_code": "0"}', "\x00" * 100])
def test_a_damaged_exit_file_is_a_lost_status(content: str) -> None:
    paths = make_build("b-1")
    paths.exit.write_text(content)
    assert final_state(paths).reason == LOST_REASON


def test_a_build_whose_engine_never_came_up_still_has_a_name_and_an_end() -> None:
    ended = {"exit_code": 127, "signal": None, "ended": T0 + 1, "stopped": False}
    paths = make_build("b-1", ended=ended)
    paths.journal.unlink()
    state = final_state(paths)
    assert (state.id, state.name, state.command, state.exit_code) == ("b-1", "torch", ("ninja",), 127)
    assert list_builds()[0].exit_code == 127


def test_a_folder_without_a_supervisor_is_a_build_about_to_start_for_a_while_only() -> None:
    paths = make_build("b-1")
    paths.supervisor.unlink()
    assert is_live(paths)
    os.utime(paths.root, (0, time.time() - 3600))
    assert not is_live(paths)


def test_found_by_id_name_and_beginning() -> None:
    make_build("torch-1101-aa", age=10, events=(DONE,))
    make_build("torch-1102-bb", age=5, events=(DONE,))
    make_build("llvm-1103-cc", name="llvm", events=(DONE,))
    assert resolve("torch-1101-aa").id == "torch-1101-aa"
    assert resolve("torch-1102").id == "torch-1102-bb"
    assert resolve("torch").id == "torch-1102-bb", "by name the newest"
    assert resolve("ll").id == "llvm-1103-cc"
    assert resolve(None).id == "llvm-1103-cc", "nothing lives: the newest"
    with pytest.raises(NoSuchBuildError, match=r"several builds; name one of torch-1102-bb \(.*\), torch-1101-aa "):
        resolve("tor")
    with pytest.raises(NoSuchBuildError, match=r"no build 'x'; 'stoker ls' shows them"):
        resolve("x")
    with pytest.raises(NoSuchBuildError, match="no build is running"):
        resolve(None, live_only=True)
    with pytest.raises(NoSuchBuildError, match="build llvm-1103-cc is over"):
        resolve("llvm", live_only=True)


def test_the_one_that_lives_is_meant(supervisor: subprocess.Popen[bytes]) -> None:
    make_build("torch-1", age=10, supervisor=live(supervisor))
    make_build("torch-2", events=(DONE,))
    assert resolve(None).id == resolve("torch").id == resolve("to", live_only=True).id == "torch-1"
    make_build("torch-3", age=5, supervisor=live(supervisor))
    with pytest.raises(
        NoSuchBuildError, match=r"several builds live; name one of torch-3 \(ninja in /src\), torch-1 \("
    ):
        resolve(None)


def test_a_build_is_meant_by_the_end_of_its_id_too() -> None:
    make_build("torch-1101-0930-4f1a", age=10, events=(DONE,))
    make_build("torch-1101-0931-77bc", events=(DONE,))
    assert resolve("4f1a").id == "torch-1101-0930-4f1a"


def test_without_a_word_the_working_folders_build_is_meant(
    supervisor: subprocess.Popen[bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "here").mkdir()
    monkeypatch.chdir(tmp_path / "here")
    make_build("mine-1", age=10, events=(DONE,), cwd=str(tmp_path / "here"))
    make_build("other-2", events=(DONE,))
    assert resolve(None).id == "mine-1"
    make_build("live-3", supervisor=live(supervisor))
    assert resolve(None).id == "live-3", "what lives goes before what is over"
    make_build("live-4", age=5, supervisor=live(supervisor), cwd=str(tmp_path / "here"))
    assert resolve(None).id == resolve(None, live_only=True).id == "live-4"


def test_a_pause_is_told_however_long_ago_it_was(supervisor: subprocess.Popen[bytes]) -> None:
    quiet = tuple(ev.Noticed("info", "x" * 1000) for _ in range(100))
    paused = ev.LevelSet("auto", 4, "hard")
    make_build("b-1", events=(ev.StepStarted(1, 1, "b", (), 1), paused, *quiet), supervisor=live(supervisor))
    make_build("b-2", age=5, events=(ev.StepStarted(1, 1, "b", (), 1), paused, DONE))
    assert [(b.id, b.phase) for b in builds_with_estimates()] == [("b-1", "frozen"), ("b-2", "done")]


def test_while_a_job_is_frozen_by_hand_no_time_left_is_listed(supervisor: subprocess.Popen[bytes]) -> None:
    ninja = ev.SchedulerStarted(1, "ninja", 101, "/src", "1.13", 4)
    jobs = [ev.JobStarted(n, 1, 100 + n, f"{n}.o", "cxx", 1.0) for n in (1, 2)]
    step, left = ev.StepStarted(1, 1, "b", (), 1), ev.Estimated(1e9, 1e9, 1e9)
    running: tuple[ev.Event, ...] = (step, ninja, *jobs, left)
    make_build("b-1", events=running, supervisor=live(supervisor))
    make_build("b-2", events=(*running, ev.JobMoved(1, "frozen", None, "person")), supervisor=live(supervisor))
    assert {b.id: b.left is not None for b in builds_with_estimates()} == {"b-1": True, "b-2": False}


def test_a_live_build_has_the_share_of_its_jobs_that_are_done(supervisor: subprocess.Popen[bytes]) -> None:
    make = ev.SchedulerStarted(1, "make", 101, "/src", "4.3", 4)
    planned = ev.SchedulerPlanned(1, None, "percent", percent=45.0)
    make_build("b-1", events=(ev.StepStarted(1, 1, "b", (), 1), make, planned), supervisor=live(supervisor))
    make_build("b-2", age=5, events=(DONE,))
    assert [b.share for b in builds_with_estimates()] == [0.45, None]


@pytest.mark.parametrize("word", ["..", "../builds", ".", "/etc", "a/b", "", "\x1b[2J", "b-1/../b-1", "*"])
def test_no_word_leads_out_of_the_folder(word: str) -> None:
    make_build("b-1", events=(DONE,))
    (builds_dir().parent / "journal.jsonl").write_text("x")
    with pytest.raises(NoSuchBuildError) as caught:
        resolve(word)
    assert str(caught.value).isprintable()


def test_links_and_foreign_files_are_no_builds(tmp_path: Path) -> None:
    make_build("b-1", events=(DONE,))
    outside = tmp_path / "outside"
    outside.mkdir()
    (builds_dir() / "link-1").symlink_to(outside)
    (builds_dir() / ".hidden").mkdir()
    (builds_dir() / "note.txt").write_text("x")
    (builds_dir() / "evil\nname").mkdir()
    assert [b.id for b in list_builds()] == ["b-1"]


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder of another user takes root")
def test_a_build_of_another_user_is_none_of_ours(supervisor: subprocess.Popen[bytes]) -> None:
    theirs = make_build("theirs-1", supervisor=live(supervisor))
    make_build("ours-1", events=(DONE,))
    os.chown(theirs.root, 12345, 12345)
    assert [b.id for b in list_builds()] == ["ours-1"]
    with pytest.raises(NoSuchBuildError, match="no build 'theirs-1'"):
        resolve("theirs-1")
    os.chown(builds_dir(), 12345, 12345)
    with pytest.raises(NoSuchBuildError, match="belong to another user"):
        resolve("theirs-1")


@pytest.mark.parametrize("number", ["1" * 401, "-" + "1" * 401, "1e308", "1e999"])
def test_a_number_out_of_range_costs_itself_and_no_other_build(number: str) -> None:
    paths = make_build("odd-1", ended={})
    paths.exit.write_text(f'{{"exit_code":{number},"signal":{number},"ended":{number},"stopped":false}}')
    paths.spec.write_text(f'{{"name":"odd","created":{number}}}')
    bare = make_build("bare-1", ended={})
    bare.journal.unlink()
    bare.spec.write_text(f'{{"name":"bare","created":{number}}}')
    bare.exit.write_text(f'{{"exit_code":1,"signal":{number},"ended":5.0,"stopped":false}}')
    make_build("good-1", events=(DONE,))
    assert {b.id: b.phase for b in list_builds()} == {"odd-1": "failed", "bare-1": "failed", "good-1": "done"}
    assert final_state(paths).reason == LOST_REASON
    assert final_state(bare).reason == LOST_REASON


def as_fifo(path: Path) -> None:
    os.mkfifo(path)


def as_link_to_a_device(path: Path) -> None:
    path.symlink_to("/dev/zero")


def as_folder(path: Path) -> None:
    path.mkdir()


@pytest.mark.parametrize("make", [as_fifo, as_link_to_a_device, as_folder])
@pytest.mark.parametrize("name", ["journal.jsonl", "supervisor.json", "exit.json", "spec.json", "journal.checkpoint"])
def test_what_is_no_regular_file_is_waited_for_by_nobody(make: Callable[[Path], None], name: str) -> None:
    paths = make_build("odd-1")
    (paths.root / name).unlink(missing_ok=True)
    make(paths.root / name)
    make_build("good-1", events=(DONE,))
    assert {b.id for b in list_builds()} == {"odd-1", "good-1"}
    if name == "journal.jsonl":
        with pytest.raises(OSError, match="not a regular file"):
            final_state(paths)
    else:
        assert final_state(paths).id == "odd-1"


def test_what_is_looked_at_before_each_build_reads_no_journal(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hundreds of builds are kept, and to glance at the journals of all would take longer than to start the program."""
    make_build("done-1", events=(DONE,), ended={"exit_code": 0, "ended": T0})
    make_build("lost-1")

    def read(path: Path) -> NoReturn:
        raise AssertionError(f"{path} was read")

    monkeypatch.setattr(builds_module, "open_regular", read)
    assert [paths.id for paths in unended_builds()] == ["lost-1"]
    assert prune_builds(max_builds=2) == []


def test_pruning_deletes_the_oldest_ended_builds_only(supervisor: subprocess.Popen[bytes], tmp_path: Path) -> None:
    precious = tmp_path / "precious"
    precious.mkdir()
    (precious / "file").write_text("x")
    make_build("oldest-live", age=900, supervisor=live(supervisor))
    old = make_build("old-1", age=800, events=(DONE,))
    (old.root / "link").symlink_to(precious)
    make_build("old-2", age=700)
    make_build("new-3", age=10, events=(DONE,))
    make_build("new-4", age=5, events=(DONE,))
    assert prune_builds(max_builds=3) == ["old-1", "old-2"]
    assert [b.id for b in list_builds()] == ["new-4", "new-3", "oldest-live"]
    assert (precious / "file").exists()
    assert prune_builds(max_builds=0) == ["new-3", "new-4"]
    assert [b.id for b in list_builds()] == ["oldest-live"]


def test_hundreds_of_builds_are_listed_from_their_heads_and_tails(monkeypatch: pytest.MonkeyPatch) -> None:
    sample = ev.Noticed("info", "x" * 1000)
    for n in range(20):
        make_build(f"b-{n}", age=n, events=(*[sample] * 300, DONE))
    read = 0

    def counting_open(path: Path) -> Any:
        file = open_regular(path)
        real_read = file.read

        class Counting:
            def __enter__(self) -> Any:
                return self

            def __exit__(self, *_: object) -> None:
                file.close()

            def __getattr__(self, name: str) -> Any:
                return getattr(file, name)

            def read(self, size: int) -> bytes:
                nonlocal read
                data: bytes = real_read(size)
                read += len(data)
                return data

        return Counting()

    monkeypatch.setattr(builds_module, "open_regular", counting_open)
    builds = list_builds()
    assert [b.phase for b in builds] == ["done"] * 20
    assert 0 < read < 20 * 100_000 < 20 * 300_000
