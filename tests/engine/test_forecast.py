"""The forecast follows a build: what has ended counts no more, stopped jobs do not age, history is asked for."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from stoker.engine.learn.forecast import LEARNT_FROM, Forecast, Foretold
from stoker.model import events as ev
from stoker.model.codec import decode_record, encode_record
from stoker.model.lessons import Stated
from stoker.model.progress import will_not_run
from stoker.model.reduce import reduce
from stoker.model.remote import RemoteEngine, RemoteHost
from stoker.model.samples import JobSample, MachineSample
from stoker.model.state import BuildState
from stoker.model.tool import Tool
from stoker.sense.ninja.plan import Plan, PlanSummary
from stoker.sense.ninja.plan_graph import UNKNOWN, PlanGraph, PlannedEdge, write_graph

GIB = 2**30
Write = Callable[..., Plan]


@pytest.fixture
def plan_of(tmp_path: Path) -> Write:
    """A plan of edges given as name -> (group, seconds of an earlier run or UNKNOWN), and the groups' dependencies."""

    def write(edges: dict[str, tuple[int, float]], deps: Sequence[Sequence[int]], *, exact: bool = True) -> Plan:
        planned = [PlannedEdge((name,), _tool(name), seconds, group) for name, (group, seconds) in edges.items()]
        path = tmp_path / f"graph{len(list(tmp_path.iterdir()))}"
        with path.open("wb") as file:
            write_graph(file, planned, deps, [""], exact=exact)
        summary = PlanSummary(len(planned), 0, len(planned), {"cxx": len(planned)}, "")
        return Plan(summary, None, 0, PlanGraph.load(path))

    return write


def _tool(name: str) -> Tool:
    return "nvcc" if name.endswith(".cu.o") else "link" if name.endswith(".so") else "cxx"


class Build:
    """A state and a forecast that hear the same events, as the engine sees to it."""

    def __init__(
        self,
        forecast: Forecast,
        plan: Plan | None,
        cores: float = 4.0,
        total: int | None = None,
        level: int | None = None,
    ) -> None:
        self.state = BuildState()
        self.forecast = forecast
        self._seq = self._jid = 0
        self._jids: dict[str, int] = {}
        self.journal: list[ev.Record] = []
        self.machine = MachineSample(0.0, (), cores, 64 * GIB, 0, 64 * GIB, "machine")
        self.tell(0.0, ev.BuildStarted("id", "b", (), "/b", "/l", "h", int(cores), 64 * GIB, "1"))
        self.tell(0.0, ev.LevelSet("auto", level or int(cores)))
        self.tell(0.0, ev.SchedulerStarted(1, "ninja", 1, "/b", "1.13", 8))
        if plan is not None:
            self.plan(0.0, plan, total)
        self.sample(0.0)

    def tell(self, now: float, event: ev.Event) -> None:
        self._seq += 1
        if isinstance(event, ev.JobFinished):
            event = self.forecast.foretold(event)
        record = decode_record(encode_record(ev.Record(self._seq, now, event)))
        self.journal.append(record)
        event = record.event
        self.state = reduce(self.state, record)
        self.forecast.heard((event,), now)
        for blocked in self.forecast.blocked(self.state):
            self.tell(now, blocked)

    def plan(self, now: float, plan: Plan, total: int | None = None) -> None:
        self.forecast.planned(1, plan)
        self.tell(now, ev.SchedulerPlanned(1, total or plan.total, "dry-run", plan.summary.tools))

    def sample(self, now: float, share: float = 1.0) -> None:
        """Every running job gets this share of a core."""
        jobs = [j for j in self.state.jobs.values() if j.state == "running"]
        samples = tuple(JobSample(j.jid, GIB, 100.0 * share, "cc1plus") for j in jobs)
        self.tell(now, ev.Sampled(self.machine, samples, 0, 0, 0, "", 0))

    def start(self, now: float, output: str, state: ev.JobState = "running") -> None:
        self._jid += 1
        self._jids[output] = self._jid
        self.tell(now, ev.JobStarted(self._jid, 1, self._jid, output, _tool(output), now, state))

    def move(self, now: float, output: str, state: ev.JobState, by: ev.MovedBy = "") -> None:
        self.tell(now, ev.JobMoved(self._jids[output], state, by=by))

    def end(
        self,
        now: float,
        output: str,
        seconds: float,
        outcome: ev.JobOutcome = "ok",
        host: str = "",
        since_it_was_back: float = math.inf,
        cpu: float | None = None,
    ) -> None:
        jid, before = self._jids.get(output), max(0.0, seconds - since_it_was_back)
        event = ev.JobFinished(jid, 1, output, _tool(output), seconds, outcome, host=host, elsewhere=before)
        self.tell(now, replace(event, cpu_seconds=cpu))

    def jid(self, output: str) -> int:
        return self._jids[output]

    def fails(self, now: float, output: str) -> None:
        """The build's output says so."""
        self.tell(now, ev.FailureFound(output, "c++", 1, (), 0, 0))

    def run(self, start: float, end: float, *outputs: str) -> None:
        for output in outputs:
            self.start(start, output)
        for output in outputs:
            self.end(end, output, end - start)

    def left(self, now: float, cpu: Mapping[str, float] | None = None) -> ev.Estimated:
        """What is predicted at this time; `cpu`: CPU seconds that running jobs have used."""
        found = self.forecast.look(self.state, now, {self._jids[output]: used for output, used in (cpu or {}).items()})
        assert found is not None
        assert 0.0 <= found.low <= found.seconds <= found.high < math.inf
        self.tell(now, found)
        return found


