"""The dashboard, the timeline and the end screen: their keys and state.

Pure functions in `pages/` make the lines.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import ClassVar

from textual.binding import Binding, BindingType
from textual.events import Key

from stoker.model.state import Job
from stoker.model.text import spans
from stoker.show.closing_text import sent_a_signal
from stoker.show.killed_text import end_text
from stoker.show.tui.folded_log import FoldedLog
from stoker.show.tui.input import actions
from stoker.show.tui.input.actions import bindings
from stoker.show.tui.pages import (
    dashboard_page,
    decision_lines,
    end_page,
    failure_page,
    timeline_page,
    verification_page,
)
from stoker.show.tui.pages.chart import AXIS_WIDTH
from stoker.show.tui.pages.folded_line import folded_line
from stoker.show.tui.pages.job_list import ORDERS, JobView, Order, listed, moved
from stoker.show.tui.pages.lines import Line, elide_path, from_spans
from stoker.show.tui.pages.names import plain_name
from stoker.show.tui.screens.job_box import JobBox
from stoker.show.tui.screens.job_keys import JOB_ACTIONS, JobKeys
from stoker.show.tui.screens.page_screen import FilteredScreen, PageScreen
from stoker.show.tui.screens.questions import LevelBox
from stoker.show.tui.terminal.glyphs import Glyphs

TAIL_COLUMNS = 500

ENDED_SHOWN = 20.0
"""Seconds for which the page says that the picked job has ended."""

MESSAGE_NAME = 30
"""Cells of a job's name in a message, which must fit on one line of a narrow screen."""


