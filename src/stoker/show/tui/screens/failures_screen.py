"""The screen of failures: causes, failed steps and killed jobs in one list, and details of the chosen one below.

Does not know how causes and failures are recognised, or how a remedy is applied.
"""

from __future__ import annotations

from collections.abc import Sequence

from stoker.model.diagnosis import Cause, Diagnosis
from stoker.model.killed import (
    death_of,
    failed_steps,
    is_last_word,
    killed_beside_failures,
    killers_of,
    same_output,
)
from stoker.model.state import BuildState, Failure, KilledJob
from stoker.model.text import clean
from stoker.show.closing_text import sent_a_signal
from stoker.show.killed_text import death_text, fate_text, how_text, killed_now
from stoker.show.tui.input import actions
from stoker.show.tui.input.actions import bindings
from stoker.show.tui.pages import failure_page, header
from stoker.show.tui.pages.lines import BLANK, Line, Part, aimed, elide_path, fit, section, text_of, wrap
from stoker.show.tui.pages.moment import time_of_day
from stoker.show.tui.pages.names import distinct_names, found_text
from stoker.show.tui.screens.list_screen import ListScreen
from stoker.show.tui.terminal.glyphs import Glyphs
from stoker.show.update_source import FindCause

COMMAND_LINES, MOST_COMMAND = 6, 100
"""Maximum lines of a failed command, and of one that is scrolled through; an nvcc command of PyTorch takes 60, and its
end matters least."""


Item = Cause | Failure | KilledJob
"""An entry of the list: a cause, a failed step, or a job that was killed and did not fail."""

MOST_ROWS = 3
"""Maximum rows of one line of a failure's output: the error may follow a long path."""

AT_THE_END = "is looked for when the build ends; until then its output is below"
LOOKING = "is being looked for now; its output is below"
UNKNOWN = "no rule knows it; its output is below"
UNSEARCHED = "the search for it failed; its output is below"
"""Shown in place of the cause of one step."""

MAX_OUTPUT = 1000
EVERY_LINE = 1000
"""More lines than the details of any failure have."""

MAX_UNHEARD = 10
"""Failed jobs that are named before their output arrives, which may take a while."""


LEAST_SCROLLED = 4
"""Lines of the details from which one is used to show whether there is more."""