def objects(number: int, seconds: float = UNKNOWN, folder: str = "d") -> dict[str, tuple[int, float]]:
    return {f"{folder}/{i}.o": (0, seconds) for i in range(number)}


def test_it_is_silent_while_it_knows_nothing(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(objects(10), [()]))
    assert build.forecast.look(build.state, 1.0) is None


def test_a_first_build_learns_from_its_own_jobs(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(objects(44), [()]))
    build.run(0.0, 10.0, *(f"d/{i}.o" for i in range(4)))
    found = build.left(10.0)
    assert found.seconds == pytest.approx(100.0, rel=0.25)
    assert found.low < 100.0 < found.high


def test_what_ninja_remembers_counts_from_the_start(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(objects(40, 10.0), [()]))
    assert build.left(0.0).seconds == pytest.approx(100.0, rel=0.1)
    build.run(0.0, 10.0, *(f"d/{i}.o" for i in range(4)))
    assert build.left(10.0).seconds == pytest.approx(90.0, rel=0.1)


def test_the_link_at_the_end_comes_on_top(plan_of: Write) -> None:
    edges = {**objects(40, 10.0), "lib.so": (1, 300.0)}
    build = Build(Forecast(), plan_of(edges, [(), (0,)]))
    build.run(0.0, 10.0, *(f"d/{i}.o" for i in range(4)))
    assert build.left(10.0).seconds >= 380.0


def test_the_critical_job_is_the_one_with_the_longest_way_behind_it(plan_of: Write) -> None:
    edges = {"a.o": (0, 10.0), "b.o": (1, 30.0), "lib.so": (2, 100.0)}
    build = Build(Forecast(), plan_of(edges, [(), (), (0,)]))
    build.start(0.0, "b.o")
    build.start(0.0, "a.o")
    assert build.left(1.0).critical == 2
    build.end(10.0, "a.o", 10.0)
    assert build.left(10.0).critical is None, "the link, which may begin now, takes longer than what runs"
    build.start(10.0, "lib.so")
    assert build.left(11.0).critical == 3


def test_no_job_is_critical_while_the_end_depends_on_how_many_run_at_once(plan_of: Write) -> None:
    """The mark jumped from one to the next of jobs that all were as far from the end."""
    build = Build(Forecast(), plan_of(objects(40, 10.0), [()]))
    for i in range(4):
        build.start(0.0, f"d/{i}.o")
    assert build.left(1.0).critical is None


def test_of_jobs_with_about_the_same_way_the_critical_one_stays_it(plan_of: Write) -> None:
    edges = {"a.o": (0, 50.0), "b.o": (1, 52.0), "lib.so": (2, 100.0)}
    build = Build(Forecast(), plan_of(edges, [(), (), (0, 1)]))
    build.start(0.0, "a.o")
    assert build.left(1.0).critical == 1
    build.start(2.0, "b.o")
    assert build.left(3.0).critical == 1


def test_every_end_brings_the_end_of_all_nearer(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of({**objects(20, 10.0), "lib.so": (1, 5.0)}, [(), (0,)]))
    seen: list[float] = []
    for round_ in range(5):
        build.run(10.0 * round_, 10.0 * (round_ + 1), *(f"d/{4 * round_ + i}.o" for i in range(4)))
        seen.append(build.left(10.0 * (round_ + 1)).seconds)
    assert seen == sorted(seen, reverse=True)
    assert seen[-1] == pytest.approx(5.0, rel=0.2)
    build.run(50.0, 55.0, "lib.so")
    assert build.left(55.0) == ev.Estimated(0.0, 0.0, 0.0)


def test_a_job_that_runs_needs_only_the_rest(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of({"a.o": (0, 100.0)}, [()]))
    build.start(0.0, "a.o")
    begin, later = build.left(1.0).seconds, build.left(60.0).seconds
    assert later < begin - 40.0


def test_a_frozen_job_does_not_age(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of({"a.o": (0, 100.0)}, [()]))
    build.start(0.0, "a.o")
    build.move(50.0, "a.o", "frozen")
    frozen = build.left(50.0).seconds
    assert build.left(500.0).seconds == pytest.approx(frozen, rel=0.1)
    build.move(500.0, "a.o", "running")
    assert build.left(520.0).seconds == pytest.approx(frozen - 20.0, rel=0.2)


def test_what_waits_on_deck_has_not_begun(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of({"a.o": (0, 100.0)}, [()]))
    build.start(0.0, "a.o", "on_deck")
    assert build.left(500.0).seconds == build.left(0.0).seconds
    build.move(500.0, "a.o", "running")
    build.end(600.0, "a.o", 600.0)
    build.plan(600.0, plan_of({"a.o": (0, 100.0)}, [()]))  # as if it were to run again: it took 100 s, not 600
    assert build.left(600.0).seconds < 150.0


def test_twice_as_many_jobs_as_cores_are_not_twice_as_fast(plan_of: Write) -> None:
    """Eight jobs on four cores take 20 s each on the clock, for 10 s of work."""
    build = Build(Forecast(), plan_of(objects(88), [()]), level=8)
    build.run(0.0, 20.0, *(f"d/{i}.o" for i in range(8)))
    assert build.left(20.0).seconds == pytest.approx(200.0, rel=0.25)


