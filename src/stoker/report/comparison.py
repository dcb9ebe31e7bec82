"""Compares two sides of recorded builds: what changed, overall and job by job, beyond noise. Pure.

A single run does not show noise. With two or more on each side a figure has changed if the medians are further apart
than the runs of either side, no run of one side lies among those of the other, and the change is above a share. If
other work left one side fewer of the cores, time must change by more than that explains, and CPU time a little.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import median
from typing import Literal

from stoker.model.progress import progress_of
from stoker.model.text import clean
from stoker.model.units import format_duration
from stoker.report.recorded import RecordedBuild

Verdict = Literal["same", "worse", "better", "unknown"]
"""unknown: too few runs, it was measured on one side only, or, in all, a build did not end well."""

Run = Mapping[str, float | None]
"""What one run took, by figure."""

_GRAVEST: tuple[Verdict, ...] = ("worse", "better", "unknown")

LEAST_RUNS = 2
"""Runs of each side that show noise."""

LEAST_SECONDS, LEAST_BYTES = 1.0, 64 * 2**20
"""CPU seconds and bytes of a job below which its change is of no weight."""

SAMPLED_SECONDS = 1.0
"""Between two samples of a job's memory. What it grows by in that time stays unseen before its peak: of a job of two
seconds up to half."""

BETTER_MORE = ("cache_hits",)
"""Figures of which more is better; of all others less is."""

NOT_JUDGED = ("jobs", "level", "pace")
"""Figures that say what was built and how: neither more nor less is better."""


USUAL_CHANGE = 0.05
"""The share above which something has changed, where none is given."""

PACE_COSTS = {"seconds": 1.0, "cpu_seconds": 0.12}
"""By how much of it a figure grows where a job gets so much less of a core than it might: time by all of it. CPU time
grew by a fifth where it was a third (g++ 12 on two cores that others used too), as caches are shared."""


class UnfitError(ValueError):
    """These builds cannot be compared; the message is one line that names the one and says why."""


@dataclass(frozen=True, slots=True)
class Change:
    """A figure on both sides: of the whole build, or of the job `job`. Medians; None where no run has it."""

    figure: str
    before: float | None
    after: float | None
    verdict: Verdict
    job: str = ""

    @property
    def share(self) -> float | None:
        """By how much of what it was it has changed."""
        if self.before is None or self.after is None or self.before <= 0:
            return None
        return self.after / self.before - 1


@dataclass(frozen=True, slots=True)
class JobPair:
    """One job on both sides: what it took in each run, and what changed. None where a run has no such figure."""

    job: str
    seconds: Change
    cpu: Change
    memory: Change
    before: tuple[Run, ...]
    after: tuple[Run, ...]

    @property
    def verdict(self) -> Verdict:
        """The graver of those of its CPU time and its memory."""
        verdicts = (self.cpu.verdict, self.memory.verdict)
        return next((v for v in _GRAVEST if v in verdicts), "same")


@dataclass(frozen=True, slots=True)
class Comparison:
    """What changed: in all, and of jobs those that did, the largest change first. Jobs of one side only are named.

    `pairs` are all jobs of both sides, `names` the builds of either, and `unfinished` what the builds of either have
    done that did not end well: such a build took less of everything, so in all nothing is judged.
    """

    runs: tuple[int, int]
    totals: tuple[Change, ...]
    jobs: tuple[Change, ...]
    gone: tuple[str, ...]
    new: tuple[str, ...]
    pairs: tuple[JobPair, ...] = ()
    names: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())
    unfinished: tuple[tuple[str, ...], tuple[str, ...]] = ((), ())

    @property
    def regressed(self) -> tuple[Change, ...]:
        """What became worse in all."""
        return tuple(change for change in self.totals if change.verdict == "worse")


def compare(before: Sequence[RecordedBuild], after: Sequence[RecordedBuild], above: float) -> Comparison:
    """Return what changed by more than the share `above` (0.05: 5 %), and by more than noise."""
    sides = [[figures(build) for build in side] for side in (before, after)]
    busier = _busier(*([f["pace"] for f in side] for side in sides))
    slack = {name: above + busier * PACE_COSTS.get(name, 0.0) for name in FIGURES}
    by_job = [_by_job(side) for side in (before, after)]
    largest = max((job for side in by_job for job in side.values()), key=_peak, default=())
    slack_in_all = {**slack, "peak_bytes": slack["peak_bytes"] + _unseen(largest)}
    totals = [
        _change(name, *([f[name] for f in side] for side in sides), above=share, judged=name not in NOT_JUDGED)
        for name, share in slack_in_all.items()
    ]
    pairs = tuple(
        _pair(output, by_job[0][output], by_job[1][output], slack) for output in by_job[0] if output in by_job[1]
    )
    moved = [c for pair in pairs for c in (pair.cpu, pair.memory) if c.verdict in ("worse", "better")]
    moved.sort(key=lambda c: abs((c.after or 0) - (c.before or 0)) / (c.before or 1), reverse=True)
    gone, new = (tuple(o for o in by_job[a] if o not in by_job[1 - a]) for a in (0, 1))
    names = (tuple(build.state.id for build in before), tuple(build.state.id for build in after))
    unfinished = (_unfinished(before), _unfinished(after))
    if any(unfinished):
        totals = [replace(change, verdict="unknown") for change in totals]
    return Comparison((len(before), len(after)), tuple(totals), tuple(moved), gone, new, pairs, names, unfinished)


def _pair(job: str, before: Sequence[Run], after: Sequence[Run], slack: Mapping[str, float]) -> JobPair:
    """Hold a job's runs against each other. Its time depends on who runs beside it, so that is not judged."""

    def change(figure: str, least: float, *, judged: bool = True) -> Change:
        values = [[run[figure] for run in side] for side in (before, after)]
        weighs = max(v or 0.0 for side in values for v in side) >= least
        share = slack[figure] + (_unseen([*before, *after]) if figure == "peak_bytes" else 0.0)
        return _change(figure, *values, above=share, judged=judged and weighs, job=job)

    return JobPair(
        job,
        change("seconds", 0.0, judged=False),
        change("cpu_seconds", LEAST_SECONDS),
        change("peak_bytes", LEAST_BYTES),
        tuple(before),
        tuple(after),
    )


