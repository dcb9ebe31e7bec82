"""Between two looks memory is read again, the sooner the more jobs run: also those born since the last look."""

from __future__ import annotations

import asyncio
import math
import time
from types import SimpleNamespace
from typing import Any

from stoker.engine.loop.engine import Engine
from stoker.engine.loop.wakeup import Bell, LogsPace

TICK = 20.0


def engine_of(governor: Any, pulse: Any) -> Any:
    engine: Any = Engine.__new__(Engine)
    engine._governor, engine._bell, engine._logs_pace = governor, Bell(), LogsPace()
    engine._supervisor = SimpleNamespace(build_is_over=lambda: False)
    engine._asked, engine._ready_at = False, 0.0
    engine._tick, engine._birth_pause, engine._pulse = lambda _o: TICK, lambda _o: 0.01, pulse
    return engine


def test_memory_is_read_soon_for_jobs_that_no_look_has_found_yet() -> None:
    running: list[int] = []
    governor = SimpleNamespace(reading_pause=lambda: 0.05 if running else math.inf, falling=lambda: bool(running))
    observer: Any = SimpleNamespace(live_schedulers=lambda: [1], failures=SimpleNamespace(waits=False))
    engine = engine_of(governor, lambda _observer: running.append(1))
    begun = time.monotonic()
    asyncio.run(engine._sleep(observer))
    assert time.monotonic() - begun < TICK / 2
