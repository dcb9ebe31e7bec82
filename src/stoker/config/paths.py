"""Where stoker's files live: state, sockets, settings, shipped data. Creates private folders (0700) on demand.

Unaware of what is written into them.
"""

from __future__ import annotations

import os
import stat
from dataclasses import dataclass
from pathlib import Path

from stoker.config.regular import open_regular

MAX_SOCKET_PATH = 107
"""Longest path that fits sockaddr_un.sun_path on Linux (108 bytes with the closing NUL; unix(7))."""


LONGEST_SOCKET_NAME = len("/stoker/") + 39 + len(".sock")
"""What comes behind the base folder: a folder of our own, an ID (a name of 24, a date and a number), the suffix."""


class UnsafeFolderError(Exception):
    """A folder that must be private belongs to somebody else or is accessible to others."""


def state_dir() -> Path:
    """Return $XDG_STATE_HOME/stoker, by default ~/.local/state/stoker."""
    return _xdg("XDG_STATE_HOME", ".local/state")


def config_dir() -> Path:
    """Return $XDG_CONFIG_HOME/stoker, by default ~/.config/stoker; without a home beside the state."""
    try:
        return _xdg("XDG_CONFIG_HOME", ".config")
    except UnsafeFolderError:  # settings are nothing that a build or a screen may fail over
        return state_dir() / "config"


def settings_path() -> Path:
    """Return where the settings are looked for."""
    return config_dir() / "settings.yaml"


def _xdg(variable: str, default: str) -> Path:
    base = os.environ.get(variable, "")
    try:
        root = Path(base) if base.startswith("/") else Path.home() / default
    except RuntimeError as err:
        raise UnsafeFolderError(f"there is no home folder; set HOME or {variable}") from err
    return root / "stoker"


def runtime_dir() -> Path:
    """Return $XDG_RUNTIME_DIR/stoker, or /tmp/stoker-UID where that is not ours (or too long for a socket)."""
    base = os.environ.get("XDG_RUNTIME_DIR", "")
    if base.startswith("/") and _fits_socket(base) and _is_own_folder(base):
        return Path(base) / "stoker"
    return Path(f"/tmp/stoker-{os.getuid()}")  # noqa: S108  (private_dir checks its owner and mode)


def socket_folder() -> Path:
    """Return where a new build's engine should listen: `runtime_dir`, or a folder of the state.

    Anybody may create /tmp/stoker-UID before its user does.
    """
    runtime = runtime_dir()
    try:
        return private_dir(runtime)
    except (UnsafeFolderError, OSError):
        # If neither works, the engine says so, and viewers read the journal.
        return private_dir(state_dir() / "run") if _fits_socket(state_dir()) else runtime


def _fits_socket(base: str | Path) -> bool:
    return len(os.fsencode(base)) + LONGEST_SOCKET_NAME <= MAX_SOCKET_PATH


def _is_own_folder(path: str) -> bool:
    """Return whether it is ours: after su and sudo -E the variable still names another user's folder."""
    try:
        info = os.stat(path)
    except OSError:
        return False
    return stat.S_ISDIR(info.st_mode) and info.st_uid == os.getuid()


def private_opener(path: str, flags: int) -> int:
    """Open for `open(opener=)`: a new file is 0600, whatever the umask is."""
    return os.open(path, flags, 0o600)


def private_dir(path: Path) -> Path:
    """Create `path` as 0700 if need be and return it. Raises UnsafeFolderError if others could reach into it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        path.mkdir(mode=0o700)
    except FileExistsError:
        info = path.lstat()
        if not stat.S_ISDIR(info.st_mode) or info.st_uid != os.getuid():
            raise UnsafeFolderError(f"{path} is not a folder of yours; remove it or set XDG_RUNTIME_DIR") from None
        if info.st_mode & 0o077:
            path.chmod(0o700)
    return path


def data_dir(kind: str) -> Path:
    """Return the shipped `themes` or `profiles`: inside the installed package, or at the top of a checkout."""
    package = Path(__file__).resolve().parent.parent
    installed = package / "_data" / kind
    return installed if installed.is_dir() else package.parent.parent / kind


def history_path() -> Path:
    """Return the history file."""
    return state_dir() / "history.sqlite3"


class _BuildFile:
    """A file by its name in a build's folder."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __get__(self, paths: BuildPaths, _owner: type[BuildPaths]) -> Path:
        return paths.root / self._name


@dataclass(frozen=True, slots=True)
class BuildPaths:
    """The files of one build, all inside its own private folder but for the socket."""

    root: Path

    @property
    def id(self) -> str:
        """The build's ID is its folder's name."""
        return self.root.name

    spec = _BuildFile("spec.json")
    """What to run, written once before the supervisor starts."""
    environment = _BuildFile("environment.json")
    """What the build was started in, but for secrets; gone when it has ended well."""
    successor = _BuildFile("continued")
    """Which build has resumed this one."""
    journal = _BuildFile("journal.jsonl")
    """The append-only journal, JSON lines."""
    journal_reserve = _BuildFile("journal.reserve")
    """Room on the disk for the journal's last records; gone once the journal is written to its end."""
    output = _BuildFile("output.log")
    """Every byte the build wrote to stdout and stderr."""
    cache_log = _BuildFile("ccache.log")
    """What each call of ccache did, as ccache writes it."""
    cache_bases = _BuildFile("caches.json")
    """What compiler caches had counted before the build began."""
    supervisor = _BuildFile("supervisor.json")
    """The supervisor's and the build's process ids, written by the supervisor."""
    exit = _BuildFile("exit.json")
    """The build's exit status, written by the supervisor when it knows it."""
    engine_log = _BuildFile("engine.log")
    """What the engine and the supervisor wrote to stderr: empty unless something went wrong."""
    history = _BuildFile("history.sqlite3")
    """What the jobs of a build took that keeps apart from the history."""
    jobserver = _BuildFile("jobserver")
    """The FIFO with spare slots for tools inside jobs."""
    last_look = _BuildFile("last-look.json")
    """Where the build stood when its person last looked at it full-screen."""
    notify_log = _BuildFile("notify.log")
    """What the person's notify command said."""
    gpu_tries = _BuildFile("gpu-tries")
    """A byte for each engine that asked the GPUs' driver and has not been answered; gone when one is."""
    socket_note = _BuildFile("socket")
    """Where the launcher wrote down the socket's path: another login may have another runtime folder."""

    @property
    def socket(self) -> Path:
        """The engine's Unix socket."""
        try:
            with open_regular(self.socket_note) as file:
                noted = os.fsdecode(file.read(MAX_SOCKET_PATH + 1))
        except OSError:
            noted = ""
        return Path(noted) if noted else runtime_dir() / f"{self.id}.sock"


def builds_dir() -> Path:
    """Return the folder that holds a folder for each build."""
    return state_dir() / "builds"


def build_paths(build_id: str) -> BuildPaths:
    """Return the files of the build with this exact ID."""
    return BuildPaths(builds_dir() / build_id)
