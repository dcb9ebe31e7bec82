"""A person's own rules, from ~/.config/stoker/rules and from files that are named. Unaware of logs.

They go before the shipped ones: one of the same name stands in the place of a shipped one. They advise and do not act,
for what stoker does by itself is written nowhere but in itself.
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
    """Return the files of a person's own folder, by name."""
    return sorted((config_dir() / "rules").glob("*.yaml"))[:MAX_FILES]


def load_own_rules(path: Path) -> list[Rule]:
    """Return the rules of a person's file. Raises its first fault as a ConfigError."""
    rules = load_rules(path)
    for rule in rules:
        if rule.action != "none":
            raise ConfigError(path, 0, f"{rule.id!r}: 'action' goes with shipped rules alone; say it in the remedy")
        slow = next((p.regex.pattern for p in rule.patterns if cost(p.regex.pattern) > MAX_OWN), None)
        if slow is not None:
            fault = f"{rule.id!r}: {slow!r} may try in too many ways; write ^, fewer and shorter {{0,200}}, or *+"
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
    """Return all rules; the shipped ones alone where a file of the folder is faulty: no build may suffer for it."""
    try:
        return rules_with(())
    except ConfigError:
        return shipped_rules()
