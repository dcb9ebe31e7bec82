"""Between two looks memory is read again, the sooner the more jobs run: also those born since the last look."""

from __future__ import annotations

import asyncio
import math
import time
from functools import partial
from types import SimpleNamespace
from typing import Any

from stoker.engine.loop.engine import Engine
from stoker.engine.loop.wakeup import LogsPace, Pace, Wakeup
from stoker.model import events as ev

TICK = 20.0


def engine_of(memory: Any, pulse: Any) -> Any:
    engine: Any = Engine.__new__(Engine)
    schedulers = SimpleNamespace(books=lambda: [1])
    engine._parts = SimpleNamespace(memory=memory, schedulers=schedulers, failures=SimpleNamespace(waits=False))
    engine._parts.senses = SimpleNamespace(listen=lambda _now: None)
    engine._wakeup, engine._logs_pace = Wakeup(), LogsPace()
    engine._supervisor = SimpleNamespace(build_is_over=lambda: False)
    engine._asked, engine._ready_at, engine._listen_until = False, 0.0, 0.0
    engine._tick_seconds, engine._birth_pause, engine._pulse = lambda: TICK, lambda: 0.01, pulse
    return engine


def test_memory_is_read_soon_for_jobs_that_no_look_has_found_yet() -> None:
    running: list[int] = []
    memory = SimpleNamespace(reading_pause=lambda: 0.05 if running else math.inf, falling=lambda: bool(running))
    engine = engine_of(memory, lambda: running.append(1))
    begun = time.monotonic()
    asyncio.run(engine._sleep())
    assert time.monotonic() - begun < TICK / 2


def test_while_nothing_can_be_born_only_memory_is_read() -> None:
    """To look for newborns and records as often took a fifth of a quiet engine's time."""
    asked: list[str] = []

    def falling() -> bool:
        asked.append("memory")
        return asked.count("memory") == 3

    engine = engine_of(SimpleNamespace(reading_pause=lambda: 0.01, falling=falling), lambda: asked.append("pulse"))
    engine._birth_pause = lambda: math.inf
    asyncio.run(engine._sleep())
    assert asked == ["memory"] * 3
    asked.clear()

    async def woken() -> None:
        asyncio.get_running_loop().call_soon(engine._wakeup.wake)
        await engine._sleep()

    asyncio.run(woken())
    assert asked.count("pulse") == 1, "what has ended is handled at once"


def test_while_calm_newborns_take_the_free_places_before_one_decision_about_all() -> None:
    asked: list[str] = []

    def note(name: str, answer: list[Any]) -> list[Any]:
        asked.append(name)
        return answer

    engine = engine_of(SimpleNamespace(), None)
    del engine._pulse
    engine._calm, engine._pace = True, Pace()
    engine._write = lambda _events, _now: asked.append("write")
    engine._reload = list
    engine._parts.governor = SimpleNamespace(step=partial(note, "step", []))
    engine._parts.jobs = SimpleNamespace(owes_exits=False)
    born: list[Any] = [ev.JobStarted(1, 1, 1, "a.o", "cxx", 0.0, "running")]
    engine._loop = SimpleNamespace(
        take_exits=lambda: 1, read_output=list, follow_remote=lambda _now: [], read_logs=lambda _now: [],
        births=lambda _now: note("births", born), is_calm=lambda: True,
    )  # fmt: skip
    engine._pulse()
    assert asked == ["births", "write"], "the decision about newborns is the answer"
    asked.clear()
    born.clear()
    engine._pulse()
    assert asked[:2] == ["births", "step"]
    engine._calm = False
    asked.clear()
    engine._pulse()
    assert asked[:2] == ["step", "births"]
