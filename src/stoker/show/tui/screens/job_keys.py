"""The keys that act on one job, shared by the dashboard and the box about a job. Does not know which job that is."""

from __future__ import annotations

from typing import Protocol

from stoker.model.state import Job
from stoker.show.tui.screens.viewer import Viewer

JOB_ACTIONS = ("job.freeze", "job.alone", "job.kill")


class HasJob(Protocol):
    """A screen or box with a job to act on."""

    @property
    def viewer(self) -> Viewer:
        """The app."""

    def job_to_act_on(self) -> Job | None:
        """Return the job; if there is none, show why."""


class JobKeys:
    """Mixin with the actions of those keys, for a HasJob."""

    def action_job_freeze(self: HasJob) -> None:
        """Freeze the job; thaw it if it is frozen, start it if it is on deck."""
        _act(self, "job.freeze")

    def action_job_alone(self: HasJob) -> None:
        """Run only this job, or let the others continue."""
        _act(self, "job.alone")

    def action_job_kill(self: HasJob) -> None:
        """Ask whether to kill the job."""
        _act(self, "job.kill")


def _act(screen: HasJob, action: str) -> None:
    if (job := screen.job_to_act_on()) is not None:
        screen.viewer.act_on(job, action)
