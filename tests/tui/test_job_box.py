"""The box about one job: it lives with the job, says how it ended, and its keys act."""

from __future__ import annotations

from dataclasses import replace

import pytest
from textual.pilot import Pilot

from stoker.model import events as ev
from stoker.show.tui.app import StokerApp
from stoker.show.tui.screens.boxes import HelpBox
from stoker.show.tui.screens.job_box import JobBox
from stoker.show.tui.screens.questions import KillBox

from . import builds
from .apps import settle, shown
from .builds import FakeSource, Story
from .pictures import text_of

FIRST = 1
"""The job under the cursor after one step down."""


def source_of(story: Story) -> FakeSource:
    return FakeSource(story.state, log=builds.output_log(50))


async def told(app: StokerApp, pilot: Pilot[int], source: FakeSource, story: Story) -> str:
    """What the screen shows once it has the newest state, at its next tick."""
    source.put(story.state)
    await settle(pilot)
    app.tick()
    await settle(pilot)
    return text_of(app)


async def test_the_box_goes_on_with_its_job() -> None:
    story = builds.governed()
    source = source_of(story)
    async with shown(source, "down", "enter") as (app, pilot):
        assert isinstance(app.screen, JobBox)
        assert "205 MiB" in text_of(app)
        sample = builds.sampled(12)
        jobs = tuple(replace(s, rss=7 * builds.GIB) if s.jid == FIRST else s for s in sample.jobs)
        text = await told(app, pilot, source, story.add(3724, replace(sample, jobs=jobs)))
        assert "7.0 GiB, at most 7.0 GiB so far" in text


async def test_an_expected_size_that_is_a_guess_says_so() -> None:
    story = builds.governed(3, 5)
    source = source_of(story)
    async with shown(source, "end", "enter", size=(100, 40)) as (app, pilot):
        assert "a guess, as jobs like it" not in " ".join(text_of(app).split())
        more = story.add(3724, ev.JobMoved(8, "on_deck", 700 << 20, guessed=True))
        assert "a guess, as jobs like it differ" in " ".join((await told(app, pilot, source, more)).split())
        known = story.add(3725, ev.JobMoved(8, "on_deck", 720 << 20))
        assert "a guess" not in await told(app, pilot, source, known)


async def test_the_figures_of_a_reason_are_explained_by_those_on_the_screen() -> None:
    """Four figures stood side by side, and nothing said how they go together."""
    why = "needs up to 4.6 GiB within 3:00, 614 MiB unpromised above the reserve"
    story = builds.governed(3, 5).add(3723, ev.JobsWaiting((8,), "memory", why))
    async with shown(source_of(story), "end", "enter", size=(100, 40)) as (app, _pilot):
        told = " ".join(text_of(app).split())
        assert why.split(", ")[0] in told
        assert "up to what is expected, plus the uncertainty" in told
        assert "unpromised what is free, minus uncertainty and what is kept for others" in told
        assert "what is free, plus" not in told, "its reason says nothing of unused memory"


@pytest.mark.parametrize(
    ("end", "words"),
    [
        ([ev.JobFinished(FIRST, 1, "a.o", "cxx", 12.0, "ok", 5 << 30)], ("has ended well", "0:12", "5.0 GiB")),
        ([ev.JobFinished(FIRST, 1, "a.o", "cxx", 12.0, "failed")], ("has failed",)),
        ([ev.JobsExited((FIRST,))], ("its process has ended",)),
        (
            [
                ev.JobKilled("a.o", "shed", 5, FIRST, "", "0.9 GiB left"),
                ev.JobFinished(FIRST, 1, "a.o", "cxx", 1.0, "failed"),
            ],
            ("was stopped to free memory", "0.9 GiB left", "will run again"),
        ),
        (
            [ev.JobKilled("a.o", "person", 5, FIRST, "ann"), ev.JobFinished(FIRST, 1, "a.o", "cxx", 1.0, "failed")],
            ("was killed by ann", "will run again"),
        ),
    ],
    ids=["well", "badly", "leaving", "by stoker", "by a person"],
)
async def test_the_box_says_how_its_job_ended_and_acts_no_more(end: list[ev.Event], words: tuple[str, ...]) -> None:
    story = builds.governed()
    source = source_of(story)
    async with shown(source, "down", "enter") as (app, pilot):
        text = await told(app, pilot, source, story.add(3724, *end))
        assert all(word in text for word in words), text
        assert "F freeze" not in text.partition("╰")[2].partition("╯")[0]
        await pilot.press("F", "O", "X")
        await settle(pilot)
        assert source.commands == []
        assert isinstance(app.screen, JobBox)


