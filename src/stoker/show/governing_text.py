"""What the plain client reports about governing: level, pauses and decisions, without flooding a log.

Knows no streams and no colours, and not how the state was obtained.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar

from stoker.model.state import BuildState, DecisionEntry, Level
from stoker.model.text import clean
from stoker.show.level_text import level_text

MAX_NAME = 240
"""Maximum characters of a name, command or reason in a narration line."""

SUMMARY_SECONDS = 60.0
"""Interval between two lines about routine decisions: short of memory, the governor holds and starts jobs for hours."""

ROUTINE = {"admit": "started", "hold": "held back", "thaw": "thawed"}
"""Decisions of the governor that are counted instead of listed one by one, by their first word."""

PLAIN = {"admit": "start", "shed": "stop"}
"""First words of stoker's own decisions in the journal, and their plain equivalents."""

SPOKEN_FOR_SECONDS = 2.0
"""A level that changes this soon after a person's request was reported with that request."""

OWN = ("governor", "engine")
"""Who decides, if not a person (events.Decided)."""

NEEDS = ("needs up to ", "needs ~")
"""How the reason begins for a job that was started because it fits; the second form is in older journals."""

T = TypeVar("T")


class GoverningReporter:
    """Reports changes in governing, and remembers what it has reported. Each line has the Unix time it is about."""

    def __init__(self) -> None:
        self._last: DecisionEntry | None = None
        self._level: Level | None = None
        self._since = 0.0
        self._routine: Counter[str] = Counter()
        self._newest: DecisionEntry | None = None
        self._summary_at = 0.0

    def level(self, state: BuildState, *, early: bool) -> list[tuple[float, str]]:
        """Return a line about the level and the pause, if they have changed; none while it is too `early`.

        The first line has no counts: the deck fills within a moment, and each reader would see another number.
        """
        level = state.level
        reported = self._level
        if level.target is None or _same(level, reported):
            return []
        self._since = self._since or state.time
        if early:
            return []
        self._level = level
        if reported is None:
            return [(self._since, level_text(state, counted=False))]
        person = next((d for d in reversed(state.decisions) if is_person(d)), None)
        if person is not None and state.time - person.time < SPOKEN_FOR_SECONDS:
            return []
        return [(state.time, level_text(state))]

    def decisions(self, state: BuildState, now: float) -> list[tuple[float, str]]:
        """Return new decisions: a person's and the unusual ones one by one, routine ones as an occasional summary."""
        new = newer(state.decisions, self._last)
        self._last = state.decisions[-1] if state.decisions else None
        lines = []
        for decision in new:
            if is_routine(decision):
                self._routine[decision.what.split(" ", 1)[0]] += 1
                self._newest = decision
            else:
                lines.append((decision.time, _line(decision)))
        return lines + self._summary(now)

    def _summary(self, now: float) -> list[tuple[float, str]]:
        if self._newest is None or now < self._summary_at:
            return []
        self._summary_at = now + SUMMARY_SECONDS
        newest, counts = self._newest, self._routine
        self._newest, self._routine = None, Counter()
        if counts.total() == 1:
            return [(newest.time, _line(newest))]
        sums = ", ".join(f"{counts[verb]} {word}" for verb, word in ROUTINE.items() if counts[verb])
        return [(newest.time, f"{sums}; last: {_what(newest)}")]


def newer(items: Sequence[T], last: T | None) -> Sequence[T]:
    """Return the items after `last`; all of them if it is no longer there."""
    for index in range(len(items) - 1, -1, -1):
        if items[index] == last:
            return items[index + 1 :]
    return items


def is_person(decision: DecisionEntry) -> bool:
    """Return whether a person decided, not stoker itself."""
    return decision.who not in OWN


def who_text(decision: DecisionEntry) -> str:
    """Return who decided: stoker, whichever part of it, or a person's name."""
    return clean(decision.who) if is_person(decision) else "stoker"


def in_plain_words(decision: DecisionEntry) -> DecisionEntry:
    """Return the decision in plain words; a person's own words are kept."""
    verb, blank, rest = decision.what.partition(" ")
    if is_person(decision) or verb not in PLAIN:
        return decision
    return replace(decision, what=PLAIN[verb] + blank + rest)


def _same(level: Level, reported: Level | None) -> bool:
    """Return whether two levels are the same to a reader; the scheduler's window does not count."""
    return reported is not None and (level.mode, level.target, level.paused, level.guarded) == (
        reported.mode,
        reported.target,
        reported.paused,
        reported.guarded,
    )


def is_routine(decision: DecisionEntry) -> bool:
    """Return whether a decision is one of the many that are made in a build short of memory."""
    return not is_person(decision) and decision.what.split(" ", 1)[0] in ROUTINE


def is_usual(decision: DecisionEntry) -> bool:
    """Return whether a decision merely started a job that fits: that happens all the time and is not worth showing."""
    return is_routine(decision) and decision.what.startswith("admit ") and decision.why.startswith(NEEDS)


def _line(decision: DecisionEntry) -> str:
    """Return what was decided; stoker writes every line, so only a person is named."""
    return f"{_name(decision.who)}: {_what(decision)}" if is_person(decision) else _what(decision)


def _what(decision: DecisionEntry) -> str:
    return f"{_name(in_plain_words(decision).what)} ({_name(decision.why)})"


def _name(text: str) -> str:
    return clean(text, MAX_NAME)
