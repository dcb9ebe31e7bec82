"""Starts a build: its private folder, its specification and the supervisor, detached from the terminal.

Unaware of viewers and of what the command is.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from stoker.act import ramdisk
from stoker.act.jobserver_fifo import make_jobserver_fifo
from stoker.act.tree import descendants, signal_tree
from stoker.config.paths import (
    BuildPaths,
    UnsafeFolderError,
    builds_dir,
    private_dir,
    private_opener,
    socket_folder,
    state_dir,
)
from stoker.contract.reserved_file import reserve
from stoker.contract.spec_file import BuildSpec
from stoker.contract.strict_json import dump
from stoker.launch.ccache_log import CacheLog, cache_log_of
from stoker.launch.refusals import LaunchError
from stoker.launch.repair import repair_all
from stoker.launch.request import BuildRequest
from stoker.launch.saved_environment import save_environment
from stoker.launch.tmpfs import sweep
from stoker.record.folders import MAX_BUILDS, build_folders
from stoker.supervisor.program import supervisor_argv

START_SECONDS = 10.0
"""How long the supervisor may take to say that it has started; on a machine that swaps even Python is slow."""

LINGER = Path("/var/lib/systemd/linger")
"""Contains a file for each user whose systemd manager outlives the last logout (org.freedesktop.login1(5))."""

JOURNAL_RESERVE = 64 * 1024
"""Bytes for the journal of a build that ends on a full disk: some hundred jobs, and the end."""

MAX_NAME = 24
"""Longest name inside an ID: an ID must stay typable, and fit a socket's path."""

FINDS_MODULES = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR")
"""Variables that decide where Python searches for modules (python(1))."""


def start_build(
    make: Callable[[str], BuildRequest], say: Callable[[str], None], ready: Callable[[], None] = lambda: None
) -> BuildPaths:
    """Start the build that `make` makes of the working folder, and clean up after builds that have ended.

    `say` gets a line about what was repaired; `ready` is called when everything is ready for the start. Raises
    LaunchError.
    """
    try:
        cwd = os.getcwd()
        with contextlib.suppress(OSError):  # a failed cleanup must not keep a build from starting
            for line in repair_all():
                say(line)
            _prune()
            sweep(os.environ)
        request = make(cwd)
        ready()
        return launch(request)
    except FileNotFoundError as err:
        raise LaunchError("the working folder is gone; cd to one that exists") from err
    except UnsafeFolderError as err:
        raise LaunchError(str(err)) from err


def launch(request: BuildRequest) -> BuildPaths:
    """Start `request` under a supervisor and return its files once the build's process exists. Raises LaunchError."""
    try:
        private_dir(state_dir())
        private_dir(builds_dir())
        paths = _make_folder(request.spec.name)
        request = _with_ramdisk(request, paths)
        log = cache_log_of({**request.base, **request.environment}, request.spec.cwd)
        with open(paths.spec, "wb", opener=private_opener) as file:
            file.write(dump(_spec_of(request, log)))
        with open(paths.socket_note, "wb", opener=private_opener) as file:
            file.write(os.fsencode(socket_folder() / f"{paths.id}.sock"))
        _reserve(paths)
        save_environment(paths.environment, request.base, request.missing, request.secrets)
        slots = make_jobserver_fifo(paths.jobserver, request.window, request.base)
        environment = {**request.base, **slots, **request.environment, **log.environment(paths.cache_log)}
    except OSError as err:
        raise LaunchError(
            f"cannot write {err.filename or builds_dir()}: {err.strerror}; "
            "free some space or set XDG_STATE_HOME to another folder"
        ) from err
    for prefix in _prefixes(paths.id):
        if _start(paths, prefix, environment):
            return paths
    raise LaunchError(f"the supervisor did not start; {_last_words(paths.engine_log)}see {paths.engine_log}")


def _prune() -> None:
    """Delete the oldest builds if there are too many. What reads their journals is loaded only then."""
    if len(build_folders()) > MAX_BUILDS:
        from stoker.record.builds import prune_builds

        prune_builds()


def _last_words(log: Path) -> str:
    """Return the supervisor's last error."""
    with contextlib.suppress(OSError):
        lines = log.read_text(errors="replace").strip().splitlines()
        return f"{lines[-1]}; " if lines else ""
    return ""


