"""A changed copy is what `dataclasses.replace` makes."""

from __future__ import annotations

from dataclasses import dataclass, replace

import pytest

from stoker.model.evolve import evolve
from stoker.model.state import BuildState


@dataclass(frozen=True, slots=True)
class Box:
    """One field, checked as it is made."""

    size: int = 0

    def __post_init__(self) -> None:
        if self.size < 0:
            raise ValueError("a box has a size")


def test_a_changed_copy_has_the_changes_and_all_the_rest() -> None:
    state = BuildState(seq=3, name="torch", phase="running")
    changed = evolve(state, seq=4, decisions=())
    assert changed == replace(state, seq=4, decisions=())
    assert state.seq == 3


@pytest.mark.parametrize("record", [BuildState(), Box(1)])
def test_there_is_no_copy_with_a_field_that_the_record_has_not(record: BuildState | Box) -> None:
    with pytest.raises(KeyError):
        evolve(record, weight=2)  # type: ignore[call-arg]


def test_a_copy_is_checked_as_a_new_record_is() -> None:
    assert evolve(Box(1), size=2) == Box(2)
    with pytest.raises(ValueError, match="has a size"):
        evolve(Box(1), size=-1)
