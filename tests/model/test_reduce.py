"""What a viewer sees is the sum of the journal, whatever its order, cuts and repeats."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.model import events as ev
from stoker.model.attempts import is_made_anew
from stoker.model.codec import CodecError, UnknownKindError, decode, decode_record, encode, encode_record
from stoker.model.progress import not_run, progress_of, will_not_run
from stoker.model.reduce import reduce, reduce_all
from stoker.model.report import (
    MAX_FILES,
    MAX_PROBLEMS,
    MAX_TEXT,
    DeviceReport,
    FileReport,
    HeldArch,
    Problem,
    Report,
    TorchFacts,
    bounded,
)
from stoker.model.samples import JobSample, MachineSample, RamDisk
from stoker.model.state import MAX_KILLED, MAX_RECENT, MAX_SCHEDULERS, BuildState
from stoker.model.status import status_of
from stoker.model.timeline import MAX_TIMELINE

MACHINE = MachineSample(50.0, (40, 60), 2.0, 24 << 30, 4 << 30, 20 << 30, "machine")


def records(events: Sequence[ev.Event], start: float = 1000.0) -> list[ev.Record]:
    return [ev.Record(i, start + i, event) for i, event in enumerate(events, 1)]


BEGIN: list[ev.Event] = [
    ev.BuildStarted("b-1", "b", ("ninja",), "/src", "/log", "host", 2, 24 << 30, "0.1.0"),
    ev.StepStarted(1, 1, "build", ("ninja",), 100),
    ev.SchedulerStarted(1, "ninja", 101, "/src/build", "1.13.2", 4),
]


def test_no_time_left_is_told_once_what_waited_was_dropped_for_an_error() -> None:
    told = [*BEGIN, ev.Estimated(60.0, 30.0, 90.0)]
    assert status_of(reduce_all(records(told)), 1001.0)["eta"]["seconds"] is not None
    dropped = ev.JobFinished(None, 1, "b.o", "cxx", 1.0, "dropped")
    assert status_of(reduce_all(records([*told, dropped])), 1001.0)["eta"]["seconds"] is None


@pytest.mark.parametrize(("allowed", "stops"), [(1, True), (2, False), (None, False)])
def test_a_scheduler_that_stops_after_a_failure_says_what_it_will_not_run(allowed: int | None, stops: bool) -> None:
    start = ev.SchedulerStarted(1, "ninja", 101, "/src/build", "1.13.2", 4, failures=allowed)
    told: list[ev.Event] = [
        *BEGIN[:2],
        start,
        ev.SchedulerPlanned(1, 10, "dry-run"),
        ev.Estimated(60.0, 30.0, 90.0),
        *(ev.JobStarted(n, 1, 200 + n, f"{n}.o", "cxx", 1004.0) for n in (1, 2, 3)),
        ev.JobStarted(4, 1, 204, "4.o", "cxx", 1004.0, "on_deck"),
        ev.JobFinished(1, 1, "1.o", "cxx", 2.0, "ok"),
        ev.JobFinished(2, 1, "2.o", "cxx", 2.0, "failed"),
    ]
    state = reduce_all(records(told))
    assert will_not_run(state) == 7 * stops, "the one on deck is among them, the one that runs is not"
    assert (status_of(state, 1001.0)["eta"]["seconds"] is None) == stops
    fate: ev.JobOutcome = "dropped" if stops else "ok"
    told += [ev.JobFinished(3, 1, "3.o", "cxx", 3.0, "ok"), ev.JobFinished(4, 1, "4.o", "cxx", 0.0, fate)]
    assert will_not_run(reduce_all(records(told))) == 7 * stops
    told += [ev.SchedulerEnded(1), ev.BuildEnded("failed", 1, "")]
    state = reduce_all(records(told))
    assert (will_not_run(state), not_run(state)) == (0, 7 if stops else 6)
    assert status_of(state, 1001.0)["progress"]["will_not_run"] == not_run(state), "as the last line says"


def test_jobs_that_wait_for_failed_ones_will_not_run_while_their_scheduler_goes_on() -> None:
    told = [*BEGIN, ev.SchedulerPlanned(1, 10, "dry-run"), ev.JobsBlocked(1, 4)]
    state = reduce_all(records(told))
    assert will_not_run(state) == status_of(state, 1001.0)["progress"]["will_not_run"] == 4
    assert will_not_run(reduce_all(records([*told, ev.SchedulerEnded(1)]))) == 0, "what has not run is in the total"


def test_no_job_is_expected_to_need_less_than_it_has_held() -> None:
    gib = 2**30
    run = [
        *BEGIN,
        ev.JobStarted(1, 1, 7, "kernel.o", "nvcc", 1000.0, expected=5 * gib),
        ev.Sampled(MACHINE, (JobSample(1, 6 * gib, 100.0, "cicc", "running"),), 6 * gib, 3, 0, "", 0),
    ]
    fallen = ev.Sampled(MACHINE, (JobSample(1, 2 * gib, 100.0, "cicc", "running"),), 2 * gib, 3, 0, "", 0)
    less = ev.JobMoved(1, "frozen", 4 * gib)
    for more in ([], [fallen], [fallen, less], [less]):
        (job,) = status_of(reduce_all(records([*run, *more])), 1001.0)["jobs"]
        assert job["expected"] == 6 * gib


def test_the_time_left_is_that_of_what_still_runs() -> None:
    guess, second = ev.Estimated(60.0, 30.0, 90.0), ev.SchedulerStarted(2, "ninja", 102, "/src/other", "1.13.2", 4)
    assert reduce_all(records([*BEGIN, guess])).estimate is not None
    assert reduce_all(records([*BEGIN, guess, ev.SchedulerEnded(1)])).estimate is None
    assert reduce_all(records([*BEGIN, second, guess, ev.SchedulerEnded(1)])).estimate is not None
    assert reduce_all(records([*BEGIN, second, ev.SchedulerEnded(1), guess, ev.SchedulerEnded(2)])).estimate is None


def test_a_job_is_running_until_it_is_finished() -> None:
    start = ev.JobStarted(1, 1, 200, "a.o", "cxx", 1004.0)
    sample = ev.Sampled(MACHINE, (JobSample(1, 500, 99.0, "cc1plus"),), 500, 3, 0, "", 0)
    end = ev.JobFinished(1, 1, "a.o", "cxx", 2.0, "ok", peak_rss=500, log_offset=77)
    running = reduce_all(records([*BEGIN, ev.SchedulerPlanned(1, 3, "dry-run", {"cxx": 3}), start, sample]))
    assert progress_of(running).running == 1
    assert running.jobs[1].rss == 500
    finished = reduce(running, ev.Record(running.seq + 1, 1010.0, end))
    assert progress_of(finished).running == 0
    assert progress_of(finished).finished == 1
    assert progress_of(finished).total == 3
    assert finished.schedulers[1].log_offset == 77
    assert finished.history.heaviest[0].output == "a.o"


def test_a_job_whose_process_has_ended_runs_no_more_but_is_counted_once_it_is_told_how() -> None:
    began = [*BEGIN, *(ev.JobStarted(n, 1, 200 + n, f"{n}.o", "cxx", 1004.0) for n in (1, 2))]
    exited: list[ev.Event] = [*began, ev.JobsExited((1,)), ev.JobsExited((1, 7))]
    for told in (exited, [*exited, ev.JobStarted(1, 1, 201, "its/name.o", "cxx", 1004.0), ev.JobMoved(1, "running")]):
        found = progress_of(reduce_all(records(told)))
        assert (found.running, found.finished, found.total) == (1, 0, 2)
    found = progress_of(reduce_all(records([*exited, ev.JobFinished(1, 1, "1.o", "cxx", 2.0, "ok")])))
    assert (found.running, found.finished, found.total) == (1, 1, 2)
    gone = reduce_all(records([*exited, ev.SchedulerEnded(1)]))
    assert not gone.jobs
    assert not gone.leaving


def test_the_seconds_of_a_job_are_those_that_it_ran_and_not_those_that_it_was_frozen() -> None:
    first = [*BEGIN, ev.JobStarted(1, 1, 201, "1.o", "cxx", 1004.0, "on_deck"), ev.JobMoved(1, "running")]
    state = reduce_all(records(first))
    began = state.jobs[1].running_since or 0.0
    state = replace(state, jobs={1: replace(state.jobs[1], state="frozen", stood=2.0, frozen_at=began + 10)})
    (job,) = status_of(state, began + 30)["jobs"]
    assert (job["seconds"], job["frozen"], job["seconds"] + job["frozen"]) == (8.0, 22.0, 30.0)


def test_a_job_that_waits_has_its_reason_until_it_goes_on() -> None:
    jobs = [ev.JobStarted(n, 1, 200 + n, f"{n}.o", "cxx", 1004.0, "on_deck") for n in (1, 2)]
    told = ev.JobsWaiting((1, 2, 7), "memory", "needs ~2.0 GiB, 1.0 GiB unpromised above the reserve")
    events: list[ev.Event] = [*BEGIN, *jobs, told, ev.JobMoved(1, "running"), ev.JobMoved(2, "on_deck", 10**9)]
    status = status_of(reduce_all(records(events)), 1010.0)
    assert [(job["waits_for"], job["waits"]) for job in status["jobs"]] == [(None, None), ("memory", told.why)]
    frozen = status_of(reduce_all(records([*events, ev.JobMoved(2, "running"), ev.JobMoved(2, "frozen")])), 1010.0)
    assert frozen["jobs"][1]["waits"] == "was frozen a moment ago", "what it waited for before says nothing of that"
    late = status_of(reduce_all(records([*BEGIN, *jobs, ev.JobMoved(1, "running"), told])), 1010.0)
    assert late["jobs"][0]["waits"] is None


def test_a_record_seen_twice_counts_once() -> None:
    end = ev.JobFinished(None, 1, "a.o", "cxx", 2.0, "ok")
    all_records = records([*BEGIN, end])
    state = reduce_all(all_records)
    assert reduce(state, all_records[-1]) == state


def test_the_total_of_a_good_build_is_what_was_finished_since_restat_prunes_jobs() -> None:
    done: list[ev.Event] = [
        ev.SchedulerPlanned(1, 10, "dry-run", {"cxx": 10}),
        ev.JobFinished(None, 1, "a.o", "cxx", 2.0, "ok"),
        ev.SchedulerEnded(1),
        ev.BuildEnded("done", 0, ""),
    ]
    progress = progress_of(reduce_all(records([*BEGIN, *done])))
    assert (progress.finished, progress.total) == (1, 1)


def test_a_failed_build_keeps_its_planned_total() -> None:
    failed: list[ev.Event] = [
        ev.SchedulerPlanned(1, 10, "dry-run", {"cxx": 10}),
        ev.JobFinished(None, 1, "a.o", "cxx", 2.0, "failed"),
        ev.SchedulerEnded(1),
        ev.BuildEnded("failed", 1, "exit status 1"),
    ]
    progress = progress_of(reduce_all(records([*BEGIN, *failed])))
    assert (progress.finished, progress.failed, progress.total) == (0, 1, 10)


@pytest.mark.parametrize(
    ("again", "finished", "total"),
    [
        ("/tmp/tmpab12cd34/build", 0, 5),  # pip unpacks anew
        ("/tmp/tmpk9j6kttq/build", 3, 8),
        ("/home/ann/src/build", 3, 8),  # another ninja of the same step
    ],
)
def test_what_was_built_in_a_temporary_folder_of_an_earlier_attempt_is_to_be_built_again(
    again: str, finished: int, total: int
) -> None:
    def attempt(number: int, directory: str) -> list[ev.Event]:
        return [
            ev.StepStarted(1, 1, "b", ("pip",), 7, number),
            ev.SchedulerStarted(number, "ninja", 7, directory, "1.13", 4),
            ev.SchedulerPlanned(number, 5 if number == 2 else 10, "dry-run", {"cxx": 10}),
        ]

    built: list[ev.Event] = [ev.JobFinished(None, 1, f"{n}.o", "cxx", 2.0, "ok") for n in range(3)]
    end: list[ev.Event] = [ev.JobFinished(None, 1, "c.o", "cxx", 2.0, "failed"), ev.SchedulerEnded(1)]
    told = [*BEGIN[:1], *attempt(1, "/tmp/tmpk9j6kttq/build"), *built, *end, *attempt(2, again)]
    progress = progress_of(reduce_all(records(told)))
    assert progress.finished == finished
    assert progress.total == total


def attempts(*, kept: int, swept: bool = False, known: bool = True) -> list[list[ev.Event]]:
    """A step of four jobs: two end well, one is killed; the next attempt finds `kept` of what was built."""
    plan = [ev.SchedulerPlanned(1, 4, "dry-run", {"cxx": 4})] if known else []
    first: list[ev.Event] = [
        *BEGIN,
        *plan,
        *(ev.JobFinished(None, 1, f"{n}.o", "cxx", 2.0, "ok") for n in range(2)),
        ev.JobFinished(None, 1, "2.o", "cxx", 2.0, "failed"),
        ev.JobKilled("2.o", "shed"),
        ev.SchedulerEnded(1),
    ]
    again: list[ev.Event] = [ev.StepStarted(1, 1, "build", ("pip",), 200, 2)]
    again += [ev.WorkLost("/src/build")] if swept else []
    second = ev.SchedulerStarted(2, "ninja", 201, "/src/build", "1.13.2", 4)
    left: list[ev.Event] = [ev.SchedulerPlanned(2, 4 - kept, "dry-run", {"cxx": 4 - kept})]
    done: list[ev.Event] = [ev.JobFinished(None, 2, f"{n}.o", "cxx", 2.0, "ok") for n in range(kept, 4)]
    return [first, again, [second], left, [*done, ev.SchedulerEnded(2)]]


@pytest.mark.parametrize(
    ("kept", "swept", "finished"),
    [(2, False, [2, 2, 2, 2, 4]), (0, False, [2, 2, 2, 0, 4]), (0, True, [2, 0, 0, 0, 4]), (1, False, [2, 2, 2, 1, 4])],
)
def test_a_step_that_runs_again_is_not_done_before_it_is(kept: int, swept: bool, finished: list[int]) -> None:
    told: list[ev.Event] = []
    seen = []
    for part in attempts(kept=kept, swept=swept):
        told += part
        seen.append(progress_of(reduce_all(records(told))))
    assert [p.finished for p in seen] == finished
    assert [p.total for p in seen] == [4] * 5
    assert all(p.share != 1 for p in seen[:-1])
    assert seen[-1].share == 1


@pytest.mark.parametrize("outcome", ["failed", "stopped"])
def test_a_second_attempt_that_ends_badly_adds_nothing_to_the_total(outcome: ev.Outcome) -> None:
    """What the first attempt had left counted again with the plan of the second: 38 jobs of 31."""
    first, again, second, left, _ = attempts(kept=2)
    bad: list[ev.Event] = [ev.JobFinished(None, 2, "2.o", "cxx", 2.0, "failed"), ev.SchedulerEnded(2)]
    state = reduce_all(records([*first, *again, *second, *left, *bad, ev.BuildEnded(outcome, 1, "x")]))
    progress = progress_of(state)
    assert (progress.finished, progress.failed, progress.total, not_run(state)) == (2, 1, 4, 1)


def test_a_step_that_broke_off_before_its_plan_was_known_has_no_total_between_attempts() -> None:
    first, again, second, left, done = attempts(kept=2, known=False)
    for told in ([*first, *again], [*first, *again, *second]):
        progress = progress_of(reduce_all(records(told)))
        assert (progress.total_known, progress.share) == (False, None)
    progress = progress_of(reduce_all(records([*first, *again, *second, *left, *done])))
    assert (progress.finished, progress.total, progress.total_known) == (4, 4, True)


def test_of_two_schedulers_in_one_folder_each_goes_on_with_its_own() -> None:
    def ninja(sid: int, total: int) -> list[ev.Event]:
        started = ev.SchedulerStarted(sid, "ninja", 300 + sid, "/src/build", "1.13.2", 4)
        return [started, ev.SchedulerPlanned(sid, total, "dry-run")]

    def end(sid: int, output: str, outcome: ev.JobOutcome = "ok") -> ev.Event:
        return ev.JobFinished(None, sid, output, "cxx", 1.0, outcome)

    first = [*ninja(1, 1), end(1, "probe"), ev.SchedulerEnded(1)]
    main = [*ninja(2, 4), end(2, "a.o"), end(2, "b.o", "failed"), ev.SchedulerEnded(2)]
    again = [ev.StepStarted(1, 1, "build", ("pip",), 200, 2), *ninja(3, 0), ev.SchedulerEnded(3)]
    told: list[ev.Event] = [*BEGIN[:2], *first, *main, *again]
    for more in (told, [*told, *ninja(4, 3)]):
        progress = progress_of(reduce_all(records(more)))
        assert (progress.finished, progress.total) == (2, 5)


def test_folders_beside_each_other_are_no_new_attempt() -> None:
    assert not is_made_anew("/src/project-b/build", "/src/project-a/build")
    assert not is_made_anew("/src/build-debug", "/src/build-cheap")
    assert not is_made_anew("/tmp/tmpk9j6kttq/build", "/tmp/tmpk9j6kttq/build")
    assert not is_made_anew("/tmp/tmpk9j6kttq/build/sub", "/tmp/tmpab12cd34/build")
    assert is_made_anew(
        "/tmp/pip-install-8dk2nv_1/flash-attn_0c1f" + 28 * "a", "/tmp/pip-install-x0q9ab3z/flash-attn_9b2e" + 28 * "c"
    )


def test_a_stopped_build_keeps_its_planned_total_and_what_the_stop_ended_did_not_fail() -> None:
    stopped: list[ev.Event] = [
        ev.SchedulerPlanned(1, 10, "dry-run", {"cxx": 10}),
        ev.JobFinished(None, 1, "a.o", "cxx", 2.0, "ok"),
        ev.StopRequested("ann", force=False),
        ev.JobFinished(None, 1, "b.o", "cxx", 2.0, "interrupted"),
        ev.SchedulerEnded(1),
        ev.BuildEnded("stopped", 130, "stopped by a person"),
    ]
    progress = progress_of(reduce_all(records([*BEGIN, *stopped])))
    assert (progress.finished, progress.failed, progress.total) == (1, 0, 10)


def test_without_a_plan_there_is_no_percentage() -> None:
    state = reduce_all(records([*BEGIN, ev.JobFinished(None, 1, "a.o", "cxx", 2.0, "ok")]))
    assert progress_of(state).share is None


def test_makes_percentage_is_shown_when_there_is_nothing_better() -> None:
    make = ev.SchedulerStarted(1, "make", 101, "/src", "4.3", 4)
    state = reduce_all(records([*BEGIN[:2], make, ev.SchedulerPlanned(1, None, "percent", percent=45.0)]))
    assert progress_of(state).share == 0.45


MAKE_STOPPED: list[ev.Event] = [
    *BEGIN[:2],
    ev.SchedulerStarted(1, "make", 101, "/src", "4.3", 4),
    ev.JobStarted(1, 1, 200, "a.o", "cxx", 1004.0),
    ev.JobStarted(2, 1, 201, "b.o", "cxx", 1004.0),
    ev.SchedulerPlanned(1, None, "percent", percent=2.0),
    ev.JobFinished(1, 1, "a.o", "cxx", 2.0, "unknown"),
    ev.StopRequested("ann", force=False),
    ev.JobFinished(2, 1, "b.o", "cxx", 2.0, "interrupted"),
    ev.SchedulerEnded(1),
    ev.BuildEnded("stopped", 143, "stopped by a person"),
]


def test_what_a_stop_ended_of_a_make_neither_failed_nor_finished_and_there_is_no_percentage() -> None:
    for count in range(7, len(MAKE_STOPPED) + 1):
        state = reduce_all(records(MAKE_STOPPED[:count]))
        assert (progress_of(state).finished, progress_of(state).failed) == (1, 0)
    assert progress_of(state).interrupted == 1
    assert (progress_of(state).share, progress_of(state).total_known) == (None, False)


def test_what_a_killed_ninja_left_behind_has_not_failed_and_what_it_had_yet_to_do_is_not_done() -> None:
    plan = ev.SchedulerPlanned(1, 5, "dry-run", {"cxx": 5})
    running = ev.JobStarted(1, 1, 201, "a.o", "cxx", 1004.0)
    waiting = ev.JobStarted(2, 1, 202, "b.o", "cxx", 1004.0, state="on_deck")
    ends = [ev.JobFinished(n, 1, f"{n}.o", "cxx", 1.0, "interrupted") for n in (1, 2)]
    state = reduce_all(records([*BEGIN, plan, running, waiting, *ends, ev.SchedulerEnded(1)]))
    progress = progress_of(state)
    assert (progress.failed, progress.finished, progress.total) == (0, 0, 5)
    assert (progress.interrupted, progress.never_ran) == (1, 4)


def test_a_make_that_ended_well_has_done_all_there_was() -> None:
    done = [*MAKE_STOPPED[:7], MAKE_STOPPED[8], ev.SchedulerEnded(1), ev.BuildEnded("done", 0, "")]
    assert progress_of(reduce_all(records(done))).share == 1.0


def test_how_long_the_budget_was_exceeded_is_counted() -> None:
    def sample(used: int) -> ev.Sampled:
        return ev.Sampled(MachineSample(50.0, (), 2.0, 300, used, 1, "machine"), (), 0, 1, 0, "", 0)

    state = reduce_all(records([*BEGIN, *map(sample, (200, 310, 429, 400, 300, 250))]))
    before = reduce_all(records([*BEGIN, *map(sample, (200, 310))]))
    between = state.time - before.time
    assert state.memory.over_seconds == pytest.approx(between * 3 / 4), "each sample counts until the next"
    assert state.memory.over_at is None
    assert reduce_all(records([*BEGIN, sample(200), sample(300)])).memory.over_seconds == 0


def test_the_timeline_stays_bounded_and_keeps_its_peak() -> None:
    def sample(i: int) -> ev.Sampled:
        used = (9 << 30) if i == 777 else (4 << 30)
        machine = MachineSample(50.0, (), 2.0, 24 << 30, used, 1, "machine")
        return ev.Sampled(machine, (), 0, 1, 0, "", 0)

    state = reduce_all(records([*BEGIN, *(sample(i) for i in range(5000))]))
    assert len(state.timeline.points) <= MAX_TIMELINE
    assert max(p.memory_used for p in state.timeline.points) == 9 << 30
    assert [p.time for p in state.timeline.points] == sorted(p.time for p in state.timeline.points)


def test_a_ram_disks_peak_outlives_it_and_the_last_count_of_what_was_written_is_the_one_of_the_end() -> None:
    def sample(used: int, written: int) -> ev.Sampled:
        machine = replace(MACHINE, ramdisk=RamDisk("/dev/shm/x", used, 4 << 30))
        return ev.Sampled(machine, (), 0, 1, written, "", 0)

    state = reduce_all(records([*BEGIN, sample(100, 5), sample(900, 7), sample(200, 9)]))
    assert (state.ramdisk.peak, state.disk_written) == (900, 9)
    disk = status_of(state, 0.0)["ramdisk"]
    assert (disk["path"], disk["used"], disk["size"], disk["peak"]) == ("/dev/shm/x", 200, 4 << 30, 900)
    gone = reduce(state, ev.Record(state.seq + 1, 1999.0, ev.Sampled(MACHINE, (), 0, 0, 9, "", 0)))
    assert status_of(gone, 0.0)["ramdisk"] == {**disk, "used": 0}
    ended = reduce(gone, ev.Record(gone.seq + 1, 2000.0, ev.BuildEnded("done", 0, "", written=11)))
    assert (ended.ramdisk.peak, ended.disk_written) == (900, 11)
    assert status_of(ended, 0.0)["ramdisk"]["used"] == 0
    lost = reduce(state, ev.Record(state.seq + 1, 2000.0, ev.BuildEnded("failed", None, "lost")))
    assert lost.disk_written == 9
    short = reduce(state, ev.Record(state.seq + 1, 2000.0, ev.BuildEnded("done", 0, "", log_size=77)))
    assert (short.output.size, lost.output.size) == (77, 0), "a build may be over before it is sampled"
    assert decode_record(encode_record(ev.Record(1, 1.0, sample(100, 5)))).event == sample(100, 5)
    assert status_of(reduce_all(records(BEGIN)), 0.0)["ramdisk"] is None


def test_a_recursive_make_with_thousands_of_sub_makes_stays_bounded_and_counts_all() -> None:
    events: list[ev.Event] = []
    for sid in range(1, 1001):
        events += [
            ev.SchedulerStarted(sid, "make", sid, "/src", "4.3", 4),
            ev.JobFinished(None, sid, "a.o", "cxx", 2.0, "ok"),
            ev.SchedulerEnded(sid),
        ]
    state = reduce_all(records([*BEGIN[:2], *events]))
    assert len(state.schedulers) <= MAX_SCHEDULERS
    assert progress_of(state).finished == 1000


def test_what_was_killed_is_remembered_by_attempt_and_outlasts_the_failure() -> None:
    failure = ev.FailureFound("a.o", "g++", 137, (), 0, 9)
    again = ev.StepStarted(1, 1, "build", ("ninja",), 101, 2, oom_kills=1, log_start=9)
    events = [*BEGIN, failure, ev.JobKilled("a.o", "memory", 500), again, ev.JobKilled("b.o", "shed")]
    state = reduce_all(records(events))
    assert [(k.output, k.by, k.attempt, k.rss) for k in state.killed] == [
        ("a.o", "memory", 1, 500),
        ("b.o", "shed", 2, None),
    ]
    assert state.failures == ()
    assert state.step is not None
    assert state.step.oom_kills == 1


@pytest.mark.parametrize("killed_first", [True, False])
def test_a_killed_job_has_one_size_wherever_it_is_shown(*, killed_first: bool) -> None:
    start = ev.JobStarted(7, 1, 900, "a.o", "cxx", 0.0)
    end = ev.JobFinished(7, 1, "a.o", "cxx", 9.0, "failed", 193)
    kill = ev.JobKilled("a.o", "unknown", 177)  # of the last sample when the output showed it
    state = reduce_all(records([*BEGIN, start, *((kill, end) if killed_first else (end, kill))]))
    assert [job.peak_rss for job in state.history.heaviest if job.output == "a.o"] == [193]
    assert [death.rss for death in state.killed] == [193]


def test_what_an_attempt_said_before_it_was_known_to_have_begun_is_not_forgiven() -> None:
    before, early = ev.FailureFound("a.o", "g++", 137, (), 0, 9), ev.FailureFound("b.o", "g++", 1, (), 9, 20)
    again = ev.StepStarted(1, 1, "build", ("ninja",), 101, 2, log_start=9)
    late = ev.FailureFound("c.o", "g++", 137, (), 5, 9)
    state = reduce_all(records([*BEGIN, before, early, again, late]))
    assert [failure.output for failure in state.failures] == ["b.o"]


def test_however_many_are_killed_the_last_ones_are_kept() -> None:
    state = reduce_all(records([*BEGIN, *(ev.JobKilled(f"{n}.o", "memory") for n in range(MAX_KILLED + 5))]))
    assert [state.killed[0].output, state.killed[-1].output] == ["5.o", f"{MAX_KILLED + 4}.o"]


def killed_job(
    jid: int, *, by: ev.KilledBy = "shed"
) -> tuple[ev.JobStarted, ev.JobKilled, ev.FailureFound, ev.JobFinished]:
    """What is told of a job that somebody kills: the kill, ninja's words, and the job's end."""
    start = ev.JobStarted(jid, 1, 500, "a.o", "cxx", 1001.0)
    death = ev.JobKilled("a.o", by, 500, jid, "ann" if by == "person" else "", "9 GiB of 8 GiB")
    words = ev.FailureFound("a.o", "g++ -c a.cpp", 137, (), 0, 9)
    return start, death, words, ev.JobFinished(jid, 1, "a.o", "cxx", 12.0, "failed")


@pytest.mark.parametrize("by", ["shed", "person", "memory", "unknown"])
@pytest.mark.parametrize("order", [(0, 1, 2, 3), (0, 1, 3, 2), (0, 2, 1, 3), (0, 3, 1, 2), (0, 2, 3, 1), (0, 3, 2, 1)])
def test_a_killed_job_never_counts_as_failed_whatever_is_heard_first(order: Sequence[int], by: ev.KilledBy) -> None:
    told = killed_job(1, by=by)
    state = reduce_all(records([*BEGIN, *(told[i] for i in order)]))
    status = status_of(state, 1100.0)
    assert (status["progress"]["failed"], status["progress"]["killed"]) == (0, 1)
    assert status["failures"] == []
    assert [(k["output"], k["by"], k["will_run_again"]) for k in status["killed"]] == [("a.o", by, True)]
    assert status["lost"] == {by: {"jobs": 1, "seconds": 12.0}}
    assert [(job.outcome, job.killed_by) for job in state.history.recent] == [("killed", by)]


@pytest.mark.parametrize("order", [(0, 1, 2), (0, 2, 1), (2, 0, 1)])
def test_a_job_of_the_same_name_in_a_folder_below_has_failed_by_itself(order: Sequence[int]) -> None:
    start, death, said, gone = killed_job(1)
    told: list[ev.Event] = [death, said, gone]
    other = ev.JobStarted(2, 1, 501, "src/a.o", "cxx", 1001.0)
    words, end = ev.FailureFound("src/a.o", "g++", 1, (), 9, 20), ev.JobFinished(2, 1, "src/a.o", "cxx", 1.0, "failed")
    state = reduce_all(records([*BEGIN, start, other, *(told[i] for i in order), words, end]))
    status = status_of(state, 1100.0)
    assert (status["progress"]["failed"], status["progress"]["killed"]) == (1, 1)
    assert [failure["output"] for failure in status["failures"]] == ["src/a.o"]


@pytest.mark.parametrize("learnt", [0, 1])
def test_one_kill_is_that_of_one_of_two_jobs_that_make_files_of_one_name(learnt: int) -> None:
    """As sub-makes do, which name them from their own folders."""
    ends: list[ev.Event] = [ev.JobFinished(jid, 1, "main.o", "cxx", 1.0, "failed") for jid in (1, 2)]
    ends.insert(learnt, ev.JobKilled("main.o", "memory", 500))
    state = reduce_all(records([*BEGIN, *ends]))
    assert (progress_of(state).failed, progress_of(state).killed) == (1, 1)
    assert status_of(state, 1100.0)["lost"] == {"memory": {"jobs": 1, "seconds": 1.0}}


def test_that_a_job_was_killed_may_be_learnt_when_many_others_have_ended() -> None:
    start, death, _, end = killed_job(1, by="memory")
    others = [ev.JobFinished(None, 1, f"{n}.o", "cxx", 1.0, "ok") for n in range(2 * MAX_RECENT)]
    state = reduce_all(records([*BEGIN, start, end, *others, replace(death, jid=None)]))
    assert (progress_of(state).failed, progress_of(state).killed) == (0, 1)
    assert len(state.history.recent) == MAX_RECENT


def test_a_kill_leaves_the_failure_of_an_earlier_attempt_alone() -> None:
    """Or what that attempt's ninja had planned would count once more."""
    plan = ev.SchedulerPlanned(1, 10, "dry-run")
    failed = ev.JobFinished(None, 1, "a.o", "cxx", 0.1, "failed")
    again = ev.StepStarted(1, 1, "build", ("ninja",), 101, 2, log_start=9)
    second = ev.SchedulerStarted(2, "ninja", 102, "/src/build", "1.13.2", 4)
    start, death, _, end = killed_job(5)
    begun = [*BEGIN, plan, failed, ev.SchedulerEnded(1), again, second, replace(plan, sid=2)]
    state = reduce_all(records([*begun, replace(start, sid=2), death, replace(end, sid=2)]))
    assert (progress_of(state).failed, progress_of(state).killed, progress_of(state).total) == (0, 1, 10)
    assert status_of(state, 1100.0)["lost"] == {"shed": {"jobs": 1, "seconds": 12.0}}


