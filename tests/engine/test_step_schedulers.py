"""Whose scheduler a scheduler is, whichever of the two was found first: it, or the word that its command runs."""

from __future__ import annotations

from stoker.engine.step_schedulers import StepSchedulers


def test_a_ninja_that_is_found_before_its_command_is_told_of_counts_for_that_command() -> None:
    schedulers = StepSchedulers(100.0, {}, next_sid=1)
    schedulers.met(1, 107.0)
    assert not schedulers.any_before(107.01), "the command that has just ended had none"
    schedulers.next_command(107.01, 2, new_step=True)
    assert schedulers.any_before(), "so nobody takes it for unseen at the end"
    assert schedulers.first == 1


def test_a_command_after_one_with_a_ninja_begins_with_none() -> None:
    schedulers = StepSchedulers(100.0, {}, next_sid=1)
    assert not schedulers.any_before()
    schedulers.met(1, 100.0)
    assert schedulers.any_before(107.0)
    schedulers.next_command(107.0, 2, new_step=True)
    assert not schedulers.any_before()
    assert schedulers.first == 2


def test_another_attempt_is_a_command_of_its_own_in_the_same_step() -> None:
    schedulers = StepSchedulers(100.0, {}, next_sid=3)
    schedulers.met(3, 100.0)
    schedulers.next_command(107.0, 4, new_step=False)
    assert not schedulers.any_before()
    assert schedulers.first == 3


def test_an_engine_that_takes_over_knows_which_were_of_this_step() -> None:
    schedulers = StepSchedulers(100.0, {1: 50.0, 2: 99.99, 3: 104.0}, next_sid=4)
    assert schedulers.any_before()
    assert schedulers.first == 2
