"""When a build is over its engine gets the time that it shows to need, and a silent one does not keep the end away."""

from __future__ import annotations

import sys
import time
from pathlib import Path
from types import SimpleNamespace

import pytest

from stoker.supervisor import engine_runner
from stoker.supervisor.engine_runner import LAST_WORDS_SECONDS, LONGEST_WORDS_SECONDS, EngineRunner
from support.supervisors import DYING_ENGINE, Start, alive, exit_of, state_of, supervisor_of, until

ENGINE = """
import os, sys, time
folder = sys.argv[1]
for second in range(1, {seconds} + 1):
    while not os.path.exists(folder + "/second"):
        time.sleep(0.001)
    if {beats}:
        open(folder + "/heartbeat", "w").close()
        os.utime(folder + "/heartbeat", (second, second))
    if second == {seconds}:
        open(folder + "/said", "w").close()
    os.unlink(folder + "/second")
"""
"""It has said its last words after so many seconds of the runner's clock, which goes on when it has heard of each."""


class Clock:
    """The runner's clock: its pauses are a second each, of which the engine hears."""

    def __init__(self, second: Path) -> None:
        self._second = second
        self.now = 0.0
        self.engine = 0

    def sleep(self, _seconds: float) -> None:
        self.now += 1.0
        self._second.touch()
        until(lambda: not self._second.exists() or state_of(self.engine) in ("", "Z"))


@pytest.mark.parametrize(
    ("beats", "seconds", "said"),
    [
        (True, round(LONGEST_WORDS_SECONDS) - 2, True),
        (True, round(LONGEST_WORDS_SECONDS) + 2, False),
        (False, round(LAST_WORDS_SECONDS) - 2, True),
        (False, round(LAST_WORDS_SECONDS) + 2, False),
    ],
    ids=["at work", "at work for ever", "silent", "silent for long"],
)
def test_an_engine_may_take_its_time_over_the_end_while_it_shows_that_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beats: bool, seconds: int, said: bool
) -> None:
    clock = Clock(tmp_path / "second")
    times = SimpleNamespace(**{**vars(time), "monotonic": lambda: clock.now, "sleep": clock.sleep})
    monkeypatch.setattr(engine_runner, "time", times)
    script = ENGINE.format(seconds=seconds, beats=beats)
    engine = EngineRunner(str(tmp_path), (sys.executable, "-I", "-S", "-c", script), list)
    engine.start()
    clock.engine = engine.pid
    engine.await_last_words()
    assert (tmp_path / "said").exists() is said


def test_where_no_engine_lives_the_supervisor_calls_the_notify_command(start: Start, tmp_path: Path) -> None:
    paths = start("sh", "-c", "exit 3", engine=DYING_ENGINE, notify='echo "$STOKER_EVENT $STOKER_MESSAGE" >>calls')
    assert exit_of(paths)["exit_code"] == 3
    until(lambda: (tmp_path / "calls").exists() and (tmp_path / "calls").read_text().endswith("\n"))
    assert (tmp_path / "calls").read_text() == "end stoker: test ended with 3; no engine was left to report more\n"


def test_what_an_engine_has_announced_the_supervisor_does_not(start: Start, tmp_path: Path) -> None:
    announces = DYING_ENGINE.replace("sys.exit(1)", "open(folder + '/notified', 'w').close(); sys.exit(1)")
    paths = start("true", engine=announces, notify="touch called")
    exit_of(paths)
    until(lambda: not alive(supervisor_of(paths)["supervisor_pid"]))
    assert not (tmp_path / "called").exists()
