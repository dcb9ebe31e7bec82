"""Terminals that nobody sized, and such as lose their size: the viewer is never busy with itself, and can be left."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.program import Stoker, until, write_ninja
from support.terminal import Terminal

WAIT = "while [ ! -e go ]; do sleep 0.2; done"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_ninja(tmp_path / "p", [("o1", f"{WAIT}; touch o1")])


def opened(stoker: Stoker, folder: Path, columns: int, lines: int, **env: str) -> Terminal:
    words = stoker.argv("run", "--", "ninja", "-C", str(folder))
    return Terminal(words, {**stoker.env, "LC_ALL": "C.UTF-8", **env}, stoker.root, columns, lines)


def and_long_ones(first: tuple[int, int], *others: tuple[int, int]) -> pytest.MarkDecorator:
    """For tests of several sizes: the others' turn comes with the long tests."""
    return pytest.mark.parametrize(
        ("columns", "lines"), [first, *(pytest.param(*size, marks=pytest.mark.long) for size in others)]
    )


@and_long_ones((0, 0), (80, 0), (0, 24))
def test_a_terminal_without_a_size_gets_plain_lines_and_is_told_so(
    stoker: Stoker, folder: Path, columns: int, lines: int
) -> None:
    terminal = opened(stoker, folder, columns, lines)
    try:
        until(lambda: b"attach" in terminal.raw, "plain lines")
        assert b"this terminal has no size" in terminal.raw
        (folder / "go").touch()
        assert terminal.wait() == 0
        assert b"\x1b[?1049h" not in terminal.raw
    finally:
        terminal.close()


def test_a_size_from_the_environment_is_one(stoker: Stoker, folder: Path) -> None:
    terminal = opened(stoker, folder, 0, 0, COLUMNS="80", LINES="24")
    try:
        until(lambda: b"\x1b[?1049h" in terminal.raw and b"running" in terminal.raw, "the full screen")
        terminal.send("q")
        assert terminal.wait() == 75
    finally:
        terminal.close()


@and_long_ones((0, 0), (1, 1), (1, 24), (80, 1))
def test_a_terminal_that_shrinks_to_nothing_can_be_left_and_comes_back(
    stoker: Stoker, folder: Path, columns: int, lines: int
) -> None:
    terminal = opened(stoker, folder, 80, 24)
    try:
        terminal.wait_for("o1")
        terminal._set_size(columns, lines)
        terminal.send("o")
        terminal._set_size(100, 30)
        terminal.wait_for("next error")  # the page that the key opens, once there is room for it
        terminal._set_size(columns, lines)
        terminal.send("q")
        assert terminal.wait() == 75
        assert terminal.restored
    finally:
        terminal.close()
