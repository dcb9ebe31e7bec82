"""Measures how far the predicted time left is from the truth. See bench/README.md.

    python -m bench.eta [--real | --recorded | --paper] [--seeds 10] [--json FILE] [--write]

The forecast is given every start and end of a build at its time, as by the engine, and is asked for the time left at
10, 25, 50 and 75 % of the build. For comparison: the rule of three (elapsed x jobs left / jobs done) and ninja's own
estimate (NINJA_STATUS, %E). Knows nothing of engines; memory never binds.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path

from bench.eta_builds import Build, Ran, paper_builds, real_builds, recorded_builds
from bench.figures import add_arguments, load, machine, publish, table
from stoker.config.priors import load_priors, shipped_priors
from stoker.decide.memory.learner import Learner
from stoker.engine.learn.forecast import ASK_AT_ONCE, Forecast, Foretold
from stoker.model import events as ev
from stoker.model.reduce import reduce
from stoker.model.samples import JobSample, MachineSample
from stoker.model.state import BuildState
from stoker.model.tool import Tool
from stoker.report.svg import Axis, Bar, bars

SHARES = (0.1, 0.25, 0.5, 0.75)
"""Parts of a build's time at which middles are held against the truth; bands are at all looks from the first on."""

LOOKS = 40
"""Estimates of a build: a real engine makes one every five seconds."""

WIDTHS = (1, 2, 4)
"""Cores that recorded builds are played on; on more the small ones are over in seconds."""

HELD_OUT = frozenset(("flac", "glslang", "mbedtls", "tiff"))
"""Recorded builds that few constants were chosen by (docs/eta.md)."""

BAND_FROM = 0.25
"""The part of a build's time from which on the band is meant to be at most twice as wide at its high end."""

LEAST_SAID = 4.0
"""Seconds left from which on widths count: a band reaches a second either way at least."""

SIZES = ((100, 4), (400, 16), (2000, 16), (2000, 64))
"""Jobs and cores of the builds on paper."""


@dataclass
class Result:
    """One prediction. All in seconds; `rival` is the rule of three over jobs."""

    build: str
    share: float
    left: float
    forecast: float | None = None
    low: float | None = None
    high: float | None = None
    rival: float | None = None
    ninja: float | None = None


@cache
def _learner() -> Learner:
    return Learner(load_priors([shipped_priors()])[0])


def _by_class(output: str, tool: Tool, _argv: tuple[str, ...]) -> Foretold:
    """What the shipped classes of jobs say; recorded builds have no command lines, and there is no history."""
    return Foretold(_learner().stated(output, tool), 0.0)


class Watched:
    """The build's state and its forecast, fed with events."""

    def __init__(self, build: Build) -> None:
        self.state = BuildState()
        self.forecast = Forecast(_by_class)
        self._seq = 0
        self._machine = MachineSample(0.0, (), float(build.cores), 2**40, 0, 2**40, "machine")
        self.tell(0.0, ev.SchedulerStarted(1, "ninja", 1, "/b", "", build.width))
        summary = build.plan.summary
        self.tell(0.0, ev.SchedulerPlanned(1, summary.total, "dry-run", summary.tools))
        self.forecast.planned(1, build.plan)
        for _ in range(0, len(build.jobs), ASK_AT_ONCE):  # a real engine asks for some more every five seconds
            self.forecast.ask()
        self.sample(0.0, None)

    def tell(self, now: float, event: ev.Event) -> None:
        self._seq += 1
        self.state = reduce(self.state, ev.Record(self._seq, now, event))
        self.forecast.heard((event,), now)

    def sample(self, now: float, share: float | None) -> None:
        """`share` is the part of a core that each running job gets, if that was measured."""
        percent = 100 * share if share is not None else 0.0
        jobs = tuple(JobSample(jid, 0, percent, "") for jid in self.state.jobs) if share is not None else ()
        self.tell(now, ev.Sampled(self._machine, jobs, 0, 0, 0, "", 0))

    def begin(self, job: Ran, jid: int) -> None:
        self.tell(job.start, ev.JobStarted(jid, 1, jid, job.output, job.tool, job.start))

    def end(self, job: Ran, jid: int) -> None:
        event = ev.JobFinished(jid, 1, job.output, job.tool, job.end - job.start, "ok")
        self.tell(job.end, self.forecast.foretold(event))


def judge(build: Build) -> list[Result]:
    """Play the build once, and ask."""
    watched = Watched(build)
    whole = max(job.end for job in build.jobs)
    begin, end, sample, ask = range(4)
    moments = [(j.start, begin, n) for n, j in enumerate(build.jobs)]
    moments += [(j.end, end, n) for n, j in enumerate(build.jobs)]
    moments += [(at, sample, n) for n, (at, _) in enumerate(build.cpu)]
    moments += [(n / LOOKS * whole, ask, n) for n in range(1, LOOKS)]
    results: list[Result] = []
    for now, kind, number in sorted(moments):
        if kind == begin:
            watched.begin(build.jobs[number], number + 1)
        elif kind == end:
            watched.end(build.jobs[number], number + 1)
        elif kind == sample:
            watched.sample(now, _share(build, number, len(watched.state.jobs)))
        else:
            found = watched.forecast.look(watched.state, now)
            if found is not None:
                watched.tell(now, found)
            if number / LOOKS >= SHARES[0]:
                results.append(_result(build, number / LOOKS, whole, found))
    return results