async def test_the_boxes_keys_act_on_its_job() -> None:
    story = builds.governed()
    source = source_of(story)
    async with shown(source, "down", "enter") as (app, pilot):
        await pilot.press("F")
        await settle(pilot)
        assert source.commands == [("job", {"jid": FIRST, "act": "freeze"})]
        text = await told(app, pilot, source, story.add(3724, ev.JobMoved(FIRST, "frozen", None, "person")))
        assert "frozen by hand" in text
        assert "F thaw" in text
        await pilot.press("O")
        await settle(pilot)
        assert source.commands[1:] == [("job", {"jid": FIRST, "act": "alone"})]
        story.add(3725, ev.JobMoved(FIRST, "running", alone=True, alone_by="ann"))
        assert "O let others run" in await told(app, pilot, source, story)
        await pilot.press("O")
        await settle(pilot)
        assert source.commands[2:] == [("job", {"jid": FIRST, "act": "together"})]
        await pilot.press("X")
        await settle(pilot)
        assert isinstance(app.screen, KillBox)


@pytest.mark.parametrize("key", ["f", "o", "t", "d"])
async def test_the_keys_of_the_footer_below_the_box_open_their_pages(key: str) -> None:
    async with shown(source_of(builds.governed()), key) as (app, _pilot):
        page = type(app.screen)
    async with shown(source_of(builds.governed()), "down", "enter", key) as (app, _pilot):
        assert type(app.screen) is page
        assert not any(isinstance(screen, JobBox) for screen in app.screen_stack)


async def test_the_keys_are_shown_over_the_box_and_leave_it_behind() -> None:
    async with shown(source_of(builds.governed()), "down", "enter", "question_mark") as (app, pilot):
        assert isinstance(app.screen, HelpBox)
        assert "freeze" in text_of(app).lower(), "the keys of the page behind the box"
        await pilot.press("escape")
        await settle(pilot)
        assert isinstance(app.screen, JobBox)


async def test_a_reader_gets_no_keys_and_every_wait_its_reason() -> None:
    story = builds.governed()
    why = "needs ~9.1 GiB within 4:25, 6.2 GiB unpromised above the reserve"
    story.add(3724, ev.JobsWaiting((13,), "memory", why))
    source = FakeSource(story.state, read_only=True)
    async with shown(source, *["down"] * 13, "enter", size=(100, 30)) as (app, pilot):
        text = " ".join(text_of(app).split())
        assert "6.2 GiB unpromised above the" in text
        await pilot.press("F", "O", "X")
        await settle(pilot)
        assert source.commands == []


async def test_a_job_that_runs_alone_is_told_with_who_said_so_and_how_to_undo_it() -> None:
    async with shown(source_of(builds.alone()), size=(100, 30)) as (app, _pilot):
        text = text_of(app)
        assert "runs alone (ann); 51 wait" in text
        assert "; O undoes it" in text
    async with shown(source_of(builds.alone("on_deck", ""))) as (app, _pilot):
        assert "is to run alone, since it was killed" in text_of(app)
    state = builds.alone("on_deck", "").state
    waiting = sum(job.state == "on_deck" for job in state.jobs.values()) - 1
    assert waiting < len(state.jobs) - 1
    async with shown(FakeSource(state), size=(120, 40)) as (app, _pilot):
        assert f"beside others; {waiting} wait" in text_of(app), "not those that it waits for itself"
