"""Supervisors with real processes and small scripts in the engine's place."""

from __future__ import annotations

import json
import signal
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import pytest

from stoker.act.tree import Processes, descendants, signal_tree
from stoker.config.paths import BuildPaths
from stoker.contract.process import start_ticks
from stoker.contract.spec_file import BuildSpec, StepSpec
from stoker.launch import start as start_module
from stoker.launch.ccache_log import CacheLog
from stoker.launch.request import BuildRequest
from stoker.launch.start import launch
from stoker.supervisor import program as program_module
from stoker.supervisor.program import SUPERVISOR
from support.program import PYPI_NINJA, supervisors_in, write_ninja

PATIENCE = 60.0
"""Seconds after which a test gives up; nothing here takes more than a few on an idle machine."""

READY = """
import os, signal, sys, time
folder = sys.argv[1]
def note(name, text):
    with open(folder + "/" + name, "a") as file:
        file.write(f"{text}\\n")
def ready():
    if "STOKER_READY_FD" in os.environ:
        os.close(int(os.environ.pop("STOKER_READY_FD")))
note("engines", os.getpid())
"""
"""How every engine here begins: it leaves its pid in `engines`, and can say that it watches."""

IDLE_ENGINE = (
    READY
    + """
ready()
while not os.path.exists(folder + "/exit.json"):
    time.sleep(0.02)
"""
)

DYING_ENGINE = READY + "sys.exit(1)"

LATE_ENGINE = (
    READY
    + """
if not os.path.exists(folder + "/exit.json"):
    sys.exit(1)
note("last-words", "")
"""
)

SHORTER = """
import os, sys
sys.path.append({source!r})
from stoker.supervisor import command, engine_runner, supervisor
{figures}
supervisor.main()
"""

NO_PROCESS = """
fork = os.fork
def fork_where_there_is_room():
    if os.path.exists({file!r}):
        raise BlockingIOError(11, "Resource temporarily unavailable")
    return fork()
os.fork = fork_where_there_is_room
"""
"""No process is to be had for the supervisor while that file is there, as at the limit of a user's processes."""


class Start(Protocol):
    """Start a command under a supervisor whose engine is the given script."""

    def __call__(
        self,
        *command: str,
        engine: str = IDLE_ENGINE,
        figures: Mapping[str, object] | None = None,
        steps: Sequence[StepSpec] = (),
        first: int = 1,
        crowded: Path | None = None,
        notify: str = "",
    ) -> BuildPaths:
        """`figures` are constants of the supervisor's modules to be replaced: "command.READY_SECONDS".

        While the file `crowded` is there, no process is to be had for the supervisor.
        """


class Supervisors:
    """All supervisors of one test; they and what they started are ended after it."""

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        self._patch = monkeypatch
        self._spec_of = start_module._spec_of
        self._started: list[BuildPaths] = []
        monkeypatch.setenv("XDG_STATE_HOME", str(folder / "state"))

    def start(
        self,
        *command: str,
        engine: str = IDLE_ENGINE,
        figures: Mapping[str, object] | None = None,
        steps: Sequence[StepSpec] = (),
        first: int = 1,
        crowded: Path | None = None,
        notify: str = "",
    ) -> BuildPaths:
        def spec_of(request: BuildRequest, log: CacheLog) -> BuildSpec:
            return self._spec_of(request, log)._replace(engine=(sys.executable, "-I", "-S", "-c", engine))

        self._patch.setattr(start_module, "_spec_of", spec_of)
        if figures or crowded:
            program = self._folder / "supervisor.py"
            lines = "\n".join(f"{name} = {value}" for name, value in (figures or {}).items())
            lines += NO_PROCESS.format(file=str(crowded)) if crowded else ""
            program.write_text(SHORTER.format(source=str(SUPERVISOR.parents[2]), figures=lines))
            self._patch.setattr(program_module, "SUPERVISOR", program)
        spec = BuildSpec("test", str(self._folder), command, steps=tuple(steps), first=first, notify=notify)
        paths = launch(BuildRequest(spec))
        self._started.append(paths)
        return paths

    def end(self) -> None:
        for paths in self._started:
            supervisor = supervisor_of(paths)
            build = (
                [supervisor["build_pid"]] if start_ticks(supervisor["build_pid"]) == supervisor["build_start"] else []
            )
            others = {*watchdogs_of(paths), *engines_of(paths)}
            roots = [*supervisors_in(supervisor), *build, *(pid for pid in others if str(paths.root) in words_of(pid))]
            signal_tree([*roots, *(pid for root in roots for pid in descendants(root))], signal.SIGKILL)


def until(condition: Callable[[], Any]) -> Any:
    """Wait for something to become true; the value is returned."""
    deadline = time.monotonic() + PATIENCE
    while time.monotonic() < deadline:
        if value := condition():
            return value
        time.sleep(0.01)
    raise AssertionError("it did not happen")


