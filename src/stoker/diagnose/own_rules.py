"""A person's own rules, from ~/.config/stoker/rules and from files given by name. Knows nothing of logs.

They take precedence over the shipped ones; one of the same name replaces the shipped one. They may advise but not act:
what stoker does by itself is decided only in its own rules.
"""

from __future__ import annotations

import functools
from collections.abc import Iterable
from pathlib import Path

from stoker.config.config_error import ConfigError
from stoker.config.paths import config_dir
from stoker.diagnose.pattern_cost import MAX_OWN, cost
from stoker.diagnose.rule import Rule, load_rules, shipped_rules

MAX_FILES = 100
"""Files of the folder that are read."""


def own_rule_files() -> list[Path]:
    """Return the files of a person's own folder, ordered by name."""
    return sorted((config_dir() / "rules").glob("*.yaml"))[:MAX_FILES]


def load_own_rules(path: Path) -> list[Rule]:
    """Return the rules of a person's file. Raises its first fault as a ConfigError."""
    rules = load_rules(path)
    for rule in rules:
        if rule.action != "none":
            raise ConfigError(path, 0, f"{rule.id!r}: only shipped rules may have an 'action'; put it into the remedy")
        slow = next((p.expression for p in rule.patterns if cost(p.expression) > MAX_OWN), None)
        if slow is not None:
            fault = f"{rule.id!r}: {slow!r} has too many ways to match; write ^, fewer and shorter {{0,200}}, or *+"
            raise ConfigError(path, 0, fault)
    return rules


def rules_with(files: Iterable[Path]) -> tuple[Rule, ...]:
    """Return the rules of these files, those of the folder, and the shipped ones. Raises ConfigError."""
    known: dict[str, Rule] = {}
    for path in (*files, *own_rule_files()):
        for rule in load_own_rules(path):
            known.setdefault(rule.id, rule)
    for rule in shipped_rules():
        known.setdefault(rule.id, rule)
    return tuple(known.values())


@functools.cache
def usable_rules() -> tuple[Rule, ...]:
    """Return all rules; only the shipped ones if a file of the folder is faulty, because no build may suffer from
    that."""
    try:
        return rules_with(())
    except ConfigError:
        return shipped_rules()
