"""A person who looks elsewhere hears of the end: the bytes in a real terminal, outside and inside tmux."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.program import Stoker, until, write_ninja
from support.terminal import Terminal

WAIT = "while [ ! -e go ]; do sleep 0.2; done; false"


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    """A build that fails once the test touches `go`, with a name that would clear a screen."""
    return write_ninja(tmp_path / "evil", [("a.o", WAIT)])


def command(stoker: Stoker, *words: str) -> list[str]:
    name = "evil\x1b]2;owned\x07"
    return stoker.argv("run", *words, "--name", name, "--", "ninja", "-C", str(stoker.root / "evil"))


def open_terminal(argv: list[str], stoker: Stoker, **env: str) -> Terminal:
    return Terminal(argv, {**stoker.env, "LC_ALL": "C.UTF-8", **env}, stoker.root)


def fail(folder: Path) -> None:
    (folder / "go").touch()


def test_the_screen_sets_the_title_notifies_and_gives_the_title_back(stoker: Stoker, failing: Path) -> None:
    terminal = open_terminal(command(stoker), stoker, TERM="xterm-256color", LC_TERMINAL="iTerm2")
    try:
        terminal.wait_for("a.o")
        until(lambda: b"\x1b[22;2t" in terminal.raw and b"\x1b]2;evil" in terminal.raw)
        assert b"\x1b]9;" not in terminal.raw
        fail(failing)
        until(lambda: b"\x1b]9;stoker: evil failed after" in terminal.raw)
        assert b"\x1b]2;evil failed\x07" in terminal.raw
        terminal.send("q")
        terminal.wait()
        assert b"\x1b[23;2t" in terminal.raw.split(b"\x1b[?1049l")[-1]
        assert b"]2;owned" not in terminal.raw
    finally:
        terminal.close()


@pytest.mark.long
def test_plain_lines_on_a_terminal_end_with_a_bell(stoker: Stoker, failing: Path) -> None:
    terminal = open_terminal(command(stoker, "--plain"), stoker)
    try:
        terminal.wait_for("jobs")
        assert b"\x07" not in terminal.raw
        fail(failing)
        assert terminal.wait() == 1
        assert b"\x07" in terminal.raw
        assert b"]2;owned" not in terminal.raw
    finally:
        terminal.close()


@pytest.mark.skipif(shutil.which("tmux") is None, reason="needs tmux")
@pytest.mark.long
def test_a_notification_gets_through_tmux(stoker: Stoker, failing: Path) -> None:
    socket = ["tmux", "-S", str(stoker.root / "tmux.sock"), "-f", "/dev/null"]
    argv = [*socket, "set", "-g", "allow-passthrough", "on", ";", "new-session", *command(stoker)]
    terminal = open_terminal(argv, stoker, LC_TERMINAL="iTerm2")
    try:
        terminal.wait_for("a.o")
        fail(failing)
        until(lambda: b"\x1b]9;stoker: evil failed after" in terminal.raw)
        until(lambda: b"\x07" in terminal.raw.split(b"failed after", 1)[1].partition(b"\x07")[2])
        terminal.send("q")
        terminal.wait()
    finally:
        terminal.close()
        subprocess.run([*socket, "kill-server"], check=False, capture_output=True)