class DashboardScreen(JobKeys, FilteredScreen):
    """The first screen, which stays open for hours."""

    SCOPE = "dashboard"
    ALWAYS = ("failures", "pause-softly", *PageScreen.ALWAYS)
    BEFORE_PAGES = "job.sort"
    BINDINGS: ClassVar[list[BindingType]] = [
        *bindings("dashboard"),
        *(Binding(digit, f"level_type('{digit}')", show=False) for digit in "123456789"),
    ]

    def __init__(self) -> None:
        super().__init__()
        self.cursor: int | None = None
        self._last_picked: Job | None = None
        self._ended = ""
        """Name of the picked job that has ended, until another is picked or a key has reported it; keys do not act."""
        self._ended_shown_until = 0.0
        """Unix time until which the page names that job, unless a key comes before."""
        self.order: Order = ORDERS[0]
        self._row = 0
        self._tail: list[Line] = []
        self._tail_of: object = None

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the dashboard, with the output's end while no job runs or if there is room."""
        m = self.moment
        jobs = self._listed()
        self.share = (len(jobs), len(m.state.jobs))
        self._follow_cursor(jobs)
        tail = self._output_tail(height) if not m.state.jobs or height >= dashboard_page.TALL else []
        return dashboard_page.dashboard(m, width, height, self.glyphs, self.view, tail)

    @property
    def view(self) -> JobView:
        """The picked job, the order and the filter."""
        ended = self._ended if self.moment.now < self._ended_shown_until else ""
        return JobView(self.cursor, self.order, self.words, ended, self._how_it_ended)

    @property
    def _how_it_ended(self) -> str:
        """How the job ended that was picked last."""
        last = self._last_picked
        return end_text(self.moment.state, last.jid, last.output) if last is not None and self._ended else "has ended"

    def _listed(self) -> list[Job]:
        m = self.moment
        return listed(m.state, m.now, self.view)

    def _follow_cursor(self, jobs: list[Job]) -> None:
        """Keep the cursor on its job; remove it when that ends, or the next key would act on a job nobody picked.

        Its row is remembered as the starting point for the next pick.
        """
        if self.cursor is None:
            return
        at = next((row for row, job in enumerate(jobs) if job.jid == self.cursor), None)
        if at is not None:
            self._row, self._last_picked = at, jobs[at]
            return
        last = self._last_picked
        if self.cursor not in self.moment.state.jobs and last is not None and last.jid == self.cursor:
            self._ended = plain_name(last.output) or f"pid {last.pid}"
            self._ended_shown_until = self.moment.now + ENDED_SHOWN
        self.cursor = None

    def _put_cursor(self, jid: int | None) -> None:
        """Pick a job."""
        self.cursor, self._ended = jid, ""
        self._last_picked = self.picked
        self.redraw()

    def on_key(self, _event: Key) -> None:
        """Take the line about the job away that was picked and has ended. A key that would act on it says so again."""
        self._ended_shown_until = 0.0

    def _output_tail(self, rows: int) -> list[Line]:
        state = self.moment.state
        log = FoldedLog(self.viewer.source.log, state)
        width = self.size.width
        dropped = sum(s.dropped + s.interrupted for s in state.schedulers.values())
        shown = (log.size(), dropped, state.repeated, rows, width)
        if shown != self._tail_of:
            self._tail_of = shown
            self._tail = _output_lines(log, rows, width, self.glyphs)
        return self._tail

    def action_move(self, by: int) -> None:
        """Pick the job `by` rows further down."""
        jobs = self._listed()
        self._put_cursor(moved(jobs, self.cursor, by, self._row))

    def action_job_first(self) -> None:
        """Pick the oldest job."""
        self._pick_at(0)

    def action_job_last(self) -> None:
        """Pick the newest job."""
        self._pick_at(-1)

    def _pick_at(self, row: int) -> None:
        jobs = self._listed()
        self._put_cursor(jobs[row].jid if jobs else None)

    def action_sort(self, by: int) -> None:
        """Switch to the next sort order, or to the previous one."""
        self._order_by(ORDERS[(ORDERS.index(self.order) + by) % len(ORDERS)])

    def _order_by(self, order: Order) -> None:
        """Sort the jobs. The picked one stays picked: the next key would act on another one."""
        self.order = order
        self.redraw()

    def _sort_by(self, column: str) -> None:
        """Sort the jobs by the column, if they can be sorted by it."""
        order = next((order for order in ORDERS if order == column), None)
        if order is None:
            self.viewer.inform(f"jobs are sorted by {', '.join(ORDERS[:-1])} or {ORDERS[-1]}, not by {column}")
            return
        self._order_by(order)

    def pick(self, target: str, *, again: bool) -> None:
        """Put the cursor on the job; open it on a double click, or if the cursor was there already. On a column's
        heading: sort by it."""
        if not target.isdecimal():
            self._sort_by(target)
            return
        jid = int(target)
        opens = again or self.cursor == jid
        self._put_cursor(jid)
        if opens:
            self.action_job_details()

    @property
    def picked(self) -> Job | None:
        """The job under the cursor."""
        return self.moment.state.jobs.get(self.cursor) if self.cursor is not None else None

    def action_job_details(self) -> None:
        """Show all about the picked job; if none is picked, pick one, unless the picked one has just ended."""
        self._follow_cursor(self._listed())
        if self._ended:
            self.job_to_act_on()
        elif self.picked is None:
            self.action_move(0)
        else:
            self.app.push_screen(JobBox(self.picked))

    def job_to_act_on(self) -> Job | None:
        """Return the picked job; if there is none, show how to pick one, or that the picked one has ended."""
        self._follow_cursor(self._listed())
        key = self.moment.key("job.down")
        if self._ended:
            name = elide_path(self._ended, MESSAGE_NAME, self.glyphs.ellipsis)
            self.viewer.inform(f"{name} {self._how_it_ended}; pick another job with the key {key}")
            self._ended = ""
            self.redraw()
        elif self.picked is None:
            self.viewer.inform(f"pick a job first, with the key {key}")
        return self.picked

    def action_job_alone(self) -> None:
        """Run only the picked job, or let the others continue; if none is picked, only the latter."""
        self._follow_cursor(self._listed())
        alone = self._alone_without_cursor
        if alone is not None:
            self.viewer.act_on(alone, "job.alone")
        else:
            super().action_job_alone()

    @property
    def _alone_without_cursor(self) -> Job | None:
        """The job that a person wants to run alone, if none is picked."""
        return self.viewer.wanted_alone if self.cursor is None else None

    def action_level_type(self, begun: str = "") -> None:
        """Ask for a level."""

        def answered(jobs: int | None) -> None:
            if jobs is not None:
                self.viewer.queue.set_level(jobs, self.moment.state)

        self.app.push_screen(LevelBox(self.moment.state.level.target, begun), answered)

    def idle(self, action: actions.KeyAction) -> str:
        """Return why an action does nothing now: no job that could be sorted."""
        return "there are no jobs to sort" if action.method == "sort" and not any(self.share) else super().idle(action)

    @property
    def goes_back(self) -> bool:
        """Whether there is a screen to go back to: this one is the first."""
        return False

    def relevant(self, action: actions.KeyAction) -> bool:
        """Show the actions on a job only while one is picked."""
        if action.id == "job.details":
            return self.picked is not None
        if action.id not in JOB_ACTIONS:
            return super().relevant(action)
        return super().relevant(action) and self._target_of(action) is not None and self.viewer.governs_job(action)

    @property
    def always(self) -> tuple[str, ...]:
        """While a job is picked, its keys come before that of the failures, which the line about them names."""
        return self.ALWAYS if self.picked is None else self.ALWAYS[1:]

    def footer_rank(self, action: actions.KeyAction) -> int:
        """While a job is picked, the keys that act on it come first: a narrow screen has room for little else. What
        concerns the list of jobs comes before what concerns the build. First of all is how to let others run while one
        job is alone."""
        if action.id == "job.alone" and self.label(action) != action.footer:
            return -1
        if self.picked is None:
            return super().footer_rank(action) + (action.id == "job.filter")
        of_jobs = action.scope == "dashboard" and action.id != "job.filter"
        return {"job.details": 1, "job.sort": 2}.get(action.id, 0 if of_jobs else 3)

    def _target_of(self, action: actions.KeyAction) -> Job | None:
        """Return the job that an action's key would act on now."""
        return self.picked or (self._alone_without_cursor if action.id == "job.alone" else None)

    def label(self, action: actions.KeyAction) -> str:
        """Return the footer's name of an action; for the picked job, "freeze" may be "thaw" or "start"."""
        job = self._target_of(action) if action.id in JOB_ACTIONS else None
        return super().label(action) if job is None else self.viewer.job_label(action, job)

    def forget_cursor(self) -> bool:
        """Remove the cursor; return False if there was none."""
        had = self.cursor is not None or bool(self._ended)
        self._put_cursor(None)
        return had

    def undo(self) -> bool:
        """Remove the filter, or else the cursor."""
        return super().undo() or self.forget_cursor()


