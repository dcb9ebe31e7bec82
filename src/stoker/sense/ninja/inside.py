"""Moves a short-lived process into a container, with no more rights there than the container's own processes have.

For a dry run: the container's ninja is a foreign program. It is started with the container's limits of rights, a
scratch folder in memory that nobody else sees, and no file of the host's. Unaware of plans.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import re
from pathlib import Path
from typing import NamedTuple

NEWNS, NEWUSER, NEWPID = 0x20000, 0x10000000, 0x20000000
"""CLONE_NEW* of linux/sched.h."""

MS_NOSUID, MS_NODEV, MS_REC, MS_PRIVATE = 0x2, 0x4, 0x4000, 0x40000
"""linux/mount.h."""

SET_DUMPABLE, CAPBSET_DROP, SET_NO_NEW_PRIVS = 4, 24, 38
"""PR_* of linux/prctl.h."""

LAST_CAPABILITY = 63

PLACES = ("/sys", "/mnt", "/media", "/srv")
"""Where the scratch folder may be mounted, for us alone: folders that containers have and builds do not use."""

SCRATCH_SIZE = "1g"

_RIGHTS = re.compile(rb"^(Uid|Gid|Groups|CapBnd):[ \t]*([0-9a-f]*)(?:\t\d+)*([ \d]*)$", re.MULTILINE)
_LIBC = ctypes.CDLL(None, use_errno=True)


class _Rights(NamedTuple):
    """What a process may do (proc_pid_status(5)), in the numbers of the user namespace in which that was read."""

    user: int
    group: int
    groups: tuple[int, ...]
    bounding: int


def enter(pid: int) -> Path:
    """Enter the container of process `pid`: its files, users, processes and rights. Return a private scratch folder
    there.

    A child process continues after this call, and its parent ends as it does. No other process there can look at it.
    Raises OSError.
    """
    _call("prctl", SET_DUMPABLE, 0, 0, 0, 0)
    # Descriptors first: after the first of these steps the others could not be found.
    root = os.open(f"/proc/{pid}/root", os.O_PATH | os.O_DIRECTORY | os.O_CLOEXEC)
    kinds = [(kind, flag) for kind, flag in (("pid", NEWPID), ("mnt", NEWNS)) if not _shares(pid, kind)]
    spaces = [(os.open(f"/proc/{pid}/ns/{kind}", os.O_RDONLY | os.O_CLOEXEC), flag) for kind, flag in kinds]
    if not _shares(pid, "user"):
        users = os.open(f"/proc/{pid}/ns/user", os.O_RDONLY | os.O_CLOEXEC)
        _call("setns", users, NEWUSER)
    rights = _rights_of(pid)
    for fd, flag in spaces:
        _call("setns", fd, flag)
    os.fchdir(root)
    os.chroot(".")
    _go_on_in_child()
    scratch = _scratch()
    os.chown(scratch, rights.user, rights.group)
    _take(rights)
    return scratch


def _call(name: str, *arguments: object) -> None:
    """Call a function of the C library that returns -1 when it fails. Raises OSError."""
    if getattr(_LIBC, name)(*arguments) == -1:
        number = ctypes.get_errno()
        raise OSError(number, f"cannot enter the container ({name}: {os.strerror(number)})")


def _rights_of(pid: int) -> _Rights:
    found = {name: (first, rest) for name, first, rest in _RIGHTS.findall(Path(f"/proc/{pid}/status").read_bytes())}
    groups = b" ".join(found[b"Groups"]).split()
    user, group, bounding = (found[name][0] for name in (b"Uid", b"Gid", b"CapBnd"))
    return _Rights(int(user), int(group), tuple(map(int, groups)), int(bounding, 16))


def _shares(pid: int, kind: str) -> bool:
    return os.stat(f"/proc/{pid}/ns/{kind}").st_ino == os.stat(f"/proc/self/ns/{kind}").st_ino


def _go_on_in_child() -> None:
    """Fork: only a child is in another PID namespace."""
    child = os.fork()
    if child:
        _, status = os.waitpid(child, 0)
        os._exit(os.waitstatus_to_exitcode(status) & 0xFF)


def _scratch() -> Path:
    """Mount a folder in memory, in a copy of the container's mounts that ends with us."""
    _call("unshare", NEWNS)
    _call("mount", None, b"/", None, MS_REC | MS_PRIVATE, None)
    place = next((name for name in PLACES if os.path.isdir(name)), None)
    if place is None:
        raise OSError(errno.ENOENT, f"the container has none of {', '.join(PLACES)} to work in")
    options = f"mode=0700,size={SCRATCH_SIZE}".encode()
    _call("mount", b"tmpfs", place.encode(), b"tmpfs", MS_NOSUID | MS_NODEV, options)
    return Path(place)


def _take(rights: _Rights) -> None:
    """What is executed from now on has this user, these groups and at most these capabilities."""
    for capability in range(LAST_CAPABILITY + 1):
        if not rights.bounding >> capability & 1:
            with contextlib.suppress(OSError):  # for capabilities unknown to this kernel
                _call("prctl", CAPBSET_DROP, capability, 0, 0, 0)
    _call("prctl", SET_NO_NEW_PRIVS, 1, 0, 0, 0)
    with contextlib.suppress(PermissionError):  # a user namespace may forbid it: then its groups are ours
        os.setgroups(rights.groups)
    os.setresgid(rights.group, rights.group, rights.group)
    os.setresuid(rights.user, rights.user, rights.user)
