"""Simulates a recorded build under other policies and with other memory, by `simulate`. Pure."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from stoker.model.units import format_bytes
from stoker.report.paper import PaperBuild
from stoker.simulate.runner import Result, best_fixed, simulate

GIB = 2**30

MEMORIES = (16, 32, 64, 128)
"""Machines that there are, in GiB."""

MORE = 32
"""GiB that a person might buy."""


@dataclass(frozen=True, slots=True)
class WhatIf:
    """One build on paper: what is different, its whole time in seconds, jobs killed, and CPU seconds lost by that."""

    name: str
    seconds: float
    kills: int
    lost: float


@dataclass(frozen=True, slots=True)
class PaperRun:
    """A build on paper that is worth a try: its name, in which {policy} stands for the policy's, and on what it runs.

    Without a policy it is the best fixed -j by hindsight.
    """

    name: str
    policy: str
    memory: float


def paper_runs(paper: PaperBuild) -> list[PaperRun]:
    """Return what to try, the build as it was first."""
    tried = [
        PaperRun(AS_IT_WAS, "stoker", paper.memory),
        PaperRun(f"plain -j{paper.cores}", f"fixed:{paper.cores}", paper.memory),
        PaperRun("the best fixed -j by hindsight: {policy}", "", paper.memory),
        PaperRun("kill and restart at another -j", "kill-and-restart", paper.memory),
    ]
    tried += [PaperRun(f"stoker with {size} GiB", "stoker", float(size * GIB)) for size in MEMORIES]
    return [*tried, PaperRun(f"stoker with {MORE} GiB more", "stoker", paper.memory + MORE * GIB)]


AS_IT_WAS = "as it was, on paper"


def what_if(paper: PaperBuild, run: PaperRun, far: Callable[[float], None] = lambda _: None) -> WhatIf | None:
    """Return what becomes of a build so; None where no fixed -j survives. `far` hears how far it is."""
    if run.policy:
        result: Result | None = simulate(
            paper.jobs, paper.cores, run.memory, run.policy, "recorded", others=paper.others, level=paper.level, far=far
        )
    else:
        result = best_fixed(paper.jobs, paper.cores, run.memory, paper.others)
    if result is None:
        return None
    label = run.name.format(policy=result.policy.removeprefix("fixed:"))
    return WhatIf(label, result.makespan + paper.outside, result.kills, result.lost_seconds)


def note(paper: PaperBuild, makespan: float | None = None) -> str:
    """What the figures are, and what they are not; `makespan` is the seconds that the build as it was takes on paper,
    where that has been worked out."""
    words = [
        f"A model: each job takes the CPU time and the memory that it took, on {paper.cores} cores with",
        f"{format_bytes(paper.memory)}, and stoker expects of it what it expected then.",
    ]
    if paper.others >= LEAST_OTHERS:
        words.append(f"Beside it {paper.others:.1f} cores' worth of other work wants to run all the time, as it did.")
    if paper.others > TRUSTED_OTHERS * paper.cores:
        words.append(
            f"Others wanted {paper.others / paper.cores:.0f} times the cores that there are: where so little of them "
            "is left, the model may be far off."
        )
    if makespan is not None and abs(makespan / max(1.0, paper.measured) - 1) > TRUSTED:
        words.append(
            f"On paper this very build takes {makespan / max(1.0, paper.measured):.2f} times what was measured, "
            "so take the other figures as hints."
        )
    words.append("A job that is killed for memory is made again on paper; plain ninja would have stopped.")
    return " ".join(words)


TRUSTED = 0.15
"""Share by which the time of the build as it was, on paper, may differ from the measured one before that is said."""

TRUSTED_OTHERS = 6.5
"""Other work, in times of the cores, up to which the model was held against real builds (docs/report.md)."""

LEAST_OTHERS = 0.1
"""Cores' worth of other work that is worth a word."""
