"""Jobs of which nothing is known start one by one where one of them may take all there is, and only there."""

from __future__ import annotations

from dataclasses import replace

import pytest

from decide.builds import GIB, acts, asked, candidate, curve, light, live, view
from stoker.config.priors import load_priors, shipped_priors
from stoker.decide.memory.alert import is_sudden, reading_pause
from stoker.decide.policy.decide import rule
from stoker.decide.policy.snapshot import View
from stoker.decide.policy.unknown_jobs import ENOUGH_ALIKE, WATCHED_SECONDS, is_unknown

GUESS = curve((0, 0.05), (5, 0.1), spread=1.0, time_spread=1.0)


def strangers(count: int, *, available: float = 1.4, running: int = 0, started: float = 100.0) -> View:
    """A small group with so many of them on deck, and some that began at `started`; now is 100."""
    jobs = [live(n, GUESS, started=started, rss=0.02) for n in range(running)]
    waiting = [candidate(n, GUESS) for n in range(10, 10 + count)]
    made = view(jobs, waiting, ram=1.5, level=8, available=available)
    return replace(made, reserve=0.15 * GIB, floor=0.06 * GIB)


def test_of_many_only_one_starts() -> None:
    assert acts(asked(strangers(12)), "admit") == [10]


def test_the_others_wait_until_it_has_been_watched_and_know_why() -> None:
    found = rule(strangers(3, running=1), 100.0)
    assert acts(found.decisions, "admit") == []
    waits = [found.waits.of[jid] for jid in (10, 11, 12)]
    assert {wait.cause for wait in waits} == {"unknown"}
    assert waits[0].why == "its size is a guess: ~102 MiB; after job0.o, as such jobs start one by one"
    watched = strangers(3, running=1, started=100.0 - WATCHED_SECONDS)
    assert acts(asked(watched), "admit") == [10]


def test_of_a_kind_of_which_some_have_ended_none_waits_for_another() -> None:
    """Small and large sources in one folder differ by factors however many of them were measured."""
    seen = strangers(3, running=1)
    alike = [replace(c, curve=replace(c.curve, alike=ENOUGH_ALIKE)) for c in seen.candidates]
    assert acts(asked(replace(seen, candidates=tuple(alike))), "admit") == [10, 11, 12]


def test_jobs_of_a_known_class_start_beside_it() -> None:
    seen = strangers(2, running=1)
    known = candidate(20, light(0.1))
    assert acts(asked(replace(seen, candidates=(*seen.candidates, known))), "admit") == [20]


def test_where_memory_is_plenty_nobody_waits_for_anybody() -> None:
    assert acts(asked(view([], [candidate(n, GUESS) for n in range(16)], ram=32.0)), "admit") == list(range(16))


@pytest.mark.parametrize("tool", ["cxx", "nvcc"])
def test_a_compiler_is_no_stranger_before_anything_was_measured(tool: str) -> None:
    priors, _ = load_priors([shipped_priors()])
    prior = priors.of("some/unit.o", tool)
    assert not is_unknown(prior.curve.widened(prior.spread, prior.time_spread))


def test_what_was_killed_before_starts_first() -> None:
    waiting = [candidate(1, light(0.2)), replace(candidate(2, light(20)), first=True), candidate(3, light(0.2))]
    assert acts(asked(view([live(9, light(16), 5)], waiting)), "admit") == [1, 3], "there is no room for it yet"
    assert acts(asked(view([], waiting)), "admit")[0] == 2


def test_the_faster_memory_may_be_gone_the_sooner_it_is_read_again() -> None:
    assert reading_pause(64 * GIB, 2) > 1.0
    assert reading_pause(1 * GIB, 2) < 0.05
    assert is_sudden(1.0 * GIB, 0.8 * GIB)
    assert not is_sudden(1.0 * GIB, 0.95 * GIB)
