"""The policies against each other, on the builds that the documentation speaks of. Simulated time, so no clock."""

from __future__ import annotations

import pytest

from stoker.decide.memory.curves import Point
from stoker.simulate.oracle import Prediction
from stoker.simulate.runner import UnknownPolicyError, best_fixed, driver_of, simulate
from stoker.simulate.synthetic import BUILDS, Order
from stoker.simulate.trace import TraceJob

GIB = 2**30


@pytest.mark.long
@pytest.mark.parametrize(("order", "prediction"), [("scattered", "exact"), ("row", "noisy"), ("row", "absent")])
def test_kernels_alone_stay_in_memory_and_near_the_bound(order: Order, prediction: Prediction) -> None:
    jobs = BUILDS["flash-attn"](order=order, jobs=40 if prediction == "absent" else 82)
    result = simulate(jobs, 16, 32 * GIB, "stoker", prediction)
    assert (result.kills, result.given_up) == (0, 0)
    assert result.peak < 32 * GIB
    if prediction != "absent":
        assert result.ratio <= 1.40


@pytest.mark.long
@pytest.mark.parametrize(("order", "count"), [("scattered", 6470), ("row", 1000)])
def test_a_mixed_build_is_within_a_tenth_of_the_bound(order: Order, count: int) -> None:
    result = simulate(BUILDS["pytorch"](order=order, jobs=count), 32, 64 * GIB, "stoker", "noisy")
    assert result.kills == 0
    assert result.ratio <= 1.10


@pytest.mark.long
@pytest.mark.parametrize("prediction", ["noisy", "absent"])
def test_stoker_beats_every_fixed_level_that_survives(prediction: Prediction) -> None:
    jobs = BUILDS["flash-attn"]()
    best = best_fixed(jobs, 32, 64 * GIB)
    assert best is not None
    assert simulate(jobs, 32, 64 * GIB, "stoker", prediction).makespan < best.makespan


def test_where_memory_is_no_matter_nothing_is_lost() -> None:
    jobs = BUILDS["uniform"](jobs=600)
    plain = simulate(jobs, 16, 256 * GIB, "fixed:16")
    own = simulate(jobs, 16, 256 * GIB, "stoker", "absent")
    assert own.makespan <= 1.01 * plain.makespan
    assert own.frozen == 0


def test_the_rivals_lose_work_where_memory_is_tight() -> None:
    jobs = BUILDS["flash-attn"]()
    fixed = simulate(jobs, 16, 32 * GIB, "fixed:16")
    restarting = simulate(jobs, 16, 32 * GIB, "kill-and-restart")
    limited = simulate(jobs, 16, 32 * GIB, "psi")
    assert fixed.kills > 0
    assert restarting.restarts > 0
    assert restarting.lost_seconds > fixed.bound
    assert limited.kills > 0


def test_a_limit_on_load_holds_back_once_the_load_is_told_and_never_looks_at_memory() -> None:
    jobs = [TraceJob(f"o{n}", "cxx", (Point(0, GIB), Point(10, GIB))) for n in range(400)]
    wide = simulate(jobs, 8, 64 * GIB, "fixed:10").makespan
    assert simulate(jobs, 8, 64 * GIB, "load:1000").makespan == wide
    assert simulate(jobs, 8, 64 * GIB, "load:4").makespan > 1.3 * wide
    assert simulate(jobs, 8, 4 * GIB, "load:8").kills > 0


def test_a_narrow_level_is_safe_and_slow() -> None:
    jobs = BUILDS["flash-attn"](jobs=20)
    narrow = simulate(jobs, 16, 32 * GIB, "fixed:2")
    assert narrow.kills == 0
    assert narrow.idle > 0
    assert narrow.makespan > simulate(jobs, 16, 32 * GIB, "stoker", "exact").makespan


def test_a_run_can_be_repeated() -> None:
    jobs = BUILDS["flash-attn"]()[:12]
    first, second = (simulate(jobs, 32, 64 * GIB, "stoker", "noisy", seed=4) for _ in range(2))
    assert first == second


@pytest.mark.long
def test_jobs_far_beyond_every_prediction_do_not_end_in_a_kill() -> None:
    """A first build whose C++ files take ten times what the prior says, together more than the machine has."""
    points = (Point(0, 0.1 * GIB), Point(60, 5 * GIB), Point(90, 5 * GIB))
    jobs = [TraceJob(f"big{n}.cpp.o", "cxx", points) for n in range(12)]
    result = simulate(jobs, 16, 32 * GIB, "stoker", "absent")
    assert result.peak < 32 * GIB
    assert result.given_up == 0


@pytest.mark.parametrize("name", ["", "fixed", "fixed:0", "fixed:x", "best"])
def test_an_unknown_policy_is_named(name: str) -> None:
    with pytest.raises(UnknownPolicyError, match="there are stoker"):
        driver_of(name)


def test_a_long_chain_late_in_the_order_does_not_leave_cores_idle_at_the_end() -> None:
    """Ninja before 1.12 comes to it last, and from 1.12 on takes each of its edges for as long as any other."""
    objects = [_job(f"{n}.o", 10.0) for n in range(56)]
    library = _job("library", 1.0, *(job.output for job in objects))
    slow = [_job("slow.o", 80.0), _job("slow", 40.0, "slow.o")]
    many = [_job("0.c", 10.0), *(_job(f"{n}.c", 10.0, f"{n - 1}.c") for n in range(1, 8))]
    for chain, others in ((slow, ("fixed:8", "longest:8")), (many, ("fixed:8",))):
        jobs = [*objects, *chain, library]
        own = simulate(jobs, 8, 64 * GIB, "stoker", "noisy").makespan
        assert own < 0.8 * min(simulate(jobs, 8, 64 * GIB, other).makespan for other in others)
    assert simulate(jobs, 8, 64 * GIB, "longest:8").makespan < 0.8 * simulate(jobs, 8, 64 * GIB, "fixed:8").makespan


def _job(output: str, seconds: float, *deps: str) -> TraceJob:
    return TraceJob(output, "cxx", (Point(0.0, GIB / 10), Point(seconds, GIB / 10)), 1.0, deps)
