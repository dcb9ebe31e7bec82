"""Parses what sccache reports about its fleet: the scheduler's places, and where compilations were done. Pure.

Knows neither how sccache is asked nor its cache.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from stoker.model.text import clean

MAX_SERVERS = 2048
MAX_PLACES = 1_000_000
MAX_COUNT = 2**53
"""Upper limits for the figures that are accepted."""

NAME_LIMIT = 64
WHY_LIMIT = 120
"""Characters that are kept."""


class DistStatus(NamedTuple):
    """What `sccache --dist-status` says. `places` is the CPUs of all servers together, `used` the jobs of all clients.

    `obstacle`: why nothing is compiled elsewhere, empty if it may be. `meant`: whether sccache-dist is configured.
    """

    servers: int = 0
    places: int = 0
    used: int = 0
    obstacle: str = ""
    meant: bool = True


class DistCounts(NamedTuple):
    """What `sccache --show-stats` says: compilations done by each server, and those that failed there and were then
    done here."""

    by_server: Mapping[str, int] = MappingProxyType({})
    errors: int = 0


def read_fleet(text: str) -> DistStatus | None:
    """Parse the output of `sccache --dist-status` (0.16), an object with one key; None if it is anything else."""
    data = _object(text)
    if data is None:
        return None
    if "SchedulerStatus" in data:
        return _scheduler(data["SchedulerStatus"])
    if "NotConnected" in data:
        return DistStatus(obstacle=_why(data["NotConnected"]) or "the scheduler does not answer")
    if "Disabled" in data:
        return DistStatus(obstacle=_why(data["Disabled"]) or "not set up", meant=False)
    return None


def _scheduler(value: Any) -> DistStatus | None:
    """Parse `[URL, {"num_servers": 1, "num_cpus": 2, "in_progress": 3}]`. Drops the URL, which may hold a password."""
    status = value[1] if isinstance(value, list) and len(value) == 2 else None
    if not isinstance(status, dict):
        return None
    servers, places = _count(status.get("num_servers"), MAX_SERVERS), _count(status.get("num_cpus"), MAX_PLACES)
    used = _count(status.get("in_progress"), MAX_PLACES)
    return DistStatus(servers, places, used, "" if servers else "the scheduler has no server")


def read_done(text: str) -> DistCounts | None:
    """Parse the output of `sccache --show-stats --stats-format json`; None if it is anything else."""
    data = _object(text)
    stats = data.get("stats") if data is not None else None
    if not isinstance(stats, dict) or not isinstance(compiles := stats.get("dist_compiles"), dict):
        return None
    names = list(compiles)[:MAX_SERVERS]
    by_server = {clean(name, NAME_LIMIT): _count(compiles[name], MAX_COUNT) for name in names}
    return DistCounts(MappingProxyType(by_server), _count(stats.get("dist_errors"), MAX_COUNT))


def _object(text: str) -> dict[str, Any] | None:
    try:
        data = json.loads(text)
    except (ValueError, RecursionError):
        return None
    return data if isinstance(data, dict) else None


def _count(value: Any, most: int) -> int:
    return min(value, most) if isinstance(value, int) and not isinstance(value, bool) and value > 0 else 0


def _why(value: Any) -> str:
    """Return the words in `"NotConnected": [URL, words]` or `"Disabled": words`."""
    words = value[-1] if isinstance(value, list) and value else value
    return clean(words, WHY_LIMIT) if isinstance(words, str) else ""
