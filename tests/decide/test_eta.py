"""The remaining time: silent while it knows nothing, a band around the truth afterwards."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given
from hypothesis import strategies as st

from stoker.decide.eta import estimate
from stoker.model.state import BuildState, Job, Plan, Scheduler, TimelinePoint, ToolStats


def scheduler(total: int | None, tools: dict[str, int], finished: dict[str, int], width: int = 4) -> Scheduler:
    return Scheduler(
        1,
        "ninja",
        10,
        "/b",
        "1.13.2",
        width,
        None,
        0.0,
        plan=Plan(total, "dry-run", tools),
        finished=sum(finished.values()),
        finished_by_tool=finished,
    )


def state_with(s: Scheduler, stats: dict[str, ToolStats], running: int = 4) -> BuildState:
    point = TimelinePoint(100.0, 0, 0, running, 100.0)
    return BuildState(cores=4, phase="running", schedulers={1: s}, tool_stats=stats, timeline=(point,) * 10)


def stats_of(count: int, seconds: float) -> ToolStats:
    return ToolStats(count, count * seconds, count * seconds**2, seconds)


def test_nothing_is_claimed_before_the_total_is_known() -> None:
    state = state_with(scheduler(None, {}, {"cxx": 5}), {"cxx": stats_of(5, 10.0)})
    assert estimate(state, 100.0) is None


def test_nothing_is_claimed_before_a_job_has_finished() -> None:
    assert estimate(state_with(scheduler(10, {"cxx": 10}, {}), {}), 100.0) is None


def test_uniform_jobs_take_their_mean_over_the_width() -> None:
    state = state_with(scheduler(500, {"cxx": 500}, {"cxx": 100}), {"cxx": stats_of(100, 10.0)})
    got = estimate(state, 100.0)
    assert got is not None
    assert got.seconds == 400 * 10.0 / 4
    assert got.low < got.seconds < got.high


def test_the_width_is_what_really_ran_not_what_was_allowed() -> None:
    s = scheduler(500, {"cxx": 500}, {"cxx": 100}, width=64)
    got = estimate(state_with(s, {"cxx": stats_of(100, 10.0)}, running=2), 100.0)
    assert got is not None
    assert got.seconds == 400 * 10.0 / 2


def test_the_last_job_is_not_divided_by_the_width() -> None:
    s = scheduler(101, {"cxx": 100, "link": 1}, {"cxx": 100})
    state = state_with(s, {"cxx": stats_of(100, 10.0), "link": stats_of(1, 60.0)})
    job = Job(1, 1, 20, "libtorch.so", "link", started=90.0)
    got = estimate(replace(state, jobs={1: job}), 100.0)
    assert got is not None
    assert got.seconds == 50.0


def test_kernels_to_come_are_expected_to_be_slower_than_cxx_and_widen_the_band() -> None:
    cxx_only = state_with(scheduler(200, {"cxx": 200}, {"cxx": 100}), {"cxx": stats_of(100, 10.0)})
    mixed = state_with(scheduler(200, {"cxx": 150, "nvcc": 50}, {"cxx": 100}), {"cxx": stats_of(100, 10.0)})
    plain, heavy = estimate(cxx_only, 100.0), estimate(mixed, 100.0)
    assert plain is not None
    assert heavy is not None
    assert heavy.seconds > plain.seconds
    assert heavy.high / heavy.low > plain.high / plain.low


def test_makes_percentage_is_extrapolated_with_a_wide_band() -> None:
    make = Scheduler(1, "make", 10, "/b", "4.3", 4, None, 0.0, plan=Plan(None, "percent", percent=25.0))
    got = estimate(BuildState(cores=4, phase="running", schedulers={1: make}), 100.0)
    assert got is not None
    assert got.seconds == 300.0
    assert got.low < 300.0 < got.high


def test_all_done_means_no_time_left() -> None:
    got = estimate(state_with(scheduler(5, {"cxx": 5}, {"cxx": 5}), {"cxx": stats_of(5, 1.0)}), 100.0)
    assert got is not None
    assert got.high == 0.0


@given(
    st.dictionaries(st.sampled_from(["cxx", "nvcc", "link", "archive", "other"]), st.integers(0, 1000), min_size=1),
    st.dictionaries(st.sampled_from(["cxx", "nvcc", "link"]), st.integers(0, 2000), min_size=1),
    st.integers(-5, 3000),
    st.floats(0.001, 3600),
)
def test_the_band_is_ordered_and_finite_whatever_the_counts(
    tools: dict[str, int], finished: dict[str, int], total: int, seconds: float
) -> None:
    stats = {tool: stats_of(n, seconds) for tool, n in finished.items()}
    got = estimate(state_with(scheduler(total, tools, finished), stats), 100.0)
    if got is not None:
        assert 0.0 <= got.low <= got.seconds <= got.high < 1e12