def state_of(pid: int) -> str:
    """The letter of a process's state, empty when it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0].decode()
    except OSError:
        return ""


def alive(pid: int) -> bool:
    return state_of(pid) not in ("", "Z")


def words_of(pid: int) -> list[str]:
    """The words of a process's command line."""
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes().decode(errors="replace").split("\0")
    except OSError:
        return []


def exit_of(paths: BuildPaths) -> dict[str, Any]:
    until(paths.exit.exists)
    value: dict[str, Any] = json.loads(paths.exit.read_bytes())
    return value


def supervisor_of(paths: BuildPaths) -> dict[str, int]:
    value: dict[str, int] = json.loads(paths.supervisor.read_bytes())
    return value


def engines_of(paths: BuildPaths) -> list[int]:
    """The engines that were started, by their pids."""
    file = paths.root / "engines"
    return [int(word) for word in file.read_text().split()] if file.exists() else []


def watchdogs_of(paths: BuildPaths) -> set[int]:
    """The watchdogs that were ever called, as far as the engines noted it."""
    file = paths.root / "watchdogs"
    return {int(pid) for pid in file.read_text().split()} if file.exists() else set()


GOVERNOR = (
    READY
    + """
import json, zlib
cwd = json.load(open(folder + "/spec.json"))["cwd"]
def key(pid):
    return [pid, int(open(f"/proc/{pid}/stat", "rb").read().rpartition(b")")[2].split()[19])]
def supervisor(name):
    return json.load(open(folder + "/supervisor.json"))[name]
def jobs(count):
    names = [f"{cwd}/{n}.pid" for n in range(count)]
    while not all(os.path.exists(name) for name in names):
        time.sleep(0.01)
    return [int(open(name).read()) for name in names]
def state_and_parent(pid):
    try:
        return open(f"/proc/{pid}/stat", "rb").read().rpartition(b")")[2].split()[:2]
    except OSError:
        return b"X", b"0"
def is_stopped(pid):
    state, _ = state_and_parent(pid)
    of_vfork = (state_and_parent(each) for each in os.listdir("/proc") if state == b"D" and each.isdigit())
    return state == b"T" or any(child == [b"T", str(pid).encode()] for child in of_vfork)
def stop(pid):
    os.killpg(pid, signal.SIGSTOP) if os.getpgid(pid) == pid else os.kill(pid, signal.SIGSTOP)
    while not is_stopped(pid):
        time.sleep(0.001)
def write(name, value):
    with open(folder + "/" + name + ".mine", "w") as file:
        json.dump(value, file)
    os.replace(folder + "/" + name + ".mine", folder + "/" + name)
def gate(level, schedulers=(), stopped=(), jobs=()):
    keys = [[key(pid) for pid in pids] for pids in (schedulers, stopped, jobs)]
    rest = json.dumps({"level": level, "schedulers": keys[0], "stopped": keys[1], "jobs": keys[2]})[1:]
    write("gate.json", {"crc32": f"{zlib.crc32(rest.encode()):08x}", **json.loads("{" + rest)})
    open(folder + "/heartbeat", "a").close()
first = len(open(folder + "/engines").read().split()) == 1
"""
)
"""An engine that can stop jobs and write down which. A busy machine takes its time to stop one; a shell that was caught
in a vfork waits in state D, and its child stops."""


def job(n: int, before: str = "") -> str:
    """A shell command that leaves its pid in N.pid, works until the file N.go is there, and leaves N.ran."""
    return f"{before} echo $$ >{n}.new; mv {n}.new {n}.pid; until [ -e {n}.go ]; do sleep 0.05; done; touch {n}.ran"


def job_pid(folder: Path, n: int) -> int:
    """The process of `job(n)`, once it is there."""
    file = folder / f"{n}.pid"
    until(file.exists)
    return int(file.read_text())


def ninja(folder: Path, jobs: int) -> list[str]:
    """A ninja that runs all of its jobs at once."""
    write_ninja(folder, [(f"{n}.ran", job(n)) for n in range(jobs)])
    return [PYPI_NINJA, f"-j{jobs}"]


def stopped(folder: Path, numbers: Sequence[int]) -> list[int]:
    """Which of these jobs are stopped. A shell may have been caught in a vfork: then only its child shows it."""
    pids = {n: job_pid(folder, n) for n in numbers}
    return [n for n, pid in pids.items() if any(state_of(each) == "T" for each in [pid, *descendants(pid)])]


def finish(folder: Path, n: int) -> None:
    """Let job n come to its end, if it is not stopped."""
    (folder / f"{n}.go").touch()
    until((folder / f"{n}.ran").exists)


def given_up(paths: BuildPaths) -> bool:
    """Whether the engine has died too often, and the next one rests."""
    begun = engines_of(paths)
    supervisor = supervisor_of(paths)
    children = Processes().children(supervisor["supervisor_pid"])
    return len(begun) >= 7 and bool({*children} - {supervisor["build_pid"], *begun})  # one that exits has no words left
