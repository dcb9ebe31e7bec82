"""The policy's decisions, one situation a test."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from decide.builds import GIB, OVERDUE, acts, asked, candidate, curve, kernel, light, live, view
from stoker.decide.policy import emergency
from stoker.decide.policy.admission import PATIENCE, patience
from stoker.decide.policy.decide import level_of, rule
from stoker.decide.policy.waits import Wait
from stoker.model.units import format_bytes


def test_everything_that_fits_starts_up_to_the_number_of_cores() -> None:
    candidates = [candidate(n, light()) for n in range(20)]
    assert acts(asked(view([], candidates, cores=16)), "admit") == list(range(16))
    assert acts(asked(view([], candidates, level=3)), "admit") == [0, 1, 2]


def test_what_the_longest_chain_of_jobs_waits_for_starts_first() -> None:
    leaf, generator, object_file, unknown = [
        replace(candidate(n, light()), chain=chain) for n, chain in enumerate((5.0, 90.0, 30.0, None))
    ]
    waiting = [leaf, generator, object_file, unknown]
    assert acts(asked(view([], waiting, level=2)), "admit") == [1, 2]
    passed, others = replace(leaf, passed_over=PATIENCE), [candidate(n, light()) for n in range(4, 24)]
    assert acts(asked(view([], [passed, generator, *others], level=1)), "admit") == [0]
    small = view([live(9, light(20, seconds=100), 50)], waiting, cores=3)
    assert acts(asked(small), "admit") == [1, 2], "where memory is short too"


def test_a_long_job_starts_in_time_to_end_with_the_rest() -> None:
    """30 GiB are there. What runs and waits takes 115 s of two cores; a job of 100 s that waits until the large ones
    have begun would be the last, alone."""
    running = [live(90, light(8, seconds=100), 60)]
    large = [candidate(n, light(18, seconds=45)) for n in range(2)]
    long = candidate(9, light(1, seconds=100))
    assert acts(asked(view(running, [*large, long], cores=2)), "admit") == [9]
    early = [candidate(n, light(18, seconds=45)) for n in range(20)]
    assert acts(asked(view(running, [*early, long], cores=2)), "admit") == [0], "there is time yet"


def test_an_urgent_job_goes_before_those_that_were_passed_over_unless_they_would_starve() -> None:
    """Late in a large build nearly every job that is left was passed over: by age, the long ones would end last."""
    running = [live(90, light(8, seconds=100), 60)]
    passed = [candidate(n, light(18, seconds=45), passed_over=patience(2)) for n in range(2)]
    long = candidate(9, light(1, seconds=100))
    assert acts(asked(view(running, [*passed, long], cores=2)), "admit") == [9]
    starved = replace(passed[0], passed_over=OVERDUE)
    assert acts(asked(view(running, [starved, passed[1], long], cores=2)), "admit") == [0]


def test_light_jobs_of_unknown_length_begin_while_there_is_time_for_a_long_one() -> None:
    """One of them may take minutes, and if it began last, the machine would wait for one core. 57 s are left."""
    running = [live(90, light(8, seconds=100), 60)]
    large = [candidate(n, light(18, seconds=34), passed_over=patience(2)) for n in range(2)]
    guess, measured = (candidate(9, curve((0, 1), (5, 1), time_spread=spread)) for spread in (0.8, 0.2))
    assert acts(asked(view(running, [*large, guess], cores=2)), "admit") == [9]
    assert acts(asked(view(running, [*large, measured], cores=2)), "admit") == [0]
    more = [candidate(n, light(18, seconds=34)) for n in range(20)]
    assert acts(asked(view(running, [*more, guess], cores=2)), "admit") == [0], "there is time yet"


def test_what_most_waits_for_goes_before_large_jobs_when_the_build_is_as_long() -> None:
    running = [live(90, light(8, seconds=100), 60)]
    large = [candidate(n, light(18, seconds=45)) for n in range(2)]
    first_of_many = replace(candidate(9, light(1, seconds=5)), chain=100.0)
    assert acts(asked(view(running, [*large, first_of_many], cores=2)), "admit") == [9]


def test_large_jobs_of_several_kinds_start_as_a_mix() -> None:
    """24 of a kind that comes down early, then as many of one that does not: had each kind its turn, all would peak at
    one time."""
    early, late = kernel(peak=6), curve((0, 0.1), (110, 6), (112, 2), (180, 2))
    waiting = [candidate(n, early if n < 24 else late) for n in range(48)]
    admitted = acts(asked(view([], waiting, ram=64, cores=16)), "admit")
    assert {n < 24 for n in admitted} == {True, False}


def test_small_jobs_fill_in_however_many_large_ones_wait() -> None:
    """Each large one has a history of its own: none tells of another that it will not fit either."""
    running = [live(n, kernel(peak=6), 50) for n in range(4)]
    large = [candidate(n, light(9 + n / 1000, seconds=60)) for n in range(10, 200)]
    small = [candidate(n, light(0.4, seconds=5)) for n in range(200, 204)]
    assert acts(asked(view(running, [*large, *small])), "admit") == [200, 201, 202, 203]


def test_more_places_let_more_jobs_pass_before_one_has_waited_too_long() -> None:
    waiting = candidate(2, light(0.5, seconds=30), passed_over=PATIENCE)
    large = [candidate(n, light(8, seconds=60)) for n in range(10, 200)]
    running = [live(90, light(23, seconds=900), 1)]
    assert acts(asked(view(running, [*large, waiting], cores=16, ram=32)), "admit") == [2]
    wide = view([replace(running[0], rss=1.5 * GIB)], [*large, waiting], cores=128, ram=256)
    first = acts(asked(wide), "admit")[0]
    assert first != 2, "at 128 places 64 jobs are soon let go"


def test_nothing_to_do_gives_no_decision() -> None:
    assert asked(view()) == ()
    assert asked(view([live(1, kernel(), 20)])) == ()


def test_kernels_that_peak_together_are_not_started_together() -> None:
    admitted = acts(asked(view([], [candidate(n, kernel(peak=6)) for n in range(16)])), "admit")
    assert len(admitted) == 5  # 30 GiB above the reserve, 6 each


def test_more_start_while_others_are_past_their_peak() -> None:
    fallen = [live(n, kernel(peak=6, tail=2), 100) for n in range(6)]
    admitted = acts(asked(view(fallen, [candidate(n, kernel(peak=6)) for n in range(10, 20)])), "admit")
    assert len(admitted) == 3  # 12 GiB are held; lifetime peaks would already exceed the budget


def test_a_large_job_that_does_not_fit_is_held_once_and_small_ones_fill_in() -> None:
    running = [live(n, kernel(peak=6), 50) for n in range(4)]
    waiting = [candidate(10, light(9)), candidate(11, light(0.4, seconds=5))]
    decisions = asked(view(running, waiting))
    assert acts(decisions, "hold") == [10]
    assert acts(decisions, "admit") == [11]
    told = replace(waiting[0], held=True)
    assert acts(asked(view(running, [told, waiting[1]])), "hold") == []


def test_the_reason_names_need_and_room() -> None:
    running = [live(n, kernel(peak=6), 50) for n in range(4)]
    hold = next(d for d in asked(view(running, [candidate(10, light(9))])) if d.action == "hold")
    assert hold.why.startswith("needs up to 9.0 GiB")
    assert "unpromised above the reserve" in hold.why


def test_what_fills_in_may_not_delay_the_one_that_waits() -> None:
    """The big one fits when the running job ends, in 20 s; what holds its memory for 200 s would be in its way."""
    running = [live(1, light(20, seconds=100), 80)]
    big = candidate(2, light(24, seconds=50), passed_over=OVERDUE)
    long_filler = candidate(3, light(8, seconds=200))
    short_filler = candidate(4, light(8, seconds=10))
    assert acts(asked(view(running, [big, long_filler])), "admit") == []
    assert acts(asked(view(running, [big, short_filler])), "admit") == [4]


def test_a_job_passed_over_often_enough_goes_first() -> None:
    patient = candidate(5, light(20, seconds=30), passed_over=PATIENCE)
    younger = [candidate(n, light(14, seconds=400)) for n in range(6, 46)]
    assert acts(asked(view([], [*younger, patient])), "admit") == [5]


def test_a_job_that_never_fits_holds_up_nobody_until_it_has_waited_long() -> None:
    """40 GiB on a machine of 32: others go on beside the wait for an empty machine, but not for ever."""
    huge, small = candidate(2, light(40, seconds=50)), [candidate(n, light(8, seconds=50)) for n in range(3, 43)]
    running = [live(1, light(20, seconds=100), 80)]
    assert len(acts(asked(view(running, [huge, *small])), "admit")) == 1
    assert acts(asked(view(running, [replace(huge, passed_over=PATIENCE), *small])), "admit") == []
    assert acts(asked(view(running, [replace(huge, passed_over=OVERDUE), small[0]])), "admit") == [], "few are left"


def test_with_nothing_running_the_longest_waiting_of_those_that_never_fit_starts() -> None:
    waiting = [candidate(1, light(40, seconds=50)), candidate(2, light(40, seconds=50), passed_over=OVERDUE)]
    assert acts(asked(view([], waiting)), "admit") == [2]


def test_a_lone_job_starts_whatever_it_needs() -> None:
    assert acts(asked(view([], [candidate(1, kernel(peak=100))])), "admit") == [1]


def test_fewer_cores_freeze_nobody() -> None:
    running = [live(n, light(seconds=50), 20 - n) for n in range(5)]
    assert asked(view(running, [candidate(9, light())], cores=2)) == ()


@pytest.mark.parametrize(
    ("cores", "level", "expected"), [(16.0, None, 16), (0.5, None, 1), (2.7, None, 2), (4, 9, 9), (4, 0, 1)]
)
def test_the_level_is_a_persons_number_or_the_cores_and_at_least_one(
    cores: float, level: int | None, expected: int
) -> None:
    assert level_of(view(cores=cores, level=level)) == expected


def test_the_spare_place_is_used_while_memory_is_plenty_and_not_where_it_is_short() -> None:
    small = replace(view([], [candidate(n, light()) for n in range(9)], cores=5), spare=1)
    assert len(acts(asked(small), "admit")) == 5
    large = replace(view([], [candidate(n, light(7, seconds=40)) for n in range(9)], cores=5), spare=1)
    assert len(acts(asked(large), "admit")) == 4, "30 GiB would hold four, and the fifth place is for plenty"
    waiting = [candidate(n, light(8, seconds=40)) for n in range(9)]
    short = replace(view([live(90, light(8, seconds=40), 1)], waiting, cores=4), spare=1)
    assert len(acts(asked(short), "admit")) == 2, "three in all: the cores"


def test_frozen_jobs_go_on_before_others_start() -> None:
    """11 GiB are left: enough for the frozen one's climb or for a new job, not for both."""
    held = [live(n, light(16, seconds=300), 10) for n in (1,)]
    frozen = live(2, kernel(peak=8), 30)
    decisions = asked(view(held, [candidate(3, light(9, seconds=100))], [frozen]))
    assert acts(decisions, "thaw") == [2]
    assert acts(decisions, "admit") == []


