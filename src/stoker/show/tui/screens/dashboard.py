"""The dashboard, the timeline and the end screen: pages made by pure functions.

Unaware of how the lines are made.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.model.text import spans
from stoker.show.tui import actions, dashboard, proof
from stoker.show.tui.actions import bindings
from stoker.show.tui.jobs import details, moved, ordered
from stoker.show.tui.lines import Line, from_spans
from stoker.show.tui.screens.base import PageScreen
from stoker.show.tui.screens.boxes import Box
from stoker.show.tui.textlog import TextLog

JOB_PAGE = 10
TAIL_COLUMNS = 500


class DashboardScreen(PageScreen):
    """The first screen: what a person looks at for hours."""

    SCOPE = "dashboard"
    BINDINGS = bindings("dashboard")

    def __init__(self) -> None:
        super().__init__()
        self.cursor: int | None = None
        self._row = 0
        self._tail: list[Line] = []
        self._tail_size = -1

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """The dashboard, and the output's end while no job runs."""
        m = self.moment
        jobs = ordered(m.state)
        self._follow_cursor(jobs_ids=[job.jid for job in jobs])
        tail = self._output_tail(height) if not jobs or height >= dashboard.TALL else []
        return dashboard.dashboard(m, width, height, self.glyphs, self.cursor, tail)

    def _follow_cursor(self, jobs_ids: list[int]) -> None:
        """The cursor stays on its job; when that ends, on the one that takes its row."""
        if self.cursor is None:
            return
        if self.cursor in jobs_ids:
            self._row = jobs_ids.index(self.cursor)
        else:
            self.cursor = jobs_ids[min(self._row, len(jobs_ids) - 1)] if jobs_ids else None

    def _output_tail(self, rows: int) -> list[Line]:
        log = TextLog(self.stoker.source.log)
        size = log.size()
        if size != self._tail_size:
            self._tail_size = size
            self._tail = [from_spans(spans(line.raw, TAIL_COLUMNS)) for line in log.lines(log.tail(rows), rows)]
        return self._tail

    def _move(self, by: int) -> None:
        jobs = ordered(self.moment.state)
        self.cursor = moved(jobs, self.cursor, by, self._row)
        self.redraw()

    def action_job_down(self) -> None:
        """Pick the next job."""
        self._move(1)

    def action_job_up(self) -> None:
        """Pick the job before."""
        self._move(-1)

    def action_job_page_down(self) -> None:
        """Pick a job further down."""
        self._move(JOB_PAGE)

    def action_job_page_up(self) -> None:
        """Pick a job further up."""
        self._move(-JOB_PAGE)

    def action_job_first(self) -> None:
        """Pick the oldest job."""
        self._move(-len(self.moment.state.jobs))

    def action_job_last(self) -> None:
        """Pick the newest job."""
        self._move(len(self.moment.state.jobs))

    def action_job_details(self) -> None:
        """Show all about the picked job, or pick one."""
        job = self.moment.state.jobs.get(self.cursor) if self.cursor is not None else None
        if job is None:
            self._move(0)
            return
        self.app.push_screen(Box("job", lambda width: details(job, self.moment.state, self.moment.now, width)))

    def forget_cursor(self) -> bool:
        """Drop the cursor; False if there was none."""
        had, self.cursor = self.cursor is not None, None
        self.redraw()
        return had


class TimelineScreen(PageScreen):
    """Memory, jobs and CPU over time."""

    SCOPE = "timeline"
    BINDINGS = bindings("timeline")

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """The charts."""
        return dashboard.timeline(self.moment, width, height, self.glyphs)


class EndScreen(PageScreen):
    """What came of it; stays until the person leaves."""

    SCOPE = "end"
    BINDINGS = bindings("end")

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """The summary."""
        found = self.moment.state.verification
        lines = dashboard.summary(self.moment, width, height - (found is not None), self.glyphs)
        if found is None:
            return lines
        key = actions.key_names(actions.BY_ID["verification"], self.stoker.keymap)[0]
        return [lines[0], proof.verdict_line(found, width, self.glyphs, f"  ({key}: details)"), *lines[1:]]
