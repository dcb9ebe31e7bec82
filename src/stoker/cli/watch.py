"""Shows a build on the chosen screen and turns the outcome into an exit status."""

from __future__ import annotations

import asyncio
import contextlib
import os
import signal
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from stoker.act.stop import NothingToStopError, stop_build
from stoker.cli import early
from stoker.cli.errors import FAILURE, LEFT, STOPPED
from stoker.cli.screen import Screen, in_colour
from stoker.cli.tui_options import ScreensFailedError, TuiOptions, run_screens
from stoker.config.paths import BuildPaths
from stoker.launch.cause_in_child import CauseInChild
from stoker.launch.in_child import ResumeInChild
from stoker.launch.repair import repair
from stoker.launch.resume import folder_is_gone, resumed_as
from stoker.model.state import BuildState
from stoker.model.text import clean
from stoker.model.units import format_duration
from stoker.model.update import CommandRefused
from stoker.record.builds import final_state
from stoker.record.look_file import LookFile
from stoker.serve.client import BuildSource
from stoker.show import killed_text
from stoker.show.closing_text import closing_lines
from stoker.show.update_source import UpdateSource

if TYPE_CHECKING:
    from stoker.show.attention import Attention


GONE = "it cannot be resumed: its folder is gone"

_STAYS = {
    "no": "the build goes on",
    "soft": "the build stays paused, and nothing new starts until it is unpaused",
    "hard": "the build stays frozen until it is unpaused",
}
"""What happens to a build that is left, by how it is paused."""


def left_behind(state: BuildState) -> str:
    """Say what happens to a build that is left: a frozen one would wait all night."""
    return _STAYS[state.level.paused]


def show_build(
    paths: BuildPaths, screen: Screen, *, read_only: bool = False, owner: bool = False, lasting: bool = True
) -> int:
    """Watch a build to its end, or until the viewer leaves; return the exit status. `owner` started it: Ctrl-C in plain
    mode stops it.

    What is not `lasting` loses its folder afterwards.
    """
    return show_until_left(paths, screen, read_only=read_only, owner=owner, lasting=lasting)[1]


def show_until_left(
    paths: BuildPaths, screen: Screen, *, read_only: bool = False, owner: bool = False, lasting: bool = True
) -> tuple[BuildPaths, int]:
    """Do the same; also return the build that was shown last: on a screen it may be resumed as another one."""
    full_screen = isinstance(screen, TuiOptions)
    source, failed = _source(paths, read_only=read_only), False
    if isinstance(screen, TuiOptions):
        if not early.came():
            try:
                paths, source = _watch_screens(paths, source, screen)
            except KeyboardInterrupt:  # Ctrl-C before the screen has the terminal: it is left
                pass
            except ScreensFailedError as err:
                print(f"stoker: {err}", file=sys.stderr)
                failed = True
    else:
        asyncio.run(_watch_lines(paths, source, screen, owner=owner))
    state = _last_state(paths, source)
    if not state.over:
        print(f"stoker: {left_behind(state)}; look again with: stoker attach {paths.id}", file=sys.stderr)
        return paths, LEFT if owner else FAILURE if failed else 0
    if full_screen:
        for line in (_last_line(state), *(f"stoker: {text}" for text in killed_text.cost_lines(state))):
            print(line, file=sys.stderr)
    if screen != "json":
        lasting = lasting and Path(state.cwd).is_dir()
        for line in closing_lines(state, lasting=lasting, resumed_as=resumed_as(paths)):
            print(f"stoker: {line}", file=sys.stderr)
    return paths, exit_status(state)


def _last_state(paths: BuildPaths, source: BuildSource) -> BuildState:
    """Return the end that was seen, or else the state by the files.

    To read a journal again takes as long as to load a viewer, and where the disk is full, it lacks the end.
    """
    return source.state if source.state.over else final_state(paths)


