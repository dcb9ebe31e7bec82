"""Replays the forecast of the time left over a recorded build. See bench/README.md.

    python -m bench.eta_journal JOURNAL [--after JOURNAL]

Shows for each estimate in the journal the truth, what was said then, and what this program says. The plan is made up of
the jobs that the build went on to finish, with the groups of its last plan; no source is read and no history asked:
what the journal has stated of a job counts. `--after`: the build that this one resumed. Knows nothing of engines.
"""

from __future__ import annotations

import argparse
import math
import statistics
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

from stoker.config.priors import load_priors, shipped_priors
from stoker.decide.time_left.durations import SIZE_POWERS, TYPICAL_SIZE, WEIGHTS, kind_of
from stoker.engine.learn.expectations import Expectations
from stoker.engine.learn.forecast import Forecast, Foretold
from stoker.model import events as ev
from stoker.model.reduce import reduce
from stoker.model.state import BuildState
from stoker.record.journal_reader import read_journal
from stoker.sense.ninja.plan import Plan, PlanSummary
from stoker.sense.ninja.plan_graph import UNKNOWN, PlanGraph, PlannedEdge, write_graph


class Said(NamedTuple):
    """An estimate at `time` seconds of the build, of which `left` were left: what the build said, and what is said
    now."""

    time: float
    left: float
    then: ev.Estimated
    now: ev.Estimated | None


class Replay:
    """One build's forecast, fed with its journal."""

    def __init__(self, records: Sequence[ev.Record], earlier: Sequence[ev.Record], folder: Path) -> None:
        self._folder = folder
        self._expectations = Expectations(load_priors([shipped_priors()])[0])
        self._finished = [(r.time, r.event) for r in records if isinstance(r.event, ev.JobFinished) and _well(r.event)]
        self._stated = {e.output: e.stated for _, e in self._finished if e.stated is not None}
        self._forecast = Forecast(self._foretell)
        self._records = records
        for record in earlier:
            self._learn(record.event, earlier=True)

    def run(self) -> list[Said]:
        """Ask at each moment at which the build did."""
        state, found = BuildState(), list[Said]()
        cpu: dict[int, float] = {}
        begin, end = self._records[0].time, self._records[-1].time
        sampled = begin
        for record in self._records:
            event = record.event
            if isinstance(event, ev.Sampled):
                for job in event.jobs:
                    cpu[job.jid] = cpu.get(job.jid, 0.0) + job.cpu / 100 * (record.time - sampled)
                sampled = record.time
            if isinstance(event, ev.Estimated):
                now = self._forecast.look(state, record.time, cpu)
                found.append(Said(record.time - begin, end - record.time, event, now))
                event = now or event
            state = reduce(state, replace(record, event=event))
            self._forecast.heard((event,), record.time)
            self._learn(event)
            if isinstance(event, ev.SchedulerPlanned) and event.after:
                self._forecast.planned(event.sid, self._plan(record.time))
        return found

    def _learn(self, event: ev.Event, *, earlier: bool = False) -> None:
        if isinstance(event, ev.JobFinished):
            if earlier:
                self._forecast.recall(event)
            self._expectations.recall(event)
        elif isinstance(event, ev.JobKilled):
            self._expectations.killed(event)

    def _plan(self, time: float) -> Plan:
        left = [e for at, e in self._finished if at > time]
        last = [r.event for r in self._records if isinstance(r.event, ev.SchedulerPlanned) and r.event.after][-1]
        groups = {(e.output.rpartition("/")[0], e.tool): e.group or 0 for _, e in self._finished}
        edges = [
            PlannedEdge((e.output,), e.tool, UNKNOWN, groups[e.output.rpartition("/")[0], e.tool], 0, _size(e))
            for e in left
        ]
        path = self._folder / f"{time}"
        with path.open("wb") as file:
            write_graph(file, edges, last.after, [""], exact=True)
        tools: Counter[str] = Counter(e.tool for e in left)
        return Plan(PlanSummary(len(left), 0, len(left), tools, ""), None, 0, PlanGraph.load(path))

    def _foretell(self, output: str, tool: str, argv: tuple[str, ...]) -> Foretold:
        stated = self._stated.get(output)
        held = self._expectations.foretell(output, tool, argv).held
        return Foretold(stated if stated is not None and stated.by not in ("size", "twin") else None, held)


def _well(event: ev.JobFinished) -> bool:
    return event.outcome == "ok" and event.counted


def _size(event: ev.JobFinished) -> int:
    """The bytes of its source, by the weight that followed from them; 0 if nothing did."""
    kind = kind_of(event.tool, event.output)
    if event.stated is None or event.stated.by not in ("size", "twin") or kind not in SIZE_POWERS:
        return 0
    return round(TYPICAL_SIZE * math.pow(event.stated.amount / WEIGHTS[kind], 1.0 / SIZE_POWERS[kind]))


def table(said: Sequence[Said]) -> str:
    return "\n".join(
        f"{s.time:7.1f} left {s.left:7.1f}   said {_one(s.then, s.left)}   now {_one(s.now, s.left)}" for s in said
    )


def _one(e: ev.Estimated | None, left: float) -> str:
    if e is None:
        return "-"
    mark = " " if e.low <= left <= e.high else "!"
    return f"{e.seconds:7.1f} ({e.low:6.1f}-{e.high:8.1f}){mark}x{left / max(e.seconds, 0.1):5.2f}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("journal", type=Path)
    parser.add_argument("--after", type=Path)
    args = parser.parse_args()
    records = list(read_journal(args.journal))
    earlier = list(read_journal(args.after)) if args.after else []
    with tempfile.TemporaryDirectory(prefix="stoker-eta-") as name:
        said = Replay(records, earlier, Path(name)).run()
    print(table(said))
    print(f"then {_summary([(s.left, s.then) for s in said])}")
    print(f"now  {_summary([(s.left, s.now) for s in said if s.now is not None])}")


def _summary(said: Sequence[tuple[float, ev.Estimated]]) -> str:
    """How often the truth lay within the band, and the median factor by which the middle was off."""
    inside = sum(e.low <= left <= e.high for left, e in said)
    errors = [abs(math.log((e.seconds + 1.0) / (left + 1.0))) for left, e in said]
    off = f"; median off by {math.exp(statistics.median(errors)):.2f}" if errors else ""
    return f"{inside} of {len(said)} inside{off}"


if __name__ == "__main__":
    main()
