"""Chooses the notify command of a build. Unaware of when it is called."""

from __future__ import annotations

import shutil

from stoker.config.paths import settings_path
from stoker.launch.refusals import RequestError


def notify_command(given: str | None) -> str:
    """Return the one that was `given`, otherwise that of settings.yaml; empty for none. Raises RequestError."""
    command = _of_settings() if given is None else given
    if command and shutil.which("timeout") is None:
        raise RequestError("a notify command needs the program timeout, which limits its time; install coreutils")
    return command


def _of_settings() -> str:
    """Import it here: the reader of settings takes a while to load, and most users have none."""
    path = settings_path()
    if not path.exists():
        return ""
    from stoker.config.settings import load_settings

    return load_settings(path)[0].notify_command