def test_a_machine_that_others_use_too_is_slower(plan_of: Write) -> None:
    """Jobs take four times as long as they are remembered to, until the others have gone."""
    build = Build(Forecast(), plan_of(objects(104, 10.0), [()]))
    for n in range(4):
        build.run(40.0 * n, 40.0 * (n + 1), *(f"d/{4 * n + i}.o" for i in range(4)))
    busy = build.left(160.0).seconds
    assert busy == pytest.approx(880.0, rel=0.15)
    for n in range(4, 20):
        build.run(10.0 * n + 120.0, 10.0 * n + 130.0, *(f"d/{4 * n + i}.o" for i in range(4)))
    assert build.left(320.0).seconds == pytest.approx(60.0, rel=0.4)


def test_a_persons_level_makes_it_longer(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(objects(40, 10.0), [()]))
    build.run(0.0, 10.0, *(f"d/{i}.o" for i in range(4)))
    free = build.left(10.0).seconds
    build.tell(10.0, ev.LevelSet("manual", 1))
    assert build.left(10.0).seconds > 3.5 * free


def test_ends_that_came_before_their_plan_are_not_awaited(plan_of: Write) -> None:
    build = Build(Forecast(), None)
    build.run(0.0, 5.0, "d/0.o", "d/1.o")
    build.plan(6.0, plan_of(objects(3, 10.0), [()]))
    build.sample(6.0)
    assert build.left(6.0).seconds < 12.0


def test_a_new_plan_takes_the_place_of_the_old(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(objects(4, 10.0), [()]))
    build.run(0.0, 10.0, "d/0.o")
    before = build.left(10.0).seconds
    build.plan(10.0, plan_of(objects(400, 10.0), [()]))
    assert build.left(10.0).seconds > 20 * before


def test_what_a_running_job_waited_for_is_over_even_if_it_never_ran(plan_of: Write) -> None:
    """Restat rules prune edges, and ninja says nothing of those."""
    edges = {"gen.h": (0, 1.0), **{f"d/{i}.o": (1, 50.0) for i in range(8)}, "lib.so": (2, 5.0)}
    build = Build(Forecast(), plan_of(edges, [(), (0,), (1,)]))
    build.run(0.0, 1.0, "gen.h")
    assert build.left(1.0).seconds > 80.0
    build.start(1.0, "lib.so")
    assert build.left(1.0).seconds < 10.0


def test_in_groups_that_only_stand_alike_nothing_is_over_before_it_has_ended(plan_of: Write) -> None:
    edges = {**{f"{i}.o": (0, 50.0) for i in range(8)}, **{f"{i}.so": (1, 5.0) for i in range(8)}}
    build = Build(Forecast(), plan_of(edges, [(), (0,)], exact=False))
    build.run(0.0, 50.0, "0.o")
    build.start(50.0, "0.so")
    assert build.left(50.0).seconds > 80.0


def tree() -> tuple[dict[str, tuple[int, float]], list[tuple[int, ...]]]:
    """Two libraries of eight objects each, and a program of both."""
    edges = {f"{lib}/{i}.o": (group, 10.0) for group, lib in enumerate("ab") for i in range(8)}
    links = {"a.so": (2, 40.0), "b.so": (3, 40.0), "app": (4, 400.0)}
    return {**edges, **links}, [(), (), (0,), (1,), (2, 3)]


def test_what_waits_for_a_failed_job_is_not_left_to_do(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(*tree()))
    before = build.left(0.0).seconds
    build.start(0.0, "a/0.o")
    build.end(10.0, "a/0.o", 10.0, "failed")
    assert build.left(10.0).seconds < before / 4, "neither a.so nor app will be linked"
    assert will_not_run(build.state) == 2
    build.run(10.0, 20.0, *(f"{lib}/{i}.o" for lib in "ab" for i in range(8) if (lib, i) != ("a", 0)))
    build.run(20.0, 60.0, "b.so")
    assert build.left(60.0).seconds == 0.0


def test_jobs_that_failed_too_soon_to_be_seen_block_others_too(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(*tree()))
    build.fails(1.0, "a/0.o")
    assert build.left(1.0).seconds < 100.0
    assert will_not_run(build.state) == 2


def test_a_failure_that_is_known_before_the_plan_blocks_jobs_of_it(plan_of: Write) -> None:
    """The plan of a successor engine comes late: jobs may have failed long ago."""
    build = Build(Forecast(), None)
    build.fails(1.0, "a/0.o")
    build.start(1.0, "b/0.o")
    build.end(2.0, "b/0.o", 1.0, "failed")
    build.run(900.0, 910.0, "b/1.o")
    build.plan(1000.0, plan_of(*tree()))
    assert will_not_run(build.state) == 3, "both libraries and the program"


def test_a_printed_failure_of_a_job_that_runs_proves_nothing(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(*tree()))
    build.start(0.0, "a/0.o")
    build.left(0.0)
    build.fails(1.0, "a/0.o")
    assert will_not_run(build.state) == 0


def test_what_runs_waits_for_nothing_that_failed(plan_of: Write) -> None:
    """A test had printed that a/0.o failed; a job was taken for failed, and its record came late."""
    build = Build(Forecast(), plan_of(*tree()))
    build.fails(1.0, "a/0.o")
    build.start(1.0, "b/0.o")
    build.end(2.0, "b/0.o", 1.0, "failed")
    assert will_not_run(build.state) == 3
    build.start(3.0, "a.so")
    build.left(3.0)
    assert will_not_run(build.state) == 2, "b.so still waits, and the program"
    build.end(4.0, "b/0.o", 1.0)
    assert will_not_run(build.state) == 0


