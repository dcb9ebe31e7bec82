"""What the meter says of the memory that is promised, and when it looks anew."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from stoker.decide.memory.curves import flat
from stoker.decide.policy.snapshot import LiveJob, View
from stoker.engine.govern.promised import Promised

MIB, GIB = 2**20, 2**30


def view(*rss: int) -> View:
    jobs = tuple(LiveJob(n, f"{n}.o", float(n), 1.0, held, flat(held, 60.0), held) for n, held in enumerate(rss))
    return View(8 * GIB, 8 * GIB, reserve=0.0, floor=0.0, cpu_slots=4.0, running=jobs)


def look(*rss: int) -> Callable[[], View]:
    return partial(view, *rss)


def nobody_looks() -> View:
    raise AssertionError("a look is work")


def test_what_jobs_hold_is_promised_and_nothing_where_none_runs() -> None:
    promised = Promised()
    assert promised.most(look(), 1, 0.0, tight=False) == 0
    assert promised.most(look(GIB, GIB), 2, 2.0, tight=False) == 2 * GIB


def test_an_answer_is_kept_only_while_it_can_hardly_be_another() -> None:
    promised = Promised()
    first = promised.most(look(GIB), 1, 0.0, tight=False)
    assert promised.most(nobody_looks, 1, 4.0, tight=False) == first
    assert promised.most(nobody_looks, 2, 1.0, tight=False) == first, "jobs may be short"
    assert promised.most(look(2 * GIB), 1, 1.0, tight=True) == 2 * GIB, "memory is in play"
    assert promised.most(look(3 * GIB), 2, 3.0, tight=False) == 3 * GIB, "another job runs"
    assert promised.most(look(4 * GIB), 2, 9.0, tight=False) == 4 * GIB, "some time has gone by"
