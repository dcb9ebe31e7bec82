"""What a person reads who leaves a build that runs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.cli.watch import left_behind
from stoker.model.events import Paused
from stoker.model.state import BuildState


@pytest.mark.parametrize(("paused", "says"), [("no", "goes on"), ("soft", "stays paused"), ("hard", "stays frozen")])
def test_a_build_that_is_left_paused_is_not_said_to_go_on(paused: Paused, says: str) -> None:
    state = BuildState()
    assert says in left_behind(replace(state, level=replace(state.level, paused=paused)))
