"""Classes of jobs before anything was measured: which class a job belongs to, and what its members are assumed to need.

Pure values. Knows neither where they are configured nor what has been learned since.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from fnmatch import fnmatchcase

from stoker.decide.memory.curves import Curve, Point

GIB = 2**30

MIXED = " and others"
"""How the name of a class ends whose jobs run other programs beside the compiler."""


@dataclass(frozen=True, slots=True)
class Prior:
    """A class of jobs: a shape, and how far its members may deviate from it (relative standard deviations).

    `tool`, `output` and `command` define which jobs belong to it; empty means any. The last two are shell patterns
    (`*`, `?`, `[...]`; `*` matches slashes too) for the whole output and the whole command line.
    """

    name: str
    curve: Curve
    spread: float
    time_spread: float
    tool: str = ""
    output: str = ""
    command: str = ""

    def covers(self, output: str, tool: str, command: str) -> bool:
        """Return whether the job belongs to this class."""
        return (
            (not self.tool or self.tool == tool)
            and (not self.output or fnmatchcase(output, self.output))
            and (not self.command or fnmatchcase(command, self.command))
        )

    @property
    def is_mixed(self) -> bool:
        """Whether its jobs run other programs beside the compiler."""
        return self.name.endswith(MIXED)

    def mixed(self) -> Prior:
        """Return the class of such jobs with other programs beside them: what those need, nobody knows."""
        time_spread = max(self.time_spread, UNKNOWN.time_spread)
        return replace(self, name=self.name + MIXED, spread=max(self.spread, UNKNOWN.spread), time_spread=time_spread)


UNKNOWN = Prior(
    "unknown",
    Curve((Point(0.0, 0.1 * GIB), Point(20.0, 1.0 * GIB), Point(30.0, 1.0 * GIB)), source="no prior"),
    spread=1.0,
    time_spread=1.0,
)
"""The assumption for a job of no class. A guess: as much as a large C++ file, with the largest uncertainty."""


class Priors:
    """Classes in order: a job belongs to the first that covers it."""

    def __init__(self, classes: Iterable[Prior] = ()) -> None:
        self.classes = tuple(classes)

    def of(self, output: str, tool: str, command: str = "", *, mixed: bool = False) -> Prior:
        """Return the class of a job; UNKNOWN if none covers it. `mixed`: it runs other programs beside the compiler."""
        found = next((p for p in self.classes if p.covers(output, tool, command)), UNKNOWN)
        return found.mixed() if mixed else found

    def named(self, name: str) -> Prior | None:
        """Return the class of that name; None if there is none."""
        own = class_of(name)
        found = UNKNOWN if own == UNKNOWN.name else next((p for p in self.classes if p.name == own), None)
        return found.mixed() if found is not None and own != name else found


def class_of(name: str) -> str:
    """Return the name of the class that people write, for a class whose jobs run other programs beside it."""
    return name.removesuffix(MIXED)
