"""`stoker diagnose` of a build that stoker ran, by its name."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import pytest

from support.program import PYPI_NINJA, Stoker, until, write_ninja


def test_the_output_of_a_build_by_its_name(stoker: Stoker) -> None:
    words = "echo 'nvcc fatal   : Unsupported gpu architecture '\\''compute_120'\\'; exit 1"
    assert stoker.run("run", "--plain", "--name", "kernels", "--", "sh", "-c", words).returncode == 1
    told = stoker.run("diagnose", "--json", "kernels")
    assert told.returncode == 0, told.stderr
    assert json.loads(told.stdout)["matches"][0]["rule"] == "unsupported-gpu-architecture"
    assert stoker.run("diagnose", "nothing-of-this-name").returncode == 2


@pytest.mark.long
def test_without_a_name_the_newest_build_is_meant_or_what_is_piped_in(stoker: Stoker) -> None:
    assert b"there is no build yet" in stoker.run("diagnose").stderr
    for word in ("virtual memory exhausted: Cannot allocate memory", "error: RPC failed; HTTP 429"):
        stoker.run("run", "--plain", "--name", "b", "--", "sh", "-c", f"echo '{word}'; exit 1")
    (newest, _) = json.loads(stoker.run("ls", "--json").stdout)
    told = stoker.run("diagnose")
    assert told.stderr == f"stoker: {newest['id']}:\n".encode()
    assert b"HTTP 429" in told.stdout
    piped = subprocess.run(
        stoker.argv("diagnose"),
        env=stoker.env,
        input=b"a.c:1:1: error: no such name\n",
        capture_output=True,
        check=False,
    )
    assert piped.stderr == b"stoker: the log that comes in by stdin:\n"
    assert piped.stdout.startswith(b"The source does not compile")


def test_a_build_that_failed_names_its_cause_and_where_to_ask_further(stoker: Stoker, tmp_path: Path) -> None:
    (tmp_path / "a.cpp").write_text("#include <ofnobody.h>\n")
    (tmp_path / "build.ninja").write_text("rule cc\n  command = g++ -c a.cpp -o a.o\nbuild a.o: cc a.cpp\n")
    ran = stoker.run("run", "--plain", "--name", "mpi", "--", "ninja")
    assert ran.returncode == 1
    said = ran.stderr.decode()
    assert "stoker: A header is missing (several possible causes); what to do: stoker diagnose mpi-" in said, said
    assert " of the output: a.cpp:1:10: fatal error: ofnobody.h: No such file or directory\n" in said, said
    assert said.count("exit status 1") == 1, said
    told = stoker.run("diagnose", "mpi")
    assert told.stdout.startswith(b"A header is missing (several possible causes)  [missing-header]\n  line ")


@pytest.mark.long
def test_what_was_mended_by_running_the_step_again_is_not_the_cause(stoker: Stoker, tmp_path: Path) -> None:
    # The first attempt's compiler is refused memory, by its own words; the second meets a real error. Both at once: the
    # first may end before anybody has seen it, the second before it is known that it has begun.
    (tmp_path / "cc.sh").write_text(
        "if [ -e tried ]; then echo 'a.cpp:3:12: error: no such name'; exit 1; fi\n"
        "touch tried; echo 'virtual memory exhausted: Cannot allocate memory'; exit 1\n"
    )
    (tmp_path / "build.ninja").write_text("rule cc\n  command = sh cc.sh\nbuild a.o: cc\n")
    assert stoker.run("run", "--plain", "--name", "again", "--", "ninja").returncode == 1
    output = next(stoker.state.glob("stoker/builds/again*/output.log")).read_text().splitlines()
    assert "virtual memory exhausted: Cannot allocate memory" in output
    (match,) = json.loads(stoker.run("diagnose", "--json", "again").stdout)["matches"]
    assert match["rule"] == "compile-error"
    assert output[match["line"] - 1].endswith("no such name")


@pytest.mark.long
def test_a_folder_of_the_same_name_does_not_hide_the_build(stoker: Stoker, tmp_path: Path) -> None:
    (tmp_path / "project").mkdir()
    words = "echo 'virtual memory exhausted: Cannot allocate memory'; exit 1"
    for _ in range(2):
        stoker.run("run", "--plain", "--", "sh", "-c", words, cwd=tmp_path / "project")
    told = stoker.run("diagnose", "--json", "project")
    assert [match["rule"] for match in json.loads(told.stdout)["matches"]] == ["memory-refused"], told.stderr
    (tmp_path / "empty").mkdir()
    assert b"empty: holds no logs" in stoker.run("diagnose", "empty").stderr
    assert b"project: holds no logs" in stoker.run("diagnose", "./project").stderr
    assert b"'projec' may mean several builds" in stoker.run("diagnose", "projec").stderr


def write_manifest(folder: Path) -> None:
    """One compiler that takes a while to meet an error, and some beside it."""
    (folder / "a.cpp").write_text("#include <bits/stdc++.h>\nint a = no_such_name;\n")
    (folder / "b.cpp").write_text("#include <bits/stdc++.h>\nint b;\n")
    outputs = ["a.o", *(f"b{n}.o" for n in range(6))]
    write_ninja(folder, [(output, f"g++ -c {output[0]}.cpp -o {output}") for output in outputs])


@pytest.mark.long
def test_jobs_that_stoker_dropped_after_an_error_are_no_cause(stoker: Stoker, tmp_path: Path) -> None:
    write_manifest(tmp_path)
    ran = stoker.run("run", "--plain", "--name", "broken", "-j", "1", "--", PYPI_NINJA)
    assert b" jobs on deck (a.o failed" in ran.stderr, ran.stderr
    assert b"[code=137]" in stoker.run("log", "--raw", "broken").stdout
    assert b"[code=137]" not in ran.stdout, ran.stdout
    assert b"stoker: The source does not compile" in ran.stderr, ran.stderr
    (cause,) = json.loads(stoker.run("diagnose", "--json", "broken").stdout)["matches"]
    assert cause["rule"] == "compile-error"
    (build,) = stoker.state.glob("stoker/builds/broken*")
    told = (build / "journal.jsonl").read_bytes().splitlines(keepends=True)
    (build / "journal.jsonl").write_bytes(b"".join(line for line in told if b'"type":"diagnosed"' not in line))
    (cause,) = json.loads(stoker.run("diagnose", "--json", "broken").stdout)["matches"]
    assert cause["rule"] == "compile-error", "nor without the journal's diagnosis"


@pytest.mark.long
def test_a_failure_stands_before_a_kill_that_was_not_the_kernels(stoker: Stoker, tmp_path: Path) -> None:
    killed = "echo 'g++: fatal error: Killed signal terminated program cc1plus'; touch dead; exit 1"
    error = "b.cpp:3:10: fatal error: n.h: No such file or directory"
    broken = f"until [ -e dead ]; do sleep 0.05; done; echo '{error}'; exit 1"
    write_ninja(tmp_path, [("o1", killed), ("o2", broken)])
    ran = stoker.run("run", "--plain", "--name", "both", "-j", "2", "--", PYPI_NINJA, "-k0")
    assert b"kernel" not in ran.stderr, ran.stderr
    assert b"  cause     A header is missing" in stoker.run("status", "both").stdout
    (build,) = stoker.state.glob("stoker/builds/both*")
    journal = build / "journal.jsonl"
    for _ in ("with the journal's diagnosis", "without"):
        causes = json.loads(stoker.run("diagnose", "--json", "both").stdout)["matches"]
        assert [cause["rule"] for cause in causes] == ["missing-header", "compiler-killed"]
        assert causes[1]["title"] == "A job was killed, and not by the kernel for lack of memory"
        lines = journal.read_bytes().splitlines(keepends=True)
        journal.write_bytes(b"".join(line for line in lines if b'"type":"diagnosed"' not in line))
    bare = stoker.run("diagnose", str(build / "output.log")).stdout
    assert b"Out of memory: the kernel killed a compiler" in bare, "a bare log knows no more"


def test_what_the_journal_knows_beside_the_output_is_told(stoker: Stoker, tmp_path: Path) -> None:
    assert stoker.run("run", "--plain", "--name", "killed", "--", "sh", "-c", "exit 1").returncode == 1
    (build,) = stoker.state.glob("stoker/builds/killed*")
    lines = (build / "journal.jsonl").read_bytes().splitlines()
    at, found = next((n, r) for n, r in enumerate(map(json.loads, lines)) if r["type"] == "diagnosed")
    assert "causes" not in found["found"]
    cause = {"rule": "compiler-killed", "title": "Killed", "why": "For memory.", "remedy": "Fewer.", "job": "a.o"}
    found["found"]["causes"] = [cause]
    lines[at] = json.dumps(found).encode()
    (build / "journal.jsonl").write_bytes(b"\n".join(lines) + b"\n")
    told = stoker.run("diagnose", "killed")
    assert told.stdout.startswith(b"Killed  [compiler-killed]\n  a.o:\n  why     For memory."), told


def test_a_build_that_ended_well_has_nothing_to_diagnose_whatever_its_output_says(stoker: Stoker) -> None:
    words = "echo 'virtual memory exhausted: Cannot allocate memory'"
    assert stoker.run("run", "--plain", "--name", "fine", "--", "sh", "-c", words).returncode == 0
    told = stoker.run("diagnose", "fine")
    assert told.returncode == 1
    assert b"succeeded" in told.stdout
    found = json.loads(stoker.run("diagnose", "--json", "fine").stdout)
    assert (found["matches"], found["state"]) == ([], "done")


def test_a_build_that_a_signal_ended_is_not_searched_for_an_error(stoker: Stoker) -> None:
    assert stoker.run("run", "--plain", "--name", "shot", "--", "sh", "-c", "kill -9 $$").returncode == 137
    told = stoker.run("diagnose", "shot").stdout.decode()
    assert "no job failed: somebody else ended the command by SIGKILL" in told
    assert "look for" not in told


@pytest.mark.long
def test_a_build_that_still_runs_is_said_to(stoker: Stoker, tmp_path: Path) -> None:
    wait = "while [ ! -e go ]; do sleep 0.05; done"
    folder = write_ninja(tmp_path / "p", [("o1", "echo 'a.c:1:1: error: no such name'; exit 1"), ("o2", wait)])
    build = stoker.detach(PYPI_NINJA, "-C", str(folder), "-k0", jobs=2)
    try:
        until(lambda: stoker.status(build)["progress"]["failed"] == 1, "the failure of a job")
        told = stoker.run("diagnose", build)
        assert told.returncode == 0
        assert b"still runs" in told.stderr
        assert b"no such name" in told.stdout
    finally:
        (folder / "go").touch()
    stoker.ended(build)
    (folder / "build.ninja").unlink()
    (folder / "go").unlink()
    write_ninja(folder, [("o2", wait)])
    build = stoker.detach(PYPI_NINJA, "-C", str(folder))
    try:
        until(lambda: stoker.status(build)["progress"]["running"] == 1, "a running job")
        told = stoker.run("diagnose", build)
        assert (told.returncode, b"still runs, and nothing has failed so far" in told.stdout) == (1, True)
    finally:
        (folder / "go").touch()
    stoker.ended(build)


def test_ninjas_own_errors_are_known_causes(stoker: Stoker, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "p", [("o1", "touch o1")])
    for words, rule in (
        (("-C", str(folder), "nosuch"), "ninja-unknown-target"),
        (("-C", str(tmp_path / "gone")), "ninja-no-folder"),
    ):
        assert stoker.run("run", "--plain", "--", PYPI_NINJA, *words).returncode == 1
        assert [m["rule"] for m in json.loads(stoker.run("diagnose", "--json").stdout)["matches"]] == [rule]
