"""A build's folder for temporary files in a tmpfs: creates, finds and removes it. Stdlib only, like the supervisor.

Created as FOLDER/tmp, which is the build's TMPDIR, next to FOLDER/build, which names the build's own folder and the PID
namespace: containers may share a tmpfs and do not see each other's processes. Does not choose the file system or
measure the contents. Removal follows no links, leaves mounts alone, and touches nothing outside FOLDER.
"""

import contextlib
import os
import stat
from collections.abc import Iterable, Iterator

PREFIX = "stoker-ram-"
TMP, OWNER = "tmp", "build"

MAX_NAME = 8192
"""Bytes of the file that names a build's folder: a path has at most 4096 (PATH_MAX)."""


def make(parent: str, build: str) -> str:
    """Create a private folder in `parent` for the build whose folder is `build`, and return it. Raises OSError."""
    folder = os.path.join(
        parent, PREFIX + os.urandom(6).hex()
    )  # not tempfile: it takes a MiB of the supervisor's memory
    os.mkdir(folder, 0o700)
    with open(os.path.join(folder, OWNER), "wb") as file:
        file.write(os.fsencode(f"{_namespace()}\n{build}"))
    os.mkdir(os.path.join(folder, TMP), 0o700)
    return folder


def tmpdir(folder: str) -> str:
    """Return the TMPDIR in it."""
    return os.path.join(folder, TMP)


def found_in(parent: str) -> Iterator[tuple[str, str]]:
    """Return our folders of this kind in `parent`, each with the folder of its build.

    Not those of builds in other PID namespaces, which would look dead to us.
    """
    with contextlib.suppress(OSError), os.scandir(parent) as entries:
        for entry in entries:
            if not entry.name.startswith(PREFIX):
                continue
            with contextlib.suppress(OSError):
                os.close(_opened(entry.path))
                with open(os.path.join(entry.path, OWNER), "rb") as file:
                    namespace, _, build = os.fsdecode(file.read(MAX_NAME)).partition("\n")
                if namespace == _namespace():
                    yield entry.path, build


def users(folder: str, pids: Iterable[int] | None = None) -> list[int]:
    """Return those of the processes (None: of all) whose TMPDIR is in there: daemons that the build has started.

    Not those of other users, whose environment we may not read.
    """
    wanted = b"TMPDIR=" + os.fsencode(tmpdir(folder))  # or a folder in it that a build script has created for itself
    found = []
    for pid in pids if pids is not None else [int(name) for name in os.listdir("/proc") if name.isdigit()]:
        with contextlib.suppress(OSError), open(f"/proc/{pid}/environ", "rb") as file:
            if any(v == wanted or v.startswith(wanted + b"/") for v in file.read().split(b"\0")):
                found.append(pid)
    return found


def remove(folder: str) -> bool:
    """Remove it with all its contents; False if something is left that belongs to another user or is mounted there."""
    try:
        fd = _opened(folder)
    except FileNotFoundError:
        return True
    except OSError:
        return False
    try:
        _empty(fd)
        os.rmdir(folder)  # follows no link, and does not take a folder that is not empty
    except OSError:
        return False
    finally:
        os.close(fd)
    return True


def clear(folder: str) -> None:
    """Remove all temporary files: killed compilers leave theirs behind, and they hold memory."""
    with contextlib.suppress(OSError):
        fd = _opened(folder)
        try:
            inner = os.open(TMP, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        finally:
            os.close(fd)
        try:
            _empty(inner)
        finally:
            os.close(inner)


def _namespace() -> str:
    return os.readlink("/proc/self/ns/pid")


def _opened(folder: str) -> int:
    """Return a file descriptor of a folder that is ours and of this kind; raises OSError for anything else."""
    fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
    about = os.fstat(fd)
    if os.path.basename(folder).startswith(PREFIX) and about.st_uid == os.getuid() and not about.st_mode & 0o077:
        return fd
    os.close(fd)
    raise PermissionError(f"{folder} is not ours")


def _empty(top: int) -> None:
    """Remove everything in the open folder.

    Subfolders are first moved up into `top`, so that depth costs no recursion, and no name is ever resolved through a
    folder that somebody else may replace by a link. A folder with a mount on it cannot be moved, and stays.
    """
    stuck = {""}
    while names := [name for name in os.listdir(top) if name not in stuck]:
        stuck.update([_still_there(name, top) for name in names])


def _still_there(name: str, top: int) -> str:
    """Remove what has this name in the folder `top`; return the name under which it is still there, empty if it has
    gone."""
    try:
        if not _is_folder(name, top):
            os.unlink(name, dir_fd=top)
            return ""
        name = _moved_up(name, top, top)
        _flatten(name, top)
        os.rmdir(name, dir_fd=top)
    except FileNotFoundError:
        return ""
    except OSError:
        return name
    return ""


def _flatten(name: str, top: int) -> None:
    """Unlink the files of the folder `name` in `top`, and move its folders up into `top`."""
    fd = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=top)
    try:
        for inner in os.listdir(fd):
            with contextlib.suppress(OSError):
                if _is_folder(inner, fd):
                    _moved_up(inner, fd, top)
                else:
                    os.unlink(inner, dir_fd=fd)
    finally:
        os.close(fd)


def _is_folder(name: str, parent: int) -> bool:
    return stat.S_ISDIR(os.lstat(name, dir_fd=parent).st_mode)


def _moved_up(name: str, parent: int, top: int) -> str:
    """Move a folder into `top`, and return its new name. Raises OSError, in particular for a mount point."""
    new = os.urandom(12).hex()
    try:
        os.rename(name, new, src_dir_fd=parent, dst_dir_fd=top)
    except PermissionError:  # some tools write-protect their folders, which then cannot be moved (rename(2))
        handle = os.open(name, os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=parent)
        try:
            os.chmod(f"/proc/self/fd/{handle}", 0o700)
        finally:
            os.close(handle)
        os.rename(name, new, src_dir_fd=parent, dst_dir_fd=top)
    return new
