"""A supervisor that was killed: somebody still restarts the engine, and nothing stays stopped."""

from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn

import pytest

from stoker.act.stop import NothingToStopError, stop_build
from stoker.act.tree import signal_tree
from stoker.act.watchdog_call import watchdogs_and_engines_of
from stoker.config.paths import BuildPaths
from stoker.contract.process import start_ticks
from stoker.launch import repair
from stoker.supervisor.program import SUPERVISOR
from support.program import kill_supervisors
from support.supervisors import (
    GOVERNOR,
    Start,
    alive,
    engines_of,
    finish,
    given_up,
    job,
    job_pid,
    ninja,
    state_of,
    stopped,
    supervisor_of,
    until,
    watchdogs_of,
)

STARTS_WATCHDOG = (
    GOVERNOR
    + f"sys.path.append({str(SUPERVISOR.parents[2])!r})"
    + """
import contextlib
from pathlib import Path
from stoker.act.watchdog_call import WatchdogCall
from stoker.contract.process import start_ticks
from stoker.config.paths import BuildPaths
if first:
    ready()
    pids = jobs(2)
    stop(pids[1])
    gate(1, [supervisor("build_pid")], [pids[1]], pids)
while start_ticks(supervisor("supervisor_pid")):
    time.sleep(0.01)
call = WatchdogCall(BuildPaths(Path(folder)))
while start_ticks(supervisor("build_pid")):
    with contextlib.suppress(OSError):
        call.renew()
    note("watchdogs", call._watchdog[0])
    if os.path.exists(folder + "/dying"):
        sys.exit(1)
    time.sleep(0.05)
note("last-words", "")
"""
)
"""An engine that has a job stopped, and calls for a watchdog again and again once its supervisor is gone."""

Orphan = Callable[..., BuildPaths]


@pytest.fixture
def orphan(start: Start, tmp_path: Path) -> Orphan:
    """A ninja of two jobs, the second stopped, whose supervisor was killed and which has a watchdog."""

    def make() -> BuildPaths:
        paths = start(*ninja(tmp_path, 2), engine=STARTS_WATCHDOG)
        until((paths.root / "gate.json").exists)
        kill_supervisors(supervisor_of(paths))
        until(lambda: watchdogs_of(paths))
        return paths

    return make


def test_an_engine_that_is_killed_comes_back_without_a_supervisor(orphan: Orphan, tmp_path: Path) -> None:
    paths = orphan()
    os.kill(engines_of(paths)[0], signal.SIGKILL)
    until(lambda: len(engines_of(paths)) == 2)
    os.kill(engines_of(paths)[1], signal.SIGKILL)
    until(lambda: len(engines_of(paths)) == 3)
    assert alive(supervisor_of(paths)["build_pid"])
    assert stopped(tmp_path, [0, 1]) == [1]
    assert len(watchdogs_of(paths)) == 1


def test_an_engine_that_is_stopped_is_set_going_by_the_death_of_its_supervisor(start: Start, tmp_path: Path) -> None:
    """With both away nobody would let the second job go."""
    paths = start(*ninja(tmp_path, 2), engine=STARTS_WATCHDOG)
    until((paths.root / "gate.json").exists)
    engine = engines_of(paths)[0]
    os.kill(engine, signal.SIGSTOP)
    until(lambda: state_of(engine) == "T")
    kill_supervisors(supervisor_of(paths))
    until(lambda: watchdogs_of(paths))
    assert engines_of(paths) == [engine]
    assert stopped(tmp_path, [0, 1]) == [1]


def test_an_engine_that_rests_begins_when_its_supervisor_dies(start: Start, tmp_path: Path) -> None:
    waits = 'while start_ticks(supervisor("supervisor_pid")):'
    engine = STARTS_WATCHDOG.replace(waits, f'if start_ticks(supervisor("supervisor_pid")): sys.exit(1)\n{waits}')
    paths = start(*ninja(tmp_path, 2), engine=engine)
    until(lambda: given_up(paths))
    assert stopped(tmp_path, [0, 1]) == [1]
    kill_supervisors(supervisor_of(paths))
    until(lambda: watchdogs_of(paths))
    assert len(engines_of(paths)) == 8


