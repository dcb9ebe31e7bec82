"""What the plain client says of governing: level, pauses and decisions, without flooding a log that nobody cleans.

Unaware of streams, colours and of how the state was obtained.
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
"""Characters of a name, command or reason in a narration line."""

SUMMARY_SECONDS = 60.0
"""Between two lines about what the governor does all the time: short of memory, it holds and starts jobs for hours."""

ROUTINE = {"admit": "started", "hold": "held back", "thaw": "thawed"}
"""Decisions of the governor that are counted and not listed one by one, by their first word."""

PLAIN = {"admit": "start", "shed": "stop"}
"""First words of stoker's own decisions in the journal, and what those say who have read nothing about it."""

SPOKEN_FOR_SECONDS = 2.0
"""A level that changes so soon after a person's word is what the person asked for, and said already."""

OWN = ("governor", "engine")
"""Who decides, where no person does (events.Decided)."""

NEEDS = ("needs up to ", "needs ~")
"""How the reason of a job begins that was let go because it fits; the second in journals of before."""

T = TypeVar("T")


class GoverningReporter:
    """Remembers what was said. Each line comes with the Unix time that it is about."""

    def __init__(self) -> None:
        self._last: DecisionEntry | None = None
        self._level: Level | None = None
        self._routine: Counter[str] = Counter()
        self._newest: DecisionEntry | None = None
        self._summary_at = 0.0

    def level(self, state: BuildState) -> list[tuple[float, str]]:
        """The level and the pause, if they are news."""
        level = state.level
        said = self._level
        if level.target is None or _same(level, said):
            return []
        self._level = level
        person = next((d for d in reversed(state.decisions) if is_person(d)), None)
        if said is not None and person is not None and state.time - person.time < SPOKEN_FOR_SECONDS:
            return []
        return [(state.time, level_text(state))]

    def decisions(self, state: BuildState, now: float) -> list[tuple[float, str]]:
        """New decisions: a person's and the grave ones each, the governor's routine as a sum now and then."""
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
    """The items behind `last`; all of them if it is not there any more."""
    for index in range(len(items) - 1, -1, -1):
        if items[index] == last:
            return items[index + 1 :]
    return items


def is_person(decision: DecisionEntry) -> bool:
    """Whether a person decided, and not stoker itself."""
    return decision.who not in OWN


def who_text(decision: DecisionEntry) -> str:
    """Who decided: stoker, whichever part of it, or a person's name."""
    return clean(decision.who) if is_person(decision) else "stoker"


def in_plain_words(decision: DecisionEntry) -> DecisionEntry:
    """The decision as it is said to people; a person's own words stay."""
    verb, blank, rest = decision.what.partition(" ")
    if is_person(decision) or verb not in PLAIN:
        return decision
    return replace(decision, what=PLAIN[verb] + blank + rest)


def _same(level: Level, said: Level | None) -> bool:
    """Whether two levels say the same; how wide the scheduler is does not count."""
    return said is not None and (level.mode, level.target, level.paused, level.guarded) == (
        said.mode,
        said.target,
        said.paused,
        said.guarded,
    )


def is_routine(decision: DecisionEntry) -> bool:
    """Whether it is one of the many that a build short of memory takes."""
    return not is_person(decision) and decision.what.split(" ", 1)[0] in ROUTINE


def is_usual(decision: DecisionEntry) -> bool:
    """Whether it is a job that was let go because it fits: what a build does all the time, and no news to anybody."""
    return is_routine(decision) and decision.what.startswith("admit ") and decision.why.startswith(NEEDS)


def _line(decision: DecisionEntry) -> str:
    """What was decided; every line is stoker's, so only a person is named."""
    return f"{_name(decision.who)}: {_what(decision)}" if is_person(decision) else _what(decision)


def _what(decision: DecisionEntry) -> str:
    return f"{_name(in_plain_words(decision).what)} ({_name(decision.why)})"


def _name(text: str) -> str:
    return clean(text, MAX_NAME)
