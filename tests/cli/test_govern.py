"""`jobs`, `pause`, `unpause` and the limits of `run`, with a real build behind them."""

from __future__ import annotations

import json
import os
import re
import signal
from pathlib import Path

import pytest

from stoker.act.tree import descendants
from stoker.contract.process import stat_fields
from support.program import PYPI_NINJA, Stoker, stop_supervisors, until, write_ninja

pytestmark = pytest.mark.timeout(120)

WAIT = "while [ ! -e go ]; do sleep 0.05; done"
"""A job that lasts until the test touches `go`."""

COUNT = 6


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return write_ninja(tmp_path / "p", [(f"o{n}", f"{WAIT}; touch o{n}") for n in range(COUNT)])


@pytest.fixture
def build(stoker: Stoker, folder: Path) -> str:
    """Six jobs, of which two run and four wait on deck."""
    result = stoker.run("run", "--detach", "-j", "2", "--", PYPI_NINJA, "-C", str(folder))
    assert result.returncode == 0, result.stderr
    name = result.stdout.decode().strip()
    until(lambda: counts(stoker, name) == (2, COUNT - 2, 0), "two jobs at work, four on deck")
    return name


def counts(stoker: Stoker, build: str) -> tuple[int, int, int]:
    progress = stoker.status(build)["progress"]
    return progress["running"], progress["on_deck"], progress["frozen"]


def named(stoker: Stoker, build: str) -> bool:
    """Whether the outputs of all jobs are known, which takes ninja's plan."""
    return {job["output"] for job in stoker.status(build)["jobs"]} == {f"o{n}" for n in range(COUNT)}


def said(stoker: Stoker, *words: str) -> str:
    """What a command that succeeds says: one line on stderr and nothing on stdout."""
    result = stoker.run(*words)
    assert result.returncode == 0, result.stderr
    assert result.stdout == b""
    assert result.stderr.count(b"\n") == 1
    return result.stderr.decode().removeprefix("stoker: ").rstrip()


def refused(stoker: Stoker, status: int, *words: str) -> str:
    """What a command that is refused says: one line on stderr."""
    result = stoker.run(*words)
    assert (result.returncode, result.stdout) == (status, b""), result.stderr
    assert result.stderr.count(b"\n") == 1
    return result.stderr.decode()


def test_a_level_is_set_and_told(stoker: Stoker, build: str) -> None:
    assert said(stoker, "jobs", "4") == "level 4 (by hand); 4 run, 2 on deck"
    assert said(stoker, "jobs", build, "3").startswith("level 3 (by hand); 3 run, 2 on deck, 1 frozen")
    assert said(stoker, "jobs", build[:4], "4") == "level 4 (by hand); 4 run, 2 on deck"
    for words in (["jobs"], ["jobs", build]):
        told = stoker.run(*words)
        assert (told.returncode, told.stdout, told.stderr) == (0, b"level 4 (by hand); 4 run, 2 on deck\n", b"")
    assert re.fullmatch(r"level \d+ \(automatic\); .*", said(stoker, "jobs", "auto"))


def test_a_level_that_is_set_already_is_no_fault_and_no_decision(stoker: Stoker, build: str) -> None:
    assert said(stoker, "jobs", "2") == "nothing changes: level 2 (by hand); 2 run, 4 on deck"
    assert said(stoker, "jobs", "auto").startswith("level ")
    assert said(stoker, "jobs", "auto").startswith("nothing changes: level ")
    told = [e["what"] for e in stoker.events(build) if e["type"] == "decided" and e["what"].startswith("level")]
    assert len(told) == 1
    assert told[0].startswith("level 2 → automatic")


def test_memory_is_left_unguarded_only_in_so_many_words_and_guarded_again(stoker: Stoker, build: str) -> None:
    assert said(stoker, "jobs", "3", "--ignore-memory").endswith("memory is not guarded")
    assert stoker.status(build)["level"]["guarded"] is False
    assert "; memory is not guarded" in stoker.run("status", build).stdout.decode()
    assert "not guarded" not in said(stoker, "jobs", "3")
    assert stoker.status(build)["level"]["guarded"] is True


def test_a_pause_and_what_follows(stoker: Stoker, build: str, folder: Path) -> None:
    assert said(stoker, "pause").startswith("paused, nothing new starts; level 2 (by hand); 2 run, 4 on deck")
    assert "\n            and 3 more\n" in stoker.run("status").stdout.decode(), "of four on deck"
    assert "paused already" in refused(stoker, 1, "pause")
    assert said(stoker, "pause", "--now", build).startswith("everything is frozen; level 2 (by hand); 0 run, 4 on deck")
    status = stoker.run("status").stdout.decode()
    assert "; everything is frozen" in status
    assert status.count(": everything is frozen until somebody unpauses the build\n") == 2, "one for each frozen job"
    assert said(stoker, "unpause") == "level 2 (by hand); 2 run, 4 on deck"
    assert "not paused" in refused(stoker, 1, "unpause", build)
    (folder / "go").touch()
    assert stoker.ended(build)["progress"]["finished"] == COUNT
    for words in (["jobs"], ["jobs", build, "3"], ["pause", build], ["unpause", build]):
        assert "has ended already" in refused(stoker, 1, *words)


