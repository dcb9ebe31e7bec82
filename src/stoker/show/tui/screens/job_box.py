"""The box about one job: it follows the job, shows how it ended, and offers the keys that act on it.

Does not know how the job is governed.
"""

from __future__ import annotations

from typing import ClassVar

from textual.binding import Binding, BindingType

from stoker.model.job_tree import ProcessTree
from stoker.model.state import Job
from stoker.model.text import clean
from stoker.model.update import CommandRefused
from stoker.show.tui.input import actions
from stoker.show.tui.pages.job_details import details, last_details
from stoker.show.tui.pages.lines import BLANK, Line, Part, aimed
from stoker.show.tui.pages.process_tree import process_lines
from stoker.show.tui.screens.boxes import ScrollingBox
from stoker.show.tui.screens.job_keys import JOB_ACTIONS, JobKeys

ASK_SECONDS = 1.0
"""Seconds between two queries for the job's processes; the same as between frames."""

ASKING = "processes"

PAGES = ("failures", "output", "timeline", "decisions", "verification", "hosts")
"""Actions that the footer under the box offers and that leave it."""


class JobBox(JobKeys, ScrollingBox):
    """All about the job that was picked when the box was opened."""

    BINDINGS: ClassVar[list[BindingType]] = [
        *actions.bindings_of(*JOB_ACTIONS, *PAGES),
        Binding("question_mark", "app.help", "Keys", show=False),
    ]

    def __init__(self, job: Job) -> None:
        super().__init__("job")
        self._job = job
        self._tree: ProcessTree | None = None
        self._earlier: ProcessTree | None = None
        self._no_tree = ""

    def on_mount(self) -> None:
        """Start to query the job's processes."""
        super().on_mount()
        self._ask()
        self.set_interval(ASK_SECONDS, self._ask)

    def _ask(self) -> None:
        """Query the processes, unless the last query is still running."""
        if self._live is not None and not any(worker.group == ASKING for worker in self.workers):
            self.run_worker(self._hear(), group=ASKING)

    async def _hear(self) -> None:
        """Store the answer for the next tick to draw; draw the first one at once."""
        first = self._tree is None and not self._no_tree
        try:
            self._earlier, self._tree = self._tree, await self.viewer.source.processes(self._job.jid)
        except CommandRefused as refusal:
            self._earlier = self._tree = None
            self._no_tree = str(refusal)
        if first:
            self.redraw()

    @property
    def _live(self) -> Job | None:
        """The job as it is now; None once its process has ended."""
        return self.viewer.moment.state.jobs.get(self._job.jid)

    def all_lines(self, width: int) -> list[Line]:
        """Return what is known about the job, and its processes while it lives."""
        m, job = self.viewer.moment, self._live
        if job is None:
            return last_details(self._job, m.state, width)
        self._job = job
        lines = [*details(job, m.state, m.now, width, self.viewer.glyphs, self._tree), BLANK]
        if self._tree is not None:
            return [*lines, *process_lines(self._tree, self._earlier, width, self.viewer.glyphs)]
        return [*lines, (Part(f"processes: {clean(self._no_tree, 200)}", "text_dim"),)] if self._no_tree else lines

    def last_lines(self) -> list[Line]:
        """Return the actions on the job."""
        return [BLANK, self._acts(self._job)] if self._live is not None else []

    def _acts(self, job: Job) -> Line:
        """Return the actions on the job, each a key that can be clicked; or why there are none."""
        viewer, parts = self.viewer, list[Part]()
        for action in (actions.BY_ID[name] for name in JOB_ACTIONS):
            if viewer.governs_job(action):
                words = (Part(viewer.moment.key(action.id), "accent bold"), Part(f" {viewer.job_label(action, job)}"))
                parts += [*aimed(words, f"key:{action.id}"), Part("   ")]
        why = viewer.why_not_job() if not parts else ""
        return tuple(parts) or (Part(why, "text_dim"),)

    def check_action(self, action: str, _parameters: tuple[object, ...]) -> bool | None:
        """Refuse keys whose action is not possible now."""
        own = next((actions.BY_ID[name] for name in JOB_ACTIONS if actions.BY_ID[name].method == action), None)
        return own is None or self.viewer.offers(own)

    async def action_open(self, name: str) -> None:
        """Close the box, and show a page."""
        self.action_close()
        await self.app.run_action(f"app.open({name!r})")

    def job_to_act_on(self) -> Job | None:
        """Return the job, while its process lives."""
        if self._live is None:
            self.viewer.inform("that job has ended")
            self.redraw()
        return self._live