class TimelineScreen(FilteredScreen):
    """Memory, jobs and CPU over time; decisions and jobs at one moment, filtered by words."""

    SCOPE = "timeline"
    BINDINGS = bindings("timeline")

    def __init__(self) -> None:
        super().__init__()
        self.view = timeline_page.TimelineView()

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the charts."""
        self.view = replace(self.view, words=self.words)
        matching = timeline_page.decisions_of(self.moment.state, self.words)
        self.share = (len(matching), len(self.moment.state.decisions))
        return timeline_page.timeline(self.moment, width, height, self.glyphs, self.view)

    def idle(self, action: actions.KeyAction) -> str:
        """Return why an action does nothing now. The filter always works: it may be for jobs of earlier moments."""
        if action.scope == "timeline" and len(self.moment.state.timeline.points) < timeline_page.LEAST_POINTS:
            return "too little was measured to draw"
        nothing = action.method in ("next_decision", "moment_show") and not decision_lines.entries(self.moment.state)
        return "nothing was decided yet" if nothing else ""

    def action_next_decision(self, by: int) -> None:
        """Move the cursor to the next decision that matches the filter, or to the previous one."""
        before, self.view = self.view, timeline_page.at_decision(self.moment, self.view, by)
        if self.view == before:
            other = self.moment.key("moment.previous" if by > 0 else "moment.next")
            self.viewer.inform(f"no {'later' if by > 0 else 'earlier'} decision; {other} goes the other way")
        self.redraw()

    def action_moment_show(self) -> None:
        """Show the decisions around the cursor; without a cursor, place it at the last decision."""
        if self.view.at is None:
            self.action_next_decision(-1)
        else:
            self.viewer.show_decisions(self.view.at)

    def action_move_cursor(self, by: int) -> None:
        """Move the cursor `by` columns to the right."""
        self.view = timeline_page.moved_cursor(self.moment.state, self.view, self.size.width - AXIS_WIDTH, by)
        self.redraw()

    def action_cursor_to(self, which: int) -> None:
        """Move the cursor to the first measurement, or to the last."""
        self.view = timeline_page.cursor_at_end(self.moment.state, self.view, which)
        self.redraw()

    def action_move(self, by: int) -> None:
        """Move in time with the wheel."""
        self.action_move_cursor(by)

    def action_zoom(self, by: int) -> None:
        """Show half the span, or twice the span."""
        zoom = max(0, min(timeline_page.MOST_ZOOM, self.view.zoom + by))
        self.view = replace(self.view, zoom=zoom)
        self.redraw()

    def label(self, action: actions.KeyAction) -> str:
        """Return the footer's name of an action; Esc ends a zoom and removes the cursor first."""
        whole = action.id == "back" and self.view != timeline_page.TimelineView()
        return "whole build" if whole else super().label(action)

    def undo(self) -> bool:
        """Remove the filter, or else show the whole build again, without a cursor."""
        if super().undo():
            return True
        had, self.view = self.view != timeline_page.TimelineView(), timeline_page.TimelineView()
        self.redraw()
        return had


