"""What screens ask of the app that shows them, so that they need not know the app."""

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
from stoker.show.update_source import UpdateSource


class Viewer(Protocol):
    """An app over one build."""

    source: UpdateSource
    queue: CommandQueue
    keymap: dict[str, str]
    glyphs: Glyphs
    palette: Palette

    @property
    def moment(self) -> Moment:
        """What to draw now."""

    def offers(self, action: KeyAction) -> bool:
        """Say whether the action can do something here and now."""

    @property
    def scopes(self) -> Mapping[Scope, str]:
        """The screens that the help names, with their titles."""

    def in_help(self, action: KeyAction) -> bool:
        """Say whether the help names the action."""

    def why_not(self, key: str, scope: Scope) -> str:
        """Say why a key does nothing on a screen; nothing if no action has it."""

    def obstacle(self, action: KeyAction) -> str:
        """Say why the action can do nothing now."""

    def relevant(self, action: KeyAction) -> bool:
        """Say whether the action is worth a place in the footer."""

    def label(self, action: KeyAction) -> str:
        """Name the action for the footer."""

    def governs_job(self, action: KeyAction) -> bool:
        """Say whether an action on one job can do something."""

    def why_not_job(self) -> str:
        """Say why nothing can be done to a job."""

    def job_label(self, action: KeyAction, job: Job) -> str:
        """Say in a word what an action would do to this job."""

    @property
    def wanted_alone(self) -> Job | None:
        """The job that a person wants to run alone."""

    def act_on(self, job: Job, action: str) -> None:
        """Carry out an action on a job, or ask first."""

    def closing(self) -> str:
        """Say what whoever opened the screens adds to the end; empty for nothing."""

    def show_output(self, offset: int) -> None:
        """Open the output at a byte offset."""

    def inform(self, text: str, severity: SeverityLevel = "information") -> None:
        """Show a short message at the bottom."""


def viewer_of(app: App[Any]) -> Viewer:
    """The app as screens know it."""
    return cast("Viewer", app)
