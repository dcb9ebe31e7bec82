"""The timeline counts and marks frozen jobs."""

from __future__ import annotations

from dataclasses import replace

import pytest

from stoker.model import events as ev
from stoker.model.samples import JobSample
from stoker.model.units import format_bytes
from stoker.show.tui.pages import timeline_page
from stoker.show.tui.pages.lines import text_of
from stoker.show.tui.pages.timeline_page import TimelineView
from stoker.show.tui.terminal.glyphs import UNICODE

from . import builds
from .apps import shown
from .builds import START, FakeSource, Story
from .pictures import text_of as page_text
from .test_views import at

THAWED = "third_party/old.cc.o"


def story() -> Story:
    """The governed build; one job was frozen between 3670 and 3690, and has ended."""
    told = builds.governed()
    told.add(3660, ev.JobStarted(99, 1, 9000, THAWED, "cxx", START + 3660))
    for at_, state, verb in ((3670, "frozen", "freeze"), (3690, "running", "thaw")):
        told.add(at_, ev.Decided("governor", f"{verb} {THAWED}", "memory"), ev.JobMoved(99, state))  # type: ignore[arg-type]
    # It ran for 20 s, and the 20 s for which it was frozen do not count.
    return told.add(3700, ev.JobFinished(99, 1, THAWED, "cxx", 20.0, "ok", 9 * builds.GIB)).add(
        builds.NOW + 1, builds.sampled(12)
    )


def moment(seconds: float, words: str = "old.cc.o") -> str:
    lines = timeline_page.timeline(at(story().state), 120, 40, UNICODE, TimelineView(at=START + seconds, words=words))
    return "\n".join(map(text_of, lines[-5:]))


@pytest.mark.parametrize(("seconds", "marked"), [(3665, False), (3680, True), (3695, False)])
def test_a_job_of_a_moment_is_marked_if_it_was_frozen_then(seconds: float, marked: bool) -> None:
    assert THAWED in moment(seconds)
    assert (f"‖ {THAWED}" in moment(seconds)) == marked


def test_a_figure_of_a_past_moment_is_called_a_peak_and_does_not_grow() -> None:
    """Of what a job held just then nothing is kept; its peak came later, and is more than the build held."""
    told = builds.governed().add(3660, ev.JobStarted(99, 1, 9000, THAWED, "cxx", START + 3660))

    def line() -> str:
        view = TimelineView(at=START + 3665, words="old.cc.o")
        page = timeline_page.timeline(at(told.state), 120, 40, UNICODE, view)
        return next(text for text in map(text_of, page) if THAWED in text)

    last = next(r.event for r in reversed(told.records) if isinstance(r.event, ev.Sampled))
    for seconds, rss in ((1, 2), (2, 6)):
        own = JobSample(99, rss * builds.GIB, 100.0, "cc1plus", "running")
        told.add(builds.NOW + seconds, replace(last, jobs=(*last.jobs, own)))
        assert line().split()[:3] == ["not", "ended", "yet"]
        assert "GiB" not in line()
    told.add(builds.NOW + 9, ev.JobFinished(99, 1, THAWED, "cxx", 70.0, "ok", 9 * builds.GIB))
    assert line().split()[:3] == ["peak", *format_bytes(9 * builds.GIB).split()]


def test_the_figures_of_a_moment_and_of_now_count_frozen_jobs() -> None:
    assert "11 running, 1 frozen, 40 on deck" in moment(builds.NOW)
    page = "\n".join(text_of(line) for line in timeline_page.timeline(at(builds.governed().state), 120, 40, UNICODE))
    assert "running jobs  now 11, 1 frozen, 40 on deck" in page
    assert "frozen 1 │" in page


async def test_a_low_terminal_keeps_its_charts_and_leaves_out_the_frozen_jobs() -> None:
    async with shown(FakeSource(builds.governed().state), "t", size=(60, 16)) as (app, _):
        page = page_text(app)
        assert "frozen 1 │" not in page
        assert "decisions" in page


def test_a_build_that_never_froze_anything_has_no_line_for_it() -> None:
    state = builds.running(12).state
    page = "\n".join(text_of(line) for line in timeline_page.timeline(at(state), 120, 40, UNICODE))
    assert "now 12\n" in page.replace(" \n", "\n")
    assert "frozen 0" not in page


def test_rows_that_a_decision_does_not_need_name_jobs() -> None:
    def named(seconds: float) -> int:
        lines = timeline_page.timeline(at(builds.governed().state), 120, 40, UNICODE, TimelineView(at=START + seconds))
        return sum("not ended yet" in text_of(line) for line in lines[-5:])

    assert (named(3600), named(3655)) == (3, 2), "the first has one line, the second two"
