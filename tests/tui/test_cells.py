from __future__ import annotations

import os
import pty
import select
import sys
import time
from pathlib import Path

import pyte
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from stoker.show.tui.terminal.cells import Pen, Screen, change, dipped

WIDTH, HEIGHT = 24, 6
CODES = (
    "0",
    "1",
    "2",
    "3",
    "4",
    "7",
    "31",
    "39",
    "42",
    "49",
    "94",
    "103",
    "38;2;1;2;3",
    "48;2;9;8;7",
    "38;5;200",
    "1;31",
)
sgr = st.lists(st.sampled_from(CODES), max_size=3).map(lambda codes: f"\x1b[{';'.join(codes)}m")
words = st.text(st.sampled_from("ab  xyz━▒│…é"), min_size=1, max_size=30)
wide = st.text(st.sampled_from("漢字a ー"), min_size=1, max_size=14)


@st.composite
def pieces(draw: st.DrawFn) -> str:
    """A styled piece of a row, as Textual writes it; wide characters only in whole rows, which it never cuts."""
    y = draw(st.integers(0, HEIGHT - 1))
    if draw(st.booleans()):
        text = draw(wide)
        while cell_len(text) > WIDTH:
            text = text[:-1]
        text += " " * (WIDTH - cell_len(text))
        return f"\x1b[{y + 1};1H{draw(sgr)}{text}\x1b[0m" + "\n" * (y < HEIGHT - 1)
    x = draw(st.integers(0, WIDTH - 1))
    row = f"\x1b[{y + 1};1H\x1b[0m{' ' * WIDTH}"
    return f"{row}\x1b[{y + 1};{x + 1}H{draw(sgr)}{draw(words)[: WIDTH - x]}\x1b[0m"


frames = st.lists(st.lists(pieces(), max_size=6).map(lambda p: f"\x1b[?2026h{''.join(p)}\x1b[?2026l"), max_size=6)
unknown = st.sampled_from(["", "", "\x1b[2J\x1b[H", "\x1b[?25l", "\x07", "\x1b[?1049h", "\x1b[K"])


def picture(screen: pyte.Screen) -> list[list[tuple[object, ...]]]:
    """What is seen of a terminal: a blank shows no foreground, unless something is drawn through it."""
    rows = []
    for y in range(screen.lines):
        row: list[tuple[object, ...]] = []
        for x in range(screen.columns):
            c = screen.buffer[y][x]
            lines = (c.underscore, c.strikethrough, c.reverse)
            if c.data == " " and not any(lines):
                row.append((" ", c.bg))
            else:
                row.append((c.data, c.fg, c.bg, c.bold, c.italics, *lines))
        rows.append(row)
    return rows


def terminal(width: int = WIDTH, height: int = HEIGHT) -> tuple[pyte.Screen, pyte.Stream]:
    screen = pyte.Screen(width, height)
    screen.reset_mode(pyte.modes.DECAWM)
    return screen, pyte.Stream(screen)


@settings(max_examples=150)
@given(frames)
def test_the_difference_shows_the_same_picture_as_the_whole(frames: list[str]) -> None:
    whole, feed_whole = terminal()
    cells, feed_cells = terminal()
    model = Screen(WIDTH, HEIGHT)
    for frame in frames:
        feed_whole.feed(frame)
        feed_cells.feed(model.feed(frame) + model.difference())
        assert picture(cells) == picture(whole)


@settings(max_examples=100)
@given(frames, unknown)
def test_after_anything_unknown_the_whole_picture_is_written_again(frames: list[str], strange: str) -> None:
    model = Screen(WIDTH, HEIGHT)
    full = "".join(f"\x1b[{y + 1};1H\x1b[41m{'r' * WIDTH}\x1b[0m" for y in range(HEIGHT))
    for frame in [*frames, full]:
        model.feed(frame)
        model.difference()
    screen, stream = terminal()
    stream.feed(model.feed(strange + "\x1b[2J") + model.difference())
    assert all(row == [("r", "default", "red", False, False, False, False, False)] * WIDTH for row in picture(screen))


@given(st.lists(st.sampled_from(CODES), max_size=5), st.lists(st.sampled_from(CODES), max_size=5))
def test_a_change_of_pen_leads_where_it_should(first: list[str], second: list[str]) -> None:
    old, new = dipped(Pen(), ";".join(["0", *first])), dipped(Pen(), ";".join(["0", *second]))
    assert old is not None
    assert new is not None
    assert dipped(old, change(old, new)[2:-1]) == new if old != new else change(old, new) == ""
    assert dipped(old, change(None, new)[2:-1]) == new


