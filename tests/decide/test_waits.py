"""Why a job waits, one situation a test: the cause, and the numbers that a person would ask for."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from decide.builds import GIB, OVERDUE, candidate, kernel, light, live, view
from stoker.decide.policy.decide import rule, with_order
from stoker.decide.policy.snapshot import View
from stoker.decide.policy.waits import Wait


def reason(seen: View, jid: int, now: float = 100.0) -> Wait:
    """Why that job waits."""
    waits = with_order(rule(seen, now).waits, seen)
    found = waits.of.get(jid) or (waits.frozen if jid in {j.jid for j in seen.frozen} else waits.on_deck)
    assert found is not None
    return found


def test_where_all_places_are_taken_that_is_the_reason() -> None:
    busy = [live(n, light(), 1) for n in range(4)]
    assert reason(view(busy, [candidate(9, light())], cores=4), 9).why == "all 4 places are taken"
    lent = replace(view(busy, [candidate(9, light())], cores=4), tokens=2)
    assert reason(lent, 9).why == "all 4 places are taken, 2 more used by tools inside jobs"
    assert reason(view(busy[:1], [candidate(9, light())], level=1), 9).why == "the only place is taken"


def test_it_says_that_other_programs_keep_the_cores_busy_unless_a_person_set_the_level() -> None:
    """The build uses 14 % of the machine then, and a person asks what has taken the places."""
    busy = [live(n, light(), 1) for n in range(4)]
    crowded = replace(view(busy, [candidate(9, light())], cores=4), cores_taken=True)
    assert reason(crowded, 9).why == "all 4 places are taken; other programs keep the cores busy"
    assert reason(crowded, 9).is_news_after(reason(replace(crowded, cores_taken=False), 9))
    assert reason(replace(crowded, level=4), 9).why == "all 4 places are taken"


def test_a_place_that_is_only_for_plenty_is_not_said_to_be_taken() -> None:
    """The screen says "2 running of 3" then: "all 2 places are taken" would contradict it. What is true whatever memory
    is free comes first, as rows are short. Nor does it say that the cores are taken: two compilers that are just
    starting use next to nothing."""
    busy = [live(n, kernel(peak=14), 100) for n in range(2)]
    scarce = replace(view(busy, [candidate(9, light(14))], cores=3), spare=1)
    assert reason(scarce, 9).why == "each core has its job; the extra place is filled only if all peaks fit at once"


def test_a_job_that_no_free_place_would_start_waits_for_memory_too() -> None:
    """With 4 GiB free, jobs of 7 were said to wait for a core: not one could have started on it."""
    busy = [live(n, light(13, seconds=100), 50) for n in range(2)]
    waiting = [candidate(7, light(7)), candidate(8, light(2)), candidate(9, light(7))]
    scarce = replace(view(busy, waiting, cores=3), spare=1)
    wait = reason(scarce, 7)
    assert wait.cause == "memory"
    assert wait.why == "4.0 GiB unpromised above the reserve, less than its peak; each core has its job"
    assert reason(scarce, 9) == wait, "one reason of all, however many there are"
    assert reason(scarce, 8).cause == "place", "it would fit"
    assert not reason(scarce, 7).is_news_after(wait)


def test_a_job_that_a_person_froze_makes_no_memory_short() -> None:
    """With plenty free the extra place is filled, and the next waits for a place."""
    busy = [live(n, light(1), 1) for n in range(2)]
    mine = replace(live(8, light(1), 1), by_person=True)
    seen = replace(view(busy, [candidate(9, light(1)), candidate(10, light(1))], [mine], cores=3), spare=1)
    assert [(d.action, d.jid) for d in rule(seen, 100.0).decisions] == [("admit", 9)]
    assert reason(seen, 10).why == "all 3 places are taken"


def test_one_that_does_not_fit_says_what_it_needs_and_what_is_free() -> None:
    running = [live(n, kernel(peak=6), 50) for n in range(4)]
    for held in (False, True):
        wait = reason(view(running, [candidate(10, light(9), held=held)]), 10)
        assert wait.cause == "memory"
        assert wait.why.startswith("needs up to 9.0 GiB within 0:10, ")


def test_that_nothing_is_spare_any_more_is_news_though_what_has_started_holds_nothing_yet() -> None:
    """A row said "742 MiB, 396 MiB unpromised" for seconds after another job had been given those."""
    running = [live(n, kernel(peak=6), 50) for n in range(3)]
    waiting = [candidate(10, light(16, seconds=90), held=True)]
    before = reason(view(running, waiting), 10)
    after = reason(view([*running, live(4, light(9, seconds=90), rss=0.0)], waiting), 10)
    assert before.why != after.why
    assert after.is_news_after(before)


def test_a_small_one_with_a_free_place_says_for_whom_the_room_is_kept() -> None:
    """4 GiB are free, and it needs 3: without a reason nobody could know what it waits for."""
    big = candidate(2, light(28, seconds=50), passed_over=OVERDUE)
    waiting = [big, candidate(3, light(3, seconds=400))]
    seen = view([live(1, light(26, seconds=100), 80)], waiting)
    assert rule(seen, 100.0).decisions[0].jid == 2
    wait = reason(seen, 3)
    assert (wait.cause, wait.key) == ("room", "job2.o")
    assert wait.why == "memory is kept for job2.o, and for what runs; 4.0 GiB left above the reserve"


def test_a_job_is_frozen_and_stays_frozen_for_a_need_in_the_same_words_and_figures() -> None:
    """It said "would grow by 703 MiB" when it was frozen, and then "needs up to 502 MiB"."""
    jobs = [live(1, kernel(peak=9), 30), live(2, kernel(peak=9), 50)]
    (freeze,) = rule(view(jobs, available=5.7), 100.0).decisions
    need = re.search(r"this one holds [\d.]+ GiB, (needs up to [\d.]+ GiB)$", freeze.why)
    assert need is not None, freeze.why
    assert need[1] in reason(view(jobs[:1], [], jobs[1:], available=5.7), freeze.jid).why


def test_in_an_emergency_the_emergency_is_the_reason() -> None:
    wait = reason(view([live(1, light(seconds=50), 5)], [candidate(2, light())], available=0.4), 2)
    assert wait.cause == "memory"
    assert "below the floor of 512 MiB; nothing starts" in wait.why


def test_a_frozen_job_says_what_it_needs_or_that_its_stop_is_too_fresh() -> None:
    full = view([live(1, light(25, seconds=300), 10)], [], [live(2, kernel(peak=8), 30)])
    assert reason(full, 2).cause == "memory"
    assert "above the reserve" in reason(full, 2).why
    fresh = view([live(1, light(), 1)], [], [live(2, kernel(peak=4), 30)], last_freeze=99.0)
    assert reason(fresh, 2).cause == "rest"


def test_whoever_waits_by_a_persons_word_says_so() -> None:
    one, other = live(1, light(), 1), replace(live(2, light(), 1), by_person=True)
    seen = view([one], [candidate(3, light())], [other])
    assert reason(seen, 2).cause == "person"
    assert reason(replace(seen, paused="soft"), 3).cause == "paused"
    assert reason(replace(seen, running=(), paused="hard"), 2).cause == "paused"
    alone = replace(seen, running=(replace(one, alone=True),))
    assert (reason(alone, 3).cause, reason(alone, 3).why) == ("alone", "job1.o runs alone")
    next_one = replace(seen, candidates=(candidate(3, light()), candidate(4, light(), alone=True)))
    assert reason(next_one, 3).why == "job4.o runs alone once 1 job has ended"


@pytest.mark.parametrize(
    ("before", "after", "news"),
    [
        (None, Wait("place", "", "4"), True),
        (Wait("place", "", "4"), Wait("place", "", "4"), False),
        (Wait("place", "", "4"), Wait("place", "", "5"), True),
        (Wait("memory", "", size=GIB), Wait("room", "", size=GIB), True),
        (Wait("memory", "", size=GIB), Wait("memory", "", size=1.1 * GIB), False),
        (Wait("memory", "", size=GIB), Wait("memory", "", size=1.5 * GIB), True),
        (Wait("memory", "", size=0.0, need=GIB), Wait("memory", "", size=0.01 * GIB, need=GIB), False),
        (Wait("memory", "", size=GIB, need=GIB), Wait("memory", "", size=GIB, need=1.5 * GIB), True),
    ],
)
def test_only_another_reason_is_news(before: Wait | None, after: Wait, *, news: bool) -> None:
    assert after.is_news_after(before) == news


def test_a_job_that_larger_ones_pass_says_so_though_all_places_are_taken() -> None:
    """For minutes 44 light jobs, the first on deck, said nothing but that all places were taken."""
    busy = [live(n, light(2), 1) for n in range(2)]
    heavy = [candidate(n, light(20, seconds=60)) for n in range(20, 26)]
    small = [candidate(n, light(0.1, seconds=1)) for n in range(10, 14)]
    seen = view(busy, [*small, *heavy], cores=2)
    wait = reason(seen, 10)
    assert (wait.cause, wait.why) == ("place", "others go first (larger or longer ones); all 2 places are taken")
    assert reason(seen, 20).why == "all 2 places are taken"
    assert reason(view(busy, small, cores=2), 13).why == "all 2 places are taken"
