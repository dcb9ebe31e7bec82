"""What a person says takes effect at once: pause, level, one job alone, memory ignored."""

from __future__ import annotations

from dataclasses import replace

import pytest

from decide.builds import OVERDUE, acts, asked, candidate, kernel, light, live, view
from stoker.decide.policy.decide import rule
from stoker.decide.policy.snapshot import LiveJob


def stopped(jobs: list[LiveJob]) -> list[LiveJob]:
    """The same jobs, frozen by a person's word about all of them."""
    return [replace(j, by_word=True) for j in jobs]


class TestPause:
    def test_a_soft_pause_starts_nothing_and_stops_nothing(self) -> None:
        assert asked(view([live(1, light(), 1)], [candidate(2, light())], paused="soft")) == ()

    def test_in_a_soft_pause_what_was_frozen_goes_on(self) -> None:
        assert acts(asked(view([], [candidate(2, light())], [live(1, light(), 1)], paused="soft")), "thaw") == [1]

    def test_a_hard_pause_freezes_all_whatever_else_is_the_matter(self) -> None:
        running = [live(n, kernel(), 50) for n in range(3)]
        for seen in (
            view(running, [candidate(9, light())], paused="hard"),
            view(running, paused="hard", available=0.1, pressure=90.0, level=1),
            view([replace(running[0], alone=True), *running[1:]], paused="hard", guarded=False),
        ):
            decisions = asked(seen)
            assert acts(decisions, "freeze") == [0, 1, 2]
            assert all(d.by_word for d in decisions)

    def test_nothing_moves_while_paused(self) -> None:
        frozen = stopped([live(n, light(seconds=50), 5) for n in range(3)])
        assert asked(view([], [candidate(9, light())], frozen, paused="hard")) == ()

    def test_a_resume_lets_all_go_on_at_once_the_oldest_first(self) -> None:
        """Kernels in the middle of their climb, and memory was frozen for a moment ago: still at once."""
        frozen = stopped([live(n, kernel(peak=6), 40 - n) for n in range(5)])
        assert acts(asked(view([], [], frozen, last_freeze=99.5)), "thaw") == [0, 1, 2, 3, 4]

    def test_a_resume_keeps_to_the_level(self) -> None:
        frozen = stopped([live(n, light(seconds=50), 5) for n in range(5)])
        assert acts(asked(view([], [candidate(9, light())], frozen, level=2)), "thaw") == [0, 1]

    def test_what_ran_before_the_pause_runs_after_it_though_a_new_job_would_not_be_let_in(self) -> None:
        """25 GiB are held, 5 more will be needed in 20 s: beyond the promise, but nothing that the brake stops now."""
        jobs = [live(n, kernel(peak=7), 40) for n in range(5)]
        assert acts(asked(view(jobs)), "freeze") == []
        assert acts(asked(view([], [], stopped(jobs), last_freeze=99.9)), "thaw") == [0, 1, 2, 3, 4]

    def test_a_resume_keeps_to_the_memory_that_others_have_left(self) -> None:
        """Meanwhile somebody else took almost everything."""
        frozen = stopped([live(n, kernel(peak=6), 40) for n in range(5)])
        thawed = acts(asked(view([], [], frozen, available=2.5)), "thaw")
        assert thawed[:1] == [0]
        assert len(thawed) < 5


class TestLevel:
    def test_a_lower_level_freezes_the_youngest_at_once(self) -> None:
        running = [live(n, light(seconds=50), 20 - n) for n in range(5)]
        decisions = asked(view(running, level=2))
        assert acts(decisions, "freeze") == [4, 3, 2]
        assert all(d.by_word for d in decisions)

    def test_whom_a_person_set_going_is_stopped_last(self) -> None:
        running = [replace(live(n, light(seconds=50), 20 - n), by_person=n == 4) for n in range(5)]
        assert acts(asked(view(running, level=4)), "freeze") == [3]
        assert acts(asked(view(running, level=1)), "freeze") == [3, 2, 1, 4]

    def test_a_raised_level_lets_the_frozen_go_on_at_once_before_new_ones(self) -> None:
        running, frozen = [live(1, kernel(), 100)], stopped([live(n, kernel(), 30) for n in (2, 3, 4)])
        decisions = asked(view(running, [candidate(9, light())], frozen, level=3, last_freeze=99.5))
        assert acts(decisions, "thaw") == [2, 3]
        assert acts(decisions, "admit") == []

    def test_fewer_cores_freeze_nobody(self) -> None:
        running = [live(n, light(seconds=50), 20 - n) for n in range(5)]
        assert asked(view(running, [candidate(9, light())], cores=2)) == ()

    def test_a_person_may_let_more_run_than_there_are_cores(self) -> None:
        assert len(acts(asked(view([], [candidate(n, light()) for n in range(9)], cores=2, level=6)), "admit")) == 6


