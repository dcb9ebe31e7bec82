"""The timeline of a build: however long it lasts, a bounded number of points, and no peak is lost. Pure."""

from __future__ import annotations

from stoker.model.state import MAX_TIMELINE, TimelinePoint


def with_point(
    timeline: tuple[TimelinePoint, ...], spacing: float, point: TimelinePoint
) -> tuple[tuple[TimelinePoint, ...], float]:
    """One more point, and the spacing from now on: within one spacing the larger value of each series stays."""
    if timeline and point.time - timeline[-1].time < spacing * 0.999:
        last = timeline[-1]
        return (*timeline[:-1], _merged(last, point)), spacing
    timeline = (*timeline, point)
    if len(timeline) > MAX_TIMELINE:
        timeline = tuple(_merged(*timeline[i : i + 2]) for i in range(0, len(timeline), 2))
        spacing *= 2
    return timeline, spacing


def _merged(first: TimelinePoint, second: TimelinePoint | None = None) -> TimelinePoint:
    if second is None:
        return first
    return TimelinePoint(
        first.time,
        max(first.memory_used, second.memory_used),
        max(first.build_rss, second.build_rss),
        max(first.running, second.running),
        max(first.cpu_percent, second.cpu_percent),
        max(first.on_deck, second.on_deck),
    )
