"""The last accepted values of configuration files, kept next to the journal for the next engine.

Unaware of where those files are and of what the values do.
"""

from __future__ import annotations

import json
import os
from dataclasses import asdict
from pathlib import Path
from typing import Any

from stoker.config.choices import Choices, ProfileChoices, StepChoice
from stoker.decide.memory.curves import Curve, Point
from stoker.decide.memory.prior_classes import Prior
from stoker.decide.policy.thresholds import Amount, Thresholds

NAME = "choices.json"


def write_choices(folder: Path, choices: Choices) -> None:
    """Save them; raises OSError. The old ones stay until the new ones are complete."""
    stored = {
        "memory": choices.profile.memory,
        "steps": {name: list(step) for name, step in choices.profile.steps.items()},
        "profile_classes": [_stored(prior) for prior in choices.profile.classes],
        "classes": [_stored(prior) for prior in choices.classes],
        "thresholds": asdict(choices.thresholds),
    }
    new = folder / f"{NAME}.new"
    descriptor = os.open(new, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, 0o600)
    with open(descriptor, "w", encoding="ascii") as file:
        json.dump(stored, file)
    new.replace(folder / NAME)


def read_choices(folder: Path) -> Choices | None:
    """Return the saved values; None if there are none, or they cannot be used."""
    try:
        stored = json.loads((folder / NAME).read_bytes())
        steps = {name: StepChoice(level, retries) for name, (level, retries) in stored["steps"].items()}
        profile = ProfileChoices(stored["memory"], steps, _classes(stored["profile_classes"]))
        return Choices(profile, _classes(stored["classes"]), _thresholds(stored["thresholds"]))
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None


def _stored(prior: Prior) -> dict[str, Any]:
    return {
        "name": prior.name,
        "points": [list(point) for point in prior.curve.points],
        "source": prior.curve.source,
        "spread": prior.spread,
        "time_spread": prior.time_spread,
        "tool": prior.tool,
        "output": prior.output,
        "command": prior.command,
    }


def _classes(stored: list[dict[str, Any]]) -> tuple[Prior, ...]:
    return tuple(_prior(**each) for each in stored)


def _prior(points: list[list[Any]], source: str, **rest: Any) -> Prior:
    return Prior(curve=Curve(tuple(Point(*point) for point in points), source=source), **rest)


def _thresholds(stored: dict[str, Any]) -> Thresholds:
    amounts = {key: Amount(**stored[key]) if stored[key] is not None else None for key in ("reserve", "floor")}
    return Thresholds(**{**stored, **amounts})
