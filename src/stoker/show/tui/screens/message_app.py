"""Short messages above the footer, the same in all apps. Knows no screens."""

from __future__ import annotations

from typing import TypeVar

from textual.app import App
from textual.events import Event, Key
from textual.notifications import Notify, SeverityLevel

from stoker.model.text import clean

T = TypeVar("T")


class MessageApp(App[T], inherit_bindings=False):
    """An app whose messages hide the footer, so they go at the next key; errors stay until they have been read."""

    _passing = False
    """Whether the messages shown may go at the next key."""

    async def on_event(self, event: Event) -> None:
        """Take the message away at a key, which may bring the next one."""
        # A key that comes back from the screen may just have brought a message.
        if isinstance(event, Key) and not event.is_forwarded:
            self.end_message()
        await super().on_event(event)

    def inform(self, text: str, severity: SeverityLevel = "information") -> None:
        """Show a short message at the bottom, without markup. It replaces earlier ones; an error only equal ones."""
        self._passing = severity != "error"
        self.notify(clean(text, 300), severity=severity, markup=False)

    def on_notify(self, event: Notify) -> None:
        """Make room for a message that is about to be shown. Only now: of keys that come in one burst, as pasted ones
        do, all messages are on their way before the first of them is shown."""
        new = event.notification
        if new.severity != "error":
            self.clear_notifications()
        for old in [old for old in self._notifications if old.message == new.message]:
            del self._notifications[old]

    def end_message(self) -> None:
        """Take away what is shown, unless it is an error."""
        if self._passing:
            self._passing = False
            self.clear_notifications()
