"""The interface that screens use to call their app, so that they do not depend on it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol, cast

from textual.app import App
from textual.notifications import SeverityLevel

from stoker.model.state import Job
from stoker.show.tui.input.actions import KeyAction, Scope
from stoker.show.tui.input.command_queue import CommandQueue
from stoker.show.tui.pages.moment import Moment
from stoker.show.tui.terminal.glyphs import Glyphs
from stoker.show.tui.terminal.theming import Palette
from stoker.show.update_source import FindCause, UpdateSource


class Viewer(Protocol):
    """An app over one build."""

    source: UpdateSource
    queue: CommandQueue
    keymap: dict[str, str]
    glyphs: Glyphs
    palette: Palette
    find_cause: FindCause | None
    unresumable: str

    @property
    def moment(self) -> Moment:
        """What to draw now."""

    def offers(self, action: KeyAction) -> bool:
        """Return whether the action is possible now."""

    @property
    def scopes(self) -> Mapping[Scope, str]:
        """The screens that the help lists, with their titles."""

    def in_help(self, action: KeyAction) -> bool:
        """Return whether the help lists the action."""

    def why_not(self, key: str, scope: Scope) -> str:
        """Return why a key does nothing on a screen; empty if no action has that key."""

    def obstacle(self, action: KeyAction) -> str:
        """Return why the action is not possible now."""

    def relevant(self, action: KeyAction) -> bool:
        """Return whether the action deserves a place in the footer."""

    def label(self, action: KeyAction) -> str:
        """Return the footer's name of the action."""

    def governs_job(self, action: KeyAction) -> bool:
        """Return whether an action on one job is possible."""

    def why_not_job(self) -> str:
        """Return why no action on a job is possible."""

    def job_label(self, action: KeyAction, job: Job) -> str:
        """Return what an action would do to this job, in a word."""

    @property
    def wanted_alone(self) -> Job | None:
        """The job that a person wants to run alone."""

    def act_on(self, job: Job, action: str) -> None:
        """Perform an action on a job, or ask first."""

    def closing(self) -> str:
        """Return the caller's addition to the end screen; empty for nothing."""

    def show_output(self, offset: int) -> None:
        """Show the output at a byte offset."""

    def show_decisions(self, time: float) -> None:
        """Show the decisions around a Unix time."""

    def inform(self, text: str, severity: SeverityLevel = "information") -> None:
        """Show a short message at the bottom."""


def viewer_of(app: App[Any]) -> Viewer:
    """Return the app as screens see it."""
    return cast("Viewer", app)
