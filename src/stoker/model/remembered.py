"""What one job took in earlier builds: a pure value between the room that keeps it and the room that predicts."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Remembered:
    """Means and variances over a job's earlier runs, recent ones counting more, and the course of the last run.

    `points` are (CPU seconds, bytes, compiler pass), in the order of time, one at least. Sizes and durations spread
    like products, so what is kept of them are natural logarithms: of the peak in bytes and of the life in CPU
    seconds. `same_flags`: the runs had the very flags that were asked for, not merely the same tool and output.
    """

    points: tuple[tuple[float, float, str], ...]
    runs: int
    log_peak: float
    peak_variance: float
    log_seconds: float
    seconds_variance: float
    same_flags: bool = True
