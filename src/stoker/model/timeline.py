"""The timeline of a build: however long it lasts, the number of points is bounded, and no peak is lost. Pure."""

from __future__ import annotations

from dataclasses import dataclass

RECENT_SPACING, MAX_RECENT_POINTS = 4.0, 90
"""Seconds between two points of the last minutes, and how many are kept, however long the build lasts: six minutes."""

MAX_TIMELINE = 600
"""Points that are kept; when full, each two are merged and the spacing doubles."""


@dataclass(frozen=True, slots=True)
class TimelinePoint:
    """One point of the timeline: what counts against the budget, the build's own memory, jobs, the CPU use of all
    programs and of the build (percent of the whole machine)."""

    time: float
    memory_used: int
    build_rss: int
    running: int
    cpu_percent: float
    on_deck: int = 0
    frozen: int = 0
    build_cpu: float = 0.0

    def merged(self, other: TimelinePoint) -> TimelinePoint:
        """The larger value of each series, at this point's time."""
        return TimelinePoint(
            self.time,
            max(self.memory_used, other.memory_used),
            max(self.build_rss, other.build_rss),
            max(self.running, other.running),
            max(self.cpu_percent, other.cpu_percent),
            max(self.on_deck, other.on_deck),
            max(self.frozen, other.frozen),
            max(self.build_cpu, other.build_cpu),
        )


@dataclass(frozen=True, slots=True)
class Timeline:
    """Points at least `spacing` seconds apart."""

    points: tuple[TimelinePoint, ...] = ()
    spacing: float = 1.0

    def with_newest(self, point: TimelinePoint) -> Timeline:
        """The last minutes with one more point."""
        return Timeline(self.with_point(point).points[-MAX_RECENT_POINTS:], self.spacing)

    def with_point(self, point: TimelinePoint) -> Timeline:
        """The same with one more: within one spacing the larger value of each series stays."""
        points, spacing = self.points, self.spacing
        if points and point.time - points[-1].time < spacing * 0.999:
            return Timeline((*points[:-1], points[-1].merged(point)), spacing)
        points = (*points, point)
        if len(points) <= MAX_TIMELINE:
            return Timeline(points, spacing)
        pairs = (points[i : i + 2] for i in range(0, len(points), 2))
        return Timeline(tuple(pair[0].merged(pair[-1]) for pair in pairs), 2 * spacing)
