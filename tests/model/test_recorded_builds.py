"""Recorded journals: each line keeps its form, and `stoker status --json` says of them what it always said.

`killed-jobs` was recorded of a real build whose compilers were killed; `every-event` holds each kind of event with all
of its fields. Both hold a promise to scripts and to older builds: a difference here breaks somebody.
"""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest

from stoker.model.codec import decode, decode_record, encode, encode_record
from stoker.model.events import EVENT_TYPES
from stoker.model.reduce import reduce
from stoker.model.state import BuildState
from stoker.model.status import status_of

RECORDED = Path(__file__).parent / "recorded"
EVERY = {"killed-jobs": 25, "every-event": 3}
"""After how many events each the status is compared."""

UPDATE = "UPDATE_GOLDEN"
"""Set this variable to write the statuses anew, then read the difference before you commit it."""


def journal(name: str) -> list[Any]:
    return [json.loads(line) for line in (RECORDED / f"{name}.jsonl").read_text().splitlines()]


@pytest.mark.parametrize("name", EVERY)
def test_a_journal_line_is_written_as_it_was_read(name: str) -> None:
    for line in journal(name):
        assert json.dumps(encode_record(decode_record(line))) == json.dumps(line)


def test_every_kind_of_event_is_recorded() -> None:
    assert {line["type"] for line in journal("every-event")} == {event.kind for event in EVENT_TYPES}


@pytest.mark.parametrize("name", EVERY)
def test_the_status_of_a_recorded_build(name: str) -> None:
    """Now and then, and at the end, with the keys in the order in which scripts see them."""
    state, statuses = BuildState(), []
    lines = journal(name)
    for number, line in enumerate(lines):
        state = reduce(state, decode_record(line))
        if number % EVERY[name] == 0 or line is lines[-1]:
            statuses.append(json.dumps(status_of(state, state.time + 1.5)))
    golden = RECORDED / f"{name}.status.jsonl"
    if os.environ.get(UPDATE):
        golden.write_text("\n".join(statuses) + "\n")
    assert statuses == golden.read_text().splitlines()


@pytest.mark.parametrize("name", EVERY)
def test_a_state_survives_the_way_to_a_viewer(name: str) -> None:
    state = BuildState()
    for line in journal(name):
        state = reduce(state, decode_record(line))
        assert decode(BuildState, json.loads(json.dumps(encode(state)))) == state
