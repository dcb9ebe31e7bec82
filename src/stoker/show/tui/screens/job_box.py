"""The box about one job: it goes on with the job, says how it has ended, and has the keys that act on it.

Unaware of how the job is governed.
"""

from __future__ import annotations

from typing import ClassVar

from textual.binding import BindingType

from stoker.model.state import Job
from stoker.show.tui.input import actions
from stoker.show.tui.pages.job_details import details, last_details
from stoker.show.tui.pages.lines import BLANK, Line, Part, aimed
from stoker.show.tui.screens.boxes import Box
from stoker.show.tui.screens.job_keys import JOB_ACTIONS, JobKeys


class JobBox(JobKeys, Box[None]):
    """All about the job that was picked when it was opened, for as long as it is open."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings_of(*JOB_ACTIONS)

    def __init__(self, job: Job) -> None:
        super().__init__("job", self._details)
        self._job = job

    @property
    def _live(self) -> Job | None:
        """The job as it is now; None once its process has ended."""
        return self.viewer.moment.state.jobs.get(self._job.jid)

    def _details(self, width: int) -> list[Line]:
        m, job = self.viewer.moment, self._live
        if job is None:
            return last_details(self._job, m.state, width)
        self._job = job
        room = max(1, self.app.size.height - 4)  # the box's edges, a blank, and what can be done
        return [*details(job, m.state, m.now, width, self.viewer.glyphs)[:room], BLANK, self._acts(job)]

    def _acts(self, job: Job) -> Line:
        """What can be done with the job, each a key and a place to click at; or why nothing can."""
        viewer, parts = self.viewer, list[Part]()
        for action in (actions.BY_ID[name] for name in JOB_ACTIONS):
            if viewer.governs_job(action):
                words = (Part(viewer.moment.key(action.id), "accent bold"), Part(f" {viewer.job_label(action, job)}"))
                parts += [*aimed(words, f"key:{action.id}"), Part("   ")]
        why = viewer.why_not_job() if not parts else ""
        return tuple(parts) or (Part(why, "text_dim"),)

    def hint(self, shown: int) -> str:  # noqa: ARG002
        """How to leave."""
        return "esc close"

    def check_action(self, action: str, _parameters: tuple[object, ...]) -> bool | None:
        """Refuse keys that can do nothing here and now."""
        own = next((actions.BY_ID[name] for name in JOB_ACTIONS if actions.BY_ID[name].method == action), None)
        return own is None or self.viewer.offers(own)

    def job_to_act_on(self) -> Job | None:
        """The job, while its process lives."""
        if self._live is None:
            self.viewer.inform("that job has ended")
            self.redraw()
        return self._live
