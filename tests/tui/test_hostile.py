"""Text from outside is shown, and does nothing."""

from __future__ import annotations

import contextlib
import os
import pty
import re
import select
import sys
import time
from dataclasses import replace
from pathlib import Path

import pyte
import pytest

from stoker.model import events as ev
from stoker.model.diagnosis import MAX_CAUSES, Action, Cause, Diagnosis, bounded
from stoker.model.samples import JobSample
from stoker.model.state import BuildState
from stoker.model.tool import Tool

from . import builds
from .apps import shown
from .builds import HOSTILE, START, FakeSource
from .pictures import text_of

SCREENS: tuple[tuple[str, ...], ...] = (
    (),
    ("down", "enter"),
    ("o",),
    ("o", "E"),
    ("t",),
    ("f",),
    ("d",),
    ("s",),
    ("colon",),
)


def hostile_state() -> BuildState:
    story = builds.running(0)
    for i, text in enumerate(HOSTILE):
        tool: Tool = "cxx"
        story.add(3700, ev.JobStarted(100 + i, 1, 5000 + i, text, tool, START + 3600 + i))
        story.add(3701, ev.Decided(text, text, text), ev.Noticed("error", text))
        story.add(3702, ev.FailureFound(text, text, 1, (text, text), 0, 10))
    phases = tuple(JobSample(100 + i, 10**9, 50.0, text) for i, text in enumerate(HOSTILE))
    machine = replace(builds.MACHINE, memory_limit_source=HOSTILE[0], gpus=(), gpu_note=HOSTILE[1])
    story.add(3703, replace(builds.sampled(0, machine, activity=HOSTILE[2]), jobs=phases))
    state = story.state
    return replace(state, name=HOSTILE[0], command=HOSTILE, log_path=HOSTILE[1], reason=HOSTILE[0])


def hostile_log() -> bytes:
    lines = [text.encode("utf-8", "surrogateescape") for text in HOSTILE]
    return b"\r\n".join([*lines, b"\xff\xfe\x00 error: [x]", b"\x1b[31mred [b]\x1b[0m", b"\x1b]0;title\x07after"])


def assert_harmless(text: str) -> None:
    bad = [c for c in text if c != "\n" and (ord(c) < 32 or 0x7F <= ord(c) < 0xA0 or c in "\u202e\u202c")]
    assert not bad


@pytest.mark.parametrize("keys", SCREENS, ids=" ".join)
@pytest.mark.parametrize("size", [(80, 24), (200, 60)])
async def test_every_screen_shows_hostile_text_harmlessly(keys: tuple[str, ...], size: tuple[int, int]) -> None:
    source = FakeSource(hostile_state(), log=hostile_log())
    async with shown(source, *keys, size=size) as (app, pilot):
        app.tick()
        await pilot.pause()
        assert app.is_running
        assert_harmless(text_of(app))
        if not keys:
            assert "error [/usr/include/x.h]" in text_of(app)
            assert "[@click=app.quit]x[/]" in text_of(app)


async def test_the_end_of_a_hostile_build() -> None:
    state = replace(hostile_state(), outcome="failed", phase="failed", exit_code=1, ended=START + 4000)
    async with shown(FakeSource(state, "ended", log=hostile_log())) as (app, _pilot):
        assert_harmless(text_of(app))
        assert "error [/usr/include/x.h]" in text_of(app)


async def test_a_hostile_link_note_and_replay_note() -> None:
    source = FakeSource(hostile_state(), "lost", note=HOSTILE[2] + HOSTILE[0])
    async with shown(source) as (app, pilot):
        assert "error [/usr/include/x.h]" in text_of(app)
        source.put(source.last.state, "replay", HOSTILE[3] + HOSTILE[1])
        await pilot.pause()
        app.tick()
        await pilot.pause()
        assert_harmless(text_of(app))


CHILD = """
import sys
sys.path.insert(0, {root!r})
import time
from tests.tui.apps import THEMES
from tests.tui.builds import FakeSource
from tests.tui.test_hostile import hostile_log, hostile_state
from stoker.show.tui.app import run_tui
print("left", run_tui(FakeSource(hostile_state(), log=hostile_log()), themes=THEMES, theme_name="dark"))
"""

