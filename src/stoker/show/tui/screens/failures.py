"""What failed: the list, and the chosen failure's command, exit code and output.

Unaware of how failures are recognised.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.model.state import Failure
from stoker.model.text import clean
from stoker.show.tui import views
from stoker.show.tui.actions import bindings
from stoker.show.tui.glyphs import Glyphs
from stoker.show.tui.lines import BLANK, Line, Part, elide_end, elide_path, fit, wrap
from stoker.show.tui.moment import time_of_day
from stoker.show.tui.screens.base import PageScreen

COMMAND_LINES = 6
"""Lines of a failing command; an nvcc command of PyTorch takes 60, and its end tells the least."""


class FailuresScreen(PageScreen):
    """The failures of this build."""

    SCOPE = "failures"
    BINDINGS = bindings("failures")

    def __init__(self) -> None:
        super().__init__()
        self.chosen = 0

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """A list on top, the chosen failure below."""
        failures = self.moment.state.failures
        g = self.glyphs
        head = views.header(self.moment, width, g)
        if not failures:
            return [head, BLANK, (Part("Nothing has failed.", "text_dim"),)]
        self.chosen = max(0, min(self.chosen, len(failures) - 1))
        rows = max(1, min(len(failures), height // 4))
        first = max(0, min(self.chosen - rows // 2, len(failures) - rows))
        lines = [head, views.section(f"failures {len(failures)}", width, g)]
        shown = range(first, first + rows)
        lines += [failure_line(failures[i], width, g, chosen=i == self.chosen) for i in shown]
        lines.append(BLANK)
        return lines + failure_details(failures[self.chosen], width, height - len(lines), g)

    def _choose(self, by: int) -> None:
        self.chosen += by
        self.redraw()

    def action_failure_next(self) -> None:
        """Choose the next one."""
        self._choose(1)

    def action_failure_previous(self) -> None:
        """Choose the one before."""
        self._choose(-1)

    def action_failure_show(self) -> None:
        """Show its place in the output."""
        failures = self.moment.state.failures
        if failures:
            self.stoker.show_output(failures[self.chosen].log_start)


def failure_line(failure: Failure, width: int, g: Glyphs, *, chosen: bool) -> Line:
    """One failure in the list."""
    status = "" if failure.exit_code is None else f"  exit {failure.exit_code}"
    tail = f"{status}  {time_of_day(failure.time)}"
    text = elide_path(clean(failure.output) or clean(failure.command), width - 4 - len(tail), g.ellipsis)
    line = fit(
        (Part(f"{g.pointer if chosen else ' '} "), Part(f"{g.fail} ", "error bold"), Part(text)), width - len(tail)
    )
    line = (*line, Part(tail, "text_dim"))
    return tuple(part._replace(ink="cursor_text on cursor") for part in line) if chosen else line


def failure_details(failure: Failure, width: int, rows: int, g: Glyphs) -> list[Line]:
    """The command and the first lines of output of one failure."""
    lines = [views.section("command", width, g)]
    command = wrap(clean(failure.command) or "not known", width, min(COMMAND_LINES, max(1, rows // 3)))
    lines += [(Part(piece, "text_dim"),) for piece in command]
    lines.append(views.section("its output", width, g))
    for text in failure.excerpt:
        ink = "error" if "error" in text.lower() or text.startswith("FAILED") else "text"
        lines.append((Part(elide_end(clean(text), width, g.ellipsis), ink),))
    if not failure.excerpt:
        lines.append((Part("none", "text_dim"),))
    return lines[: max(0, rows)]
