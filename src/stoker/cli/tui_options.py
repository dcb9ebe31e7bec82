"""The options of the full-screen viewer: themes, keys and glyphs, from settings, options and the environment.

Imports Textual only when that viewer is really needed.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from dataclasses import dataclass

from stoker.cli.errors import CliError
from stoker.cli.streams import locale_is_ascii
from stoker.config.config_error import ConfigError
from stoker.config.paths import settings_path
from stoker.config.settings import Settings, load_settings
from stoker.config.themes import NoSuchThemeError, Theme, load_themes, pick_theme, theme_folders, watch_themes
from stoker.model.text import clean
from stoker.show.update_source import FindCause, GoOn, LookMemory, UpdateSource


class ScreensFailedError(Exception):
    """The full screen failed because of an error of its own; the message is one line."""


@dataclass(frozen=True, slots=True)
class TuiOptions:
    """How the screens shall look and which keys they obey."""

    themes: Mapping[str, Theme]
    theme: Theme
    settings: Settings
    ascii_only: bool
    closing: Callable[[], str] = str
    """Makes one more line for the end screen; nothing by default."""
    unresumable: str = ""
    """What is said of a build that cannot be resumed from a shell, or empty."""


def check_theme(name: str) -> None:
    """Check that a theme asked for by name exists. Raises CliError, after the faults of files that might hold it."""
    themes, faults = load_themes(theme_folders())
    try:
        pick_theme(name, themes, os.environ)
    except NoSuchThemeError as err:
        _print_faults(faults)
        raise CliError(f"{err}; 'stoker themes list' shows them") from err


def tui_options(theme_name: str | None) -> TuiOptions:
    """Read settings and themes. Faults in files are printed and passed over; `theme_name` exists."""
    from stoker.show.tui.input.actions import TABLE

    settings, faults = load_settings(settings_path(), {action.id for action in TABLE})
    themes, theme_faults = load_themes(theme_folders())
    _print_faults((*faults, *theme_faults))
    wanted = theme_name or settings.theme
    try:
        theme = pick_theme(wanted, themes, os.environ)
    except NoSuchThemeError as err:
        print(f"stoker: {settings_path()}: {err}", file=sys.stderr)
        theme = pick_theme("auto", themes, os.environ)
    ascii_only = settings.ascii == "yes" or (settings.ascii == "auto" and locale_is_ascii())
    return TuiOptions(themes, theme, settings, ascii_only)


def _print_faults(faults: Sequence[ConfigError]) -> None:
    for fault in faults:
        print(f"stoker: {clean(str(fault))}", file=sys.stderr)


def run_screens(
    source: UpdateSource,
    options: TuiOptions,
    go_on: GoOn | None = None,
    looks: LookMemory | None = None,
    find_cause: FindCause | None = None,
) -> None:
    """Show a build full-screen until the person leaves, or has it resumed by `go_on` when it has failed.

    `looks` lets it say what happened while the person was away, `find_cause` why a step failed. Raises what the source
    raises, and ScreensFailedError.
    """
    from stoker.show.tui.app import ScreensError, run_tui

    async def reload() -> AsyncIterator[tuple[Mapping[str, Theme], Sequence[object]]]:
        async for change in watch_themes(theme_folders()):
            yield change

    try:
        run_tui(
            source,
            themes=options.themes,
            theme_name=options.theme.name,
            keymap=options.settings.keys,
            watch_themes=reload,
            ascii_only=options.ascii_only,
            tick=options.settings.tick,
            go_on=go_on,
            looks=looks,
            attention=options.settings.attention,
            closing=options.closing,
            find_cause=find_cause,
            unresumable=options.unresumable,
            mouse=options.settings.mouse == "on",
        )
    except ScreensError as err:
        raise ScreensFailedError(
            "the full screen failed because of an error in stoker; use --plain for plain lines"
        ) from err
