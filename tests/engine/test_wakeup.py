from __future__ import annotations

import asyncio
import math

import pytest

from stoker.engine.loop.wakeup import LOGS_SECONDS, QUICK, RECORD_SECONDS, SLOW, LogsPace, Pace, Wakeup

LONG = 60.0


def test_newborns_are_looked_for_less_and_less_often_until_one_may_come() -> None:
    pace = Pace()
    pauses = [pace.next(unready=False, due=True) for _ in range(20)]
    assert pauses[0] == QUICK
    assert pauses == sorted(pauses)
    assert pauses[-1] == SLOW
    pace.hurry()
    assert pace.next(unready=False, due=True) == QUICK


def test_nobody_is_looked_for_while_nobody_can_be_born() -> None:
    assert Pace().next(unready=False, due=False) == math.inf
    assert Pace().next(unready=True, due=False) == QUICK


def test_logs_are_read_soon_after_an_end_and_not_at_all_without_one() -> None:
    logs = LogsPace()
    assert logs.is_time(100.0)
    assert logs.next(100.0) == math.inf
    logs.hurry(200.0)
    assert logs.next(200.0) == pytest.approx(RECORD_SECONDS)
    assert not logs.is_time(200.0)
    assert logs.is_time(200.0 + RECORD_SECONDS)
    assert logs.next(201.0) == math.inf


def test_many_ends_do_not_put_off_the_look_and_it_comes_a_few_times_a_second() -> None:
    logs = LogsPace()
    looks = 0
    for hundredth in range(1000):
        clock = 100.0 + hundredth / 100
        logs.hurry(clock)
        looks += logs.is_time(clock)
    assert 10 / LOGS_SECONDS * 0.9 <= looks <= 10 / LOGS_SECONDS * 1.1


def test_logs_are_read_at_once_when_ninja_goes_on_but_not_more_often() -> None:
    logs = LogsPace()
    assert logs.is_time(100.0)
    logs.hurry(200.0)
    logs.recorded(200.0)
    assert logs.is_time(200.0)
    logs.recorded(200.1)
    assert logs.next(200.1) == math.inf, "nothing has ended"
    logs.hurry(200.1)
    logs.recorded(200.1)
    assert logs.next(200.1) == pytest.approx(LOGS_SECONDS - 0.1)


def test_what_can_wait_a_moment_wakes_once_and_what_cannot_wakes_at_once() -> None:
    async def waits() -> None:
        wakeup = Wakeup()
        for _ in range(3):
            wakeup.wake_within(0.01)
        await asyncio.wait_for(wakeup.wait(LONG), LONG / 2)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wakeup.wait(LONG), 0.05)
        wakeup.wake_within(LONG)
        wakeup.wake_within(0.0)
        await asyncio.wait_for(wakeup.wait(LONG), LONG / 2)
        with pytest.raises(TimeoutError):
            await asyncio.wait_for(wakeup.wait(LONG), 0.05)

    asyncio.run(waits())