def test_a_killed_job_blocks_nothing_as_it_runs_again(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(*tree()))
    build.start(0.0, "a/0.o")
    build.end(10.0, "a/0.o", 10.0, "failed")
    assert will_not_run(build.state) == 2
    build.tell(10.0, ev.JobKilled("a/0.o", "memory", GIB))
    assert will_not_run(build.state) == 0
    build.tell(10.0, ev.JobKilled("b/0.o", "memory", GIB))
    build.fails(11.0, "b/0.o")
    assert will_not_run(build.state) == 0


def test_once_a_job_has_failed_killed_ones_block_others_too(plan_of: Write) -> None:
    """The step does not run again then, whichever came first."""
    build = Build(Forecast(), plan_of(*tree()))
    build.tell(0.0, ev.JobKilled("a/0.o", "memory", GIB))
    assert will_not_run(build.state) == 0
    build.fails(1.0, "b/0.o")
    assert will_not_run(build.state) == 3, "both libraries and the program"
    other = Build(Forecast(), plan_of(*tree()))
    other.fails(1.0, "b/0.o")
    other.tell(2.0, ev.JobKilled("a/0.o", "memory", GIB))
    assert will_not_run(other.state) == 3


def test_in_groups_that_only_stand_alike_a_failure_blocks_nothing(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(*tree(), exact=False))
    build.start(0.0, "a/0.o")
    build.end(10.0, "a/0.o", 10.0, "failed")
    assert will_not_run(build.state) == 0


def test_a_total_that_ninja_has_lowered_lowers_the_time(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(objects(41, 10.0), [()]))
    build.run(0.0, 10.0, "d/0.o")
    before = build.left(10.0).seconds
    build.tell(10.0, ev.SchedulerPlanned(1, 11, "status", {"cxx": 11}))
    assert build.left(10.0).seconds == pytest.approx(before / 4, rel=0.01)


def after_two_folders(plan: Plan, light: float, heavy: float) -> ev.Estimated:
    """What is said once the folders `a` and `b` are done, with the folder `c` still to come."""
    build, now = Build(Forecast(), plan), 0.0
    for folder, seconds in (("a", light), ("b", heavy)):
        for n in range(0, 20, 4):
            build.run(now, now + seconds, *(f"{folder}/{i}.o" for i in range(n, n + 4)))
            now += seconds
    return build.left(now)


def test_the_band_is_wide_before_a_folder_whose_like_differ_much(plan_of: Write) -> None:
    """Half of a build was in a folder whose files took three times as long as those of all folders before."""
    plan = plan_of({f"{folder}/{n}.o": (0, UNKNOWN) for folder in "abc" for n in range(20)}, [()])
    alike, unlike = after_two_folders(plan, 4.0, 4.0), after_two_folders(plan, 1.0, 7.0)
    assert alike.high / alike.low < 2.5
    assert unlike.low < 5.0 * 2.5 < 5.0 * 7.0 < unlike.high, "files of 2.5 and of 7 seconds are as likely"


def test_a_new_folder_is_expected_to_be_like_the_ones_that_ended_last(plan_of: Write) -> None:
    """Libraries come after those that they include: light ones at the start say less about what is left."""
    plan = plan_of({f"{folder}/{n}.o": (0, UNKNOWN) for folder in "abc" for n in range(20)}, [()])
    assert after_two_folders(plan, 1.0, 7.0).seconds > 1.2 * after_two_folders(plan, 7.0, 1.0).seconds


def test_history_is_asked_for_and_corrected(plan_of: Write) -> None:
    asked: list[str] = []

    def foretell(output: str, _tool: Tool, _argv: tuple[str, ...]) -> Foretold:
        asked.append(output)
        return Foretold(Stated("history", 10.0), GIB)

    build = Build(Forecast(foretell), plan_of(objects(40), [()]))
    assert build.left(0.0).seconds == pytest.approx(100.0, rel=0.15)
    assert sorted(asked) == sorted(objects(40))
    build.run(0.0, 20.0, *(f"d/{i}.o" for i in range(4)))
    build.run(20.0, 40.0, *(f"d/{i}.o" for i in range(4, 8)))
    assert build.left(40.0).seconds > 130.0  # this machine is half as fast


def test_files_that_nobody_remembers_are_weighed_beside_those_that_are(plan_of: Write) -> None:
    def foretell(output: str, _tool: Tool, _argv: tuple[str, ...]) -> Foretold:
        return Foretold(Stated("history", 10.0) if output < "d/2" else None, GIB)

    build = Build(Forecast(foretell), plan_of(objects(40), [()]))
    assert build.left(0.0).seconds == pytest.approx(100.0, rel=0.15)


def test_a_measured_class_tells_something_at_once_but_not_for_sure(plan_of: Write) -> None:
    def foretell(_output: str, _tool: Tool, _argv: tuple[str, ...]) -> Foretold:
        return Foretold(Stated("prior", 10.0), GIB)

    found = Build(Forecast(foretell), plan_of(objects(40), [()])).left(0.0)
    assert found.low < 70.0
    assert found.high > 150.0


def test_what_ninja_remembers_of_a_job_counts_more_than_its_class(plan_of: Write) -> None:
    def foretell(_output: str, _tool: Tool, _argv: tuple[str, ...]) -> Foretold:
        return Foretold(Stated("prior", 50.0), GIB)

    assert Build(Forecast(foretell), plan_of(objects(40, 10.0), [()])).left(0.0).seconds < 150.0


