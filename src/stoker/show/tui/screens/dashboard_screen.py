"""The dashboard, the timeline and the end screen: pages made by pure functions.

Unaware of how the lines are made.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual.binding import Binding, BindingType

from stoker.model.state import Job
from stoker.model.text import spans
from stoker.show.tui.input import actions
from stoker.show.tui.input.actions import bindings
from stoker.show.tui.pages import dashboard_page, end_page, failure_page, timeline_page, verification_page
from stoker.show.tui.pages.chart import AXIS_WIDTH
from stoker.show.tui.pages.job_list import ORDERS, JobView, Order, listed, moved
from stoker.show.tui.pages.lines import Line, from_spans
from stoker.show.tui.screens.job_box import JobBox
from stoker.show.tui.screens.job_keys import JOB_ACTIONS, JobKeys
from stoker.show.tui.screens.page_screen import FilteredScreen, PageScreen
from stoker.show.tui.screens.questions import LevelBox
from stoker.show.tui.text_log import TextLog

TAIL_COLUMNS = 500


class DashboardScreen(JobKeys, FilteredScreen):
    """The first screen: what a person looks at for hours."""

    SCOPE = "dashboard"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("dashboard"),
        *(Binding(digit, f"level_type('{digit}')", show=False) for digit in "123456789"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.cursor: int | None = None
        self.order: Order = ORDERS[0]
        self._row = 0
        self._tail: list[Line] = []
        self._tail_size = -1

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """The dashboard, and the output's end while no job runs."""
        m = self.moment
        jobs = listed(m.state, self.view)
        self.share = (len(jobs), len(m.state.jobs))
        self._follow_cursor(jobs_ids=[job.jid for job in jobs])
        tail = self._output_tail(height) if not m.state.jobs or height >= dashboard_page.TALL else []
        return dashboard_page.dashboard(m, width, height, self.glyphs, self.view, tail)

    @property
    def view(self) -> JobView:
        """What is picked, sorted by and looked for."""
        return JobView(self.cursor, self.order, self.words)

    def _follow_cursor(self, jobs_ids: list[int]) -> None:
        """The cursor stays on its job; when that ends, on the one that takes its row."""
        if self.cursor is None:
            return
        if self.cursor in jobs_ids:
            self._row = jobs_ids.index(self.cursor)
        else:
            self.cursor = jobs_ids[min(self._row, len(jobs_ids) - 1)] if jobs_ids else None

    def _output_tail(self, rows: int) -> list[Line]:
        log = TextLog(self.viewer.source.log)
        size = log.size()
        if size != self._tail_size:
            self._tail_size = size
            self._tail = [from_spans(spans(line.raw, TAIL_COLUMNS)) for line in log.lines(log.tail(rows), rows)]
        return self._tail

    def action_move(self, by: int) -> None:
        """Pick another job, so many rows further down."""
        jobs = listed(self.moment.state, self.view)
        self.cursor = moved(jobs, self.cursor, by, self._row)
        self.redraw()

    def action_job_first(self) -> None:
        """Pick the oldest job."""
        self._pick_at(0)

    def action_job_last(self) -> None:
        """Pick the newest job."""
        self._pick_at(-1)

    def _pick_at(self, row: int) -> None:
        jobs = listed(self.moment.state, self.view)
        self.cursor = jobs[row].jid if jobs else None
        self.redraw()

    def action_sort(self, by: int) -> None:
        """Sort by the next thing, or by the one before."""
        self.order = ORDERS[(ORDERS.index(self.order) + by) % len(ORDERS)]
        self.redraw()

    def pick(self, target: str, *, again: bool) -> None:
        """Put the cursor on the job; open it if it was there already, or by a double click."""
        jid = int(target)
        if again or self.cursor == jid:
            self.cursor = jid
            self.action_job_details()
        self.cursor = jid
        self.redraw()

    @property
    def picked(self) -> Job | None:
        """The job under the cursor."""
        return self.moment.state.jobs.get(self.cursor) if self.cursor is not None else None

    def action_job_details(self) -> None:
        """Show all about the picked job, or pick one."""
        job = self.picked
        if job is None:
            self.action_move(0)
            return
        self.app.push_screen(JobBox(job))

    def job_to_act_on(self) -> Job | None:
        """The picked job; where there is none, say how to pick one."""
        if self.picked is None:
            self.viewer.inform(f"pick a job first, with the key {self.moment.key('job.down')}")
        return self.picked

    def action_level_type(self, begun: str = "") -> None:
        """Ask for a level."""

        def answered(jobs: int | None) -> None:
            if jobs is not None:
                self.viewer.queue.set_level(jobs, self.moment.state)

        self.app.push_screen(LevelBox(self.moment.state.level.target, begun), answered)

    def relevant(self, action: actions.KeyAction) -> bool:
        """What acts on a job is worth a place while one is picked."""
        acts = action.id in JOB_ACTIONS
        return super().relevant(action) and (not acts or (self.picked is not None and self.viewer.governs_job(action)))

    def label(self, action: actions.KeyAction) -> str:
        """What freezes one job thaws or starts another."""
        job = self.picked
        return (
            self.viewer.job_label(action, job)
            if action.id in JOB_ACTIONS and job is not None
            else super().label(action)
        )

    def forget_cursor(self) -> bool:
        """Drop the cursor; False if there was none."""
        had, self.cursor = self.cursor is not None, None
        self.redraw()
        return had

    def undo(self) -> bool:
        """Drop the filter, else the cursor."""
        return super().undo() or self.forget_cursor()