def _share(build: Build, number: int, running: int) -> float | None:
    """The part of a core that each job got between two measurements."""
    if number == 0 or not running:
        return None
    (before, spent), (now, more) = build.cpu[number - 1 : number + 1]
    return (more - spent) / (now - before) / running


def _result(build: Build, share: float, whole: float, found: ev.Estimated | None) -> Result:
    now = share * whole
    done = sum(job.end <= now for job in build.jobs)
    said = [predicted - (now - at) for at, predicted in build.ninja if at <= now]
    return Result(
        build.name,
        share,
        whole - now,
        found.seconds if found else None,
        found.low if found else None,
        found.high if found else None,
        now * (len(build.jobs) - done) / done if done else None,
        max(0.0, said[-1]) if said else None,
    )


# -- the table -------------------------------------------------------------------------------------------------


def summary(results: Sequence[Result]) -> str:
    """For each build and share the median error as a factor: forecast / rule of three / ninja's own; and the bands."""
    head = [
        "build",
        *(f"at {share:.0%}" for share in SHARES),
        "truth within the band",
        "high over low: median / of nine in ten",
    ]
    groups = {name: [r for r in results if r.build == name] for name in dict.fromkeys(r.build for r in results)}
    for kind in ("first", "again"):
        if alike := [r for r in results if _is_recorded(r.build, kind) and not _is_held_out(r.build)]:
            groups[f"**all recorded, {kind}**"] = alike
    if held := [r for r in results if _is_held_out(r.build)]:
        groups["**held out, first**"] = held
    rows = [
        [name, *(_cell([r for r in own if r.share == s]) for s in SHARES), *_bands(own)] for name, own in groups.items()
    ]
    return table(head, rows)


def _bands(rows: Iterable[Result]) -> tuple[str, str]:
    """How often the truth lay within the band from BAND_FROM on, and how wide that was: the median, and nine of ten."""
    inside, widths = list[bool](), list[float]()
    for r in rows:
        if r.share >= BAND_FROM and r.forecast is not None and r.low is not None and r.high is not None:
            inside.append(r.low <= r.left <= r.high)
            if r.forecast >= LEAST_SAID:
                widths.append(r.high / r.low)
    widths.sort()
    wide = f"{statistics.median(widths):.2f} / {widths[int(0.9 * len(widths))]:.2f}" if widths else "–"
    return f"{statistics.fmean(inside):.0%}" if inside else "–", wide


def _is_held_out(build: str) -> bool:
    return build.partition(",")[0] in HELD_OUT


def _is_recorded(build: str, kind: str) -> bool:
    return build.endswith(f", {kind}") and not build.startswith("paper")


def medians(results: Sequence[Result]) -> dict[str, dict[str, list[float | None]]]:
    """For each build and share the median errors as factors: forecast, rule of three, ninja's own."""
    return {
        name: {f"{share:.0%}": _errors([r for r in results if (r.build, r.share) == (name, share)]) for share in SHARES}
        for name in dict.fromkeys(r.build for r in results)
    }


def plots_of(results: Sequence[Result]) -> dict[str, str]:
    """The same at a quarter of each build."""
    groups = {
        name: [Bar(error, note="" if error is not None else "says nothing") for error in errors["25%"]]
        for name, errors in medians(results).items()
    }
    axis = Axis("median error of the predicted time left, as a factor, at a quarter of the build", top=4.0)
    return {"eta": bars("The time left", ["stoker", "rule of three", "ninja's own (%E)"], groups, axis)}


def _cell(rows: Sequence[Result]) -> str:
    return " / ".join("–" if error is None else f"{error:.2f}" for error in _errors(rows))


def _errors(rows: Sequence[Result]) -> list[float | None]:
    told = ([r.forecast for r in rows], [r.rival for r in rows], [r.ninja for r in rows])
    return [_error(rows, said) for said in told]


def _error(rows: Sequence[Result], said: Iterable[float | None]) -> float | None:
    """Too long and too short count alike: 2.0 is twice, or half, the truth. A second more or less is no error."""
    errors = [abs(math.log((s + 1.0) / (r.left + 1.0))) for s, r in zip(said, rows, strict=True) if s is not None]
    return math.exp(statistics.median(errors)) if errors else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", action="store_true", help="only the real builds")
    parser.add_argument("--recorded", action="store_true", help="only the recorded builds")
    parser.add_argument("--paper", action="store_true", help="only the builds on paper")
    parser.add_argument("--seeds", type=int, default=10, help="builds on paper of each size")
    add_arguments(parser)
    args = parser.parse_args()
    before = load()
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="stoker-eta-") as name:
        everything = not (args.real or args.recorded or args.paper)
        if everything or args.real:
            for build in real_builds(Path(name)):
                results += judge(build)
        if everything or args.recorded:
            for build in recorded_builds(Path(name), WIDTHS):
                results += judge(build)
        if everything or args.paper:
            for build in paper_builds(Path(name), args.seeds, SIZES):
                results += judge(build)
    where = f"{machine()}. Load at the start: {before:.1f}."
    publish(
        "eta",
        [asdict(r) for r in results],
        f"{summary(results)}\n\n{where}",
        out=args.json,
        write=args.write,
        summary=medians(results),
        plots=plots_of(results),
    )


if __name__ == "__main__":
    main()
