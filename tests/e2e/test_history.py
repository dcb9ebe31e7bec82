"""What a build remembers of small jobs: what was measured of them, and no figure that was made up."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from support.program import Stoker, write_ninja

MIB = 2**20
SMALL = 16 * MIB
"""More than a shell, `sleep` and `ar` hold: what a job that took no time between two samples can have held."""

SLEEPERS = {f"slept{n}" for n in range(4)}


def small_jobs(folder: Path) -> Path:
    """Write a project of jobs that use next to no CPU time: some last for seconds, some end between two samples."""
    (folder / "member").write_text("x" * 1000)
    edges = [(name, f"sleep 4; touch {name}") for name in sorted(SLEEPERS)]
    edges += [(f"done{n}", f"true && touch done{n}") for n in range(4)]
    edges += [(f"lib{n}.a", f"ar qc lib{n}.a member") for n in range(4)]
    return write_ninja(folder, edges)


def remembered(stoker: Stoker) -> dict[str, float]:
    """Return the peaks in the history, by output."""
    known = json.loads(stoker.run("history", "--json", "-n", "100").stdout)
    return {job["output"]: job["peak"] for job in known.get("heaviest", ())}


def build(stoker: Stoker, folder: Path) -> list[dict[str, Any]]:
    """Build it all; return what happened."""
    for pattern in ("slept*", "done*", "lib*.a"):
        for made in folder.glob(pattern):
            made.unlink()
    number = stoker.detach("ninja", cwd=folder, jobs=4)
    assert stoker.ended(number)["state"] == "done"
    return stoker.events(number)


def last_expected(events: list[dict[str, Any]]) -> dict[str, int]:
    """Return the peaks that jobs were expected to have in the end, by output: at first their names are not known."""
    peaks = {e["jid"]: e["expected"] for e in events if e["type"] in ("job_started", "job_moved") and e.get("expected")}
    ends = [e for e in events if e["type"] == "job_finished"]
    return {e["output"]: peaks[e["jid"]] for e in ends if e.get("jid") in peaks}


@pytest.mark.long
def test_no_small_job_is_remembered_as_large_and_held_for_it_the_next_time(stoker: Stoker, tmp_path: Path) -> None:
    folder = small_jobs(tmp_path)
    build(stoker, folder)
    first = remembered(stoker)
    assert first.keys() >= SLEEPERS, "those were seen while they ran"
    assert {output: peak for output, peak in first.items() if peak > SMALL} == {}
    expected = last_expected(build(stoker, folder))
    assert expected.keys() & first.keys()
    assert {name: size for name, size in expected.items() if name in first and size > SMALL} == {}
    assert {output: peak for output, peak in remembered(stoker).items() if peak > SMALL} == {}
