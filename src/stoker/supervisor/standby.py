"""Standby supervisors: ancestors of the supervisor that wait for its death and take its place. Stdlib only: the
supervisor's half.

Each is a copy of the program from before it did anything, forked and not executed, so that little memory is its own.
As a child subreaper it inherits what a killed supervisor leaves behind, the build's exit status included. What the
supervisor had in mind it finds in a note in shared memory, which no full disk can refuse. Unaware of builds.
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
"""So many supervisors may be killed before only the engine is left to call for a watchdog."""

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h


class SupervisorState(NamedTuple):
    """Where a supervisor is in its build.

    `begun_ticks` is when the command was forked, in clock ticks since boot. The time `asked_at`, at which the engine
    was asked about a failure, and `kill_at`, from which on a build that is being stopped is killed, are monotonic.
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
    """What a supervisor leaves to whoever takes its place; no `progress` before there is a build."""

    supervisor: Key
    progress: SupervisorState | None = None


class Note:
    """A `Will` in memory that supervisor and standbys share.

    There are two copies, written in turn: a writer that is killed half-way spoils one.
    """

    _HEAD = struct.Struct("=QII")  # number, length, checksum
    _ROOM = 2**20
    """Bytes for each copy; pages that nobody writes cost nothing."""

    def __init__(self) -> None:
        self._memory = mmap.mmap(-1, 2 * self._ROOM)
        self._number = 0
        self._written = b""

    def write(self, will: Will) -> None:
        """Leave this behind; does nothing when nothing has changed."""
        data = dump(will)
        if data == self._written:
            return
        self._number += 1
        at = self._number % 2 * self._ROOM
        self._memory[at + self._HEAD.size : at + self._HEAD.size + len(data)] = data
        self._HEAD.pack_into(self._memory, at, self._number, len(data), zlib.crc32(data))
        self._written = data

    def read(self) -> Will | None:
        """Return what was left behind last, None if nothing was."""
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
    """Fork standbys above this process, as many as there is room for, and go on in the lowest one, the supervisor.

    Also returns, later, in a standby that has to take the supervisor's place. Gives the processes above, the nearest
    first. The signals `awake` are blocked: what was sent to a standby is pending when it takes over.
    """
    above: list[Key] = []
    signal.pthread_sigmask(signal.SIG_BLOCK, awake)
    for _ in range(STANDBYS):
        become_subreaper()
        try:
            child = os.fork()
        except OSError:  # no process to be had: then without
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
    """Return when the supervisor was killed, and every standby between it and us; end as they do when they end well.

    A supervisor that is stopped is set going: nobody else would hear of it.
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
    """Orphans of the build come to us, not to init, so that stopping finds them (prctl(2)). A child does not inherit
    this."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
