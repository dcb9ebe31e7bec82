"""Finds the compiler cache that a profile requests, and sets its size if nobody has.

What the user has set for a cache stays. Sets nothing that changes what is compiled or what counts as the same:
`base_dir` and a missing `hash_dir` put other paths into debug information. Unaware of builds.
"""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from stoker.config.profiles.fleet import engine_of
from stoker.config.profiles.profile import Profile
from stoker.model.units import format_bytes

CACHES = ("ccache", "sccache")
"""Compiler caches that are looked for, in this order: ccache needs no daemon."""

ASK_SECONDS = 2.0
"""How long ccache may take to print its configuration; it takes 5 ms."""

DISK_SHARE = 0.5
"""Share of the free disk that a cache may be given beyond what it has: the build needs the rest."""

_CONFIG = re.compile(r"^\((?P<origin>.*)\) (?P<name>max_size|cache_dir) = (?P<value>.*)$", re.MULTILINE)
_MIB = 2**20


def found_cache(profile: Profile, environ: Mapping[str, str], notes: list[str]) -> str:
    """Return the cache that the profile's `cache` means here, empty for none, and add a note if it is not installed."""
    if profile.cache == "none":
        return ""
    wanted: tuple[str, ...] = CACHES if profile.cache == "auto" else (profile.cache,)
    if engine_of(profile.distcc, profile.icecream):
        wanted = tuple(tool for tool in wanted if tool != "sccache")
    tool = next((tool for tool in wanted if shutil.which(tool, path=environ.get("PATH"))), "")
    if not tool:
        names = " nor ".join(wanted)
        said = f"neither {names} is on PATH" if len(wanted) > 1 else f"{names} is not on PATH"
        notes.append(f"{said}: nothing is cached")
    return tool


def size_variables(tool: str, wanted: int | None, environ: Mapping[str, str], notes: list[str]) -> dict[str, str]:
    """Return the variable that gives the cache `wanted` bytes for this build; none if a size is already set."""
    if wanted is None:
        return {}
    return _size(tool, wanted, environ, notes)


def _size(tool: str, wanted: int, environ: Mapping[str, str], notes: list[str]) -> dict[str, str]:
    if tool == "ccache":
        return _size_of_ccache(wanted, environ, notes)
    if any(name in environ for name in ("SCCACHE_CACHE_SIZE", "SCCACHE_CONF")):
        return {}
    home = Path(environ.get("HOME", "/"))
    if Path(environ.get("XDG_CONFIG_HOME") or home / ".config", "sccache", "config").exists():
        return {}
    folder = Path(environ.get("SCCACHE_DIR") or Path(environ.get("XDG_CACHE_HOME") or home / ".cache", "sccache"))
    return {"SCCACHE_CACHE_SIZE": f"{wanted // _MIB}M"} if _has_room(folder, wanted, tool, notes) else {}


def _size_of_ccache(wanted: int, environ: Mapping[str, str], notes: list[str]) -> dict[str, str]:
    if "CCACHE_MAXSIZE" in environ:
        return {}
    config = {m["name"]: m for m in _CONFIG.finditer(_ask("ccache", "--show-config", environ))}
    if "max_size" not in config or config["max_size"]["origin"] != "default":
        return {}
    folder = Path(config["cache_dir"]["value"] if "cache_dir" in config else environ.get("HOME", "/"))
    return {"CCACHE_MAXSIZE": f"{wanted // _MIB}Mi"} if _has_room(folder, wanted, "ccache", notes) else {}


def _ask(tool: str, option: str, environ: Mapping[str, str]) -> str:
    """Return what a cache prints; empty if it does not answer."""
    program = shutil.which(tool, path=environ.get("PATH"))
    try:
        asked = subprocess.run(
            [program or tool, option],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=ASK_SECONDS,
            env=dict(environ),
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return asked.stdout.decode(errors="replace") if asked.returncode == 0 else ""


def _has_room(folder: Path, wanted: int, tool: str, notes: list[str]) -> bool:
    """Return whether the disk of the cache's folder has room for that much."""
    there = next((f for f in (folder, *folder.parents) if f.is_dir()), Path("/"))
    try:
        free = shutil.disk_usage(there).free
    except OSError:
        return False
    if wanted <= DISK_SHARE * free:
        return True
    notes.append(f"{tool} keeps its usual size: no room for {format_bytes(wanted)} beside a build ({there})")
    return False
