"""What is written down of a build, and in which order."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import pytest

from stoker.config.paths import BuildPaths
from stoker.engine.loop.event_store import EventStore
from stoker.model import events as ev
from stoker.record.journal_reader import load_state

BEGUN = ev.BuildStarted("b-1", "b", ("make",), "/src", "/log", "host", 2, 24 << 30, "0.1.0")


def test_viewers_get_what_is_counted_and_written_down_already(tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path)
    store = EventStore(paths)
    seen: list[tuple[str, int]] = []

    def publish(lines: Sequence[bytes], records: Sequence[ev.Record]) -> None:
        assert load_state(paths.journal).seq == store.state.seq == records[-1].seq
        seen.extend((record.event.kind, len(lines)) for record in records)

    store.write([BEGUN, ev.Noticed("info", "hello")], 1000.0, publish)
    store.write([ev.Noticed("info", "again")], 1001.0, publish)
    assert seen == [("build_started", 2), ("noticed", 2), ("noticed", 1)]


async def test_what_the_engine_before_knew_is_as_old_as_its_last_record(tmp_path: Path) -> None:
    """Not as old as the successor's own first one: a job that ended in between would seem to have lived until then."""
    store = EventStore(BuildPaths(tmp_path))
    store.write([BEGUN], 1010.0, nobody)
    await store.close()
    successor = EventStore(BuildPaths(tmp_path))
    successor.write([ev.EngineStarted(7, adopted=True)], 1015.0, nobody)
    assert successor.watched_until == pytest.approx(1010.0, abs=0.001)
    await successor.close()


def nobody(_lines: Sequence[bytes], _records: Sequence[ev.Record]) -> None:
    """No viewer is there."""
