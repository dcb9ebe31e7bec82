"""Curves of running jobs: what is left when they end, and who teaches nothing."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.memory.curve_recorder import KEPT, CurveRecorder, RecordedCurve
from stoker.decide.memory.curves import MAX_POINTS, Curve, Point
from stoker.decide.memory.seen_growth import BASE, FASTEST, GROWTH, MARGIN

MIB = 2**20
GIB = 2**30


def record(
    samples: Sequence[tuple[float, float]], seconds: float = 100.0, *, ran: float | None = None, tool: str = "cxx"
) -> RecordedCurve | None:
    """Record a job that was last sampled after `ran` seconds: at its end, if nothing else is said."""
    recorder = CurveRecorder()
    for age, size in samples:
        recorder.sample(1, age, size, "cc1plus", seconds if ran is None else ran)
    return recorder.finish(1, (tool, ""), seconds)


def recorded(samples: Sequence[tuple[float, float]], seconds: float = 100.0) -> tuple[Point, ...] | None:
    curve = record(samples, seconds)
    return curve.points if curve is not None else None


def kernel(age: float) -> float:
    """nvcc: a climb to 6 GiB at 60 s, a fall, 2 GiB until 200 s."""
    return 0.1 * GIB * age if age <= 60 else 2 * GIB


def test_a_long_job_leaves_its_shape_in_a_few_points() -> None:
    points = recorded([(float(age), kernel(age)) for age in range(201)])
    assert points is not None
    assert len(points) <= MAX_POINTS
    curve = Curve(points)
    assert curve.peak == 6 * GIB
    assert curve.peak_age == 60
    assert curve.duration == pytest.approx(200, abs=1)
    assert max(abs(curve.value(age) - kernel(age)) for age in range(1, 60)) < 0.3 * GIB
    assert all(curve.value(age) == 2 * GIB for age in range(65, 200, 5))


def test_passes_are_kept() -> None:
    recorder = CurveRecorder()
    for age in range(30):
        phase = "cudafe++" if age < 5 else "a name of more than fifteen"
        recorder.sample(1, age, (10 - abs(10 - age)) * MIB + GIB, phase, float(age))
    curve = recorder.finish(1, ("nvcc", ""), 30.0)
    assert curve is not None
    points = curve.points
    assert [points[0].phase, points[-1].phase] == ["cudafe++", "a name of more "]


def test_memory_is_bounded_however_long_a_job_runs() -> None:
    recorder = CurveRecorder()
    for step in range(20_000):
        recorder.sample(1, step * 0.25, (step * 7919) % 1000 * MIB, "ld", step * 0.25)
        assert len(recorder._records[1].points) < KEPT
    curve = recorder.finish(1, ("link", ""), 5000.0)
    assert curve is not None
    assert max(p.size for p in curve.points) == 999 * MIB


def test_standing_still_adds_nothing_but_what_was_held() -> None:
    frozen = [(0.0, 1 * MIB), (1.0, 100 * MIB), *[(1.0, 120 * MIB)] * 50, (2.0, 150 * MIB), (3.0, 10 * MIB)]
    assert recorded(frozen) == recorded([(0.0, 1 * MIB), (1.0, 120 * MIB), (2.0, 150 * MIB), (3.0, 10 * MIB)])


@pytest.mark.parametrize(
    "samples",
    [
        pytest.param([(40.0, GIB), (41.0, GIB), (42.0, GIB)], id="no beginning"),
        pytest.param([(0.0, MIB), (1.0, GIB), (30.0, GIB), (31.0, GIB)], id="a gap"),
        pytest.param([], id="never seen, though it ran for long"),
    ],
)
def test_what_was_not_seen_is_not_taught(samples: list[tuple[float, float]]) -> None:
    assert recorded(samples) is None


def test_a_job_met_in_mid_life_teaches_nothing_even_if_its_age_is_small() -> None:
    recorder = CurveRecorder()
    recorder.adopted(1)
    recorder.sample(1, 0.5, MIB, "ld", 0.5)
    assert recorder.finish(1, ("link", ""), 9.0) is None
    recorder.sample(1, 0.5, MIB, "ld", 0.5)
    assert recorder.finish(1, ("link", ""), 0.9) is not None, "the number belongs to another job now"


@pytest.mark.parametrize("tool", ["cxx", "nvcc", "link"])
def test_a_compiler_between_two_samples_was_small_and_how_small_is_a_guess(tool: str) -> None:
    never_seen = record([], seconds=0.5, tool=tool)
    assert never_seen is not None
    assert never_seen.guessed
    assert Curve(never_seen.points).duration == 0.5
    assert BASE < Curve(never_seen.points).peak <= BASE + FASTEST.get(tool, GROWTH)
    waited_on_deck = record([(0.0, MIB)] * 300, seconds=300.0, ran=0.0, tool=tool)
    assert waited_on_deck is not None
    assert waited_on_deck.guessed
    assert Curve(waited_on_deck.points).duration <= 1.0
    assert Curve(waited_on_deck.points).peak <= BASE + FASTEST.get(tool, GROWTH)


@pytest.mark.parametrize("tool", ["archive", "other"])
def test_a_tool_that_compiles_nothing_is_not_taken_to_grow_like_a_compiler(tool: str) -> None:
    for unseen in (record([], seconds=0.9, tool=tool), record([(0.0, MIB)], seconds=1.1, ran=0.0, tool=tool)):
        assert unseen is not None
        assert unseen.guessed
        assert Curve(unseen.points).peak == BASE


def test_a_job_that_was_seen_asleep_held_what_was_seen() -> None:
    """`sleep 1` uses no CPU time that the kernel counts, but it ran, and was measured."""
    asleep = record([(0.0, MIB), (0.0, 2 * MIB)], seconds=1.0, ran=0.9, tool="other")
    assert asleep is not None
    assert not asleep.guessed
    assert Curve(asleep.points).peak == 2 * MIB
    sharing_all = record([(0.0, 0)], seconds=1.0, ran=0.9, tool="other")
    assert sharing_all is not None
    assert not sharing_all.guessed
    assert 0 < Curve(sharing_all.points).peak < MIB


@pytest.mark.parametrize(("age", "ran"), [(0.0, 0.0), (0.01, 0.0), (0.0, 0.1), (0.2, 0.3)])
def test_samples_of_a_beginning_are_no_measurement_of_the_whole(age: float, ran: float) -> None:
    """On deck, or just released: a shell that is about to start a compiler."""
    begun = record([(age, MIB)], seconds=1.0, ran=ran)
    assert begun is not None
    assert begun.guessed


@pytest.mark.parametrize(
    ("samples", "seconds"),
    [
        pytest.param([(0.0, 0.6), (0.18, 0.4)], 0.44, id="before the compiler's first page, and behind it"),
        pytest.param([(0.09, 16.0), (0.22, 0.02)], 2.1, id="in its climb, and when only the driver was left"),
        pytest.param([(0.28, 0.01)], 0.5, id="only behind it"),
    ],
)
def test_samples_on_either_side_of_a_peak_teach_no_size_below_what_may_lie_between(
    samples: list[tuple[float, float]], seconds: float
) -> None:
    """g++ took 26 MiB in 0.2 CPU seconds; 640 KiB was what its first and its last moment showed."""
    between = record([(age, size * MIB) for age, size in samples], seconds=seconds, ran=0.9 * seconds)
    assert between is not None
    assert between.guessed, "a measurement, if there is one, counts instead"
    assert between.brief, "otherwise this is remembered"
    assert 26 * MIB < Curve(between.points).peak <= BASE + GROWTH * samples[-1][0]


def test_a_job_of_a_second_or_two_whose_end_nobody_saw_is_bounded_and_remembered() -> None:
    """g++ on a small file of glslang: 23 MiB were seen in the first half second, 56 MiB a build later."""
    climb = record([(0.0, 2 * MIB), (0.02, 7 * MIB), (0.16, 23 * MIB)], seconds=1.35, ran=0.4)
    assert climb is not None
    assert climb.guessed, "a measurement, if there is one, counts instead"
    assert climb.brief, "otherwise each build would take it for one of its class, which may be thirty times larger"
    assert 56 * MIB < Curve(climb.points).peak <= 23 * MIB + GROWTH
    script = record([(0.0, 2 * MIB), (0.1, 9 * MIB)], seconds=1.35, ran=0.4, tool="other")
    assert script is not None
    assert Curve(script.points).peak == 9 * MIB
    long_unseen = record([(0.0, 2 * MIB), (0.5, 23 * MIB)], seconds=9.0, ran=0.4)
    assert long_unseen is None or not long_unseen.brief, "nobody knows what it held in eight seconds"


def test_a_climb_that_was_seen_is_measured_and_so_are_scripts() -> None:
    climb = record([(0.0, MIB), (0.19, 28 * MIB), (0.2, MIB)], seconds=0.4)
    flat = record([(0.2, 300 * MIB), (2.5, 290 * MIB)], seconds=2.6, tool="link")
    script = record([(0.0, 10 * MIB), (0.2, MIB)], seconds=0.4, tool="other")
    assert [curve is not None and curve.guessed for curve in (climb, flat, script)] == [False] * 3


@pytest.mark.parametrize("seconds", [2.1, 60.0])
def test_a_job_sampled_every_second_is_measured(seconds: float) -> None:
    sampled = record(
        [(seconds - 1, GIB)] if seconds < 3 else [(float(t), GIB) for t in range(60)], seconds, ran=seconds - 1
    )
    assert sampled is not None
    assert not sampled.guessed


def test_one_sample_is_not_the_end_of_a_climb() -> None:
    points = recorded([(0.6, 80 * MIB)], seconds=1.1)
    assert points is not None
    assert 80 * MIB < Curve(points).peak < 300 * MIB
    assert 0.6 < Curve(points).duration < 2
    assert points[0].age == 0


def test_a_climb_goes_on_as_it_went_and_no_faster() -> None:
    """g++ at the end of a long job: 10 MiB a second, a sample every fifth of one."""
    points = recorded([(step / 5, (200 + 2 * step) * MIB) for step in range(100)])
    assert points is not None
    assert 398 * MIB < Curve(points).peak < 403 * MIB
    assert 19.8 < Curve(points).duration < 20.1


C = ("cxx", "flags of C")


def of_c(jobs: int) -> CurveRecorder:
    """A recorder that has seen so many jobs of a C library whole: 34 MiB after 0.75 CPU seconds, 44 MiB in the end."""
    recorder = CurveRecorder()
    for _ in range(jobs):
        recorder.grown.note(
            C, [Point(0.0, 16 * MIB), Point(0.75, 34 * MIB), Point(1.6, 44 * MIB), Point(2.1, 40 * MIB)]
        )
    return recorder


def peak(curve: RecordedCurve | None) -> float:
    assert curve is not None
    return Curve(curve.points).peak


def test_a_job_that_nobody_saw_is_bounded_by_how_its_like_were_seen_to_grow() -> None:
    """archive_acl.c.o of libarchive: 0.77 s, one sample of 1.6 MB, 46 MiB; it was taken to have held 114 MiB."""
    recorder = of_c(3)
    recorder.sample(1, 0.0, 1.5 * MIB, "gcc", 0.1)
    assert 40 * MIB < peak(recorder.finish(1, C, 0.77)) < 70 * MIB
    assert peak(of_c(2).finish(1, C, 0.77)) > 100 * MIB, "two jobs say too little"
    assert peak(of_c(3).finish(1, ("cxx", "other flags"), 0.77)) < 70 * MIB, "another compiler of the same build"
    assert peak(of_c(3).finish(1, ("nvcc", ""), 0.77)) > 100 * MIB


def test_many_small_jobs_do_not_make_a_larger_one_look_small() -> None:
    """600 small tests beside libarchive's own files, which hold 40 to 60 MiB after half a second to two."""
    recorder = of_c(1)
    for _ in range(40):
        recorder.grown.note(C, [Point(0.0, 16 * MIB), Point(0.2, 17 * MIB), Point(0.3, 18 * MIB)])
    assert peak(recorder.finish(1, C, 0.9)) > 44 * MIB


