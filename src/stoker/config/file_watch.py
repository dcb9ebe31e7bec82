"""Notices changes of a few files: by inotify (watchfiles), and by polling.

The program's only watcher: for the files that a running build follows, and for themes. It runs in its own thread, since
reading may take long if a disk is far away. Unaware of the files' contents.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterable, Iterator
from pathlib import Path
from threading import Event, Thread

STEP_MS = 250
"""A burst of changes is over when nothing has come for this long: editors write, rename and remove within milliseconds.
Also how often watchfiles' thread wakes up: 0.2 ms of CPU time a second."""

POLL_MS = 1000
"""Poll at least this often: file servers do not report what another machine has written, a folder that does not exist
cannot be watched, and a file may change while the watch is being set up. 0.2 ms of CPU time each."""

CROWD = 50
"""Changes in one folder within a second from which on it is only polled: in a /tmp where compilers write, each of their
files costs 0.05 ms of CPU time."""

Stamp = tuple[int, int, int, int]
"""Time of the last change in nanoseconds, size, device and inode of a file; NO_FILE where there is none."""

NO_FILE: Stamp = (0, 0, 0, 0)

_Folders = dict[str, tuple[int, int]]


def stamp_of(file: Path) -> Stamp:
    """Return what differs once the file has been written, replaced or removed."""
    try:
        info = os.stat(file)
    except OSError:
        return NO_FILE
    return info.st_mtime_ns, info.st_size, info.st_dev, info.st_ino


async def file_changes(places: Callable[[], Iterable[Path]]) -> AsyncGenerator[None, None]:
    """Yield like `watch_files`, for a coroutine. A thread that hangs on a file server is left behind at the end."""
    loop, news, stop = asyncio.get_running_loop(), asyncio.Event(), Event()

    def watch() -> None:
        for _ in watch_files(places, stop):
            with contextlib.suppress(RuntimeError):  # the loop has just been closed
                loop.call_soon_threadsafe(news.set)

    Thread(target=watch, name="file-watch", daemon=True).start()
    try:
        while True:
            await news.wait()
            news.clear()
            yield
    finally:
        stop.set()


def watch_files(places: Callable[[], Iterable[Path]], stop: Event) -> Iterator[None]:
    """Yield whenever one of the files that `places` names may have changed, been removed or appeared, until `stop`.

    Also yield at once. Folders are watched rather than files: replacing a file by renaming creates another.
    """
    crowded, folders = set[str](), _folders(places())
    yield
    while not stop.is_set():
        for changed in _changes([f for f in folders if f not in crowded and _can_be_watched(f)], stop):
            yield
            counts = Counter(map(os.path.dirname, changed))
            crowded |= {folder for folder, count in counts.items() if count >= CROWD}
            before, folders = folders, _folders(places())
            if crowded & counts.keys() or folders != before:
                break


def _changes(folders: list[str], stop: Event) -> Iterator[list[str]]:
    """Yield the paths that have changed in these folders until `stop`: none if it was only time to poll.

    End when the folders cannot be watched any more.
    """
    if not folders:
        stop.wait(POLL_MS / 1000)
        yield []
        return
    from watchfiles import watch

    try:
        for changes in watch(
            *folders,
            watch_filter=None,
            debounce=4 * STEP_MS,
            step=STEP_MS,
            stop_event=stop,
            rust_timeout=POLL_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=False,
            recursive=False,
        ):
            yield [path for _, path in changes]
    except (OSError, RuntimeError):
        # No inotify instance or watch is left for this user, or a folder has just gone; or a file was made whose name
        # is not UTF-8, which watchfiles takes for an error of its own.
        stop.wait(POLL_MS / 1000)
        yield []


def _can_be_watched(folder: str) -> bool:
    """Return whether watchfiles can be given this folder: names reach it as UTF-8 alone."""
    try:
        folder.encode()
    except UnicodeEncodeError:
        return False
    return True


def _folders(places: Iterable[Path]) -> _Folders:
    """Map the folders of all files and of what they point to, as far as they exist, to what distinguishes each from
    another that was made in its place."""
    folders: _Folders = {}
    for path in places:
        with contextlib.suppress(OSError):
            _add(folders, os.path.dirname(path))
            if os.path.islink(path):  # following all of its names takes 0.1 ms
                _add(folders, os.path.dirname(os.path.realpath(path)))
    return folders


def _add(folders: _Folders, folder: str) -> None:
    info = os.stat(folder)
    folders[folder] = info.st_dev, info.st_ino