def test_an_engine_that_is_born_to_rest_as_its_supervisor_dies_does_not_rest(start: Start, tmp_path: Path) -> None:
    """It asks the kernel to be told of that death when it is too late for it."""
    waits, late = 'while start_ticks(supervisor("supervisor_pid")):', tmp_path / "late"
    engine = STARTS_WATCHDOG.replace(waits, f'if start_ticks(supervisor("supervisor_pid")): sys.exit(1)\n{waits}')
    figures = {
        "engine_runner.REST_SECONDS": 6000.0,
        "wait": f"lambda: [engine_runner.time.sleep(0.01) for _ in iter(lambda: os.path.exists({str(late)!r}), True)]",
        "become": "engine_runner.EngineRunner._become_engine",
        "engine_runner.EngineRunner._become_engine": "lambda self, rest, *a: (rest and wait(), become(self, rest, *a))",
    }
    paths = start(*ninja(tmp_path, 2), engine=engine, figures=figures)
    until(lambda: given_up(paths))
    supervisor = supervisor_of(paths)["supervisor_pid"]
    kill_supervisors(supervisor_of(paths))
    until(lambda: not alive(supervisor))
    late.touch()
    until(lambda: watchdogs_of(paths))


def test_the_watchdog_ends_with_the_build_and_nothing_of_it_stays(orphan: Orphan, tmp_path: Path) -> None:
    paths = orphan()
    os.killpg(job_pid(tmp_path, 1), signal.SIGCONT)
    for n in (0, 1):
        finish(tmp_path, n)
    until(lambda: not alive(supervisor_of(paths)["build_pid"]))
    until((paths.root / "last-words").exists)
    until(lambda: not any(map(alive, {*watchdogs_of(paths), *engines_of(paths)})))


def test_an_engine_that_is_calling_for_a_watchdog_gets_one_only(orphan: Orphan) -> None:
    paths = orphan()
    lines = (paths.root / "watchdogs").stat().st_size
    until(lambda: (paths.root / "watchdogs").stat().st_size > 3 * lines)
    assert len(watchdogs_of(paths)) == 1


def test_an_engine_that_a_watchdog_has_started_knows_it_and_calls_for_another_when_it_dies(orphan: Orphan) -> None:
    paths = orphan()
    os.kill(engines_of(paths)[0], signal.SIGKILL)
    until(lambda: len(engines_of(paths)) == 2)
    lines = (paths.root / "watchdogs").stat().st_size
    until(lambda: (paths.root / "watchdogs").stat().st_size > lines + 40)
    (watchdog,) = watchdogs_of(paths)
    os.kill(watchdog, signal.SIGKILL)
    until(lambda: len(watchdogs_of(paths)) == 2)


def test_a_watchdog_that_is_killed_is_replaced(orphan: Orphan) -> None:
    paths = orphan()
    first = min(watchdogs_of(paths))
    os.kill(first, signal.SIGKILL)
    until(lambda: len(watchdogs_of(paths)) == 2)
    assert start_ticks(max(watchdogs_of(paths) - {first}))


@pytest.mark.long
def test_an_engine_that_cannot_come_back_leaves_the_level_to_the_watchdog(orphan: Orphan, tmp_path: Path) -> None:
    paths = orphan()
    (paths.root / "dying").touch()
    until(lambda: len(engines_of(paths)) == 7 and not any(map(alive, engines_of(paths))))
    assert stopped(tmp_path, [0, 1]) == [1]
    finish(tmp_path, 0)
    finish(tmp_path, 1)
    until(lambda: not alive(supervisor_of(paths)["build_pid"]))


