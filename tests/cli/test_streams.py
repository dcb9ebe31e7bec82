"""Streams that are closed or full: one line at most, the right status, and no file written over."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from support.program import PATIENCE, Stoker

FULL = Path("/dev/full")


def shell(stoker: Stoker, redirections: str, *words: str) -> subprocess.CompletedProcess[bytes]:
    """The program with its streams as a shell's redirections make them."""
    command = ["sh", "-c", f'"$@" {redirections}', "sh", *stoker.argv(*words)]
    return subprocess.run(command, cwd=stoker.root, env=stoker.env, capture_output=True, timeout=PATIENCE, check=False)


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
def test_a_build_runs_without_the_streams_that_its_starter_has_closed(stoker: Stoker, closed: str) -> None:
    result = shell(stoker, closed, "run", "--plain", "--", "sh", "-c", "echo said; exit 3")
    assert result.returncode == 3
    assert b"Traceback" not in result.stderr
    status = stoker.status()
    assert (stoker.folder(status["id"]) / "output.log").read_bytes() == b"said\n"
    assert b"Traceback" not in (stoker.folder(status["id"]) / "engine.log").read_bytes()


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("words", [("profiles", "list"), ("profiles", "schema"), ("ls", "--json")])
def test_an_answer_that_goes_to_a_full_disk_is_one_line_and_a_failure(stoker: Stoker, words: tuple[str, ...]) -> None:
    result = shell(stoker, f"> {FULL}", *words)
    assert result.returncode == 1
    assert result.stderr == b"stoker: writing the answer: No space left on device\n"


def test_a_locale_without_our_characters_costs_no_answer(stoker: Stoker) -> None:
    stoker.run("run", "--plain", "--", "sh", "-c", "echo a → b")
    result = stoker.run("status", PYTHONIOENCODING="latin-1")
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"echo a ? b" in result.stdout
    assert stoker.run("events", PYTHONIOENCODING="ascii").returncode == 0
