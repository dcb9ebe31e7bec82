"""What waits on deck is dropped after a failure, and only then: no text alone ends a job."""

from __future__ import annotations

from pathlib import Path

import pytest

from support.program import ONE_NINJA_AT_FIRST, PYPI_NINJA, Stoker, until, write_ninja

MANY = 24


def sleepers(first: tuple[str, str], naps: int = 3) -> list[tuple[str, str]]:
    """A job, and more beside it than may run at once; nothing depends on anything.

    Short naps, since a stopped sleep is over in time all the same.
    """
    nap = " ".join(["sleep 0.2;"] * naps)
    return [first, *((f"o{n}", f"{nap} touch o{n}") for n in range(MANY))]


def made(folder: Path) -> int:
    return len(list(folder.glob("o[0-9]*")))


def dropped(stoker: Stoker, build: str) -> list[str]:
    return [e["why"] for e in stoker.events(build) if e["type"] == "decided" and e["what"].startswith("drop ")]


SPEAKS_OF_FAILURES = ("FAILED: test_foo (expected)", "FAILED: o3", "FAILED: [code=1] o23 o22")


@pytest.mark.parametrize("ninja", ONE_NINJA_AT_FIRST)
def test_a_good_build_that_speaks_of_failures_stays_good(stoker: Stoker, tmp_path: Path, ninja: str) -> None:
    says = "".join(f"echo '{words}'; echo error: no; " for words in SPEAKS_OF_FAILURES)
    folder = write_ninja(tmp_path / "p", sleepers(("test", f"{says}touch test"), 1))
    build = stoker.detach(ninja, "-C", str(folder), "-j16", jobs=3)
    status = stoker.ended(build)
    assert (status["state"], status["exit_code"]) == ("done", 0)
    assert made(folder) == MANY
    assert dropped(stoker, build) == []


@pytest.mark.long
def test_of_two_ninjas_with_outputs_of_one_name_only_that_which_failed_drops(stoker: Stoker, tmp_path: Path) -> None:
    good = f"until [ -e {tmp_path}/b-over ]; do sleep 0.2; done; touch first"
    # Of three at once, the third that has ended had to be let go by an engine that sees what runs.
    three = f"[ $(ls {tmp_path}/a {tmp_path}/b | grep -c '^o') -ge 3 ]"
    bad = f"until {three}; do sleep 0.2; done; echo error: no; false"
    a, b = (write_ninja(tmp_path / name, sleepers(("first", how))) for name, how in (("a", good), ("b", bad)))
    script = f"ninja -C {a} -j12 >a.log 2>&1 & a=$!; ninja -C {b} -j12; echo b $?; touch b-over; wait $a; echo a $?"
    build = stoker.detach("sh", "-c", script, cwd=tmp_path, jobs=3)
    assert stoker.ended(build)["state"] == "done"
    told = (stoker.folder(build) / "output.log").read_text()
    assert "a 0" in told
    assert made(a) == MANY
    assert made(b) < MANY


@pytest.mark.long
def test_a_job_that_left_something_behind_has_not_failed_while_ninja_waits_for_that(
    stoker: Stoker, tmp_path: Path
) -> None:
    """Ninja records a job once its output pipe is closed, and what a job leaves behind may hold that for long."""
    leaves = "sleep 13 & sleep 0.5; sleep 0.5; touch leaves"
    folder = write_ninja(tmp_path / "p", sleepers(("leaves", leaves), 15)[:8])
    build = stoker.detach(PYPI_NINJA, "-C", str(folder), "-j8", jobs=2)
    status = stoker.ended(build)
    assert (status["state"], status["exit_code"]) == ("done", 0)
    assert dropped(stoker, build) == []
    ends = [e["outcome"] for e in stoker.events(build) if e["type"] == "job_finished"]
    assert ends == ["ok"] * 8


@pytest.mark.long
def test_a_failure_that_pip_would_hide_ends_what_waits_as_well(stoker: Stoker, tmp_path: Path) -> None:
    """The output comes when ninja has ended, and that must not be after hours of work for a build that has failed."""
    folder = write_ninja(tmp_path / "p", sleepers(("first", "sleep 1.5; echo error: no; false"), 12))
    script = f"ninja -C {folder} -j12 >hidden 2>&1; status=$?; cat hidden; exit $status"
    build = stoker.detach("sh", "-c", script, cwd=tmp_path, jobs=2)
    status = stoker.ended(build)
    assert status["state"] == "failed"
    assert [f["output"] for f in status["failures"]] == ["first"]
    assert made(folder) < MANY
    assert len(dropped(stoker, build)) == 1


def test_a_further_attempt_in_a_new_temporary_folder_counts_from_the_start_and_says_so(
    stoker: Stoker, tmp_path: Path
) -> None:
    """As below pip, which unpacks and builds in a folder of its own each time."""
    one, two = (f"until [ -e {tmp_path / name} ]; do sleep 0.2; done" for name in ("one", "two"))
    killed = tmp_path / "killed"
    once = f"if [ -e {killed} ]; then {two}; else {one}; touch {killed}; kill -9 $$; fi; touch first"
    folder = write_ninja(tmp_path / "p", [("first", once), *((f"o{n}", f"touch o{n}") for n in range(6))])
    script = f"d=$(mktemp -d {tmp_path}/tmpXXXXXXXX); cp {folder}/build.ninja $d; cd $d; ninja -j4"
    build = stoker.detach("sh", "-c", script, cwd=tmp_path, jobs=2)
    until(lambda: stoker.status(build)["progress"]["finished"] == 6, "the end of all others")
    (tmp_path / "one").touch()
    until(lambda: sum(e["type"] == "scheduler_started" for e in stoker.events(build)) == 2, "the second ninja")
    (tmp_path / "two").touch()
    status = stoker.ended(build)
    assert (status["state"], status["step"]["attempt"]) == ("done", 2)
    assert status["progress"]["finished"] == status["progress"]["total"] == 7
    told = [e["text"] for e in stoker.events(build) if e["type"] == "noticed"]
    assert any("6 jobs that had finished before are built again" in text for text in told)


