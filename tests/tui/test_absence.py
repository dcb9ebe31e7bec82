"""What a person who comes back is told, where, and for how long."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.model import events as ev
from stoker.model.look import Look, look_of
from stoker.model.state import Lost, Restraint
from stoker.show.absence import NEWS_SECONDS, Absence, absence_text

from . import builds
from .apps import settle, shown
from .builds import START, FakeSource
from .pictures import text_of

LEFT = Look(START, done=10, failed=1, freezes=2, killed=3)


class Looks:
    """Remembers in memory."""

    def __init__(self, last: Look | None = None) -> None:
        self.last = last

    def recall(self) -> Look | None:
        return self.last

    def remember(self, look: Look) -> None:
        self.last = look


@pytest.mark.parametrize(
    ("seconds", "counts", "text"),
    [
        (64, (24, 3, 8, 4), "since you left 1:04 ago: 14 jobs done, 2 failed, 6 freezes, 1 killed"),
        (64, (11, 1, 2, 3), "since you left 1:04 ago: 1 job done"),
        (64, (10, 1, 3, 3), "since you left 1:04 ago: 1 freeze"),
        (64, (10, 3, 3, 3), "since you left 1:04 ago: 2 jobs failed, 1 freeze"),
        (64, (10, 1, 4, 4), "since you left 1:04 ago: 2 freezes, 1 killed"),
        (7384, (10, 1, 2, 4), "since you left 2:03:04 ago: 1 job killed"),
        (64, (10, 1, 2, 3), "since you left 1:04 ago: no job has ended"),
        (64, (4, 0, 2, 3), "since you left 1:04 ago: no job has ended"),
        (10, (11, 1, 2, 3), "since you left 0:10 ago: 1 job done"),
        (9.9, (24, 3, 8, 4), ""),
        (-64, (24, 3, 8, 4), ""),
    ],
)
def test_the_line_counts_what_is_new(seconds: float, counts: tuple[int, int, int, int], text: str) -> None:
    assert absence_text(LEFT, Look(START + seconds, *counts)) == text


@pytest.mark.parametrize(("done", "text"), [(15, "5 jobs done, the step runs again"), (10, "the step runs again")])
def test_the_line_says_that_the_step_was_begun_again(done: int, text: str) -> None:
    back = replace(LEFT, time=START + 64, done=done, attempt=2)
    assert absence_text(LEFT, back) == f"since you left 1:04 ago: {text}"
    assert "again" not in absence_text(back, replace(back, time=START + 128))
    state = builds.running(3).add(builds.NOW, ev.StepStarted(2, 4, "build", (), 1, attempt=2)).state
    assert look_of(state, START).attempt == 2


def test_a_look_counts_all_kills_of_the_build_whatever_becomes_of_the_jobs() -> None:
    state = replace(
        builds.running(3).state, restraint=Restraint(frozen=6), lost={"memory": Lost(2, 9.0), "shed": Lost(1, 3.0)}
    )
    look = look_of(state, START + 5)
    assert (look.time, look.freezes, look.killed) == (START + 5, 6, 3)


def test_the_line_goes_after_a_minute_and_never_comes_on_the_first_look() -> None:
    state = builds.running(3).state
    first, back = Absence(Looks()), Absence(Looks(replace(LEFT, time=state.time - 64)))
    for absence in (first, back):
        absence.arrive(state, state.time)
        absence.arrive(state, state.time + 30)
    assert not first.text(state.time)
    assert first.left_at is None
    assert back.text(state.time + NEWS_SECONDS - 1).startswith("since you left 1:04 ago")
    assert not back.text(state.time + NEWS_SECONDS)


@pytest.mark.parametrize("size", [(80, 24), (60, 20), (180, 50)])
async def test_the_dashboard_says_it_until_a_key_is_pressed(size: tuple[int, int]) -> None:
    source = FakeSource(builds.running(5).state)
    state = source.last.state
    left = look_of(state, state.time - 64)
    looks = Looks(replace(left, done=left.done - 14))
    async with shown(source, size=size, looks=looks) as (app, pilot):
        assert "since you left 1:04 ago: 14 jobs done" in text_of(app)
        await pilot.press("down")
        await settle(pilot)
        app.tick()
        assert "since you left" not in text_of(app)
        app.remember_look()
    assert looks.last == look_of(state, state.time)


async def test_a_first_look_says_nothing_and_remembers_nothing_before_the_first_state() -> None:
    looks = Looks()
    async with shown(FakeSource(builds.Story().state), looks=looks) as (app, _):
        assert "since you left" not in text_of(app)
        app.remember_look()
    assert looks.last is None


async def test_a_rule_parts_the_decisions_before_the_person_left_from_those_after() -> None:
    story = builds.running(5)
    at = story.state.time - START
    before = ev.Decided("stoker", "freeze old.o", "memory is short")
    story.add(at + 1, before).add(at + 100, ev.Decided("stoker", "thaw new.o", "memory is free"))
    source = FakeSource(story.state)
    for left_at, rules in ((START + at + 50, 1), (None, 0)):
        looks = Looks(None if left_at is None else Look(left_at))
        async with shown(FakeSource(source.last.state), "d", looks=looks) as (app, _):
            lines = text_of(app).splitlines()
            found = [n for n, line in enumerate(lines) if line.startswith("── you left here ──")]
            assert len(found) == rules
            for n in found:
                assert "freeze old.o" in "".join(lines[:n])
                assert "thaw new.o" in "".join(lines[n:])
                assert "thaw new.o" not in "".join(lines[:n])
