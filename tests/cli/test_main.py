"""What the program says of itself: help, version, completions, and what it would do."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from stoker import __version__
from stoker.cli.main import COMMANDS
from support.program import Stoker, until
from support.terminal import Terminal


def test_a_bare_call_in_a_pipe_is_help(stoker: Stoker) -> None:
    done = stoker.run()
    assert done.returncode == 0
    assert done.stdout == stoker.run("help").stdout == stoker.run("--help").stdout
    assert all(re.search(rf"^    {name}\b", done.stdout.decode(), re.MULTILINE) for name in COMMANDS)


@pytest.mark.parametrize(("command", "last"), [("log", True), ("status", True), ("stop", False)])
def test_help_says_which_build_is_meant_without_an_id(stoker: Stoker, command: str, last: bool) -> None:
    said = " ".join(stoker.run(command, "--help").stdout.decode().split())
    assert ("(default: the running build, else the last one)" in said) is last
    assert ("(default: the running build)" in said) is not last


def test_help_of_a_command_is_its_own(stoker: Stoker) -> None:
    assert stoker.run("help", "run").stdout == stoker.run("run", "--help").stdout
    wrong = stoker.run("help", "no\x1bthing")
    assert (wrong.returncode, wrong.stderr.count(b"\n"), b"\x1b" in wrong.stderr) == (2, 1, False)


def test_the_version_in_three_ways(stoker: Stoker) -> None:
    assert stoker.run("version").stdout == stoker.run("--version").stdout == f"stoker {__version__}\n".encode()


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completions_know_every_command(stoker: Stoker, shell: str) -> None:
    script = stoker.run("completion", shell).stdout.decode()
    assert all(name in script for name in COMMANDS)
    assert "detach" in script


def test_bash_completes_a_command(stoker: Stoker) -> None:
    script = stoker.root / "completion"
    script.write_bytes(stoker.run("completion", "bash").stdout)
    words = "COMP_WORDS=(stoker dia); COMP_CWORD=1; COMP_LINE='stoker dia'; _shtab_stoker; echo ${COMPREPLY[@]}"
    done = subprocess.run(["bash", "-c", f". {script}; {words}"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "diagnose"


def test_the_manual_page_has_all_commands(stoker: Stoker) -> None:
    page = stoker.run("help", "--man").stdout.decode()
    assert page.startswith(".TH")
    assert all(name in page for name in COMMANDS)


def test_a_dry_run_says_what_would_run_and_runs_nothing(stoker: Stoker, tmp_path: Path) -> None:
    done = stoker.run("run", "--dry-run", "--notify", "touch n", "-j", "3", "--", "touch", "a b", cwd=tmp_path)
    assert done.returncode == 0
    said = done.stdout.decode()
    assert "touch 'a b'" in said
    assert f"in {tmp_path}" in said
    assert "3 jobs" in said
    assert "notify   touch n\n" in said
    assert not (tmp_path / "a b").exists()
    assert not list(stoker.state.glob("stoker/builds/*"))


@pytest.mark.parametrize(
    ("command", "variables", "width"),
    [("ninja -j4", {}, 4), ("make -j4", {}, 4), ("make", {"MAKEFLAGS": "-j3"}, 3), ("sh run", {"MAX_JOBS": "2"}, 2)],
)
def test_a_dry_run_gives_a_scheduler_the_width_that_it_really_gets(
    stoker: Stoker, tmp_path: Path, command: str, variables: dict[str, str], width: int
) -> None:
    (tmp_path / "build.ninja").write_text("rule r\n  command = sleep 1\nbuild a: r\n")
    (tmp_path / "Makefile").write_text("a:\n\tsleep 1\n")
    (tmp_path / "run").write_text("exec ninja -j $MAX_JOBS\n")
    argv = ["run", "-j", "9", "--", *command.split()]
    said = stoker.run("run", "--dry-run", *argv[1:], cwd=tmp_path, **variables).stdout.decode()
    assert f"9 jobs; a ninja or make may start {width} at once" in said
    assert "to let stoker decide" in said
    assert "-j72" not in said
    stoker.run("run", "--plain", *argv[1:], cwd=tmp_path, **variables)
    found = next(e for e in stoker.events(stoker.status()["id"]) if e["type"] == "scheduler_started")
    assert found["width"] == width


@pytest.mark.parametrize(
    ("command", "missing"),
    [
        ("ninja -C nope", "no folder nope"),
        ("ninja -C sub", "no build.ninja in"),
        ("make -C nope", "no folder nope"),
        ("make -C sub", "no makefile in"),
        ("cmake --build nope", "cmake -S . -B nope"),
        ("cmake --build sub", "no CMakeCache.txt in sub"),
    ],
)
def test_a_dry_run_of_what_cannot_begin_warns(stoker: Stoker, tmp_path: Path, command: str, missing: str) -> None:
    (tmp_path / "sub").mkdir()
    said = stoker.run("run", "--dry-run", "--", *command.split(), cwd=tmp_path).stdout.decode()
    warnings = [line for line in said.splitlines() if line.startswith("warning")]
    assert len(warnings) == 1
    assert missing in warnings[0]


@pytest.mark.parametrize("command", ["ninja", "ninja -f x.ninja", "make", "make prog", "cmake --build .", "sh -c :"])
def test_a_dry_run_of_what_can_begin_does_not_warn(stoker: Stoker, tmp_path: Path, command: str) -> None:
    for name in ("build.ninja", "x.ninja", "GNUmakefile", "CMakeCache.txt"):
        (tmp_path / name).touch()
    assert b"warning" not in stoker.run("run", "--dry-run", "--", *command.split(), cwd=tmp_path).stdout


def test_a_dry_run_of_a_profile_names_its_steps_and_environment(stoker: Stoker, tmp_path: Path) -> None:
    done = stoker.run("run", "--dry-run", "--no-doctor", "-p", "flash-attention", "--set", "arch=80", cwd=tmp_path)
    assert "FLASH_ATTN_CUDA_ARCHS=80" in done.stdout.decode()
    assert "pip wheel" in done.stdout.decode()


def test_events_narrate_and_their_json_is_the_journal(stoker: Stoker, tmp_path: Path) -> None:
    (tmp_path / "build.ninja").write_text("rule r\n  command = exit 3\nbuild broken.o: r\n")
    stoker.run("run", "--plain", "--", "ninja", cwd=tmp_path)
    said = stoker.run("events").stdout.decode()
    assert "broken.o" in said
    assert "failed" in said
    assert "{" not in said
    lines = stoker.run("events", "--json").stdout.splitlines()
    assert len(lines) == len((stoker.folder(stoker.status()["id"]) / "journal.jsonl").read_bytes().splitlines())


def test_history_names_its_columns_and_what_has_not_ended(stoker: Stoker) -> None:
    stoker.run("run", "--plain", "--", "true")
    running = stoker.detach("sleep", "600")
    done = stoker.run("history")
    heads = done.stdout.decode().splitlines()[0].split()
    assert heads == ["began", "ID", "took", "usual", "jobs", "memory", "cached", "outcome", "command"]
    assert f"{running} has not ended yet; see: stoker ls" in done.stderr.decode()
    assert stoker.run("stop", "--force", running).returncode == 0
    stoker.ended(running)
    assert b"not ended" not in stoker.run("history").stderr


def leave_after(terminal: Terminal, shown: str) -> None:
    """Wait for the build that the cursor was on, go back to the list, and leave."""
    until(lambda: shown in terminal.display, "the build at the cursor")
    terminal.send("q")
    until(lambda: "newer" in terminal.display and "builds continue" in terminal.display, "the list again")
    terminal.send("q")
    assert terminal.wait() == 0


def test_home_lists_builds_and_enter_looks_at_one(stoker: Stoker) -> None:
    stoker.run("run", "--plain", "--name", "older", "--", "sleep", "2")  # what is over at once is hidden
    stoker.run("run", "--plain", "--name", "newer", "--", "false")
    terminal = Terminal(stoker.argv(), {**stoker.env, "LC_ALL": "C.UTF-8"}, stoker.root)
    try:
        until(lambda: "older" in terminal.display and "newer" in terminal.display, "the list")
        terminal.send("j")
        terminal.send("\r")
        leave_after(terminal, "✓ done   older")
    finally:
        terminal.close()


def test_keys_typed_before_the_list_is_there_count(stoker: Stoker) -> None:
    stoker.run("run", "--plain", "--name", "older", "--", "sh", "-c", "sleep 2; exit 1")
    stoker.run("run", "--plain", "--name", "newer", "--", "false")
    terminal = Terminal(stoker.argv(), {**stoker.env, "LC_ALL": "C.UTF-8"}, stoker.root)
    try:
        terminal.send("j\r")
        leave_after(terminal, "✗ failed   older")
    finally:
        terminal.close()


def test_garbage_is_searched_for_once_the_program_is_loaded() -> None:
    look = "import gc, stoker.cli.entry as e; e.main(); print(gc.isenabled(), gc.get_freeze_count() > 1000)"
    done = subprocess.run([sys.executable, "-P", "-c", look, "version"], capture_output=True, check=True)
    assert done.stdout.split()[-2:] == [b"True", b"True"]


def test_a_build_starts_before_what_its_viewer_needs_is_loaded() -> None:
    """Loading an event loop takes a third of the time to the build's start; beside the engine's start it costs none."""
    look = "import sys, stoker.cli.main, stoker.cli.commands.run; print('asyncio' in sys.modules)"
    assert subprocess.run([sys.executable, "-P", "-c", look], capture_output=True, check=True).stdout == b"False\n"