class TimelineScreen(FilteredScreen):
    """Memory, jobs and CPU over time; of the decisions and jobs at a moment those with some words."""

    SCOPE = "timeline"
    BINDINGS = bindings("timeline")

    def __init__(self) -> None:
        super().__init__()
        self.view = timeline_page.TimelineView()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """The charts."""
        self.view = replace(self.view, words=self.words)
        found = timeline_page.decisions_of(self.moment.state, self.words)
        self.share = (len(found), len(self.moment.state.decisions))
        return timeline_page.timeline(self.moment, width, height, self.glyphs, self.view)

    def action_next_decision(self, by: int) -> None:
        """The cursor to the next decision that has the words, or the one before."""
        before, self.view = self.view, timeline_page.at_decision(self.moment.state, self.view, by)
        if self.view == before:
            other = self.moment.key("moment.previous" if by > 0 else "moment.next")
            self.viewer.inform(f"no {'later' if by > 0 else 'earlier'} decision; {other} goes the other way")
        self.redraw()

    def action_move_cursor(self, by: int) -> None:
        """The cursor so many columns to the right."""
        self.view = timeline_page.moved_cursor(self.moment.state, self.view, self.size.width - AXIS_WIDTH, by)
        self.redraw()

    def action_move(self, by: int) -> None:
        """The wheel goes back and forth in time."""
        self.action_move_cursor(by)

    def action_zoom(self, by: int) -> None:
        """Show half the span, or twice as much."""
        zoom = max(0, min(timeline_page.MOST_ZOOM, self.view.zoom + by))
        self.view = replace(self.view, zoom=zoom)
        self.redraw()

    def undo(self) -> bool:
        """Drop the filter, else show the whole build again, without a cursor."""
        if super().undo():
            return True
        had, self.view = self.view != timeline_page.TimelineView(), timeline_page.TimelineView()
        self.redraw()
        return had


class EndScreen(PageScreen):
    """What came of it; stays until the person leaves."""

    SCOPE = "end"
    BINDINGS = bindings("end")

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """The summary."""
        verdict = self._verdict(width)
        closing = self.viewer.closing()
        lines = end_page.summary(self.moment, width, height - len(verdict), self.glyphs, closing)
        return [lines[0], *verdict, *lines[1:]]

    def _verdict(self, width: int) -> list[Line]:
        """What the binaries are good for in one line, or why there are none, in the tool's own words too."""
        state, g = self.moment.state, self.glyphs
        if state.verification is not None:
            key = self.moment.key("verification")
            return verification_page.verdict_lines(state.verification, width, g, f"  ({key}: details)")
        if state.diagnosis is not None and state.outcome == "failed":
            key = self.moment.key("failures")
            verdict = failure_page.verdict_line(state.diagnosis, width, g, f"  ({key}: what to do)")
            return [verdict, *failure_page.line_of_cause(state.diagnosis, width)]
        return []
