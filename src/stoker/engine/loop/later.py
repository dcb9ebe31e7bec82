"""Loads what an engine needs only after its build has started, while the build's tools start beside it.

A build waits for its engine, so the engine loads these once it has announced that it is ready. At once, and not when it
needs them: the package may be upgraded while a build runs for hours, and one engine must not mix two versions. Nothing
that is needed when memory is short belongs here.
"""

from __future__ import annotations

import contextlib
import importlib
import threading

MODULES = ("stoker.engine.jobs.ask_processes", "stoker.sense.remote.readers")


def load_later() -> None:
    """Load them in a thread. What cannot be loaded now is loaded again by who needs it, and the error is theirs."""
    with contextlib.suppress(RuntimeError):  # no more threads can be started
        threading.Thread(target=_load, name="later", daemon=True).start()


def _load() -> None:
    with contextlib.suppress(ImportError, MemoryError, OSError):
        for name in MODULES:
            importlib.import_module(name)