@pytest.mark.parametrize(
    "kept", [True, pytest.param(False, marks=pytest.mark.long)], ids=["objects-kept", "folder-removed"]
)
def test_a_step_that_runs_again_is_never_shown_as_done(stoker: Stoker, tmp_path: Path, *, kept: bool) -> None:
    """As below pip: between two attempts nothing is known of the next ninja, and its folder may have been removed."""
    go = {
        name: f"until [ -e {tmp_path / name} ]; do sleep 0.2; done" for name in ("counted", "cleaned", "again", "seen")
    }
    kill = f"{go['counted']}; touch {tmp_path}/killed; kill -9 $$"
    once = f"if [ -e {tmp_path}/killed ]; then {go['seen']}; else {kill}; fi; touch first"
    made = write_ninja(tmp_path / "p", [("first", once), *((f"o{n}", f"touch o{n}") for n in range(6))])
    work = tmp_path / "work"
    clean = "true" if kept else f"rm -rf {work}"
    script = (
        f"if [ -e {tmp_path}/killed ]; then {go['again']}; fi; mkdir -p {work}; cp {made}/build.ninja {work}\n"
        f"{PYPI_NINJA} -C {work} -j4 || {{ {clean}; {go['cleaned']}; exit 1; }}\n"
    )
    build = stoker.detach("sh", "-c", script, cwd=tmp_path, jobs=2)
    until(lambda: stoker.status(build)["progress"]["total_known"], "the plan")
    until(lambda: stoker.status(build)["progress"]["finished"] == 6, "the others")
    (tmp_path / "counted").touch()
    until(lambda: (tmp_path / "killed").exists() and not stoker.status(build)["schedulers"][-1]["running"], "the kill")
    seen = [stoker.status(build)["progress"]]
    (tmp_path / "cleaned").touch()
    until(lambda: stoker.status(build)["step"]["attempt"] == 2, "the second attempt")
    seen.append(stoker.status(build)["progress"])
    (tmp_path / "again").touch()
    until(lambda: sum(e["type"] == "scheduler_started" for e in stoker.events(build)) == 2, "the second ninja")
    (tmp_path / "seen").touch()
    assert stoker.ended(build)["state"] == "done"
    assert all((p["total"], p["total_known"]) == (7, True) and p["percent"] < 100 for p in seen), seen
    assert [p["finished"] for p in seen] == [6, 6 if kept else 0]
    end = stoker.status(build)["progress"]
    assert (end["finished"], end["total"], end["percent"]) == (7, 7, 100.0)
    told = [e["text"] for e in stoker.events(build) if e["type"] == "noticed"]
    assert any("6 jobs that had finished before are built again" in text for text in told) is not kept


def test_an_error_that_make_is_told_to_ignore_ends_nothing(stoker: Stoker, tmp_path: Path) -> None:
    names = " ".join(f"o{n}" for n in range(MANY))
    sub = tmp_path / "sub"
    sub.mkdir()
    (sub / "Makefile").write_text("all: ; @sleep 0.5; echo error: no; false\n")
    makefile = f"all: optional {names}\noptional:\n\t-$(MAKE) -C sub\no%:\n\tsleep 0.2; touch $@\n"
    (tmp_path / "Makefile").write_text(makefile)
    build = stoker.detach("make", "-j", "-C", str(tmp_path), cwd=tmp_path, jobs=2)
    assert stoker.ended(build)["state"] == "done"
    assert made(tmp_path) == MANY


def test_the_jobs_dropped_after_a_failure_do_not_hide_it(stoker: Stoker, tmp_path: Path) -> None:
    """Ninja calls each of them failed; only the log keeps that."""
    # An engine that sees the first job lets the third one go when the second one has ended.
    fails = "until [ -e o1 ]; do sleep 0.2; done; echo error: the real one; false"
    folder = write_ninja(tmp_path / "p", sleepers(("first", fails)))
    result = stoker.run("run", "--plain", "-j2", "--", "ninja", "-C", str(folder), "-j12", cwd=tmp_path)
    build = stoker.begun()
    raw = (stoker.folder(build) / "output.log").read_bytes()
    assert raw.count(b"FAILED: ") > 2
    printed = stoker.run("log", build).stdout
    for shown in (result.stdout, printed):
        assert shown.count(b"FAILED: ") == 1
        after = shown.decode().partition("error: the real one")[2]
        assert "jobs that had not started were discarded after the failure" in after
        assert after.rstrip().endswith("ninja: build stopped: subcommand failed.")
    assert stoker.run("log", "--raw", build).stdout == raw
    assert b"[code=137]" not in (diagnosis := stoker.run("diagnose", build).stdout)
    assert diagnosis.count(b"FAILED: ") <= 1
