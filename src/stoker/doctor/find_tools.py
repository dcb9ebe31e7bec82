"""Finds compilers, build tools and Python as CMake would find them, and asks each for its version.

Unaware of which versions will do.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

from stoker.doctor.ask_program import Later, ask
from stoker.doctor.facts import Compiler, Family, Program, Python, Surroundings, Tools
from stoker.doctor.need import Version
from stoker.verify.python_probe import python_of

C_NAMES = ("cc", "gcc", "clang")
CXX_NAMES = ("c++", "g++", "clang++")
"""In CMake's order (CMakeDetermineCXXCompiler.cmake), which tries all names in one folder of PATH before the next."""

NINJA_NAMES = ("ninja-build", "ninja", "samu")
"""CMakeNinjaFindMake.cmake"""

CACHES = ("ccache", "sccache")

NO_LAUNCHER = "STOKER_LAUNCHER"
"""Empty, it has the scripts in launchers/ call their compiler alone: sccache would start its server."""

_VERSION = re.compile(r"\d+(?:\.\d+)+", re.ASCII)
_GNU_VERSION = re.compile(r"\) (\d+(?:\.\d+)+)", re.ASCII)
"""`g++ (Debian 12.2.0-14) 12.2.0`: what is in brackets is the package's."""

_HEADER = re.compile(r"[\w./+-]{1,200}", re.ASCII)
_FOUND = "stoker-has "

_PYTHON = """
import sys
sys.path[:] = [path for path in sys.path if path]
import importlib.util, sysconfig
paths = sysconfig.get_paths()
there = [name for name in sys.argv[1:] if importlib.util.find_spec(name.partition(".")[0])]
version = ".".join(map(str, sys.version_info[:3]))
print("\\n".join(["stoker", paths["include"], paths["purelib"], version, " ".join(there)]))
"""


def find_tools(here: Surroundings, folders: Sequence[str] = ()) -> Tools:
    """Find all tools at once. Raises LateError if one of them hangs beyond its own limit.

    `folders` are looked into for headers of the need, beside the compiler's own and Python's.
    """
    env, patience = here.env, here.patience
    wait = 2 * patience + 1
    c = Later(lambda: find_compiler(C_NAMES, "CC", here))
    python = Later(lambda: find_python(here, here.need.modules))
    cxx = Later(lambda: find_compiler(CXX_NAMES, "CXX", here, [*folders, python.result(wait).include]))
    cmake = Later(lambda: versioned("cmake", ("cmake",), env, patience))
    ninja = Later(lambda: versioned("ninja", NINJA_NAMES, env, patience))
    make = Later(lambda: versioned("make", ("make", "gmake"), env, patience))
    git = Later(lambda: versioned("git", ("git",), env, patience))
    interpreter = python.result(wait)
    return Tools(
        c=c.result(wait),
        cxx=cxx.result(wait),
        cmake=cmake.result(wait),
        ninja=ninja.result(wait),
        make=make.result(wait),
        git=git.result(wait),
        python=interpreter,
        commands={name: which((name,), env) for name in here.need.commands},
        modules={name: name in interpreter.modules for name in here.need.modules},
        manager=here.manager,
        beside=_beside(interpreter.command.path, ("cmake", *here.need.commands), env),
    )


def _beside(python: str, names: Iterable[str], env: Mapping[str, str]) -> dict[str, str]:
    """Return programs of an environment that is not active: one that is has its folder on PATH."""
    folder = os.path.dirname(python)
    if not folder or folder in (env.get("PATH") or os.defpath).split(os.pathsep):
        return {}
    paths = {name: f"{folder}/{name}" for name in names if "/" not in name}
    return {name: path for name, path in paths.items() if _runs(path)}


def which(names: Sequence[str], env: Mapping[str, str]) -> str:
    """Return the first of `names` in the first folder of PATH that has any, else "". A path stands for itself."""
    for name in names:
        if "/" in name:
            return name if _runs(name) else ""
    for folder in (env.get("PATH") or os.defpath).split(os.pathsep):
        for name in names:
            path = os.path.join(folder or ".", name)
            if _runs(path):
                return path
    return ""


def _runs(path: str) -> bool:
    return os.path.isfile(path) and os.access(path, os.X_OK)