class FailuresScreen(ListScreen):
    """The failures of this build."""

    SCOPE = "failures"
    BINDINGS = bindings("failures")

    def __init__(self) -> None:
        super().__init__()
        self._down = 0
        """How many lines of the details are scrolled out of view at the top."""
        self._causes: dict[tuple[str, int], Cause | str] = {}
        """Why steps failed, by `_step`."""
        self._scrolls = False
        """Whether the details have more lines than fit."""

    def paint(self, width: int, height: int) -> Sequence[Line]:
        """Return the list, and the chosen cause or failure below."""
        head = header.title(self.moment, width, self.glyphs)
        items = self._items()
        if not items and self.words:
            return [head, self._found(width), (Part("No entry has these words.", "text_dim"),)]
        if not items:
            return [head, section("failures", width, self.glyphs), *self._nothing(width)]
        self.keep_chosen(len(items))
        found = [self._found(width)] if self.words else []
        lines = [head, *found, *self._list(width, max(2, height // 3))]
        return [*lines, *self._window(items[self.chosen], width, height - len(lines))]

    def _found(self, width: int) -> Line:
        """Return how many entries match the filter."""
        return section(found_text("", self.words, *self.share), width, self.glyphs)

    def _window(self, picked: Item, width: int, rows: int) -> list[Line]:
        """Return the details of the chosen entry in `rows` lines: shortened to fit, or from the scroll position on.

        The last line says whether there is more; otherwise a shortened text would look complete.
        """
        self._scrolls = False
        every = self._about(picked, width, EVERY_LINE)
        while every and not text_of(every[-1]).strip():
            every.pop()
        if len(every) <= rows or rows < LEAST_SCROLLED:
            self._down = 0
            return every if len(every) <= rows else self._about(picked, width, rows)
        self._scrolls = True
        room = rows - 1
        self._down = max(0, min(self._down, len(every) - room))
        shown = every[self._down :][:room] if self._down else self._about(picked, width, room)
        shown += [BLANK] * (room - len(shown))
        return [*shown, self._more(below=self._down + room < len(every))]

    def _more(self, *, below: bool) -> Line:
        """Return which keys show the rest."""
        down, up = self.moment.key("failure.more"), self.moment.key("failure.less")
        words = f"{down}: more of this" if below else "no more below"
        return (Part(f"{words}   {up}: back up" if self._down else words, "text_dim"),)

    def _about(self, picked: Item, width: int, rows: int) -> list[Line]:
        state, g = self.moment.state, self.glyphs
        if isinstance(picked, Failure):
            known = state.diagnosis is not None and state.diagnosis.causes  # the keys are then shown with the cause
            do = [] if known else failure_page.key_lines(Diagnosis(), self._keys(), width)
            do = do if state.over else failure_page.until_the_end(self._keys_until_the_end(), width)
            cause = self._cause_of(picked)
            do = [*(failure_page.step_cause(cause, width, brief=rows < EVERY_LINE) if cause else []), *do]
            do = [*_killed_line(state, picked, width), *do]
            top = [BLANK, *do, BLANK] if do else [BLANK]
            return [*top, *failure_details(picked, width, rows - len(top), g)]
        if isinstance(picked, KilledJob):
            return [BLANK, *killed_details(picked, state, width, rows - 1, g)]
        return failure_page.details(state.diagnosis or Diagnosis(), picked, self._keys(), width, rows, g)

    def _cause_of(self, failure: Failure) -> Cause | str:
        """Return why a step failed, or in words why that is not known; empty if the end has been reached without.

        The first time, start to look for it.
        """
        over, find = self.moment.state.over, self.viewer.find_cause
        if find is None:
            return "" if over else AT_THE_END
        if _step(failure) not in self._causes:
            self._causes[_step(failure)] = LOOKING
            self.run_worker(self._find(find, failure), group="causes")
        return self._causes[_step(failure)]

    async def _find(self, find: FindCause, failure: Failure) -> None:
        try:
            self._causes[_step(failure)] = await find(failure, killers_of(self.moment.state, failure)) or UNKNOWN
        except OSError:  # a search that took too long, too
            self._causes[_step(failure)] = UNSEARCHED
        self.redraw()

    def idle(self, action: actions.KeyAction) -> str:
        """Return why an action does nothing now: no entry to act on, or nothing to scroll."""
        items = self._items()
        if not items and not self.words and action.scope == "failures":
            return "nothing has failed" if not self.moment.state.over else "there is nothing to choose from"
        if action.method == "scroll_details" and not self._scrolls:
            return "all that is known of this is shown"
        if action.id == "failure.show" and (not items or self._place_of(self._picked(items)) is None):
            return "the output does not show it"
        return super().idle(action)

    def action_move(self, by: int) -> None:
        """Choose another row, and scroll its details to their top."""
        self._down = 0
        super().action_move(by)

    def action_move_to(self, row: int) -> None:
        """Choose the first row, or the last, and scroll its details to their top."""
        self._down = 0
        super().action_move_to(row)

    def pick(self, target: str, *, again: bool) -> None:
        """Choose the row that was clicked."""
        self._down = 0 if self.chosen != int(target) else self._down
        super().pick(target, again=again)

    def action_scroll_details(self, by: int) -> None:
        """Scroll down in the details of the chosen entry, by `by` thirds of a screen."""
        self._down = max(0, self._down + by * max(1, self.size.height // 3))
        self.redraw()

    def _items(self) -> list[Item]:
        """Return the entries in the order of the screen; killed jobs come last, newest first."""
        state = self.moment.state
        causes = state.diagnosis.causes if state.diagnosis is not None else ()
        return self.sift([*causes, *failed_steps(state), *reversed(killed_beside_failures(state))], _texts)

    def _nothing(self, width: int) -> list[Line]:
        """Return what is shown if there are no entries."""
        if self.moment.state.outcome == "stopped":  # its jobs were ended by the stop, and have not failed
            do = failure_page.resume_line(self._keys()[1], width)
            return [(Part("No failure is known: the build was stopped."),), *([BLANK, *do] if do else [])]
        if self.moment.state.outcome != "failed":
            return self._unheard(width) or [(Part("Nothing has failed."),)]
        output, error = self.moment.key("output"), self.moment.key("log.next-error")
        text = f"No known cause was found in the output. Look at its end ({output}), "
        text += f"or at its first error ({output}, then {error})."
        if sent := sent_a_signal(self.moment.state):
            text = f"{sent[0].upper()}{sent[1:]}."
        elif self.moment.state.diagnosis is None:
            name = clean(self.moment.state.id)
            text = f"No engine ran at its end to find the cause. See its output ({output}), or: stoker diagnose {name}"
        lines: list[Line] = [(Part(piece),) for piece in wrap(text, width, 4)]
        do = failure_page.key_lines(Diagnosis(), self._keys(), width)
        return [*lines, BLANK, *do] if do else lines

    def _unheard(self, width: int) -> list[Line]:
        """Return the jobs that have failed although the output does not show it yet."""
        failed = [job.output for job in self.moment.state.history.recent if job.outcome == "failed"]
        if not failed:
            return []
        text = "No output of the failed step yet: pip and some scripts show what a tool wrote only once it has ended."
        mark = Part(f"{self.glyphs.fail} ", "error bold")
        named: list[Line] = [(mark, Part(elide_path(clean(output), width - 2))) for output in failed[-MAX_UNHEARD:]]
        return [*((Part(piece),) for piece in wrap(text, width, 4)), BLANK, *named]

    def _list(self, width: int, rows: int) -> list[Line]:
        """Return causes and failures, each kind below its heading, with the chosen one visible."""
        g, lines, headings, at = self.glyphs, list[Line](), set[int](), 0
        items = self._items()
        names = distinct_names(item.output for item in items if not isinstance(item, Cause))
        for number, item in enumerate(items):
            chosen = number == self.chosen
            kind = type(item) if number == 0 or type(item) is not type(items[number - 1]) else None
            if kind is not None:
                headings.add(len(lines))
                lines.append(self._heading(item, width))
            if isinstance(item, Failure):
                line = failure_line(item, names[item.output], width, g, chosen=chosen)
            elif isinstance(item, KilledJob):
                line = killed_line(item, names[item.output], width, g, chosen=chosen)
            else:
                line = failure_page.cause_line(item, width, g, first=number == 0, chosen=chosen)
            lines.append(aimed(line, f"row:{number}"))
            at = len(lines) - 1 if chosen else at
        first = max(0, min(at - rows + 1 if at >= rows else 0, len(lines) - rows))
        end = first + rows
        return lines[first : end - 1 if end - 1 in headings else end]

    def _heading(self, item: Item, width: int) -> Line:
        if isinstance(item, Failure):
            return section(f"failures {len(failed_steps(self.moment.state))}", width, self.glyphs)
        if isinstance(item, KilledJob):
            state = self.moment.state
            killed = killed_beside_failures(state)
            title = "killed" if any(is_last_word(state, death) for death in killed) else "killed, not failed"
            return section(f"{title} {len(killed)}", width, self.glyphs)
        diagnosis = self.moment.state.diagnosis
        partly = diagnosis is not None and not diagnosis.complete
        tail = (Part(" only part of the output was searched", "warn"),) if partly else ()
        return section("cause", width, self.glyphs, tail)

    def _keys(self) -> tuple[str, str]:
        """Return the keys for remedy and resume, empty if they do nothing."""
        remedy, go_on = (actions.BY_ID[name] for name in ("remedy", "go-on"))
        app = self.viewer
        first = actions.key_names(remedy, app.keymap)[0] if app.offers(remedy) else ""
        return first, actions.key_names(go_on, app.keymap)[0] if app.offers(go_on) else ""

    def _keys_until_the_end(self) -> tuple[str, str]:
        """Return the keys that stop a running build and that resume an ended one, empty if they will do nothing."""
        m = self.moment
        return (m.key("stop"), m.key("go-on")) if self.viewer.offers(actions.BY_ID["stop"]) else ("", "")

    def action_failure_show(self) -> None:
        """Show the chosen entry in the output."""
        items = self._items()
        if not items:
            return
        offset = self._place_of(self._picked(items))
        if offset is not None:
            self.viewer.show_output(offset)

    def _picked(self, items: Sequence[Item]) -> Item:
        return items[max(0, min(self.chosen, len(items) - 1))]

    def open(self) -> None:
        """Show the chosen entry in the output."""
        self.action_failure_show()

    def _place_of(self, item: Item) -> int | None:
        """Return the byte offset of an entry in the output."""
        if isinstance(item, Cause):
            return item.offset
        if isinstance(item, Failure):
            return item.log_start
        if item.log_start is not None:
            return item.log_start
        starts = (f.log_start for f in self.moment.state.failures if same_output(f.output, item.output))
        return next(starts, None)


def _texts(item: Item) -> tuple[str, ...]:
    """Return the texts of an entry that the filter searches."""
    if isinstance(item, Cause):
        return item.title, item.why, item.text
    if isinstance(item, Failure):
        return item.output, item.command, *item.excerpt
    return item.output, item.who, item.why


def _step(failure: Failure) -> tuple[str, int]:
    """Return what identifies a failed step, also among several attempts at it."""
    return failure.output, failure.log_start


def failure_line(failure: Failure, name: str, width: int, g: Glyphs, *, chosen: bool) -> Line:
    """Return one failure in the list."""
    status = "" if failure.exit_code is None else f"  exit {failure.exit_code}"
    if failure.killed_by is not None:
        status = f"  {how_text(failure.killed_by)}"
    tail = f"{status}  {time_of_day(failure.time)}"
    text = elide_path(name or clean(failure.command), width - 4 - len(tail), g.ellipsis)
    mark = failure_page.failure_mark(failure, g)
    line = fit((Part(f"{g.pointer if chosen else ' '} "), mark, Part(text)), width - len(tail))
    line = (*line, Part(tail, "text_dim"))
    return tuple(part._replace(ink="cursor_text on cursor") for part in line) if chosen else line


def killed_line(death: KilledJob, name: str, width: int, g: Glyphs, *, chosen: bool) -> Line:
    """Return one killed job in the list."""
    tail = f"  {how_text(death.by, death.who)}  {time_of_day(death.time)}"
    text = elide_path(name or "a job without a name yet", width - 4 - len(tail), g.ellipsis)
    line = fit(
        (Part(f"{g.pointer if chosen else ' '} "), Part(f"{g.killed} ", "killed bold"), Part(text)), width - len(tail)
    )
    line = (*line, Part(tail, "text_dim"))
    return tuple(part._replace(ink="cursor_text on cursor") for part in line) if chosen else line


def _killed_line(state: BuildState, failure: Failure, width: int) -> list[Line]:
    """Return how a step was killed that the build failed for, and what it held; nothing for any other failure."""
    death = death_of(state, failure.output) if failure.killed_by is not None else None
    return [] if death is None else [(Part(piece, "killed"),) for piece in wrap(f"{death_text(death)}.", width, 2)]


def killed_details(death: KilledJob, state: BuildState, width: int, rows: int, g: Glyphs) -> list[Line]:
    """Return how one job was killed, why, and what happens next."""
    texts = [clean(death.output, MAX_OUTPUT), f"{death_text(death)}.", _what_came_of(death, state)]
    if death.output and any(same_output(f.output, death.output) for f in state.failures):
        texts.append("The build tool calls it FAILED in the output, since it sees a command that was killed.")
    lines = [section("killed", width, g)]
    lines += [(Part(piece),) for text in texts if text for piece in wrap(text, width, 6)]
    return lines[: max(0, rows)]


def _what_came_of(death: KilledJob, state: BuildState) -> str:
    if death in killed_now(state):
        return f"It has not failed: {fate_text(state)}."
    if is_last_word(state, death):
        return "It is not built: the build failed because it was killed."
    return "It has not failed: the step has run again since."


def failure_details(failure: Failure, width: int, rows: int, g: Glyphs) -> list[Line]:
    """Return the first lines of a failure's output, which usually contain the error, and then its command."""
    most = MOST_COMMAND if rows >= EVERY_LINE - 1 else min(COMMAND_LINES, max(1, rows // 4))
    command = wrap(clean(failure.command) or "not known", width, most)
    output: list[Line] = []
    for text in failure.excerpt:
        ink = "error" if "error" in text.lower() or text.startswith("FAILED") else "text"
        output += [(Part(piece, ink),) for piece in wrap(clean(text), width, MOST_ROWS) or [""]]
    room = max(1, rows - len(command) - 2)
    lines = [section("its output", width, g), *(output[:room] or [(Part("none", "text_dim"),)])]
    lines.append(section("command", width, g))
    lines += [(Part(piece, "text_dim"),) for piece in command]
    return lines[: max(0, rows)]
