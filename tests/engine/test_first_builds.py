"""The time left of first builds, of which nothing is remembered, as stoker runs them: of 64 jobs on deck, that with the
longest way to the end starts first. From a twentieth of the jobs on, the middle is within a factor of 1.5 of the truth,
or the range says that it cannot be known yet. Nothing here waits: the builds are played.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import NamedTuple

import pytest

from stoker.engine.learn.forecast import Forecast
from stoker.model import events as ev
from stoker.model.reduce import reduce
from stoker.model.state import BuildState
from stoker.model.tool import Tool
from stoker.sense.ninja.plan import Plan, PlanSummary
from stoker.sense.ninja.plan_graph import UNKNOWN, PlanGraph, PlannedEdge, write_graph

PLACES, ON_DECK = 3, 64
MOST_OFF = 1.5


class Work(NamedTuple):
    """A job: what makes it, the bytes of its source, what it takes, and the group that it belongs to."""

    output: str
    tool: Tool
    size: int
    seconds: float
    group: int = 0


class Said(NamedTuple):
    """What was said when so much of the jobs had ended, and what was true."""

    share: float
    found: ev.Estimated
    truth: float

    @property
    def off(self) -> float:
        """2.0: twice the truth."""
        return (self.found.seconds + 1.0) / (self.truth + 1.0)


class Deck:
    """A build whose jobs run as stoker lets them."""

    def __init__(self, plan: Plan, jobs: Sequence[Work], deps: Sequence[Sequence[int]]) -> None:
        self._jobs, self._deps = jobs, deps
        self._left = {group: sum(job.group == group for job in jobs) for group in range(len(deps))}
        self._forecast, self._state = Forecast(), BuildState()
        self._seq, self.now = 0, 0.0
        self._tell(ev.BuildStarted("id", "b", (), "/b", "/l", "h", 2, 2**34, "1"))
        self._tell(ev.LevelSet("auto", PLACES))
        self._tell(ev.SchedulerStarted(1, "ninja", 1, "/b", "1.13", ON_DECK))
        self._forecast.planned(1, plan)

    def _tell(self, event: ev.Event) -> None:
        self._seq += 1
        event = self._forecast.foretold(event) if isinstance(event, ev.JobFinished) else event
        self._state = reduce(self._state, ev.Record(self._seq, self.now, event))
        self._forecast.heard((event,), self.now)

    def _next(self, waiting: list[int]) -> int:
        """Of those on deck, the one from which the longest chain leads to the end."""
        ready = [n for n in waiting if all(not self._left[before] for before in self._deps[self._jobs[n].group])]
        chains = {n: self._forecast.chain(1, self._jobs[n].output) or 0.0 for n in ready[:ON_DECK]}
        return max(chains, key=lambda n: chains[n]) if chains else -1

    def play(self) -> list[Said]:
        """Run everything, and ask at each end, and a second before it."""
        waiting, running = list(range(len(self._jobs))), dict[int, float]()
        said: list[tuple[float, float, ev.Estimated]] = []
        while waiting or running:
            while len(running) < PLACES and (job := self._next(waiting)) >= 0:
                waiting.remove(job)
                running[job] = self.now + self._jobs[job].seconds
                output, tool = self._jobs[job].output, self._jobs[job].tool
                self._tell(ev.JobStarted(job, 1, job, output, tool, self.now))
            job = min(running, key=lambda n: running[n])
            self._ask(said, max(self.now, running[job] - 1.0), len(waiting) + len(running))
            self.now = running.pop(job)
            ended = self._jobs[job]
            self._left[ended.group] -= 1
            self._tell(ev.JobFinished(job, 1, ended.output, ended.tool, ended.seconds, "ok"))
            self._ask(said, self.now, len(waiting) + len(running))
        return [Said(1.0 - left / len(self._jobs), found, self.now - at) for at, left, found in said]

    def _ask(self, said: list[tuple[float, float, ev.Estimated]], now: float, left: int) -> None:
        found = self._forecast.look(self._state, now)
        if found is not None:
            said.append((now, left, found))


def played(tmp_path: Path, jobs: Sequence[Work], deps: Sequence[Sequence[int]]) -> list[Said]:
    edges = [PlannedEdge((job.output,), job.tool, UNKNOWN, job.group, 0, job.size) for job in jobs]
    with (tmp_path / "graph").open("wb") as file:
        write_graph(file, edges, deps, [""], exact=True)
    plan = Plan(PlanSummary(len(jobs), 0, len(jobs), {"cxx": 1}, ""), None, 0, PlanGraph.load(tmp_path / "graph"))
    return Deck(plan, jobs, deps).play()


def between(said: Sequence[Said], first: float, last: float) -> list[Said]:
    return [s for s in said if first <= s.share <= last]


@pytest.mark.parametrize("seed", range(6))
def test_of_cxx_files_the_longest_of_which_start_first(tmp_path: Path, seed: int) -> None:
    """100 files of some seconds: counting those that ended first said twice what was true."""
    dice = random.Random(seed)
    sizes = [int(dice.lognormvariate(8.3, 0.9)) for _ in range(100)]
    jobs = [
        Work(f"src/f{name}.cpp.o", "cxx", size, 4.0 * (size / 8000) ** 0.4 * dice.lognormvariate(0.0, 0.3))
        for name, size in zip(_names(100), sizes, strict=True)
    ]
    jobs += [Work("lib.a", "archive", 0, 0.05, 1), Work("program", "link", 0, 0.2, 2)]
    for s in between(played(tmp_path, jobs, [(), (0,), (1,)]), 0.05, 0.5):
        assert 1 / MOST_OFF < s.off < MOST_OFF, s


def test_of_small_c_files_and_a_few_tables(tmp_path: Path) -> None:
    """Five of 160 take thirty times as long as the others, more than their sizes say."""
    dice = random.Random(1)
    jobs = [Work(f"m{name}.c.o", "cxx", dice.randrange(6_000, 9_000), dice.uniform(0.1, 0.2)) for name in _names(160)]
    for number in (20, 55, 90, 120, 150):
        jobs[number] = jobs[number]._replace(size=90_000, seconds=4.7)
    jobs.append(Work("program", "link", 0, 0.05, 1))
    said = played(tmp_path, jobs, [(), (0,)])
    assert 1 / MOST_OFF < median(s.off for s in between(said, 0.05, 0.1)) < MOST_OFF
    for s in between(said, 0.1, 0.5):
        assert 1 / MOST_OFF < s.off < MOST_OFF, s


def test_of_generators_and_what_is_compiled_of_their_output(tmp_path: Path) -> None:
    """Until the first of the compilations has ended, nothing shows what they take: the range says so."""
    dice = random.Random(2)
    jobs = [Work(f"gen/{name}.cc", "other", 0, dice.lognormvariate(-0.8, 0.5), 0) for name in _names(60)]
    jobs += [Work(f"obj/{name}.o", "cxx", 0, dice.lognormvariate(-0.5, 0.3), 1) for name in _names(45)]
    said = played(tmp_path, jobs, [(), (0,)])
    first = between(said, 0.05, 0.55)
    assert all(s.off < 2.0 and s.found.low <= s.truth <= s.found.high for s in first), first
    assert between(said, 0.05, 0.1)[0].off < MOST_OFF
    seen = between(said, 0.6, 0.6)[0].found
    assert seen.high / seen.low < first[-1].found.high / first[-1].found.low, "it narrows once one has ended"


def _names(count: int) -> list[str]:
    """Names without numbers, which would make families."""
    return [f"{chr(97 + n // 26)}{chr(97 + n % 26)}" for n in range(count)]
