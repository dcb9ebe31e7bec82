"""Describes what a compiler cache did. Knows no screens."""

from __future__ import annotations

from stoker.model.cache_use import CacheUse
from stoker.model.state import BuildState
from stoker.model.text import clean
from stoker.model.units import format_bytes, format_rough

MAX_ENDPOINT = 100
"""Maximum number of characters shown of an address."""


def rate_text(use: CacheUse) -> str:
    """Return the hit rate from the cache's own statistics: 83.3 %."""
    return "" if use.rate is None else f"{100 * use.rate:.1f} %"


def counts_text(use: CacheUse) -> str:
    """Return `100 hits, 20 misses`, and errors if there are any."""
    counts = [(use.hits, "hit"), (use.misses, "miss"), (use.errors, "error")]
    plural = {"hit": "hits", "miss": "misses", "error": "errors"}
    return ", ".join(
        f"{count} {word if count == 1 else plural[word]}" for count, word in counts if count or word != "error"
    )


def size_text(use: CacheUse) -> str:
    """Return `1.2 GiB of 25.0 GiB`, without the limit if that is unknown; empty if the size is unknown."""
    if use.size is None:
        return ""
    return format_bytes(use.size) + (f" of {format_bytes(use.size_limit)}" if use.size_limit else "")


def saved_text(use: CacheUse) -> str:
    """Return `about 12 min of compiling`, and for how many of the hits that is known; empty if nothing is known."""
    if use.saved_seconds is None or use.saved_seconds < 1:
        return ""
    hits = "all hits" if use.saved_jobs >= use.hits else f"{use.saved_jobs} of the hits"
    return f"about {format_rough(use.saved_seconds)} of compiling, from earlier times of {hits}"


def trouble_text(state: BuildState) -> str:
    """Return which shared cache answers slowly or not at all; empty if none."""
    for shared in state.shared_caches.values():
        if shared.state == "silent":
            return f"does not answer: {clean(shared.endpoint, MAX_ENDPOINT)}; d shows the remedy"
        if shared.state == "slow":
            return f"takes {shared.seconds:.1f} s for an answer: {clean(shared.endpoint, MAX_ENDPOINT)}"
    return ""


def use_text(use: CacheUse) -> str:
    """Return hits, misses and size on one line, without the cache's name."""
    rate, size = rate_text(use), size_text(use)
    parts = [f"{counts_text(use)} ({rate} hits)" if rate else counts_text(use), f"holds {size}" if size else ""]
    shared = "" if use.exact else "includes other builds"
    return "; ".join(part for part in (*parts, shared) if part)


def closing_lines(use: CacheUse) -> list[tuple[str, str]]:
    """Return the titles and texts for the end of a build."""
    saved = saved_text(use)
    return [(use.tool, use_text(use)), *([("saved", saved)] if saved else [])]
