"""Streams that are closed or full: one line at most, the right status, and no file written over."""

from __future__ import annotations

import fcntl
import os
import subprocess
import termios
from array import array
from functools import partial
from pathlib import Path

import pytest

from support.program import PATIENCE, Stoker, until

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


@pytest.mark.parametrize("unbuffered", ["", "1"])
def test_a_pipe_that_does_not_wait_for_its_reader_gets_every_byte(stoker: Stoker, unbuffered: str) -> None:
    said = "".join(f"{number} said\n" for number in range(30_000)).encode()
    (stoker.root / "said").write_bytes(said)
    assert stoker.run("run", "--detach", "--", "cat", str(stoker.root / "said")).returncode == 0
    until(lambda: stoker.status()["state"] == "done")
    for words in (("log",), ("attach", "--plain")):
        reader, writer = os.pipe()
        os.set_blocking(writer, False)
        env = {**stoker.env, "PYTHONUNBUFFERED": unbuffered}
        program = subprocess.Popen(stoker.argv(*words), stdout=writer, stderr=subprocess.PIPE, cwd=stoker.root, env=env)
        until(partial(is_full, reader))
        os.close(writer)
        with os.fdopen(reader, "rb") as pipe:
            assert pipe.read() == said
        _, complaints = program.communicate(timeout=PATIENCE)
        assert program.returncode == 0, complaints


def is_full(reader: int) -> bool:
    """Whether a pipe holds all that it can, as nobody reads."""
    unread = array("i", [0])
    fcntl.ioctl(reader, termios.FIONREAD, unread)
    return unread[0] >= fcntl.fcntl(reader, fcntl.F_GETPIPE_SZ)


def test_a_locale_without_our_characters_costs_no_answer(stoker: Stoker) -> None:
    stoker.run("run", "--plain", "--", "sh", "-c", "echo a → b")
    result = stoker.run("status", PYTHONIOENCODING="latin-1")
    assert (result.returncode, result.stderr) == (0, b"")
    assert b"echo a ? b" in result.stdout
    assert stoker.run("events", PYTHONIOENCODING="ascii").returncode == 0