def test_a_build_without_its_supervisor_but_with_a_watchdog_can_be_stopped(orphan: Orphan, tmp_path: Path) -> None:
    paths = orphan()
    stop_build(paths, force=False)
    until(lambda: not alive(supervisor_of(paths)["build_pid"]))
    until(lambda: not any(map(alive, [job_pid(tmp_path, 0), job_pid(tmp_path, 1), *watchdogs_of(paths)])))
    with pytest.raises(NothingToStopError):
        stop_build(paths, force=False)


def test_jobs_that_outlive_the_build_are_not_left_stopped(orphan: Orphan, tmp_path: Path) -> None:
    paths = orphan()
    os.kill(supervisor_of(paths)["build_pid"], signal.SIGKILL)
    until(lambda: stopped(tmp_path, [0, 1]) == [])
    until(lambda: not any(map(alive, watchdogs_of(paths))))
    finish(tmp_path, 0)  # the kernel has hung up on the other, which was stopped and lost its last tie to its session


def test_a_make_with_stopped_jobs_does_not_die_with_its_supervisor(start: Start, tmp_path: Path) -> None:
    """The kernel hangs up on a process group that loses its last tie to its session while some of it is stopped."""
    rules = "".join(f"{n}.ran:\n\t{job(n).replace('$', '$$')}\n" for n in range(2))
    (tmp_path / "Makefile").write_text(f"all: 0.ran 1.ran\n{rules}")
    paths = start("make", "-j2", engine=STARTS_WATCHDOG)
    until((paths.root / "gate.json").exists)
    kill_supervisors(supervisor_of(paths))
    until(lambda: watchdogs_of(paths))
    assert stopped(tmp_path, [0, 1]) == [1]
    os.kill(job_pid(tmp_path, 1), signal.SIGCONT)
    for n in (0, 1):
        finish(tmp_path, n)
    until(lambda: not alive(supervisor_of(paths)["build_pid"]))


def test_supervisor_and_watchdog_start_from_the_standard_library_alone() -> None:
    """Isolated, without site-packages, and without the folder of the script on the path, as they are started."""
    script = (
        f"import sys; sys.argv = ['x']; sys.path.append({str(SUPERVISOR.parents[2])!r}); before = set(sys.modules)\n"
        "import stoker.supervisor.supervisor\n"
        "names = {n.partition('.')[0] for n in set(sys.modules) - before} - sys.stdlib_module_names\n"
        "import json; print(json.dumps([sorted(names), sorted(n for n in sys.modules if n.startswith('stoker.'))]))"
    )
    done = subprocess.run([sys.executable, "-I", "-S", "-c", script], capture_output=True, check=True)
    assert json.loads(done.stdout) == [
        ["stoker"],
        [
            "stoker.act",
            "stoker.act.held",
            "stoker.act.notify_hook",
            "stoker.act.ramdisk",
            "stoker.act.stop_container",
            "stoker.act.tree",
            "stoker.contract",
            "stoker.contract.container_words",
            "stoker.contract.gate_file",
            "stoker.contract.process",
            "stoker.contract.reserved_file",
            "stoker.contract.retry_files",
            "stoker.contract.spec_file",
            "stoker.contract.strict_json",
            "stoker.contract.supervisor_files",
            "stoker.supervisor",
            "stoker.supervisor.command",
            "stoker.supervisor.engine_runner",
            "stoker.supervisor.standby",
            "stoker.supervisor.supervisor",
            "stoker.supervisor.watchdog",
        ],
    ]


def test_a_build_that_ends_while_no_watchdog_can_be_had_for_it_needs_none(
    start: Start, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = start("sleep", "100")
    until(lambda: engines_of(paths))
    kill_supervisors(supervisor_of(paths))
    signal_tree(engines_of(paths), signal.SIGKILL)
    until(lambda: not watchdogs_and_engines_of(paths))

    def ends(paths: BuildPaths, _engine: int) -> NoReturn:
        stop_build(paths, force=True)
        until(lambda: not alive(supervisor_of(paths)["build_pid"]))
        raise OSError(errno.EAGAIN, "Resource temporarily unavailable")

    monkeypatch.setattr(repair, "call_watchdog", ends)
    assert repair.repair(paths) == ""
