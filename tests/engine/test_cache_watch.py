"""A shared cache that dies is reported once, with its remedy, and so is one that comes back."""

from __future__ import annotations

import time
from collections.abc import Iterator

import pytest

from stoker.engine.learn import cache_watch
from stoker.engine.learn.cache_watch import CacheWatch
from stoker.model import events as ev
from stoker.model.cache_use import Reached, SharedCache
from stoker.sense.caches.endpoints import CachePlace
from stoker.sense.caches.probe import Answered

REDIS = CachePlace("sccache", "redis", "build1", 6379, "SCCACHE_REDIS_ENDPOINT")
FINE, SLOW, DEAD = Answered(0.001), Answered(0.9), Answered(2.0, "no answer in 2 s")


class Played:
    """Answers in their order; the last one for ever."""

    def __init__(self, *answers: Answered) -> None:
        self.left = list(answers)
        self.asked = 0

    def __call__(self, endpoint: CachePlace, seconds: float) -> Answered:
        self.asked += 1
        return self.left.pop(0) if len(self.left) > 1 else self.left[0]


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_watch, "ASK_EVERY", 0.001)
    monkeypatch.setattr(cache_watch, "ASK_AGAIN", 0.001)


def events_of(played: Played, *, known: Reached = "answers") -> Iterator[list[ev.Event]]:
    watch = CacheWatch(played)
    watch.start([REDIS], [SharedCache("sccache", REDIS.name, known, 0.0)])
    found: list[ev.Event] = []
    wanted = played.asked + len(played.left) + 3
    while played.asked < wanted:
        time.sleep(0.001)
        found += watch.look()
    watch.close()
    found += watch.look()
    yield found


def reports(*answers: Answered, known: Reached = "answers") -> list[str]:
    (found,) = events_of(Played(*answers), known=known)
    return [event.found.state for event in found if isinstance(event, ev.CacheReached)]


def test_one_lost_question_is_no_death() -> None:
    assert reports(FINE, DEAD, FINE) == []
    assert reports(FINE, DEAD, DEAD, FINE) == ["silent", "answers"]


def test_it_is_said_once_however_long_it_lasts() -> None:
    assert reports(FINE, *[DEAD] * 20) == ["silent"]
    assert reports(SLOW) == ["slow"]
    assert reports(FINE) == []


def test_what_an_engine_before_has_said_is_not_said_again() -> None:
    assert reports(DEAD, known="silent") == []
    assert reports(FINE, known="silent") == ["answers"]


def test_the_sentence_names_cache_cost_and_remedy() -> None:
    (found,) = events_of(Played(DEAD))
    (text,) = [event.text for event in found if isinstance(event, ev.Noticed)]
    assert "redis://build1:6379 does not answer (no answer in 2 s)" in text
    assert "minute" in text
    assert "SCCACHE_REDIS_ENDPOINT" in text


def test_a_question_that_never_ends_is_an_answer_too(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(cache_watch, "HANGS", 0.01)

    def never(_endpoint: CachePlace, _seconds: float) -> Answered:
        time.sleep(0.2)
        return DEAD

    watch = CacheWatch(never)
    watch.start([REDIS])
    time.sleep(0.05)
    assert any(isinstance(event, ev.CacheReached) for event in watch.look())
    watch.close()


def test_without_a_shared_cache_nobody_asks() -> None:
    watch = CacheWatch(Played(FINE))
    watch.start([])
    assert watch.look() == []
