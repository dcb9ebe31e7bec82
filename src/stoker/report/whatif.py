"""What a recorded build would have been: under other policies, and with other memory. On paper, by `simulate`. Pure."""

from __future__ import annotations

from collections.abc import Callable, Iterator
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


def whatifs(paper: PaperBuild, far: Callable[[float], None] = lambda _: None) -> list[WhatIf]:
    """Return the builds on paper, the build as it was first; `far` hears how far it is."""
    found: list[WhatIf] = []
    runs = list(_runs(paper))
    for number, (name, run) in enumerate(runs):
        result = run()
        if result is not None:
            label = name.format(policy=result.policy.removeprefix("fixed:"))
            found.append(WhatIf(label, result.makespan + paper.outside, result.kills, result.lost_seconds))
        far((number + 1) / len(runs))
    return found


def _runs(paper: PaperBuild) -> Iterator[tuple[str, Callable[[], Result | None]]]:
    """Yield what to try: its name, and how."""

    def policy(name: str, memory: float = paper.memory) -> Callable[[], Result]:
        return lambda: simulate(
            paper.jobs, paper.cores, memory, name, "recorded", others=paper.others, level=paper.level
        )

    yield "as it was, on paper", policy("stoker")
    yield f"plain -j{paper.cores}", policy(f"fixed:{paper.cores}")
    yield (
        "the best fixed -j by hindsight: {policy}",
        lambda: best_fixed(paper.jobs, paper.cores, paper.memory, paper.others),
    )
    yield "kill and restart at another -j", policy("kill-and-restart")
    for size in MEMORIES:
        yield f"stoker with {size} GiB", policy("stoker", float(size * GIB))
    yield f"stoker with {MORE} GiB more", policy("stoker", paper.memory + MORE * GIB)


def note(paper: PaperBuild) -> str:
    """What the figures are, and what they are not."""
    words = [
        f"A model: each job takes the CPU time and the memory that it took, on {paper.cores} cores with",
        f"{format_bytes(paper.memory)}, and stoker expects of it what it expected then.",
    ]
    if paper.others >= LEAST_OTHERS:
        words.append(f"Beside it {paper.others:.1f} cores' worth of other work wants to run all the time, as it did.")
    words.append("A job that is killed for memory is made again on paper; plain ninja would have stopped.")
    return " ".join(words)


LEAST_OTHERS = 0.1
"""Cores' worth of other work that is worth a word."""
