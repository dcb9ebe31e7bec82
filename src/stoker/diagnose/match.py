"""A known failure found in a log, and the order of causes. Unaware of how matches are found and shown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from stoker.diagnose.line_names import filled
from stoker.diagnose.rule import Rule
from stoker.model.diagnosis import Cause


@dataclass(frozen=True, slots=True)
class Match:
    """The first line that a rule matches.

    `line` counts from 1. `text` is harmless and cut. `step` is alike for lines between two lines of the scheduler.
    `count` is how many lines the rule matches, counted up to a thousand. `names` are those in the first line, by kind.
    """

    rule: Rule
    line: int
    text: str
    step: int
    count: int = 1
    names: Mapping[str, str] = field(default_factory=dict)

    @property
    def why(self) -> str:
        """Why it happens, with the names of this line."""
        return filled(self.rule.why, self.names)

    @property
    def remedy(self) -> str:
        """What to do about it, with the names of this line."""
        return filled(self.rule.remedy, self.names)


def in_order(matches: Iterable[Match]) -> list[Match]:
    """Sort matches, the first cause first: by time, but within a step the specific before the general.

    What a build may survive stands behind all others, if anything came later that it did not survive.
    """
    unordered = list(matches)
    begin: dict[int, int] = {}
    for match in unordered:
        begin[match.step] = min(match.line, begin.get(match.step, match.line))
    end = max((match.line for match in unordered if not match.rule.survivable), default=0)
    survived = {match.rule.id for match in unordered if match.rule.survivable and match.line < end}
    return sorted(unordered, key=lambda m: (m.rule.id in survived, begin[m.step], m.rule.rank, m.line))


def cause_of(match: Match) -> Cause:
    """Return the match as the journal records it, without the lines around it."""
    rule = match.rule
    return Cause(rule.id, rule.title, match.why, match.remedy, match.line, text=match.text, count=match.count)


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
