"""`stoker run` against the bare thing: the same status, true counts at every moment, nothing lost."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from pathlib import Path

import psutil
import pytest

from support.program import (
    NINJAS,
    ONE_NINJA_AT_FIRST,
    PYPI_NINJA,
    Stoker,
    open_gate,
    until,
    write_ninja,
    write_project,
)


def bare(*command: str) -> int:
    return subprocess.run(command, capture_output=True, check=False).returncode


@pytest.mark.parametrize("ninja", ONE_NINJA_AT_FIRST)
def test_a_compile_error_ends_as_with_bare_ninja_and_is_told_with_its_command_and_output(
    stoker: Stoker, tmp_path: Path, ninja: str
) -> None:
    folder = write_project(tmp_path / "bad", 2, broken=[1])
    watched = stoker.run("run", "--plain", "--", ninja, "-C", str(folder))
    assert watched.returncode == bare(ninja, "-C", str(folder)) != 0, watched.stderr
    assert b"no_such_name" in watched.stdout
    status = stoker.status()
    assert status["state"] == "failed"
    assert status["progress"]["failed"] == 1
    assert [f["output"] for f in status["failures"]] == ["CMakeFiles/units.dir/unit1.cpp.o"]
    assert "-c" in status["failures"][0]["command"]


@pytest.mark.parametrize("ninja", ONE_NINJA_AT_FIRST)
def test_a_missing_folder_ends_as_with_bare_ninja(stoker: Stoker, tmp_path: Path, ninja: str) -> None:
    missing = str(tmp_path / "nowhere")
    assert stoker.run("run", "--plain", "--", ninja, "-C", missing).returncode == bare(ninja, "-C", missing) != 0


@pytest.mark.long
@pytest.mark.parametrize("ninja", ONE_NINJA_AT_FIRST)
def test_a_compile_error_below_a_script_ends_as_it_ends_the_bare_script(
    stoker: Stoker, tmp_path: Path, ninja: str
) -> None:
    """Ninja's last failure is that of a job that was dropped from the deck, and the script hands it on."""
    wait = "until [ -e go ]; do sleep 0.2; done"
    edges = [("bad", f"{wait.replace('go', 'seen')}; exit 1"), *((f"o{n}", f"{wait}; touch o{n}") for n in range(9))]
    folder = write_ninja(tmp_path / "below", edges)
    script = folder / "build.sh"
    script.write_text(f"#!/bin/sh\nset -e\n{ninja} -C {folder} -j10\n")
    script.chmod(0o755)
    build = stoker.detach(str(script), jobs=2)
    until(lambda: "bad" in [job["output"] for job in stoker.status(build)["jobs"]], "a job that will fail")
    (folder / "seen").touch()
    until(lambda: "dropped" in [e.get("outcome") for e in stoker.events(build)], "jobs that are dropped")
    (folder / "go").touch()
    assert stoker.ended(build)["exit_code"] == bare(str(script)) == 1


def test_a_plain_ninja_in_a_script_runs_as_many_jobs_as_may_run(stoker: Stoker, tmp_path: Path) -> None:
    """By the slots of stoker's jobserver, which it takes: each job waits a while for three others of its round.

    Not in every round: a ninja that finds no slot when a job ends looks for one again only when another does. (How
    slots are counted: tests/engine/test_jobserver.py.)
    """
    tools = tmp_path / "tools"
    tools.mkdir()
    (tools / "make").write_text("#!/bin/sh\necho GNU Make 4.4.1\n")  # or an older one on PATH would get no jobserver
    (tools / "make").chmod(0o755)
    folder, numbers = tmp_path / "rounds", range(4)
    folder.mkdir()
    lines = ["rule meet", "  command = touch $in_round.$n; sh meet.sh $in_round $in_round.$n && touch $out"]
    for this in range(5):
        before = " ".join(f"o{this - 1}.{n}" for n in numbers) if this else ""
        for n in numbers:
            lines += [f"build o{this}.{n}: meet | {before}", f"  n = {n}", f"  in_round = r{this}"]
    (folder / "build.ninja").write_text("\n".join(lines) + "\n")
    meet = "for i in $(seq 40); do [ $(ls -d $1.* | wc -l) -lt 4 ] || exec touch $1-met; sleep 0.1; done; rm $2\n"
    (folder / "meet.sh").write_text(meet)
    (folder / "build.sh").write_text(f"#!/bin/sh\n{PYPI_NINJA} -C {folder}\n")
    (folder / "build.sh").chmod(0o755)
    stoker.env["PATH"] = f"{tools}:{stoker.env['PATH']}"
    stoker.env.pop("MAKEFLAGS", None)
    watched = stoker.run("run", "-j", "4", "--plain", "--", str(folder / "build.sh"))
    assert watched.returncode == 0, watched.stdout
    assert list(folder.glob("r*-met"))


