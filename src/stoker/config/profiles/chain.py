"""Finds profiles by their names, and merges one with those that it extends. Unaware of what the keys mean, except for
the few whose parts are merged.

The user's own folder takes precedence over the shipped one; a profile there may extend the shipped one of its own name.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from stoker.config.config_error import ConfigError, did_you_mean
from stoker.config.paths import config_dir, data_dir
from stoker.config.priors import FILE_NAME
from stoker.config.strict_yaml import Section, load

MAX_CHAIN = 8
"""Profiles that may extend one another; two or three are what a person can follow."""

MAX_PROFILES = 500
"""Files looked at in a folder."""

NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
"""What a profile or a step may be called."""

_MIXED = (
    *("variables", "env", "checks", "container", "tmp", "priors"),
    *("remote_cache", "dist", "distcc", "icecream"),
)
"""Mappings in which each key counts for itself."""


class NoSuchProfileError(Exception):
    """No profile is meant; the message is one line with the remedy."""


def profile_folders() -> tuple[Path, ...]:
    """Return where profiles are looked for, the first one's before the others'."""
    return config_dir() / "profiles", data_dir("profiles")


def profile_files() -> dict[str, Path]:
    """Return all profiles by name, in the order of their names; of two with one name the person's own."""
    profiles: dict[str, Path] = {}
    for folder in profile_folders():
        files = sorted(folder.glob("*.yaml"))[:MAX_PROFILES] if folder.is_dir() else []
        for file in files:
            if file.name != FILE_NAME and NAME.fullmatch(file.stem):
                profiles.setdefault(file.stem, file)
    return dict(sorted(profiles.items()))


def find_profile(wanted: str) -> Path:
    """Return the file of a profile, by its name or by a path that holds a slash. Raises NoSuchProfileError."""
    if "/" in wanted:
        if Path(wanted).is_file():
            return Path(wanted)
        raise NoSuchProfileError(f"no file {wanted!r}; a profile without a slash is looked for by its name")
    file = _named(wanted, None)
    if file is None:
        raise NoSuchProfileError(f"no profile {wanted!r}{did_you_mean(wanted, profile_files())}")
    return file


def read_chain(path: Path, errors: list[ConfigError], files: set[Path] | None = None) -> Section:
    """Return a profile's keys and those of all that it extends, in one section, which notes their faults.

    `files` takes every place that was looked at, a file being there or not. Raises ConfigError when the first file
    cannot be read at all.
    """
    looked = set[Path]() if files is None else files
    looked.add(path)
    chain = [load(path, errors)]
    while "extends" in chain[-1]:
        looked.update(_places(chain[-1].text("extends")))
        below = _extended([section.path for section in chain], chain[-1])
        try:
            chain += [load(below, errors)] if below is not None else []
        except ConfigError as err:
            errors.append(err)
            below = None
        if below is None:
            break
    merged = chain.pop()
    while chain:
        merged = _laid_over(chain.pop(), merged)
    return merged


def _named(name: str, but: Path | None) -> Path | None:
    """Return the file of a profile by its name, but for one file."""
    return next((file for file in _places(name) if file != but and file.is_file()), None)


def _places(name: str) -> tuple[Path, ...]:
    """Return where a profile of this name may be."""
    if not NAME.fullmatch(name) or f"{name}.yaml" == FILE_NAME:
        return ()
    return tuple(folder / f"{name}.yaml" for folder in profile_folders())


def _extended(files: Sequence[Path], section: Section) -> Path | None:
    """Return the file that a profile extends; None if that is a fault, which is noted."""
    name = section.text("extends")
    file = _named(name, section.path) if name else None
    if file is not None and file not in files and len(files) < MAX_CHAIN:
        return file
    names = " -> ".join([*(f.stem for f in files), name])
    if file in files or name == section.path.stem:
        section.fail("extends", f"profiles extend one another in a circle: {names}")
    elif file is not None:
        section.fail("extends", f"more than {MAX_CHAIN} profiles extend one another: {names}")
    else:
        section.fail("extends", f"no profile {name!r}{did_you_mean(name, profile_files())}")
    return None


def _laid_over(own: Section, base: Section) -> Section:
    both = own.over(base)
    for key in _MIXED:
        if key in own and key in base:
            both.put(key, own.section(key).over(base.section(key)), own.place_of(key))
    if "steps" in own:
        both.put("steps", _steps(own.section("steps"), base.section("steps")), own.place_of("steps"))
    return both


def _steps(own: Section, base: Section) -> Section:
    """Return the upper profile's steps in its order, each over the one of the same name below. Drop others."""
    steps = Section(own.path, own.line, own.errors)
    for name, step in own.sections():
        mixed = step
        if name in base:
            before = base.section(name)
            mixed = step.over(before)
            if "env" in step and "env" in before:
                mixed.put("env", step.section("env").over(before.section("env")), step.place_of("env"))
        steps.put(name, mixed, own.place_of(name))
    return steps
