"""The examination as a whole: it never breaks, and what breaks in it is reported."""

from __future__ import annotations

import time
from pathlib import Path

import pytest

from stoker.contract.process import start_ticks
from stoker.doctor import examine as room
from stoker.doctor.ask_program import MAX_OUTPUT, LateError, Later, ask
from stoker.doctor.check import Check, examination, fail, ok, to_json, warn
from stoker.doctor.facts import Surroundings
from support.clinic import Clinic, one
from support.program import until


def test_a_check_that_breaks_is_a_warning_and_the_others_go_on(clinic: Clinic, monkeypatch: pytest.MonkeyPatch) -> None:
    def broken(here: Surroundings) -> list[Check]:
        raise RuntimeError("the sky fell")

    parts = (room._Part("the sky", broken), *room._PARTS)
    monkeypatch.setattr(room, "_PARTS", parts)
    found = clinic.examine()
    assert one(found, "the sky").status == "warn"
    assert "the sky fell" in one(found, "the sky").why
    assert one(found, "C++ compiler").status == "ok"


def test_folders_that_are_gone_break_nothing(clinic: Clinic) -> None:
    clinic.wants(source="/nowhere/tree", build="/nowhere/build", temporary="/nowhere/tmp")
    found = clinic.examine()
    assert one(found, "temporary folder").status == "warn"
    assert not any("could not be checked" in check.why for check in found.checks)


def test_an_empty_environment_breaks_nothing(clinic: Clinic) -> None:
    clinic.env.clear()
    assert not any("could not be checked" in check.why for check in clinic.examine().checks)


def test_what_hangs_is_left_behind() -> None:
    began = time.monotonic()
    later = Later(lambda: time.sleep(60))
    with pytest.raises(LateError):
        later.result(0.05)
    assert time.monotonic() - began < 50


def test_what_fails_comes_first_and_the_rest_keeps_its_order() -> None:
    found = examination("x", [ok("a", "."), warn("b", "."), fail("c", "."), ok("d", "."), fail("e", ".")])
    assert [check.name for check in found.checks] == ["c", "e", "b", "a", "d"]
    assert not found.ok
    assert found.count("fail") == 2


def test_json_is_the_contract() -> None:
    data = to_json(examination("x", [warn("b", "1 of 2", "do it")]))
    assert data["ok"] is True
    assert data["checks"] == [{"name": "b", "status": "warn", "why": "1 of 2", "remedy": "do it"}]


def test_programs_are_asked_with_bounds() -> None:
    env = {"PATH": "/usr/bin:/bin"}
    assert ask(["cat"], env, 60, b"hello").text == "hello"
    assert ask(["sh", "-c", "echo a; exit 3"], env, 60).problem == "it ended with status 3: a"
    assert ask(["sh", "-c", "kill -9 $$"], env, 60).problem == "it was ended by signal 9"
    assert "cannot be started" in ask(["/no/such/program"], env, 60).problem
    assert "cannot be started" in ask(["nul\0byte"], env, 60).problem
    assert str(MAX_OUTPUT // 1024) in ask(["yes"], env, 60).problem
    late = ask(["sh", "-c", "sleep 60"], env, 0.1)
    assert late.late
    assert "0.1 s" in late.problem
    assert ask(["sh", "-c", "echo $LC_ALL"], env, 60).text == "C\n"


def test_nothing_that_a_program_started_is_left_running(tmp_path: Path) -> None:
    note, seconds = tmp_path / "pid", 0.2
    while not (note.exists() and note.read_text()):  # on a busy machine it was ended before it began
        assert ask(["sh", "-c", f"sleep 600 & echo $! >{note}; wait"], {"PATH": "/usr/bin:/bin"}, seconds).late
        seconds *= 2
    pid = int(note.read_text())
    until(lambda: start_ticks(pid) is None, "the end of what was left running")


def test_remedies_are_commands_and_reasons_have_something_to_say(clinic: Clinic) -> None:
    """Whatever this machine is like."""
    clinic.wants(knobs="pytorch", cuda="must", libraries=("cudnn", "nccl"), what="PyTorch")
    for check in clinic.examine().checks:
        assert check.why
        assert "\n" not in check.remedy
        assert bool(check.remedy) == (check.status != "ok"), check