def test_a_job_killed_before_its_name_is_known_is_told_by_its_number_and_named_later() -> None:
    start, _, words, end = killed_job(7)
    state = reduce_all(records([*BEGIN, replace(start, output=""), ev.JobKilled("", "shed", 500, 7), end, words]))
    assert (progress_of(state).failed, progress_of(state).killed) == (0, 1)
    assert [k.output for k in state.killed] == ["a.o"]


def test_what_was_killed_is_made_in_the_next_attempt_and_its_cost_stays() -> None:
    again = ev.StepStarted(1, 1, "build", ("ninja",), 101, 2, log_start=9)
    made = ev.JobFinished(2, 2, "a.o", "cxx", 13.0, "ok")
    second = ev.SchedulerStarted(2, "ninja", 102, "/src/build", "1.13.2", 4)
    state = reduce_all(records([*BEGIN, *killed_job(1), ev.SchedulerEnded(1), again, second, made]))
    status = status_of(state, 1100.0)
    assert (status["progress"]["failed"], status["progress"]["killed"], status["progress"]["finished"]) == (0, 0, 1)
    assert [k["will_run_again"] for k in status["killed"]] == [False]
    assert status["lost"] == {"shed": {"jobs": 1, "seconds": 12.0}}


def test_a_build_that_ends_because_the_kernel_killed_a_job_has_failed_of_it() -> None:
    end = ev.BuildEnded("failed", 1, "exit status 1: a.o was killed for memory even alone")
    ends: list[tuple[ev.KilledBy, int, int]] = [("memory", 1, 0), ("unknown", 1, 0), ("shed", 0, 1), ("person", 0, 1)]
    for by, failed, killed in ends:
        progress = progress_of(reduce_all(records([*BEGIN, *killed_job(1, by=by), end])))
        assert (progress.failed, progress.killed) == (failed, killed), by


