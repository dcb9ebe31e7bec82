"""What is counted is what ninja counts, whatever its log, its manifest and the build's further attempts do to it."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import pytest

from support.program import NINJAS, Stoker

SELF_MADE = """\
rule renew
  command = sleep 0.6; cp build.ninja.in new; mv new build.ninja
  generator = 1
  description = Re-running configure
rule check
  command = sleep 0.2; test -e checked || touch checked
  restat = 1
rule quiet
  command = sleep 0.3; cmp -s $in $out || cp $in $out
  restat = 1
rule same
  command = sleep 0.2; touch made_a made_b made_c
rule long
  command = sleep $seconds; touch $out
build checked: check force
build force: phony
build build.ninja: renew build.ninja.in checked
"""


def self_made(folder: Path, jobs: int) -> Path:
    """A manifest that is renewed at the start, with jobs that no command line tells apart.

    As CMake's with CONFIGURE_DEPENDS: something looks at each start whether it must be renewed.
    """
    folder.mkdir()
    edges = [f"build made_{name}: same\n" for name in "abc"]
    edges += [f"build o{n}: long\n  seconds = 0.{1 + n % 3}\n" for n in range(jobs)]
    edges += ["build copy: quiet source\n", "build late: long copy o0\n  seconds = 0.3\n"]
    goals = ("made_a", "made_b", "made_c", "late", *(f"o{n}" for n in range(jobs)))
    text = SELF_MADE + "".join(edges) + f"default {' '.join(goals)}\n"
    for name in ("build.ninja", "build.ninja.in"):
        (folder / name).write_text(text)
    os.utime(folder / "build.ninja", (1e9, 1e9))
    for name in ("source", "copy"):
        (folder / name).write_text("same")
    os.utime(folder / "copy", (1e9, 1e9))
    return folder


def last_count(stoker: Stoker, build: str) -> tuple[int, int]:
    """Ninja's own last word: finished, total."""
    text = (stoker.folder(build) / "output.log").read_text()
    finished, total = re.findall(r"^\[(\d+)/(\d+)\]", text, re.MULTILINE)[-1]
    return int(finished), int(total)


def counts(status: dict[str, Any]) -> tuple[int, int, int]:
    progress = status["progress"]
    return progress["finished"], progress["total"], progress["failed"]


@pytest.mark.parametrize("ninja", NINJAS)
def test_a_manifest_that_renews_itself_leaves_ninjas_own_counts(stoker: Stoker, tmp_path: Path, ninja: str) -> None:
    folder = self_made(tmp_path / "p", 12)
    build = stoker.detach("sh", "-c", f"sleep 0.3; {ninja} -C {folder} -j6", cwd=tmp_path, jobs=4)
    status = stoker.ended(build)
    assert status["state"] == "done"
    finished, _ = last_count(stoker, build)  # ninja 1.13 leaves what it has pruned before in its total
    assert counts(status) == (finished, finished, 0)
    ends = [e for e in stoker.events(build) if e["type"] == "job_finished"]
    assert {e["outcome"] for e in ends} == {"ok"}
    planned = [e["total"] for e in stoker.events(build) if e["type"] == "scheduler_planned"]
    assert min(planned) >= finished
