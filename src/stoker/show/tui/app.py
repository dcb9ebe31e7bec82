"""The terminal interface: takes an UpdateSource and draws its newest state once a second.

Knows no sockets and no journals, and not how a build runs. Leaving it never affects the build.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import signal
import sys
import termios
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import replace

from textual.events import Event, Key
from textual.screen import Screen
from textual.worker import Worker, WorkerState

from stoker.config.attention_settings import AttentionSettings
from stoker.config.themes import Theme
from stoker.model.update import Update
from stoker.show.absence import REMEMBER_SECONDS, Absence
from stoker.show.attention import Attention
from stoker.show.tui.control import ControlApp
from stoker.show.tui.input import actions
from stoker.show.tui.pages.moment import Clock, Moment
from stoker.show.tui.screens.boxes import Box
from stoker.show.tui.screens.dashboard_screen import DashboardScreen, EndScreen, TimelineScreen
from stoker.show.tui.screens.decisions_screen import DecisionsScreen
from stoker.show.tui.screens.failures_screen import FailuresScreen
from stoker.show.tui.screens.hosts_screen import HostsScreen
from stoker.show.tui.screens.output_screen import OutputScreen
from stoker.show.tui.screens.page_screen import PageScreen, redraw_seen
from stoker.show.tui.screens.verification_screen import VerificationScreen
from stoker.show.tui.terminal.glyphs import ASCII, UNICODE
from stoker.show.tui.terminal.theming import MESSAGE_CSS
from stoker.show.update_source import FindCause, GoOn, LookMemory, UpdateSource

HANG_UP = 129
"""Exit status of a viewer whose terminal went away (128 + SIGHUP)."""

TICK = 1.0
"""Seconds between frames: clocks show seconds, and a slow link should not carry more."""

QUIET = AttentionSettings("off", "no", "no")

ThemeWatch = Callable[[], AsyncIterator[tuple[Mapping[str, Theme], Sequence[object]]]]
"""Yields all themes, and the errors in them, whenever a theme file changes."""

PAGES: Mapping[str, type[PageScreen]] = {
    "output": OutputScreen,
    "timeline": TimelineScreen,
    "failures": FailuresScreen,
    "decisions": DecisionsScreen,
    "verification": VerificationScreen,
    "hosts": HostsScreen,
    "end": EndScreen,
}


class ScreensError(Exception):
    """The screens have crashed; the traceback has been printed."""


class StokerApp(ControlApp):
    """The screens over one source. Its return value is None if the user left while the build was running."""

    TITLE = "stoker"
    COMMAND_PALETTE_BINDING = "f24"  # the real key is in the action table, but Textual requires one here
    CSS = (
        """
    PageScreen { background: $background; color: $foreground; }
    CommandPalette { background: transparent; }
    CommandPalette SearchIcon { display: none; }
    CommandPalette LoadingIndicator { display: none; }
    CommandPalette > Vertical { margin-top: 1; }
    CommandPalette #--input { border: none; padding: 0 1; background: $surface; }
    CommandPalette CommandInput, CommandPalette CommandInput:focus { border: none; height: 1; padding: 0 1; }
    CommandPalette > .command-palette--help-text { text-style: not dim not bold; }
    CommandPalette CommandList { border-top: none; background: $panel; }
    CommandPalette CommandList > .option-list--option-highlighted {
        color: $block-cursor-foreground; background: $block-cursor-background;
    }
    CommandPalette CommandList { border-bottom: hkey $surface; }
    CommandPalette CommandList { scrollbar-background: $surface; scrollbar-color: $accent; }
    """
        + MESSAGE_CSS
    )

    def __init__(
        self,
        source: UpdateSource,
        *,
        themes: Mapping[str, Theme],
        theme_name: str,
        keymap: Mapping[str, str] | None = None,
        watch_themes: ThemeWatch | None = None,
        ascii_only: bool = False,
        no_colour: bool = False,
        tick: float = TICK,
        clock: Callable[[], float] = time.monotonic,
        go_on: GoOn | None = None,
        looks: LookMemory | None = None,
        attention: AttentionSettings = QUIET,
        closing: Callable[[], str] = str,
        find_cause: FindCause | None = None,
        unresumable: str = "",
    ) -> None:
        super().__init__(
            source,
            themes,
            theme_name,
            keymap or {},
            ascii_only=ascii_only,
            no_colour=no_colour,
            go_on=go_on,
            unresumable=unresumable,
        )
        self.glyphs = ASCII if ascii_only else UNICODE
        self.attention = Attention(os.environ, attention, ascii_only=ascii_only)
        self.find_cause = find_cause
        self.animation_level = "none"
        self._absence = None if looks is None else Absence(looks)
        self._watch_themes = watch_themes
        self._tick_seconds = tick
        self._monotonic = clock
        self._clock = Clock()
        self._end_shown = self._end_announced = False
        self._pages: dict[str, PageScreen] = {}
        self._make_closing, self._end_words = closing, ""
        self.failure: BaseException | None = None
        """The exception that ended the source."""

    @property
    def moment(self) -> Moment:
        """What to draw now."""
        now = self._clock.now(self.newest, self._monotonic())
        moment = Moment(self.newest, now, self.source.read_only, self.queue.pending, self.keymap)
        if self._absence is None:
            return moment
        return replace(moment, absence=self._absence.text(now), left_at=self._absence.left_at)

    def get_default_screen(self) -> Screen[None]:
        """The dashboard."""
        return DashboardScreen()

    def on_mount(self) -> None:
        """Start to follow the source, and to tick."""
        for name, page in PAGES.items():
            self.install_screen(page(), name)
        self.use_theme(self.theme_name)
        self.set_keymap(self.keymap)
        for error in actions.keymap_errors(self.keymap):
            self.inform(error, "error")
        self._send_aside(self.attention.begin())
        self.app_suspend_signal.subscribe(self, lambda _: self._send_aside(self.attention.end()))
        self.app_resume_signal.subscribe(self, lambda _: self._send_aside(self.attention.begin()))
        self.run_worker(self._listen(), group="source", exit_on_error=False)
        self.run_worker(self.queue.work(), group="commands")
        if self._watch_themes is not None:
            self.run_worker(self._follow_themes(self._watch_themes), group="themes")
        self.set_interval(self._tick_seconds, self.tick)
        # Leave as with the key, which restores the terminal; Python's default handler would not.
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, self.exit)

    async def _listen(self) -> None:
        """Keep the newest update; draw urgent changes at once, the others at the next tick."""
        async for update in self.source.updates():
            before, self.newest = self.newest, update
            self.queue.settle(update.state)
            if self._absence is not None and self._absence.arrive(update.state, self.moment.now):
                self.run_worker(self._keep_looks(self._absence), group="looks")
            if _at_once(before) != _at_once(update) or not before.state.seq:
                self.tick()

    async def _keep_looks(self, absence: Absence) -> None:
        """Save every few seconds where the build stands, in case the viewer is killed; in a thread: disks may block."""
        while True:
            await asyncio.to_thread(absence.remember, self.newest.state, self.moment.now)
            await asyncio.sleep(REMEMBER_SECONDS)

    def remember_look(self) -> None:
        """Save where the build stands when the user leaves."""
        if self._absence is not None:
            self._absence.remember(self.newest.state, self.moment.now)

    async def on_event(self, event: Event) -> None:
        """Dismiss the line about the absence at the first key."""
        if isinstance(event, Key) and self._absence is not None:
            self._absence.dismiss()
        await super().on_event(event)

    def on_worker_state_changed(self, event: Worker.StateChanged) -> None:
        """Leave if the source has failed: there is nothing to show, and the caller reports why."""
        if event.worker.group == "source" and event.state == WorkerState.ERROR:
            self.failure = event.worker.error
            self.exit(None, 1)

    async def _follow_themes(self, watch: ThemeWatch) -> None:
        """Apply changed themes; a theme with an error does not replace the one in use."""
        async for themes, errors in watch():
            for error in errors:
                self.inform(str(error), "error")
            self.themes |= themes
            if self.themes[self.theme_name] != self.palette.theme:
                self.use_theme(self.theme_name)

    def tick(self) -> None:
        """Draw the newest state, unless no screen is open yet, or any more."""
        if not self.screen_stack:
            return
        if not self.is_headless and terminal_is_gone():
            # If SIGHUP is ignored, nothing else reveals that, and Textual would read in an endless loop.
            os._exit(HANG_UP)
        self.queue.settle(self.newest.state)
        self._turn_to_end()
        self.redraw()
        self._send_aside(self.attention.look(self.newest))

    def _send_aside(self, escape: str) -> None:
        """Send an escape that draws nothing to the terminal."""
        if self._driver is not None and escape:
            self._driver.write(escape)

    def redraw(self) -> None:
        """Draw the current state on the visible screens."""
        redraw_seen(self.screen_stack)

    def _turn_to_end(self) -> None:
        """Show the end screen once when the build is over, as soon as the dashboard is in front.

        Close it if a replay goes back and continues.
        """
        if not self.newest.state.over:
            self._end_announced = self._end_shown = False
            if isinstance(self.screen, EndScreen):
                self.pop_screen()
            return
        if isinstance(self.screen, Box) and self.screen.ends_with_build:
            self.screen.dismiss(None)
        if isinstance(self.screen, DashboardScreen) and not self._end_shown:
            self._end_announced = self._end_shown = True
            self.end_message()
            self.push_screen("end")
        elif not self._end_announced:
            self._end_announced = True
            self.inform(f"The build has ended: {self.newest.state.outcome}")

    def action_open(self, name: str) -> None:
        """Show a page instead of the present one, or go back if it is open already."""
        self.end_message()
        shown = isinstance(self.screen, PAGES[name])
        if not isinstance(self.screen, DashboardScreen | EndScreen):
            self.pop_screen()
        if not shown:
            self.push_screen(name)
        self._turn_to_end()

    def closing(self) -> str:
        """Return the caller's addition to the end screen; computed once, when the build is over."""
        if self.newest.state.over and not self._end_words:
            self._end_words = self._make_closing()
        return self._end_words

    def show_output(self, offset: int) -> None:
        """Show the output at a byte offset."""
        self.action_open("output")
        page = self.get_screen("output")
        if isinstance(page, OutputScreen):
            page.jump(offset)

    def show_decisions(self, time: float) -> None:
        """Show the decisions around a Unix time."""
        self.action_open("decisions")
        page = self.get_screen("decisions")
        if isinstance(page, DecisionsScreen):
            page.turn_to(time)

    async def action_back(self) -> None:
        """Undo the most recent of: a search, a filter, the cursor, the screen."""
        screen = self.screen
        if isinstance(screen, EndScreen) and self.newest.state.over:
            # Do not leave the app: a slow line delivers an arrow key as Esc followed by letters.
            self.inform(
                f"the build has ended; {self.moment.key('detach')} leaves, {self.moment.key('help')} shows all keys"
            )
        elif isinstance(screen, PageScreen) and not screen.undo() and not isinstance(screen, DashboardScreen):
            self.pop_screen()
            self._turn_to_end()


