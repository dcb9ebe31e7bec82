"""Tells when one of a few files may have changed: by the kernel's word, and by a look now and then.

For a thread of its own: reading may take long where a disk is far away. Unaware of what is in the files.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Event

STEP_MS = 250
"""Without news for so long, a burst of changes is over: editors write, rename and remove within milliseconds. Also how
often watchfiles' thread wakes up: 0.2 ms of CPU time a second."""

POLL_MS = 1000
"""A look at least this often: file servers tell nothing of what another machine has written, a folder that does not
exist cannot be watched, and a file may change while the watch is being set up. 0.2 ms of CPU time each."""


def watch_files(places: Callable[[], Iterable[Path]], stop: Event) -> Iterator[None]:
    """Yields whenever one of the files that `places` names may have changed, been removed or appeared, until `stop`.

    The first time at once. Folders are watched rather than files: whoever replaces a file by renaming makes another.
    """
    yield
    while not stop.is_set():
        folders = _folders(places())
        for _ in _changes(folders, places, stop):
            yield
            if _folders(places()) != folders:
                break


def _changes(folders: dict[str, tuple[int, int]], places: Callable[[], Iterable[Path]], stop: Event) -> Iterator[None]:
    """Until `stop`, or until these folders cannot be watched any more."""
    if not folders:
        stop.wait(POLL_MS / 1000)
        yield
        return
    from watchfiles import watch

    def is_one(_change: object, path: str) -> bool:
        return path in names

    names = _names(places())
    try:
        for _ in watch(
            *folders,
            watch_filter=is_one,
            debounce=4 * STEP_MS,
            step=STEP_MS,
            stop_event=stop,
            rust_timeout=POLL_MS,
            yield_on_timeout=True,
            raise_interrupt=False,
            force_polling=False,
            recursive=False,
        ):
            yield
            names = _names(places())
    except OSError:  # no inotify instance or watch left for this user, or a folder has just gone
        stop.wait(POLL_MS / 1000)
        yield


def _folders(places: Iterable[Path]) -> dict[str, tuple[int, int]]:
    """The folders of all files and of what they point to, as far as they exist, each with what tells it from another
    that was made in its place."""
    folders: dict[str, tuple[int, int]] = {}
    for path in places:
        for folder in {os.path.dirname(path), os.path.dirname(os.path.realpath(path))}:
            try:
                info = os.stat(folder)
            except OSError:
                continue
            folders[folder] = info.st_dev, info.st_ino
    return folders


def _names(places: Iterable[Path]) -> frozenset[str]:
    return frozenset(name for path in places for name in (str(path), os.path.realpath(path)))