def _peak(runs: Sequence[Run]) -> float:
    return max((run["peak_bytes"] or 0.0 for run in runs), default=0.0)


def _unseen(runs: Sequence[Run]) -> float:
    """Return the share by which the peak of a job that ran so long may be more than was sampled."""
    seconds = [run["seconds"] for run in runs if run["seconds"]]
    return SAMPLED_SECONDS / min(seconds) if seconds else 0.0


def check_side(builds: Iterable[RecordedBuild]) -> None:
    """Check that each run of a side is there once. Raises UnfitError."""
    seen: set[str] = set()
    for build in builds:
        name = clean(build.state.id, 80)
        if name in seen:
            raise UnfitError(f"{name} is named twice; a run counts once")
        seen.add(name)


def _unfinished(builds: Iterable[RecordedBuild]) -> tuple[str, ...]:
    """Return what the builds have done that did not end well, a line for each."""
    return tuple(_unfinished_text(build) for build in builds if build.state.exit_code != 0)


def _unfinished_text(build: RecordedBuild) -> str:
    state = build.state
    how = "was stopped" if state.outcome == "stopped" else f"ended with status {state.exit_code}"
    if state.exit_code is None:
        how = "has no end in its journal"
    done = progress_of(state).finished
    jobs = "1 job" if done == 1 else f"{done} jobs"
    return f"{clean(state.id, 80)} {how} after {format_duration(build.seconds)}, with {jobs} done"


def figures(build: RecordedBuild) -> dict[str, float | None]:
    """Return the figures of a build in all: the keys are FIGURES."""
    cache, jobs = build.state.cache, [job for job in build.jobs if job.began is not None]
    running = [(s.running, s.seconds) for s in build.speeds if s.running]
    seconds = sum(span for _, span in running)
    return {
        "seconds": build.seconds,
        "cpu_seconds": sum(job.cpu or 0.0 for job in jobs),
        "peak_bytes": float(build.state.memory.build_peak),
        "cache_hits": None if cache is None or cache.rate is None else 100 * cache.rate,
        "killed": float(sum(job.fate == "killed" for job in jobs)),
        "jobs": float(progress_of(build.state).finished),
        "level": sum(n * span for n, span in running) / seconds if seconds else None,
        "pace": 100 * sum(s.cpu for s in build.speeds) / spent if (spent := sum(n * s for n, s in running)) else None,
    }


FIGURES: Mapping[str, str] = {
    "seconds": "time",
    "cpu_seconds": "CPU time of jobs",
    "peak_bytes": "most memory",
    "cache_hits": "cache hits (%)",
    "killed": "jobs killed",
    "jobs": "jobs",
    "level": "jobs at once",
    "pace": "CPU per job (%)",
}
"""What is compared, and in words."""


def _busier(before: Sequence[float | None], after: Sequence[float | None]) -> float:
    """Return by how much more of a core a job got on the side that had more: 1.0 is twice as much."""
    a, b = (median([v for v in side if v]) if any(side) else 0.0 for side in (before, after))
    return max(a, b) / min(a, b) - 1 if a > 0 and b > 0 else 0.0


def _by_job(side: Iterable[RecordedBuild]) -> dict[str, list[Run]]:
    """Return each job's runs by its output, those that ended well."""
    found: dict[str, list[Run]] = {}
    for build in side:
        for job in build.jobs:
            if job.fate == "ok":
                run = {"seconds": job.seconds, "cpu_seconds": job.cpu, "peak_bytes": float(job.peak) or None}
                found.setdefault(job.output, []).append(run)
    return found


def _change(
    figure: str,
    before: Sequence[float | None],
    after: Sequence[float | None],
    *,
    above: float,
    judged: bool = True,
    job: str = "",
) -> Change:
    a, b = ([v for v in side if v is not None] for side in (before, after))
    if not a or not b:
        return Change(figure, median(a) if a else None, median(b) if b else None, "unknown", job)
    verdict = _verdict(a, b, above, worse=_less if figure in BETTER_MORE else _more)
    return Change(figure, median(a), median(b), verdict if judged else "same", job)


def _verdict(a: Sequence[float], b: Sequence[float], above: float, worse: Callable[[float, float], bool]) -> Verdict:
    if min(len(a), len(b)) < LEAST_RUNS:
        return "unknown"
    noise = max(max(a) - min(a), max(b) - min(b))
    apart = max(a) < min(b) or max(b) < min(a)
    if not apart or abs(median(b) - median(a)) <= max(above * median(a), noise):
        return "same"
    return "worse" if worse(median(b), median(a)) else "better"


def _more(a: float, b: float) -> bool:
    return a > b


def _less(a: float, b: float) -> bool:
    return a < b