def test_other_priors_in_mid_build_change_what_is_told(plan_of: Write) -> None:
    seconds = 10.0

    def foretell(_output: str, _tool: Tool, _argv: tuple[str, ...]) -> Foretold:
        return Foretold(Stated("prior", seconds), GIB)

    build = Build(Forecast(foretell), plan_of(objects(40), [()]))
    before = build.left(0.0).seconds
    seconds = 40.0
    assert build.left(5.0).seconds < 1.5 * before
    build.forecast.ask_again()
    assert build.left(10.0).seconds > 2.5 * before


def test_memory_that_binds_makes_it_longer(plan_of: Write) -> None:
    def foretell(_output: str, _tool: Tool, _argv: tuple[str, ...]) -> Foretold:
        return Foretold(Stated("history", 10.0), 48 * GIB)

    build = Build(Forecast(foretell), plan_of(objects(40), [()]))
    guarded = build.left(0.0).seconds
    assert guarded > 350.0
    build.tell(0.0, ev.LevelSet("auto", 4, guarded=False))
    assert build.left(0.0).seconds < 150.0


def test_places_that_stay_empty_for_lack_of_memory_are_not_filled_by_the_rest(plan_of: Write) -> None:
    """With places for four, memory for one: for half a build it was said to take half as long as it did."""
    build = Build(Forecast(), plan_of(objects(44), [()]))
    for n in range(8):
        build.start(0.0, f"d/{n}.o", "on_deck")
    build.tell(0.0, ev.JobsWaiting(tuple(range(1, 9)), "memory", "1 MiB unpromised"))
    for n in range(4):
        build.move(10.0 * n, f"d/{n}.o", "running")
        build.end(10.0 * (n + 1), f"d/{n}.o", 10.0)
    assert build.left(40.0).seconds == pytest.approx(400.0, rel=0.1)


def test_while_a_plan_is_being_made_nothing_is_told(plan_of: Write) -> None:
    """Counting would tell something else than the engine before did, and than will be told in a moment."""
    build = Build(Forecast(), None)
    build.tell(0.0, ev.SchedulerPlanned(1, 44, "status"))
    build.run(0.0, 10.0, "d/0.o")
    assert build.forecast.look(build.state, 10.0) is None
    assert build.forecast.look(build.state, 1000.0) is not None, "it may never come"
    build.plan(1000.0, plan_of(objects(44), [()]))
    assert build.left(1000.0).seconds > 0.0


def test_without_a_graph_jobs_are_counted(plan_of: Write) -> None:
    plan = Plan(PlanSummary(44, 0, 44, {"cxx": 44}, ""), None, 0)
    build = Build(Forecast(), plan)
    build.run(0.0, 10.0, *(f"d/{i}.o" for i in range(4)))
    assert build.left(10.0).seconds > 0.0


def test_makes_percentage_is_taken_as_it_is() -> None:
    forecast = Forecast()
    state = BuildState()
    events: tuple[ev.Event, ...] = (
        ev.SchedulerStarted(1, "make", 1, "/b", "4.3", 4),
        ev.SchedulerPlanned(1, None, "percent", percent=25.0),
    )
    for seq, event in enumerate(events, start=1):
        state = reduce(state, ev.Record(seq, 0.0, event))
        forecast.heard((event,), 0.0)
    found = forecast.look(state, 100.0)
    assert found is not None
    assert found.seconds == 300.0


def test_a_make_inside_a_job_of_ninja_does_not_silence_it(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(objects(40, 10.0), [()]))
    build.run(0.0, 10.0, *(f"d/{i}.o" for i in range(4)))
    build.tell(10.0, ev.SchedulerStarted(2, "make", 9, "/b/sub", "4.3", 4, parent=1))
    build.tell(10.0, ev.JobStarted(99, 2, 99, "inner.o", "cxx", 10.0))
    assert build.left(10.0).seconds == pytest.approx(90.0, rel=0.2)


def test_an_engine_that_takes_over_knows_how_long_jobs_have_run(plan_of: Write) -> None:
    plan = plan_of({"a.o": (0, 100.0)}, [()])
    first = Build(Forecast(), plan)
    first.start(0.0, "a.o")
    second = Forecast()
    second.planned(1, plan)
    found = second.look(first.state, 90.0)
    assert found is not None
    assert found.seconds == pytest.approx(first.left(90.0).seconds, abs=0.5)


def test_a_scheduler_that_has_ended_leaves_nothing_to_do(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(objects(40, 10.0), [()]))
    build.run(0.0, 10.0, "d/0.o")
    build.tell(10.0, ev.SchedulerEnded(1))
    assert build.forecast.look(build.state, 10.0) is None


def test_failed_jobs_teach_nothing(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(objects(40), [()]))
    build.start(0.0, "d/0.o")
    build.end(0.1, "d/0.o", 0.1, "failed")
    assert build.forecast.look(build.state, 1.0) is None


# -- a step that runs again -----------------------------------------------------------------------------------------


def killed_at_half(plan: Plan) -> Build:
    """Of four jobs of 10 s on one core two have ended well and one was killed; the fourth never began."""
    build = Build(Forecast(), plan, cores=1.0)
    for n in range(2):
        build.run(10.0 * n, 10.0 * (n + 1), f"d/{n}.o")
    build.start(20.0, "d/2.o")
    build.tell(29.0, ev.JobKilled("d/2.o", "shed", GIB, 3))
    build.end(30.0, "d/2.o", 10.0, "failed")
    return build