@pytest.mark.parametrize("ninja", ONE_NINJA_AT_FIRST)
def test_the_counts_are_true_at_every_moment(stoker: Stoker, tmp_path: Path, ninja: str) -> None:
    folder = tmp_path / "small"
    build = stoker.detach(ninja, "-C", str(write_project(folder, gated=True)), "-j2")
    seen_running = False
    while True:
        status = stoker.status(build)
        p = status["progress"]
        assert p["finished"] + p["running"] + p["on_deck"] <= p["total"] or status["state"] == "done"
        if not seen_running and any(j["tool"] == "cxx" and "unit0" in j["output"] for j in status["jobs"]):
            seen_running = True
            open_gate(folder)
        if status["ended"]:
            break
    assert seen_running
    assert status["state"] == "done"
    assert status["exit_code"] == 0
    assert p["finished"] == p["total"] == 9
    finished = [e["output"] for e in stoker.events(build) if e["type"] == "job_finished"]
    assert len(finished) == len(set(finished)) == 9


def test_a_job_that_has_ended_runs_no_more_although_its_ninja_has_yet_to_say_so(stoker: Stoker, tmp_path: Path) -> None:
    edges = [(f"o{n}", f"until [ -e {n}.go ]; do sleep 0.2; done; touch o{n}") for n in range(2)]
    folder = write_ninja(tmp_path / "two", edges)
    build = stoker.detach("ninja", "-C", str(folder), "-j2", jobs=2)
    until(lambda: stoker.status(build)["progress"]["running"] == 2, "two jobs")
    ninja = next(e["pid"] for e in stoker.events(build) if e["type"] == "scheduler_started")
    os.kill(ninja, signal.SIGSTOP)
    (folder / "0.go").touch()
    until(lambda: stoker.status(build)["progress"]["running"] == 1, "the end of a job")
    looks = len(stoker.events(build)) + 8
    until(lambda: len(stoker.events(build)) > looks, "some looks")
    assert "job_finished" not in [e["type"] for e in stoker.events(build)], "nobody knows how it has ended"
    assert stoker.status(build)["progress"]["total"] == 2
    os.kill(ninja, signal.SIGCONT)
    (folder / "1.go").touch()
    progress = stoker.ended(build)["progress"]
    assert (progress["finished"], progress["failed"]) == (2, 0)


def test_jobs_that_all_have_one_command_end_well_each_and_nobody_is_dropped_for_them(
    stoker: Stoker, tmp_path: Path
) -> None:
    work = "n=0; while [ $n -lt 60000 ]; do n=$((n+1)); done"  # not a sleep, which would end while it is held
    edges = [(f"same{n}", f"{work}; echo >>all") for n in range(4)]
    folder = write_ninja(tmp_path / "alike", [*edges, *((f"o{n}", f"{work}; {work}; touch o{n}") for n in range(4))])
    build = stoker.detach(PYPI_NINJA, "-C", str(folder), jobs=2)
    status = stoker.ended(build)
    assert (status["state"], status["progress"]["failed"], status["progress"]["finished"]) == ("done", 0, 8)
    ends = [e for e in stoker.events(build) if e["type"] == "job_finished"]
    assert all(end["outcome"] == "ok" for end in ends)
    assert sorted(end["jid"] for end in ends) == list(range(1, 9))


def test_a_build_that_is_up_to_date_is_done(stoker: Stoker, project: Path) -> None:
    subprocess.run([PYPI_NINJA, "-C", str(project)], check=True, capture_output=True)
    assert stoker.run("run", "--plain", "--", "ninja", "-C", str(project)).returncode == 0
    status = stoker.status()
    assert (status["progress"]["finished"], status["progress"]["total"]) == (0, 0)


def test_only_what_is_stale_counts_in_a_rebuild(stoker: Stoker, tmp_path: Path) -> None:
    folder = tmp_path / "small"
    ninja = [PYPI_NINJA, "-C", str(write_project(folder, gated=True))]
    with subprocess.Popen(ninja, stdout=subprocess.DEVNULL):
        open_gate(folder)
    (folder / "unit0.cpp").touch()
    build = stoker.detach(*ninja)
    _until_a_job_runs(stoker, build)
    open_gate(folder)
    assert stoker.ended(build)["progress"]["finished"] == 3


