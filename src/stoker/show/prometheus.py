"""Renders a build's status as Prometheus metrics, in the text format. Knows no files and no HTTP.

prometheus-client is an optional dependency, imported only when metrics are requested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

from stoker.model.state import BuildState
from stoker.model.status import status_of
from stoker.model.text import clean

LABELS = ("build", "name")

METRICS = {
    "seconds": ("stoker_build_seconds", "Seconds since the build's start, or that it took"),
    "exit_code": ("stoker_build_exit_status", "Exit status of a build that has ended"),
    "progress.finished": ("stoker_jobs_finished", "Jobs that have ended well"),
    "progress.total": ("stoker_jobs_total_known", "Jobs in all, as far as that is known"),
    "progress.running": ("stoker_jobs_running", "Jobs that run"),
    "progress.remote": ("stoker_jobs_remote", "Of these, jobs that another machine compiles"),
    "progress.on_deck": ("stoker_jobs_on_deck", "Jobs that are held before they begin"),
    "progress.frozen": ("stoker_jobs_frozen", "Jobs that are frozen"),
    "progress.failed": ("stoker_jobs_failed", "Jobs that have failed"),
    "progress.killed": ("stoker_jobs_killed", "Jobs that were killed and run again"),
    "level.target": ("stoker_level", "Jobs that may run at once"),
    "memory.budget": ("stoker_memory_budget_bytes", "Memory that the build may use"),
    "memory.used": ("stoker_memory_used_bytes", "Memory that counts against the budget"),
    "memory.build": ("stoker_memory_build_bytes", "Memory that the build holds"),
    "memory.build_peak": ("stoker_memory_build_peak_bytes", "The most that the build held"),
    "memory.promised": ("stoker_memory_promised_bytes", "Memory that running jobs are expected to hold at most"),
    "disk.written": ("stoker_disk_written_bytes", "Bytes that the build wrote to disks"),
    "eta.seconds": ("stoker_eta_seconds", "Seconds that are left"),
    "cache.hits": ("stoker_cache_hits", "Hits of the compiler cache"),
    "cache.misses": ("stoker_cache_misses", "Misses of the compiler cache"),
}
"""The exported metrics: the key in `status --json`, the metric's name (sizes and times in base units), and its help."""


class NoPrometheusError(Exception):
    """prometheus-client is not installed; the message says how to install it."""


def metrics(states: Iterable[BuildState], now: float) -> str:
    """Return the metrics of these builds at Unix time `now`. Raises NoPrometheusError."""
    try:
        from prometheus_client import CollectorRegistry, Gauge, generate_latest
    except ImportError as err:
        raise NoPrometheusError("metrics need prometheus-client: pip install 'stoker[metrics]'") from err
    registry = CollectorRegistry()
    gauges = {key: Gauge(name, words, LABELS, registry=registry) for key, (name, words) in METRICS.items()}
    phase = Gauge("stoker_build_state", "1 for the state that the build is in", (*LABELS, "state"), registry=registry)
    for state in states:
        labels = (clean(state.id, 200), clean(state.name, 200))
        phase.labels(*labels, state.phase).set(1)
        for key, value in _values(status_of(state, now)):
            gauges[key].labels(*labels).set(value)
    return generate_latest(registry).decode()


def _values(status: dict[str, Any]) -> Iterator[tuple[str, float]]:
    """Yield the key and value of each metric that is known."""
    for key in METRICS:
        value: Any = status
        for name in key.split("."):
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, int | float):
            yield key, float(value)