def test_the_seconds_of_killed_jobs_are_no_progress(plan_of: Write) -> None:
    """Two run at a time, and one of them is killed for memory each time: a build with 17 such kills was said to take
    two thirds of what it took."""
    build = Build(Forecast(), plan_of(objects(24), [()]), cores=2.0)
    for n in range(6):
        now = 10.0 * n
        build.start(now, f"d/{n}.o")
        build.start(now, "d/23.o")
        build.tell(now + 10.0, ev.JobKilled("d/23.o", "shed", GIB, build.jid("d/23.o")))
        build.end(now + 10.0, "d/23.o", 10.0, "failed")
        build.end(now + 10.0, f"d/{n}.o", 10.0)
    assert build.left(60.0).seconds == pytest.approx(180.0, rel=0.2)


def test_what_was_killed_runs_again_and_takes_its_time(plan_of: Write) -> None:
    plan = plan_of(objects(4), [()])
    build = killed_at_half(plan)
    assert build.left(30.0).seconds == pytest.approx(20.0, rel=0.4)
    build.tell(31.0, ev.SchedulerEnded(1))
    assert build.left(31.0).seconds == pytest.approx(20.0, rel=0.4), "nothing runs, and two jobs are to come"
    build.tell(32.0, ev.StepStarted(1, 1, "b", ("pip",), 7, 2))
    assert build.left(32.0).seconds == pytest.approx(20.0, rel=0.4)
    build.tell(33.0, ev.WorkLost("/b"))
    assert build.left(33.0).seconds == pytest.approx(40.0, rel=0.4), "all four are to be made"
    build.tell(34.0, ev.SchedulerStarted(2, "ninja", 9, "/b", "1.13", 8))
    assert build.left(34.0).seconds == pytest.approx(40.0, rel=0.4)
    build.forecast.planned(2, plan)
    build.tell(35.0, ev.SchedulerPlanned(2, 4, "dry-run", plan.summary.tools))
    assert build.left(35.0).seconds == pytest.approx(40.0, rel=0.4), "once, not twice"


def test_a_job_that_the_kernel_killed_is_known_for_it_after_its_end(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(objects(4), [()]), cores=1.0)
    build.run(0.0, 10.0, "d/0.o")
    build.start(10.0, "d/1.o")
    build.end(20.0, "d/1.o", 10.0, "failed")
    failed = build.left(20.0).seconds
    build.tell(20.5, ev.JobKilled("d/1.o", "memory"))
    assert build.left(20.5).seconds == pytest.approx(failed + 10.0, rel=0.2)


