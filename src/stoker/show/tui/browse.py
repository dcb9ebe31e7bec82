"""Recorded builds, on screens: the list of a folder's builds with their trends, one in brief, two sides compared.

Unaware of files: a library gives the values, in a thread, so that keys are answered while it reads.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import TypeVar

from textual.app import App
from textual.notifications import SeverityLevel
from textual.worker import Worker, WorkerState, get_current_worker

from stoker.config.themes import Theme
from stoker.model.text import clean
from stoker.show.build_library import BuildLibrary, Far, HistoryList, LibraryError
from stoker.show.tui.input import actions
from stoker.show.tui.screens.boxes import HelpBox
from stoker.show.tui.screens.browse_screens import CompareScreen, HistoryScreen, SummaryScreen
from stoker.show.tui.screens.page_screen import PageScreen, redraw_seen
from stoker.show.tui.terminal.driver import driver_class, repaint
from stoker.show.tui.terminal.glyphs import ASCII, UNICODE
from stoker.show.tui.terminal.theming import MESSAGE_CSS, Palette, textual_theme

T = TypeVar("T")

LOOK_SECONDS = 5.0
"""Between two looks at all builds once all have been read: builds begin and end."""

TICK = 0.5
"""Seconds between two frames while something is being read."""

FETCH, LOOK = "fetch", "look"


class BrowseApp(App[str], inherit_bindings=False):
    """The list of builds, or one comparison; returns the build whose own screens are wanted, None if one left."""

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
        """`chosen` is the build to begin with in the list; with `sides` only their comparison is shown."""
        super().__init__(driver_class=driver_class(ascii_only=ascii_only), ansi_color=True if no_colour else None)
        self.glyphs = ASCII if ascii_only else UNICODE
        self.palette = Palette(theme, no_colour=no_colour)
        self.keymap = dict(keymap or {})
        self.animation_level = "none"
        self.far: float | None = None
        self.refusal = ""
        """Why there is nothing to show."""
        self.failure: BaseException | None = None
        """A fault of ours that has ended the screens."""
        self._reading = threading.Lock()
        self._library = library
        self._theme = textual_theme(theme, "stoker-browse", no_colour=no_colour)
        self._sides = sides
        self._list = HistoryScreen(chosen)

    def get_default_screen(self) -> PageScreen:
        """The list, or the comparison that was asked for."""
        return self._list if self._sides is None else CompareScreen()

    def on_mount(self) -> None:
        """Begin to read."""
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
        """Look at all builds anew."""
        self.run_worker(self._read_list, group=LOOK, exclusive=True, thread=True, exit_on_error=False)

    def _look_again(self) -> None:
        """The same, unless it is being done, or the list is not shown."""
        if self.screen is self._list and not any(w.is_running for w in self.workers):
            self.look()

    def _read_list(self) -> None:
        """In a thread: show what is read, until all is."""
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
        """Have `work` done in a thread and then call `done`, unless somebody has left the screen meanwhile."""
        self.workers.cancel_group(self, LOOK)
        self.far = 0.0
        self.run_worker(partial(self._fetch, work, done), group=FETCH, exclusive=True, thread=True, exit_on_error=False)

    def _fetch(self, work: Callable[[BuildLibrary, Far], T], done: Callable[[T], None]) -> None:
        worker = get_current_worker()

        def far(share: float) -> None:
            if worker.is_cancelled:
                raise LibraryError("nobody waits for it any more")
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
        """What a screen is about cannot be had: say why, on the screen before it."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
            self.inform(why, "error")
        else:
            self.refusal = why
            self.exit(None, 1)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """A fault in a thread is one of ours: leave, and let whoever opened the screens say so."""
        if event.state == WorkerState.ERROR:
            self.failure = event.worker.error
            self.exit(None, 1)
        if event.worker.group == FETCH and event.worker.is_finished:
            self.far = None

    # -- what the screens ask for --------------------------------------------------------------------------------

    def show_brief(self, build: str) -> None:
        """Show a build in brief."""
        screen = SummaryScreen(build)
        self.push_screen(screen)
        self.fetch(lambda library, far: library.brief(build, far), screen.take)

    def show_comparison(self, before: Sequence[str], after: Sequence[str]) -> None:
        """Show two sides beside each other."""
        screen = CompareScreen()
        self.push_screen(screen)
        self._compare(screen, before, after)

    def _compare(self, screen: CompareScreen, before: Sequence[str], after: Sequence[str]) -> None:
        self.fetch(lambda library, far: library.comparison(before, after, far), screen.take)

    def open_build(self, build: str) -> None:
        """Leave for a build's own screens."""
        self.exit(build)

    # -- what all screens ask of their app -----------------------------------------------------------------------

    @property
    def scopes(self) -> Mapping[actions.Scope, str]:
        """The screens that the help names."""
        return {"app": actions.SCOPE_TITLES["app"], **actions.BROWSE_TITLES}

    def in_help(self, action: actions.KeyAction) -> bool:
        """Of what can be done everywhere only a part can here."""
        return action.scope != "app" or action.id in actions.BROWSE_SHARED

    def offers(self, action: actions.KeyAction) -> bool:
        """All that the help names can be done."""
        return self.in_help(action)

    def relevant(self, action: actions.KeyAction) -> bool:
        """And is worth a place in the footer."""
        return self.in_help(action)

    def why_not(self, _key: str, _scope: actions.Scope) -> str:
        """There is no key that could do something at another time."""
        return ""

    def obstacle(self, _action: actions.KeyAction) -> str:
        """All that the help names can be done."""
        return ""

    def label(self, action: actions.KeyAction) -> str:
        """What the footer calls an action now."""
        return "this folder" if action.id == "build.everywhere" and self._list.everywhere else action.footer

    def inform(self, text: str, severity: SeverityLevel = "information") -> None:
        """A short message at the bottom, in place of the one before; errors stay; never markup."""
        if severity != "error":
            self.clear_notifications()
        self.notify(clean(text, 300), severity=severity, markup=False)

    # -- frames and keys -----------------------------------------------------------------------------------------

    def _tick(self) -> None:
        """Draw how far it is."""
        if self.far is not None:
            self.redraw()

    def redraw(self) -> None:
        """Draw what is known on what can be seen."""
        redraw_seen(self.screen_stack)

    def action_detach(self) -> None:
        """Leave."""
        self.exit(None)

    def action_interrupt(self) -> None:
        """Ctrl-C leaves, too: there is nothing to stop."""
        self.exit(None)

    def action_repaint(self) -> None:
        """Draw all cells anew."""
        if not repaint(self._driver):
            self.screen.refresh(layout=True)

    def action_help(self) -> None:
        """All keys."""
        self.push_screen(HelpBox(self.screen.SCOPE if isinstance(self.screen, PageScreen) else "app"))

    async def action_back(self) -> None:
        """Undo the innermost thing: a filter, the marks, or the screen; on the first one, leave."""
        screen = self.screen
        if not isinstance(screen, PageScreen) or screen.undo():
            return
        if len(self.screen_stack) > 1:
            self.workers.cancel_group(self, FETCH)
            self.pop_screen()
            self.look()
        else:
            self.exit(None)
