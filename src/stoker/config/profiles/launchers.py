"""Sets up what a profile puts in front of compilers: a cache, a system that compiles elsewhere, or both.

A build learns of it through CMake's launchers or, if no CMake reads those, through CC and CXX. What the user has set
stays. Unaware of builds.
"""

from __future__ import annotations

import os
import shlex
import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from stoker.config.paths import data_dir
from stoker.config.profiles.cache import found_cache, size_variables
from stoker.config.profiles.fleet import engine_of, engine_section
from stoker.config.profiles.fleet_variables import (
    DIST_IDLE_SECONDS,
    engine_variables,
    remote_cache_variables,
    secret_names,
)
from stoker.config.profiles.profile import Profile

C_LAUNCHERS = tuple(f"CMAKE_{language}_COMPILER_LAUNCHER" for language in ("C", "CXX"))
CUDA_LAUNCHER = "CMAKE_CUDA_COMPILER_LAUNCHER"
LAUNCHERS = (*C_LAUNCHERS, CUDA_LAUNCHER)
"""Where CMake learns of a launcher when it configures (cmake-env-variables(7))."""

PREFIX = "CCACHE_PREFIX"
"""What ccache puts before a compiler that it calls (ccache(1), "prefix_command")."""

WITHOUT_PREFIX = f"env;-u;{PREFIX};ccache"
"""ccache for nvcc, which neither distcc nor icecream can take; CMake separates words by semicolons."""

WRAPPED = {"CC": ("gcc", "STOKER_CC"), "CXX": ("g++", "STOKER_CXX")}
"""By variable the shipped script that stands for a compiler, and where that learns of another compiler than this. Each
is one word, with gcc or g++ in its path: torch.utils.cpp_extension looks for both (check_compiler_ok_for_platform)."""

KNOWN = frozenset(("ccache", "sccache", "distcc", "icecc", "buildcache"))
NVCC = "PYTORCH_NVCC"
"""The nvcc that torch.utils.cpp_extension calls, which may be two words (its _write_ninja_file)."""


@dataclass(frozen=True, slots=True)
class Setup:
    """The cache's name (empty: none was set up), variables to add, and what the person should know."""

    tool: str = ""
    variables: Mapping[str, str] | None = None
    notes: tuple[str, ...] = ()


def launcher_setup(profile: Profile, environ: Mapping[str, str], folder: str) -> Setup:
    """Set up what the profile means on this machine for a build in `folder`; `environ` is its environment so far."""
    notes: list[str] = []
    engine = engine_of(profile.distcc, profile.icecream)
    if engine and shutil.which(engine, path=environ.get("PATH")) is None:
        notes.append(f"{engine} is not on PATH: nothing is compiled elsewhere")
        engine = ""
    tool = found_cache(profile, environ, notes)
    if not tool and not engine:
        return Setup(notes=tuple(notes))
    added = _in_cmake(tool, engine) if _is_cmake(profile, folder) else _in_environment(profile, tool, engine, environ)
    added = {name: value for name, value in added.items() if name not in environ or name in WRAPPED}
    if engine and _has_cuda(profile):
        notes.append(
            f"nvcc compiles here: {engine_section(engine)} cannot take it; sccache can (cache: sccache, dist:)"
        )
    taken = bool(tool) and any(name in added for name in (*LAUNCHERS, *WRAPPED))
    more = engine_variables(profile) if engine else {}
    more |= _of_cache(profile, tool, engine, environ, notes) if tool else {}
    missing = [name for name in secret_names(profile) if not environ.get(name)]
    notes += [f"{name} is not set, which the profile names for a secret" for name in missing]
    return Setup(tool if taken else "", {**added, **{n: v for n, v in more.items() if n not in environ}}, tuple(notes))


def _of_cache(profile: Profile, tool: str, engine: str, environ: Mapping[str, str], notes: list[str]) -> dict[str, str]:
    found = {PREFIX: engine} if engine else {}
    found |= remote_cache_variables(profile.remote_cache, tool, environ)
    found |= {"SCCACHE_IDLE_TIMEOUT": str(DIST_IDLE_SECONDS)} if profile.dist.scheduler else {}
    return found | size_variables(tool, profile.cache_size, environ, notes)


def _is_cmake(profile: Profile, folder: str) -> bool:
    if profile.compilers != "auto":
        return profile.compilers == "cmake"
    return (
        not any(Path(folder, name).is_file() for name in ("setup.py", "Makefile"))
        or Path(folder, "CMakeLists.txt").is_file()
    )


def _has_cuda(profile: Profile) -> bool:
    """Return whether the profile's words say that nvcc is called."""
    switched_off = profile.env.get("USE_CUDA", "1") in ("0", "OFF", "")
    asked = bool(profile.checks.cuda) or "nvcc" in profile.checks.commands or "USE_CUDA" in profile.env
    return asked and not switched_off


def _in_cmake(tool: str, engine: str) -> dict[str, str]:
    cuda = {CUDA_LAUNCHER: WITHOUT_PREFIX if engine else tool} if tool else {}
    return {**dict.fromkeys(C_LAUNCHERS, tool or engine), **cuda}


def _in_environment(profile: Profile, tool: str, engine: str, environ: Mapping[str, str]) -> dict[str, str]:
    """With CUDA there is no CC: torch.utils.cpp_extension has nvcc call that, and nvcc's passes are no launcher's."""
    cuda = _has_cuda(profile)
    added = {"STOKER_LAUNCHER": tool} if tool and engine else {}
    for variable in ("CXX",) if cuda else ("CC", "CXX"):
        added |= _wrapped(variable, engine or tool, environ.get(variable, ""))
    nvcc = _nvcc(environ) if cuda and tool == "sccache" else ""
    return {**added, NVCC: f"{tool} {nvcc}"} if nvcc else added


def _wrapped(variable: str, launcher: str, own: str) -> dict[str, str]:
    """Return the script in the place of a compiler; nothing where a person's own goes through a launcher already."""
    script, by = WRAPPED[variable]
    try:
        words = shlex.split(own)
    except ValueError:
        return {}
    if any(os.path.basename(word) in KNOWN or os.path.basename(os.path.dirname(word)) in KNOWN for word in words[:1]):
        return {}
    path = str(data_dir("launchers") / launcher / script)
    return {variable: path, by: own} if words else {variable: path}


def _nvcc(environ: Mapping[str, str]) -> str:
    """Return the nvcc that torch.utils.cpp_extension would find; empty for none."""
    home = environ.get("CUDA_HOME") or environ.get("CUDA_PATH") or ""
    there = Path(home, "bin", "nvcc")
    return str(there) if home and there.is_file() else shutil.which("nvcc", path=environ.get("PATH")) or ""
