"""What a profile adds to the user's environment: the same answer for the running build and for the checks before it.

Unaware of builds and of what a variable means.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from stoker.config.profiles.fleet_variables import secret_names
from stoker.config.profiles.launchers import launcher_setup
from stoker.config.profiles.profile import Profile

NVCC_FLAGS = "NVCC_APPEND_FLAGS"
"""Flags that nvcc appends to those of its command."""

DEVICE_TIME = "-fdevice-time-trace -"
"""Has nvcc write its own trace beside the object; the dash stands for the object's name and .json."""


@dataclass(frozen=True, slots=True)
class Added:
    """Variables that are added to a person's environment, and what the person should know about it."""

    variables: Mapping[str, str]
    notes: tuple[str, ...]
    cache: str = ""
    """The compiler cache that was set up, empty for none."""
    secrets: tuple[str, ...] = ()
    """Variables of the person's environment that the profile names for secrets."""

    def to(self, environ: Mapping[str, str]) -> dict[str, str]:
        """Return the environment that all steps of a build have."""
        return {**environ, **self.variables}


def added_by(profile: Profile, environ: Mapping[str, str], folder: str) -> Added:
    """Return what `profile` adds for all steps of a build in `folder`; `environ` is the person's own environment."""
    notes: list[str] = []
    own = _own(profile, environ, notes)
    if profile.device_time:
        before = own.get(NVCC_FLAGS, environ.get(NVCC_FLAGS, ""))
        own[NVCC_FLAGS] = before if DEVICE_TIME in before else f"{before} {DEVICE_TIME}".strip()
    setup = launcher_setup(profile, {**environ, **own}, folder)
    return Added({**own, **(setup.variables or {})}, (*notes, *setup.notes), setup.tool, secret_names(profile))


def _own(profile: Profile, environ: Mapping[str, str], notes: list[str]) -> dict[str, str]:
    """Return the profile's variables without empty ones. A person's own stay, but for values from their --set."""
    added: dict[str, str] = {}
    for name, value in profile.env.items():
        if name in profile.chosen or name not in environ:
            added |= {name: value} if value else {}
        elif environ[name] != value and value:
            notes.append(f"{name}={environ[name]} is yours and stays; the profile has {value!r}")
    return added