ALLOWED = re.compile(
    r"\x1b\[[0-9;]*[mHC]|\x1b\[[<>?][0-9;]*\$?[a-z]|\x1b\[6n|\x1b\]22;[a-z]*\x07|\x1b\[\?[0-9]+[hl]|\r\n"
)
"""All that the screen itself ever sends: colours, moves, modes, questions, and the pointer's shape."""


def test_nothing_hostile_reaches_a_real_terminal(tmp_path: Path) -> None:
    script = tmp_path / "child.py"
    script.write_text(CHILD.format(root=str(Path(__file__).parents[2])))
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(TERM="xterm-256color", COLORTERM="truecolor", COLUMNS="80", LINES="24")
        os.execv(sys.executable, [sys.executable, str(script)])
    terminal = Terminal(master)
    terminal.read_until("decisions")
    for key, sign in (
        ("o", "follows the build"),
        ("f", "its output"),
        ("d", "notices"),
        ("t", "budget"),
        ("t", "jobs"),
    ):
        terminal.send(key, sign)
    terminal.send("q", "left None")
    terminal.read_to_end()
    assert os.waitpid(pid, 0)[1] == 0
    os.close(master)
    text = ALLOWED.sub("", terminal.data)
    assert_harmless(text.replace("\r", ""))
    assert "\x1b]52" not in terminal.data
    assert "decisions" not in terminal.data.rpartition("\x1b[?1049l")[2], "drawn over what was there before"


class Terminal:
    """A terminal that answers where its cursor is."""

    def __init__(self, master: int) -> None:
        self.master = master
        self.data = ""
        self.screen = pyte.Screen(80, 24)
        self.stream = pyte.Stream(self.screen)

    def send(self, key: str, sign: str) -> None:
        os.write(self.master, key.encode())
        self.read_until(sign)

    def read_to_end(self) -> None:
        with contextlib.suppress(OSError):
            while data := os.read(self.master, 65536):
                self.data += data.decode("utf-8", "replace")

    def read_until(self, sign: str) -> None:
        give_up = time.monotonic() + 30
        while time.monotonic() < give_up:
            if sign in self.text().replace("\n", ""):  # what is printed after the end goes on where the cursor was
                return
            if select.select([self.master], [], [], 0.2)[0]:
                try:
                    data = os.read(self.master, 65536).decode("utf-8", "replace")
                except OSError:
                    break
                self.data += data
                self.stream.feed(re.sub(r"\x1b\[[<>?][0-9;]*\$?[a-zA-Z]|\x1b\][^\x07]*\x07", "", data))
                os.write(self.master, b"\x1b[1;1R" * data.count("\x1b[6n"))
        raise AssertionError(f"{sign!r} never came; the screen is\n{self.text()}")

    def text(self) -> str:
        """Not pyte's own `display`, which fails on the right half of a wide character whose left half is gone."""
        rows = range(self.screen.lines)
        return "\n".join("".join(self.screen.buffer[y][x].data or " " for x in range(80)) for y in rows)


@pytest.mark.parametrize("keys", [(), ("f",), ("f", "down"), ("f", "r"), ("f", "c"), ("f", "enter")])
@pytest.mark.parametrize("size", [(80, 24), (120, 40), (30, 8)])
async def test_a_hostile_diagnosis_is_shown_and_does_nothing(keys: tuple[str, ...], size: tuple[int, int]) -> None:
    causes = tuple(
        Cause(text, text, text * 50, text, 3, 0, text * 9, HOSTILE, 2, text, 10**9) for text in HOSTILE[:MAX_CAUSES]
    )
    found = bounded(Diagnosis(causes, HOSTILE, Action("retry-alone", names=HOSTILE), complete=False))
    story = builds.running(0).add(3704, ev.Diagnosed(found), ev.BuildEnded("failed", 1, HOSTILE[0]))
    source = FakeSource(replace(story.state, id=HOSTILE[2], cwd=HOSTILE[3]), "ended", log=hostile_log())
    async with shown(source, *keys, size=size) as (app, _pilot):
        assert app.is_running
        assert_harmless(text_of(app))
