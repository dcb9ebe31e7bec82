"""The builds of a folder: each beside those before that were like it."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path

from stoker.model.events import Outcome
from stoker.model.state import BuildState, MemoryUse, Scheduler
from stoker.report.trends import trend
from support.program import Stoker, until


def build(
    number: int, seconds: float, jobs: int = 100, outcome: Outcome = "done", command: str = "ninja"
) -> BuildState:
    scheduler = Scheduler(1, "ninja", 1, "/b", "1", 2, None, 0.0, ended=1.0, finished=jobs)
    state = BuildState(id=f"b-{number}", command=(command,), started=1000.0 * number, ended=1000.0 * number + seconds)
    return replace(state, outcome=outcome, schedulers={1: scheduler}, memory=MemoryUse(build_peak=5))


def test_a_build_stands_beside_the_like_ones_before_it() -> None:
    lines = trend([build(3, 30), build(1, 10), build(2, 20), build(4, 30, jobs=3), build(5, 15, command="make")])
    assert [(line.id, line.share) for line in lines] == [
        ("b-1", None),
        ("b-2", 2.0),
        ("b-3", 2.0),
        ("b-4", None),  # three jobs of a hundred: another kind of build
        ("b-5", None),
    ]


def test_a_failed_build_is_listed_and_held_against_none() -> None:
    lines = trend([build(1, 10, outcome="failed"), build(2, 20), replace(build(3, 5), outcome=None)])
    assert [(line.outcome, line.share) for line in lines] == [("failed", None), ("done", None)]


def test_the_builds_of_the_working_folder_are_listed(stoker: Stoker, tmp_path: Path) -> None:
    for folder in ("here", "there"):
        (tmp_path / folder).mkdir()
    (tmp_path / "here/build.ninja").write_text("rule t\n  command = touch $out\nbuild a: t\n")
    ids = []
    for _ in range(2):
        ids.append(stoker.detach("ninja", cwd=tmp_path / "here"))
        stoker.ended(ids[-1])
    found = json.loads(stoker.run("history", "--builds", "--json", cwd=tmp_path / "here").stdout)
    assert [line["id"] for line in found] == ids
    printed = stoker.run("history", "--builds", cwd=tmp_path / "here").stdout.decode()
    assert all(one[-4:] in printed for one in ids)
    empty = stoker.run("history", "--builds", cwd=tmp_path / "there")
    assert b"no build of this folder" in empty.stderr


def test_a_pipe_gets_this_folders_builds_and_their_heaviest_jobs(stoker: Stoker, tmp_path: Path) -> None:
    for folder, output in (("here", "mine"), ("there", "others")):
        (tmp_path / folder).mkdir()
        hold = "python3 -c 'import time; held = bytes(50 << 20); time.sleep(2.5)'"
        text = f"rule t\n  command = {hold} && touch $out\nbuild {output}: t\n"
        (tmp_path / folder / "build.ninja").write_text(text)
        stoker.ended(stoker.detach("ninja", cwd=tmp_path / folder))
    printed = stoker.run("history", cwd=tmp_path / "here").stdout.decode()
    builds, _, jobs = printed.partition("\n\n")
    assert len(builds.splitlines()) == 2
    assert [line.split()[-1] for line in jobs.splitlines()] == ["jobs", "mine"]
    everything = stoker.run("history", "--all", cwd=tmp_path / "here").stdout.decode()
    assert len(everything.partition("\n\n")[0].splitlines()) == 3
    assert {"mine", "others"} <= {line.split()[-1] for line in everything.splitlines() if line}


def test_a_job_that_was_stopped_is_none_of_the_heaviest(stoker: Stoker, tmp_path: Path) -> None:
    hold = "python3 -c 'import time; held = bytes(50 << 20); time.sleep(600)'"
    (tmp_path / "build.ninja").write_text(f"rule t\n  command = {hold}\nbuild stopped: t\n")
    build = stoker.detach("ninja", cwd=tmp_path)
    until(lambda: any(job["rss"] for job in stoker.status(build)["jobs"]), "a measurement")
    stoker.run("stop", build)
    stoker.ended(build)
    printed = stoker.run("history", cwd=tmp_path).stdout.decode()
    assert build[-4:] in printed
    assert "heaviest" not in printed


def test_the_heaviest_jobs_of_a_make_are_listed_too(stoker: Stoker, tmp_path: Path) -> None:
    hold = "python3 -c 'import time; held = bytes(50 << 20); time.sleep(2.5)'"
    (tmp_path / "Makefile").write_text(f"all: mine\nmine:\n\t{hold} && touch mine\n")
    stoker.ended(stoker.detach("make", cwd=tmp_path))
    heaviest = stoker.run("history", cwd=tmp_path).stdout.decode().splitlines()[-1]
    assert "time.sleep(2.5)" in heaviest
