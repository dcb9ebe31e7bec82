"""A signal that comes before anybody watches: the build is stopped, or is told to go on, never in silence."""

from __future__ import annotations

import signal
import subprocess
from pathlib import Path

import pytest

from support.program import PATIENCE, Stoker, until
from support.terminal import Terminal


def started(stoker: Stoker) -> None:
    """Wait until the supervisor has started the build: whoever started it has not begun to watch by then."""
    until(lambda: list(stoker.state.glob("stoker/builds/*/supervisor.json")), "a build")


@pytest.mark.parametrize("signum", [signal.SIGINT, signal.SIGTERM])
def test_a_build_is_stopped_by_a_signal_before_there_is_a_viewer(stoker: Stoker, signum: signal.Signals) -> None:
    process = stoker.start("run", "--plain", "--", "sleep", "600")
    started(stoker)
    process.send_signal(signum)
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 130
    assert b"stopping the build" in stderr
    assert stoker.status()["state"] == "stopped"


def test_a_hang_up_before_there_is_a_viewer_says_that_the_build_goes_on(stoker: Stoker) -> None:
    process: subprocess.Popen[bytes] = stoker.start("run", "--plain", "--", "sleep", "600")
    started(stoker)
    process.send_signal(signal.SIGHUP)
    _, stderr = process.communicate(timeout=PATIENCE)
    assert process.returncode == 75
    assert b"the build goes on; look again with: stoker attach" in stderr


SLOW_TO_OPEN = """
import os, sys, time
class Held:
    def find_spec(self, name, path=None, target=None):
        if name == "stoker.show.tui.app":
            while not os.path.exists("open"):
                time.sleep(0.01)
sys.meta_path.insert(0, Held())
"""
"""What Python runs at its start: a screen opens once the file `open` is there."""


def test_on_a_terminal_the_screen_is_left_before_it_has_opened(stoker: Stoker, tmp_path: Path) -> None:
    (tmp_path / "sitecustomize.py").write_text(SLOW_TO_OPEN)
    env = {**stoker.env, "LC_ALL": "C.UTF-8", "PYTHONPATH": str(tmp_path)}
    terminal = Terminal(stoker.argv("run", "--", "sleep", "600"), env, stoker.root)
    try:
        started(stoker)
        terminal.send("\x03")
        terminal.wait_for("^C")
        (tmp_path / "open").touch()
        terminal.wait_for("the build goes on; look again with: stoker attach")
        assert terminal.wait() == 75
    finally:
        terminal.close()
