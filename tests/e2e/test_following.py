"""Profile, priors, settings edited while a real build runs: jobs go or stay at once, and decisions say who and why."""

from __future__ import annotations

import getpass
import json
import os
import re
import signal
from pathlib import Path
from typing import Any

import pytest

from support.program import Stoker, until, write_ninja

pytestmark = [pytest.mark.long, pytest.mark.timeout(180)]

COUNT = 6
MIB = 2**20
WHO = getpass.getuser()
DIGITS = re.compile(r"\d+")

PROFILE = """\
memory: 600 MiB
level: 2
steps:
  all: {command: ninja}
priors:
  wide: {output: "o*", spread: 0.1, time_spread: 0.1, points: {0: 400 MiB, 600: 400 MiB}}
"""
"""One job at a time fits into the memory, whatever the jobs really hold."""


class Build:
    """A build by a profile of a person's own, whose jobs last until the test touches `goN`."""

    def __init__(self, stoker: Stoker, folder: Path, text: str) -> None:
        self.stoker = stoker
        self.config = stoker.root / "config" / "stoker"
        (self.config / "profiles").mkdir(parents=True)
        self.profile = self.config / "profiles" / "mine.yaml"
        self.profile.write_text(text)
        jobs = [(f"o{n}", f"while [ ! -e go{n} ]; do sleep 0.2; done; touch o{n}") for n in range(COUNT)]
        self.folder = write_ninja(folder, jobs)
        result = stoker.run("run", "--detach", "--no-doctor", "-p", "mine", cwd=self.folder)
        assert result.returncode == 0, result.stderr
        self.id = result.stdout.decode().strip()

    def edit(self, path: Path, text: str) -> None:
        """As editors write: another file, renamed into its place."""
        new = path.with_suffix(".new")
        new.write_text(text)
        new.replace(path)

    def status(self) -> dict[str, Any]:
        return self.stoker.status(self.id)

    def jobs(self) -> tuple[int, int, int]:
        """How many run, wait on deck and are frozen."""
        progress = self.status()["progress"]
        return progress["running"], progress["on_deck"], progress["frozen"]

    def decided(self) -> dict[str, dict[str, Any]]:
        """Decisions of the person, by what was decided."""
        return {e["what"]: e for e in self.stoker.events(self.id) if e["type"] == "decided" and e["who"] == WHO}

    def noticed(self) -> str:
        return "\n".join(e["text"] for e in self.stoker.events(self.id) if e["type"] == "noticed")

    def running(self) -> list[int]:
        """The numbers of the jobs that run, which need not be those that ninja started first.

        A job that was seen before ninja's plan was read is named by its command.
        """
        told = self.stoker.events(self.id)
        numbers = {e["jid"]: int(DIGITS.findall(e["output"])[0]) for e in told if e["type"] == "job_started"}
        states = {e["jid"]: e.get("state", "running") for e in told if e["type"] in ("job_started", "job_moved")}
        return [number for jid, number in numbers.items() if states[jid] == "running"]

    def let_go(self, *numbers: int) -> None:
        for n in numbers or range(COUNT):
            (self.folder / f"go{n}").touch()

    def ends_well(self) -> bool:
        self.let_go()
        status = self.stoker.ended(self.id)
        return (status["state"], status["progress"]["finished"]) == ("done", COUNT)


def test_more_memory_lets_held_jobs_go_and_less_level_holds_the_next(stoker: Stoker, tmp_path: Path) -> None:
    build = Build(stoker, tmp_path / "p", PROFILE)
    until(lambda: build.jobs() == (1, COUNT - 1, 0), "one job at work, as the memory has it")
    build.edit(build.profile, PROFILE.replace("600 MiB", "6 GiB"))
    until(lambda: build.jobs() == (2, COUNT - 2, 0), "two jobs at work, as the level has it")
    until(lambda: build.status()["memory"]["budget"] == 6 * 2**30, "the larger budget")
    assert "mine.yaml was edited; 1 run, 5 on deck" in build.decided()["memory 600 MiB → 6.0 GiB"]["why"]

    build.edit(build.profile, PROFILE.replace("600 MiB", "6 GiB").replace("level: 2", "level: 1"))
    until(lambda: "level 2 → 1" in build.decided(), "the level to be followed")
    assert build.jobs() == (2, COUNT - 2, 0)  # nobody is frozen for it
    build.let_go(*build.running())
    until(lambda: build.status()["progress"]["finished"] == 2, "two ends")
    until(lambda: build.jobs() == (1, COUNT - 3, 0), "one job at work")
    assert build.ends_well()


def test_settings_and_priors_take_effect_and_a_broken_file_changes_nothing(stoker: Stoker, tmp_path: Path) -> None:
    build = Build(stoker, tmp_path / "p", PROFILE)
    until(lambda: build.jobs()[0] == 1, "one job at work")
    build.edit(build.config / "settings.yaml", "reserve: 25%\n")
    until(lambda: build.status()["memory"]["reserve"] == 150 * MIB, "the reserve")
    assert "settings.yaml was edited" in build.decided()["reserve automatic → 25 %"]["why"]

    build.edit(build.profile, PROFILE.replace("memory:", "memry:"))
    until(lambda: "mine.yaml:1: unknown key 'memry'" in build.noticed(), "a warning")
    assert "'memory'?; the old values stay" in build.noticed()
    assert build.status()["memory"]["budget"] == 600 * MIB
    assert build.jobs() == (1, COUNT - 1, 0)

    build.edit(build.profile, PROFILE.replace("400 MiB", "100 MiB"))
    until(lambda: build.jobs()[0] == 2, "a second job, which fits by what is expected now")
    assert "class wide 400 MiB → 100 MiB" in build.decided()
    assert build.ends_well()


@pytest.mark.long
def test_what_was_edited_while_no_engine_looked_counts_with_the_next_one(stoker: Stoker, tmp_path: Path) -> None:
    build = Build(stoker, tmp_path / "p", PROFILE)
    until(lambda: build.jobs()[0] == 1, "one job at work")
    build.edit(build.config / "settings.yaml", "pressure: 35%\n")
    until(lambda: "pressure 20 % → 35 %" in build.decided(), "the pressure to be followed")
    os.kill(stoker.engine_pid(build.id), signal.SIGSTOP)
    build.edit(build.profile, PROFILE.replace("600 MiB", "6 GiB"))
    build.edit(build.config / "settings.yaml", "presure: 50%\n")
    os.kill(stoker.engine_pid(build.id), signal.SIGKILL)
    until(lambda: "memory 600 MiB → 6.0 GiB" in build.decided(), "the memory to be followed by the next engine")
    until(lambda: "unknown setting 'presure'" in build.noticed(), "a warning")
    until(lambda: build.jobs()[0] == 2, "two jobs at work")
    kept = json.loads((stoker.folder(build.id) / "choices.json").read_bytes())
    assert kept["thresholds"]["pressure"] == 35
    assert build.ends_well()
