"""What a job held and used over its life, in a few steps however long it lasts. Pure."""

from __future__ import annotations

from dataclasses import dataclass

MAX_STEPS = 24
"""Steps that are kept; when full, each two are merged into one twice as long."""


@dataclass(frozen=True, slots=True)
class Course:
    """The most memory (bytes) and CPU (percent of one core) in each step of `step` seconds from `start` (Unix) on."""

    start: float = 0.0
    step: float = 1.0
    rss: tuple[int, ...] = ()
    cpu: tuple[int, ...] = ()

    def with_sample(self, time: float, rss: int, cpu: float) -> Course:
        """Return the course with one more measurement; missed steps repeat the one before them."""
        if not self.rss:
            return Course(time, self.step, (rss,), (round(cpu),))
        at, used = int(max(0.0, time - self.start) / self.step), round(cpu)
        if at < len(self.rss) and rss <= self.rss[at] and used <= self.cpu[at]:
            return self
        if at >= MAX_STEPS:
            halved = Course(self.start, 2 * self.step, _pairs(self.rss), _pairs(self.cpu))
            return halved.with_sample(time, rss, cpu)
        return Course(self.start, self.step, _with(self.rss, at, rss), _with(self.cpu, at, used))


def _with(values: tuple[int, ...], at: int, value: int) -> tuple[int, ...]:
    if at < len(values):
        return (*values[:at], max(values[at], value), *values[at + 1 :])
    return (*values, *(values[-1:] * (at - len(values))), value)


def _pairs(values: tuple[int, ...]) -> tuple[int, ...]:
    return tuple(max(values[i : i + 2]) for i in range(0, len(values), 2))
