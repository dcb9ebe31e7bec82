"""What an ended job teaches about similar ones, as values that measuring, storing and predicting share.

Unaware of how they are learned and stored. A successor engine reads the lessons in the journal, and so knows what its
predecessor knew.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Literal

StatedBy = Literal["history", "other flags", "log", "prior", "twin", "size"]
"""An earlier build of this output, with its flags or with others; ninja's log of an earlier run; a measured class of
the priors; another job of this build with the same source; or only the tool, the language and the source's size."""

LEAST_LIFE = 0.001
"""CPU seconds; no life is shorter."""


@dataclass(frozen=True, slots=True)
class Lesson:
    """A job's measured memory curve, and the classes that it belongs to.

    At `ages` (CPU seconds) the job held `sizes` (bytes), in the compiler passes `phases`. `prior` names its class
    among the priors; `flags`, `targets` and `lanes` are those of its command line (decide.flags.Traits). Where an
    earlier build remembered the job, `known` says with which flags, and `log_peak` and `log_seconds` are the logarithms
    of what it remembered. `bound`: too little was seen of the job, so `sizes` are what it can have held at most.
    """

    prior: str
    ages: tuple[float, ...]
    sizes: tuple[int, ...]
    phases: tuple[str, ...]
    flags: str = ""
    targets: int = 1
    lanes: int = 1
    known: Literal["", "same", "other"] = ""
    log_peak: float = 0.0
    log_seconds: float = 0.0
    bound: bool = False


@dataclass(frozen=True, slots=True)
class Remembered:
    """Means and variances over a job's earlier runs, recent ones counting more, and the course of the last run.

    `runs` counts those that were measured; with none, the sizes are what the job can have held at most.

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

    @property
    def is_bound(self) -> bool:
        """Whether the job was never measured."""
        return self.runs == 0

    @property
    def log_need(self) -> float:
        """Return the logarithm of the peak to expect: the mean, but no less than the last run held, because a source
        that has grown since the first runs does not shrink back to their mean."""
        return max(self.log_peak, math.log(max(1.0, *(held for _, held, _ in self.points))))

    @property
    def log_life(self) -> float:
        """Return the logarithm of the CPU seconds to expect: the last run counts as much as the mean."""
        return (self.log_seconds + math.log(max(LEAST_LIFE, self.points[-1][0]))) / 2


@dataclass(frozen=True, slots=True)
class Stated:
    """How long a job was expected to take before it began, and what that rests on.

    CPU seconds (`history`, `other flags`, `prior`), or seconds on the clock (`log`, `twin`); a weight for `size`.
    """

    by: StatedBy
    amount: float
