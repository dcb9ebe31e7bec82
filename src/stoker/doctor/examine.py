"""Finds the facts of a machine in parallel, has them judged, and never fails: what breaks becomes a check that says so.

Unaware of how a fact is found and of what is said about it.
"""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

from stoker.doctor.ask_program import Later
from stoker.doctor.check import Check, Examination, examination, warn
from stoker.doctor.facts import Environment, Surroundings
from stoker.doctor.find_cache import find_caches
from stoker.doctor.find_container import find_container
from stoker.doctor.find_cuda import find_cuda, include_folders
from stoker.doctor.find_fleet import find_fleet
from stoker.doctor.find_machine import read_limits, read_memory, read_volumes
from stoker.doctor.find_source import look_at_source, read_cache, read_text
from stoker.doctor.find_tools import find_tools, which
from stoker.doctor.install import MANAGERS
from stoker.doctor.judge_archs import judge_archs
from stoker.doctor.judge_caches import judge_caches
from stoker.doctor.judge_container import judge_container
from stoker.doctor.judge_cuda import judge_cuda
from stoker.doctor.judge_fleet import judge_fleet
from stoker.doctor.judge_machine import judge_limits, judge_memory, judge_volumes
from stoker.doctor.judge_source import judge_source
from stoker.doctor.judge_switches import THROTTLES, judge_switches, launcher_names, launcher_program
from stoker.doctor.judge_tools import judge_tools
from stoker.doctor.need import Need

PATIENCE_SECONDS = 3.0
"""For each program that is asked: a healthy one answers in a few hundredths of a second."""


@dataclass(frozen=True, slots=True)
class _Part:
    """A part of the examination: its title if it breaks, and the checks that it produces."""

    name: str
    checks: Callable[[Surroundings], Iterable[Check]]


class Examining:
    """An examination in progress: all of its parts at once. Nothing here raises."""

    def __init__(self, need: Need, env: Mapping[str, str], patience: float = PATIENCE_SECONDS) -> None:
        """Start it, for a build with this need in this environment. `patience`: seconds for each program."""
        here = Surroundings(need, env, patience, _manager())
        self._what = need.what
        self._seconds = 4 * patience + 2
        self._parts = [(part.name, Later(partial(_checks, part, here))) for part in _PARTS]

    def waiting(self, seconds: float) -> list[str]:
        """Return the parts that have not ended after `seconds`; it returns as soon as there are none."""
        deadline = time.monotonic() + seconds
        return [name for name, part in self._parts if not part.ended(max(0.0, deadline - time.monotonic()))]

    def result(self, seconds: float | None = None) -> Examination:
        """Return all checks; a part that takes longer than `seconds` (by default by `patience`) becomes a warning."""
        limit = self._seconds if seconds is None else seconds
        deadline = time.monotonic() + limit
        outcomes = [_outcome(name, part, deadline, limit) for name, part in self._parts]
        return examination(self._what, [check for outcome in outcomes for check in outcome])


def examine(need: Need, env: Mapping[str, str], patience: float = PATIENCE_SECONDS) -> Examination:
    """Return all checks for a build with this need and environment; never raise. `patience` is in seconds."""
    return Examining(need, env, patience).result()


def _checks(part: _Part, here: Surroundings) -> list[Check]:
    return list(part.checks(here))


def _outcome(name: str, part: Later[list[Check]], deadline: float, limit: float) -> list[Check]:
    if not part.ended(max(0.0, deadline - time.monotonic())):
        return [warn(name, f"this could not be checked: no answer in {round(limit, 1):g} s")]
    try:
        return part.result(0.0)
    except Exception as err:  # noqa: BLE001  (a broken check is a finding, not an end)
        return [warn(name, f"this could not be checked: {str(err) or type(err).__name__}")]


def _manager() -> str:
    """Return the package manager of this system; it may be in folders that are not on an ordinary user's PATH."""
    folders = "/usr/bin:/bin:/usr/sbin:/sbin"
    return next((name for name in MANAGERS if shutil.which(name, path=folders)), "")


def find_environment(here: Surroundings) -> Environment:
    """Return the variables of the environment, and what else is needed to judge them."""
    memory = read_memory()
    launchers = {name: bool(which((launcher_program(here.env[name]),), here.env)) for name in launcher_names(here.env)}
    limit = memory.total if memory.limit is None else memory.limit.limit
    fresh = os.path.isfile(f"{here.need.source}/CMakeLists.txt") and not read_cache(here.need.build)
    rocm = os.path.isdir(here.env.get("ROCM_PATH") or "/opt/rocm")  # where its packages install it
    throttles = {
        name: _reads(here.need.source, places, name) for name, places in THROTTLES.items() if here.env.get(name)
    }
    tests = _reads(here.need.source, ("setup.py",), "BUILD_TEST")
    return Environment(here.env, launchers, limit, fresh, tests, rocm, throttles)


def _reads(folder: str, places: Iterable[str], name: str) -> bool:
    return any(name in read_text(f"{folder}/{place}") for place in places)


def _cuda(here: Surroundings) -> Iterator[Check]:
    cuda = find_cuda(here)
    yield from judge_cuda(cuda, here.need, here.env)
    yield from judge_archs(cuda, here.need, here.env)


_PARTS = (
    _Part("build tools", lambda here: judge_tools(find_tools(here, include_folders(here.env)), here.need)),
    _Part("CUDA", _cuda),
    _Part("memory", lambda here: judge_memory(read_memory(), here.need)),
    _Part("disk", lambda here: judge_volumes(read_volumes(here), here.need)),
    _Part("limits", lambda here: judge_limits(read_limits(), here.need)),
    _Part("source", lambda here: judge_source(look_at_source(here), here.need, here.env)),
    _Part("compiler cache", lambda here: judge_caches(find_caches(here), here.need, here.manager)),
    _Part("fleet", lambda here: judge_fleet(find_fleet(here), here)),
    _Part("container", lambda here: judge_container(find_container(here), here.need)),
    _Part("switches", lambda here: judge_switches(find_environment(here), here.need)),
)
