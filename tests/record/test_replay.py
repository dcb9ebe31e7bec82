"""A recorded build plays by its own times, at any speed, forwards and back."""

from __future__ import annotations

import asyncio
import math
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from stoker.model import events as ev
from stoker.model.reduce import reduce, reduce_all
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused, Update
from stoker.record import replay
from stoker.record.journal_error import JournalError
from stoker.record.journal_reader import read_journal
from stoker.record.journal_writer import JournalWriter
from stoker.record.replay import ReplaySource
from stoker.show.update_source import UpdateSource

T0 = 1_700_000_000.0


class Time:
    """A clock that only sleeping moves."""

    def __init__(self) -> None:
        self.now = 50.0

    def clock(self) -> float:
        return self.now

    async def sleep(self, seconds: float) -> None:
        self.now += seconds
        await asyncio.sleep(0)


def record_build(folder: Path, seconds: int, *, ended: bool = True) -> Path:
    """A job finished in every second."""
    path = folder / "journal.jsonl"
    journal = JournalWriter(path)
    begin = ev.BuildStarted("b-1", "torch", ("ninja",), "/src", "/log", "host", 8, 2**34, "0.1.0")
    journal.append(begin, T0)
    journal.append(ev.SchedulerStarted(1, "ninja", 42, "/out", "1.13", 8), T0)
    for n in range(1, seconds):
        journal.append(ev.JobFinished(None, 1, f"{n}.o", "cxx", 1.0, "ok"), T0 + n)
    if ended:
        journal.append(ev.BuildEnded("done", 0, ""), T0 + seconds)
    journal.close()
    return path


def play(path: Path, time: Time, speed: float = 1.0, *, hold_at_end: bool = False) -> ReplaySource:
    return ReplaySource(path, speed, hold_at_end=hold_at_end, clock=time.clock, sleep=time.sleep)


def finished(update: Update) -> int:
    scheduler = update.state.schedulers.get(1)
    return scheduler.finished if scheduler else 0


async def until(updates: AsyncIterator[Update], count: int) -> Update:
    async for update in updates:
        if finished(update) >= count:
            return update
    raise AssertionError("the replay ended")


async def test_every_second_shows_what_was_recorded_then(tmp_path: Path) -> None:
    time = Time()
    source: UpdateSource = play(record_build(tmp_path, 30), time)
    seen = []
    async for update in source.updates():
        assert update.state.time - T0 <= time.now - 50.0 + 1e-6, "nothing is shown before its time"
        seen.append((round(time.now - 50.0), finished(update), update.link))
    assert seen[:3] == [(0, 0, "replay"), (1, 1, "replay"), (2, 2, "replay")]
    assert seen[-1] == (30, 29, "ended")
    assert source.read_only


async def test_ten_times_as_fast_takes_a_tenth(tmp_path: Path) -> None:
    time = Time()
    async for update in play(record_build(tmp_path, 100), time, 10.0).updates():
        last = update
    assert (last.link, last.state.outcome) == ("ended", "done")
    assert time.now - 50.0 == pytest.approx(10.0, abs=0.2)


async def test_as_fast_as_possible_never_sleeps_and_ends_with_the_whole_state(tmp_path: Path) -> None:
    time = Time()
    path = record_build(tmp_path, 2000)
    updates = [u async for u in play(path, time, math.inf).updates()]
    assert time.now == 50.0
    assert updates[-1].state == reduce_all(read_journal(path))
    assert 3 < len(updates) < 50, "in steps, not one by one"