def _make_folder(name: str) -> BuildPaths:
    stamp = time.strftime("%m%d-%H%M")
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name).strip("-.")
    while True:
        root = builds_dir() / f"{safe[:MAX_NAME] or 'build'}-{stamp}-{os.urandom(2).hex()}"
        try:
            root.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return BuildPaths(root)


def _spec_of(request: BuildRequest, log: CacheLog) -> BuildSpec:
    """Return what the supervisor and the engine read."""
    spec = request.spec
    return spec._replace(
        words=spec.words or spec.command,
        steps=tuple(step._replace(words=step.words or step.command) for step in spec.all_steps()),
        cache_log=log.path,
        cache_log_start=log.start,
        # -P: the working folder is the user's source tree and must not shadow our modules.
        engine=(sys.executable, *_without_strange_modules(request.base), "-P", "-m", "stoker.engine"),
        created=time.time(),
    )


def _without_strange_modules(base: Mapping[str, str]) -> list[str]:
    """Return -E, so that a PYTHONPATH of the build's profile does not reach the engine.

    Not if the user's own environment has such a variable: stoker may have been found through it.
    """
    known = {*os.environ, *base}
    return [] if known.intersection(FINDS_MODULES) else ["-E"]


def _with_ramdisk(request: BuildRequest, paths: BuildPaths) -> BuildRequest:
    """Create the folder for temporary files, and set it for each step without a TMPDIR of its own."""
    spec, disk = request.spec, request.spec.ramdisk
    if disk is None:
        return request
    try:
        folder = ramdisk.make(disk.parent, str(paths.root))
    except OSError as err:
        text = f"no RAM disk in {disk.parent}: {err.strerror}; TMPDIR stays as it is"
        return replace(request, spec=spec._replace(ramdisk=None)).noticing(text)
    own = {"TMPDIR": ramdisk.tmpdir(folder)}
    steps = tuple(step._replace(environment={**own, **step.environment}) for step in spec.steps)
    return replace(request, spec=spec._replace(steps=steps, ramdisk=disk._replace(folder=folder)))


def _reserve(paths: BuildPaths) -> None:
    """Find out now, not in an hour, that the disk is full: reserve space that nothing else can take.

    For what must be written at the end: how the command ended, whether it runs again, and the journal's last records.
    """
    for name in ("supervisor.json", "ended.json", "verdict.json", "exit.json"):
        reserve(str(paths.root / name))
    with open(paths.journal_reserve, "wb", opener=private_opener) as file:
        file.write(b" " * JOURNAL_RESERVE)
        file.flush()
        os.fsync(file.fileno())


def _prefixes(build_id: str) -> list[list[str]]:
    """Return ways to start the supervisor, best first: its own systemd scope outlives the login's scope.

    Only if the user lingers: otherwise the user's manager ends with the last logout, and all its scopes with it, while
    a process in the login's scope survives (KillUserProcesses=no, logind.conf(5)).
    """
    plain: list[list[str]] = [[]]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and _lingers() and Path(runtime, "systemd", "private").exists() and (run := shutil.which("systemd-run")):
        scope = [run, "--user", "--scope", "--quiet", "--collect", f"--unit=stoker-{build_id}", "--"]
        return [scope, *plain]
    return plain


def _lingers() -> bool:
    """Say whether `loginctl enable-linger` is in effect for this user."""
    try:
        return (LINGER / pwd.getpwuid(os.getuid()).pw_name).exists()
    except KeyError:
        return False


def _start(paths: BuildPaths, prefix: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Start the supervisor in a session of its own; True once the build's process exists."""
    with open(paths.engine_log, "ab", opener=private_opener) as log:
        supervisor = subprocess.Popen(
            [*prefix, *supervisor_argv(paths.root)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env=environment,
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if paths.supervisor.exists():
            # It outlives us on purpose; without this, Popen would warn about it.
            supervisor.returncode = 0
            return True
        if supervisor.poll() is not None:
            return False
        time.sleep(0.005)
    # Its children too: a build that was just forked must not run next to the one of the next attempt.
    signal_tree([supervisor.pid, *descendants(supervisor.pid)], signal.SIGKILL)
    supervisor.wait()
    return False
