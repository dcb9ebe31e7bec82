"""Judges a source tree: submodules, dates, and a CMake cache of an earlier build. Pure."""

from __future__ import annotations

import os
import shlex
from collections.abc import Iterator, Mapping

from stoker.doctor.check import Check, fail, ok, warn
from stoker.doctor.facts import SourceTree
from stoker.doctor.need import Need
from stoker.model.units import format_rough

SHOWN = 3
"""Missing submodules that are named."""

GRAVE_SECONDS = 60.0
"""A CMakeLists.txt this far ahead: ninja gives up after it was configured 100 times ("manifest still dirty")."""


def judge_source(source: SourceTree, need: Need, env: Mapping[str, str]) -> Iterator[Check]:
    """Report what is wrong with the files before a compiler has seen them."""
    yield from _submodules(source, need)
    yield from _absent(source, need)
    yield _clock(source, need)
    yield from _cache(source, need, env)


def _absent(source: SourceTree, need: Need) -> Iterator[Check]:
    """Report files of the need that are not there: for lack of a submodule, or all of them for one reason."""
    rest = []
    for name in source.absent:
        module = next((path for path in source.missing if f"{name}/".startswith(f"{path}/")), "")
        if module and source.is_checkout:
            fetch = f"git -C {shlex.quote(need.source)} submodule update --init --recursive {shlex.quote(module)}"
            yield fail(f"file {name}", f"the submodule {module} was not fetched", fetch)
        else:
            rest.append(name)
    if rest:
        no = f"there is no {' and no '.join(rest)} in {need.source}"
        yield fail(f"file {rest[0]}", f"{no}: not the right folder, or not the whole tree", "cd ...  # to the checkout")


def _submodules(source: SourceTree, need: Need) -> Iterator[Check]:
    if need.submodules == "no" or not (source.submodules or need.submodules == "must"):
        return
    name = "submodules"
    if not source.submodules:
        why = f"{need.source} names none; {need.what} has some: an incomplete tree"
        yield warn(name, why, "git clone --recursive URL")
        return
    if not source.missing:
        yield ok(name, f"all {source.submodules} are there")
        return
    named = ", ".join(source.missing[:SHOWN])
    more = f" and {len(source.missing) - SHOWN} more" if len(source.missing) > SHOWN else ""
    why = f"{len(source.missing)} of {source.submodules} missing: {named}{more}"
    if source.is_checkout:
        remedy = f"git -C {shlex.quote(need.source)} submodule update --init --recursive"
    else:
        why, remedy = f"{why}; this tree is not a git checkout", "git clone --recursive URL"
    without = len(source.missing) > source.nested_missing
    yield (fail if need.submodules == "must" and without else warn)(name, why, remedy)


def _clock(source: SourceTree, need: Need) -> Check:
    name, dated = "clock", source.dated
    looked = f"{dated.looked_at} files" if dated.complete else f"the first {dated.looked_at} files"
    if not dated.future:
        return ok(name, f"none of {looked} is dated in the future")
    remedy = f"find {shlex.quote(need.source)} -newermt now -exec touch {{}} +"
    if dated.top_ahead > GRAVE_SECONDS:
        why = f"CMakeLists.txt is dated {format_rough(dated.top_ahead)} ahead"
        return fail(name, f"{why}; ninja would configure the build over and over", remedy)
    if dated.input_ahead > GRAVE_SECONDS:
        why = f"{dated.input_name} is dated {format_rough(dated.input_ahead)} ahead"
        return warn(name, f"{why}; if the build reads it, ninja configures over and over", remedy)
    are = "is" if dated.future == 1 else "are"
    why = f"{dated.future} of {looked} {are} dated in the future, {dated.worst} by {format_rough(dated.ahead)}"
    return warn(name, f"{why}; they are built again each time", remedy)


def _cache(source: SourceTree, need: Need, env: Mapping[str, str]) -> Iterator[Check]:
    """Report what CMake refuses in a folder that it has configured before."""
    cache, name = source.cache, "CMake cache"
    if not cache:
        return
    fresh = f"rm -r {shlex.quote(need.build)}/CMakeCache.txt {shlex.quote(need.build)}/CMakeFiles"
    home, generator = cache.get("CMAKE_HOME_DIRECTORY", ""), cache.get("CMAKE_GENERATOR", "")
    asked = env.get("CMAKE_GENERATOR", "")
    if home and not f"{os.path.realpath(home)}/".startswith(f"{os.path.realpath(need.source)}/"):
        judge = fail if need.folder == "must" else warn
        yield judge(name, f"{need.build} was configured for {home}, not for {need.source}", fresh)
    elif generator and asked and asked != generator:
        # CMake itself ignores the variable where there is a cache (tried with 3.25); PyTorch's setup.py says -GNinja.
        judge = fail if need.knobs == "pytorch" and asked == "Ninja" else warn
        yield judge(name, f"{need.build} was configured for {generator!r}; CMAKE_GENERATOR is {asked!r}", fresh)
    elif source.gone:
        yield warn(name, f"{need.build} was configured with {', '.join(source.gone)}, no longer there", fresh)
    else:
        yield ok(name, f"{need.build} is configured for {generator or 'this tree'}")
