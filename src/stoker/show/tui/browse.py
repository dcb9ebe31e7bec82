"""Screens for recorded builds: the list of a folder's builds with their trends, a summary of one, a comparison.

Knows no files: a library supplies the values, in a thread, so that keys work while it reads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from textual.worker import Worker, WorkerState, get_current_worker

from stoker.config.themes import Theme
from stoker.show.build_library import BuildLibrary, Far, HistoryList, LibraryError
from stoker.show.tui.input import actions
from stoker.show.tui.screens.boxes import HelpBox
from stoker.show.tui.screens.browse_screens import CompareScreen, HistoryScreen, SummaryScreen
from stoker.show.tui.screens.message_app import MessageApp
from stoker.show.tui.screens.page_screen import PageScreen, redraw_seen
from stoker.show.tui.terminal.driver import driver_class, repaint
from stoker.show.tui.terminal.glyphs import ASCII, UNICODE
from stoker.show.tui.terminal.theming import MESSAGE_CSS, Palette, textual_theme

T = TypeVar("T")

LOOK_SECONDS = 5.0
"""Seconds between two refreshes of the list once all builds have been read: builds begin and end."""

TICK = 0.5
"""Seconds between two frames while a journal is being read."""

FETCH, LOOK = "fetch", "look"


class BrowseApp(MessageApp[str], inherit_bindings=False):
    """The list of builds, or one comparison; returns the build whose own screens to open, None if the user left."""

    CSS = (
        """
    PageScreen { background: $background; color: $foreground; }
    """
        + MESSAGE_CSS
    )
    ENABLE_COMMAND_PALETTE = False
    BINDINGS = actions.bindings_of(*actions.BROWSE_SHARED)
    TITLE = "stoker"

    def __init__(
        self,
        library: BuildLibrary,
        theme: Theme,
        *,
        ascii_only: bool,
        no_colour: bool,
        keymap: Mapping[str, str] | None = None,
        chosen: str = "",
        sides: tuple[Sequence[str], Sequence[str]] | None = None,
    ) -> None:
        """`chosen` is the build selected first in the list; with `sides`, only their comparison is shown."""
        super().__init__(driver_class=driver_class(ascii_only=ascii_only), ansi_color=True if no_colour else None)
        self.glyphs = ASCII if ascii_only else UNICODE
        self.palette = Palette(theme, no_colour=no_colour)
        self.keymap = dict(keymap or {})
        self.animation_level = "none"
        self.far: float | None = None
        self.refusal = ""
        """Why there is nothing to show."""
        self.failure: BaseException | None = None
        """The exception that has ended the screens."""
        self._reading = threading.Lock()
        self._library = library
        self._theme = textual_theme(theme, "stoker-browse", no_colour=no_colour)
        self._sides = sides
        self._list = HistoryScreen(chosen)

    def get_default_screen(self) -> PageScreen:
        """Return the list, or the requested comparison."""
        return self._list if self._sides is None else CompareScreen()

    def on_mount(self) -> None:
        """Start to read."""
        self.register_theme(self._theme)
        self.theme = self._theme.name
        self.set_keymap(self.keymap)
        for error in actions.keymap_errors(self.keymap):
            self.inform(error, "error")
        self.set_interval(TICK, self._tick)
        if self._sides is None:
            self.look()
            self.set_interval(LOOK_SECONDS, self._look_again)
        elif isinstance(self.screen, CompareScreen):
            self._compare(self.screen, *self._sides)

    # -- reading -------------------------------------------------------------------------------------------------

    def look(self) -> None:
        """Read the list of builds again."""
        self.run_worker(self._read_list, group=LOOK, exclusive=True, thread=True, exit_on_error=False)

    def _look_again(self) -> None:
        """Refresh the list, unless a worker is busy or another screen is in front."""
        if self.screen is self._list and not any(w.is_running for w in self.workers):
            self.look()

    def _read_list(self) -> None:
        """In a thread: read the journals and show what is known so far, until all are read."""
        worker = get_current_worker()
        unread = 1
        while unread and not worker.is_cancelled:
            with self._reading:
                found = self._library.history(everywhere=self._list.everywhere)
            if not worker.is_cancelled:
                self.call_from_thread(self._take_list, found)
            unread = found.unread

    def _take_list(self, found: HistoryList) -> None:
        if found != self._list.found:
            self._list.take(found)

    def fetch(self, work: Callable[[BuildLibrary, Far], T], done: Callable[[T], None]) -> None:
        """Run `work` in a thread and then call `done`, unless the user has left the screen meanwhile."""
        self.workers.cancel_group(self, LOOK)
        self.far = 0.0
        self.run_worker(partial(self._fetch, work, done), group=FETCH, exclusive=True, thread=True, exit_on_error=False)

    def _fetch(self, work: Callable[[BuildLibrary, Far], T], done: Callable[[T], None]) -> None:
        worker = get_current_worker()

        def far(share: float) -> None:
            if worker.is_cancelled:
                raise LibraryError("no longer needed")
            self.far = share

        try:
            with self._reading:
                found = work(self._library, far)
        except LibraryError as err:
            if not worker.is_cancelled:
                self.call_from_thread(self._give_up, str(err))
            return
        if not worker.is_cancelled:
            self.call_from_thread(done, found)

    def _give_up(self, why: str) -> None:
        """Close the screen whose data is not available, and say why on the one below it."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
            self.inform(why, "error")
        else:
            self.refusal = why
            self.exit(None, 1)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Leave if a thread has crashed; the caller reports it."""
        if event.state == WorkerState.ERROR:
            self.failure = event.worker.error
            self.exit(None, 1)
        if event.worker.group == FETCH and event.worker.is_finished:
            self.far = None

    # -- what screens call (Browser) -----------------------------------------------------------------------------

    def show_brief(self, build: str) -> None:
        """Show the summary of a build."""
        screen = SummaryScreen(build)
        self.push_screen(screen)
        self.fetch(lambda library, far: library.brief(build, far), screen.take)

    def show_comparison(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Show the comparison of two sides."""
        screen = CompareScreen()
        self.push_screen(screen)
        self._compare(screen, before, after)

    def _compare(self, screen: CompareScreen, before: Sequence[str], after: Sequence[str]) -> None:
        self.fetch(lambda library, far: library.comparison(before, after, far), screen.take)

    def open_build(self, build: str) -> None:
        """Leave, so that the caller opens the build's own screens."""
        self.exit(build)

    # -- what all screens call (Viewer) --------------------------------------------------------------------------

    @property
    def scopes(self) -> Mapping[actions.Scope, str]:
        """The screens that the help lists."""
        return {"app": actions.SCOPE_TITLES["app"], **actions.BROWSE_TITLES}

    def in_help(self, action: actions.KeyAction) -> bool:
        """Return whether the help lists an action; of the app's actions, only a part works here."""
        return action.scope != "app" or action.id in actions.BROWSE_SHARED

    def offers(self, action: actions.KeyAction) -> bool:
        """Return whether an action works: all that the help lists do."""
        return self.in_help(action)

    def relevant(self, action: actions.KeyAction) -> bool:
        """Return whether an action deserves a place in the footer."""
        return self.in_help(action)

    def why_not(self, _key: str, _scope: actions.Scope) -> str:
        """Return nothing: no key works only at other times."""
        return ""

    def obstacle(self, _action: actions.KeyAction) -> str:
        """Return nothing: all actions in the help work."""
        return ""

    def label(self, action: actions.KeyAction) -> str:
        """Return the footer's present name of an action."""
        return "this folder" if action.id == "build.everywhere" and self._list.everywhere else action.footer

    # -- frames and keys -----------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Draw the progress of reading."""
        if self.far is not None:
            self.redraw()

    def redraw(self) -> None:
        """Draw the current state on the visible screens."""
        redraw_seen(self.screen_stack)

    def action_detach(self) -> None:
        """Leave."""
        self.exit(None)

    def action_interrupt(self) -> None:
        """Leave on Ctrl-C, too: there is nothing to stop."""
        self.exit(None)

    def action_repaint(self) -> None:
        """Redraw the whole screen."""
        if not repaint(self._driver):
            self.screen.refresh(layout=True)

    def action_help(self) -> None:
        """Show all keys."""
        self.push_screen(HelpBox(self.screen.SCOPE if isinstance(self.screen, PageScreen) else "app"))

    async def action_back(self) -> None:
        """Undo the most recent of: a filter, the marks, the screen; on the first screen, leave."""
        screen = self.screen
        if not isinstance(screen, PageScreen) or screen.undo():
            return
        if len(self.screen_stack) > 1:
            self.workers.cancel_group(self, FETCH)
            self.pop_screen()
            self.look()
        else:
            self.exit(None)
