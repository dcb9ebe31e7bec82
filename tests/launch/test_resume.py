"""Going on with a build that failed, by words: in its folder and environment, once, and with its remedy where asked."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from support.gitrepo import ENV, with_submodules
from support.program import PYPI_NINJA, Stoker, until

pytestmark = pytest.mark.long

MEND = "test -e mended && echo $FLAVOUR $A_TOKEN > out"
"""Fails until somebody has made `mended`."""


def build(stoker: Stoker, *command: str, **env: str) -> str:
    """Run a build that fails; its ID."""
    ran = stoker.run("run", "--plain", "--name", "b", "--", *command, cwd=None, **env)
    assert ran.returncode not in (0, 2, 125), ran.stderr
    return newest(stoker)


def newest(stoker: Stoker) -> str:
    return str(json.loads(stoker.run("ls", "--json").stdout)[0]["id"])


def go_on(stoker: Stoker, *words: str, **env: str) -> tuple[int, str]:
    ran = stoker.run("run", "--plain", "--resume", *words, cwd=None, **env)
    return ran.returncode, ran.stderr.decode()


def first_decision(stoker: Stoker) -> dict[str, Any]:
    return next(e for e in stoker.events(newest(stoker)) if e["type"] == "decided")


def test_the_same_command_runs_in_the_same_folder_and_environment(stoker: Stoker) -> None:
    old = build(stoker, "sh", "-c", MEND, FLAVOUR="plum", A_TOKEN="then")
    (stoker.root / "mended").touch()
    elsewhere = stoker.root / "elsewhere"
    elsewhere.mkdir()
    ran = stoker.run("run", "--plain", "--resume", old, cwd=elsewhere, FLAVOUR="kiwi", A_TOKEN="now")
    assert ran.returncode == 0, ran.stderr
    assert (stoker.root / "out").read_text() == "plum now\n"  # secrets come from who goes on
    told = first_decision(stoker)
    assert told["what"] == f"resume {old}"
    assert told["who"] not in ("engine", "governor")
    assert stoker.status(newest(stoker))["name"] == "b"


@pytest.mark.long
def test_a_secret_is_not_written_down_and_an_environment_goes_when_nobody_needs_it(stoker: Stoker) -> None:
    old = build(stoker, "sh", "-c", MEND, A_TOKEN="s3cr3t-value")
    files = [p for p in stoker.folder(old).iterdir() if p.is_file()]
    assert files
    assert not any(b"s3cr3t-value" in p.read_bytes() for p in files)
    (stoker.root / "mended").touch()
    assert go_on(stoker)[0] == 0
    until(lambda: not (stoker.folder(newest(stoker)) / "environment.json").exists(), "the environment's end")


@pytest.mark.long
def test_secrets_that_are_missing_are_named_as_often_as_it_is_gone_on_with(stoker: Stoker) -> None:
    build(stoker, "false", A_TOKEN="s3cr3t-value", FLAVOUR="plum")
    told = "warning: secrets are not kept, and not set here: A_TOKEN; if the build needs them, stop it, export them"
    for _ in range(2):
        assert told in go_on(stoker)[1]
    assert "not kept" not in go_on(stoker, A_TOKEN="now")[1]


def test_the_last_lines_name_the_cause_and_the_command(stoker: Stoker) -> None:
    ran = stoker.run("run", "--plain", "--", "sh", "-c", "echo 'error: RPC failed; HTTP 429'; exit 1")
    said = ran.stderr.decode().splitlines()
    name = newest(stoker)
    found = stoker.status(name)["diagnosis"]
    assert said[-3:] == [
        f"stoker: {found['causes'][0]['title']} (several possible causes); what to do: stoker diagnose {name}",
        "stoker:   line 1 of the output: error: RPC failed; HTTP 429",
        f"stoker: to run the step again: stoker run --resume --remedy {name}",
    ]
    assert found["action"]["kind"] == "retry"


def test_a_build_is_gone_on_with_once(stoker: Stoker) -> None:
    old = build(stoker, "false")
    assert go_on(stoker, old)[0] == 1
    second = newest(stoker)
    status, said = go_on(stoker, old)
    assert (status, newest(stoker)) == (1, second)
    assert f"{second} has resumed {old} already; resume that: stoker run --resume {second}" in said
    assert go_on(stoker)[0] == 1  # the newest of this folder, which is the second one
    assert newest(stoker) not in (old, second)


def test_what_was_resumed_with_success_is_no_more_offered_for_that(stoker: Stoker) -> None:
    old = build(stoker, "sh", "-c", MEND)
    offer = f"resume with: stoker run --resume {old}"
    assert offer in stoker.run("attach", "--plain", old).stderr.decode()
    (stoker.root / "mended").touch()
    assert go_on(stoker, old)[0] == 0
    second = newest(stoker)
    said = stoker.run("attach", "--plain", old).stderr.decode()
    assert offer not in said
    assert f"{second} has resumed it; look at that: stoker attach {second}" in said
    assert f"{second} has resumed {old} already, and succeeded\n" in go_on(stoker, old)[1]


@pytest.mark.long
def test_of_many_at_once_one_goes_on(stoker: Stoker) -> None:
    old = build(stoker, "sh", "-c", "test -e mended && sleep 2")
    (stoker.root / "mended").touch()
    several = [stoker.start("run", "--detach", "--resume", old) for _ in range(4)]
    codes = sorted(p.wait(60) for p in several)
    assert codes == [0, 1, 1, 1]
    for process in several:
        process.communicate()
    assert len(json.loads(stoker.run("ls", "--json").stdout)) == 2


@pytest.mark.long
def test_what_runs_and_what_ended_well_is_refused(stoker: Stoker) -> None:
    live = stoker.detach("sleep", "60")
    assert f"{live} still runs; watch it with: stoker attach {live}" in go_on(stoker, live)[1]
    stoker.run("stop", live)
    assert stoker.run("run", "--plain", "--", "true").returncode == 0
    assert "succeeded" in go_on(stoker)[1]
    status, said = go_on(stoker, "no-such-build")
    assert (status, said.count("\n")) == (1, 1)


@pytest.mark.long
def test_the_same_command_that_runs_there_already_is_no_second_time_started(stoker: Stoker) -> None:
    command = ("sh", "-c", "test -e mended && sleep 60")
    old = build(stoker, *command)
    (stoker.root / "mended").touch()
    live = stoker.detach(*command)
    assert f"{live} runs the same command in the same folder" in go_on(stoker, old)[1]
    stoker.run("stop", live)


def test_options_may_stand_behind_the_build_that_is_resumed(stoker: Stoker) -> None:
    old = build(stoker, "sh", "-c", "test -e mended")
    (stoker.root / "mended").touch()
    ran = stoker.run("run", "--resume", old, "--plain", "--name", "again", "-j", "1")
    assert ran.returncode == 0, ran.stderr
    assert any(one["name"] == "again" for one in json.loads(stoker.run("ls", "--json").stdout))


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("run", "--remedy", "--", "true"), "--remedy goes with --resume"),
        (("run", "--resume", "a", "b"), "--resume takes a build at most"),
        (("run", "--resume", "a", "--plain", "b"), "--resume takes a build at most, and these are 2: b a"),
        (("run", "--resume", "a", "--plian"), "run has no option --plian; did you mean --plain?"),
        (("run", "--resume", "a", "-p", "b"), "a build's ID or -p, not both"),
        (("run", "--resume", "--set", "a=b"), "--set goes with a profile"),
        (("run", "--resume"), "no build was started in this folder"),
    ],
)
def test_words_that_make_no_sense_are_told_in_one_line(stoker: Stoker, words: tuple[str, ...], said: str) -> None:
    ran = stoker.run(*words)
    assert ran.returncode in (1, 2)
    assert said in ran.stderr.decode()
    assert ran.stderr.count(b"\n") == 1


@pytest.mark.long
def test_without_its_environment_it_goes_on_in_ours_and_says_so(stoker: Stoker) -> None:
    old = build(stoker, "sh", "-c", MEND, FLAVOUR="plum")
    (stoker.folder(old) / "environment.json").unlink()
    (stoker.root / "mended").touch()
    status, said = go_on(stoker, FLAVOUR="kiwi")
    assert (status, (stoker.root / "out").read_text().split()) == (0, ["kiwi"])
    assert "kept no environment" in said


# -- remedies --------------------------------------------------------------------------------------------------


@pytest.mark.long
def test_missing_submodules_are_fetched_by_the_build_that_goes_on(stoker: Stoker, tmp_path: Path) -> None:
    clone = with_submodules(tmp_path, "third_party/gloo", "third_party/spare", hello_txt="hi\n")
    check = "test -e third_party/gloo/hello.txt || { echo 'Did you run git submodule update --init?'; exit 1; }"
    ran = stoker.run("run", "--plain", "--", "sh", "-c", check, cwd=clone, **ENV)
    assert ran.returncode == 1
    assert "third_party/gloo, third_party/spare, then run the step again: stoker run --resume --remedy" in str(
        ran.stderr
    )
    old = newest(stoker)
    status, said = go_on(stoker, "--remedy", old)
    assert status == 0, said
    assert (clone / "third_party/spare/hello.txt").read_text() == "hi\n"
    names = [e["name"] for e in stoker.events(newest(stoker)) if e["type"] == "step_started"]
    assert names[0] == "fetch submodules"
    told = first_decision(stoker)
    assert told["what"] == "fetch the 2 submodules third_party/gloo, third_party/spare, then run the step again"
    assert old in told["why"]


def test_names_that_a_journal_was_given_are_not_believed(stoker: Stoker, tmp_path: Path) -> None:
    clone = with_submodules(tmp_path, "gloo")
    check = "test -e gloo/a.txt || { echo 'Did you run git submodule update --init?'; exit 1; }"
    stoker.run("run", "--plain", "--", "sh", "-c", check, cwd=clone, **ENV)
    journal = stoker.folder(newest(stoker)) / "journal.jsonl"
    text = journal.read_text()
    assert '"names":["gloo"]' in text
    journal.write_text(text.replace('"names":["gloo"]', '"names":["--upload-pack=touch evil"]'))
    status, said = go_on(stoker, "--remedy", newest(stoker))
    assert (status, said.count("\n")) == (1, 1)
    journal.write_text(text.replace('"kind":"update-submodules"', '"kind":"set-variable","variable":"PATH=/evil"'))
    status, said = go_on(stoker, "--remedy", newest(stoker))
    assert (status, said.count("\n")) == (1, 1)
    assert "knows no such remedy" in said


@pytest.mark.long
def test_a_variable_is_set_and_not_twice(stoker: Stoker) -> None:
    words = "Compatibility with CMake < 3.5 has been removed from CMake"
    script = f'echo "$CMAKE_POLICY_VERSION_MINIMUM" >> said; test -e mended || {{ echo "{words}"; exit 1; }}'
    build(stoker, "sh", "-c", script)
    assert go_on(stoker, "--remedy")[0] == 1
    assert (stoker.root / "said").read_text().split() == ["3.5"]
    assert "was set already" not in go_on(stoker)[1]  # as it was first, without the variable
    status, said = go_on(stoker, "--remedy", CMAKE_POLICY_VERSION_MINIMUM="3.5")
    assert status == 1, said
    (stoker.root / "mended").touch()
    assert go_on(stoker)[0] == 0


@pytest.mark.long
def test_fewer_jobs_at_a_time(stoker: Stoker) -> None:
    said = "g++: internal compiler error: Segmentation fault signal terminated program cc1plus"
    crash = f"[ -e mended ] || {{ echo '{said}'; exit 1; }}"
    rules = "".join(f"build o{n}: r\n" for n in range(4))
    (stoker.root / "build.ninja").write_text(f"rule r\n  command = {crash}; touch $out\n{rules}")
    ran = stoker.run("run", "--plain", "-j", "4", "--", PYPI_NINJA)
    assert ran.returncode == 1
    assert "with at most 2 jobs at a time" in ran.stderr.decode()
    (stoker.root / "mended").touch()
    assert go_on(stoker, "--remedy")[0] == 0
    assert stoker.status(newest(stoker))["level"]["target"] == 2


@pytest.mark.long
def test_what_was_killed_is_made_alone(stoker: Stoker, tmp_path: Path) -> None:
    # The first job dies whenever the other one runs beside it.
    dies = "sleep 0.5; if [ -e beside ]; then kill -9 $$$$; fi; sleep 0.3; touch $out"
    beside = "touch beside; sleep 1.5; rm beside; touch $out"
    text = f"rule a\n  command = {dies}\nrule b\n  command = {beside}\nbuild a.o: a\nbuild b.o: b\n"
    (tmp_path / "build.ninja").write_text(text)
    folder = stoker.root / "config" / "stoker" / "profiles"
    folder.mkdir(parents=True)
    step = f"{{command: [{PYPI_NINJA}], retries: 0}}"
    (folder / "frail.yaml").write_text(f"description: d\nsteps:\n  first: {{command: ['true']}}\n  compile: {step}\n")
    ran = stoker.run("run", "--plain", "-p", "frail", "-j", "2", "--no-doctor")
    assert ran.returncode != 0
    found = stoker.status()["diagnosis"]
    assert found["causes"][0]["rule"] == "step-killed", found
    assert found["action"]["names"] == ["a.o"], found
    assert "the profile allows no further attempt" in " ".join(found["facts"])
    status, said = go_on(stoker, "--remedy", "-j", "2")
    assert status == 0, said
    assert [e["name"] for e in stoker.events(newest(stoker)) if e["type"] == "step_started"] == ["compile"]


@pytest.mark.long
def test_a_profile_goes_on_behind_its_remedy(stoker: Stoker, tmp_path: Path) -> None:
    clone = with_submodules(tmp_path, "gloo")
    folder = stoker.root / "config" / "stoker" / "profiles"
    folder.mkdir(parents=True)
    check = f"[{sys.executable}, check.py]"
    (clone / "check.py").write_text(
        "import os, sys\nif not os.path.exists('gloo/a.txt'): sys.exit('Please run git submodule update --init')\n"
        "if not os.path.exists('mended'): sys.exit(3)\n"
    )
    steps = f"  one: {{command: [touch, one]}}\n  two: {{command: {check}}}\n  three: {{command: [touch, three]}}\n"
    (folder / "steps.yaml").write_text(f"description: d\nsteps:\n{steps}")
    assert stoker.run("run", "--plain", "-p", "steps", "--no-doctor", cwd=clone, **ENV).returncode == 1

    def names() -> list[str]:
        return [e["name"] for e in stoker.events(newest(stoker)) if e["type"] == "step_started"]

    assert go_on(stoker, "--remedy", newest(stoker))[0] == 3
    assert names() == ["fetch submodules", "two"]
    (clone / "mended").touch()
    assert stoker.run("run", "--plain", "-p", "steps", "--resume", "--no-doctor", cwd=clone, **ENV).returncode == 0
    assert names() == ["two", "three"]