class EndScreen(PageScreen):
    """The outcome of the build; stays until the user leaves."""

    SCOPE = "end"
    BINDINGS = bindings("end")

    @property
    def goes_back(self) -> bool:
        """Whether Esc goes back: the dashboard of an ended build says less."""
        return False

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the summary."""
        verdict = self._verdict(width)
        closing = self.viewer.closing()
        go_on = self.moment.key("go-on") if self.viewer.offers(actions.BY_ID["go-on"]) else ""
        words = end_page.CallersWords(closing, go_on, self.viewer.unresumable)
        lines = end_page.summary(self.moment, width, height - len(verdict), self.glyphs, words)
        return [lines[0], *verdict, *lines[1:]]

    def _verdict(self, width: int) -> list[Line]:
        """Return the verification's verdict, or the cause of a failure with the tool's own message."""
        state, g = self.moment.state, self.glyphs
        if state.verification is not None:
            key = self.moment.key("verification")
            return verification_page.verdict_lines(state.verification, width, g, f"  ({key}: details)")
        if state.diagnosis is not None and state.outcome == "failed":
            key = self.moment.key("failures")
            sent = sent_a_signal(state)
            verdict = failure_page.verdict_line(state.diagnosis, width, g, f"  ({key}: what to do)", sent)
            return [verdict, *failure_page.line_of_cause(state.diagnosis, width)]
        return []


def _output_lines(log: FoldedLog, rows: int, width: int, g: Glyphs) -> list[Line]:
    """Return the last lines of the output; one line replaces what it says about dropped jobs."""
    return [
        folded_line(line.dropped, width, g, log.part_of(line).by)
        if line.dropped
        else from_spans(spans(line.raw, TAIL_COLUMNS))
        for line in log.lines(log.tail(rows), rows)
    ]