def test_beside_a_frozen_job_that_needs_the_machine_for_itself_others_run_that_end_before_it_can_go_on() -> None:
    """It goes on in 80 s, once the one that runs has ended: for as long, 9 GiB are of no use to it."""
    running, needs_all = live(1, light(3, seconds=100), 20), live(2, curve((0, 1), (50, 12), (90, 12), spread=0.4), 10)
    brief, long = candidate(3, light(1, seconds=5)), candidate(4, light(1, seconds=200))
    seen = view([running], [long, brief], [needs_all], ram=16.0, cores=4)
    assert acts(asked(seen), "thaw") == []
    assert acts(asked(seen), "admit") == [3]
    assert acts(asked(replace(seen, running=(), available=15 * GIB)), "thaw") == [2]


def test_after_a_freeze_nothing_thaws_until_its_effect_was_seen() -> None:
    seen = view([live(1, light(), 1)], [], [live(2, kernel(peak=4), 30)], last_freeze=99.0)
    assert acts(asked(seen, now=100.0), "thaw") == []
    assert acts(asked(seen, now=101.5), "thaw") == [2]


class TestEarly:
    """One kernel of 9 GiB runs on a machine of 14 with a reserve of 2; the next one must wait, and a core is idle."""

    def test_beside_a_single_job_the_next_begins_and_is_stopped_before_it_takes_what_the_first_needs(self) -> None:
        decision = asked(view([live(1, kernel(peak=9), 30)], [candidate(2, kernel(peak=9))], ram=14.0))[0]
        assert (decision.action, decision.jid, decision.early) == ("admit", 2, True)
        assert "may hold 3.0 GiB until the other shrinks" in decision.why
        for age in range(1, 60):
            begun = replace(live(2, kernel(peak=9), age), early=True)
            first = live(1, kernel(peak=9), min(30 + age, 59))
            if acts(asked(view([first, begun], ram=14.0)), "freeze"):
                break
        assert begun.rss >= 2 * GIB, "it has done something"
        assert begun.rss + 9 * GIB <= 13 * GIB, "and the first can climb to its peak beside it"

    def test_it_is_not_told_to_wait_and_to_start_at_once(self) -> None:
        decisions = asked(view([live(1, kernel(peak=9), 30)], [candidate(2, kernel(peak=9))], ram=14.0))
        assert [(d.action, d.jid) for d in decisions] == [("admit", 2)]

    def test_not_beside_many_which_together_are_in_more_doubt_than_it_is_worth(self) -> None:
        running = [live(n, kernel(peak=5), 30) for n in (1, 2)]
        assert acts(asked(view(running, [candidate(3, kernel(peak=5))], ram=14.0)), "admit") == []

    def test_not_while_one_waits_frozen_nor_where_its_beginning_has_no_room_nor_where_it_never_fits(self) -> None:
        first, second = live(1, kernel(peak=9), 30), candidate(2, kernel(peak=9))
        frozen = live(3, kernel(peak=9), 20)
        assert acts(asked(view([first], [second], [frozen], ram=14.0)), "admit") == []
        assert acts(asked(view([first], [candidate(2, light(4, seconds=200))], ram=14.0)), "admit") == []
        assert acts(asked(view([first], [candidate(2, kernel(peak=13))], ram=14.0)), "admit") == []

    def test_what_fits_goes_before_it(self) -> None:
        waiting = [candidate(2, kernel(peak=9)), candidate(3, light(1, seconds=5))]
        decisions = asked(view([live(1, kernel(peak=9), 30)], waiting, ram=14.0))
        assert acts(decisions, "admit") == [3]
        assert not any(d.early for d in decisions)


