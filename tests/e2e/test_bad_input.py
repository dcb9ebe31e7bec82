"""Bad input gets one line that names the thing and the remedy, and the right exit status."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from support.program import Stoker, write_ninja


@pytest.mark.parametrize(
    ("words", "status", "said"),
    [
        (["run"], 2, "run needs a command; write it after --"),
        (["run", "--plain", "--nmae", "x", "--", "true"], 2, "run has no option --nmae; did you mean --name?"),
        (["run", "--level", "4", "--", "true"], 2, "run has no option --level; did you mean -j?"),
        (["demo", "--level=4"], 2, "demo has no option --level=4; did you mean -j?"),
        (["pause", "--level"], 2, "pause has no option --level; see 'stoker pause --help'"),
        (["run", "--", "no-such-tool-here"], 127, "no-such-tool-here: not found on PATH"),
        (["run", "--", "./no-such-file"], 127, "./no-such-file: no such file"),
        (["run", "--", "/etc"], 126, "/etc is a folder"),
        (["rnu"], 2, "did you mean 'stoker run'?"),
        (["ninja"], 2, "stoker run -- ninja"),
        (["status", "nothing-like-it"], 1, "nothing-like-it"),
        (["attach", "../../etc"], 1, "../../etc"),
        (["log", "nothing"], 1, "nothing"),
        (["events", "nothing"], 1, "nothing"),
        (["stop", "nothing"], 1, "nothing"),
        (["replay", "nothing"], 1, "no build 'nothing'; 'stoker ls' shows them"),
        (["replay", "/nope"], 1, "no such file or build: /nope"),
        (["report", "/nope"], 1, "no such file or build: /nope"),
        (["replay", "./gone/journal.jsonl"], 1, "no such file or build: ./gone/journal.jsonl"),
        (["replay", "/etc/hostname"], 1, "/etc/hostname"),
        (["replay", "/etc/hostname", "--speed", "nan"], 2, "--speed is a number above 0"),
        (["simulate", "/dev/zero", "--ram", "64G", "--cores", "4"], 1, "/dev/zero, line 1: longer than any trace has"),
        (["status"], 1, "stoker run"),
        (["run", "-j", "0", "--", "true"], 2, "'0' is not a level; write a number from 1 to 4096, or auto"),
        (["run", "-jmany", "--", "true"], 2, "'many' is not a level"),
        (
            ["run", "--memory", "lots", "--", "true"],
            2,
            "'lots' is not a size; write it as 64G,",
        ),
        (["run", "--memory", "120%", "--", "true"], 2, "from 1% to 100%"),
        (["run", "--memory", "0", "--", "true"], 2, "write it as 12G"),
        (
            ["run", "--theme", "nosuch", "--", "true"],
            2,
            "no theme 'nosuch'; known are ansi-16, colour-blind-safe, dark, high-contrast, light; 'stoker themes list'",
        ),
        (["run", "--detach", "--theme", "drk", "--", "true"], 2, "no theme 'drk'; did you mean 'dark'?"),
        (["history", "--theme", "drk"], 2, "no theme 'drk'; did you mean 'dark'?"),
        (["demo", "-j", "-3"], 2, "'-3' is not a level"),
        (["jobs", "0"], 2, "'0' is not a level; write a number from 1 to 4096, or auto; to run nothing: stoker pause"),
        (["jobs", "-1"], 2, "'-1' is not a level"),
        (["jobs", "many"], 2, "'many' is neither a level (a number or auto) nor a build"),
        (["jobs", "nothing", "4097"], 2, "'4097' is not a level"),
        (["jobs", "nothing", "4"], 1, "nothing"),
        (["jobs", "a", "b", "c"], 2, "as in: stoker jobs mybuild 12"),
        (["jobs", "--ignore-memory"], 2, "--ignore-memory goes with a number"),
        (["jobs", "auto", "--ignore-memory"], 2, "--ignore-memory goes with a number"),
        (["jobs", "3"], 1, "stoker run"),
        (["pause", "nothing"], 1, "nothing"),
        (["pause", "--later"], 2, "pause has no option --later; see 'stoker pause --help'"),
        (["pause", "one", "two"], 2, "pause: 'two' is one word too many; see 'stoker pause --help'"),
        (["jobs", "6", "--ignore-memory", "nothing"], 1, "nothing"),
        (["jobs", "--ignore-memory", "nothing", "6"], 1, "nothing"),
        (["unpause", "nothing"], 1, "nothing"),
        (["demo", "--seconds", "0"], 2, "--seconds is a number from 1 to 3600"),
        (["themes", "check", "/nonexistent.yaml"], 1, "/nonexistent.yaml"),
        (["themes"], 2, "required: list|check; see"),
        (["themes", "show"], 2, "list|check: invalid choice: 'show'"),
    ],
)
def test_one_line_and_the_right_status(stoker: Stoker, words: list[str], status: int, said: str) -> None:
    result = stoker.run(*words)
    text = result.stderr.decode()
    assert said in text
    assert len(text.strip().splitlines()) == 1
    assert result.returncode == status
    assert result.stdout == b""


def test_a_state_folder_that_is_a_file_is_named_and_nothing_runs(stoker: Stoker, tmp_path: Path) -> None:
    stoker.state.write_text("")
    result = stoker.run("run", "--plain", "--", "touch", "ran")
    assert result.returncode == 125
    assert b"set XDG_STATE_HOME" in result.stderr
    assert not (tmp_path / "ran").exists()


def test_a_full_disk_at_the_start_is_named_and_nothing_runs(stoker: Stoker, tmp_path: Path) -> None:
    stoker.state.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs", str(stoker.state)], check=True)
    try:
        result = stoker.run("run", "--plain", "--", "touch", "ran")
    finally:
        subprocess.run(["umount", str(stoker.state)], check=True)
    assert result.returncode == 125
    assert b"No space left on device; free some space" in result.stderr
    assert not (tmp_path / "ran").exists()


def test_a_runtime_folder_of_somebody_else_is_refused_not_used(stoker: Stoker, tmp_path: Path) -> None:
    folder = stoker.runtime / "stoker"
    folder.mkdir(mode=0o700)
    os.chown(folder, 12345, 12345)
    build = stoker.detach("true")
    status = stoker.ended(build)
    assert status["state"] == "done"
    assert not list(folder.iterdir())


def test_an_unreadable_theme_is_named_with_its_line_and_does_not_stop_the_build(stoker: Stoker, tmp_path: Path) -> None:
    themes = tmp_path / "config" / "stoker" / "themes"
    themes.mkdir(parents=True)
    (themes / "mine.yaml").write_text("name: mine\nextends: dark\ncolors:\n  memroy: '#ff0000'\n")
    result = stoker.run("themes", "check")
    assert result.returncode == 1
    assert b"mine.yaml:4: " in result.stderr
    assert b"'memory'" in result.stderr
    folder = write_ninja(tmp_path / "p", [("o", "touch o")])
    assert stoker.run("run", "--plain", "--", "ninja", "-C", str(folder)).returncode == 0


@pytest.mark.parametrize("words", [["status"], ["events"], ["attach", "--plain"], ["attach", "--json"], ["replay"]])
def test_a_journal_of_another_version_is_named_in_one_line(stoker: Stoker, words: list[str]) -> None:
    folder = stoker.folder("older")
    folder.mkdir(parents=True)
    (folder / "journal.jsonl").write_text('{"v":2,"seq":1,"t":1.0,"type":"build_started"}\n')
    result = stoker.run(*words, "older")
    assert result.returncode == 1
    assert b"journal version 2 is not 1; use the stoker that wrote it" in result.stderr
    assert len(result.stderr.strip().splitlines()) == 1


def test_a_working_folder_that_is_gone_is_named_and_nothing_runs(stoker: Stoker, tmp_path: Path) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    script = 'rmdir "$PWD"; exec "$@"'
    words = ["sh", "-c", script, "sh", *stoker.argv("run", "--plain", "--", "touch", str(tmp_path / "ran"))]
    result = subprocess.run(words, cwd=gone, env=stoker.env, capture_output=True, check=False)
    assert result.returncode == 125
    assert result.stderr == b"stoker: the working folder is gone; cd to one that exists\n"
    assert not (tmp_path / "ran").exists()


def test_what_a_journal_says_reaches_the_terminal_only_as_text(stoker: Stoker, tmp_path: Path) -> None:
    journal = tmp_path / "hostile.jsonl"
    tools = '{"\\u001b]0;PWNED\\u0007\\u001b[31m\\nhat": "x"}'
    journal.write_text(
        f'{{"v":1,"seq":1,"t":1,"type":"scheduler_planned","sid":1,"total":1,"source":"status","tools":{tools}}}\n'
    )
    result = stoker.run("replay", "--plain", str(journal))
    assert result.returncode == 1
    assert b"is not a readable journal" in result.stderr
    assert result.stderr.decode().removesuffix("\n").isprintable()


def test_help_spells_names_as_they_are_spelt(stoker: Stoker) -> None:
    assert b"Check whether binaries will run, and on which GPUs" in stoker.run("verify", "--help").stdout


ODD = "1" * 401
"""A number with which nobody can calculate."""


@pytest.fixture
def odd_builds(stoker: Stoker) -> Iterator[None]:
    """A build `odd` full of such numbers, and `pipe`, whose files let every reader wait."""
    odd, pipe = stoker.folder("odd"), stoker.folder("pipe")
    for folder in (odd, pipe):
        folder.mkdir(parents=True)
        (folder / "spec.json").write_text(f'{{"name":"odd","cwd":"{stoker.root}","created":{ODD},"since":{ODD}}}')
        (folder / "exit.json").write_text(f'{{"exit_code":{ODD},"signal":null,"ended":{ODD},"stopped":false}}')
    begin = '{"v":1,"seq":1,"t":5,"type":"build_started","id":"odd","name":"odd","command":["x"],"cwd":"/"'
    begin += ',"log_path":"/l","host":"h","cores":2,"memory_total":1,"version":"0.1.0"}'
    (odd / "journal.jsonl").write_text(f'{begin}\n{{"v":1,"seq":2,"t":{ODD},"type":"scheduler_ended","sid":1}}\n')
    for name in ("journal.jsonl", "supervisor.json"):
        os.mkfifo(pipe / name)
    yield
    shutil.rmtree(pipe)


@pytest.mark.usefixtures("odd_builds")
def test_a_damaged_build_costs_itself_and_nothing_else(stoker: Stoker) -> None:
    assert stoker.run("run", "--plain", "--", "true").returncode == 0
    listed = stoker.run("ls").stdout.decode()
    assert {"odd", "pipe"} < set(listed.split())
    assert json.loads(stoker.run("status", "--json", "odd").stdout)["state"] == "failed"
    assert b"odd" in stoker.run("events", "odd").stdout
    for words in (["status", "pipe"], ["events", "pipe"], ["attach", "--plain", "pipe"], ["replay", "pipe"]):
        result = stoker.run(*words)
        assert result.returncode == 1
        assert b"this is not a regular file" in result.stderr
        assert len(result.stderr.strip().splitlines()) == 1
