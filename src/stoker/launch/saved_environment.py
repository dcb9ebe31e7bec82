"""The environment that a build was started in, kept so that the build can be resumed from another login.

Variables that look like secrets, by name or value, are not written down: the user who resumes the build provides them.
That is best effort. Unaware of builds' contents.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from stoker.config.paths import private_opener
from stoker.contract.spec_file import SavedEnvironment
from stoker.contract.strict_json import dump, load_or_none

_SECRET_NAME = re.compile(
    r"TOKEN|SECRET|PASSW|PASSPHRASE|PASS(?:_|$)|CREDENTIAL|PRIVATE|COOKIE|API_?KEY|UNSEAL|LDAP_BIND|"
    r"(?:^|_)(?:KEY|AUTH|PAT|PWD_?FILE|CERT|PW|JWT|DSN|CREDS?)(?:_|$)|_PWD(?:_|$)|GIT_CONFIG_(?:COUNT$|VALUE_\d)"
)
"""GIT_CONFIG_COUNT belongs to the values that it counts: git refuses to run without one of them."""

_SECRET_VALUE = re.compile(
    r"://[^/@\s]*:[^/@\s]*@|(?<!ssh)://[^/@\s]+@|-----BEGIN|\b(?:ghp|gho|glpat|sk|hf|xox[bp])[_-]\w{8}|"
    r"(?i:authorization:|passw(?:or)?d=)|(?:^|\s)(?:-u|--user)[=\s]?[^\s:]+:\S"
)
"""A password or a key in an address (https_proxy, PIP_INDEX_URL), a private key, tokens with a recognisable prefix, a
header, and values of options for java and curl. The user of an ssh address is not a secret."""

_OF_LOGIN = re.compile(
    r"SSH_\w+|XDG_\w+|DBUS_\w+|DISPLAY|WAYLAND_DISPLAY|TERM|TERM_\w+|COLORTERM|COLUMNS|LINES|TMUX\w*|STY|WINDOWID|"
    r"HOME|USER|LOGNAME|SHLVL|OLDPWD|_|STOKER_\w+|NO_COLOR|CI"
)
"""Variables of the login, and of where stoker keeps its files, rather than of the build."""


def is_kept(name: str, value: str) -> bool:
    """Say whether a variable is the build's own, and not a secret."""
    if _OF_LOGIN.fullmatch(name):
        return False
    return not _SECRET_NAME.search(name.upper()) and not _SECRET_VALUE.search(value)


@dataclass(frozen=True, slots=True)
class Kept:
    """The environment to continue in, and the names of the secrets that the build had and that are missing now."""

    environ: dict[str, str]
    missing: tuple[str, ...]


def save_environment(
    path: Path, environ: Mapping[str, str], missing: Iterable[str] = (), named: Collection[str] = ()
) -> None:
    """Write down the variables that are kept, and the names of the secrets among them and of those `missing`. Raises
    OSError.

    `named` are variables that the user has named as secrets, whatever they look like.
    """
    kept = {name: value for name, value in environ.items() if is_kept(name, value) and name not in named}
    secrets = {name for name in environ if name not in kept and not _OF_LOGIN.fullmatch(name)}
    with open(path, "wb", opener=private_opener) as file:
        file.write(dump(SavedEnvironment(kept, tuple(sorted(secrets.union(missing))))))


def load_environment(path: Path, present: Mapping[str, str]) -> Kept | None:
    """Return the build's own variables, the rest from the `present` login; None if they are gone."""
    saved = load_or_none(SavedEnvironment, path)
    if saved is None:
        return None
    environ = {name: value for name, value in present.items() if not is_kept(name, value)} | dict(saved.kept)
    return Kept(environ, tuple(name for name in saved.left_out if name not in environ))
