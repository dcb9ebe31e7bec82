"""An engine is killed, and the next one knows what it knew: the time left, and what jobs are expected to hold."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from support.program import Stoker, until, write_ninja

FILES = 220
JOB = "import sys, time; block = b'x' * 60_000_000; time.sleep(float(sys.argv[1]))"
"""60 MB for a moment: far from what a job of which nothing is known is expected to hold."""

FIGURES = ("seconds", "low", "high")

STALE = 0.4
"""How far what was expected of a job as it came on deck may be from now: jobs finished since, and it holds memory."""


def seconds(number: int) -> float:
    """How long a job takes: the last ones long enough for a pause to be in time."""
    return 0.05 + number % 3 / 10 if number < 190 else 2.0


def write_files(folder: Path) -> Path:
    """A build of FILES small jobs that hold some memory, some longer than others."""
    folder.mkdir()
    script = folder / "job.py"
    script.write_text(JOB)
    run = f"{sys.executable} -I -S {script}"
    return write_ninja(folder, [(f"o{n}", f"{run} {seconds(n)} && touch o{n}") for n in range(FILES)])


def patiently(condition: Callable[[], Any], what: str) -> Any:
    """As `until`, with time for a whole build on a busy machine."""
    for _ in range(8):
        with contextlib.suppress(AssertionError):
            return until(condition, what)
    raise AssertionError(f"{what} did not happen")


def estimate_after(stoker: Stoker, build: str, kind: str) -> dict[str, Any]:
    """The newest estimate that is journalled behind what is there now, or behind the last event of a kind."""
    seen = max(e["seq"] for e in stoker.events(build) if not kind or e["type"] == kind)
    found = lambda: [e for e in stoker.events(build) if e["type"] == "estimated" and e["seq"] > seen]  # noqa: E731
    return dict(until(found, "an estimate")[-1])


def expected(stoker: Stoker, build: str) -> list[int]:
    """What jobs that wait are expected to hold."""
    return [job["expected"] for job in stoker.status(build)["jobs"] if job["state"] == "on_deck"]


@pytest.mark.long
@pytest.mark.timeout(900)
@pytest.mark.parametrize("percent", [10, 90])
def test_the_time_left_and_the_memory_stay_what_they_were(stoker: Stoker, tmp_path: Path, percent: int) -> None:
    """Paused in between, so that both engines look at the same."""
    build = stoker.detach("ninja", "-C", str(write_files(tmp_path / "files")), "-j6", jobs=4)
    patiently(lambda: stoker.status(build)["progress"]["finished"] >= FILES * percent // 100, "so much of the build")
    assert stoker.run("pause", build).returncode == 0
    until(lambda: stoker.status(build)["progress"]["running"] == 0, "the pause")
    before, memory = estimate_after(stoker, build, ""), expected(stoker, build)
    engine = stoker.engine_pid(build)
    os.kill(engine, signal.SIGKILL)
    until(lambda: stoker.engine_pid(build) != engine, "the next engine")
    same = pytest.approx([before[f] for f in FIGURES], rel=0.1, abs=0.2)

    def taken_over() -> bool:
        """On a busy machine the first look may miss a job; while the build is paused, what is lost never comes back."""
        after = estimate_after(stoker, build, "engine_started")
        return [after[f] for f in FIGURES] == same

    until(taken_over, f"what it was: {before}")
    first = next(e["expected"] for e in stoker.events(build) if e["type"] == "job_started" and e.get("expected"))
    assert first > 2 * max(memory), "a job of which nothing is known"
    assert expected(stoker, build) == pytest.approx(memory, rel=STALE)
    assert stoker.run("unpause", build).returncode == 0
    patiently(lambda: stoker.events(build)[-1]["type"] == "build_ended", "the end")
    assert stoker.status(build)["state"] == "done"
