"""distcc: finds which clients wait for a host, from their state files, and which hosts there are.

A client writes $DISTCC_DIR/state/binstate_PID at each change (state.c of distcc 3.4). The hosts come from distcc
itself, which knows its environment, its files and its zeroconf. distcc avoids a failed host for a while, which a file
in $DISTCC_DIR/lock shows (backoff.c). Knows nothing of jobs' outputs or of decisions.
"""

from __future__ import annotations

import os
import re
import shutil
import stat
import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import NamedTuple

from stoker.contract.process import Key
from stoker.model.remote import NO_HOST, RemoteEngine, RemoteHost, RemoteKind
from stoker.model.text import clean
from stoker.sense.proc.jobs import JobUse
from stoker.sense.proc.processes import MAX_CMDLINE, PROC, start_wall
from stoker.sense.proc.procfs import read_all
from stoker.sense.remote.background_question import BackgroundQuestion
from stoker.sense.remote.exchange import in_exchange
from stoker.sense.remote.remote_reader import RemoteLook

STATE = struct.Struct("<QI4xQ128s128sii8x")
"""struct dcc_task_state of state.h, as written by a 64-bit distcc: its size, a magic number, the pid, file, host, slot,
phase, and a pointer that is meaningless to other processes."""

MAGIC = 0x44494800
COMPILE, RECEIVE = 5, 6
"""Phases in which a client waits for its host; enum dcc_phase of state.h. Before them it reports that it sends (4), but
that is only the header of its request: its preprocessor still works here (compile.c, remote.c)."""

HERE = ("localhost", "")
"""Host names that mean that the client compiles on this machine."""

ASK_SECONDS = 20.0
"""Seconds between two questions for the hosts: a hosts file, or zeroconf, may change at any time."""

BACKOFF_SECONDS = 60.0
"""How long distcc avoids a failed host, unless DISTCC_BACKOFF_PERIOD says otherwise (distcc(1))."""

MAX_HOSTS, MAX_SLOTS, MAX_NAME = 1000, 4096, 128
MAX_PLACES = 16
"""Maximum number of environments in which clients of one build look for hosts, in case a script gives each job its
own."""

EARLY = 2.0
"""Seconds by which a state file may seem older than its client: file system clocks are coarse."""

_KEPT = re.compile(r"(?:DISTCC_\w+|PATH|HOME|USER|LOGNAME)")
_TCP_HOST = re.compile(r"(?P<name>\[[0-9A-Fa-f:.]+(?:%[\w.-]+)?\]|[\w.-]+)(?::[^,/\s]*)?(?:/(?P<slots>\d+))?(?:,\S*)?")
_SSH_HOST = re.compile(r"[^@/:\s]*@(?P<name>[\w.-]+)(?:/(?P<slots>\d+))?(?::[^,\s]*)?(?:,\S*)?")
"""HOST:PORT/SLOTS,OPTIONS and USER@HOST/SLOTS:COMMAND,OPTIONS, as hosts.c reads them: a number after a command belongs
to that command."""
_BACKOFF = re.compile(r"backoff_(?:tcp_(?P<tcp>.+)_\d+|ssh_(?P<ssh>.+))_\d+")


class ClientState(NamedTuple):
    """What a client reports about itself."""

    phase: int
    host: str


@dataclass(slots=True)
class _Place:
    """Where the clients of one scheduler look for hosts: their folder, and the variables that matter to distcc."""

    folder: str
    env: Mapping[str, str]
    question: BackgroundQuestion
    hosts: tuple[RemoteHost, ...] | None = None
    """None before the first answer."""