def test_a_killed_job_of_make_which_keeps_no_log_is_not_done() -> None:
    start, death, words, end = killed_job(1)
    state = reduce_all(records([*BEGIN, start, death, replace(end, outcome="unknown"), words]))
    assert (progress_of(state).finished, progress_of(state).killed) == (0, 1)


def test_an_error_beside_a_kill_is_an_error() -> None:
    error = ev.FailureFound("b.o", "g++ -c b.cpp", 1, ("error",), 9, 20)
    end = ev.JobFinished(2, 1, "b.o", "cxx", 1.0, "failed")
    state = reduce_all(records([*BEGIN, *killed_job(1), error, end]))
    assert (progress_of(state).failed, progress_of(state).killed) == (1, 1)
    assert [f["output"] for f in status_of(state, 0.0)["failures"]] == ["b.o"]


names = st.text(max_size=8)
sids = st.integers(1, 3)
jids = st.integers(1, 5)
tools = st.sampled_from(["cxx", "nvcc", "link", "archive", "other"])
any_event: st.SearchStrategy[ev.Event] = st.one_of(
    st.builds(
        ev.SchedulerStarted,
        sids,
        st.sampled_from(["ninja", "make"]),
        sids,
        names,
        names,
        st.none() | sids,
        failures=st.none() | sids,
    ),
    st.builds(ev.SchedulerPlanned, sids, st.none() | st.integers(0, 9), st.just("dry-run")),
    st.builds(ev.JobsBlocked, sids, sids),
    st.builds(ev.SchedulerEnded, sids),
    st.builds(ev.JobStarted, jids, sids, sids, names, tools, st.floats(0, 9)),
    st.builds(
        ev.JobFinished,
        st.none() | jids,
        sids,
        names,
        tools,
        st.floats(0, 9),
        st.sampled_from(["ok", "failed", "interrupted"]),
    ),
    st.builds(
        ev.Sampled,
        st.just(MACHINE),
        st.lists(st.builds(JobSample, jids, sids, st.floats(0, 9), names), max_size=3).map(tuple),
        sids,
        sids,
        sids,
        names,
        sids,
    ),
    st.builds(ev.Decided, names, names, names),
    st.builds(ev.FailureFound, names, names, st.none() | sids, st.lists(names).map(tuple), sids, sids),
    st.builds(ev.JobKilled, names, st.sampled_from(["memory", "unknown", "shed", "person"]), st.none() | sids),
    st.builds(ev.StopRequested, names, st.booleans()),
    st.builds(ev.BuildEnded, st.sampled_from(["done", "failed", "stopped"]), st.none() | sids, names),
)