def successor(build: Build, plan: Plan) -> Forecast:
    """What an engine knows that takes over: it reads the journal, and makes the plan of what is left anew."""
    found = Forecast()
    for record in build.journal:
        if isinstance(record.event, LEARNT_FROM):
            found.heard((record.event,), record.time)
    found.planned(1, plan)
    return found


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
@pytest.mark.parametrize("remembered", [True, False])
def test_an_engine_that_takes_over_tells_what_the_one_before_it_did(
    plan_of: Write, share: float, *, remembered: bool
) -> None:
    """To the digit: the middle, and the band."""
    edges = {f"{'ab'[n % 2]}/{n}.o": (0, 7.0 + n % 5 if remembered else UNKNOWN) for n in range(220)}
    build = Build(Forecast(), plan_of({**edges, "lib.so": (1, UNKNOWN)}, [(), (0,)]))
    build.tell(0.0, ev.LevelSet("auto", 5))
    now, done = 0.0, list(edges)[: round(220 * share) // 4 * 4]
    for n in range(0, len(done), 4):
        build.run(now, now + 8.123 + n % 7, *done[n : n + 4])
        now += 8.123 + n % 7
        build.left(now)
    running = list(edges)[len(done)]
    build.start(now, running)
    build.move(now + 3.0, running, "frozen")
    build.move(now + 5.0, running, "running")
    left = {name: edge for name, edge in edges.items() if name not in done}
    second = successor(build, plan_of({**left, "lib.so": (1, UNKNOWN)}, [(), (0,)]))
    assert second.look(build.state, now + 9.0) == build.left(now + 9.0)


def test_a_build_that_goes_on_with_another_one_begins_with_what_that_taught(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(objects(44), [()]))
    build.run(0.0, 10.0, *(f"d/{i}.o" for i in range(4)))
    resumed = Forecast()
    for record in build.journal:
        if isinstance(record.event, ev.JobFinished):
            resumed.recall(record.event)
    begun = Build(resumed, plan_of(dict(list(objects(39).items())[4:]), [()]))
    assert begun.left(0.0).seconds == pytest.approx(87.5, rel=0.1)


def test_the_same_source_takes_as_long_for_a_second_library(tmp_path: Path) -> None:
    edges = [
        PlannedEdge((f"{lib}/{name}.c.o",), "cxx", UNKNOWN, 0, 0, 5000 + n)
        for n, (lib, name) in enumerate((lib, name) for name in ("slow", "fast") for lib in ("shared", "static"))
    ]
    edges = [PlannedEdge(e.outputs, e.tool, e.seconds, 0, 0, 5000 if "slow" in e.outputs[0] else 5100) for e in edges]
    with (tmp_path / "graph").open("wb") as file:
        write_graph(file, edges, [()], [""], exact=True)
    plan = Plan(PlanSummary(4, 0, 4, {"cxx": 4}, ""), None, 0, PlanGraph.load(tmp_path / "graph"))
    build = Build(Forecast(), plan, cores=1.0)
    build.run(0.0, 90.0, "shared/slow.c.o")
    build.run(90.0, 91.0, "shared/fast.c.o")
    build.run(91.0, 92.0, "static/fast.c.o")
    assert build.left(92.0).seconds == pytest.approx(90.0, rel=0.2)


def test_a_large_source_takes_longer_than_a_small_one(tmp_path: Path) -> None:
    found = []
    for size in (1_000, 100_000):
        edges = [PlannedEdge((f"{n}.cc.o",), "cxx", UNKNOWN, 0, 0, 4_000 if n < 4 else size) for n in range(8)]
        with (tmp_path / f"graph{size}").open("wb") as file:
            write_graph(file, edges, [()], [""], exact=True)
        plan = Plan(PlanSummary(8, 0, 8, {"cxx": 8}, ""), None, 0, PlanGraph.load(tmp_path / f"graph{size}"))
        build = Build(Forecast(), plan)
        build.run(0.0, 10.0, *(f"{n}.cc.o" for n in range(4)))
        found.append(build.left(10.0).seconds)
    assert found[1] > 5 * found[0]


def test_a_first_build_with_little_memory_nears_its_end_with_every_job(tmp_path: Path) -> None:
    """Small sources that include much, and links that are expected to hold more than there is: two seconds before its
    end it was said to take three minutes more."""

    def foretell(_output: str, tool: Tool, _argv: tuple[str, ...]) -> Foretold:
        return Foretold(None, 1.2 * GIB if tool == "link" else 0.2 * GIB)

    edges = [PlannedEdge((f"d/{n}.o",), "cxx", UNKNOWN, 0, 0, 125) for n in range(24)]
    edges += [PlannedEdge((name,), "link", UNKNOWN, 1) for name in ("one.so", "two.so")]
    with (tmp_path / "graph").open("wb") as file:
        write_graph(file, edges, [(), (0,)], [""], exact=True)
    plan = Plan(PlanSummary(26, 0, 26, {"cxx": 24, "link": 2}, ""), None, 0, PlanGraph.load(tmp_path / "graph"))
    build = Build(Forecast(foretell), plan, cores=2.0)
    build.machine = replace(build.machine, memory_budget=GIB // 2, memory_available=GIB // 2)
    build.sample(0.0)
    for n in range(0, 24, 2):
        build.run(5.0 * n, 5.0 * n + 10, f"d/{n}.o", f"d/{n + 1}.o")
        found, truth = build.left(5.0 * n + 10), 120.0 - (5.0 * n + 10)  # without the links
        if n >= 4:
            assert found.low - 4.0 <= truth <= found.high
    assert found.seconds < 10.0


def test_the_chain_of_a_job_is_its_own_time_and_that_of_what_waits_for_it(plan_of: Write) -> None:
    edges = {"gen.o": (0, 10.0), "a.o": (1, 20.0), "b.o": (1, 40.0), "app": (2, 5.0), "alone.o": (3, 7.0)}
    build = Build(Forecast(), plan_of(edges, [(), (0,), (1,), ()]))
    assert build.forecast.chain(1, "gen.o") is None, "nothing has been estimated yet"
    version = build.forecast.chains_version
    build.left(0.0)
    assert build.forecast.chains_version > version
    chains = {name: build.forecast.chain(1, name) for name in edges}
    assert chains == pytest.approx({"gen.o": 55.0, "a.o": 25.0, "b.o": 45.0, "app": 5.0, "alone.o": 7.0}, rel=0.05)
    assert build.forecast.chain(1, "nobody.o") is None
    assert build.forecast.chain(2, "a.o") is None


FAR = RemoteHost("far", 6)


def hosts(build: Build, now: float, why_unused: str = "") -> None:
    build.tell(now, ev.RemoteSeen((RemoteEngine("distcc", (replace(FAR, why_unused=why_unused),)),)))


def elsewhere(build: Build, begin: float, seconds: float, *outputs: str) -> None:
    """Another machine compiles these."""
    for output in outputs:
        build.start(begin, output)
    for output in outputs:
        build.end(begin + seconds, output, seconds, host="far")


def test_what_waited_for_other_machines_says_nothing_once_they_are_lost(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(objects(60), [()]), cores=2.0)
    hosts(build, 0.0)
    for n in (0, 8):
        elsewhere(build, 6.0 * (n // 8), 6.0, *(f"d/{i}.o" for i in range(n, n + 8)))
    hosts(build, 12.0, "it failed")
    for n in range(16, 24, 2):
        now = 12.0 + 3.0 * (n - 16) / 2
        build.run(now, now + 3.0, f"d/{n}.o", f"d/{n + 1}.o")
    left = build.left(24.0)
    assert left.low <= 36 * 3.0 / 2 <= left.high


def test_the_places_that_lost_hosts_left_empty_narrow_nothing(plan_of: Write) -> None:
    """Six slots elsewhere and two places here, of which one was in use; then two jobs run here at once."""
    build = Build(Forecast(), plan_of(objects(40), [()]), cores=2.0)
    hosts(build, 0.0)
    for n in range(8):
        elsewhere(build, 6.0 * n, 6.0, f"d/{n}.o")
    hosts(build, 48.0, "it failed")
    for n in range(8, 16, 2):
        build.run(48.0 + 3.0 * (n - 8), 54.0 + 3.0 * (n - 8), f"d/{n}.o", f"d/{n + 1}.o")
    assert build.left(72.0).seconds == pytest.approx(24 * 6.0 / 2, rel=0.25)


def test_a_host_that_is_only_listed_again_changes_nothing_until_it_has_compiled(plan_of: Write) -> None:
    build = Build(Forecast(), plan_of(objects(90), [()]), cores=2.0)
    hosts(build, 0.0)
    elsewhere(build, 0.0, 6.0, *(f"d/{n}.o" for n in range(8)))
    hosts(build, 6.0, "it failed")
    for n in range(8, 16, 2):
        build.run(6.0 + 3.0 * (n - 8), 12.0 + 3.0 * (n - 8), f"d/{n}.o", f"d/{n + 1}.o")
    alone = build.left(30.0).seconds
    hosts(build, 30.0)
    assert build.left(30.0).seconds == pytest.approx(alone, rel=0.01)
    elsewhere(build, 30.0, 6.0, *(f"d/{n}.o" for n in range(16, 24)))
    assert build.left(36.0).seconds < alone / 2


def test_what_a_job_has_waited_for_a_lost_host_is_not_what_it_takes_here(plan_of: Write) -> None:
    """Eight jobs have waited for a minute when their host is lost; each then takes two seconds here."""
    plan = plan_of(objects(30), [()])
    build = Build(Forecast(), plan, cores=2.0)
    hosts(build, 0.0)
    elsewhere(build, 0.0, 6.0, *(f"d/{n}.o" for n in range(8)))
    waiting = [f"d/{n}.o" for n in range(8, 16)]
    for output in waiting:
        build.start(6.0, output)
    hosts(build, 66.0, "it failed")
    for output in waiting:
        build.move(66.0, output, "frozen", by="fallback")
    assert build.left(66.0).seconds < 22 * 6.0, "what they have waited is no sign of how long they take"
    for n, output in enumerate(waiting):
        now = 66.0 + 2.0 * (n // 2)
        build.move(now, output, "running")
        build.end(now + 2.0, output, 62.0, since_it_was_back=2.0)
    assert build.left(74.0).seconds == pytest.approx(14 * 2.0 / 2, rel=0.4)


@pytest.mark.parametrize("used", [4.0, 8.0, 9.5])
def test_the_rest_of_a_build_on_cores_that_have_become_free_is_told_by_the_cpu_time_that_its_jobs_get(
    plan_of: Write, used: float
) -> None:
    """Three jobs got a third of a core each; the last one, which was killed beside them, now has nearly a whole one."""

    def foretell(_output: str, _tool: Tool, _argv: tuple[str, ...]) -> Foretold:
        return Foretold(Stated("history", 10.0), GIB)

    build = Build(Forecast(foretell), plan_of(objects(4), [()]), cores=2.0, level=3)
    for n in range(4):
        build.start(0.0, f"d/{n}.o")
    build.left(29.0, {f"d/{n}.o": 9.0 for n in range(4)})
    for n in range(3):
        build.end(30.0, f"d/{n}.o", 30.0, cpu=10.0)
    build.tell(30.0, ev.JobKilled("d/3.o", "unknown", GIB, 4))
    build.end(30.0, "d/3.o", 30.0, "failed", cpu=9.0)
    build.start(30.0, "d/3.o")
    found = build.left(30.0 + 1.25 * used, {"d/3.o": used})
    left = 1.25 * (10.0 - used)
    assert found.low <= left <= found.high
    assert found.high < 30.0 - 1.25 * used, "what it would take if the cores were as busy as before"


def test_what_samples_miss_of_short_jobs_says_nothing_of_a_long_one(plan_of: Write) -> None:
    """Of ten jobs of 0.3 CPU seconds 0.2 were seen; the long one beside them needs what it needed before."""

    def foretell(output: str, _tool: Tool, _argv: tuple[str, ...]) -> Foretold:
        return Foretold(Stated("history", 10.0 if output == "d/10.o" else 0.3), GIB)

    build = Build(Forecast(foretell), plan_of(objects(11), [()]), cores=2.0)
    build.start(0.0, "d/10.o")
    build.left(0.5)
    for n in range(10):
        build.start(n / 2, f"d/{n}.o")
        build.end(n / 2 + 0.4, f"d/{n}.o", 0.4, cpu=0.2)
    found = build.left(8.0, {"d/10.o": 7.0})
    assert found.low <= 3.0 * 8.0 / 7.0 <= found.high


def test_a_job_that_waits_for_something_else_than_a_core_says_nothing_of_the_cores(plan_of: Write) -> None:
    def foretell(_output: str, _tool: Tool, _argv: tuple[str, ...]) -> Foretold:
        return Foretold(Stated("history", 10.0), GIB)

    build = Build(Forecast(foretell), plan_of(objects(8), [()]))
    build.start(0.0, "d/0.o")
    assert build.left(8.0, {"d/0.o": 0.01}) == build.left(8.0)


def test_an_engine_that_takes_over_from_one_that_has_lost_all_hosts_tells_what_that_did(plan_of: Write) -> None:
    plan = plan_of(objects(40), [()])
    build = Build(Forecast(), plan, cores=2.0)
    hosts(build, 0.0)
    elsewhere(build, 0.0, 6.0, *(f"d/{n}.o" for n in range(8)))
    hosts(build, 6.0, "it failed")
    for n in range(8, 16, 2):
        build.run(6.0 + 3.0 * (n - 8), 12.0 + 3.0 * (n - 8), f"d/{n}.o", f"d/{n + 1}.o")
        build.left(12.0 + 3.0 * (n - 8))
    second = successor(build, plan)
    assert second.look(build.state, 33.0) == build.left(33.0)
