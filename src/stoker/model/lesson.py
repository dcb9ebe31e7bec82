"""What one job that ended well teaches about the jobs that are like it: a value of the journal.

Unaware of how it is learnt from. An engine that takes over reads the lessons and so knows what its forerunner knew.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class Lesson:
    """A job's measured memory curve, and the classes that it belongs to.

    At `ages` (CPU seconds) the job held `sizes` (bytes), in the compiler passes `phases`. `prior` names its class
    among the priors; `flags`, `targets` and `lanes` are those of its command line (decide.flags.Traits). Where an
    earlier build remembered the job, `known` says with which flags, and `log_peak` and `log_seconds` are the logarithms
    of what it remembered.
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
