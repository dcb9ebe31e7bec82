"""Expectations: priors, drawn towards what finishes; history, corrected by what this build shows."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from stoker.config.priors import load_priors, shipped_priors
from stoker.decide.memory.command_traits import Traits
from stoker.decide.memory.curves import Curve, Point
from stoker.decide.memory.learner import Learner, Recall, run_spread
from stoker.decide.memory.prior_classes import Prior, Priors
from stoker.decide.policy.unknown_jobs import UNKNOWN_SPREAD, is_unknown
from stoker.model.lessons import Remembered

MIB, GIB = 2**20, 2**30
PRIORS, _ = load_priors([shipped_priors()])


def measured(peak: float, seconds: float) -> tuple[Point, ...]:
    return (Point(0, peak / 2), Point(seconds * 0.7, peak), Point(seconds, peak / 3))


def remembered(peak: float, seconds: float, *, runs: int = 6, same_flags: bool = True) -> Remembered:
    return Remembered(measured(peak, seconds), runs, math.log(peak), 0.0, math.log(seconds), 0.0, same_flags)


def recalling(memory: Remembered) -> Recall:
    return lambda output, tool, flags: memory


def prior_of(name: str) -> Prior:
    return next(p for p in PRIORS.classes if p.name == name)


def test_before_anything_finished_the_first_class_that_fits_speaks() -> None:
    learner = Learner(PRIORS)
    assert learner.expect("a/any.cu.o", "nvcc").peak == pytest.approx(prior_of("nvcc").curve.peak)
    assert learner.expect("flash_bwd_hdim256_x.o", "nvcc").peak == pytest.approx(
        prior_of("flash-bwd-hdim256").curve.peak
    )
    assert learner.expect("a.so", "link", Traits(command="g++ -flto=4 -o a.so")).source == "prior link-lto"
    assert learner.expect("x", "no such tool").source == "prior other"
    assert Learner(Priors()).expect("x", "cxx").peak > 0


def test_finished_jobs_move_the_expectation_and_narrow_it() -> None:
    learner = Learner(PRIORS)
    before = learner.expect("unit_9.cpp.o", "cxx")
    for number in range(30):
        learner.observe(f"unit_{number}.cpp.o", "cxx", measured(3 * GIB, 60))
    after = learner.expect("unit_99.cpp.o", "cxx")
    assert after.peak == pytest.approx(3 * GIB, rel=0.15)
    assert after.duration == pytest.approx(60, rel=0.15)
    assert after.spread < before.spread
    assert after.bias < before.bias
    assert "30 like it" in after.source


def test_a_family_knows_its_own_and_strangers_stay_with_the_class() -> None:
    learner = Learner(PRIORS)
    for number in range(10):
        learner.observe(f"gemm_{number}.o", "nvcc", measured(6 * GIB, 250))
        learner.observe(f"tiny_{number}.o", "nvcc", measured(0.5 * GIB, 10))
    large, small = learner.expect("gemm_999.o", "nvcc"), learner.expect("tiny_999.o", "nvcc")
    between = learner.expect("unheard_of.o", "nvcc")
    assert small.peak < between.peak < large.peak


def test_light_jobs_of_one_kind_say_little_of_another_kind() -> None:
    learner = Learner(PRIORS)
    before = learner.expect("heavy00.o", "cxx")
    for number in range(18):
        learner.observe(f"light{number:02}.o", "cxx", measured(75 * MIB, 1))
    stranger, akin = learner.expect("heavy00.o", "cxx"), learner.expect("light99.o", "cxx")
    assert 0.4 * before.peak < stranger.peak < before.peak
    assert stranger.spread > 0.6 * before.spread
    assert akin.peak == pytest.approx(75 * MIB, rel=0.2)
    assert akin.spread < 0.5


@pytest.mark.parametrize(
    ("tool", "output", "guess"),
    [("cxx", "a.o", True), ("nvcc", "a.cu.o", True), ("link", "a", True), ("nvcc", "flash_bwd_hdim256_x.o", False)],
)
def test_before_anything_was_measured_only_measured_classes_are_no_guess(tool: str, output: str, guess: bool) -> None:
    assert Learner(PRIORS).expect(output, tool).is_guess is guess


@given(st.integers(3, 30), st.sampled_from([30 * MIB, 300 * MIB, 3 * GIB]), st.sampled_from([1.0, 1.1, 4.0, 20.0]))
def test_what_differs_by_factors_stays_a_guess_and_what_is_alike_does_not(
    pairs: int, size: float, factor: float
) -> None:
    """However many have ended."""
    learner = Learner(PRIORS)
    for number in range(pairs):
        learner.observe(f"unit{number}.o", "cxx", measured(size, 5))
        learner.observe(f"unit{number}.o", "cxx", measured(size * factor, 5))
    assert learner.expect("unit99.o", "cxx").is_guess is (factor > 2)


MIXED = Traits(flags="g++ python3", mixed=True)
PLAIN_FLAGS = Traits(flags="g++")


@given(
    st.lists(st.tuples(st.sampled_from("abh"), st.floats(20 * MIB, 4 * GIB), st.floats(0.1, 90)), max_size=8),
    st.sampled_from([("cxx", "a1.o"), ("nvcc", "a1.cu.o"), ("link", "a")]),
)
def test_jobs_with_other_programs_beside_the_compiler_and_those_without_teach_each_other_nothing(
    ended: list[tuple[str, float, float]], job: tuple[str, str]
) -> None:
    tool, output = job
    for learns, teaches in ((PLAIN_FLAGS, MIXED), (MIXED, PLAIN_FLAGS)):
        learner = Learner(PRIORS)
        before = learner.expect(output, tool, learns)
        for number, (name, peak, seconds) in enumerate(ended):
            learner.observe(f"{name}{number}.o", tool, measured(peak, seconds), teaches)
        assert learner.expect(output, tool, learns) == before


def test_what_runs_beside_the_compiler_makes_its_figures_a_guess_until_such_jobs_have_ended() -> None:
    learner, again = Learner(PRIORS), Learner(PRIORS)
    for output, tool in (("any.cu.o", "nvcc"), ("a1.o", "cxx")):
        alone, mixed = (learner.expect(output, tool, Traits(mixed=mixed)) for mixed in (False, True))
        assert mixed.peak == alone.peak, "the compiler itself needs that"
        assert is_unknown(mixed)
        assert not is_unknown(alone)
    for number in range(3):
        lesson = learner.observe(f"h{number}.o", "cxx", measured(500 * MIB, 9), MIXED)
        assert lesson is not None
        again.learn(f"h{number}.o", "cxx", lesson)
    for knows in (learner, again):
        known = knows.expect("h9.o", "cxx", MIXED)
        assert known.peak == pytest.approx(500 * MIB, rel=0.2)
        assert not is_unknown(known)


def test_one_job_says_much_of_those_whose_names_begin_alike() -> None:
    learner = Learner(PRIORS)
    learner.observe("unit0.o", "cxx", measured(150 * MIB, 1.5))
    assert learner.expect("unit1.o", "cxx").peak < 250 * MIB


def test_small_and_large_sources_of_one_folder_are_known_and_another_kind_is_not() -> None:
    learner = Learner(PRIORS)
    for number in range(12):
        size, seconds = ((16, 0.4), (190, 8), (0.7, 0.3))[number % 3]
        learner.observe(f"f{number:02}.bin", "other", measured(size * MIB, seconds))
    akin, stranger = learner.expect("f99.bin", "other"), learner.expect("heavy00.bin", "other")
    assert akin.spread >= UNKNOWN_SPREAD
    assert (is_unknown(akin), is_unknown(stranger)) == (False, True)


def test_no_compiler_waits_for_another_to_show_its_size() -> None:
    """It takes memory as it works, so that the brake keeps up with it; a linker may map it all at once."""
    learner = Learner(PRIORS)
    for number in range(6):
        for tool in ("cxx", "nvcc", "link"):
            learner.observe(f"f{number:02}.{tool}", tool, measured((16, 190, 0.7)[number % 3] * MIB, 3))
    told = {tool: learner.expect(f"heavy.{tool}", tool) for tool in ("cxx", "nvcc", "link")}
    assert {tool: is_unknown(curve) for tool, curve in told.items()} == {
        "cxx": False, "nvcc": False, "link": told["link"].spread >= UNKNOWN_SPREAD
    }  # fmt: skip
    assert all(told[tool].gradual for tool in ("cxx", "nvcc"))
    assert not told["link"].gradual


def test_jobs_with_the_same_flags_know_each_other() -> None:
    learner = Learner(PRIORS)
    for letter in "abcdefghij":
        learner.observe(f"{letter}.o", "cxx", measured(2 * GIB, 90), Traits(flags="O3"))
        learner.observe(f"{letter}{letter}.o", "cxx", measured(0.2 * GIB, 5), Traits(flags="O0"))
    assert learner.expect("new.o", "cxx", Traits(flags="O0")).peak < GIB
    assert learner.expect("new.o", "cxx", Traits(flags="O3")).peak > GIB


def test_other_tools_learn_nothing_from_it() -> None:
    learner = Learner(PRIORS)
    before = learner.expect("a.o", "cxx")
    learner.observe("lib.so", "link", measured(30 * GIB, 100))
    assert learner.expect("a.o", "cxx") == before


def test_several_gpus_side_by_side_need_several_times_the_memory() -> None:
    learner = Learner(PRIORS)
    one = learner.expect("a.o", "nvcc")
    six = learner.expect("b.o", "nvcc", Traits(targets=6, lanes=6))
    assert six.peak == pytest.approx(6 * one.peak)
    assert six.duration == pytest.approx(6 * one.duration)


def test_several_gpus_in_turn_climb_again_each_time() -> None:
    learner = Learner(PRIORS)
    one = learner.expect("a.o", "nvcc")
    turns = learner.expect("b.o", "nvcc", Traits(targets=4, lanes=1))
    assert turns.peak == pytest.approx(one.peak)
    assert turns.duration == pytest.approx(4 * one.duration)
    for turn in range(4):
        assert turns.largest(turn * one.duration + 1, (turn + 1) * one.duration - 1) == pytest.approx(one.peak)


# -- history -----------------------------------------------------------------------------------------------------------


def test_a_job_is_expected_to_do_again_what_it_did() -> None:
    curve = Learner(PRIORS, recalling(remembered(7 * GIB, 80))).expect("src/a.o", "cxx")
    assert (curve.peak, curve.duration) == pytest.approx((7 * GIB, 80))
    assert curve.source == "history"
    assert curve.spread < 0.15
    fresh = Learner(PRIORS, lambda output, tool, flags: None).expect("src/a.o", "cxx")
    assert fresh.source == "prior cxx"


def test_the_shape_is_scaled_to_the_means() -> None:
    memory = Remembered(measured(GIB, 10), 3, math.log(2 * GIB), 0.1, math.log(30), 0.2)
    curve = Learner(PRIORS, recalling(memory)).expect("a.o", "cxx")
    assert (curve.peak, curve.duration) == pytest.approx((2 * GIB, math.sqrt(300))), "the last run's time as well"
    assert curve.peak_age == pytest.approx(0.7 * curve.duration)


def test_a_source_that_has_grown_is_expected_at_what_it_last_held() -> None:
    """It had peaked at 719 MiB, and was expected at 559: the mean of that and of smaller versions of the file."""
    grown = Remembered(measured(719 * MIB, 25), 4, math.log(559 * MIB), 0.06, math.log(20), 0.1)
    learner = Learner(PRIORS, recalling(grown))
    assert learner.expect("memplan.o", "cxx").peak == pytest.approx(719 * MIB)
    for number in range(20):
        learner.observe(f"{number}.o", "cxx", measured(719 * MIB, 20))
    assert learner.expect("memplan.o", "cxx").peak == pytest.approx(719 * MIB), "the build is not 29 % off"


def test_one_run_and_other_flags_are_less_sure() -> None:
    def expected(runs: int, *, same_flags: bool = True) -> Curve:
        memory = remembered(GIB, 30, runs=runs, same_flags=same_flags)
        return Learner(PRIORS, recalling(memory)).expect("a.o", "cxx")

    many, once, other = expected(9), expected(1), expected(9, same_flags=False)
    assert many.spread < once.spread < other.spread
    assert many.time_spread < once.time_spread < other.time_spread
    assert other.source == "history, other flags"


def test_runs_that_differ_leave_a_spread_of_their_own() -> None:
    assert run_spread(6, 0.5**2, 0.2, 0.05) == pytest.approx(0.5, rel=0.15)
    assert run_spread(1000, 0.0, 0.2, 0.05) == pytest.approx(0.08, abs=0.01)


def test_a_build_that_runs_larger_throughout_is_expected_to_go_on_so() -> None:
    """Another compiler: everything takes half as much memory again; another machine: half the time."""
    learner = Learner(PRIORS, recalling(remembered(2 * GIB, 60)))
    before = learner.expect("new.o", "cxx")
    learner.observe("first.o", "cxx", measured(3 * GIB, 30))
    once = learner.expect("new.o", "cxx")
    assert before.peak < once.peak < 2.6 * GIB, "one job alone is believed in part"
    for number in range(40):
        learner.observe(f"{number}.o", "cxx", measured(3 * GIB, 30))
    after = learner.expect("new.o", "cxx")
    assert after.peak == pytest.approx(3 * GIB, rel=0.06)
    assert after.duration == pytest.approx(30, rel=0.12)
    assert after.bias < before.bias
    assert learner.expect("new.o", "nvcc").peak == pytest.approx(2 * GIB), "another tool is another matter"


def test_a_build_that_disagrees_with_history_at_random_makes_it_less_sure() -> None:
    learner = Learner(PRIORS, recalling(remembered(2 * GIB, 60)))
    before = learner.expect("new.o", "cxx")
    for number in range(40):
        learner.observe(f"{number}.o", "cxx", measured((4 if number % 2 else 1) * GIB, 60))
    after = learner.expect("new.o", "cxx")
    assert after.peak == pytest.approx(2 * GIB, rel=0.1)
    assert after.spread > 3 * before.spread


def test_jobs_too_small_to_be_measured_correct_nothing() -> None:
    learner = Learner(PRIORS, recalling(remembered(GIB / 64, 0.5)))
    for number in range(40):
        learner.observe(f"{number}.o", "cxx", measured(GIB / 32, 1.0))
    assert learner.expect("new.o", "cxx").peak == pytest.approx(GIB / 64)


def test_answers_stay_the_same_object_until_something_was_learnt() -> None:
    learner = Learner(PRIORS, lambda output, tool, flags: remembered(GIB, 60) if output == "known.o" else None)
    known, unknown, version = learner.expect("known.o", "cxx"), learner.expect("x.o", "cxx"), learner.version
    assert learner.expect("known.o", "cxx") is known
    assert learner.expect("x.o", "cxx") is unknown
    assert learner.version == version
    learner.observe("y.o", "cxx", measured(5 * GIB, 9))
    assert learner.version > version
    assert learner.expect("x.o", "cxx") is not unknown
    assert learner.expect("known.o", "cxx") == known, "what a stranger took says nothing about known jobs"


KERNELS = [
    ("flash_bwd_hdim256_fp16_sm80.o", 6742, 265),
    ("flash_bwd_hdim128_fp16_sm80.o", 6182, 244),
    ("flash_fwd_hdim256_fp16_sm80.o", 4421, 213),
]
"""Measured: MiB at the peak and CPU seconds."""


def test_a_kernel_that_nobody_measured_does_not_spoil_what_is_known_of_measured_ones() -> None:
    """The first kernel of a class that was guessed took 27 % less memory and 22 % less time than the guess."""
    guess = Prior("guess", Curve(measured(6742 * MIB, 265)), 0.3, 0.4, output="*flash_new_kernel*")
    learner = Learner(Priors([guess, *PRIORS.classes]))
    learner.observe("flash_new_kernel_fp16_sm80.o", "nvcc", measured(4930 * MIB, 207))
    for output, peak, seconds in KERNELS:
        curve = learner.expect(output, "nvcc")
        assert curve.peak == pytest.approx(peak * MIB, rel=0.02)
        assert curve.duration == pytest.approx(seconds, rel=0.02)


def test_one_measured_kernel_that_is_off_moves_the_others_by_less_than_half_of_that() -> None:
    learner = Learner(PRIORS)
    learner.observe("flash_bwd_hdim64_fp16_sm80.o", "nvcc", measured(6080 * 0.73 * MIB, 200))
    assert all(learner.expect(output, "nvcc").peak > 0.88 * peak * MIB for output, peak, _ in KERNELS)


def test_measured_kernels_of_several_classes_that_agree_tell_of_the_whole_build() -> None:
    learner = Learner(PRIORS)
    for output, peak, seconds in KERNELS:
        learner.observe(output, "nvcc", measured(1.3 * peak * MIB, 2 * seconds))
    other = learner.expect("flash_bwd_hdim32_fp16_sm80.o", "nvcc")
    assert 1.1 * 4481 * MIB < other.peak < 1.3 * 4481 * MIB
    assert 1.5 * 150 < other.duration < 2 * 150


def test_kernels_of_head_dimension_192_are_known() -> None:
    learner = Learner(PRIORS)
    backward = learner.expect("flash_bwd_hdim192_fp16_sm80.o", "nvcc")
    assert backward.peak == pytest.approx(4930 * MIB, rel=0.02)
    assert 198 <= backward.duration <= 216
    assert learner.expect("flash_fwd_hdim192_fp16_sm80.o", "nvcc").peak == pytest.approx(4414 * MIB, rel=0.02)


# -- what teaches nothing -------------------------------------------------------------------------------------------


def test_a_cache_hit_teaches_nothing_and_a_short_job_without_a_cache_does() -> None:
    learner = Learner(PRIORS)
    hit, cached = measured(GIB / 32, 0.2), Traits(cached=True)
    assert not learner.observe("a.o", "nvcc", hit, cached)
    assert learner.expect("b.o", "nvcc").source == "prior nvcc"
    assert learner.observe("a.o", "nvcc", measured(GIB, 20), cached), "a miss"
    assert learner.observe("a.o", "nvcc", hit)


def test_a_compilation_that_is_short_for_its_class_is_none_of_a_caches_hits() -> None:
    learner, cached = Learner(PRIORS), Traits(cached=True)
    assert learner.observe("a.o", "cxx", measured(250 * MIB, 1.9), cached), "no hit holds a compiler's memory"
    known = Learner(PRIORS, recalling(remembered(100 * MIB, 3.0)))
    assert not known.observe("a.o", "cxx", measured(70 * MIB, 0.4), cached), "ccache preprocesses what it looks up"


@pytest.mark.parametrize(
    "points", [(), (Point(math.nan, 1.0),), (Point(1.0, math.inf),), (Point(-1.0, 5.0),), (Point(5.0, -1.0),)]
)
def test_figures_that_cannot_be_true_are_left_out(points: tuple[Point, ...]) -> None:
    assert not Learner(PRIORS).observe("a.o", "cxx", points)


POINTS = st.lists(
    st.builds(Point, st.floats(allow_nan=True), st.floats(allow_nan=True), st.text(max_size=3)), max_size=6
)
JOBS = st.lists(
    st.tuples(
        st.text(max_size=4), st.sampled_from(["nvcc", "cxx", "link"]), POINTS, st.integers(1, 16), st.integers(1, 16)
    ),
    max_size=40,
)
MEMORIES = st.one_of(
    st.none(),
    st.builds(
        lambda peak, seconds, runs, variance, same: Remembered(
            measured(peak, seconds), runs, math.log(peak), variance, math.log(seconds), variance, same
        ),
        st.floats(1, 2.0**50),
        st.floats(0.001, 1e8),
        st.integers(1, 10**6),
        st.floats(0, 100),
        st.booleans(),
    ),
)


@given(JOBS, MEMORIES)
def test_whatever_finished_expectations_stay_finite_and_positive(
    jobs: list[tuple[str, str, list[Point], int, int]], memory: Remembered | None
) -> None:
    learner = Learner(PRIORS, None if memory is None else recalling(memory))
    for output, tool, points, targets, lanes in jobs:
        traits = Traits(targets=targets, lanes=min(lanes, targets))
        learner.observe(output, tool, points, traits)
        for curve in (learner.expect(output, tool, traits), learner.expect("other.o", tool)):
            assert 0 < curve.peak < math.inf
            assert 0 < curve.duration < math.inf
            assert all(0 <= p.size < math.inf and 0 <= p.age < math.inf for p in curve.points)
            assert all(0 <= s < math.inf for s in (curve.spread, curve.time_spread, curve.bias))


# -- other priors in mid-build -----------------------------------------------------------------------------------------


def one_class(peak: float, output: str = "*.o") -> Priors:
    return Priors([Prior("mine", Curve(measured(peak, 60)), 0.3, 0.3, output=output)])


def test_other_priors_count_at_once_for_what_was_asked_before() -> None:
    learner = Learner(one_class(1 * GIB))
    before, version = learner.expect("a.o", "cxx"), learner.version
    assert learner.set_priors(one_class(4 * GIB))
    assert learner.version > version
    assert before.peak == pytest.approx(1 * GIB)
    assert learner.expect("a.o", "cxx").peak == pytest.approx(4 * GIB)


def test_the_same_priors_change_nothing() -> None:
    priors = one_class(GIB)
    learner = Learner(priors)
    curve, version = learner.expect("a.o", "cxx"), learner.version
    assert not learner.set_priors(priors)
    assert learner.version == version
    assert learner.expect("a.o", "cxx") is curve


def test_what_a_class_was_taught_outlives_its_figures_but_not_its_patterns() -> None:
    learner = Learner(one_class(1 * GIB))
    for number in range(40):
        learner.observe(f"kernel_{number}.o", "cxx", measured(3 * GIB, 60))
    learner.set_priors(one_class(1.2 * GIB))
    assert learner.expect("kernel_99.o", "cxx").peak == pytest.approx(3 * GIB, rel=0.15)
    learner.set_priors(one_class(1 * GIB, output="*.oo"))
    learner.set_priors(one_class(1 * GIB))
    assert learner.expect("kernel_99.o", "cxx").peak == pytest.approx(1 * GIB, rel=0.15)
