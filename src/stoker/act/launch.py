"""Starts a build: its private folder, its specification and the keeper, detached from the terminal.

Unaware of viewers and of what the command is.
"""

from __future__ import annotations

import contextlib
import json
import os
import pwd
import secrets
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path

from stoker.act import ramdisk
from stoker.act.cache_log import cache_log_of
from stoker.act.environment import save_environment
from stoker.act.pool import make_pool
from stoker.act.program import keeper_argv
from stoker.act.tree import descendants, signal_tree
from stoker.config.paths import BuildPaths, builds_dir, private_dir, private_opener, socket_folder, state_dir

START_SECONDS = 10.0
"""How long the keeper may take to say that it has started; on a machine that swaps even Python is slow."""

LINGER = Path("/var/lib/systemd/linger")
"""Holds a file for each user whose systemd manager outlives the last logout (org.freedesktop.login1(5))."""

JOURNAL_RESERVE = 64 * 1024
"""Bytes for the journal of a build that ends on a full disk: some hundred jobs, and the end."""

MAX_NAME = 24
"""Longest name inside an ID: an ID must stay typable, and fit a socket's path."""


FINDS_MODULES = ("PYTHONPATH", "PYTHONHOME", "PYTHONUSERBASE", "PYTHONPLATLIBDIR")
"""What decides where Python looks for modules (python(1))."""


class LaunchError(Exception):
    """The build could not be started; nothing runs. The message is one line with the remedy."""


@dataclass(frozen=True, slots=True)
class Step:
    """One command of a build: how it is run, and `words`, the command as its person wrote it.

    `environment` is added to the build's; `level` is how many jobs may run while nobody has set a number, `retries` how
    often it runs again after deaths for memory (None: as often as makes sense), `scheduler` what should run its jobs.
    `remedy` marks a step that only mends what made a build before this one fail.
    """

    name: str
    command: tuple[str, ...]
    cwd: str
    words: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    level: int | None = None
    retries: int | None = None
    scheduler: str = "any"
    remedy: bool = False


@dataclass(frozen=True, slots=True)
class RamDisk:
    """A tmpfs for the temporary files of all steps, and the bytes that they may take; `folder` once it is made."""

    parent: str
    size: int
    folder: str = ""


@dataclass(frozen=True, slots=True)
class Origin:
    """The profile that a build comes from: its name and file, a person's values, and the words behind `--`.

    `memory_by_hand`: the build's memory is a person's word, so the profile's does not count.
    """

    name: str
    path: str
    settings: Mapping[str, str] = field(default_factory=dict)
    extra: tuple[str, ...] = ()
    memory_by_hand: bool = False


@dataclass(frozen=True, slots=True)
class Decided:
    """Who decided what, and why: the first line of the build's decisions."""

    who: str
    what: str
    why: str


@dataclass(frozen=True, slots=True)
class Spec:
    """What to run: `command`, with `environment` added, and `words`, the command as its person wrote it.

    `steps` are run instead of `command` where there are any, from the one with the number `first` (from 1) on, and each
    only if the one before has ended with 0. `verify` are patterns of paths to verify after a build that ended well;
    what was written since the Unix time `since` counts as its own (None: since it began). `arch_list` is the variable
    of the environment that says for which GPUs is built.

    `jobs` is how many may run at once (None: automatic), `memory` how many bytes they may hold (None: what there is),
    `window` how wide schedulers were made, `note` a sentence that the person should read, `notices` warnings.

    `environ` is the environment to which theirs is added (None: ours), `missing` names secrets that it lacks and
    an earlier build had. `alone` are outputs that the first step makes first and alone. `cache` is the compiler cache
    that was set up. `decided` is what a person decided before it began. `earlier` is the ID of the build that this one
    goes on with.
    """

    command: tuple[str, ...]
    cwd: str
    name: str
    words: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    jobs: int | None = None
    memory: int | None = None
    window: int = 1
    note: str = ""
    notices: tuple[str, ...] = ()
    steps: tuple[Step, ...] = ()
    first: int = 1
    verify: tuple[str, ...] = ()
    arch_list: str = "TORCH_CUDA_ARCH_LIST"
    since: float | None = None
    profile: Origin | None = None
    environ: Mapping[str, str] | None = None
    missing: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    decided: Decided | None = None
    ramdisk: RamDisk | None = None
    cache: str = ""
    earlier: str = ""


def launch(spec: Spec) -> BuildPaths:
    """Start `spec` under a keeper and return its files once the build's process exists. Raises LaunchError."""
    try:
        private_dir(state_dir())
        private_dir(builds_dir())
        paths = _make_folder(spec.name)
        spec = _with_ramdisk(spec, paths)
        base = os.environ if spec.environ is None else spec.environ
        log = cache_log_of({**base, **spec.environment}, spec.cwd)
        with open(paths.spec, "w", encoding="ascii", opener=private_opener) as file:
            json.dump({**_spec_file(spec), **log.spec}, file)
        with open(paths.socket_note, "w", encoding="utf-8", errors="surrogateescape", opener=private_opener) as file:
            file.write(str(socket_folder() / f"{paths.id}.sock"))
        _reserve(paths)
        save_environment(paths.environment, base, spec.missing)
        environment = {**base, **make_pool(paths.pool, spec.window, base), **spec.environment}
        environment |= log.environment(paths.cache_log)
    except OSError as err:
        raise LaunchError(
            f"cannot write {err.filename or builds_dir()}: {err.strerror}; "
            "free some space or set XDG_STATE_HOME to another folder"
        ) from err
    for prefix in _prefixes(paths.id):
        if _start(paths, prefix, environment):
            return paths
    raise LaunchError(f"the keeper did not start; {_last_words(paths.engine_log)}see {paths.engine_log}")


