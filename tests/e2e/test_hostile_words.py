"""No word that a person, a script or a file name gives a command reaches a terminal as anything but text."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from stoker.cli.main import COMMANDS
from support.program import Stoker
from support.terminal import Terminal, harmful

EVIL = "no\x1b[31;5m\x1b]0;gotcha\x07\x9b2J\u202e\r\x1b[2Jname"

HARMFUL = re.compile(r"[^\n\x20-\x7e\u2010-\u2027\u2190-\u2bff\ufffd]")
"""Whatever no message of ours has; without colours, which nobody has asked for on a pipe."""

WORDS: dict[str, list[list[str]]] = {
    "run": [
        [EVIL],
        ["--", EVIL],
        ["--", f"./{EVIL}"],
        ["-p", EVIL],
        ["-j", EVIL, "--", "true"],
        ["--memory", EVIL, "--", "true"],
        ["--plain", "--name", EVIL, "--", "true", EVIL],
        ["--json", "--name", EVIL, "--", "true", EVIL],
        ["--resume", EVIL],
        [f"--{EVIL}"],
        ["--theme", EVIL, "--", "true"],
    ],
    "demo": [["--seconds", EVIL], [EVIL], ["-j", EVIL]],
    "attach": [[EVIL], ["--theme", EVIL, EVIL]],
    "ls": [[EVIL], []],
    "status": [[EVIL], []],
    "log": [[EVIL]],
    "events": [[EVIL]],
    "jobs": [[EVIL], [EVIL, "3"]],
    "pause": [[EVIL]],
    "unpause": [[EVIL]],
    "stop": [[EVIL]],
    "freeze": [[EVIL], [EVIL, EVIL]],
    "thaw": [[EVIL], [EVIL, EVIL]],
    "replay": [[EVIL], ["EVIL FILE"], ["EVIL FILE", "--speed", EVIL]],
    "verify": [[EVIL], ["EVIL FILE"], ["--device", EVIL, "EVIL FILE"], ["--arch-list", EVIL, "EVIL FILE"]],
    "doctor": [[EVIL], ["-p", EVIL]],
    "diagnose": [[EVIL], ["EVIL FILE"]],
    "simulate": [["EVIL FILE", "--ram", "64G", "--cores", "4"], [EVIL, "--ram", EVIL], [EVIL, "--policy", EVIL]],
    "history": [[EVIL]],
    "profiles": [["show", EVIL], ["check", "EVIL FILE"], [EVIL]],
    "home": [["--theme", EVIL], [EVIL]],
    "rules": [["check", "EVIL FILE"], ["try", EVIL], [EVIL]],
    "completion": [[EVIL]],
    "help": [[EVIL], ["--man", EVIL]],
    "report": [[EVIL], ["EVIL FILE"], ["EVIL FILE", "-o", "-"]],
    "export": [[EVIL], ["EVIL FILE"], ["EVIL FILE", "--format", EVIL]],
    "compare": [[EVIL, EVIL], ["EVIL FILE", EVIL], ["EVIL FILE", "EVIL FILE", "--fail-above", EVIL]],
    "package": [[EVIL], ["EVIL FILE", "--mode", "pypi"], ["EVIL FILE", "--mode", EVIL], [EVIL, "--mode", "bundle"]],
    "version": [[EVIL]],
    "themes": [["check", "EVIL FILE"], [EVIL]],
    EVIL: [[]],
}
"""Words for each command; EVIL FILE is a file of that name that is nothing of what a command wants."""


@pytest.fixture
def evil_file(tmp_path: Path) -> str:
    file = tmp_path / EVIL.replace("/", "_")
    file.write_text(f"{EVIL}: error: {EVIL}\n{{}}\n")
    return str(file)


def test_each_command_is_tried() -> None:
    assert set(WORDS) >= set(COMMANDS)


@pytest.mark.parametrize("command", WORDS, ids=lambda c: c if c.isalpha() else "no command")
def test_hostile_words_are_answered_in_harmless_ones(stoker: Stoker, command: str, evil_file: str) -> None:
    for words in WORDS[command]:
        given = [evil_file if word == "EVIL FILE" else word for word in words]
        result = stoker.run(command, *given)
        text = (result.stdout + result.stderr).decode()
        assert HARMFUL.findall(text) == [], (words, text)
        assert "Traceback" not in text


@pytest.mark.parametrize(
    "words", [["replay", "EVIL FILE"], ["attach", EVIL], ["run", "-p", EVIL]], ids=["replay", "attach", "run"]
)
def test_on_a_terminal_too(stoker: Stoker, evil_file: str, words: list[str]) -> None:
    given = [evil_file if word == "EVIL FILE" else word for word in words]
    terminal = Terminal(stoker.argv(*given), {**stoker.env, "LC_ALL": "C.UTF-8"}, stoker.root, columns=200)
    try:
        assert terminal.wait() not in (0, -9)
        assert harmful(terminal.raw) == []
        assert len(terminal.raw) < 2000, "one line that says what is wrong, and no traceback"
        assert terminal.restored
    finally:
        terminal.close()
