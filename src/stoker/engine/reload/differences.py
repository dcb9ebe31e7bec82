"""What has changed between two readings of configuration files, in words: what, from which value, to which.

Pure. Unaware of files and of the consequences.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Literal, NamedTuple

from stoker.config.choices import Choices
from stoker.decide.memory.prior_classes import Prior
from stoker.decide.policy.thresholds import Thresholds
from stoker.model.text import clean
from stoker.model.units import format_bytes

MAX_CLASSES = 8
"""Changed classes that are listed one by one; in a file that was rewritten as a whole the rest is counted."""

LEVEL = "automatic level"

_WORD = 60
"""Characters shown of a name or a pattern."""


class ChoiceChange(NamedTuple):
    """One change in a few words, and what it is about."""

    about: Literal["memory", "level", "retries", "threshold", "class"]
    what: str


def differences(before: Choices, after: Choices, steps: Sequence[str]) -> list[ChoiceChange]:
    """Return every change, for a build with these steps."""
    return [
        *(ChoiceChange("memory", what) for what in _memory(before.profile.memory, after.profile.memory)),
        *(ChoiceChange("level", what) for what in _steps(before, after, steps, "level")),
        *(ChoiceChange("retries", what) for what in _steps(before, after, steps, "retries")),
        *_thresholds(before.thresholds, after.thresholds),
        *(ChoiceChange("class", what) for what in _bounded(_classes(before.profile.classes, after.profile.classes))),
        *(ChoiceChange("class", what) for what in _bounded(_classes(before.classes, after.classes))),
    ]


def _memory(before: int | None, after: int | None) -> Iterator[str]:
    if before != after:
        words = ["all there is" if size is None else format_bytes(size) for size in (before, after)]
        yield f"memory {_from_to(*words)}"


def _steps(before: Choices, after: Choices, names: Sequence[str], key: Literal["level", "retries"]) -> Iterator[str]:
    """Steps with the same change are listed together."""
    alike: dict[tuple[str, str], list[str]] = {}
    for name in names:
        steps = [choices.profile.steps.get(name) for choices in (before, after)]
        old, new = ("" if step is None else _said(getattr(step, key)) for step in steps)
        if old and new and old != new:
            alike.setdefault((old, new), []).append(name)
    for (old, new), changed in alike.items():
        of = "" if len(changed) == len(names) else f" of {_names(changed)}"
        yield f"{key}{of} {_from_to(old, new)}"


def _said(value: int | None) -> str:
    return "automatic" if value is None else str(value)


def _names(names: Sequence[str]) -> str:
    shown = ", ".join(clean(name, _WORD) for name in names[:3])
    return f"{shown} and {len(names) - 3} more" if len(names) > 3 else shown


def _thresholds(before: Thresholds, after: Thresholds) -> Iterator[ChoiceChange]:
    old, new = _words(before), _words(after)
    for name, word in old.items():
        if word != new[name]:
            yield ChoiceChange("level" if name == LEVEL else "threshold", f"{name} {_from_to(word, new[name])}")


def _words(thresholds: Thresholds) -> dict[str, str]:
    return {
        "reserve": str(thresholds.reserve or "automatic"),
        "floor": str(thresholds.floor or "automatic"),
        LEVEL: "as many as cores" if thresholds.level is None else f"at most {thresholds.level}",
        "pressure": "off" if thresholds.pressure is None else f"{thresholds.pressure:g} %",
    }


def _classes(before: Sequence[Prior], after: Sequence[Prior]) -> Iterator[str]:
    old, new = ({prior.name: prior for prior in priors} for priors in (before, after))
    for name in dict.fromkeys((*old, *new)):
        one, other = old.get(name), new.get(name)
        if one != other:
            yield f"class {clean(name, _WORD)} {_class_change(one, other)}"
    kept = [[p.name for p in priors if p.name in old and p.name in new] for priors in (before, after)]
    if kept[0] != kept[1]:
        yield "the order of the classes"


def _class_change(before: Prior | None, after: Prior | None) -> str:
    if before is None or after is None:
        return _from_to(*("none" if prior is None else _size(prior) for prior in (before, after)))
    if _size(before) != _size(after):
        return _from_to(_size(before), _size(after))
    for what in ("tool", "output", "command", "spread", "time_spread"):
        old, new = getattr(before, what), getattr(after, what)
        if old != new:
            return f"{what} {_from_to(*(clean(str(v), _WORD) or 'any' for v in (old, new)))}"
    return f"lasts {_from_to(*(f'{prior.curve.duration:g} s' for prior in (before, after)))}"


def _size(prior: Prior) -> str:
    return format_bytes(prior.curve.peak)


def _from_to(old: str, new: str) -> str:
    return f"{old} → {new}"


def _bounded(changes: Iterable[str]) -> Iterator[str]:
    left = iter(changes)
    yield from islice(left, MAX_CLASSES)
    more = sum(1 for _ in left)
    if more:
        yield f"{more} more classes"
