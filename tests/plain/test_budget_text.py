"""What the end says of a budget that was exceeded."""

from __future__ import annotations

from dataclasses import replace

from stoker.model.state import MemoryUse
from stoker.model.update import Update
from stoker.show.plain import PlainRenderer

from .fakes import GIB, START, done, machine


def test_the_end_says_for_how_long_the_budget_was_exceeded() -> None:
    over = MemoryUse(build_peak=5 * GIB, used_peak=6 * GIB, over_seconds=65)
    lines = PlainRenderer().update(Update(replace(done(), memory=over, machine=machine(2, 4)), "ended"), START)
    assert "stoker: memory: over the budget for 1:05, at most 6.0 GiB of 4.0 GiB" in lines


def test_it_says_nothing_of_one_that_was_kept() -> None:
    lines = PlainRenderer().update(Update(done(), "ended"), START)
    assert not any("over the budget" in line for line in lines)