def _last_words(log: Path) -> str:
    """What the keeper complained about last."""
    with contextlib.suppress(OSError):
        lines = log.read_text(errors="replace").strip().splitlines()
        return f"{lines[-1]}; " if lines else ""
    return ""


def _make_folder(name: str) -> BuildPaths:
    stamp = time.strftime("%m%d-%H%M")
    safe = "".join(c if c.isascii() and (c.isalnum() or c in "-_.") else "-" for c in name).strip("-.")
    while True:
        root = builds_dir() / f"{safe[:MAX_NAME] or 'build'}-{stamp}-{secrets.token_hex(2)}"
        try:
            root.mkdir(mode=0o700)
        except FileExistsError:
            continue
        return BuildPaths(root)


def _spec_file(spec: Spec) -> dict[str, object]:
    steps = spec.steps or (Step(spec.name, spec.command, spec.cwd, spec.words),)
    return {
        "name": spec.name,
        "command": list(spec.command),
        "words": list(spec.words or spec.command),
        "jobs": spec.jobs,
        "memory": spec.memory,
        "note": spec.note,
        "notices": list(spec.notices),
        "cwd": spec.cwd,
        "steps": [_step_of(step) for step in steps],
        "first": spec.first,
        "verify": list(spec.verify),
        "arch_list": spec.arch_list,
        "since": spec.since,
        "profile": asdict(spec.profile) if spec.profile is not None else None,
        "alone": list(spec.alone),
        "decided": asdict(spec.decided) if spec.decided is not None else None,
        "cache": spec.cache,
        "earlier": spec.earlier,
        "ramdisk": asdict(spec.ramdisk) if spec.ramdisk is not None else None,
        "created": time.time(),
        # -P: the working folder is the user's source tree and must not shadow our modules.
        "engine": [sys.executable, *_without_strange_modules(spec), "-P", "-m", "stoker.engine"],
    }


def _without_strange_modules(spec: Spec) -> list[str]:
    """-E, so that a PYTHONPATH of the build's profile does not reach the engine. Where the person's own environment has
    such a variable, stoker may have been found by it."""
    known = {*os.environ, *(spec.environ or ())}
    return [] if known.intersection(FINDS_MODULES) else ["-E"]


def _step_of(step: Step) -> dict[str, object]:
    return {**asdict(step), "words": list(step.words or step.command)}


def _with_ramdisk(spec: Spec, paths: BuildPaths) -> Spec:
    """The folder for temporary files made and told to each step that has no TMPDIR of its own."""
    if spec.ramdisk is None:
        return spec
    try:
        folder = ramdisk.make(spec.ramdisk.parent, str(paths.root))
    except OSError as err:
        text = f"no RAM disk in {spec.ramdisk.parent}: {err.strerror}; TMPDIR stays as it is"
        return replace(spec, ramdisk=None, notices=(*spec.notices, text))
    own = {"TMPDIR": ramdisk.tmpdir(folder)}
    steps = tuple(replace(step, environment={**own, **step.environment}) for step in spec.steps)
    return replace(spec, steps=steps, ramdisk=replace(spec.ramdisk, folder=folder))


def _reserve(paths: BuildPaths) -> None:
    """Find out now, not in an hour, that the disk is full: the end needs room that nobody else can take.

    A block for the exit status, and some for the last records of the journal.
    """
    for path, size in ((paths.exit.with_suffix(".json.new"), 4096), (paths.journal_reserve, JOURNAL_RESERVE)):
        with open(path, "wb", opener=private_opener) as file:
            file.write(b" " * size)
            file.flush()
            os.fsync(file.fileno())


def _prefixes(build_id: str) -> list[list[str]]:
    """Ways to start the keeper, best first: a systemd scope of its own outlives the login's scope.

    Only where the user lingers: else the user's manager ends with the last logout, and every scope of its with it,
    while a process that stays behind in the login's scope is left alone (KillUserProcesses=no, logind.conf(5)).
    """
    plain: list[list[str]] = [[]]
    runtime = os.environ.get("XDG_RUNTIME_DIR", "")
    if runtime and _lingers() and Path(runtime, "systemd", "private").exists() and (run := shutil.which("systemd-run")):
        scope = [run, "--user", "--scope", "--quiet", "--collect", f"--unit=stoker-{build_id}", "--"]
        return [scope, *plain]
    return plain


def _lingers() -> bool:
    """Whether `loginctl enable-linger` was said for this user."""
    try:
        return (LINGER / pwd.getpwuid(os.getuid()).pw_name).exists()
    except KeyError:
        return False


def _start(paths: BuildPaths, prefix: Sequence[str], environment: Mapping[str, str]) -> bool:
    """Start the keeper in a session of its own; True once the build's process exists."""
    with open(paths.engine_log, "ab", opener=private_opener) as log:
        keeper = subprocess.Popen(
            [*prefix, *keeper_argv(paths.root)],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
            start_new_session=True,
            cwd="/",
            env=environment,
        )
    deadline = time.monotonic() + START_SECONDS
    while time.monotonic() < deadline:
        if paths.keeper.exists():
            # It outlives us on purpose; without this, Popen would warn about it.
            keeper.returncode = 0
            return True
        if keeper.poll() is not None:
            return False
        time.sleep(0.005)
    # Its children too: a build that was just forked must not go on beside the one of the next attempt.
    signal_tree([keeper.pid, *descendants(keeper.pid)], signal.SIGKILL)
    keeper.wait()
    return False
