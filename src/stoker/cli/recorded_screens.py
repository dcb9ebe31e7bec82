"""Opens the screens over recorded builds. Imports Textual only when they are really wanted."""

from __future__ import annotations

import os
from collections.abc import Sequence

from stoker.cli.errors import FAILURE, CliError
from stoker.cli.recorded_library import RecordedLibrary
from stoker.cli.screen import has_size, running_in_terminal
from stoker.cli.tui_options import ScreensFailedError, TuiOptions, tui_options


def full_screen_fits() -> bool:
    """Whether there is a terminal for a full screen."""
    return running_in_terminal() and has_size()


def show_comparison(before: Sequence[str], after: Sequence[str], theme: str | None) -> int:
    """Show two sides beside each other until the person leaves; raises CliError where they cannot be compared."""
    _browse(RecordedLibrary(), tui_options(theme), sides=(before, after))
    return 0


def show_history(theme: str | None) -> int:
    """Show the list of builds, and each whose own screens are wanted, until the person leaves the list."""
    from stoker.cli.watch import show_build
    from stoker.cli.which_build import find

    library, options = RecordedLibrary(), tui_options(theme)
    chosen: str | None = ""
    while chosen is not None:
        chosen = _browse(library, options, chosen=chosen)
        if chosen is not None:
            show_build(find(chosen), options)
    return 0


def _browse(
    library: RecordedLibrary,
    options: TuiOptions,
    *,
    chosen: str = "",
    sides: tuple[Sequence[str], Sequence[str]] | None = None,
) -> str | None:
    from stoker.show.tui.browse import BrowseApp

    app = BrowseApp(
        library,
        options.theme,
        ascii_only=options.ascii_only,
        no_colour=bool(os.environ.get("NO_COLOR")),
        keymap=options.settings.keys,
        chosen=chosen,
        sides=sides,
    )
    found = app.run(mouse=options.settings.mouse == "on")
    if app.refusal:
        raise CliError(app.refusal, FAILURE)
    if app.failure is not None:
        raise app.failure
    if app.return_code:
        raise ScreensFailedError("the full screen failed because of an error in stoker; use --plain for plain lines")
    return found
