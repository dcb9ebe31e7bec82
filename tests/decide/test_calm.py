"""Ends wait for each other only where no core is idle meanwhile, and nothing can become short."""

from __future__ import annotations

from decide.builds import GIB, curve, kernel, light
from stoker.decide.policy.calm import TOGETHER_SECONDS, answer_pause, is_calm

GUESS = curve((0, 0.05), (5, 0.1), spread=1.0, time_spread=1.0)


def test_while_each_core_has_a_job_the_end_of_another_can_wait() -> None:
    assert answer_pause(2, 2.0, calm=True) == TOGETHER_SECONDS
    assert answer_pause(1, 2.0, calm=True) == 0.0, "a core is idle"
    assert answer_pause(2, 2.5, calm=True) == 0.0
    assert answer_pause(130, 2.0, calm=False) == 0.0


def test_there_is_calm_with_room_for_all_that_the_cores_could_fill_in_a_second() -> None:
    assert is_calm(8 * GIB, 8, [("cxx", light()), ("nvcc", kernel())])
    assert not is_calm(7.9 * GIB, 8, [("cxx", light())])


def test_there_is_none_beside_a_job_of_which_nothing_is_known() -> None:
    assert not is_calm(100 * GIB, 2, [("cxx", light()), ("other", GUESS)])
    assert not is_calm(100 * GIB, 2, []), "the first ones have yet to show what they are"


def test_a_file_too_small_to_be_measured_needs_more_room() -> None:
    assert is_calm(8 * GIB, 2, [("cxx", GUESS)])
    assert not is_calm(7.9 * GIB, 2, [("cxx", GUESS)])
