"""A person's own command hears of what matters, once, with facts that are values and never a part of its text."""

from __future__ import annotations

import json
import os
import signal
from pathlib import Path
from typing import Any

import pytest

from support.program import Stoker, until, write_ninja

HOOK = 'cat >"$STOKER_EVENT.json"; pwd >pwd; echo "$STOKER_EVENT $STOKER_STATE $STOKER_MESSAGE" >>calls'
HOSTILE = 'x"; touch owned; "$(touch owned)`touch owned`\x1b]2;t\x07'

GATED = "while [ ! -e go ]; do sleep 0.2; done"


@pytest.fixture
def folder(stoker: Stoker) -> Path:
    """One job fails at once, another one waits for `go`."""
    return write_ninja(stoker.root / "b", [("a.o", "false"), ("b.o", GATED)])


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines() if (folder / "calls").exists() else []


def hooks(stoker: Stoker, build: str) -> list[tuple[Any, ...]]:
    found = [e for e in stoker.events(build) if e["type"].startswith("hook_")]
    return [(e["type"], e["occasion"], e.get("exit_code")) for e in found]


def started(stoker: Stoker, folder: Path, *words: str) -> str:
    result = stoker.run("run", "--detach", *words, "--", "ninja", "-k0", "-j2", cwd=folder)
    assert result.returncode == 0, result.stderr
    return result.stdout.decode().strip()


def test_it_is_called_once_for_each_occasion_whatever_the_builds_words_are(stoker: Stoker, folder: Path) -> None:
    build = started(stoker, folder, "-j", "2", "--notify", HOOK, "--name", HOSTILE)
    until(lambda: hooks(stoker, build) == [("hook_called", "failure", None), ("hook_ended", "failure", 0)])
    os.kill(stoker.engine_pid(build), signal.SIGKILL)
    until(lambda: sum(e["type"] == "engine_started" for e in stoker.events(build)) == 2)
    (folder / "go").touch()
    until(lambda: ("hook_ended", "end", 0) in hooks(stoker, build))
    assert [line.split()[:2] for line in calls(folder)] == [["failure", "running"], ["end", "failed"]]
    assert [hook[:2] for hook in hooks(stoker, build)[2:]] == [("hook_called", "end"), ("hook_ended", "end")]
    assert "failed after" in calls(folder)[1]
    assert "\x1b" not in "".join(calls(folder))
    assert not list(stoker.root.rglob("owned"))
    assert (folder / "pwd").read_text().strip() == str(folder)
    document = json.loads((folder / "end.json").read_text())
    assert (document["event"], document["status"]["exit_code"]) == ("end", 1)


@pytest.mark.long
def test_a_command_of_the_settings_that_fails_is_noticed_and_the_build_is_not(stoker: Stoker, folder: Path) -> None:
    settings = stoker.root / "config/stoker/settings.yaml"
    settings.parent.mkdir(parents=True)
    settings.write_text("notify_command: no-such-program-here\n")
    (folder / "go").touch()
    build = started(stoker, folder)
    until(lambda: ("hook_ended", "end", 127) in hooks(stoker, build))
    until(lambda: any("the notify command ended with 127" in e.get("text", "") for e in stoker.events(build)))
    assert "no-such-program-here" in (stoker.folder(build) / "notify.log").read_text()
    assert stoker.status(build)["exit_code"] == 1
    quiet = started(stoker, folder, "--again", "--notify", "")
    stoker.ended(quiet)
    assert hooks(stoker, quiet) == []


@pytest.mark.long
def test_a_resumed_build_keeps_its_command(stoker: Stoker, folder: Path) -> None:
    (folder / "go").touch()
    build = started(stoker, folder, "--notify", HOOK)
    until(lambda: ("hook_ended", "end", 0) in hooks(stoker, build))
    result = stoker.run("run", "--resume", "--detach", build, cwd=folder)
    resumed = result.stdout.decode().strip()
    assert resumed, result.stderr
    until(lambda: ("hook_ended", "end", 0) in hooks(stoker, resumed))
    assert [line.split()[0] for line in calls(folder)].count("end") == 2
