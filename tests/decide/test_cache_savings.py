from __future__ import annotations

from stoker.decide.time_left.cache_savings import Saved


def test_nothing_is_said_where_nothing_is_known() -> None:
    assert Saved().by(10) is None


def test_hits_are_told_from_compilations_by_their_time() -> None:
    saved = Saved()
    for seconds, before in ((0.1, 10.0), (9.0, 10.0), (0.2, 4.0), (30.0, 10.0)):
        saved.ended(seconds, before)
    assert saved.by(5) == (9.9 + 3.8, 2)


def test_no_more_jobs_are_counted_than_there_were_hits_and_the_surest_first() -> None:
    saved = Saved()
    for seconds, before in ((4.0, 10.0), (0.1, 10.0), (2.0, 10.0)):
        saved.ended(seconds, before)
    assert saved.by(1) == (9.9, 1)
    assert saved.by(2) == (9.9 + 8.0, 2)
    assert saved.by(0) is None


def test_what_took_longer_than_before_saved_nothing() -> None:
    saved = Saved()
    saved.ended(5.0, 0.0)
    saved.ended(-1.0, 10.0)
    saved.ended(12.0, 10.0)
    assert saved.by(3) is None