def _at_once(update: Update) -> tuple[object, ...]:
    """Return what is drawn at once when it changes: the link, the outcome, and the level, which a key may have set."""
    return update.link, update.state.outcome, update.state.level


def terminal_is_gone() -> bool:
    """Return whether the terminal has hung up: its attributes can then no longer be read (EIO, tty_ioctl(4))."""
    try:
        termios.tcgetattr(sys.__stdin__.fileno() if sys.__stdin__ is not None else 0)
    except termios.error as err:
        return bool(err.args[0] == errno.EIO)
    return False


def run_tui(
    source: UpdateSource,
    *,
    themes: Mapping[str, Theme],
    theme_name: str,
    keymap: Mapping[str, str] | None = None,
    watch_themes: ThemeWatch | None = None,
    ascii_only: bool = False,
    tick: float = TICK,
    go_on: GoOn | None = None,
    looks: LookMemory | None = None,
    attention: AttentionSettings = QUIET,
    mouse: bool = True,
    closing: Callable[[], str] = str,
    find_cause: FindCause | None = None,
    unresumable: str = "",
) -> int | None:
    """Show a build until the user leaves, or resumes it through `go_on`.

    Returns its exit status if it has ended (1 if that was lost), else None: it then continues. With `mouse`, the app
    receives clicks and the wheel, and Shift selects text. `unresumable` is said of a build that no shell can resume.
    NO_COLOR is obeyed. Raises what the source raises, and ScreensError if the screens crash."""
    app = StokerApp(
        source,
        themes=themes,
        theme_name=theme_name,
        keymap=keymap,
        watch_themes=watch_themes,
        ascii_only=ascii_only,
        no_colour=bool(os.environ.get("NO_COLOR")),
        tick=tick,
        go_on=go_on,
        looks=looks,
        attention=attention,
        closing=closing,
        find_cause=find_cause,
        unresumable=unresumable,
    )
    try:
        result = app.run(mouse=mouse)
    finally:
        app.remember_look()
        if sys.__stderr__ is not None:  # Textual draws on it
            with contextlib.suppress(OSError):
                print(app.attention.end(), end="", file=sys.__stderr__, flush=True)
    if app.failure is not None:
        raise app.failure
    if app.return_code:
        raise ScreensError
    return result
