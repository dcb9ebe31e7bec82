"""A build of one command, with a window for its schedulers. Unaware of how it is started."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from stoker.contract.spec_file import BuildSpec
from stoker.launch.refusals import CommandNotFoundError, NotExecutableError
from stoker.launch.remote_slots import remote_slots
from stoker.launch.request import BuildRequest
from stoker.launch.window import prepared, window_for
from stoker.model.units import format_bytes
from stoker.sense.machine.cgroup import MemoryLimit
from stoker.sense.machine.limits import limits_of

BUILD_FOLDERS = ("build", "out", "_build", "builddir", "release", "debug")
"""Usual names of the folder that a project is built in."""

CONFIGURED = (("CMakeCache.txt", "CMakeLists.txt"), ("meson-private", "meson.build"), ("config.status", "configure"))
"""What CMake, Meson or configure leaves in a build folder, and what it is configured from in the folder around it."""


def command_build(
    words: Sequence[str],
    cwd: str,
    name: str,
    jobs: int | None,
    memory: int | None,
    environ: Mapping[str, str] | None = None,
) -> BuildRequest:
    """Return the build of one command. `environ` is its environment if it is not ours."""
    known = os.environ if environ is None else environ
    window = window_of(jobs, memory, known)
    run = prepared(words, window, jobs, known)
    spec = BuildSpec(name, cwd, run.words, tuple(words), jobs=jobs, memory=memory, note=run.note)
    return BuildRequest(spec, window, run.environment, environ).noticing(*above_limit(memory))


def check_command(command: str) -> None:
    """Check that a command can be run before there is a build. Raises CommandNotFoundError and NotExecutableError."""
    if shutil.which(command) is not None:
        return
    if "/" in command and Path(command).exists():
        remedy = "is a folder" if Path(command).is_dir() else "is not executable; chmod +x it, or name its interpreter"
        raise NotExecutableError(f"{command} {remedy}")
    where = "no such file" if "/" in command else "not found on PATH"
    raise CommandNotFoundError(f"{command}: {where}; check the spelling, or install it")


def default_name(words: Sequence[str]) -> str:
    """Return the folder that is built, as people would name it: of a build folder the project around it."""
    folder = Path.cwd()
    if "-C" in words[:-1]:
        folder = Path(folder, words[words.index("-C") + 1]).resolve()
    if _is_build_folder(folder) and folder.parent.name:
        folder = folder.parent
    return folder.name or Path(words[0]).name


def _is_build_folder(folder: Path) -> bool:
    """Whether its name says so, or it was configured from the folder around it."""
    marks = ((folder / here).exists() and (folder.parent / around).exists() for here, around in CONFIGURED)
    return folder.name.lower() in BUILD_FOLDERS or any(marks)


def window_of(jobs: int | None, memory: int | None, environ: Mapping[str, str]) -> int:
    """Return the width of schedulers on this machine, for a build with this environment."""
    cores, limit = limits_of(os.getpid())
    return window_for(int(cores), min(limit.limit, memory or sys.maxsize), jobs, remote_slots(environ))


def above_limit(memory: int | None) -> tuple[str, ...]:
    """Return a warning if the user allows the build more memory than there is: then that is not what counts."""
    if memory is None:
        return ()
    limit = memory_limit_here()
    if not limit.limit or memory <= limit.limit:
        return ()
    where = "this machine has" if limit.path == "machine" else f"the control group {limit.path} allows"
    return (f"--memory {format_bytes(memory)} is more than {where}; {format_bytes(limit.limit)} counts instead",)


def bytes_of(memory: int | float | None) -> int | None:
    """Return in bytes what jobs may hold together; a share (a float) is relative to the tightest limit around us."""
    if not isinstance(memory, float):
        return memory
    return int(memory * memory_limit_here().limit)


def memory_limit_here() -> MemoryLimit:
    """Return the tightest limit around us."""
    return limits_of(os.getpid()).memory