def version_in(text: str) -> Version:
    """Return the first thing in a text that looks like a version, (12, 2, 0); empty if nothing does."""
    match = _VERSION.search(text)
    return tuple(int(part) for part in match[0].split(".")[:4]) if match else ()


def versioned(name: str, names: Sequence[str], env: Mapping[str, str], seconds: float) -> Program:
    """Return a program with the version that its --version prints."""
    path = which(names, env)
    if not path:
        return Program(name)
    answer = ask([path, "--version"], env, seconds)
    version = version_in(answer.text)
    return Program(name, path, version, answer.problem or ("" if version else "it prints no version"), answer.late)


def find_compiler(names: Sequence[str], variable: str, here: Surroundings, folders: Sequence[str] = ()) -> Compiler:
    """Return the compiler that `variable` names, else the first on PATH, and whether it can read a source.

    A C++ compiler is asked for the headers of the need, too, with `folders` to look into.
    """
    words, asked = words_of(here.env.get(variable, "")), variable
    if not words:
        words, asked = [which(names, here.env)], ""
    programs = words[: 2 if os.path.basename(words[0]) in CACHES else 1]
    missing = [program for program in programs if not program or not which((program,), here.env)]
    program = (missing or programs)[-1]
    path = "" if missing else which((program,), here.env)
    label = os.path.basename(program) or names[1]
    if not path:
        return Compiler(Program(label), asked=asked)
    env = {**here.env, NO_LAUNCHER: ""}
    version = Later(lambda: ask([*words, "--version"], env, here.patience))
    language = "c++" if names == CXX_NAMES else "c"
    source = _trial(language, here.need.headers if language == "c++" else ())
    include = [f"-I{folder}" for folder in folders if folder]
    trial = ask([*words, "-x", language, "-E", "-P", *include, "-"], env, here.patience, source)
    answer = version.result(2 * here.patience)
    family = _family(answer.text)
    late = answer.late or trial.late
    problem = answer.problem or (trial.problem if trial.late else "")
    command = Program(label, path, _compiler_version(answer.text), problem, late)
    headers = {line.removeprefix(_FOUND).strip() for line in trial.text.splitlines() if line.startswith(_FOUND)}
    complaint = "" if trial.late or not trial.problem else _first_error(trial.text, trial.problem)
    return Compiler(command, family, asked, complaint, frozenset(headers))


def words_of(text: str) -> list[str]:
    """Return the words of a variable such as CC; none if its quotes do not close."""
    try:
        return shlex.split(text)
    except ValueError:
        return []


def _trial(language: str, headers: Iterable[str]) -> bytes:
    """Return a source that needs the compiler proper and its own headers, and asks for others without failing."""
    lines = ["#include <cstddef>" if language == "c++" else "#include <stddef.h>"]
    for header in headers:
        if _HEADER.fullmatch(header):
            lines += [f"#if __has_include(<{header}>)", f"{_FOUND}{header}", "#endif"]
    return ("\n".join(lines) + "\n").encode()


def _family(text: str) -> Family:
    if "clang" in text.lower():
        return "clang"
    return "gcc" if "Free Software Foundation" in text or re.match(r"\S*(g\+\+|gcc|c\+\+|cc)\b", text) else "other"


def _compiler_version(text: str) -> Version:
    first = text.partition("\n")[0]
    match = _GNU_VERSION.search(first)
    return version_in(match[1]) if match else version_in(first)


def _first_error(text: str, problem: str) -> str:
    return next((line.strip()[:200] for line in text.splitlines() if "error" in line.lower()), problem)


def find_python(here: Surroundings, modules: Sequence[str] = ()) -> Python:
    """Return the Python that builds, where its headers and packages are, and which of `modules` it has."""
    own = here.need.interpreter
    path = (which((own,), here.env) if own else "") or python_of(here.env)
    # As the build's Python would have them: modules of the person's own and of PYTHONPATH count, the tree's do not.
    answer = ask([path, "-B", "-c", _PYTHON, *modules], here.env, here.patience)
    lines = answer.text.split("\n")[:-1]
    if answer.problem or len(lines) < 5 or lines[-5] != "stoker":
        return Python(
            Program("python", path, (), answer.problem or "it does not say where its headers are", answer.late)
        )
    include, packages, version, there = lines[-4:]
    has_header = (Path(include) / "Python.h").is_file()
    return Python(Program("python", path, version_in(version)), include, packages, has_header, tuple(there.split()))
