"""The user's settings for every build, from settings.yaml. Unaware of what the settings do, and of builds."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, cast

from stoker.config.attention_settings import AttentionSettings
from stoker.config.config_error import ConfigError
from stoker.config.strict_yaml import Section, load
from stoker.decide.policy.thresholds import MOST_FLOOR, MOST_RESERVE, Amount, Thresholds
from stoker.model.bounds import MAX_LEVEL
from stoker.model.units import parse_size

MAX_SIZE = 2**50
"""A petabyte: a larger one is a slip."""

_KEYS = (
    "theme", "keys", "tick", "ascii", "mouse", "notify", "progress", "title", "notify_command",
    "reserve", "floor", "level", "pressure",
)  # fmt: skip
_WAYS = ("auto", "off", "bell", "osc9", "osc777", "osc99")
_SHARE = re.compile(r"(\d{1,3}(?:\.\d{1,3})?) *%", re.ASCII)
_PERCENT = re.compile(r"(\d{1,3}(?:\.\d{1,3})?)(?: *%)?", re.ASCII)


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, each with its default."""

    theme: str = "auto"
    """A theme's name, or "auto": dark or light as the terminal reports it."""

    keys: Mapping[str, str] = field(default_factory=dict)
    """Other keys for actions, by the action's name: `detach: ctrl+d`."""

    tick: float = 1.0
    """Seconds between two frames of the full screen, 0.5 to 5. Use more on a slow link."""

    ascii: Literal["auto", "yes", "no"] = "auto"
    """Whether to draw with ASCII characters alone; "auto" does so where the locale is not UTF-8."""

    mouse: Literal["on", "off"] = "on"
    """Whether clicks and the wheel act on the screens; text is then selected with Shift held."""

    attention: AttentionSettings = field(default_factory=AttentionSettings)
    """`notify`, `progress` and `title`: what the terminal is sent beside its screen."""

    notify_command: str = ""
    """The notify command; empty for none."""

    thresholds: Thresholds = field(default_factory=Thresholds)
    """`reserve`, `floor`, `level` and `pressure`: how a build's memory and level are governed."""


def load_settings(path: Path, actions: Collection[str] | None = None) -> tuple[Settings, list[ConfigError]]:
    """Return the settings of a file and its errors; a setting with an error keeps its default. No file means all
    defaults.

    `actions` are the names that `keys` may use; None leaves them unchecked.
    """
    if not path.exists() and not path.is_symlink():
        return Settings(), []
    try:
        section = load(path)
    except ConfigError as err:
        return Settings(), [err]
    section.allow(_KEYS, "setting")
    defaults = Settings()
    settings = Settings(
        theme=section.text("theme", defaults.theme),
        keys=_keys(section.section("keys"), actions),
        tick=section.number("tick", defaults.tick, 0.5, 5.0),
        ascii=cast("Any", section.choice("ascii", ("auto", "yes", "no"), defaults.ascii)),
        mouse=cast("Any", section.choice("mouse", ("on", "off"), defaults.mouse)),
        attention=AttentionSettings(
            cast("Any", section.choice("notify", _WAYS, "auto")),
            cast("Any", section.choice("progress", ("auto", "yes", "no"), "auto")),
            cast("Any", section.choice("title", ("yes", "no"), "yes")),
        ),
        notify_command=section.text("notify_command", defaults.notify_command),
        thresholds=_thresholds(section),
    )
    return settings, section.errors


def _thresholds(section: Section) -> Thresholds:
    reserve, floor = _amount(section, "reserve", MOST_RESERVE), _amount(section, "floor", MOST_FLOOR)
    if reserve is not None and floor is not None and _is_less(reserve, floor):
        section.fail("floor", f"'floor' ({floor}) is above 'reserve' ({reserve}): the reserve is what keeps it away")
    return Thresholds(reserve, floor, _level(section), _pressure(section))


def _amount(section: Section, key: str, most: float) -> Amount | None:
    """Return a share of the memory budget or a size; None for stoker's own measure."""
    text = section.text(key, "auto").strip()
    if text == "auto":
        return None
    share = _SHARE.fullmatch(text)
    if share is not None and 0 <= float(share[1]) <= 100 * most:
        return Amount(share=float(share[1]) / 100)
    try:
        size = 0 if share else parse_size(text)
    except (ValueError, OverflowError):
        size = 0
    if 0 < size <= MAX_SIZE and not text.isdecimal():
        return Amount(size=size)
    section.fail(key, f"{key!r} is auto, a share from 0% to {100 * most:.0f}%, or a size like 4 GiB, not {text!r}")
    return None


def _is_less(first: Amount, second: Amount) -> bool:
    """Return whether that holds for every budget: only shares compare with shares, and sizes with sizes."""
    alike = bool(first.size) == bool(second.size)
    return alike and first.of(1) < second.of(1)


def _level(section: Section) -> int | None:
    text = section.text("level", "auto").strip()
    short = text.isascii() and text.isdecimal() and len(text) <= len(str(MAX_LEVEL))
    if short and 1 <= int(text) <= MAX_LEVEL:
        return int(text)
    if text != "auto":
        section.fail("level", f"'level' is auto or a whole number from 1 to {MAX_LEVEL}, not {text!r}")
    return None


def _pressure(section: Section) -> float | None:
    """Return percent of time, from just above 0 to 100."""
    default = Thresholds().pressure
    text = section.text("pressure", str(default)).strip()
    percent = _PERCENT.fullmatch(text)
    if percent is not None and 0 < float(percent[1]) <= 100:
        return float(percent[1])
    # YAML's `off` would be a boolean to other readers; here it is the word that was written.
    if text == "off":
        return None
    section.fail("pressure", f"'pressure' is off or a percentage of time above 0 and up to 100, not {text!r}")
    return default


def _keys(section: Section, actions: Collection[str] | None) -> dict[str, str]:
    if actions is not None:
        section.allow(actions, "action")
    keys: dict[str, str] = {}
    for action, key in section.scalars():
        if actions is not None and action not in actions:
            continue
        other = next((a for a, k in keys.items() if k == key), None)
        if not key.isprintable() or not key or " " in key:
            section.fail(action, f"{key!r} is not a key; write it as x, X, f5, ctrl+d or plus")
        elif other is not None:
            section.fail(action, f"key {key!r} is for {other!r} already")
        else:
            keys[action] = key
    return keys
