"""The same command is not started a second time in the folder where it runs, unless it is asked for."""

from __future__ import annotations

import shlex
from pathlib import Path

import pytest

from stoker.launch.duplicate import place
from support.program import Stoker
from support.terminal import Terminal

COMMAND = ("sleep", "600")


@pytest.mark.parametrize("how", ["--plain", "--json", "--detach"])
def test_a_second_build_is_refused_with_what_to_do(stoker: Stoker, how: str) -> None:
    first = stoker.detach(*COMMAND)
    second = stoker.run("run", how, "--", *COMMAND)
    said = second.stderr.decode()
    assert (second.returncode, second.stdout, said.count("\n")) == (125, b"", 1)
    assert said.startswith(f"stoker: {first} runs the same command in the same folder since ")
    assert f"stoker attach {first}, or start it anyway with: stoker run --again {how} -- sleep 600\n" in said
    assert [path.name for path in stoker.state.glob("stoker/builds/*")] == [first]


def test_the_command_to_start_it_anyway_can_be_copied(stoker: Stoker) -> None:
    command = ("sh", "-c", "sleep 600 # it's long")
    first = stoker.detach(*command)
    said = stoker.run("run", "--detach", "-j", "2", "--name", "my own", "--", *command).stderr.decode()
    copied = shlex.split(said.partition("anyway with: ")[2])
    assert copied == ["stoker", "run", "--again", "--detach", "-j", "2", "--name", "my own", "--", *command]
    again = stoker.run(*copied[1:])
    assert (again.returncode, again.stdout.decode().strip() != first) == (0, True)


@pytest.mark.parametrize("words", [("x" * 5000,), ("two\nlines",)])
def test_a_command_that_fits_no_line_is_not_printed(stoker: Stoker, words: tuple[str, ...]) -> None:
    command = ("sh", "-c", "sleep 600", *words)
    stoker.detach(*command)
    said = stoker.run("run", "--detach", "--", *command).stderr.decode()
    assert said.endswith("anyway with: stoker run --again, and the rest as before\n")
    assert said.count("\n") == 1


def test_on_a_terminal_nothing_is_asked(stoker: Stoker) -> None:
    first = stoker.detach(*COMMAND)
    terminal = Terminal(stoker.argv("run", "--", *COMMAND), {**stoker.env, "LC_ALL": "C.UTF-8"}, stoker.root)
    try:
        assert terminal.wait() == 125
        assert f"{first} runs the same command in the same folder" in terminal.display.replace("\n", "")
    finally:
        terminal.close()


@pytest.mark.long
def test_another_command_another_folder_and_one_that_has_ended_are_none(stoker: Stoker, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    stoker.detach(*COMMAND)
    assert stoker.detach("sleep", "601")
    assert stoker.detach(*COMMAND, cwd=tmp_path / "other")
    assert stoker.run("run", "--again", "--detach", "--", *COMMAND).returncode == 0
    for _ in range(2):
        assert stoker.run("run", "--plain", "--", "true").returncode == 0


def test_another_command_of_the_same_tool_in_the_same_folder_is_named(stoker: Stoker, tmp_path: Path) -> None:
    """As `make -j` beside `make`: nothing locks the folder."""
    folder, other = tmp_path / "here", tmp_path / "other"
    for made in (folder, other):
        made.mkdir()
        (made / "Makefile").write_text("all:\n\tsleep 600\nnothing:\n\t@true\n")
    first = stoker.detach("make", cwd=folder)
    warning = f"{first} builds in this folder too, with make: both may write the same files"
    beside = stoker.run("run", "--detach", "--", "make", "nothing", cwd=folder)
    assert beside.stderr.decode() == f"stoker: warning: {warning}\n"
    assert stoker.run("run", "--detach", "--", "make", "nothing", cwd=other).stderr == b""
    watched = stoker.run("run", "--plain", "--", "make", "nothing", "-s", cwd=folder)
    assert warning in watched.stderr.decode()


def test_two_scripts_may_do_anything(stoker: Stoker) -> None:
    stoker.detach(*COMMAND)
    assert stoker.run("run", "--detach", "--", "sleep", "601").stderr == b""


@pytest.mark.parametrize(
    ("words", "other"),
    [(("ninja", "-C", "out"), ("ninja", "-C", "out", "all")), (("make",), ("/usr/bin/make", "--directory", "."))],
)
def test_the_folder_is_the_one_that_the_tool_builds_in(words: tuple[str, ...], other: tuple[str, ...]) -> None:
    assert place(words, "/src") == place(other, "/src")
    assert place(("ninja", "-C", "other"), "/src") != place(("ninja", "-C", "out"), "/src")
    assert place(words, "/src") != place(words, "/elsewhere")
