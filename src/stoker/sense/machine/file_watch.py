"""Tells when one of a few files may have changed: by the kernel's word, and by a look now and then.

For a thread of its own: reading may take long where a disk is far away. Unaware of what is in the files.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from threading import Event

STEP_MS = 250
"""Without news for so long, a burst of changes is over: editors write, rename and remove within milliseconds. Also how
often watchfiles' thread wakes up: 0.2 ms of CPU time a second."""

POLL_MS = 1000
"""A look at least this often: file servers tell nothing of what another machine has written, a folder that does not
exist cannot be watched, and a file may change while the watch is being set up. 0.2 ms of CPU time each."""

CROWD = 50
"""Changes in one folder within a second, from which on it is only looked at: a /tmp in which compilers write costs
0.05 ms of CPU time for each of their files."""

_Folders = dict[str, tuple[int, int]]


def watch_files(places: Callable[[], Iterable[Path]], stop: Event) -> Iterator[None]:
    """Yields whenever one of the files that `places` names may have changed, been removed or appeared, until `stop`.

    The first time at once. Folders are watched rather than files: whoever replaces a file by renaming makes another.
    """
    crowded = set[str]()
    yield
    while not stop.is_set():
        folders = _folders(places())
        for changed in _changes([f for f in folders if f not in crowded and can_be_watched(f)], stop):
            yield
            counts = Counter(map(os.path.dirname, changed))
            crowded |= {folder for folder, count in counts.items() if count >= CROWD}
            if crowded & counts.keys() or _folders(places()) != folders:
                break


def _changes(folders: list[str], stop: Event) -> Iterator[list[str]]:
    """The paths that have changed in these folders, again and again until `stop`: none where it was only time to look.

    Ends when the folders cannot be watched any more.
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


def can_be_watched(folder: str) -> bool:
    """Whether watchfiles can be given this folder: names reach it as UTF-8 alone."""
    try:
        folder.encode()
    except UnicodeEncodeError:
        return False
    return True


def _folders(places: Iterable[Path]) -> _Folders:
    """The folders of all files and of what they point to, as far as they exist, each with what tells it from another
    that was made in its place."""
    folders: _Folders = {}
    for path in places:
        for folder in {os.path.dirname(path), os.path.dirname(os.path.realpath(path))}:
            try:
                info = os.stat(folder)
            except OSError:
                continue
            folders[folder] = info.st_dev, info.st_ino
    return folders