class TestBrake:
    def test_a_climb_that_would_not_fit_is_stopped_before_it(self) -> None:
        climbing = [live(n, kernel(peak=9), 48 - n) for n in range(4)]
        decisions = asked(view(climbing, ram=29.0))
        assert len(acts(decisions, "freeze")) == 1
        assert acts(decisions, "freeze") != [0]

    def test_one_of_which_only_shell_or_driver_is_left_is_neither_stopped_nor_waits(self) -> None:
        """Its curve ends at its peak, as of most C++ files; 14 jobs waited for such a one to be thawed."""
        rises = curve((0, 0.1), (20, 6))
        climbing = live(1, kernel(peak=9), 48)
        left = replace(live(9, rises, 19), rss=64 * 1024.0, phase="sh")
        before = replace(left, phase="cc1plus", rss=3 * GIB)
        driver = replace(left, phase="c++")
        passes = replace(rises, points=tuple(p._replace(phase="cicc") for p in rises.points))
        of_nvcc = replace(left, phase="gcc", curve=passes)
        for job, frozen in ((left, []), (driver, []), (before, [9]), (of_nvcc, [9])):
            assert acts(asked(view([climbing, job], ram=12.0)), "freeze") == frozen
        for job, thawed in ((left, [9]), (before, [])):
            assert acts(asked(view([climbing], [], [job], ram=12.0)), "thaw") == thawed

    def test_the_reason_tells_what_is_expected_from_what_may_be(self) -> None:
        doubted = replace(kernel(peak=9), spread=0.3)
        climbing = [live(n, doubted, 48 - n) for n in range(4)]
        (decision,) = asked(view(climbing, ram=29.0))
        assert re.search(
            r"may hold up to [\d.]+ GiB within 4 s \([\d.]+ GiB expected\), "
            r"more than the [\d.]+ GiB allowed to them and half of the reserve, [\d.]+ GiB;",
            decision.why,
        )

    def test_two_figures_that_look_alike_are_not_called_more(self) -> None:
        """It read: up to 630 MiB, more than the 630 MiB that are left."""
        for over, said in ((0.0004, "just over the "), (1.0, "more than the ")):
            most = 20.0 * GIB
            why = emergency._excess(most, most, 4, most - over * GIB, 0.5 * GIB)
            left = format_bytes(most - (over + 0.5) * GIB)
            assert why.endswith(f"20.0 GiB within 4 s, {said}{left} allowed to them and half of the reserve, 512 MiB")

    def test_the_one_with_most_of_its_climb_before_it_is_stopped(self) -> None:
        near, far = [live(n, kernel(peak=9), 56) for n in range(3)], live(9, kernel(peak=9), 30)
        assert acts(asked(view([*near, far], ram=31.0)), "freeze") == [9]

    def test_one_that_is_almost_over_its_peak_may_pass_it(self) -> None:
        """All memory is held; who needs 0.2 GiB to get over the top and give back 7 goes on before who needs 5."""
        nearly, early = live(2, kernel(peak=9), 58.5), live(3, kernel(peak=9), 20)
        oldest = live(1, light(18, seconds=1000), 10)
        decisions = asked(view([oldest], [], [early, nearly], ram=30.2))
        assert acts(decisions, "thaw") == [2]

    def test_the_oldest_which_is_never_stopped_keeps_the_room_for_its_climb(self) -> None:
        """It needs 5 GiB more and the other 1.6; whoever is wrong by a little more, there is an end to it."""
        jobs = [live(1, kernel(peak=9), 30), live(2, kernel(peak=9), 50)]
        (decision,) = asked(view(jobs, available=5.7))
        assert (decision.action, decision.jid) == ("freeze", 2)
        assert "too little for the oldest job to reach its peak" in decision.why
        assert acts(asked(view(jobs, available=8.0)), "freeze") == []

    def test_a_job_that_sleeps_climbs_no_faster_than_it_is_awake(self) -> None:
        """The oldest needs 5 GiB more. In four seconds the other takes 1.6 if it computes, 0.2 if it mostly sleeps."""
        oldest, other = live(1, kernel(peak=9), 30), live(2, kernel(peak=9), 50)
        assert acts(asked(view([oldest, other], available=5.7)), "freeze") == [2]
        assert asked(view([oldest, replace(other, wants=0.1)], available=5.7)) == ()

    def test_jobs_that_end_as_fast_as_others_climb_take_no_room_from_the_oldest(self) -> None:
        ramp = curve((0, 0.1), (8, 1.0))
        steady = [live(n, ramp, 8 - n / 2) for n in range(1, 16)]
        assert acts(asked(view(steady, available=4.5)), "freeze") == []
        together = [steady[0], *(live(n, ramp, 2) for n in range(2, 16))]
        assert len(acts(asked(view(together, available=4.5)), "freeze")) == 1

    def test_one_that_began_early_climbs_until_the_oldest_is_expected_to_need_the_rest(self) -> None:
        """Nobody knows yet how large they get; if the doubt counted, it would be stopped as soon as it began."""
        shape = replace(kernel(peak=9), spread=1.0)
        oldest, early = live(1, shape, 10), replace(live(2, shape, 1), early=True)
        assert acts(asked(view([oldest, early], available=11.0)), "freeze") == []
        assert acts(asked(view([oldest, early], available=8.0)), "freeze") == [2]
        assert acts(asked(view([oldest, replace(early, early=False)], available=11.0)), "freeze") == [2]

    def test_what_was_frozen_for_the_oldest_goes_on_when_there_is_room_for_both(self) -> None:
        oldest, waits = live(1, kernel(peak=9), 30), live(2, kernel(peak=9), 50)
        assert acts(asked(view([oldest], [], [waits], available=5.7)), "thaw") == []
        assert acts(asked(view([oldest], [], [waits], available=8.0)), "thaw") == [2]

    def test_where_the_oldest_will_take_all_there_is_another_may_pass_its_peak_before(self) -> None:
        oldest, waits = live(1, kernel(peak=9), 30), live(2, kernel(peak=9), 50)
        assert acts(asked(view([oldest], [], [waits], available=2.5)), "thaw") == [2]
        assert acts(asked(view([oldest], [], [waits], available=2.0)), "thaw") == []


