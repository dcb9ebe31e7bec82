"""A recorded build as one value, from real journals and from any: nobody's jobs are lost and no time runs backwards."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from stoker.model import events as ev
from stoker.model.progress import progress_of
from stoker.model.samples import JobSample, MachineSample
from stoker.record.journal_reader import read_journal
from stoker.report.job_records import MAX_POINTS
from stoker.report.phases import waits
from stoker.report.recorded import MAX_MOMENTS, RecordedBuild, recorded

KILLED = Path(__file__).resolve().parents[1] / "model/recorded/killed-jobs.jsonl"
MACHINE = MachineSample(50.0, (40, 60), 2.0, 24 << 30, 4 << 30, 20 << 30, "machine")
BEGIN: tuple[ev.Event, ...] = (
    ev.BuildStarted("b-1", "b", ("ninja",), "/src", "/log", "host", 2, 24 << 30, "0.1.0"),
    ev.StepStarted(1, 1, "build", ("ninja",), 100),
    ev.SchedulerStarted(1, "ninja", 101, "/src/build", "1.13.2", 4),
)


def build_of(events: Sequence[ev.Event], every: float = 1.0) -> RecordedBuild:
    both = (*BEGIN, *events)
    return recorded(ev.Record(n, 1000.0 + n * every, event) for n, event in enumerate(both, 1))


def sampled(*jobs: JobSample) -> ev.Sampled:
    return ev.Sampled(MACHINE, jobs, 1 << 30, 3, 0, "", 0)


def test_a_real_journal_gives_each_job_its_end_and_agrees_with_the_state() -> None:
    build = recorded(read_journal(KILLED))
    fates = Counter(job.fate for job in build.jobs)
    assert fates["killed"] == sum(lost.count for lost in build.state.lost.values()) > 0
    assert fates["ok"] == sum(build.state.history.finished_by_tool.values())
    assert build.jobs == tuple(sorted(build.jobs, key=lambda job: (job.born, job.ended)))
    assert max(m.build for m in build.moments) == build.state.memory.build_peak


def test_a_job_has_its_waits_stops_and_memory() -> None:
    job = build_of(
        [
            ev.JobStarted(1, 1, 7, "a.o", "cxx", 1004.0, state="on_deck"),  # 1004
            ev.JobsWaiting((1,), "memory", "no room"),
            ev.JobMoved(1, "running"),  # 1006
            sampled(JobSample(1, 300, 100.0, "cc1plus")),
            ev.JobMoved(1, "frozen"),  # 1008
            sampled(JobSample(1, 500, 0.0, "cc1plus", "frozen")),
            ev.JobMoved(1, "running"),  # 1010
            ev.JobsExited((1,)),  # 1011
            sampled(),
            ev.JobFinished(1, 1, "a.o", "cxx", 3.0, "ok", peak_rss=600, cpu_seconds=2.5),
        ]
    ).jobs[0]
    assert (job.born, job.began, job.ended, job.fate) == (1004.0, 1006.0, 1011.0, "ok")
    assert job.waited == (("memory", 1.0),)
    assert job.stops == ((1008.0, 1010.0),)
    assert (job.seconds, job.waiting, job.peak, job.cpu) == (3.0, 2.0, 600, 2.5)
    assert [(p.time, p.rss) for p in job.points] == [(1007.0, 300), (1009.0, 500)]


def test_the_report_and_the_end_count_jobs_that_waited_for_memory_alike() -> None:
    """The end said that 39 jobs had waited for memory, the report that 54 had, for their size, and mostly."""
    born = [ev.JobStarted(n, 1, n, f"{n}.o", "cxx", 1004.0, state="on_deck") for n in (1, 2, 3)]
    build = build_of(
        [
            *born,
            ev.JobsWaiting((1,), "memory", "no room"),
            ev.JobsWaiting((1, 2), "room", "kept for 1.o"),
            ev.JobsWaiting((2, 3), "unknown", "its size is a guess"),
            ev.JobMoved(1, "running"),
            ev.JobMoved(1, "frozen"),
            ev.JobsWaiting((1,), "memory", "no room"),
        ]
    )
    counted = {cause: jobs for cause, _, jobs in waits(build.jobs)}
    assert counted == {"memory": 2, "unknown": 2}
    assert (build.state.restraint.held, build.state.restraint.after_first) == (2, 2)


def test_a_kill_counts_whatever_is_heard_first() -> None:
    for order in ((0, 1), (1, 0)):
        ends: tuple[ev.Event, ...] = (
            ev.JobFinished(1, 1, "a.o", "cxx", 3.0, "failed"),
            ev.JobKilled("a.o", "shed", jid=1),
        )
        job = build_of([ev.JobStarted(1, 1, 7, "a.o", "cxx", 1004.0), *(ends[i] for i in order)]).jobs[0]
        assert (job.fate, job.killed_by) == ("killed", "shed")


def test_a_stop_interrupts_what_runs_and_drops_what_is_on_deck_as_the_counts_of_the_build_say() -> None:
    """31 rows of an export were interrupted where the end screen had counted 3."""
    build = build_of(
        [
            ev.JobStarted(1, 1, 7, "a.o", "cxx", 1004.0),
            ev.JobStarted(2, 1, 8, "b.o", "cxx", 1004.0, state="on_deck"),
            *(ev.JobFinished(jid, 1, f"{jid}.o", "cxx", 1.0, "interrupted") for jid in (1, 2, None)),
            ev.SchedulerEnded(1),
            ev.BuildEnded("stopped", None, ""),
        ]
    )
    fates = Counter(job.fate for job in build.jobs)
    assert fates == {"interrupted": 1, "dropped": 2}
    assert fates["interrupted"] == progress_of(build.state).interrupted


def test_however_long_a_build_is_its_points_are_bounded_and_its_peak_stays() -> None:
    samples = [sampled(JobSample(1, 5000 if n == 2345 else n, 100.0, "cicc")) for n in range(6000)]
    build = build_of([ev.JobStarted(1, 1, 7, "a.o", "nvcc", 1004.0), *samples])
    assert len(build.moments) < 2 * MAX_MOMENTS
    assert len(build.jobs[0].points) < 2 * MAX_POINTS
    assert build.jobs[0].peak == max(p.rss for p in build.jobs[0].points) == 5999
    assert abs((build.jobs[0].cpu or 0) - 6000) < 2


jids = st.integers(1, 5)
OUTPUTS = st.sampled_from(
    ["a.o", "b.o", "=cmd|' /C calc'!A0", "\x1b[31mred\n.o", "</script><script>alert(1)</script>.o"]
)
ANY_EVENT = st.one_of(
    st.builds(
        ev.JobStarted,
        jids,
        st.just(1),
        st.just(7),
        OUTPUTS,
        st.sampled_from(["cxx", "nvcc"]),
        st.floats(0, 3000),
        st.sampled_from(["running", "on_deck"]),
    ),
    st.builds(ev.JobMoved, jids, st.sampled_from(["running", "frozen", "on_deck"])),
    st.builds(lambda j: ev.JobsExited((j,)), jids),
    st.builds(lambda j: ev.JobsWaiting((j,), "memory", "w"), jids),
    st.builds(
        ev.JobFinished,
        st.none() | jids,
        st.just(1),
        OUTPUTS,
        st.just("cxx"),
        st.floats(-5, 5000),
        st.sampled_from(["ok", "failed", "dropped", "unknown"]),
    ),
    st.builds(ev.JobKilled, OUTPUTS, st.just("memory"), st.none(), st.none() | jids),
    st.builds(
        lambda j, r, cpu: sampled(JobSample(j, r, cpu, "cc1plus")), jids, st.integers(0, 1 << 40), st.floats(-9, 900)
    ),
    st.builds(ev.LevelSet, st.just("auto"), st.integers(1, 9)),
    st.builds(ev.Decided, st.sampled_from(["governor", "ann"]), OUTPUTS, OUTPUTS),
    st.just(ev.StepEnded(1, 0)),
    st.just(ev.StepStarted(2, 2, "again", ("x",), 5)),
    st.just(ev.SchedulerEnded(1)),
)  # fmt: skip
"""Any order of events, also such as no engine writes: a journal may be hostile."""


@given(st.lists(ANY_EVENT, max_size=40), st.sampled_from([1.0, 0.0, -0.5]))
def test_no_time_runs_backwards_in_any_journal(events: list[ev.Event], every: float) -> None:
    build = build_of(events, every)
    for job in build.jobs:
        assert job.born <= job.ended
        assert job.began is None or job.began <= job.ended
        assert job.seconds >= 0
        assert job.waiting >= 0
        assert all(a < b <= job.ended for a, b in job.stops)
    assert build.seconds >= 0


def test_the_cpu_time_of_what_ended_before_it_was_looked_at_is_not_known() -> None:
    start, end = ev.JobStarted(1, 1, 7, "a.o", "cxx", 1004.0), ev.JobFinished(1, 1, "a.o", "cxx", 0.2, "ok", 0, 0.0)
    assert build_of([start, end]).jobs[0].cpu is None
    idle = sampled(JobSample(1, 300, 0.0, "sleep"))
    assert build_of([start, idle, idle, end]).jobs[0].cpu == 0.0


def test_what_became_of_a_job_is_read_and_not_guessed_from_a_stop() -> None:
    """That of one job a compiler's error was printed before the stop, the engine knows alone."""
    job = ev.JobStarted(1, 1, 7, "a.o", "cxx", 1004.0)
    running = ev.JobStarted(2, 1, 8, "b.o", "cxx", 1004.0)
    failed = ev.JobFinished(1, 1, "a.o", "cxx", 1.0, "failed")
    interrupted = ev.JobFinished(2, 1, "b.o", "cxx", 1.0, "interrupted")
    stopped = build_of([job, running, ev.StopRequested("ann", force=False), failed, interrupted])
    assert [j.fate for j in stopped.jobs] == ["failed", "interrupted"]
