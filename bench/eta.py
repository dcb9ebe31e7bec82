"""How far the predicted time left is from the truth. See bench/README.md.

    python -m bench.eta [--real | --paper] [--seeds 10] [--json FILE] [--write]

The forecast hears every start and end of a build at its time, as the engine would tell it, and is asked for the time
left every five seconds and at 10, 25, 50 and 75 % of the build. Beside it: counting jobs by tool, as without a graph,
and ninja's own estimate (NINJA_STATUS, %E). Knows nothing of engines; memory never binds.
"""

from __future__ import annotations

import argparse
import statistics
import tempfile
from collections.abc import Iterable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

from bench.eta_builds import Build, Ran, paper_builds, real_builds
from bench.figures import add_arguments, load, machine, publish, table
from bench.plots import Axis, Bar, bars
from stoker.decide.eta import estimate
from stoker.engine.forecast import Forecast
from stoker.model import events as ev
from stoker.model.reduce import reduce
from stoker.model.samples import JobSample, MachineSample
from stoker.model.state import BuildState

SHARES = (0.1, 0.25, 0.5, 0.75)
"""Parts of a build's time at which predictions are held against the truth."""

LOOK_EVERY = 5.0
SIZES = ((100, 4), (400, 16), (2000, 16), (2000, 64))
"""Jobs and cores of the builds on paper."""


@dataclass
class Result:
    """One prediction. All in seconds; `rival` is by counting jobs, as before there was a graph."""

    build: str
    share: float
    left: float
    forecast: float | None = None
    low: float | None = None
    high: float | None = None
    rival: float | None = None
    ninja: float | None = None


class Watched:
    """The build's state and its forecast, fed with events."""

    def __init__(self, build: Build) -> None:
        self.state = BuildState()
        self.forecast = Forecast()
        self._seq = 0
        self._machine = MachineSample(0.0, (), float(build.cores), 2**40, 0, 2**40, "machine")
        self.tell(0.0, ev.SchedulerStarted(1, "ninja", 1, "/b", "", build.width))
        summary = build.plan.summary
        self.tell(0.0, ev.SchedulerPlanned(1, summary.total, "dry-run", summary.tools))
        self.forecast.planned(1, build.plan)
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
        self.tell(job.end, ev.JobFinished(jid, 1, job.output, job.tool, job.end - job.start, "ok"))


def judge(build: Build) -> list[Result]:
    """Play the build once, and ask."""
    watched = Watched(build)
    whole = max(job.end for job in build.jobs)
    begin, end, sample, look, ask = range(5)
    moments = [(j.start, begin, n) for n, j in enumerate(build.jobs)]
    moments += [(j.end, end, n) for n, j in enumerate(build.jobs)]
    moments += [(at, sample, n) for n, (at, _) in enumerate(build.cpu)]
    moments += [(LOOK_EVERY * n, look, n) for n in range(int(whole / LOOK_EVERY))]
    moments += [(share * whole, ask, n) for n, share in enumerate(SHARES)]
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
            if kind == ask:
                results.append(_result(build, SHARES[number], whole, found, watched.state))
    return results


def _share(build: Build, number: int, running: int) -> float | None:
    """The part of a core that each job got between two measurements."""
    if number == 0 or not running:
        return None
    (before, spent), (now, more) = build.cpu[number - 1 : number + 1]
    return (more - spent) / (now - before) / running


def _result(build: Build, share: float, whole: float, found: ev.Estimated | None, state: BuildState) -> Result:
    now = share * whole
    rival = estimate(state, now)
    said = [predicted - (now - at) for at, predicted in build.ninja if at <= now]
    return Result(
        build.name,
        share,
        whole - now,
        found.seconds if found else None,
        found.low if found else None,
        found.high if found else None,
        rival.seconds if rival else None,
        max(0.0, said[-1]) if said else None,
    )


# -- the table -------------------------------------------------------------------------------------------------


def summary(results: Sequence[Result]) -> str:
    """For each build and share the median error in percent of the truth: forecast / by counting / ninja's own."""
    head = ["build", *(f"at {share:.0%}" for share in SHARES), "truth within the band"]
    rows = []
    for name in dict.fromkeys(r.build for r in results):
        own = [r for r in results if r.build == name]
        inside = [r for r in own if r.low is not None and r.high is not None and r.low <= r.left <= r.high]
        rows.append([name, *(_cell([r for r in own if r.share == s]) for s in SHARES), f"{len(inside)} of {len(own)}"])
    return table(head, rows)


def medians(results: Sequence[Result]) -> dict[str, dict[str, list[float | None]]]:
    """For each build and share the median errors in percent: forecast, by counting, ninja's own."""
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
    axis = Axis("median error of the predicted time left, percent of the truth, at a quarter of the build", top=150.0)
    return {"eta": bars("The time left", ["stoker", "counting jobs", "ninja's own (%E)"], groups, axis)}


def _cell(rows: Sequence[Result]) -> str:
    return " / ".join("–" if error is None else f"{error:.0f}" for error in _errors(rows))


def _errors(rows: Sequence[Result]) -> list[float | None]:
    told = ([r.forecast for r in rows], [r.rival for r in rows], [r.ninja for r in rows])
    return [_error(rows, said) for said in told]


def _error(rows: Sequence[Result], said: Iterable[float | None]) -> float | None:
    errors = [abs(100 * (s / r.left - 1)) for s, r in zip(said, rows, strict=True) if s is not None]
    return statistics.median(errors) if errors else None


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--real", action="store_true", help="only the real builds")
    parser.add_argument("--paper", action="store_true", help="only the builds on paper")
    parser.add_argument("--seeds", type=int, default=10, help="builds on paper of each size")
    add_arguments(parser)
    args = parser.parse_args()
    before = load()
    results: list[Result] = []
    with tempfile.TemporaryDirectory(prefix="stoker-eta-") as name:
        if not args.paper:
            for build in real_builds(Path(name)):
                results += judge(build)
        if not args.real:
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
