"""How long jobs take in this build: learnt from those that ended, and from how long the running ones have run.

Pure sums. Seconds are those of a job alone on its core, so that a figure holds at any number of running jobs.
Unaware of clocks and of the graph.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from typing import Literal, NamedTuple

from stoker.decide.durations import Centre, Class, Folder, Ratio, Typical, narrowed, relative, residual

Source = Literal["history", "other flags", "log", "class"]
"""Where an expectation comes from: the learned history of this output with its flags or with others, an earlier run in
.ninja_log, or the jobs of its tool and folder in this build."""

RELATIVE_SECONDS = {"cxx": 1.0, "nvcc": 6.0, "link": 0.6, "archive": 0.1, "other": 0.5}
"""How long a job of a tool takes beside a C++ compile, for tools of which none has finished and nothing else tells.

nvcc: flash-attention's kernels take 30 to 150 CPU seconds where its C++ file takes 30, PyTorch's 379 CUDA files
67 s on average where its 1208 C++ files take 30 (PyTorch's own build profile of 2026). A guess, so the band is wide.
"""

PRIOR_DOUBT, BOTH_DOUBT = 0.86, 0.7
"""Doubt of a tool's mean before any of its jobs has finished: 80 % of builds within a third and three times. Less where
a prior and the jobs of other tools both say something: a project of small files has small links."""

CLASS_DRIFT, UNSEEN_DRIFT = 0.1, 0.35
"""Doubts that remain however many have finished. Folders not seen yet are not drawn at random: what others depend on
is built first, and is often lighter than what depends on it."""

RATIO_DOUBT = {"history": 0.15, "other flags": 0.4, "log": 0.35}
"""Doubt of all expectations of a source together before a job was held against one. .ninja_log knows the time on the
clock, at an unknown load; history knows CPU seconds."""

RATIO_DRIFT = 0.04
"""Doubt that remains of it however many were."""

RATIO_SPREAD = {"history": 0.25, "other flags": 0.6, "log": 0.3}
"""How far single jobs of a source are from the common ratio, before it was measured."""

TRIAL = 10
"""Jobs after which a source may be found worse than the mean: a .ninja_log counts the time that jobs were stopped."""

IMPUTE_ROUNDS = 2
"""Rounds at each look in which running jobs and means settle on each other; the next look goes on from there."""


class Young(NamedTuple):
    """A running job of which only the class is known, and how long it has run."""

    tool: str
    folder: str
    age: float


class Fresh(NamedTuple):
    """Folders in which a tool has not run yet, by a name for all of them, and how many they are."""

    name: str
    folders: int


Folders = str | Fresh
"""A folder, or some of which nothing is known."""


class Pace:
    """What has been seen of this build's durations so far."""

    def __init__(self) -> None:
        self.speed = 1.0
        """How fast the machine is now, 1 if nobody else uses it. A .ninja_log is taken to be of times like these."""
        self._classes: dict[str, Class] = {}
        self._ratios: dict[tuple[Source, str], Ratio] = {}
        self._all: dict[Source, Ratio] = {}
        self._priors: dict[str, float] = {}
        self._watched: list[Folder] = []
        self._centres: dict[str, Centre] = {}

    def knows(self, tools: Iterable[str]) -> bool:
        """Whether there is anything to go by: a finished job, or something supposed of each of these tools."""
        return any(c.scatter.count for c in self._classes.values()) or self._priors.keys() >= set(tools)

    def add(self, tool: str, folder: str, seconds: float) -> None:
        """A job ended well and took `seconds` alone on its core."""
        self._class(tool).add(folder, seconds)
        self._centres.clear()

    def compare(self, source: Source, tool: str, expected: float, seconds: float) -> None:
        """The same job was expected by `source` to take `expected` seconds."""
        self._ratios.setdefault((source, tool), Ratio()).add(seconds, expected)
        self._all.setdefault(source, Ratio()).add(seconds, expected)

    def suppose(self, tool: str, seconds: float) -> None:
        """What jobs of a tool are taken to need until some have finished."""
        self._priors[tool] = seconds
        self._centres.clear()

    def watch(self, running: Iterable[Young]) -> None:
        """Count the running jobs as what they are expected to come to, in place of those told before.

        The jobs that end first are the short ones: a mean of them alone would be far too low on a wide machine.
        """
        jobs = list(running)
        for _ in range(IMPUTE_ROUNDS):
            whole = [job.age + residual(self.typical(job.tool, job.folder), job.age).seconds for job in jobs]
            for folder in self._watched:
                folder.running, folder.running_seconds = 0, 0.0
            self._watched = [self._class(job.tool).folder(job.folder) for job in jobs]
            for folder, seconds in zip(self._watched, whole, strict=True):
                folder.running += 1
                folder.running_seconds += seconds
            self._centres.clear()

    def has_run(self, tool: str, folder: str) -> bool:
        """Whether a job of the tool has ended, or was watched, in that folder."""
        return tool in self._classes and folder in self._classes[tool].folders

    def typical(self, tool: str, folder: Folders) -> Typical:
        """What a job of the tool in that folder takes; the spread is that within a folder."""
        seen = self._class(tool)
        within, between = seen.spreads()
        seconds = self._centre(tool).seconds
        here = seen.folders.get(folder) if isinstance(folder, str) else None
        if here is not None:
            weight = (within / between) ** 2
            seconds = (weight * seconds + here.total) / (weight + here.jobs)
        return Typical(seconds, relative(within))

    def corrected(self, source: Source, tool: str) -> Typical:
        """The factor from what the source says to what jobs take, and the spread of single jobs around it."""
        everything = self._all.get(source, Ratio())
        ratio = self._ratios.get((source, tool), Ratio())
        spread = everything.spread(RATIO_SPREAD[source])
        prior = self.speed if source == "log" else 1.0
        return Typical(ratio.factor(everything.factor(prior)), relative(spread))

    def distrusts(self, source: Source, tool: str) -> bool:
        """Whether what a source says has proved to be further off than the mean of the tool's jobs."""
        ratio = self._ratios.get((source, tool))
        if ratio is None or ratio.scatter.count < TRIAL:
            return False
        return ratio.scatter.sum / ratio.scatter.count > self._class(tool).spreads()[0] ** 2

    def doubts(self, source: Source, tool: str, folder: Folders) -> Mapping[str, float]:
        """How far expectations may be off together: all of a source and tool, and those of a folder.

        Standard deviations of the logarithm, by a name for what the jobs have in common.
        """
        if source != "class":
            count = self._all.get(source, Ratio()).scatter.count
            left = narrowed(RATIO_DOUBT[source], RATIO_SPREAD[source], count)
            return {source: left, f"{source} {tool}": RATIO_DRIFT}
        seen = self._class(tool)
        within, between = seen.spreads()
        found = {tool: math.hypot(self._centre(tool).doubt, CLASS_DRIFT)}
        if isinstance(folder, Fresh):  # each is off by itself
            return {**found, f"{tool} fresh {folder.name}": between / math.sqrt(folder.folders), **_unseen(tool)}
        ended = seen.folders[folder].ended if folder in seen.folders else 0
        found[f"{tool} {folder}"] = narrowed(between, within, ended)
        return found if ended else {**found, **_unseen(tool)}

    def _centre(self, tool: str) -> Centre:
        centre = self._centres.get(tool)
        if centre is None:
            prior, seen = self._prior(tool), self._class(tool)
            known = prior is not None or any(folder.ended for folder in seen.folders.values())
            centre = seen.centre(prior if known else Centre(1.0, PRIOR_DOUBT))
            self._centres[tool] = centre
        return centre

    def _prior(self, tool: str) -> Centre | None:
        """What was supposed of the tool, and what its jobs take beside those of other tools as a rule: midway."""
        given, beside = self._priors.get(tool), self._beside_others(tool)
        if given is not None and beside is not None:
            return Centre(math.sqrt(given * beside), BOTH_DOUBT)
        known = given if given is not None else beside
        return Centre(known, PRIOR_DOUBT) if known is not None else None

    def _beside_others(self, tool: str) -> float | None:
        others = {t: c for t, c in self._classes.items() if c.scatter.count and t != tool}
        count = sum(c.scatter.count for c in others.values())
        seconds = sum(c.seconds / RELATIVE_SECONDS.get(t, 1.0) for t, c in others.items())
        return RELATIVE_SECONDS.get(tool, 1.0) * seconds / count if count else None

    def _class(self, tool: str) -> Class:
        return self._classes.setdefault(tool, Class())


def _unseen(tool: str) -> dict[str, float]:
    return {f"{tool} unseen": UNSEEN_DRIFT}
