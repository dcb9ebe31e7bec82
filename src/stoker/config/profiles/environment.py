"""What a profile adds to a person's environment: one answer for the build that runs and for whoever examines it before.

Unaware of builds and of what a variable means.
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass

from stoker.config.profiles.profile import Profile

CACHES = ("ccache", "sccache")
"""Compiler caches that are looked for, in this order: ccache needs no daemon, whose compilers nobody could hold."""

LAUNCHERS = tuple(f"CMAKE_{language}_COMPILER_LAUNCHER" for language in ("C", "CXX", "CUDA"))
"""Where CMake learns of a compiler cache when it configures (cmake-env-variables(7))."""


@dataclass(frozen=True, slots=True)
class Added:
    """Variables that are added to a person's environment, and what the person should know about it."""

    variables: Mapping[str, str]
    notes: tuple[str, ...]

    def to(self, environ: Mapping[str, str]) -> dict[str, str]:
        """The environment that all steps of a build have."""
        return {**environ, **self.variables}


def added_by(profile: Profile, environ: Mapping[str, str]) -> Added:
    """What `profile` adds for all steps; `environ` is the person's own environment."""
    notes: list[str] = []
    variables = {**_launchers(profile, environ, notes), **_own(profile, environ, notes)}
    return Added(variables, tuple(notes))


def _own(profile: Profile, environ: Mapping[str, str], notes: list[str]) -> dict[str, str]:
    """The profile's variables. A person's own stay, unless the value comes from their --set; empty ones set nothing."""
    added: dict[str, str] = {}
    for name, value in profile.env.items():
        if name in profile.chosen or name not in environ:
            added |= {name: value} if value else {}
        elif environ[name] != value and value:
            notes.append(f"{name}={environ[name]} is yours and stays; the profile has {value!r}")
    return added


def _launchers(profile: Profile, environ: Mapping[str, str], notes: list[str]) -> dict[str, str]:
    """CMake's variables for the profile's compiler cache."""
    if profile.cache == "none":
        return {}
    wanted = CACHES if profile.cache == "auto" else (profile.cache,)
    tool = next((tool for tool in wanted if shutil.which(tool, path=environ.get("PATH"))), None)
    if tool is None:
        if profile.cache != "auto":
            notes.append(f"{profile.cache} is not on PATH: nothing is cached")
        return {}
    return {name: tool for name in LAUNCHERS if name not in environ}
