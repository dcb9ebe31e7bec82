"""Commands that install what is missing, by package manager. Pure.

Unaware of whether anything is missing.
"""

from __future__ import annotations

from collections.abc import Mapping

_INSTALL: Mapping[str, str] = {
    "apt-get": "apt-get install",
    "dnf": "dnf install",
    "zypper": "zypper install",
    "pacman": "pacman -S",
    "apk": "apk add",
}
MANAGERS = tuple(_INSTALL)

_SEARCH: Mapping[str, str] = {
    "apt-get": "apt-file search -x '/{0}$'",
    "dnf": "dnf provides '*/{0}'",
    "zypper": "zypper search --provides --file-list '*/{0}'",
    "pacman": "pacman -F {0}",
    "apk": "apk search -a {0}",
}

_PACKAGES: Mapping[str, Mapping[str, str]] = {
    "c++": {"apt-get": "build-essential", "pacman": "base-devel", "apk": "build-base", "": "gcc-c++"},
    "python headers": {"apt-get": "python3-dev", "pacman": "python", "apk": "python3-dev", "": "python3-devel"},
    "ninja": {"apt-get": "ninja-build", "dnf": "ninja-build", "": "ninja"},
}
"""What packages are called where they are not called as the thing itself; "" is for all other managers."""


PACKAGES: Mapping[str, str] = {"yaml": "pyyaml", "PIL": "pillow", "skbuild": "scikit-build", "Cython": "cython"}
"""Python packages that are not called as the module that they bring."""


def install(thing: str, manager: str) -> str:
    """Return the command that installs a thing; with an unknown manager, words that say what to install."""
    names = _PACKAGES.get(thing, {})
    package = names.get(manager) or names.get("") or thing
    return f"{_INSTALL[manager]} {package}" if manager in _INSTALL else f"install {thing} with the system's packages"


def find_package(file: str, manager: str) -> str:
    """Return the command that finds which package holds a file."""
    search = _SEARCH.get(manager)
    return search.format(file.rsplit("/", 1)[-1]) if search else f"install the package that holds {file}"