def test_one_job_is_frozen_and_thawed_by_name(stoker: Stoker, build: str, folder: Path) -> None:
    until(lambda: named(stoker, build), "the jobs' outputs")
    assert said(stoker, "freeze", "o0").startswith("o0 is frozen by hand; level 2 (by hand); ")
    until(lambda: stoker.status(build)["progress"]["frozen"] == 1, "one frozen job")
    (frozen,) = (job for job in stoker.status(build)["jobs"] if job["state"] == "frozen")
    assert (frozen["output"], frozen["waits_for"]) == ("o0", "person")
    assert "  frozen    o0: frozen by hand" in stoker.run("status").stdout.decode()
    assert "o0 is frozen by hand already" in refused(stoker, 1, "freeze", build, str(frozen["pid"]))
    assert said(stoker, "thaw", build, "o0").startswith("o0 runs; level 2 (by hand); ")
    assert "runs already" in refused(stoker, 1, "thaw", "o0")
    assert "no job 'o9'; jobs now: o0, " in refused(stoker, 1, "thaw", "o9")
    (folder / "go").touch()
    assert stoker.ended(build)["progress"]["finished"] == COUNT


def test_a_part_of_a_name_that_no_other_job_has_is_enough(stoker: Stoker, tmp_path: Path) -> None:
    outputs = ["src/logger.cpp.o", "src/login.cpp.o", "src/prologue.cpp.o"]
    folder = write_ninja(tmp_path / "p", [(name, f"{WAIT}; touch {name}") for name in outputs])
    name = stoker.run("run", "--detach", "-j", "3", "--", PYPI_NINJA, "-C", str(folder)).stdout.decode().strip()
    until(lambda: {job["output"] for job in stoker.status(name)["jobs"]} == set(outputs), "the jobs' outputs")
    for word in ("logger", "logger.cpp", "ogge"):
        assert said(stoker, "freeze", word).startswith("src/logger.cpp.o is frozen by hand; ")
        assert said(stoker, "thaw", word).startswith("src/logger.cpp.o runs; ")
    assert refused(stoker, 1, "freeze", "src/log").endswith(
        "'src/log' may be src/logger.cpp.o, src/login.cpp.o; write more of it\n"
    )
    assert "no job '0'; jobs now: " in refused(stoker, 1, "freeze", "0"), "a pid is given as a whole"
    (folder / "go").touch()
    assert stoker.ended(name)["progress"]["finished"] == len(outputs)


def test_a_job_that_a_pause_froze_is_frozen_by_hand_and_stays_so(stoker: Stoker, build: str, folder: Path) -> None:
    until(lambda: named(stoker, build), "the jobs' outputs")
    said(stoker, "pause", "--now")
    running = next(job["output"] for job in stoker.status(build)["jobs"] if job["state"] == "frozen")
    assert said(stoker, "freeze", running).startswith(f"{running} is frozen by hand; everything is frozen; ")
    said(stoker, "unpause")
    assert running in [job["output"] for job in stoker.status(build)["jobs"] if job["state"] == "frozen"]
    said(stoker, "thaw", running)
    (folder / "go").touch()
    assert stoker.ended(build)["progress"]["finished"] == COUNT


def test_a_job_that_was_killed_is_not_unknown(stoker: Stoker, build: str, folder: Path) -> None:
    until(lambda: named(stoker, build), "the jobs' outputs")
    victim = next(job for job in stoker.status(build)["jobs"] if job["state"] == "running")
    os.kill(victim["pid"], signal.SIGKILL)
    told = f"{victim['output']} was killed from outside; it will run again".encode()
    until(lambda: told in stoker.run("thaw", victim["output"]).stderr, "its death")
    (folder / "go").touch()
    assert stoker.ended(build)["progress"]["finished"] == COUNT


def test_status_tells_the_attempt_and_what_was_killed_before_it(stoker: Stoker, tmp_path: Path) -> None:
    killed = "{ touch dead; echo 'g++: fatal error: Killed signal terminated program cc1plus'; exit 1; }"
    command = f"[ -e dead ] || {killed}; until [ -e go ]; do sleep 0.05; done; touch o1"
    folder = write_ninja(tmp_path / "again", [("o1", command)])
    again = stoker.detach(PYPI_NINJA, "-C", str(folder), jobs=1)
    until(lambda: stoker.status(again)["step"]["attempt"] == 2, "the second attempt")
    lines = stoker.run("status", again).stdout.decode().splitlines()
    assert "  attempt   2 at this step" in lines
    assert "  killed    1 killed from outside in earlier attempts" in lines
    (folder / "go").touch()
    assert stoker.ended(again)["progress"]["finished"] == 1


def test_status_tells_level_deck_and_promise(stoker: Stoker, build: str) -> None:
    until(lambda: stoker.status(build)["memory"]["promised"], "a measurement")
    until(lambda: stoker.status(build)["progress"]["total_known"], "the number of jobs")
    lines = stoker.run("status", build).stdout.decode().splitlines()
    assert "  jobs      0/6  0 %  2 running  4 on deck  0 failed" in lines
    assert any(
        re.fullmatch(r"  level     2 \(by hand\); the build tool may start \d+, running or on deck", line)
        for line in lines
    )
    assert any(
        re.fullmatch(r"  memory    .* of .*, .* still to come of running jobs, .* in reserve", line) for line in lines
    )


