"""Real builds under the real program: a stoker whose files live in the test's own folder, and projects to build."""

from __future__ import annotations

import contextlib
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import ninja
import pytest

from stoker.act.tree import descendants
from stoker.contract.process import start_ticks
from support import forked

PATIENCE = float(os.environ.get("STOKER_TESTS_PATIENCE", "90"))
"""Seconds after which a test gives up; the longest build here takes a few seconds on an idle machine."""

PYPI_NINJA = str(Path(ninja.BIN_DIR) / "ninja")
NINJAS = [n for n in (PYPI_NINJA, "/usr/bin/ninja") if Path(n).exists()]
ONE_NINJA_AT_FIRST = [*NINJAS[:1], *(pytest.param(n, marks=pytest.mark.long) for n in NINJAS[1:])]
"""For tests that take some ten seconds with each: the others' turn comes with the long tests."""

INTERPRETER = [sys.executable, "-P", "-m", "stoker"]

UNIT = """
#include <map>
#include <string>
int unit{n}(const std::string& s) {{
  std::map<std::string, int> m{{{{"a", {n}}}}};
  return m.at(s);
}}
"""


def until(condition: Callable[[], Any], what: str = "it") -> Any:
    """Wait for something to become true; the value is returned. To look takes at most a quarter of the time, lest what
    is waited for never gets the only core."""
    deadline = time.monotonic() + PATIENCE
    while (began := time.monotonic()) < deadline:
        if value := condition():
            return value
        time.sleep(max(0.03, 3 * (time.monotonic() - began)))
    raise AssertionError(f"{what} did not happen")


def supervisors_in(supervisor: Mapping[str, Any]) -> list[int]:
    """The supervisor that supervisor.json tells of and its standbys, as far as they live, the highest first."""
    line = [*reversed(supervisor.get("standbys", [])), (supervisor["supervisor_pid"], supervisor["supervisor_start"])]
    return [pid for pid, start in line if start_ticks(pid) == start is not None]


def kill_supervisors(supervisor: Mapping[str, Any]) -> None:
    """Kill the supervisor with its standbys, so that none takes its place."""
    for pid in supervisors_in(supervisor):
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)


def stop_supervisors(supervisor: Mapping[str, Any]) -> None:
    """Stop the supervisor, and its standbys first, which would set it going again."""
    for pid in supervisors_in(supervisor):
        os.kill(pid, signal.SIGSTOP)


