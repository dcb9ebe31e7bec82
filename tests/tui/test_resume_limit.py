"""The memory limit of a control group is not lost when a build is resumed in another one."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.contract.spec_file import BuildSpec
from stoker.launch import resume
from stoker.model.state import BuildState
from stoker.sense.machine.cgroup import MemoryLimit
from stoker.show.tui.screens.questions import resume_question

from . import builds

GIB = 1 << 30


def ran_in(group: str) -> BuildState:
    state = builds.failed().state
    machine = replace(builds.MACHINE, memory_budget=GIB, memory_limit_source=group)
    return replace(state, machine=machine)


@pytest.mark.parametrize(
    ("group", "here", "by_hand", "kept"),
    [
        ("/box", MemoryLimit("machine", 24 * GIB, 0), None, GIB),
        ("/box", MemoryLimit("machine", 24 * GIB, 0), 2 * GIB, GIB),
        ("/box", MemoryLimit("machine", 24 * GIB, 0), GIB // 2, None),
        ("/box", MemoryLimit("/box", 24 * GIB, 0), None, None),
        ("/box", MemoryLimit("/other", GIB // 2, 0), None, None),
        ("machine", MemoryLimit("machine", 24 * GIB, 0), None, None),
        ("--memory", MemoryLimit("machine", 24 * GIB, 0), GIB, None),
    ],
)
def test_another_group_keeps_the_limit_of_the_first_and_the_same_one_its_present_limit(
    group: str, here: MemoryLimit, by_hand: int | None, kept: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(resume, "memory_limit_here", lambda: here)
    old = BuildSpec("b", "/", (), ("ninja",), memory=by_hand)
    assert resume._limit_of_its_group(old, ran_in(group)) == kept


def test_the_question_says_that_the_limit_stays() -> None:
    def asked(state: BuildState) -> str:
        return " ".join("".join(part.text for part in line) for line in resume_question("again", state, 76))

    assert "memory limit stays, also outside of /box: 1.0 GiB" in " ".join(asked(ran_in("/box")).split())
    assert "memory limit" not in asked(ran_in("machine"))