class DistccReader:
    """Reads the clients of one build."""

    kind: RemoteKind = "distcc"

    def __init__(self, proc_root: Path = PROC) -> None:
        self._proc = proc_root
        self._places: dict[Key, _Place] = {}
        self._folders: dict[Key, str] = {}
        self._errors: dict[str, int] = {}
        self._failed_at: dict[str, float] = {}
        self._left_alone: dict[str, str] = {}
        self._since: float | None = None

    def adopt(self, known: RemoteEngine, at: float, /) -> None:
        """Continue counting: failures since then were not counted."""
        self._errors = {host.name: host.errors for host in known.hosts if host.errors}
        self._since = at

    def look(self, jobs: Sequence[JobUse], now: float) -> RemoteLook:
        """Return what the clients of these jobs wait for, and the hosts."""
        self._folders = {}
        self._since = now if self._since is None else self._since
        for use in jobs:
            place = self._place(use)
            if place is not None:
                self._folders.update(dict.fromkeys(use.launchers, place.folder))
        for place in self._places.values():
            self._ask(place)
        known = [place.hosts for place in self._places.values() if place.hosts is not None]
        engine = None
        if known:
            hosts = self._with_failures(_merged(known), now)
            engine = RemoteEngine("distcc", hosts, "" if hosts else self._why_none())
        states = self._states(tuple(self._folders), now)
        here = frozenset(key for key, state in states.items() if state.phase == COMPILE and state.host in HERE)
        return RemoteLook(engine, self._waiting(states), here)

    def glance(self, launchers: Sequence[Key], now: float) -> dict[Key, str]:
        """Return which of these wait for a host."""
        return self._waiting(self._states(launchers, now))

    def compiled_by(self, _argv: Sequence[str], _folder: str, /) -> str:
        """Return nothing: distcc only says where clients are while they run."""
        return ""

    async def finish(self) -> None:
        """Return None: a last look shows all counts."""

    def close(self) -> None:
        """End all open questions."""
        for place in self._places.values():
            place.question.close()

    def _states(self, launchers: Sequence[Key], now: float) -> dict[Key, ClientState]:
        found = ((key, self._folders.get(key) or self._only_folder()) for key in launchers)
        states = ((key, client_state(folder, key, now)) for key, folder in found if folder)
        return {key: state for key, state in states if state is not None}

    def _waiting(self, states: Mapping[Key, ClientState]) -> dict[Key, str]:
        """Return which client waits for which host.

        A client that has lost its host writes nothing until it has another one or compiles here: so once a host has
        failed, its name counts only for clients that hold a connection or a slot.
        """
        waiting = {key: s.host for key, s in states.items() if s.phase in (COMPILE, RECEIVE) and s.host not in HERE}
        failed = {*self._failed_at, *self._left_alone}.intersection(waiting.values())
        lost = {key for key, host in waiting.items() if host in failed and not in_exchange(key[0], self._proc)}
        return {key: NO_HOST if key in lost else host for key, host in waiting.items()}

    def _only_folder(self) -> str:
        """Return the folder of clients that no look has seen yet."""
        return next(iter(self._places.values())).folder if len(self._places) == 1 else ""

    # -- where clients look ------------------------------------------------------------------------------------

    def _place(self, use: JobUse) -> _Place | None:
        known = self._places.get(use.job.scheduler)
        if known is not None or len(self._places) >= MAX_PLACES:
            return known
        env = _environment(use.job.pid, self._proc)
        home = env.get("HOME", "")
        folder = env.get("DISTCC_DIR") or (os.path.join(home, ".distcc") if home else "")
        if not os.path.isabs(folder):
            return None
        place = next((p for p in self._places.values() if (p.folder, p.env) == (folder, env)), None)
        place = place or _Place(folder, env, BackgroundQuestion(ASK_SECONDS))
        self._places[use.job.scheduler] = place
        return place

    def _ask(self, place: _Place) -> None:
        program = shutil.which("distcc", path=place.env.get("PATH"))
        if program is None:
            return
        answer = place.question.look((program, "--show-hosts"), place.env)
        if answer is not None:
            place.hosts = parse_hosts(answer)

    def _why_none(self) -> str:
        """Say why no other machine is known."""
        lists = [place.env["DISTCC_HOSTS"] for place in self._places.values() if place.env.get("DISTCC_HOSTS")]
        if not lists:
            return "distcc knows no host: DISTCC_HOSTS is not set, and no hosts file names one"
        if any("+zeroconf" in named.split() for named in lists):
            return "distcc knows no host: zeroconf has found none yet"
        return "distcc knows no other machine by DISTCC_HOSTS; `distcc --show-hosts` says what it makes of that"

    # -- hosts that fail ---------------------------------------------------------------------------------------

    def _with_failures(self, hosts: Iterable[RemoteHost], now: float) -> tuple[RemoteHost, ...]:
        left_alone: dict[str, str] = {}
        for place in {id(p): p for p in self._places.values()}.values():
            period = _seconds(place.env.get("DISTCC_BACKOFF_PERIOD", ""))
            for name, failed_at in _failures(place.folder):
                if failed_at > self._failed_at.get(name, self._since or now):
                    self._failed_at[name] = failed_at
                    self._errors[name] = self._errors.get(name, 0) + 1
                if now < failed_at + period:
                    left_alone[name] = f"it failed; distcc leaves it alone for {period:.0f} s"
        self._left_alone = left_alone
        return tuple(
            replace(
                host,
                errors=self._errors.get(host.name, 0),
                why_unused=left_alone.get(host.name, ""),
                lost=host.name in left_alone,
            )
            for host in hosts
        )


