"""Asks ccache and sccache what they hold. Unaware of whether that is enough."""

from __future__ import annotations

import json
import re
import socket
from collections.abc import Mapping
from typing import Any

from stoker.doctor.ask_program import Later, ask
from stoker.doctor.facts import CompilerCache, Program, Surroundings
from stoker.doctor.find_tools import versioned
from stoker.model.units import parse_size

SCCACHE_PORT = 4226
"""Where sccache's server listens unless SCCACHE_SERVER_PORT says otherwise (its documentation, "Configuration")."""

_CONNECT_SECONDS = 0.2
_HITS = ("direct_cache_hit", "preprocessed_cache_hit")
_FIGURE = re.compile(r"^(\w+)\t(\d+)$", re.MULTILINE | re.ASCII)


def find_caches(here: Surroundings) -> tuple[CompilerCache, ...]:
    """Return the compiler caches that are installed. Raises LateError if one hangs."""
    both = [Later(lambda: _ccache(here)), Later(lambda: _sccache(here))]
    caches = [cache.result(3 * here.patience) for cache in both]
    return tuple(cache for cache in caches if cache.command.found)


def _ccache(here: Surroundings) -> CompilerCache:
    command = versioned("ccache", ("ccache",), here.env, here.patience)
    if not command.found or command.problem:
        return CompilerCache(command)
    limit = Later(lambda: ask([command.path, "--get-config", "max_size"], here.env, here.patience))
    stats = ask([command.path, "--print-stats"], here.env, here.patience)
    if stats.problem:
        return CompilerCache(command, note=f"its statistics are not available: {stats.problem}")
    figures = {name: int(value) for name, value in _FIGURE.findall(stats.text)}
    size = figures.get("cache_size_kibibyte")
    return CompilerCache(
        command,
        size=None if size is None else size * 1024,
        size_limit=_size(limit.result(2 * here.patience).text),
        hits=sum(figures.get(name, 0) for name in _HITS),
        misses=figures.get("cache_miss", 0),
    )


def _size(text: str) -> int | None:
    """Parse `5.0G` or `5.0 GiB`; 0 means no limit, as ccache has it."""
    try:
        return parse_size(text.strip()) or None
    except ValueError:
        return None


def _sccache(here: Surroundings) -> CompilerCache:
    """Return sccache with its figures only where its server runs: asking would start it."""
    command = versioned("sccache", ("sccache",), here.env, here.patience)
    if not command.found or command.problem:
        return CompilerCache(command)
    if not sccache_runs(here.env):
        return CompilerCache(command, note="its server does not run yet")
    answer = ask([command.path, "--show-stats", "--stats-format", "json"], here.env, here.patience)
    try:
        return _sccache_figures(command, json.loads(answer.text))
    except (ValueError, TypeError, AttributeError):
        return CompilerCache(command, note="its figures cannot be read")


def _sccache_figures(command: Program, data: Any) -> CompilerCache:
    stats = data["stats"] if isinstance(data.get("stats"), dict) else {}
    size, limit = data.get("cache_size"), data.get("max_cache_size")
    return CompilerCache(
        command,
        size if isinstance(size, int) else None,
        limit if isinstance(limit, int) else None,
        _total(stats.get("cache_hits")),
        _total(stats.get("cache_misses")),
    )


def _total(figure: Any) -> int:
    """Add up what sccache counts by language: {"counts": {"C/C++": 3}}."""
    counts = figure.get("counts") if isinstance(figure, dict) else None
    return sum(n for n in counts.values() if isinstance(n, int)) if isinstance(counts, dict) else 0


def _port(env: Mapping[str, str]) -> int:
    value = env.get("SCCACHE_SERVER_PORT", "")
    return int(value) if value.isascii() and value.isdecimal() and 0 < int(value) < 65536 else SCCACHE_PORT


def sccache_runs(env: Mapping[str, str]) -> bool:
    """Return whether an sccache server listens where this environment has it."""
    with socket.socket() as probe:
        probe.settimeout(_CONNECT_SECONDS)
        return probe.connect_ex(("127.0.0.1", _port(env))) == 0
