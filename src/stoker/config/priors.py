"""Classes of jobs from priors.yaml: a person's own, then the shipped ones. Unaware of what is predicted with them.

A class with a fault is reported with its line and left out; the others count.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import chain
from pathlib import Path

from stoker.config.config_error import ConfigError
from stoker.config.paths import config_dir, data_dir
from stoker.config.strict_yaml import Section, load
from stoker.decide.memory.curves import Curve, Point
from stoker.decide.memory.prior_classes import Prior, Priors
from stoker.model.units import parse_size

FILE_NAME = "priors.yaml"

MAX_POINTS = 32
"""Points of a written curve: twice what is kept of a measured one, so that none need be counted."""

MAX_SPREAD = 3.0
"""A relative standard deviation beyond this says nothing at all."""

MAX_SECONDS = 7 * 86400.0
MAX_SIZE = 2**50

_TOOLS = ("cxx", "nvcc", "link", "archive", "other")
CLASS_KEYS = ("tool", "output", "command", "spread", "time_spread", "points")
_POINT = re.compile(r"([\d.]+ *[A-Za-z]*)(?: +(\S{1,15}))?", re.ASCII)
"""A size, and the name of a compiler pass: at most 15 characters, as the kernel keeps process names."""


def priors_files() -> tuple[Path, ...]:
    """Return where classes are looked for, the first one's before the others'."""
    return own_priors(), shipped_priors()


def own_priors() -> Path:
    """Return a person's own classes."""
    return config_dir() / FILE_NAME


def shipped_priors() -> Path:
    """Return the classes that stoker comes with."""
    return data_dir("profiles") / FILE_NAME


def load_priors(files: Sequence[Path], first: Sequence[Prior] = ()) -> tuple[Priors, list[ConfigError]]:
    """Return the classes `first`, then those of all files in their order, and the faults. A missing file is empty.

    Of two classes with one name the first counts.
    """
    groups, errors = [first], list[ConfigError]()
    for path in files:
        classes, faults = load_classes(path)
        groups.append(classes)
        errors += faults
    return merged(*groups), errors


def load_classes(path: Path) -> tuple[tuple[Prior, ...], list[ConfigError]]:
    """Return the classes of one file that have no fault, and the faults. A missing file is empty."""
    if not path.exists() and not path.is_symlink():
        return (), []
    try:
        section = load(path)
    except ConfigError as err:
        return (), [err]
    return read_classes(section), section.errors


def merged(*groups: Sequence[Prior]) -> Priors:
    """Return all classes in the order of their groups. Of two with one name the first counts."""
    classes: dict[str, Prior] = {}
    for prior in chain.from_iterable(groups):
        classes.setdefault(prior.name, prior)
    return Priors(classes.values())


def read_classes(section: Section) -> tuple[Prior, ...]:
    """Return the classes of a mapping from their names; one with a fault is left out, and its fault is noted."""
    priors = (_prior(name, below, section.line_of(name)) for name, below in section.sections())
    return tuple(prior for prior in priors if prior is not None)


def _prior(name: str, section: Section, line: int) -> Prior | None:
    """Return a class that begins in this line, or None if it has a fault, which is then among the section's errors."""
    before = len(section.errors)
    section.allow(CLASS_KEYS)
    tool = section.choice("tool", _TOOLS, "other") if "tool" in section else ""
    spread = section.number("spread", 1.0, 0.0, MAX_SPREAD)
    time_spread = section.number("time_spread", 1.0, 0.0, MAX_SPREAD)
    output, command = section.text("output"), section.text("command")
    points = _points(section.section("points"))
    if len(section.errors) == before and (not points or points[0].age > 0 or points[-1].age <= 0):
        what = "a class needs points from 0 on: lines like '30: 3.0 GiB cicc' (CPU seconds, size, compiler pass)"
        section.errors.append(ConfigError(section.path, section.line_of("points") if points else line, what))
    if len(section.errors) > before:
        return None
    return Prior(name, Curve(points, source=f"prior {name}"), spread, time_spread, tool, output, command)


def _points(section: Section) -> tuple[Point, ...]:
    points: list[Point] = []
    for key, value in section.scalars():
        point = _point(section, key, value)
        if point is None:
            continue
        if points and point.age <= points[-1].age:
            section.fail(key, f"{key!r} is not after {points[-1].age:g}: points stand in the order of time")
        elif len(points) >= MAX_POINTS:
            section.fail(key, f"more than {MAX_POINTS} points")
            break
        else:
            points.append(point)
    return tuple(points)


def _point(section: Section, age: str, value: str) -> Point | None:
    match = _POINT.fullmatch(value)
    try:
        seconds, size = float(age), parse_size(match[1]) if match else 0
    except ValueError as err:
        section.fail(age, str(err))
        return None
    if match is None or not 0 < size <= MAX_SIZE or not 0 <= seconds <= MAX_SECONDS:
        section.fail(age, f"a point is like '30: 3.0 GiB cicc', not {f'{age}: {value}'!r}")
        return None
    return Point(seconds, float(size), match[2] or "")
