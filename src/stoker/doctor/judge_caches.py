"""Judges the compiler caches. Pure."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from shlex import quote

from stoker.doctor.check import Check, ok, warn
from stoker.doctor.facts import CompilerCache
from stoker.doctor.install import install
from stoker.doctor.need import GIB, Need
from stoker.model.units import format_bytes

PYTORCH_CACHE = 25 * GIB
"""What PyTorch's CONTRIBUTING.md advises for ccache."""

NEARLY_FULL = 0.95


def judge_caches(caches: Sequence[CompilerCache], need: Need, manager: str) -> Iterator[Check]:
    """Judge size and hit rate of what is installed; a long build without any is worth a word."""
    if not caches and need.knobs == "pytorch":
        why = "neither ccache nor sccache is installed; a second build takes as long as the first"
        yield warn("compiler cache", why, install("ccache", manager))
    elif not caches:
        yield ok("compiler cache", "neither ccache nor sccache is installed")
    for cache in caches:
        yield _cache(cache, need)


def _cache(cache: CompilerCache, need: Need) -> Check:
    name = cache.command.name
    title = f"{'.'.join(map(str, cache.command.version))}, {cache.command.path}"
    if cache.command.problem:
        return warn(name, f"{cache.command.path}: {cache.command.problem}", f"{quote(cache.command.path)} --version")
    parts = [part for part in (_held(cache), _rate(cache), cache.note) if part]
    why = "; ".join([title, *parts])
    grow = "ccache -M 25G" if name == "ccache" else "export SCCACHE_CACHE_SIZE=25G"
    if cache.size_limit is not None and need.knobs == "pytorch" and cache.size_limit < PYTORCH_CACHE:
        return warn(name, f"{why}; a build of PyTorch wants {format_bytes(PYTORCH_CACHE)}", grow)
    if cache.size is not None and cache.size_limit and cache.size > NEARLY_FULL * cache.size_limit:
        return warn(name, f"{why}; it is full, and each new object costs an old one", grow)
    return ok(name, why)


def _held(cache: CompilerCache) -> str:
    if cache.size is None:
        return ""
    limit = f" of {format_bytes(cache.size_limit)}" if cache.size_limit else ""
    return f"holds {format_bytes(cache.size)}{limit}"


def _rate(cache: CompilerCache) -> str:
    total = cache.hits + cache.misses
    return f"{100 * cache.hits / total:.0f} % of {total} compilations were hits" if total else ""