def test_an_unchanged_frame_costs_nothing() -> None:
    model = Screen(80, 24)
    frame = "\x1b[3;1H\x1b[38;2;1;2;3;48;2;0;0;0mmemory 22.9 GiB\x1b[0m"
    assert "22.9" in model.feed(frame) + model.difference()
    assert model.feed(frame) + model.difference() == ""


def test_one_changed_digit_costs_a_few_bytes() -> None:
    model = Screen(80, 24)
    model.feed("\x1b[3;1H\x1b[31mmemory 22.9 GiB\x1b[0m")
    model.difference()
    model.feed("\x1b[3;1H\x1b[31mmemory 23.9 GiB\x1b[0m")
    assert model.difference() == "\x1b[3;9H\x1b[31m3\x1b[39m"


def test_half_a_wide_character_does_not_stay_behind() -> None:
    model = Screen(10, 1)
    model.feed("\x1b[1;1H漢字")
    model.difference()
    model.feed("\x1b[1;2Hx")
    assert model.difference() == "\x1b[1;1H x"


def test_a_mark_without_width_stays_with_its_letter() -> None:
    model = Screen(10, 1)
    model.feed("\x1b[1;1He\u0301x")
    assert model.difference() == "\x1b[1;1H\x1b[me\u0301\x1b[1;2Hx"


def test_writing_outside_of_the_screen_is_dropped() -> None:
    model = Screen(4, 2)
    model.feed("\x1b[9;9Hlost\x1b[1;3Habcdef")
    assert model.difference() == "\x1b[1;3H\x1b[mab"


def test_nothing_is_drawn_once_the_screen_is_left_and_all_when_it_is_entered_again() -> None:
    model = Screen(20, 2)
    out = model.feed("\x1b[?1049h\x1b[1;1Hpicture") + model.difference()
    assert "picture" in out
    assert model.feed("\x1b[?1049l\x1b[?25h") + model.difference() == "\x1b[?1049l\x1b[?25h"
    assert model.feed("\x1b[2;1Hmore") + model.difference() == ""
    again = model.feed("\x1b[?1049h") + model.difference()
    assert "picture" in again
    assert "more" in again


FRAME_END = b"\x1b[?2026l"

CHILD = """
import sys
sys.path.insert(0, {top!r})
from bench.link_screen import Busy
from stoker.config.themes import load_themes, theme_folders
from stoker.show.tui.app import run_tui
run_tui(Busy(12, 2, None), themes=load_themes(theme_folders())[0], theme_name="dark")
"""


def test_a_recorded_session_looks_the_same(tmp_path: Path) -> None:
    """Textual's own bytes for a few seconds of a busy build and some keys, played with and without the model."""
    recorded = record_session(tmp_path)
    whole, feed_whole = terminal(80, 24)
    cells, feed_cells = terminal(80, 24)
    model = Screen(80, 24)
    written = 0
    for frame in recorded.split(FRAME_END.decode()):
        feed_whole.feed(frame)
        out = model.feed(frame) + model.difference()
        written += len(out)
        feed_cells.feed(out)
    assert picture(cells) == picture(whole)
    assert "memory" in recorded
    assert written < len(recorded)


def record_session(tmp_path: Path) -> str:
    top = str(Path(__file__).parents[2])
    script = tmp_path / "child.py"
    script.write_text(CHILD.format(top=top))
    pid, master = pty.fork()
    if pid == 0:
        os.environ.update(
            TERM="xterm-256color", COLORTERM="truecolor", STOKER_FULL_REPAINT="1", COLUMNS="80", LINES="24"
        )
        os.execv(sys.executable, [sys.executable, str(script)])
    data = b""
    try:
        for key in (b"t", b"?", b"\x1b", b"t", b""):
            data = read_frames(master, data, 3)
            os.write(master, key)
    finally:
        os.kill(pid, 15)
        os.close(master)
        os.waitpid(pid, 0)
    return data.decode("utf-8", "ignore").replace("\r\n", "\n")  # the PTY makes line ends its own


def read_frames(master: int, data: bytes, count: int) -> bytes:
    """Read until `count` more frames have come."""
    goal = data.count(FRAME_END) + count
    give_up = time.monotonic() + 30
    while time.monotonic() < give_up and data.count(FRAME_END) < goal:
        if select.select([master], [], [], 0.3)[0]:
            asked = b"\x1b[?2026$p" in data
            data += os.read(master, 65536)
            if b"\x1b[?2026$p" in data and not asked:
                os.write(master, b"\x1b[?2026;2$y")
    return data