class TestEmergency:
    def test_below_the_floor_the_youngest_that_grows_is_frozen(self) -> None:
        jobs = [live(1, kernel(), 20), live(2, kernel(), 30), live(3, light(seconds=50), 5)]
        assert acts(asked(view(jobs, available=0.4)), "freeze") == [2]

    @pytest.mark.parametrize("own", [True, False])
    @pytest.mark.parametrize("available", [None, 1.5, 0.55])
    def test_pressure_alone_neither_freezes_nor_kills(self, available: float | None, *, own: bool) -> None:
        running = [live(1, light(seconds=50), 5), live(2, light(seconds=50), 3)]
        seen = replace(view(running, [], [live(3, light(), 1)], available=available), pressure=100.0, pressure_own=own)
        assert {d.action for d in asked(seen)} <= {"thaw"}

    def test_pressure_holds_back_starts_where_it_is_the_builds_own_or_memory_is_short(self) -> None:
        running, waiting = [live(1, light(), 1)], [candidate(2, light(0.2))]

        def starts(*, own: bool, available: float, pressure: float | None = 40.0) -> list[int]:
            seen = replace(view(running, waiting, available=available), pressure=pressure, pressure_own=own)
            return acts(asked(seen), "admit")

        assert starts(own=False, available=20.0) == [2], "a neighbour's"
        assert starts(own=True, available=20.0) == []
        assert starts(own=True, available=20.0, pressure=19.0) == [2]
        assert starts(own=True, available=20.0, pressure=None) == [2]
        own = replace(view([], waiting), pressure=90.0, pressure_own=True)
        assert acts(asked(own), "admit") == [2], "one always runs"
        short = replace(view(running, waiting, available=1.9), pressure=40.0)
        assert rule(short, 100.0).waits.on_deck == Wait(
            "pressure",
            "1.9 GiB left, less than the reserve of 2.0 GiB, and the machine stalls on memory 40 % of the time, "
            "from 20 % on nothing new starts",
        )

    def test_the_oldest_is_never_frozen(self) -> None:
        assert asked(view([live(1, kernel(), 20)], available=0.1, pressure=90.0)) == ()

    def test_when_only_the_oldest_still_grows_the_youngest_frozen_is_given_up(self) -> None:
        frozen = [live(n, kernel(), 30) for n in (2, 3)]
        seen = view([live(1, kernel(), 20)], [], frozen, available=0.15)
        decision = asked(seen)[0]
        assert (decision.action, decision.jid) == ("shed", 3)
        assert "runs again later" in decision.why

    def test_nothing_is_given_up_that_would_not_help(self) -> None:
        seen = view([live(1, kernel(), 20)], [], [live(2, kernel(), 30, rss=0.001)], available=0.05)
        assert acts(asked(seen), "shed") == []

    def test_nothing_is_given_up_while_enough_is_left(self) -> None:
        assert asked(view([live(1, kernel(), 20)], [], [live(2, kernel(), 30)], available=0.4)) == ()

    def test_a_climb_that_no_curve_foretold_is_stopped_before_the_floor(self) -> None:
        unsure = curve((0, 8), (10, 8), spread=0.4)
        jobs = [live(1, unsure, 5), replace(live(2, unsure, 5), rise=3 * GIB)]
        assert acts(asked(view(jobs, available=10.0)), "freeze") == []
        decision = asked(view(jobs, available=3.0))[0]
        assert (decision.action, decision.jid) == ("freeze", 2)
        assert "1 job can add up to 3.0 GiB per second; this one holds 8.0 GiB and grows on" in decision.why

    def test_the_reason_tells_what_was_measured_and_what_it_was_counted_as(self) -> None:
        half = curve((0, 8), (10, 8), spread=0.15)
        jobs = [replace(live(n, half, 5), rise=3 * GIB) for n in (1, 2)]
        (decision,) = asked(view(jobs, available=2.0))
        told = "2 jobs can add up to 6.0 GiB per second"
        assert told in decision.why

    def test_more_jobs_than_cores_do_not_all_grow_at_once(self) -> None:
        """Growth is measured by CPU time: eight jobs on two cores get a quarter of it each."""
        unsure = curve((0, 1), (10, 1), spread=0.4)
        jobs = [replace(live(n, unsure, 5), rise=GIB) for n in range(8)]
        wide = view(jobs, available=7.0)
        assert "8 jobs can add up to 8.0 GiB per second" in asked(wide)[0].why
        assert asked(replace(wide, cores=2)) == ()
        (decision,) = asked(replace(wide, cores=2, available=2 * GIB))
        assert "8 jobs can add up to 2.0 GiB per second" in decision.why

    def test_a_job_that_sleeps_counts_with_what_it_adds_by_the_clock(self) -> None:
        unsure = curve((0, 1), (10, 1), spread=0.4)
        jobs = [replace(live(n, unsure, 5), rise=3 * GIB, wants=0.075) for n in (1, 2)]
        seen = view(jobs, available=3.1)
        assert asked(seen) == ()
        assert "2 jobs can add up to 461 MiB per second" in asked(replace(seen, available=0.55 * GIB))[0].why
        awake = replace(seen, running=(jobs[0], replace(jobs[1], wants=1.0)))
        assert "2 jobs can add up to 3.2 GiB per second" in asked(awake)[0].why

    def test_a_core_that_a_sleeping_job_leaves_is_for_another(self) -> None:
        unsure = curve((0, 1), (10, 1), spread=0.4)
        jobs = [replace(live(1, unsure, 5), rise=4 * GIB, wants=0.25), replace(live(2, unsure, 5), rise=2 * GIB)]
        seen = replace(view(jobs, available=2.0), cores=1)
        assert "2 jobs can add up to 2.5 GiB per second" in asked(seen)[0].why

    def test_what_a_job_did_before_its_stop_is_not_told_nor_counted_until_it_is_measured_anew(self) -> None:
        unsure = curve((0, 8), (10, 8), spread=0.4)
        thawed = replace(live(2, unsure, 5, rss=4), rise=3 * GIB, stale=True)
        assert "second of work" not in str(asked(view([live(1, unsure, 5), thawed], available=3.0)))
        grows = replace(live(3, unsure, 5), rise=3 * GIB)
        (decision,) = asked(view([live(1, unsure, 5), thawed, grows], available=3.0))
        assert "1 job can add up to 3.0 GiB per second" in decision.why

    def test_one_that_would_be_stopped_at_once_waits_and_is_told_why(self) -> None:
        """It is expected to end before the oldest needs the room; should it not, the oldest could not climb."""
        oldest, brief = live(1, kernel(peak=9), 30), candidate(2, light(6, seconds=5))
        (decision,) = asked(view([oldest], [brief], available=9.0))
        assert (decision.action, decision.jid) == ("hold", 2)
        assert "would have to be stopped at once: 2.4 GiB too little for the oldest job" in decision.why
        assert acts(asked(view([oldest], [brief], available=12.0)), "admit") == [2]

    def test_room_that_a_frozen_job_waits_for_two_seconds_to_use_is_not_given_away(self) -> None:
        frozen, new = live(2, kernel(peak=9), 62), candidate(3, light(1, seconds=60))
        seen = view([live(1, kernel(), 100)], [new], [frozen], cores=2, last_freeze=99.0)
        assert asked(seen, now=100.0) == ()
        assert acts(asked(seen, now=101.5), "thaw") == [2]

    def test_where_a_job_that_is_ended_costs_the_others_too_all_wait_first(self) -> None:
        """Below pip, which starts anew when ninja fails."""
        oldest, frozen = live(1, kernel(), 20), [live(n, kernel(), 30) for n in (2, 3)]
        sinking = replace(view([oldest], [], frozen, available=0.15), costly=True)
        assert [(d.action, d.jid) for d in asked(sinking)] == [("freeze", 1)]
        waiting = replace(view([], [], [oldest, *frozen], available=0.15, last_freeze=100.0), costly=True)
        assert asked(waiting, now=101.0) == asked(waiting, now=129.0) == ()
        assert rule(waiting, 101.0).waits.frozen == Wait(
            "memory", "no memory is left, and ending a job would cost what the others have built"
        )
        assert [(d.action, d.jid) for d in asked(waiting, now=131.0)] == [("shed", 3)]
        assert acts(asked(replace(waiting, available=1 * GIB), now=101.0), "thaw") == [1]
        assert acts(asked(replace(waiting, frozen=(oldest,)), now=101.0), "thaw") == [1], "nobody's end would help it"

    def test_below_pip_nobody_is_given_up_while_another_may_yet_end(self) -> None:
        oldest, ends, frozen = live(1, kernel(), 20), live(2, kernel(), 119), live(3, kernel(), 30)
        sinking = view([oldest, ends], [], [frozen], available=0.15)
        assert acts(asked(sinking), "shed") == [3]
        assert [(d.action, d.jid) for d in asked(replace(sinking, costly=True))] == [("freeze", 1)]
        rest = replace(sinking, running=(ends,), frozen=(oldest, frozen), costly=True, last_freeze=100.0)
        assert asked(rest, now=101.0) == asked(rest, now=200.0) == ()

    def test_below_pip_one_that_runs_alone_waits_too_and_one_of_the_others_is_given_up(self) -> None:
        """It must not go on at once with nothing left, for what waits for it holds the memory."""
        alone = replace(live(1, kernel(), 20), alone=True)
        others = [replace(live(n, kernel(), 30), by_word=True) for n in (2, 3)]
        waiting = replace(view([], [], [alone, *others], available=0.15, last_freeze=100.0), costly=True)
        assert asked(waiting, now=101.0) == ()
        assert [(d.action, d.jid) for d in asked(waiting, now=131.0)] == [("shed", 3)]
        by_hand = replace(waiting, frozen=(live(1, kernel(), 20), replace(others[0], by_word=False, by_person=True)))
        assert asked(by_hand, now=101.0) == ()
        assert [(d.action, d.jid) for d in asked(by_hand, now=131.0)] == [("shed", 2)]

    def test_a_shed_waits_until_the_one_before_was_seen(self) -> None:
        seen = view([live(1, kernel(), 20)], [], [live(2, kernel(), 30)], available=0.15, last_shed=99.5)
        assert acts(asked(seen, now=100.0), "shed") == []

    def test_nothing_is_shed_while_the_oldest_does_not_grow(self) -> None:
        seen = view([live(1, kernel(), 100)], [], [live(2, kernel(), 30)], available=0.15)
        assert acts(asked(seen), "shed") == []


