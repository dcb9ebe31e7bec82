"""A rule's example as it would stand in a log."""

from __future__ import annotations

from stoker.diagnose.provider import MESSAGE
from stoker.diagnose.rule import Rule, shipped_rules


def log_of(rule: Rule, example: str, form: str = "{}", *, first_line_only: bool = False) -> str:
    """Return the example, each line or the first alone in that form; evidence has beside it what it decides."""
    beside = () if rule.throughout else rule.beside  # its own lines are of the rule that it decides, and are all
    decided = next((other.examples[0] for other in shipped_rules() if other.id in beside), "")
    first, *rest = (line.rstrip() for line in f"{example.strip()}\n{decided.strip()}".splitlines() if line)
    return "\n".join([form.format(first), *(line if first_line_only else form.format(line) for line in rest)])


def of_lines(rule: Rule) -> bool:
    """Say whether the rule reads more lines than the one that it finds."""
    return rule.wordless or rule.throughout or rule.provided == MESSAGE