class Stoker:
    """The program, run as a user would, with folders of its own."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.prefix: list[str] = []
        self._started: list[subprocess.Popen[bytes]] = []
        self.state = root / "state"
        # Short, since a socket's path must be; a test's own folder is not.
        self.runtime = Path(tempfile.mkdtemp(prefix="stoker-test-"))
        self.env = {
            **os.environ,
            "XDG_STATE_HOME": str(self.state),
            "XDG_RUNTIME_DIR": str(self.runtime),
            "XDG_CONFIG_HOME": str(root / "config"),
            "CCACHE_DIR": str(root / "ccache"),  # no test may be answered from what an earlier one compiled
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "TERM": "xterm-256color",
        }
        self.env.pop("PYTHONDONTWRITEBYTECODE", None)  # an installed program does not compile itself at each start
        self.env.pop("CI", None)
        self.env.pop("NO_COLOR", None)

    def argv(self, *words: str) -> list[str]:
        return [*self.prefix, *INTERPRETER, *words]

    def run(self, *words: str, cwd: Path | None = None, **env: str) -> subprocess.CompletedProcess[bytes]:
        """What a command says, and its exit status. It is forked where that makes no difference to a new interpreter,
        which costs ten times the time."""
        argv, cwd, env = self.argv(*words), cwd or self.root, {**self.env, **env}
        if argv == [*INTERPRETER, *words] and forked.same_interpreter(env):
            return forked.run(words, cwd, env, PATIENCE)
        return subprocess.run(
            argv,
            cwd=cwd,
            env=env,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )

    def start(self, *words: str, cwd: Path | None = None) -> subprocess.Popen[bytes]:
        started = subprocess.Popen(
            self.argv(*words),
            cwd=cwd or self.root,
            env=self.env,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )
        self._started.append(started)
        return started

    def detach(self, *command: str, cwd: Path | None = None, jobs: int | None = None) -> str:
        """Start a build, with `jobs` at once or as many as there are cores, and return its ID."""
        level = [] if jobs is None else ["-j", str(jobs)]
        result = self.run("run", "--detach", *level, "--", *command, cwd=cwd)
        assert result.returncode == 0, result.stderr
        return result.stdout.decode().strip()

    def begun(self) -> str:
        """The ID of the only build, which another process starts, once it has begun."""
        found: list[Path] = until(lambda: [*self.state.glob("stoker/builds/*/supervisor.json")], "a build")
        return found[0].parent.name

    def status(self, *words: str) -> dict[str, Any]:
        result = self.run("status", "--json", *words)
        assert result.returncode == 0, result.stderr
        value: dict[str, Any] = json.loads(result.stdout)
        return value

    def ended(self, build: str) -> dict[str, Any]:
        """The status of a build once its engine has written the end."""
        until(lambda: (e := self.events(build)) and e[-1]["type"] == "build_ended", f"the end of {build}")
        return self.status(build)

    def folder(self, build: str) -> Path:
        return self.state / "stoker" / "builds" / build

    def events(self, build: str) -> list[dict[str, Any]]:
        """The journal so far; an engine may be in the middle of its last line."""
        journal = self.folder(build) / "journal.jsonl"
        lines = journal.read_bytes().split(b"\n")[:-1] if journal.exists() else []
        return [json.loads(line) for line in lines]

    def socket(self, build: str) -> Path:
        """Where the engine of a build listens."""
        return self.runtime / "stoker" / f"{build}.sock"

    def supervisor(self, build: str) -> dict[str, int]:
        value: dict[str, int] = json.loads((self.folder(build) / "supervisor.json").read_bytes())
        return value

    def engine_pid(self, build: str) -> int:
        """The engine that serves now."""

        def last() -> int:
            pids = [e["pid"] for e in self.events(build) if e["type"] == "engine_started"]
            return pids[-1] if pids and start_ticks(pids[-1]) else 0

        return int(until(last, "an engine"))

    def kill_supervisors_and_engine(self, build: str) -> None:
        """Kill the supervisor, its standbys and the engine, none of which finds the time to start another."""
        supervisor = self.supervisor(build)
        stop_supervisors(supervisor)
        os.kill(self.engine_pid(build), signal.SIGKILL)
        kill_supervisors(supervisor)

    def end_all(self) -> None:
        """Leave nothing running behind a test, nor what would be told as an error of another one."""
        for process in self._started:
            with process:
                process.kill()
        for file in self.state.glob("stoker/builds/*/supervisor.json"):
            supervisor = json.loads(file.read_bytes())
            build = (
                [supervisor["build_pid"]] if start_ticks(supervisor["build_pid"]) == supervisor["build_start"] else []
            )
            roots = [*supervisors_in(supervisor), *build]
            tree = [p for root in roots for p in descendants(root)]
            kill_supervisors(supervisor)
            for pid in [*roots, *tree]:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)


def write_project(
    folder: Path, units: int = 6, *, broken: Sequence[int] = (), gated: bool = False, generator: str = "Ninja"
) -> Path:
    """A real CMake project of some small C++ files, configured for ninja or make; returns its build folder.

    The first one, if `gated`, is compiled until `open_gate`, at no cost: its compiler waits for a header, a named pipe.
    """
    folder.mkdir(parents=True, exist_ok=True)
    for n in range(units):
        includes = '#include "gate.h"\n' if gated and n == 0 else ""
        error = "int x = no_such_name;\n" if n in broken else ""
        (folder / f"unit{n}.cpp").write_text(f"{includes}int unit{n}() {{ return {n}; }}\n{error}")
    if gated:
        os.mkfifo(folder / "gate.h")
    (folder / "main.cpp").write_text("int main() { return 0; }\n")
    sources = " ".join(f"unit{n}.cpp" for n in range(units))
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.18)\nproject(small CXX)\n"
        f"add_library(units STATIC {sources})\n"
        "add_executable(app main.cpp)\ntarget_link_libraries(app units)\n"
    )
    build = folder / "build"
    tool = [f"-DCMAKE_MAKE_PROGRAM={PYPI_NINJA}"] if generator == "Ninja" else []
    words = ["cmake", "-G", generator, *tool, "-S", str(folder), "-B", str(build)]
    subprocess.run(words, check=True, capture_output=True)
    return build


def open_gate(folder: Path) -> None:
    """Let the compiler of a gated project go on."""
    (folder / "gate.h").write_text("")  # waits for it, if it has yet to come


def write_ninja(folder: Path, edges: Sequence[tuple[str, str]]) -> Path:
    """A build.ninja of (output, shell command); returns its folder."""
    folder.mkdir(parents=True, exist_ok=True)
    lines = ["rule sh", "  command = $cmd"]
    for output, command in edges:
        lines += [f"build {output}: sh", f"  cmd = {command.replace('$', '$$')}"]
    (folder / "build.ninja").write_text("\n".join(lines) + "\n")
    return folder
