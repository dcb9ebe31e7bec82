"""The list of builds: what each runs, where, and in the same words as its status."""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from types import SimpleNamespace

import pytest

from stoker.cli.commands import home
from stoker.cli.commands.home import is_trivial, with_share
from stoker.cli.commands.ls import cells_of
from stoker.config.paths import BuildPaths
from stoker.model.state import Phase
from stoker.record.builds import BuildSummary
from support.program import Stoker
from support.terminal import Terminal


def test_a_frozen_build_is_frozen_everywhere(stoker: Stoker) -> None:
    build = stoker.detach("sleep", "600")
    assert stoker.run("pause", "--now", build).returncode == 0
    (row,) = json.loads(stoker.run("ls", "--json").stdout)
    assert row["state"] == stoker.status(build)["state"] == "frozen"
    assert stoker.run("ls").stdout.split()[1] == b"frozen"


@pytest.mark.long
def test_a_word_lists_the_builds_that_it_means(stoker: Stoker) -> None:
    for name in ("one", "other", "one"):
        assert stoker.run("run", "--plain", "--name", name, "--", "true").returncode == 0
    every = [row["id"] for row in json.loads(stoker.run("ls", "--json").stdout)]
    ones = [build for build in every if build.startswith("one")]
    for word, meant in (
        ("one", ones),
        ("ot", [b for b in every if b not in ones]),
        (ones[1][-4:], ones[1:]),
        ("o", every),
    ):
        assert [row["id"] for row in json.loads(stoker.run("ls", word, "--json").stdout)] == meant
        assert [line.split()[0].decode() for line in stoker.run("ls", word).stdout.splitlines()] == meant
    refused = stoker.run("ls", "two")
    assert (refused.returncode, refused.stderr.decode()) == (1, "stoker: no build 'two'; 'stoker ls' shows them\n")


def test_home_returns_to_the_build_that_was_shown_last(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """It may be the one that the chosen build was resumed as."""
    asked: list[str] = []

    class App:
        def __init__(self, *_: object, chosen: str, **__: object) -> None:
            asked.append(chosen)

        def run(self, *, mouse: bool) -> str | None:
            return "llvm-1" if len(asked) == 1 else None

    options = SimpleNamespace(theme=None, ascii_only=False, settings=SimpleNamespace(mouse="off"))
    for name, stub in {
        "HomeApp": App,
        "running_in_terminal": lambda: True,
        "has_size": lambda: True,
        "repair_all": list,
        "tui_options": lambda _theme: options,
        "find": lambda name: BuildPaths(tmp_path / name),
        "show_until_left": lambda _paths, _screen: (BuildPaths(tmp_path / "llvm-2"), 0),
    }.items():
        monkeypatch.setattr(home, name, stub)
    assert home.run(argparse.Namespace(theme=None)) == 0
    assert asked == ["", "llvm-2"]


@pytest.mark.long
def test_the_command_and_the_folder_tell_builds_apart(stoker: Stoker, tmp_path: Path) -> None:
    folder = tmp_path / "a-folder-of-some-length"
    folder.mkdir()
    stoker.run("run", "--plain", "--name", "one", "--", "sh", "-c", "exit 3", cwd=folder)
    stoker.run("run", "--plain", "--name", "two", "--", "true", "\x1b[31m", cwd=folder)
    (_, one) = json.loads(stoker.run("ls", "--json").stdout)
    assert (one["command"], one["cwd"]) == (["sh", "-c", "exit 3"], str(folder))
    lines = stoker.run("ls").stdout.decode().splitlines()
    assert lines[1].split()[1:3] == ["failed", "(3)"]
    assert lines[1].endswith(f"sh -c 'exit 3' in {folder}")
    assert "\x1b" not in lines[0]
    terminal = Terminal(stoker.argv("ls"), {**stoker.env, "LC_ALL": "C.UTF-8"}, stoker.root)
    try:
        terminal.wait()
        shown = terminal.display.strip().splitlines()
        assert len(shown) == 3, "headings, and a line each on 80 columns"
        assert shown[0].split() == ["ID", "NAME", "STATE", "TOOK", "LEFT", "COMMAND"]
        short, name, *_ = shown[2].split()
        assert (name, stoker.status(short)["name"]) == ("one", "one")
        assert "sh -c" in shown[2]
        assert shown[2].endswith("ngth")
        assert "\x1b[0;31mfailed (3)" in terminal.raw.decode()
    finally:
        terminal.close()


def test_without_colour_where_a_person_wants_none(stoker: Stoker) -> None:
    stoker.run("run", "--plain", "--", "false")
    terminal = Terminal(stoker.argv("ls"), {**stoker.env, "NO_COLOR": "1"}, stoker.root)
    try:
        terminal.wait()
        assert "failed (1)" in terminal.display
        assert b"\x1b[" not in terminal.raw
    finally:
        terminal.close()


@pytest.mark.parametrize(
    ("phase", "ended", "trivial"),
    [("done", 101.9, True), ("done", 102.0, False), ("failed", 101.0, False), ("running", None, False)],
)
def test_home_hides_what_ended_well_at_once(phase: Phase, ended: float | None, trivial: bool) -> None:
    build = BuildSummary("b-1", "b", ("true",), "/src", phase, 100.0, ended, 0, live=ended is None)
    assert is_trivial(build) == trivial


def test_a_build_in_which_nothing_runs_is_told_from_one_that_works() -> None:
    build = BuildSummary("b-1", "b", ("ninja",), "/src", "running", 0.0, None, None, live=True, stalled=True)
    assert cells_of(build, 80)[2:] == ("running (nothing runs)", cells_of(build, 80)[3], "")


def test_home_says_how_much_of_a_live_build_is_done() -> None:
    build = BuildSummary("b-1", "b", ("ninja",), "/src", "running", 0.0, None, None, live=True, share=0.458)
    assert with_share(("1", "b", "running", "1:00", "5 min"), build) == ("1", "b", "running 45 %", "1:00", "5 min")


@pytest.mark.parametrize(("phase", "cell"), [("failed", "failed (143)"), ("stopped", "stopped")])
def test_the_status_of_a_stopped_tool_is_chance_and_left_out(phase: Phase, cell: str) -> None:
    build = BuildSummary("b-1", "b", ("ninja",), "/src", phase, 100.0, 200.0, 143, live=False)
    assert cells_of(build, 80)[2] == cell
