"""Standby supervisors: ancestors of the supervisor that wait for its death and take its place. Stdlib only.

Each is a copy of the program from before it did anything, forked without exec, so that little memory is private. As a
child subreaper it inherits what a killed supervisor leaves behind, including the build's exit status. It finds the
supervisor's state in shared memory, which a full disk cannot affect. Unaware of builds.
"""

import ctypes
import mmap
import os
import signal
import struct
import zlib
from typing import NamedTuple

from stoker.contract.process import Key, key_of, lives
from stoker.contract.strict_json import dump, parse
from stoker.contract.supervisor_files import Run

STANDBYS = 2
"""How many supervisors may be killed before only the engine is left to start a watchdog."""

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class SupervisorState(NamedTuple):
    """Where a supervisor is in its build.

    `begun_ticks` is when the command was forked, in clock ticks since boot. The time `asked_at`, at which the engine
    was asked about a failure, and `kill_at`, after which a build that is being stopped is killed, are monotonic.
    """

    started: float
    run: Run
    begun_ticks: int
    past: tuple[Run, ...]
    build_pid: int
    last_command: Key
    exit_code: int
    build_signal: int | None
    asked_at: float | None
    kill_at: float | None


class Will(NamedTuple):
    """What a supervisor leaves to its replacement; no `progress` before there is a build."""

    supervisor: Key
    progress: SupervisorState | None = None


class Note:
    """A `Will` in memory that supervisor and standbys share.

    There are two copies, written alternately: a writer that is killed halfway spoils only one.
    """

    _HEAD = struct.Struct("=QII")  # number, length, checksum
    _ROOM = 2**20
    """Bytes for each copy; untouched pages cost nothing."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 2 * self._ROOM)
        self._number = 0
        self._written = b""

    def write(self, will: Will) -> None:
        """Store this; does nothing if nothing has changed."""
        data = dump(will)
        if data == self._written:
            return
        self._number += 1
        at = self._number % 2 * self._ROOM
        self._memory[at + self._HEAD.size : at + self._HEAD.size + len(data)] = data
        self._HEAD.pack_into(self._memory, at, self._number, len(data), zlib.crc32(data))
        self._written = data

    def read(self) -> Will | None:
        """Return what was stored last; None if nothing was."""
        copies = [copy for copy in map(self._copy, (0, self._ROOM)) if copy is not None]
        if not copies:
            return None
        self._number, data = max(copies)
        return parse(Will, data, "the note")

    def _copy(self, at: int) -> tuple[int, bytes] | None:
        number, length, checksum = self._HEAD.unpack_from(self._memory, at)
        data = self._memory[at + self._HEAD.size : at + self._HEAD.size + length]
        return (number, data) if number and zlib.crc32(data) == checksum else None


def stand_by(note: Note, awake: tuple[signal.Signals, ...]) -> list[Key]:
    """Fork standbys above this process, as many as possible, and continue in the lowest one, the supervisor.

    Also returns, later, in a standby that has to take the supervisor's place. Returns the processes above, nearest
    first. The signals `awake` are blocked: what was sent to a standby is pending when it takes over.
    """
    above: list[Key] = []
    signal.pthread_sigmask(signal.SIG_BLOCK, awake)
    for _ in range(STANDBYS):
        become_subreaper()
        try:
            child = os.fork()
        except OSError:  # no process left: do without
            break
        if child:
            _outlive(child, note)
            break
        above.insert(0, key_of(os.getppid()))
    become_subreaper()
    if note.read() is None:  # or the death of a standby above could be taken for ours
        note.write(Will(key_of(os.getpid())))
    return above


def _outlive(child: int, note: Note) -> None:
    """Return when the supervisor, and every standby between it and us, was killed; exit when they exit normally.

    Continues a supervisor that is stopped: nobody else would notice.
    """
    standby = key_of(child)
    while True:
        signal.sigwait({signal.SIGCHLD})
        supervisor = (note.read() or Will(standby)).supervisor
        for pid in {child, supervisor[0]}:
            _hear(pid)
        if not any(map(lives, {standby, supervisor})):
            return


def _hear(pid: int) -> None:
    """Follow a child of ours that has stopped or ended by itself."""
    try:
        news = os.waitid(os.P_PID, pid, os.WEXITED | os.WSTOPPED | os.WNOHANG)
    except ChildProcessError:  # its parent is a standby below us
        return
    if news is not None and news.si_code == os.CLD_STOPPED:
        os.kill(pid, signal.SIGCONT)
    elif news is not None and news.si_code == os.CLD_EXITED:
        os._exit(news.si_status)


def become_subreaper() -> None:
    """Make orphans of the build our children instead of init's, so that stopping finds them (prctl(2)). A child does
    not inherit this."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
