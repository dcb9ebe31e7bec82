"""The box about one job: it goes on with the job, says how it has ended, and has the keys that act on it.

Unaware of how the job is governed.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, cast

from textual.binding import BindingType

from stoker.model.state import Job
from stoker.show.tui.input import actions
from stoker.show.tui.pages.job_table import details, last_details
from stoker.show.tui.pages.lines import Line
from stoker.show.tui.screens.boxes import Box

if TYPE_CHECKING:
    from stoker.show.tui.app import StokerApp

ACTS = ("job.freeze", "job.alone", "job.kill")


class JobBox(Box[None]):
    """All about the job that was picked when it was opened, for as long as it is open."""

    BINDINGS: ClassVar[list[BindingType]] = actions.bindings_of(*ACTS)

    def __init__(self, job: Job) -> None:
        super().__init__("job", self._details)
        self._job = job

    @property
    def _stoker(self) -> StokerApp:
        return cast("StokerApp", self.app)

    @property
    def _live(self) -> Job | None:
        """The job as it is now; None once its process has ended."""
        return self._stoker.moment.state.jobs.get(self._job.jid)

    def _details(self, width: int) -> list[Line]:
        m, job = self._stoker.moment, self._live
        if job is None:
            return last_details(self._job, m.state, width)
        self._job = job
        return details(job, m.state, m.now, width)

    def hint(self, shown: int) -> str:  # noqa: ARG002
        """The keys that do something now."""
        app, job = self._stoker, self._live
        keys = []
        if job is not None:
            known = [actions.BY_ID[name] for name in ACTS]
            keys = [f"{app.moment.key(a.id)} {app.job_label(a, job)}" for a in known if app.governs_job(a)]
        return "   ".join([*keys, "esc close"])

    def check_action(self, action: str, _parameters: tuple[object, ...]) -> bool | None:
        """Refuse keys that can do nothing here and now."""
        known = next((actions.BY_ID[name] for name in ACTS if actions.BY_ID[name].method == action), None)
        return known is None or self._stoker.offers(known)

    def action_job_freeze(self) -> None:
        """Freeze it; thaw it if it is frozen, start it if it waits on deck."""
        self._act("job.freeze")

    def action_job_alone(self) -> None:
        """Run only it, or let the others go on."""
        self._act("job.alone")

    def action_job_kill(self) -> None:
        """Ask whether to kill it."""
        self._act("job.kill")

    def _act(self, action: str) -> None:
        if (job := self._live) is None:
            self._stoker.tell("that job has ended")
        else:
            self._stoker.act_on(job, action)
        self.redraw()