def test_a_single_sample_is_completed_as_its_like_grew() -> None:
    """test_write_format_iso9660.c.o: 34 MiB after 0.75 CPU seconds became 135 MiB at its end."""
    recorder = of_c(3)
    recorder.sample(1, 0.75, 34 * MIB, "cc1", 0.8)
    assert 34 * MIB < peak(recorder.finish(1, C, 1.2)) < 67 * MIB


def test_no_bound_is_above_what_similar_jobs_held_nor_below_what_was_seen() -> None:
    recorder = CurveRecorder()
    for _ in range(5):
        recorder.grown.note(C, [Point(0.5, 70 * MIB), Point(1.0, 72 * MIB)])
    assert peak(recorder.finish(1, C, 1.0)) <= MARGIN * 72 * MIB
    recorder.sample(2, 0.2, 300 * MIB, "cc1", 0.3)
    assert peak(recorder.finish(2, C, 1.0)) >= 300 * MIB
    for _ in range(5):
        recorder.grown.note(C, [Point(10.0, 20 * MIB), Point(60.0, 30 * MIB)])
    assert peak(recorder.finish(3, C, 1.0)) > MARGIN * 30 * MIB, "jobs that took a minute are another kind"


def test_a_compiler_of_which_only_the_driver_was_seen_held_more() -> None:
    """nvcc for 2 s: both looks fell between two passes, one of which held 185 MiB."""
    driver = record([(0.6, 4.7 * MIB), (1.5, 8.7 * MIB)], 2.0, ran=1.9, tool="nvcc")
    assert driver is not None
    assert driver.guessed
    assert peak(driver) > 185 * MIB
    assert peak(record([(0.6, 4.7 * MIB), (1.5, 8.7 * MIB)], 2.0, ran=1.9, tool="other")) < 20 * MIB


def test_a_dropped_job_is_forgotten() -> None:
    recorder = CurveRecorder()
    recorder.sample(1, 1.0, GIB, "ld", 1.0)
    recorder.drop(1)
    recorder.drop(2)
    assert recorder.finish(1, ("link", ""), 60.0) is None


@given(
    st.lists(st.tuples(st.floats(-1, 1e5), st.floats(-1, 1e12)), max_size=200),
    st.floats(0, 1e5),
)
def test_any_samples_give_a_curve_or_nothing(samples: list[tuple[float, float]], seconds: float) -> None:
    points = recorded(samples, seconds)
    if points is not None:
        curve = Curve(points)
        assert len(points) <= MAX_POINTS
        assert points[0].age == 0
        assert curve.duration > 0
        assert curve.peak >= max((size for _, size in samples), default=0.0)
