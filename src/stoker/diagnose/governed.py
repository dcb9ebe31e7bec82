"""Remedies for a build that stoker runs already. Knows nothing of the build."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import replace

from stoker.diagnose.rule import Rule
from stoker.model.diagnosis import Cause


def governed(causes: Sequence[Cause], rules: Collection[Rule]) -> list[Cause]:
    """Return the causes with remedies that do not advise to run the build under stoker."""
    of_rule = {rule.id: rule.governed for rule in rules if rule.governed}
    return [replace(c, remedy=of_rule[c.rule]) if "stoker run" in c.remedy and c.rule in of_rule else c for c in causes]