class TestOneJob:
    def test_what_a_person_froze_is_for_a_person_to_thaw(self) -> None:
        mine = replace(live(1, light(seconds=50), 5), by_person=True)
        assert acts(asked(view([], [], [mine])), "thaw") == []
        assert acts(asked(view([], [candidate(2, light())], [mine])), "admit") == [2]

    def test_the_memory_of_what_a_person_froze_is_not_given_away(self) -> None:
        """32 GiB less the reserve of 2, 20 of them frozen: two jobs of 4 fit, not seven."""
        mine = replace(live(1, light(20, seconds=50), 5), by_person=True)
        waiting = [candidate(n, light(4, seconds=60)) for n in range(2, 10)]
        assert len(acts(asked(view([], waiting, [mine])), "admit")) == 2

    def test_nothing_starts_for_which_it_would_be_shed(self) -> None:
        """Started beside it, a job of 16 GiB would use up the 12 that are left, and only its memory could come back."""
        mine = replace(live(1, light(20, seconds=50), 5), by_person=True)
        seen = view([], [candidate(2, light(16, seconds=60))], [mine])
        assert asked(seen) == ()
        waits = rule(seen, 100.0).waits
        assert waits.on_deck is not None
        assert waits.on_deck.cause == "person"
        assert "frozen by hand, holds" in waits.on_deck.why
        assert acts(asked(replace(seen, frozen=(), available=seen.available + mine.rss)), "admit") == [2]

    def test_one_that_is_to_run_alone_says_whose_memory_it_waits_for(self) -> None:
        mine = replace(live(1, light(20, seconds=50), 5), by_person=True)
        alone = replace(live(2, light(16, seconds=60), rss=0.1), alone=True)
        waits = rule(view([], [candidate(3, light())], [mine, alone]), 100.0).waits
        assert "frozen by hand, holds" in waits.of[2].why
        assert waits.on_deck is not None
        assert waits.on_deck.why == "job2.o runs alone"

    def test_what_does_not_fit_without_it_either_starts_as_if_it_were_not_there(self) -> None:
        mine = replace(live(1, light(2, seconds=50), 5), by_person=True)
        assert acts(asked(view([], [candidate(2, light(40, seconds=60))], [mine])), "admit") == [2]


