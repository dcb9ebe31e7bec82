"""Each screen as text, at three sizes."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import cache

import pytest

from stoker.model import events as ev
from stoker.model.diagnosis import Diagnosis
from stoker.model.state import BuildState

from . import builds
from .apps import settle, shown
from .builds import MACHINE, FakeSource, Story
from .pictures import check_golden, page_of, text_of

SIZES = ((80, 24), (120, 40), (60, 20))
NO_GPU = replace(MACHINE, gpus=(), gpu_note="no NVIDIA driver", memory_limit_source="machine", swap_used=3 * builds.GIB)

UNKNOWN = (ev.Diagnosed(Diagnosis()), ev.BuildEnded("failed", 3, "exit status 3"))

UNHEARD = (
    ev.JobFinished(
        None, 1, "/tmp/pip-install-8dk2nv_1/flash-attn_0c1f/build/flash_bwd_hdim256.o", "nvcc", 90, "failed"
    ),
)

SCREENS: dict[str, tuple[Callable[[], Story], tuple[str, ...]]] = {
    "dashboard": (lambda: builds.running(30), ()),
    "dashboard-no-gpu": (lambda: builds.running(5, NO_GPU), ("down", "down")),
    "configuring": (builds.configuring, ()),
    "output": (lambda: builds.running(12), ("o",)),
    "dropped-output": (builds.dropped, ("o",)),
    "errors": (lambda: builds.running(12), ("o", "E")),
    "timeline": (lambda: builds.running(12), ("t",)),
    "failures": (builds.failed, ("f", "down")),
    "failures-killed": (builds.killed, ("f",)),
    "failures-killed-job": (builds.killed, ("f", "down", "down")),
    "failures-unfetched": (builds.unfetched, ("f",)),
    "failures-unknown": (lambda: builds.started().add(9, *UNKNOWN), ("f",)),
    "failures-unheard": (lambda: builds.running(3).add(3724, *UNHEARD), ("f",)),
    "go-on": (builds.unfetched, ("f", "r")),
    "decisions": (lambda: builds.running(12), ("d",)),
    "end-failed": (builds.failed, ()),
    "end-killed": (builds.killed, ()),
    "end-done": (builds.done, ()),
    "job": (lambda: builds.running(12), ("down", "down", "enter")),
    "governed": (builds.governed, ()),
    "governed-few": (lambda: builds.governed(5, 30), ("down", "down", "down")),
    "governed-paused": (lambda: builds.governed(level=ev.LevelSet("manual", 12, "soft")), ()),
    "governed-frozen": (lambda: builds.governed(level=ev.LevelSet("manual", 12, "hard", guarded=False)), ("down",)),
    "governed-asked": (builds.governed, ("plus", "plus", "p", "down", "F")),
    "governed-timeline": (builds.governed, ("t",)),
    "governed-decisions": (builds.governed, ("d",)),
    "governed-job": (lambda: builds.governed(3, 30), ("end", "enter")),
    "stopped-some": (builds.stopped_some, ()),
    "stopped-some-list": (builds.stopped_some, ("f", "down")),
    "stopped-some-done": (builds.stopped_some_and_done, ()),
    "alone": (builds.alone, ("down", "down")),
    "cached": (builds.cached, ()),
    "cached-end": (builds.done_cached, ()),
    "ramdisk": (lambda: builds.governed(ramdisk=builds.RAMDISK), ()),
    "remote": (builds.remote, ()),
    "remote-hosts": (builds.remote, ("m",)),
    "remote-job": (builds.remote, ("down", "down", "enter")),
    "kill": (builds.governed, ("down", "X")),
    "level": (builds.governed, ("1", "2")),
    "stop": (lambda: builds.running(12), ("s",)),
    "help": (lambda: builds.running(12), ("question_mark",)),
}


@cache
def state_of(name: str) -> BuildState:
    return SCREENS[name][0]().state


def source_of(name: str, lines: int = 3000) -> FakeSource:
    """As a viewer has it: what is over does not change any more."""
    state = state_of(name)
    log = builds.dropped_log(lines) if name == "dropped-output" else builds.output_log(lines)
    return FakeSource(state, "ended" if state.diagnosis is not None else "live", log=log)


@pytest.mark.parametrize("size", SIZES, ids=lambda s: f"{s[0]}x{s[1]}")
@pytest.mark.parametrize("name", SCREENS)
async def test_screen(name: str, size: tuple[int, int]) -> None:
    _, keys = SCREENS[name]
    async with shown(source_of(name), *keys, size=size) as (app, _pilot):
        check_golden(f"{name}-{size[0]}x{size[1]}", page_of(app))


@pytest.mark.parametrize("name", SCREENS)
async def test_wide_screen(name: str) -> None:
    _, keys = SCREENS[name]
    async with shown(source_of(name), *keys, size=(200, 60)) as (app, _pilot):
        text = text_of(app)
        assert max(len(line) for line in text.splitlines()) <= 200
        assert "pytorch" in text or name in ("output", "errors", "dropped-output")


@pytest.mark.parametrize("name", SCREENS)
async def test_ascii_screen(name: str) -> None:
    _, keys = SCREENS[name]
    async with shown(source_of(name), *keys, ascii_only=True) as (app, _pilot):
        assert text_of(app).isascii()
        if name in ("dashboard", "timeline", "governed", "governed-asked"):
            check_golden(f"{name}-ascii", page_of(app))


@pytest.mark.parametrize("name", SCREENS)
async def test_a_tiny_screen_does_not_crash(name: str) -> None:
    _, keys = SCREENS[name]
    async with shown(source_of(name, 200), *keys, size=(1, 1)) as (app, pilot):
        for size in ((10, 3), (20, 5), (40, 10), (1, 1)):
            await pilot.resize_terminal(*size)
            await settle(pilot)
            assert app.is_running
