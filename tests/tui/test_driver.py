from __future__ import annotations

import asyncio
import signal
import threading
from collections.abc import Iterator

import pytest
from textual.app import App
from textual.drivers.linux_driver import LinuxDriver
from textual.events import CursorPosition

from stoker.show.tui.terminal import driver as driver_module
from stoker.show.tui.terminal.driver import SWITCH, CellDriver, driver_class, repaint

FRAME = "\x1b[?2026h\x1b[1;1H\x1b[31mone {}\x1b[0m\x1b[?2026l"


class Stdin:
    """A terminal to read from."""

    def fileno(self) -> int:
        return 0

    def isatty(self) -> bool:
        return True


@pytest.fixture
def written(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """What reaches the terminal."""
    out: list[str] = []
    monkeypatch.setattr(LinuxDriver, "write", lambda _self, data: out.append(data))
    monkeypatch.setattr("sys.__stdin__", Stdin())
    monkeypatch.setattr(CellDriver, "_terminal_size", lambda _self: (80, 24))
    handlers = {s: signal.getsignal(s) for s in (signal.SIGTSTP, signal.SIGCONT)}
    yield out
    for number, handler in handlers.items():
        signal.signal(number, handler)


def make() -> CellDriver:
    """A driver whose keys are read."""
    driver = CellDriver(App())
    driver._key_thread = threading.current_thread()
    return driver


async def test_frames_wait_for_the_terminals_answer_and_are_merged(written: list[str]) -> None:
    driver = make()
    driver.write(FRAME.format(1))
    assert written[-1].endswith("\x1b[6n")
    sent = len(written)
    for i in range(2, 9):
        driver.write(FRAME.format(i))
    assert len(written) == sent
    driver.process_message(CursorPosition(0, 0))
    await asyncio.sleep(0)
    assert len(written) == sent + 1
    assert "8" in written[-1]
    assert "7" not in written[-1].replace("\x1b[?2026", "")


async def test_an_unchanged_frame_sends_nothing(written: list[str]) -> None:
    driver = make()
    driver.write(FRAME.format(1))
    driver.process_message(CursorPosition(0, 0))
    await asyncio.sleep(0)
    sent = len(written)
    driver.write(FRAME.format(1))
    assert len(written) == sent


async def test_a_terminal_that_never_answers_is_asked_no_more(
    written: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(driver_module, "ANSWER_TIMEOUT", 0.0)
    driver = make()
    for i in range(4):
        driver.write(FRAME.format(i))
        for _ in range(3):
            await asyncio.sleep(0)
    asked = [w for w in written if w.endswith("\x1b[6n")]
    assert len(asked) == driver_module.MAX_SILENCE
    assert "3" in written[-1]


async def test_after_a_while_in_the_shell_frames_go_out_again(written: list[str]) -> None:
    driver = make()
    driver.write(FRAME.format(1))
    driver.exit_event.set()
    driver._answered.set()
    driver.disable_input()
    driver.exit_event.clear()
    driver.write(FRAME.format(2))
    assert "2" in written[-1].replace("\x1b[?2026", "")


async def test_a_terminal_that_nobody_reads_is_not_asked(written: list[str]) -> None:
    """On the way to the shell and back it would echo its answer over the picture."""
    driver = make()
    driver._key_thread = threading.Thread()
    driver.write(FRAME.format(1))
    assert "one" in written[-1]
    assert "\x1b[6n" not in written[-1]


async def test_modes_pass_through_at_once(written: list[str]) -> None:
    driver = make()
    driver.write(FRAME.format(1))
    driver.write("\x1b[?25l")
    assert written[-1] == "\x1b[?25l"


async def test_a_repaint_writes_what_is_shown_already(written: list[str]) -> None:
    driver = make()
    driver.write(FRAME.format(1))
    driver.process_message(CursorPosition(0, 0))
    await asyncio.sleep(0)
    sent = len(written)
    assert repaint(driver)
    assert "one 1" in "".join(written[sent:])


async def test_another_driver_has_nothing_to_repaint() -> None:
    assert not repaint(None)


async def test_a_resize_begins_a_new_picture(written: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    driver = make()
    driver.write(FRAME.format(1))
    driver.process_message(CursorPosition(0, 0))
    await asyncio.sleep(0)
    monkeypatch.setattr(CellDriver, "_terminal_size", lambda _self: (40, 10))
    driver.write(FRAME.format(1))
    assert "one 1" in written[-1]


async def test_ascii_only_whoever_draws(written: list[str]) -> None:
    cls = driver_class(ascii_only=True)
    assert cls is not None
    cls(App()).write("\x1b[1;1H╭─ naïve ─╮")
    assert all(data.isascii() for data in written)
    assert "+- na?ve -+" in written[-1]


def test_the_switch_brings_textuals_own_driver_back(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(SWITCH, "1")
    assert driver_class(ascii_only=False) is None
    monkeypatch.setenv(SWITCH, "0")
    assert driver_class(ascii_only=False) is CellDriver