class TestAlone:
    def test_on_deck_it_goes_before_all_others(self) -> None:
        younger = candidate(9, kernel(peak=2), alone=True)
        others = [candidate(n, light(), passed_over=OVERDUE) for n in range(5)]
        assert acts(asked(view([], [*others, younger])), "admit") == [9]

    def test_nobody_starts_until_what_runs_has_ended(self) -> None:
        first = candidate(1, kernel(peak=2), alone=True)
        decisions = asked(view([live(2, light(), 1)], [first, candidate(3, light())]))
        assert [(d.action, d.jid) for d in decisions] == [("hold", 1)]
        assert "once 1 job has ended" in decisions[0].why
        assert asked(view([live(2, light(), 1)], [replace(first, held=True), candidate(3, light())])) == ()

    def test_frozen_jobs_end_before_it_too_since_they_keep_their_memory(self) -> None:
        first = candidate(1, kernel(peak=20), alone=True)
        decisions = asked(view([], [first], [live(2, kernel(), 30)]))
        assert acts(decisions, "thaw") == [2]
        assert acts(decisions, "admit") == []

    def test_it_starts_beside_a_frozen_one_that_only_a_person_can_move(self) -> None:
        mine = replace(live(2, kernel(), 30), by_person=True)
        assert acts(asked(view([], [candidate(1, kernel(peak=20), alone=True)], [mine])), "admit") == [1]

    def test_nothing_starts_or_goes_on_beside_it(self) -> None:
        solo = replace(live(1, kernel(), 20), alone=True)
        waiting, frozen = [candidate(2, light())], stopped([live(3, light(), 1)])
        assert asked(view([solo], waiting)) == ()
        assert asked(view([solo], waiting, frozen)) == ()
        assert asked(view([solo], waiting, frozen, guarded=False)) == ()

    def test_several_run_one_after_the_other(self) -> None:
        both = [candidate(n, light(), alone=True) for n in (1, 2)]
        assert acts(asked(view([], both)), "admit") == [1]
        assert acts(asked(view([], both, guarded=False)), "admit") == [1]

    def test_asked_of_a_running_job_it_freezes_the_others_youngest_first_the_oldest_too(self) -> None:
        running = [replace(live(n, light(seconds=50), 20 - n), alone=n == 2) for n in range(5)]
        decisions = asked(view(running, [candidate(9, light())]))
        assert acts(decisions, "freeze") == [4, 3, 1, 0]
        assert acts(decisions, "admit") == []
        assert all(d.by_word for d in decisions)

    def test_when_it_has_ended_the_others_go_on_at_once(self) -> None:
        frozen = stopped([live(n, kernel(), 30) for n in (0, 1, 3)])
        assert acts(asked(view([], [candidate(9, light())], frozen, last_freeze=99.9)), "thaw") == [0, 1, 3]

    def test_asked_of_a_frozen_job_it_changes_places_with_what_runs(self) -> None:
        solo = replace(live(2, kernel(), 30), alone=True)
        others = [live(n, kernel(), 40) for n in (1, 3)]
        assert acts(asked(view(others, [], [solo])), "freeze") == [3, 1]
        assert acts(asked(view([], [candidate(9, light())], [solo, *stopped(others)])), "thaw") == [2]

    def test_a_person_who_froze_it_holds_up_nobody_else(self) -> None:
        mine = replace(live(1, light(), 1), alone=True, by_person=True)
        assert acts(asked(view([live(2, light(), 1)], [candidate(3, light())], [mine])), "admit") == [3]

    def test_in_a_soft_pause_it_waits_and_what_was_frozen_goes_on(self) -> None:
        first = candidate(1, light(), alone=True)
        decisions = asked(view([], [first], [live(2, kernel(), 30)], paused="soft"))
        assert [(d.action, d.jid) for d in decisions] == [("thaw", 2)]


class TestUnguarded:
    """A person said in so many words that memory is to be ignored."""

    def test_everything_starts_up_to_the_level(self) -> None:
        waiting = [candidate(n, kernel(peak=100)) for n in range(20)]
        assert acts(asked(view([], waiting, guarded=False)), "admit") == list(range(16))
        assert acts(asked(view([], waiting, level=3, guarded=False)), "admit") == [0, 1, 2]

    @pytest.mark.parametrize("available", [0.0, 0.4])
    def test_there_is_no_brake_and_no_emergency(self, available: float) -> None:
        climbing = [live(n, kernel(peak=9), 48) for n in range(4)]
        frozen = [live(9, kernel(), 30)]
        decisions = asked(view(climbing, [], frozen, available=available, pressure=90.0, guarded=False))
        assert [(d.action, d.jid) for d in decisions] == [("thaw", 9)]

    def test_frozen_jobs_go_on_at_once_before_new_ones(self) -> None:
        frozen = [live(n, kernel(), 30) for n in (3, 4)]
        decisions = asked(view([], [candidate(9, light())], frozen, level=2, last_freeze=99.9, guarded=False))
        assert [(d.action, d.jid) for d in decisions] == [("thaw", 3), ("thaw", 4)]

    def test_level_and_pause_still_count(self) -> None:
        running = [live(n, light(), 1) for n in range(3)]
        assert acts(asked(view(running, level=2, guarded=False)), "freeze") == [2]
        assert asked(view(running, [candidate(9, light())], paused="soft", guarded=False)) == ()


class TestReasons:
    def test_the_freezes_for_a_job_alone_are_reported_and_those_of_a_pause_are_not(self) -> None:
        running = [replace(live(1, light(), 1), alone=True), live(2, light(), 1)]
        (freeze,) = asked(view(running))
        assert (freeze.announced, freeze.why) == (False, f"{running[0].name} runs alone")
        assert all(d.announced for d in asked(view(running, paused="hard")))

    def test_a_frozen_job_that_runs_alone_goes_on_for_that_reason_though_it_does_not_fit(self) -> None:
        solo = replace(live(1, kernel(peak=6), 40), alone=True)
        (thaw,) = asked(view([], [], [solo, *stopped([live(2, kernel(peak=6), 40)])], available=0.6))
        assert (thaw.action, thaw.jid) == ("thaw", 1)
        assert thaw.why.startswith("runs alone; ")
