"""Whatever is killed, stopped or cut in the middle of a build: it ends, truly told, and nothing stays behind."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from support.chaos import play, write_project

pytestmark = pytest.mark.timeout(400)

FAULTS = [
    "engine killed often",
    "engine stopped",
    "job killed",
    "limit cut",
    "supervisor, its successor and engine killed",
    "supervisors, watchdog and engine killed",
]
"""A few; `bench/chaos.py` has them all, as often as wanted."""


@pytest.mark.long
@pytest.mark.parametrize("fault", FAULTS)
def test_after_a_fault_the_build_ends_truly_and_nothing_is_left(tmp_path: Path, fault: str) -> None:
    result = play(tmp_path, write_project(tmp_path / "p"), random.Random(fault), [fault])
    assert result.faults == [fault]
    assert not result.wrong, result