@settings(max_examples=300)
@given(st.lists(any_event, max_size=40))
def test_counts_never_exceed_the_total_at_any_moment(events: list[ev.Event]) -> None:
    state = BuildState()
    for record in records([*BEGIN, *events]):
        state = reduce(state, record)
        p = status_of(state, record.time)["progress"]
        assert p["finished"] + p["running"] + p["on_deck"] <= p["total"] or state.outcome == "done"
        if state.outcome == "done":
            assert p["finished"] == p["total"]


@given(st.lists(any_event, max_size=20))
def test_states_and_records_survive_a_trip_through_json(events: list[ev.Event]) -> None:
    all_records = records([*BEGIN, *events])
    for record in all_records:
        assert decode_record(json.loads(json.dumps(encode_record(record)))) == record
    state = reduce_all(all_records)
    assert decode(BuildState, json.loads(json.dumps(encode(state)))) == state


def test_a_newer_event_is_told_apart_from_a_broken_one() -> None:
    with pytest.raises(UnknownKindError):
        decode_record({"v": 1, "seq": 1, "t": 1.0, "type": "from_the_future"})
    with pytest.raises(CodecError, match=r"job_started\.pid is a int"):
        decode_record({"v": 1, "seq": 1, "t": 1.0, "type": "job_started", "jid": 1, "sid": 1, "pid": "x"})
    with pytest.raises(CodecError, match="journal version 2"):
        decode_record({"v": 2, "seq": 1, "t": 1.0, "type": "sampled"})


