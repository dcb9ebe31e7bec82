"""A known failure found in a log, and the order of causes. Unaware of how matches are found and shown."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from stoker.diagnose.rule import Rule
from stoker.model.diagnosis import Cause


@dataclass(frozen=True, slots=True)
class Match:
    """The first line that a rule matches.

    `line` counts from 1. `text` is harmless and cut. `step` is alike for lines between two lines of the scheduler.
    `count` is how many lines the rule matches, counted up to a thousand.
    """

    rule: Rule
    line: int
    text: str
    step: int
    count: int = 1


def in_order(matches: Iterable[Match]) -> list[Match]:
    """Sort matches, the first cause first: by time, but within a step the specific before the general."""
    unordered = list(matches)
    begin: dict[int, int] = {}
    for match in unordered:
        begin[match.step] = min(match.line, begin.get(match.step, match.line))
    return sorted(unordered, key=lambda match: (begin[match.step], match.rule.rank, match.line))


def cause_of(match: Match) -> Cause:
    """Return the match as the journal records it, without the lines around it."""
    rule = match.rule
    return Cause(rule.id, rule.title, rule.why, rule.remedy, match.line, text=match.text, count=match.count)


def to_json(causes: Iterable[Cause], rules: Iterable[Rule]) -> dict[str, Any]:
    """Return what `stoker diagnose --json` prints."""
    actions = {rule.id: rule.action for rule in rules}
    return {
        "matches": [
            {
                "rule": cause.rule,
                "title": cause.title,
                "line": cause.line,
                "text": cause.text,
                "why": cause.why,
                "remedy": cause.remedy,
                "action": actions.get(cause.rule, "none"),
                "count": cause.count,
            }
            for cause in causes
        ]
    }