def _watch_screens(paths: BuildPaths, source: BuildSource, options: TuiOptions) -> tuple[BuildPaths, BuildSource]:
    """Show a build, and then each that a person has it resumed as; the last one."""
    while True:
        gone = folder_is_gone(paths)
        resuming = None if source.read_only or gone else ResumeInChild(paths)
        # A screen that only shows the build, on a wall for days, does not say when a person last looked.
        looks = None if source.read_only else LookFile(paths)
        shown = replace(options, unresumable=GONE) if gone else options
        run_screens(source, shown, resuming, looks, CauseInChild(paths))
        if resuming is None or resuming.next is None:
            return paths, source
        paths = resuming.next
        source = _source(paths, read_only=False)


def _source(paths: BuildPaths, *, read_only: bool) -> BuildSource:
    return BuildSource(paths, read_only) if read_only else BuildSource(paths, repair=lambda: repair(paths))


def exit_status(state: BuildState) -> int:
    """Return the build's own status; 130 when a person stopped it; 1 when it was lost."""
    if state.outcome == "stopped":
        return STOPPED
    return FAILURE if state.exit_code is None else state.exit_code


def _last_line(state: BuildState) -> str:
    took = format_duration((state.ended or state.time) - state.started)
    ending = {"done": "done", "stopped": "stopped"}.get(state.outcome or "", f"failed: {clean(state.reason)}")
    return f"stoker: {clean(state.name)} {ending}, {took}; output: {clean(state.log_path)}"


async def _watch_lines(paths: BuildPaths, source: UpdateSource, screen: Screen, *, owner: bool) -> None:
    """Plain or JSON lines, with signals: the first Ctrl-C asks the build to end, the second kills it.

    SIGHUP only ends the watching: a lost connection must not touch the build. So does SIGTERM on a terminal; without
    one, it is a CI system that cancels the job, and means the build.
    """
    watching = asyncio.ensure_future(run_lines(source, screen))
    loop = asyncio.get_running_loop()
    asked: list[int] = []

    def stop() -> None:
        asked.append(1)
        how = "killing the build" if len(asked) > 1 else "stopping the build; press again to kill it"
        print(f"stoker: {how}", file=sys.stderr, flush=True)
        stopping.append(loop.create_task(_stop(paths, source, force=len(asked) > 1)))

    stopping: list[asyncio.Task[None]] = []
    leave = watching.cancel
    loop.add_signal_handler(signal.SIGHUP, leave)
    loop.add_signal_handler(signal.SIGINT, stop if owner else leave)
    loop.add_signal_handler(signal.SIGTERM, stop if owner and not sys.stderr.isatty() else leave)
    early.raise_again()
    with contextlib.suppress(asyncio.CancelledError):
        await watching


async def _stop(paths: BuildPaths, source: UpdateSource, *, force: bool) -> None:
    """Through the engine, which journals who asked; without an engine straight to the supervisor."""
    try:
        await source.command("stop", force=force)
    except CommandRefused:
        with contextlib.suppress(NothingToStopError):
            stop_build(paths, force)


async def run_lines(source: UpdateSource, screen: Screen) -> None:
    """Show a build as plain or JSON lines."""
    if screen == "json":
        from stoker.show.json import run_json

        await run_json(source, sys.stdout)
        return
    from stoker.show.plain import run_plain

    colour = in_colour() and sys.stderr.isatty()  # output goes to stdout, messages to stderr
    await run_plain(source, sys.stdout, sys.stderr, colour=colour, attention=_attention())


def _attention() -> Attention | None:
    """Return what announces things on a terminal that gets plain lines, which leave its title alone."""
    if not sys.stderr.isatty() or os.environ.get("CI"):
        return None
    from stoker.cli.streams import locale_is_ascii
    from stoker.config.paths import settings_path
    from stoker.config.settings import load_settings
    from stoker.show.attention import Attention

    settings = load_settings(settings_path())[0].attention
    return Attention(os.environ, replace(settings, title="no"), ascii_only=locale_is_ascii())