def test_what_others_take_on_the_machine_counts_too() -> None:
    """32 GiB, 20 of them used by strangers: only ten are left above the reserve."""
    waiting = [candidate(n, light(4, seconds=60)) for n in range(8)]
    assert len(acts(asked(view([], waiting)), "admit")) == 7
    assert len(acts(asked(view([], waiting, available=12.0)), "admit")) == 2


def test_doubt_keeps_room_free() -> None:
    sure = [candidate(n, curve((0, 3), (60, 3))) for n in range(16)]
    unsure = [candidate(n, curve((0, 3), (60, 3), spread=0.3)) for n in range(16)]
    wrong_together = [candidate(n, curve((0, 3), (60, 3), bias=0.3)) for n in range(16)]
    counts = [len(acts(asked(view([], c)), "admit")) for c in (sure, unsure, wrong_together)]
    assert counts == [10, 8, 7]


def test_sizes_beyond_all_reason_decide_something() -> None:
    seen = view([live(1, light(1e9), 1)], [candidate(2, light(1e9))])
    assert acts(asked(seen), "admit") == []
    assert view().budget == 32 * GIB


def test_what_a_job_on_deck_holds_already_is_part_of_what_it_needs() -> None:
    """Four were stopped only after their compilers had begun, and hold 2 GiB each: nobody else may have that."""
    running = [live(1, light(10, seconds=100), 5)]
    begun = [replace(candidate(n, light(6, seconds=100)), rss=2 * GIB) for n in range(2, 6)]
    seen = view(running, begun, available=32 - 10 - 8)
    assert len(acts(asked(seen), "admit")) == 3, "30 GiB: 10 and 8 are held, and each needs 4 more"
    fresh = replace(seen, candidates=tuple(replace(c, rss=0.0) for c in begun), available=22 * GIB)
    assert len(acts(asked(fresh), "admit")) == 3
    stranger = candidate(9, light(14, seconds=100))
    assert acts(asked(replace(seen, candidates=(stranger, *begun[2:]))), "admit") == [4, 5]