async def test_a_link_of_ones_own_to_a_journal_is_followed(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(record_build(tmp_path, 5))
    updates = [u async for u in play(tmp_path / "link", Time(), math.inf).updates()]
    assert updates[-1].state.outcome == "done"


async def test_a_journal_without_an_end_still_ends(tmp_path: Path) -> None:
    updates = [u async for u in play(record_build(tmp_path, 5, ended=False), Time(), math.inf).updates()]
    assert updates[-1].link == "ended"
    assert finished(updates[-1]) == 4


async def test_paused_time_stands_still(tmp_path: Path) -> None:
    time = Time()
    source = play(record_build(tmp_path, 100), time)
    updates = source.updates()
    await until(updates, 10)
    await source.command("replay_pause")
    update = await anext(updates)
    assert update.note == "paused"
    time.now += 1000.0
    waiting = asyncio.ensure_future(anext(updates))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    await source.command("replay_pause")
    assert finished(await waiting) <= 11, "the pause was not caught up with"


async def test_seeking_forwards_and_back_shows_the_state_of_that_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(replay, "CHECKPOINT_RECORDS", 50)
    path = record_build(tmp_path, 1000)
    records = list(read_journal(path))
    source = play(path, Time())
    updates = source.updates()
    await anext(updates)
    for target in (900, 100, 99, 500, 0, 999, 3):
        await source.command("replay_seek", seconds=float(target), relative=False)
        update = await anext(updates)
        assert update.state == reduce_all(r for r in records if r.time <= T0 + target)
    await source.command("replay_seek", seconds=60)
    await source.command("replay_seek", seconds=-10)
    assert finished(await anext(updates)) == 53, "two keys pressed between two pictures add up"


async def test_seeking_back_does_not_read_from_the_beginning(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    source = play(record_build(tmp_path, 20_000), Time())
    updates = source.updates()
    await anext(updates)
    await source.command("replay_seek", seconds=19_000.0, relative=False)
    await anext(updates)
    steps = 0

    def counting(state: BuildState, record: ev.Record) -> BuildState:
        nonlocal steps
        steps += 1
        return reduce(state, record)

    monkeypatch.setattr(replay, "reduce", counting)
    await source.command("replay_seek", seconds=-100)
    assert finished(await anext(updates)) == 18_900
    assert steps <= replay.CHECKPOINT_RECORDS


async def test_checkpoints_stay_few(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replay, "CHECKPOINT_RECORDS", 10)
    monkeypatch.setattr(replay, "MAX_CHECKPOINTS", 20)
    path = record_build(tmp_path, 3000)
    records = list(read_journal(path))
    source = play(path, Time())
    updates = source.updates()
    await anext(updates)
    for target in (2900, 1500, 10, 2000):
        await source.command("replay_seek", seconds=target, relative=False)
        assert (await anext(updates)).state == reduce_all(r for r in records if r.time <= T0 + target)
    assert source._tape is not None
    assert len(source._tape._checkpoints) <= 20


async def test_held_at_the_end_one_may_go_back(tmp_path: Path) -> None:
    source = play(record_build(tmp_path, 50), Time(), math.inf, hold_at_end=True)
    updates = source.updates()
    update = await until(updates, 49)
    while update.note != "the end":
        update = await anext(updates)
    assert (update.link, update.state.outcome) == ("replay", "done")
    await source.command("replay_speed", factor=1)
    await source.command("replay_seek", seconds=-20)
    update = await anext(updates)
    assert (finished(update), update.state.outcome, update.note) == (30, None, "1x")


async def test_beyond_either_end_is_the_end(tmp_path: Path) -> None:
    source = play(record_build(tmp_path, 50), Time(), hold_at_end=True)
    updates = source.updates()
    await anext(updates)
    await source.command("replay_seek", seconds=1e9)
    assert (await anext(updates)).state.outcome == "done"
    await source.command("replay_seek", seconds=-1e9)
    update = await anext(updates)
    assert (finished(update), update.state.name) == (0, "torch")


async def test_a_new_speed_counts_from_now(tmp_path: Path) -> None:
    time = Time()
    source = play(record_build(tmp_path, 200), time)
    updates = source.updates()
    await until(updates, 100)
    at = time.now
    await source.command("replay_speed", factor=100.0)
    async for update in updates:
        last = update
    assert last.link == "ended"
    assert time.now - at == pytest.approx(1.0, abs=0.3)


@pytest.mark.parametrize(
    ("verb", "arguments"),
    [
        ("stop", {"force": True}),
        ("replay_speed", {}),
        ("replay_speed", {"factor": 0}),
        ("replay_speed", {"factor": "fast"}),
        ("replay_speed", {"factor": math.nan}),
        ("replay_seek", {}),
        ("replay_seek", {"seconds": True}),
    ],
)
async def test_what_makes_no_sense_is_refused(tmp_path: Path, verb: str, arguments: dict[str, object]) -> None:
    source = play(record_build(tmp_path, 5), Time())
    with pytest.raises(CommandRefused):
        await source.command(verb, **arguments)


async def test_a_file_that_is_no_journal_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\n")
    with pytest.raises(JournalError):
        await anext(play(path, Time()).updates())


async def test_the_output_beside_the_journal_is_its_log(tmp_path: Path) -> None:
    path = record_build(tmp_path, 5)
    (tmp_path / "output.log").write_bytes(b"hello")
    assert play(path, Time()).log.read(0, 10) == b"hello"
