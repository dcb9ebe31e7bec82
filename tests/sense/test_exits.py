"""The end of a process is told at once, and once."""

from __future__ import annotations

import asyncio
import subprocess

from stoker.contract.process import Key, start_ticks
from stoker.sense.proc.exits import ExitWatch


def _sleeper() -> subprocess.Popen[bytes]:
    return subprocess.Popen(["sleep", "60"])


async def test_an_end_is_told_once_and_also_when_it_was_before_the_watch() -> None:
    ended: asyncio.Queue[Key] = asyncio.Queue()
    watch = ExitWatch(ended.put_nowait)
    child = _sleeper()
    key = (child.pid, start_ticks(child.pid) or 0)
    watch.watch(key)
    watch.watch(key)
    assert ended.empty()
    child.kill()
    assert await ended.get() == key
    child.wait()
    watch.watch(key)
    assert await ended.get() == key
    assert ended.empty()
    watch.close()


async def test_who_is_forgotten_is_not_told() -> None:
    ended: asyncio.Queue[Key] = asyncio.Queue()
    watch = ExitWatch(ended.put_nowait)
    children = [_sleeper() for _ in range(2)]
    keys = [(c.pid, start_ticks(c.pid) or 0) for c in children]
    for key in keys:
        watch.watch(key)
    watch.forget(keys[0])
    for child in children:
        child.kill()
        child.wait()
    assert await ended.get() == keys[1]
    await asyncio.sleep(0)
    assert ended.empty()
    watch.close()
