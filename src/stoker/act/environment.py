"""The environment that a build was started in, kept so that the build can be gone on with from another login.

What looks like a secret is not written down: who goes on with the build brings it along. Unaware of builds' contents.
"""

from __future__ import annotations

import json
import os
import re
from collections.abc import Mapping
from pathlib import Path

from stoker.config.regular import open_regular

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|CREDENTIAL|PRIVATE|COOKIE|(?:^|_)(?:KEY|AUTH|PAT|PWD_?FILE|CERT)(?:_|$)|API_?KEY"
)
_SECRET_VALUE = re.compile(r"://[^/@\s]*:[^/@\s]*@|-----BEGIN|\b(?:ghp|gho|glpat|sk|hf|xox[bp])[_-]\w{8}")
"""A password in an address (https_proxy, PIP_INDEX_URL), a private key, and the tokens that say what they are."""

_OF_LOGIN = re.compile(
    r"SSH_\w+|XDG_\w+|DBUS_\w+|DISPLAY|WAYLAND_DISPLAY|TERM|TERM_\w+|COLORTERM|COLUMNS|LINES|TMUX\w*|STY|WINDOWID|"
    r"HOME|USER|LOGNAME|SHLVL|OLDPWD|_|STOKER_\w+|NO_COLOR|CI"
)
"""What belongs to the login, and where stoker keeps its files, rather than to the build."""

MAX_BYTES = 4 * 2**20


def is_kept(name: str, value: str) -> bool:
    """Whether a variable is the build's own, and no secret."""
    if _OF_LOGIN.fullmatch(name):
        return False
    return not _SECRET_NAME.search(name.upper()) and not _SECRET_VALUE.search(value)


def save_environment(path: Path, environ: Mapping[str, str]) -> None:
    """Write down what is kept of it. Raises OSError."""
    kept = {name: value for name, value in environ.items() if is_kept(name, value)}
    with open(path, "w", encoding="ascii", opener=lambda p, flags: os.open(p, flags, 0o600)) as file:
        json.dump(kept, file)


def load_environment(path: Path, present: Mapping[str, str]) -> dict[str, str] | None:
    """The environment to go on in: the build's own variables, the rest from the `present` login; None if it is gone."""
    try:
        with open_regular(path) as file:
            saved = json.loads(file.read(MAX_BYTES))
    except (OSError, ValueError):
        return None
    if not isinstance(saved, dict) or not all(isinstance(value, str) for value in saved.values()):
        return None
    return {name: value for name, value in present.items() if not is_kept(name, value)} | saved