def test_a_ninja_too_short_to_be_seen_is_counted_from_its_log(stoker: Stoker, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "quick", [(f"o{n}", f"touch o{n}") for n in range(5)])
    assert stoker.run("run", "--plain", "--", "ninja", "-C", str(folder)).returncode == 0
    assert stoker.status()["progress"]["finished"] == 5


def test_a_build_by_cmake_is_watched_through_cmake(stoker: Stoker, project: Path) -> None:
    build = stoker.detach("cmake", "--build", str(project))
    status = stoker.ended(build)
    assert status["state"] == "done"
    assert status["progress"]["finished"] == 9


@pytest.mark.long
def test_make_with_sub_makes_is_watched_too(stoker: Stoker, tmp_path: Path) -> None:
    folder = tmp_path / "small"
    build = stoker.detach("make", "-C", str(write_project(folder, gated=True, generator="Unix Makefiles")), "-j2")
    until(lambda: any(j["tool"] == "cxx" for j in stoker.status(build)["jobs"]), "a compiler below make")
    until(lambda: "percent" in [e.get("source") for e in stoker.events(build)], "CMake's percentage")
    open_gate(folder)
    status = stoker.ended(build)
    assert status["state"] == "done"
    assert status["progress"]["finished"] >= 1


def test_two_ninjas_at_once_are_both_counted(stoker: Stoker, tmp_path: Path) -> None:
    wait = f"until [ -e {tmp_path}/go ]; do sleep 0.1; done"
    inner = write_ninja(tmp_path / "inner", [(f"i{n}", f"{wait}; touch i{n}") for n in range(4)])
    outer = write_ninja(tmp_path / "outer", [("ext", f"{PYPI_NINJA} -C {inner} -j2"), ("own", f"{wait}; touch own")])
    build = stoker.detach("ninja", "-C", str(outer), "-j2")
    until(lambda: len([s for s in stoker.status(build)["schedulers"] if s["running"]]) == 2, "two ninjas")
    (tmp_path / "go").touch()
    status = stoker.ended(build)
    assert status["state"] == "done"
    assert status["progress"]["finished"] == 6


def test_of_two_ninjas_after_each_other_in_one_folder_each_has_its_own_jobs(stoker: Stoker, tmp_path: Path) -> None:
    wait = "until [ -e {} ]; do sleep 0.2; done"
    jobs = [(f"a{n}", f"{wait.format('seen')}; touch a{n}") for n in range(5)]
    jobs += [(f"b{n}", f"touch b{n}") for n in range(20)]
    folder = write_ninja(tmp_path / "two", jobs)
    first, second = (" ".join(o for o, _ in jobs if o[0] == letter) for letter in "ab")
    script = f"{PYPI_NINJA} -j1 {first} && {PYPI_NINJA} -j1 {second} b-slow"
    with (folder / "build.ninja").open("a") as file:
        file.write(f"build b-slow: sh\n  cmd = {wait.format('go')}; touch b-slow\n")
    build = stoker.detach("sh", "-c", script, cwd=folder)

    def begun() -> list[int]:
        return [e["sid"] for e in stoker.events(build) if e["type"] == "scheduler_started"]

    until(lambda: begun() == [1], "a ninja")
    (folder / "seen").touch()
    until(lambda: begun() == [1, 2], "two ninjas")
    (folder / "go").touch()
    assert stoker.ended(build)["progress"]["finished"] == 26
    finished = [(e["sid"], e["output"][0]) for e in stoker.events(build) if e["type"] == "job_finished"]
    assert sorted(finished) == [(1, "a")] * 5 + [(2, "b")] * 21


def test_the_log_keeps_every_byte_and_plain_shows_it_harmlessly(stoker: Stoker, tmp_path: Path) -> None:
    nasty = (
        b"\x1b]52;c;ZXZpbA==\x07 \x1b[2J error [/usr/include/x.h] [@click=app.quit]x[/] "
        b"\x00 \xff \x9b2J \x1b[31mred\x1b[0m \xc2\x9b5n\n"
    )
    (tmp_path / "nasty").write_bytes(nasty)
    result = stoker.run("run", "--plain", "--", "cat", str(tmp_path / "nasty"))
    assert result.returncode == 0
    (log,) = stoker.folder("").glob("*/output.log")
    assert log.read_bytes() == nasty
    assert b"error [/usr/include/x.h] [@click=app.quit]x[/]" in result.stdout
    shown = (result.stdout + result.stderr).decode()
    assert not {c for c in shown if (ord(c) < 0x20 and c not in "\t\n") or 0x7F <= ord(c) <= 0x9F}


