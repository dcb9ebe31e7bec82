"""Judges compilers, build tools and headers. Pure: facts and a need in, checks out."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import replace
from shlex import quote

from stoker.doctor.check import Check, fail, ok, warn
from stoker.doctor.facts import Compiler, Program, Tools
from stoker.doctor.install import PACKAGES, find_package, install
from stoker.doctor.need import Need, Version, Want

CXX17_GCC = (7,)
"""Older ones do not know -std=c++17 (gcc's page on C++ standards support); few projects still build with them."""

POLICY_FLOOR = (3, 5)
"""CMake 4 refuses projects that ask for an older one (its release notes)."""


def judge_tools(tools: Tools, need: Need) -> Iterator[Check]:
    """Judge compilers, CMake, ninja, make, git, Python's headers, and what else the need names."""
    yield _compiler("C++ compiler", tools.cxx, need, tools.manager)
    yield _compiler("C compiler", tools.c, need, tools.manager)
    yield from _pair(tools)
    yield from _cmake(tools, need)
    yield from _builders(tools, need)
    yield _git(tools)
    yield from _python(tools, need)
    yield from _commands(tools)
    yield from _modules(tools)
    yield from _headers(tools, need)


def dotted(version: Version) -> str:
    """Return a version as text: 12.2.0."""
    return ".".join(map(str, version))


def older(version: Version, least: Version) -> bool:
    """Return whether a version that is known is too old; 12 is as good as 12.0."""
    return bool(version) and version[: len(least)] < least


def _compiler(name: str, compiler: Compiler, need: Need, manager: str) -> Check:
    command = compiler.command
    if not command.found:
        if compiler.asked:
            why = f"{compiler.asked} names {command.name}, which is not there"
            return _grave(need.compilers, name, why, f"unset {compiler.asked}")
        why = f"neither {command.name} nor another one is on PATH"
        return _grave(need.compilers, name, why, install("c++", manager))
    title = f"{command.name} {dotted(command.version)}".rstrip()
    if compiler.complaint:
        why = f"{title} ({command.path}) cannot compile: {compiler.complaint}"
        return _grave(need.compilers, name, why, install("c++", manager))
    if command.problem:
        return warn(name, f"{title} ({command.path}): {command.problem}", f"{quote(command.path)} --version")
    return _version(name, compiler, need, f"{title}, {command.path}")


def _version(name: str, compiler: Compiler, need: Need, title: str) -> Check:
    version, family = compiler.command.version, compiler.family
    least = {"gcc": need.gcc, "clang": need.clang, "other": ()}[family]
    if least and older(version, least):
        return fail(name, f"{title}: {need.what} needs {family} {dotted(least)} or newer", _newer(name, family, least))
    if family == "gcc" and older(version, CXX17_GCC):
        return warn(name, f"{title}: it does not know C++17, which most projects use", _newer(name, family, (11,)))
    return ok(name, title)


def _newer(name: str, family: str, least: Version) -> str:
    if name == "C compiler":
        return f"export CC={family}-{least[0]}"
    return f"export CXX={'g++' if family == 'gcc' else 'clang++'}-{least[0]}"


def _pair(tools: Tools) -> Iterator[Check]:
    c, cxx = tools.c, tools.cxx
    if not (c.command.found and cxx.command.found) or "other" in (c.family, cxx.family):
        return
    same = c.family == cxx.family and c.command.version[:1] == cxx.command.version[:1]
    if c.command.version and cxx.command.version and not same:
        of_c, of_cxx = (f"{x.family} {dotted(x.command.version)}" for x in (c, cxx))
        why = f"the C compiler is {of_c}, the C++ compiler {of_cxx}; mixed objects may not link"
        yield warn("compiler pair", why, f"export CC={'clang' if cxx.family == 'clang' else 'gcc'}")


def _cmake(tools: Tools, need: Need) -> Iterator[Check]:
    cmake, beside = tools.cmake, tools.beside.get("cmake", "")
    if need.cmake_tool == "no" and not cmake.found:
        return
    remedy = _to_path(beside) if beside else "python3 -m pip install -U cmake"
    need = replace(need, cmake_tool="may") if beside else need
    if not cmake.found:
        yield _grave(need.cmake_tool, "cmake", "no cmake on PATH", remedy)
    elif cmake.problem:
        want = "may" if cmake.late else need.cmake_tool
        yield _grave(want, "cmake", f"{cmake.path}: {cmake.problem}", f"{quote(cmake.path)} --version")
    elif older(cmake.version, need.cmake):
        why = f"{dotted(cmake.version)}, {cmake.path}: the project asks for {dotted(need.cmake)} or newer"
        yield _grave(need.cmake_tool, "cmake", why, remedy)
    elif need.cmake_policy and need.cmake_policy < POLICY_FLOOR and not older(cmake.version, (4,)):
        why = (
            f"{dotted(cmake.version)} refuses projects for CMake older than 3.5; this one asks for {dotted(need.cmake)}"
        )
        yield _grave(need.cmake_tool, "cmake", why, "export CMAKE_POLICY_VERSION_MINIMUM=3.5")
    else:
        yield ok("cmake", f"{dotted(cmake.version)}, {cmake.path}")


def _grave(want: Want, name: str, why: str, remedy: str) -> Check:
    return (fail if want == "must" else warn)(name, why, remedy)


def _builders(tools: Tools, need: Need) -> Iterator[Check]:
    """Judge ninja and make: one of the two must be there, as nothing says how the tree is built."""
    ninja, make = tools.ninja, tools.make
    if not ninja.found and not make.found:
        why = "neither ninja nor make is on PATH"
        yield _grave(need.scheduler, "ninja", why, install("ninja", tools.manager))
        return
    if not ninja.found:
        yield warn("ninja", "no ninja on PATH; make reports less, and is slower", install("ninja", tools.manager))
    else:
        yield _plain("ninja", ninja)
    if make.found:
        yield _plain("make", make)


def _plain(name: str, command: Program) -> Check:
    if command.problem:
        return warn(name, f"{command.path}: {command.problem}", f"{quote(command.path)} --version")
    return ok(name, f"{dotted(command.version)}, {command.path}")


def _git(tools: Tools) -> Check:
    if tools.git.found:
        return _plain("git", tools.git)
    return warn("git", "no git on PATH: submodules and versions cannot be asked for", install("git", tools.manager))


def _python(tools: Tools, need: Need) -> Iterator[Check]:
    python = tools.python
    title = f"{python.command.path} {dotted(python.command.version)}".rstrip()
    if older(python.command.version, need.python):
        why = f"{title}: {need.what} needs {dotted(need.python)} or newer"
        yield fail("python", why, f"python{dotted(need.python)} -m venv venv && . venv/bin/activate")
    if need.python_headers == "no":
        return
    name = "python headers"
    if python.command.problem:
        want = "may" if python.command.late else need.python_headers
        yield _grave(want, name, f"{title}: {python.command.problem}", f"{quote(python.command.path)} --version")
    elif python.has_header:
        yield ok(name, f"{title}, {python.include}")
    else:
        why = f"{python.include} has no Python.h (for {title})"
        yield _grave(need.python_headers, name, why, install("python headers", tools.manager))


def _commands(tools: Tools) -> Iterator[Check]:
    for name, path in tools.commands.items():
        if not path and name in tools.beside:
            why = f"no {name} on PATH; {tools.beside[name]} is beside the Python that builds"
            yield warn(f"command {name}", why, _to_path(tools.beside[name]))
        elif not path:
            yield fail(f"command {name}", f"no {name} on PATH", install(name, tools.manager))
    if tools.commands and all(tools.commands.values()):
        yield ok("commands", " ".join(tools.commands))


def _to_path(program: str) -> str:
    return f"export PATH={quote(os.path.dirname(program))}:$PATH"


def _modules(tools: Tools) -> Iterator[Check]:
    python = tools.python.command
    if python.problem:
        return
    missing = [name for name, there in tools.modules.items() if not there]
    if missing:
        packages = " ".join(PACKAGES.get(name, name.partition(".")[0]) for name in missing)
        why = f"{python.path} has no module {' '.join(missing)}"
        yield fail("python modules", why, f"{quote(python.path)} -m pip install {packages}")
    elif tools.modules:
        yield ok("python modules", " ".join(tools.modules))


def _headers(tools: Tools, need: Need) -> Iterator[Check]:
    """Judge headers, unless the compiler itself did not work: it found none then."""
    if not need.headers or not tools.cxx.command.found or tools.cxx.complaint or tools.cxx.command.late:
        return
    # Where Python's are is not known if Python did not answer, which has a check of its own.
    unknown = {"Python.h"} if tools.python.command.problem else set()
    missing = [header for header in need.headers if header not in tools.cxx.headers and header not in unknown]
    for header in missing:
        why = f"the compiler does not find <{header}>"
        yield fail(f"header {header}", why, find_package(header, tools.manager))
    if not missing:
        yield ok("headers", " ".join(need.headers))