def client_state(folder: str, key: Key, now: float) -> ClientState | None:
    """Read the state that the client `key` reports at Unix time `now`; None if there is no valid one.

    The file must belong to this user, have exactly the size and format that distcc writes, and be about this very
    process.
    """
    try:
        fd = os.open(os.path.join(folder, "state", f"binstate_{key[0]}"), os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    try:
        found = os.fstat(fd)
        if not stat.S_ISREG(found.st_mode) or found.st_size != STATE.size or found.st_uid != os.geteuid():
            return None
        if found.st_mtime < start_wall(key[1], now) - EARLY:
            return None  # left by an earlier client with this pid
        data = os.read(fd, STATE.size)
    except OSError:
        return None
    finally:
        os.close(fd)
    return parse_state(data, key[0])


def parse_state(data: bytes, pid: int) -> ClientState | None:
    """Parse a state file; None if it has another format or is about another process."""
    if len(data) != STATE.size:
        return None
    size, magic, about, _file, host, _slot, phase = STATE.unpack(data)
    if (size, magic, about) != (STATE.size, MAGIC, pid):
        return None
    return ClientState(phase, clean(host.split(b"\0", 1)[0].decode(errors="replace"), MAX_NAME))


def parse_hosts(text: str) -> tuple[RemoteHost, ...]:
    """Parse the list that `distcc --show-hosts` prints, without this machine; skip lines that are not hosts."""
    slots: dict[str, int] = {}
    for line in text.splitlines()[:MAX_HOSTS]:
        match = (_SSH_HOST if "@" in line.partition(",")[0] else _TCP_HOST).fullmatch(line.strip())
        if match is None or match["name"] in HERE or match["name"].startswith("--"):
            continue
        name = clean(match["name"].strip("[]"), MAX_NAME)
        number = int(match["slots"][:6]) if match["slots"] else DEFAULT_SLOTS
        slots[name] = min(MAX_SLOTS, slots.get(name, 0) + number)
    return tuple(RemoteHost(name, number) for name, number in slots.items())


DEFAULT_SLOTS = 4
"""Jobs that distcc sends to a host without a given number (hosts.c)."""


def _merged(lists: Iterable[tuple[RemoteHost, ...]]) -> tuple[RemoteHost, ...]:
    """Return the hosts of several lists, each once: a lock per slot limits all clients of one folder together."""
    hosts: dict[str, RemoteHost] = {}
    for listed in lists:
        for host in listed:
            before = hosts.get(host.name)
            hosts[host.name] = host if before is None or before.slots < host.slots else before
    return tuple(hosts.values())


def _failures(folder: str) -> list[tuple[str, float]]:
    """Return the hosts that have failed, and when, in Unix seconds."""
    try:
        with os.scandir(os.path.join(folder, "lock")) as entries:
            named = [(match, e) for e in entries if (match := _BACKOFF.fullmatch(e.name)) is not None]
            return [
                ((match["tcp"] or match["ssh"])[:MAX_NAME], entry.stat(follow_symlinks=False).st_mtime)
                for match, entry in named[:MAX_HOSTS]
            ]
    except OSError:
        return []


def _seconds(text: str) -> float:
    return float(text) if text.isascii() and text.isdecimal() and len(text) < 7 else BACKOFF_SECONDS


def _environment(pid: int, proc_root: Path) -> dict[str, str]:
    """Return the variables of a job's environment that matter to distcc."""
    data = read_all(f"{proc_root}/{pid}/environ", MAX_CMDLINE) or b""
    pairs = (os.fsdecode(part).partition("=") for part in data.split(b"\0"))
    return {name: value for name, _, value in pairs if _KEPT.fullmatch(name)}
