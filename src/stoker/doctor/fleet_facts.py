"""What was found of machines that compile for others, and of caches that many share: frozen values. Pure.

Unaware of how they were found and of what they mean for a build.
"""

from __future__ import annotations

from dataclasses import dataclass

from stoker.sense.caches.endpoints import CachePlace
from stoker.sense.caches.probe import Answered


@dataclass(frozen=True, slots=True)
class DistccHost:
    """One host of distcc, asked to compile a line: how long that took, and what was wrong, empty if it did.

    `compiler` is what the compiler that did it calls itself.
    """

    name: str
    seconds: float
    problem: str = ""
    compiler: str = ""


@dataclass(frozen=True, slots=True)
class DistccTrial:
    """distcc with its hosts, of which at most a few were asked, and what the compiler here calls itself.

    `path` is empty where it is not installed.
    """

    path: str
    hosts: tuple[DistccHost, ...] = ()
    left_out: int = 0
    compiler: str = ""
    problem: str = ""


@dataclass(frozen=True, slots=True)
class SchedulerAnswer:
    """What a scheduler says: its machines, and how many jobs they take together; `problem` is empty if it did."""

    place: str
    machines: int = 0
    slots: int = 0
    problem: str = ""


@dataclass(frozen=True, slots=True)
class Fleet:
    """All of it; None is for what this build does not use."""

    shared: tuple[tuple[CachePlace, Answered], ...] = ()
    server: bool = False
    """Whether sccache's server runs."""
    dist: SchedulerAnswer | None = None
    icecream: SchedulerAnswer | None = None
    icecc: str = ""
    """The path of icecream's client."""
    distcc: DistccTrial | None = None
    unset: tuple[str, ...] = ()
    """Variables that the profile names for secrets, and that are not set."""