def stopped(pids: list[int]) -> list[int]:
    return [pid for pid in pids if (fields := stat_fields(pid)) and fields[0] == b"T"]


def test_unpause_works_although_the_engine_hangs(stoker: Stoker, build: str, folder: Path) -> None:
    said(stoker, "pause", "--now")
    supervisor = stoker.supervisor(build)["supervisor_pid"]
    engine = stoker.engine_pid(build)
    stop_supervisors(stoker.supervisor(build))  # it would stand in for a deaf engine, and hide what is tested here
    os.kill(engine, signal.SIGSTOP)
    assert said(stoker, "unpause", build) == "level 2 (by hand); 2 run, 4 on deck"
    assert not stopped([supervisor, engine])
    (folder / "go").touch()
    assert stoker.ended(build)["progress"]["finished"] == COUNT


def test_unpause_heals_a_build_where_no_engine_is_left(stoker: Stoker, build: str, folder: Path) -> None:
    said(stoker, "pause", "--now")
    known = stoker.supervisor(build)
    stoker.kill_supervisors_and_engine(build)
    until(lambda: len(stopped(descendants(known["build_pid"]))) >= COUNT, "all of them stopped")
    assert "a watchdog and an engine take their place" in stoker.run("unpause", build).stderr.decode()
    until(lambda: b"is not paused" in stoker.run("unpause", build).stderr, "an engine that has ended the pause")
    (folder / "go").touch()
    until(lambda: all((folder / f"o{n}").exists() for n in range(COUNT)), "the end of the build")


@pytest.mark.long
def test_the_limits_of_run_reach_the_build(stoker: Stoker, folder: Path) -> None:
    def spec(*words: str) -> dict[str, object]:
        result = stoker.run("run", "--detach", *words, "--", "true")
        assert result.returncode == 0, result.stderr
        name = result.stdout.decode().strip()
        stoker.ended(name)
        value: dict[str, object] = json.loads((stoker.folder(name) / "spec.json").read_bytes())
        return value

    assert spec("-j", "12", "--memory", "3GiB")["jobs"] == 12
    assert spec("--jobs=auto", "--memory", "3GiB")["memory"] == 3 * 2**30
    plain, half, whole = spec(), spec("-j8", "--memory", "50%")["memory"], spec("--memory", "100%")["memory"]
    assert (plain["jobs"], plain["memory"]) == (None, None)
    assert isinstance(half, int)
    assert isinstance(whole, int)
    assert abs(2 * half - whole) <= 2


def test_a_name_that_two_builds_have_is_told_as_such(stoker: Stoker) -> None:
    for _ in range(2):
        assert stoker.run("run", "--again", "--detach", "--name", "twin", "--", "sleep", "600").returncode == 0
    for words in (["jobs", "twin"], ["jobs", "twin", "2"], ["pause", "twin"]):
        assert "'twin' may mean several builds; name one of twin-" in refused(stoker, 1, *words)


def test_more_memory_than_there_is_gets_one_line_with_what_counts(stoker: Stoker) -> None:
    said = stoker.run("run", "--plain", "--memory", "999T", "--", "true").stderr.decode()
    (line,) = [line for line in said.splitlines() if "--memory" in line]
    assert re.search(r"warning: --memory 999 TiB is more than .+; [0-9.]+ [MG]iB counts instead$", line)
    said = stoker.run("run", "--plain", "--memory", "100%", "--", "true").stderr.decode()
    assert "--memory" not in said
    detached = stoker.run("run", "--detach", "--memory", "999T", "--", "true")
    assert detached.stderr.decode().count("counts instead") == 1
    assert detached.stdout.count(b"\n") == 1


def test_status_names_the_running_jobs_and_why_the_first_one_waits(stoker: Stoker, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "eight", [(f"o{n}", f"{WAIT}; touch o{n}") for n in range(8)])
    build = stoker.detach(PYPI_NINJA, cwd=folder, jobs=6)
    until(lambda: stoker.status(build)["progress"]["running"] == 6, "six running jobs")
    until(lambda: any(job["waits"] for job in stoker.status(build)["jobs"]), "a reason to wait")
    until(lambda: all(re.fullmatch("o[0-7]", job["output"]) for job in stoker.status(build)["jobs"]), "planned names")
    lines = stoker.run("status", build).stdout.decode().splitlines()
    (first,) = [number for number, line in enumerate(lines) if line.startswith("  running ")]
    assert len({line.split()[-1] for line in lines[first : first + 5]} & {f"o{n}" for n in range(8)}) == 5
    assert lines[first + 5].strip() == "and 1 more"
    assert re.fullmatch(r"  on deck   o[0-7]: \S.*", lines[first + 6])
    (folder / "go").touch()
    stoker.ended(build)
    assert "  running" not in stoker.run("status", build).stdout.decode()
