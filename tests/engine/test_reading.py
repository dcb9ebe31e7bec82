"""Between two looks memory is read again, the sooner the more jobs run: also those born since the last look."""

from __future__ import annotations

import asyncio
import math
import time
from types import SimpleNamespace
from typing import Any

from stoker.engine.loop.engine import Engine
from stoker.engine.loop.wakeup import LogsPace, Wakeup

TICK = 20.0


def engine_of(memory: Any, pulse: Any) -> Any:
    engine: Any = Engine.__new__(Engine)
    schedulers = SimpleNamespace(books=lambda: [1])
    engine._parts = SimpleNamespace(memory=memory, schedulers=schedulers, failures=SimpleNamespace(waits=False))
    engine._parts.senses = SimpleNamespace(listen=lambda _now: None)
    engine._wakeup, engine._logs_pace = Wakeup(), LogsPace()
    engine._supervisor = SimpleNamespace(build_is_over=lambda: False)
    engine._asked, engine._ready_at = False, 0.0
    engine._tick_seconds, engine._birth_pause, engine._pulse = lambda: TICK, lambda: 0.01, pulse
    return engine


def test_memory_is_read_soon_for_jobs_that_no_look_has_found_yet() -> None:
    running: list[int] = []
    memory = SimpleNamespace(reading_pause=lambda: 0.05 if running else math.inf, falling=lambda: bool(running))
    engine = engine_of(memory, lambda: running.append(1))
    begun = time.monotonic()
    asyncio.run(engine._sleep())
    assert time.monotonic() - begun < TICK / 2
