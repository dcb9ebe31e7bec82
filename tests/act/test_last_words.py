"""When a build is over its engine gets the time that it shows to need, and a silent one does not keep the end away."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from stoker.act import minder
from stoker.act.minder import Minder

ENGINE = """
import os, sys, time
for _ in range(30):
    if "{beats}":
        open(sys.argv[1] + "/heartbeat", "w").close()
        os.utime(sys.argv[1] + "/heartbeat")
    time.sleep(0.1)
open(sys.argv[1] + "/said", "w").close()
"""


@pytest.mark.parametrize("beats", ["yes", ""], ids=["at work", "silent"])
@pytest.mark.parametrize("longest", [600.0, 1.0])
def test_an_engine_may_take_its_time_over_the_end_while_it_shows_that_it_is_there(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, beats: str, longest: float
) -> None:
    monkeypatch.setattr(minder, "LAST_WORDS_SECONDS", 1.5)
    monkeypatch.setattr(minder, "LONGEST_WORDS_SECONDS", longest)
    engine = Minder(str(tmp_path), [sys.executable, "-c", ENGINE.format(beats=beats)], list)
    engine.start()
    engine.await_last_words()
    assert (tmp_path / "said").exists() is (bool(beats) and longest > 3.0)
