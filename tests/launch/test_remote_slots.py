"""How much wider a scheduler is made for other machines."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from stoker.launch.remote_slots import remote_slots

HERE = {"PATH": os.environ["PATH"]}


def test_without_an_engine_nothing_is_asked(tmp_path: Path) -> None:
    distcc = tmp_path / "distcc"
    distcc.write_text(f"#!/bin/sh\ntouch {tmp_path}/asked\necho 99\n")
    distcc.chmod(0o755)
    assert remote_slots({"PATH": str(tmp_path), "HOME": str(tmp_path)}) == 0
    assert not (tmp_path / "asked").exists()


def test_distcc_says_how_many_it_has(tmp_path: Path) -> None:
    if shutil.which("distcc") is None:
        pytest.skip("distcc is not installed")
    own = HERE | {"DISTCC_DIR": str(tmp_path)}
    assert remote_slots(own | {"DISTCC_HOSTS": "far/8 near/2"}) == 10
    (tmp_path / "hosts").write_text("far/30\n")
    assert remote_slots(own) == 30


@pytest.mark.parametrize("answer", ["", "many", "-3", "9" * 40, "exit 1"])
def test_an_answer_that_makes_no_sense_is_none(tmp_path: Path, answer: str) -> None:
    distcc = tmp_path / "distcc"
    distcc.write_text(f"#!/bin/sh\necho '{answer}'\n")
    distcc.chmod(0o755)
    assert remote_slots({"PATH": str(tmp_path), "DISTCC_HOSTS": "far"}) == 0


def test_icecreams_slots_are_known_to_its_scheduler_alone() -> None:
    assert remote_slots({"ICECC_SCHEDULER": "far"}) == 256
    assert remote_slots({"CMAKE_CXX_COMPILER_LAUNCHER": "/usr/bin/icecc"}) == 256