def test_a_line_of_ten_megabytes_is_kept_whole_and_shown_cut(stoker: Stoker, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "long", [("out", "head -c 10000000 /dev/zero | tr '\\0' x; touch out")])
    result = stoker.run("run", "--plain", "--", "ninja", "-C", str(folder))
    assert result.returncode == 0
    assert len(result.stdout) < 100_000
    (log,) = stoker.folder("").glob("*/output.log")
    assert log.stat().st_size >= 10_000_000


def test_json_gives_a_status_a_line_and_ends_with_the_end(stoker: Stoker, project: Path) -> None:
    result = stoker.run("run", "--json", "--", "ninja", "-C", str(project))
    assert result.returncode == 0
    lines = [json.loads(line) for line in result.stdout.splitlines()]
    assert lines[-1]["state"] == "done"
    assert lines[-1]["progress"]["finished"] == 9
    assert (project / "app").exists()


def test_log_and_events_answer_live_and_afterwards(stoker: Stoker, project: Path) -> None:
    build = stoker.detach("ninja", "-C", str(project), "-j1")
    follow = stoker.start("log", "-f", build)
    events = stoker.start("events", "-f", "--json", build)
    stoker.ended(build)
    out, _ = follow.communicate(timeout=30)
    log = (stoker.folder(build) / "output.log").read_bytes()
    assert out == log == stoker.run("log", build).stdout
    out, _ = events.communicate(timeout=30)
    followed = [json.loads(line) for line in out.splitlines()]
    assert [e["seq"] for e in followed] == [e["seq"] for e in stoker.events(build)]
    assert followed[-1]["type"] == "build_ended"
    assert build.encode() in stoker.run("ls").stdout


def test_a_ninja_that_builds_in_the_same_folder_already_is_warned_of(stoker: Stoker, tmp_path: Path) -> None:
    edges = [(f"o{n}", f"cat {tmp_path}/{n}; touch o{n}") for n in range(2)]
    shared, own = (write_ninja(tmp_path / name, edges) for name in ("shared", "own"))
    for n in range(2):
        os.mkfifo(tmp_path / str(n))
    with subprocess.Popen([NINJAS[0], "-C", str(shared), "o0"], stdout=subprocess.DEVNULL) as other:
        for folder, warned in ((shared, [_other_ninja(other.pid, shared)]), (own, [])):
            build = stoker.detach(NINJAS[0], "-C", str(folder), "o1", cwd=tmp_path)
            _until_a_job_runs(stoker, build)
            (tmp_path / "1").write_text("")
            stoker.ended(build)
            assert _of_other_ninjas(stoker, build) == warned
        (tmp_path / "0").write_text("")


@pytest.mark.long
def test_a_ninja_that_begins_later_in_the_same_folder_is_warned_of_once(stoker: Stoker, tmp_path: Path) -> None:
    folder = write_ninja(tmp_path / "shared", [(f"o{n}", f"cat {tmp_path}/{n}; touch o{n}") for n in range(2)])
    for n in range(2):
        os.mkfifo(tmp_path / str(n))
    (tmp_path / "Makefile").write_text(f"all:\n\t{NINJAS[0]} -C {folder} o1\n")
    build = stoker.detach(NINJAS[0], "-C", str(folder), "o0", cwd=tmp_path)
    _until_a_job_runs(stoker, build)
    with subprocess.Popen(["make", "-s"], cwd=tmp_path, stdout=subprocess.DEVNULL) as other:
        until(lambda: _of_other_ninjas(stoker, build))
        (ninja,) = psutil.Process(other.pid).children()
        for n in range(2):
            (tmp_path / str(n)).write_text("")
        stoker.ended(build)
    assert _of_other_ninjas(stoker, build) == [_other_ninja(ninja.pid, folder)]


def _until_a_job_runs(stoker: Stoker, build: str) -> None:
    until(lambda: any(e["type"] == "job_started" for e in stoker.events(build)))


def _of_other_ninjas(stoker: Stoker, build: str) -> list[str]:
    return [e["text"] for e in stoker.events(build) if e["type"] == "noticed" and "ninja" in e["text"]]


def _other_ninja(pid: int, folder: Path) -> str:
    where = f"another ninja (pid {pid}) builds in {folder}, outside this build"
    return f"{where}: both write the same files; end one of them ('kill {pid}' ends the other)"
