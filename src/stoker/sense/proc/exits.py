"""Notices the end of processes the moment it happens, by their pidfds.

Unaware of what the processes are.
"""

from __future__ import annotations

import asyncio
import os
from collections.abc import Callable

from stoker.contract.process import Key
from stoker.sense.proc.procfs import Notes


class ExitWatch:
    """Calls `ended` with a process's key when it has ended; needs a running event loop.

    Old containers refuse pidfds (seccomp), and descriptors may run out: such processes are left to the scans of the
    process table, and `notes` says so once.
    """

    def __init__(self, ended: Callable[[Key], None]) -> None:
        self.notes = Notes()
        self._ended = ended
        self._open: dict[Key, int] = {}

    def watch(self, key: Key) -> None:
        """Wait for the end of the process; one that has ended already is reported at the loop's next turn."""
        if key in self._open:
            return
        try:
            fd = os.pidfd_open(key[0])
        except ProcessLookupError:
            asyncio.get_running_loop().call_soon(self._ended, key)
            return
        except OSError as err:
            self.notes.say(f"cannot wait for processes (pidfd: {err.strerror}); the process table is read instead")
            return
        self._open[key] = fd
        asyncio.get_running_loop().add_reader(fd, self._readable, key)

    def forget(self, key: Key) -> None:
        """Stop waiting for it."""
        fd = self._open.pop(key, None)
        if fd is not None:
            asyncio.get_running_loop().remove_reader(fd)
            os.close(fd)

    def close(self) -> None:
        """Stop waiting for all."""
        for key in tuple(self._open):
            self.forget(key)

    def _readable(self, key: Key) -> None:
        self.forget(key)
        self._ended(key)