FOUND = Report(
    ok=False,
    files=(FileReport("/b/libk.so", 9000, archs=(HeldArch("cubin", "sm_80", 2, 4000),), verdicts=("native", "no")),),
    devices=(DeviceReport("A100", "8.0", "native", "fits"), DeviceReport("T4", "7.5", "no", "no code for sm_75")),
    problems=(Problem("error", "/b/libk.so", "will not run on T4", "build with 7.5"),),
    torch=TorchFacts("2.9.1", "13.0", ("sm_80",)),
)


def test_a_verification_is_kept_and_told_to_scripts() -> None:
    (record,) = records([ev.Verified(FOUND)])
    line = json.loads(json.dumps(encode_record(record)))
    state = reduce_all([*records(BEGIN), ev.Record(9, 2000.0, decode_record(line).event)])
    assert state.verification == FOUND
    told = status_of(state, 2000.0)["verification"]
    assert told["ok"] is False
    assert [(d["name"], d["verdict"]) for d in told["devices"]] == [("A100", "native"), ("T4", "no")]
    assert told["problems"][0]["remedy"] == "build with 7.5"
    assert status_of(reduce_all(records(BEGIN)), 2000.0)["verification"] is None


def test_a_verification_of_any_size_becomes_a_bounded_line() -> None:
    long = "x" * 100_000
    huge = Report(
        ok=True,
        files=tuple(FileReport(long, 1, archs=(HeldArch("ptx", long, 1, 1),) * 500) for _ in range(MAX_FILES + 7)),
        problems=(Problem("info", long, long, long),) * (MAX_PROBLEMS + 3),
        devices=(DeviceReport(long, long, "no", long, None, long, long),) * 500,
        torch=TorchFacts(long, long, (long,) * 500, error=long),
    )
    kept = bounded(huge)
    assert kept.left_out == 10
    assert max(len(p.what) for p in kept.problems) == MAX_TEXT
    ordinary = Report(ok=True, files=(FOUND.files[0],) * MAX_FILES, problems=FOUND.problems * MAX_PROBLEMS)
    assert bounded(ordinary) == ordinary
    assert len(json.dumps(encode_record(ev.Record(1, 1.0, ev.Verified(ordinary))))) < 100_000
