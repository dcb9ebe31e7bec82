"""Boxes with questions: before a stop, a kill or a resume, and for a level.

They do not act on a build: they show lines and return an answer.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from functools import partial
from typing import ClassVar, Literal

from textual.binding import Binding, BindingType
from textual.events import Key
from textual.timer import Timer

from stoker.model.state import BuildState, Job
from stoker.model.text import clean
from stoker.model.units import format_bytes
from stoker.show.tui.pages.lines import Line, Part, elide_middle, wrap
from stoker.show.tui.screens.boxes import Box, labelled

Answer = Literal["gracefully", "now"]

MAX_DIGITS = 4
"""Digits of a level: more than any machine has cores."""


LEFT_AS = {"running": "let it run", "frozen": "leave it frozen", "on_deck": "leave it on deck"}
"""What becomes of a job that is not killed, by its state."""

MAX_GROUP = 40
"""Cells of a control group's path in a question."""


class Question(Box[Answer]):
    """Asks before an action that cannot be undone. Enter is no answer: it shows which keys are.

    It accepts an answer only beside a moment without keys: pasted text, even if a slow link delivers it letter by
    letter, must not stop a build. After such a moment an answer counts at once. One that follows its question sooner,
    as when a person knows the two keys, counts once such a moment has followed it.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("enter", "name_answers", show=False)]
    answers: ClassVar[str] = "y"

    deaf_seconds: ClassVar[float] = 0.5
    """Longer than the gaps in a burst of letters, shorter than a person takes to read the question."""

    least_gap: ClassVar[float] = 0.12
    """Shortest time between two keys that a person chooses to press; pasted letters mostly come within less."""

    def __init__(self, title: str, lines: Callable[[int], Sequence[Line]]) -> None:
        super().__init__(title, lines)
        self._last_key = time.monotonic()
        self._silence = 0.0
        self._hint = ""
        self._held: Timer | None = None

    def on_key(self, event: Key) -> None:
        """Record the time since the previous key, by their arrival times; this runs before the key's action. Any key
        takes back an answer that has not counted yet."""
        self._silence, self._last_key = event.time - self._last_key, event.time
        if self._held is not None:
            self._held.stop()
            self._held = None

    def action_answer(self, answer: Answer) -> None:
        """Close with an answer: at once, or when no key has followed it for a moment; not if it came in a burst."""
        if self._silence >= self.deaf_seconds:
            self.dismiss(answer)
        elif self._silence >= self.least_gap:
            self._hint = "counts in a moment if no key follows"
            self._held = self.set_timer(self.deaf_seconds, partial(self._count, answer))
            self.redraw()
        else:
            self._hint = "too quick after the last key: press it once more"
            self.redraw()

    def _count(self, answer: Answer) -> None:
        """Close with an answer that no key has followed. A timer would wait for what `dismiss` returns."""
        self.dismiss(answer)

    def action_name_answers(self) -> None:
        """Show which keys answer or close."""
        self._hint = f"enter is no answer here: press {self.answers} or esc"
        self.redraw()

    def hint(self, shown: int) -> str:  # noqa: ARG002  (for boxes that scroll)
        """Return why a key does nothing, or not yet."""
        return self._hint


class StopBox(Question):
    """Asks before a build is stopped."""

    ends_with_build = True

    BINDINGS: ClassVar[list[BindingType]] = [
        # Not "s": the key that opens this box must not be an answer, or typed letters might stop the build.
        Binding("y", "answer('gracefully')", "Stop", show=False),
        Binding("k", "answer('now')", "Kill", show=False),
    ]
    answers = "y, k"

    def __init__(self, name: str) -> None:
        super().__init__("stop the build?", lambda width: stop_question(name, width))


class KillBox(Question):
    """Asks before a job is killed, with what it holds now; says so once it has ended."""

    ends_with_build = True

    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "answer('now')", "Kill", show=False)]

    def __init__(self, job: Job) -> None:
        super().__init__("kill this job?", self._question)
        self._job = job

    def _question(self, width: int) -> list[Line]:
        state = self.viewer.moment.state
        live = state.jobs.get(self._job.jid)
        if live is None:
            return ended_answer(self._job, width)
        self._job = live
        return kill_question(live, state, width)


class ResumeBox(Question):
    """Asks before a build is resumed."""

    # Not one of the keys that open this box.
    BINDINGS: ClassVar[list[BindingType]] = [Binding("y", "answer('gracefully')", "Resume", show=False)]

    def __init__(self, what: str, state: BuildState) -> None:
        super().__init__("resume this build?", lambda width: resume_question(what, state, width))


def stop_question(name: str, width: int) -> list[Line]:
    """Return the question before a stop."""
    rows = (
        ("y", "stop it: SIGTERM to every process, SIGKILL to those that remain"),
        ("k", "kill it now: SIGKILL to every process"),
        ("esc", "keep building"),
    )
    return [(Part(elide_middle(name, width), "text bold"),), (), *_answers(rows, width)]


def kill_question(job: Job, state: BuildState, width: int) -> list[Line]:
    """Return the question before a job is killed: which job, what that costs, and what happens next."""
    held = f"pid {job.shown_pid}" + (f", {format_bytes(job.rss)}" if job.rss else "")
    again = "stoker then runs the step again, with this job first; no key runs it sooner."
    text = f"{_cost_of_kill(job, state)} {again} It counts as killed, not as failed."
    lines = [
        *_named(job, width),
        (Part(held, "text_dim"),),
        (),
        *((Part(piece),) for piece in wrap(text, width, 6)),
        (),
    ]
    return lines + _answers((("y", "kill it: SIGKILL to all of its processes"), ("esc", LEFT_AS[job.state])), width)


def _cost_of_kill(job: Job, state: BuildState) -> str:
    """Return what the build tool does after the kill of a job. With the failure that is its last it starts nothing
    more, but waits for what it has begun: what stoker holds on deck, too, since only a real failure drops that."""
    scheduler = state.schedulers.get(job.sid)
    allowed = None if scheduler is None else scheduler.failures
    if scheduler is None or allowed is None or scheduler.failed + scheduler.killed + 1 < allowed:
        return "The build system sees a failed job, and ends its step when all that does not need it has ended."
    beside = [other for other in state.jobs.values() if other.sid == job.sid and other.jid != job.jid]
    begun, waiting = len(beside), sum(other.state == "on_deck" for other in beside)
    stops = f"{scheduler.tool} takes it for a failure and starts nothing more"
    if not begun:
        return f"{stops}."
    on_deck = f"{waiting} of them on deck, " if waiting else ""
    first = f"the {begun} others that it has begun, {on_deck}run to their end" if begun > 1 else "its last job ends"
    return f"{stops}; first {first}."


def ended_answer(job: Job, width: int) -> list[Line]:
    """Return what stands in place of the question once the job has ended."""
    lines = [
        *_named(job, width),
        (Part(f"pid {job.shown_pid} has ended by itself: there is nothing to kill", "text_dim"),),
        (),
    ]
    return lines + _answers((("esc", "close"),), width)


def _named(job: Job, width: int) -> list[Line]:
    return [(Part(piece, "text bold"),) for piece in wrap(clean(job.output, 300), width, 3)]


def resume_question(what: str, state: BuildState, width: int) -> list[Line]:
    """Return the question before a build is resumed: what is run, where, and what happens next."""
    step = f", step {clean(state.step.name, 40)}" if state.step is not None and state.step.count > 1 else ""
    lines: list[Line] = [(Part(piece, "text bold"),) for piece in wrap(clean(what, 600), width, 5)]
    lines += [(Part(elide_middle(f"in {clean(state.cwd, 300)}{step}", width), "text_dim"),), ()]
    text = "It runs as a build of its own. This screen shows it next, and it continues when you leave."
    lines += [*((Part(piece),) for piece in wrap(text + _kept_limit(state), width, 6)), ()]
    return lines + _answers((("y", "resume"), ("esc", "leave the build as it ended")), width)


def _kept_limit(state: BuildState) -> str:
    """Return that a build keeps the memory limit of its control group, if that limited it, wherever it is resumed."""
    machine = state.machine
    if machine is None or not machine.limiting_group:
        return ""
    group = elide_middle(clean(machine.limiting_group, 300), MAX_GROUP)
    return (
        f" Its memory limit stays, also outside of {group}: {format_bytes(machine.memory_budget)}. "
        "stoker run --resume ID --memory SIZE sets another."
    )


def _answers(rows: Sequence[tuple[str, str]], width: int) -> list[Line]:
    keys = max(len(key) for key, _ in rows) + 2
    return [line for key, text in rows for line in labelled(key, "accent bold", keys, text, "text", width)]


class LevelBox(Box[int]):
    """Takes a number, digit by digit; nothing happens before Enter."""

    ends_with_build = True

    BINDINGS: ClassVar[list[BindingType]] = [
        *(Binding(digit, f"digit('{digit}')", show=False) for digit in "0123456789"),
        Binding("backspace", "erase", show=False),
        Binding("enter", "set", show=False),
    ]

    def __init__(self, present: int | None, begun: str = "") -> None:
        super().__init__("level", self._question)
        self._present = present
        self._digits = begun

    def _question(self, width: int) -> list[Line]:
        now = "" if self._present is None else f"   now {self._present}"
        typed = (Part("run at most "), Part(self._digits, "accent bold"), Part(" ", "cursor_text on cursor"))
        return [
            (*typed, Part(" jobs at a time"), Part(now, "text_dim")),
            (),
            *_answers((("enter", "set it"), ("esc", "leave it as it is")), width),
        ]

    def action_digit(self, digit: str) -> None:
        """Append a digit."""
        if len(self._digits) < MAX_DIGITS and (self._digits or digit != "0"):
            self._digits += digit
        self.redraw()

    def action_erase(self) -> None:
        """Remove the last digit."""
        self._digits = self._digits[:-1]
        self.redraw()

    def action_set(self) -> None:
        """Close with the number, or without an answer if there is none."""
        self.dismiss(int(self._digits) if self._digits else None)
