"""The socket as a file: created private, taken over from a dead engine, never from a living one.

Unaware of what is sent over it.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import socket
import struct
from asyncio.trsock import TransportSocket
from collections.abc import Iterator
from pathlib import Path

from stoker.config.paths import private_dir

BACKLOG = 64


class EngineAliveError(Exception):
    """Another engine answers on this socket."""


class Endpoint:
    """One listening Unix socket at `path`, in a folder that only its owner may enter."""

    def __init__(self, path: Path, allowed_uid: int | None = None) -> None:
        self.path = path
        self._allowed = {0, os.getuid() if allowed_uid is None else allowed_uid}
        self._identity: tuple[int, int] | None = None

    def allows(self, uid: int) -> bool:
        """Say whether a process of this user may connect: the owner and root, who could read our memory anyway."""
        return uid in self._allowed

    def open(self) -> socket.socket:
        """Bind and listen; raises EngineAliveError, UnsafeFolderError, or OSError."""
        folder = private_dir(self.path.parent)
        temporary = folder / f".{os.getpid()}"
        listening = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            with _lock(folder):
                self._refuse_to_replace_the_living()
                temporary.unlink(missing_ok=True)
                # Nobody else can enter the folder, so the mode before chmod is nobody's; the rename makes it appear
                # complete, and replaces what a dead engine left.
                listening.bind(str(temporary))
                temporary.chmod(0o600)
                listening.listen(BACKLOG)
                listening.settimeout(0)
                info = temporary.stat()
                temporary.replace(self.path)
        except BaseException:
            listening.close()
            raise
        self._identity = (info.st_dev, info.st_ino)
        return listening

    def _refuse_to_replace_the_living(self) -> None:
        if answers(self.path):
            raise EngineAliveError(f"another engine answers on {self.path}")

    def close(self) -> None:
        """Remove the socket's file, if it is still ours."""
        if self._identity is None:
            return
        with contextlib.suppress(OSError), _lock(self.path.parent):
            info = self.path.stat()
            if (info.st_dev, info.st_ino) == self._identity:
                self.path.unlink()
        self._identity = None


def peer_uid(connected: socket.socket | TransportSocket) -> int:
    """Return the user of the process at the other end (SO_PEERCRED, unix(7))."""
    credentials = connected.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, struct.calcsize("3i"))
    _pid, uid, _gid = struct.unpack("3i", credentials)
    return int(uid)


def answers(path: Path) -> bool:
    """Say whether somebody listens at `path`."""
    with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as probe:
        probe.settimeout(0)
        try:
            probe.connect(str(path))
        except BlockingIOError:
            return True  # its backlog is full: busy, but there
        except OSError:
            return False
        return True


@contextlib.contextmanager
def _lock(folder: Path) -> Iterator[None]:
    """Let one engine at a time check and replace; the kernel releases a dead one's lock.

    If the disk cannot lock, such as Lustre without -o flock, go on without.
    """
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        with contextlib.suppress(OSError):
            fcntl.flock(fd, fcntl.LOCK_EX)
        yield
    finally:
        os.close(fd)
