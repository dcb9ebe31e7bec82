"""A rule's example as it would stand in a log."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from stoker.diagnose.provider import MESSAGE
from stoker.diagnose.rule import Rule, shipped_rules

BATCH = 64


def in_batches(rules: Sequence[Rule]) -> pytest.MarkDecorator:
    """Parametrize a test with `rules`, some at a time: a test for each rule costs more than what it tests."""
    batches = [rules[at : at + BATCH] for at in range(0, len(rules), BATCH)]
    return pytest.mark.parametrize("rules", batches, ids=lambda batch: f"{batch[0].id}..{batch[-1].id}")


def log_of(rule: Rule, example: str, form: str = "{}", *, first_line_only: bool = False) -> str:
    """Return the example, each line or the first alone in that form; evidence has beside it what it decides."""
    beside = () if rule.throughout else rule.beside  # its own lines are of the rule that it decides, and are all
    decided = next((other.examples[0] for other in shipped_rules() if other.id in beside), "")
    first, *rest = (line.rstrip() for line in f"{example.strip()}\n{decided.strip()}".splitlines() if line)
    return "\n".join([form.format(first), *(line if first_line_only else form.format(line) for line in rest)])


def of_lines(rule: Rule) -> bool:
    """Say whether the rule reads more lines than the one that it finds."""
    return rule.wordless or rule.throughout or rule.provided == MESSAGE
