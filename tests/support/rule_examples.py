"""A rule's example as it would stand in a log."""

from __future__ import annotations

from stoker.diagnose.provider import MESSAGE
from stoker.diagnose.rule import Rule, shipped_rules


def log_of(rule: Rule, example: str, form: str = "{}") -> str:
    """Return the example, each line in that form; evidence has beside it what it decides."""
    decided = next((other.examples[0] for other in shipped_rules() if other.id in rule.beside), "")
    lines = f"{example.strip()}\n{decided.strip()}".splitlines()
    return "\n".join(form.format(line.rstrip()) for line in lines if line)


def of_lines(rule: Rule) -> bool:
    """Say whether the rule reads the lines behind the one that it finds."""
    return rule.wordless or rule.provided == MESSAGE
