"""What a terminal shows where the locale is not UTF-8: ASCII, on every screen and in plain lines."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from support.program import Stoker, write_ninja
from support.terminal import Terminal

WAIT = "while [ ! -e go ]; do sleep 0.2; done"
C_LOCALES = [{"LANG": "C"}, {"LANG": "C.UTF-8", "LC_ALL": "POSIX"}, {"LANG": ""}]
UTF_8 = {"LANG": "C", "LC_CTYPE": "C.UTF-8"}


def opened(stoker: Stoker, locale: dict[str, str], *words: str) -> Terminal:
    clean = {name: value for name, value in stoker.env.items() if name != "LANG" and not name.startswith("LC_")}
    return Terminal(stoker.argv(*words), {**clean, **locale}, stoker.root)


@pytest.mark.parametrize(
    "locale",
    [C_LOCALES[0], *(pytest.param(locale, marks=pytest.mark.long) for locale in C_LOCALES[1:]), UTF_8],
    ids=lambda found: " ".join(f"{k}={v}" for k, v in found.items()),
)
def test_lines_and_blocks_are_drawn_only_where_the_locale_has_them(
    stoker: Stoker, tmp_path: Path, locale: dict[str, str]
) -> None:
    folder = write_ninja(tmp_path / "p", [("o1", f"{WAIT}; touch o1")])
    terminal = opened(stoker, locale, "run", "--", "ninja", "-C", str(folder))
    try:
        terminal.wait_for(re.compile(r"^jobs .*1 running", re.MULTILINE).search)
        terminal.send("?")
        terminal.wait_for("everywhere")
        assert terminal.raw.isascii() == (locale != UTF_8)
        (folder / "go").touch()
        terminal.send("\x1b")
        terminal.wait_for("exit code 0")
        assert terminal.raw.isascii() == (locale != UTF_8)
    finally:
        terminal.close()


def test_plain_lines_on_such_a_terminal_are_ascii_and_elsewhere_what_the_build_wrote(stoker: Stoker) -> None:
    words = ("run", "--plain", "--name", "größer", "--", "sh", "-c", "echo ‘a’ → é")
    terminal = opened(stoker, {"LANG": "C"}, *words)
    try:
        assert terminal.wait() == 0
        assert terminal.raw.isascii()
        assert b"'a' > ?" in terminal.raw
    finally:
        terminal.close()
    assert "‘a’ → é".encode() in stoker.run(*words, LANG="C", LC_ALL="").stdout
