"""What a person has chosen for every build, from settings.yaml. Unaware of what the choices do."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, cast

from stoker.config.errors import ConfigError
from stoker.config.paths import config_dir
from stoker.config.strict_yaml import Section, load

_KEYS = ("theme", "keys", "tick", "ascii")


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings, each with its default."""

    theme: str = "auto"
    """A theme's name, or "auto": dark or light as the terminal tells."""

    keys: Mapping[str, str] = field(default_factory=dict)
    """Other keys for actions, by the action's name: `detach: ctrl+d`."""

    tick: float = 1.0
    """Seconds between two pictures of the full screen, 0.5 to 5. A slow line wants more."""

    ascii: Literal["auto", "yes", "no"] = "auto"
    """Whether to draw with ASCII characters alone; "auto" does so where the locale is not UTF-8."""


def settings_path() -> Path:
    """Where the settings are looked for."""
    return config_dir() / "settings.yaml"


def load_settings(path: Path, actions: Collection[str] | None = None) -> tuple[Settings, list[ConfigError]]:
    """The settings of a file and its faults; what has a fault keeps its default. No file means all defaults.

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
        ascii=cast('Literal["auto", "yes", "no"]', section.choice("ascii", ("auto", "yes", "no"), defaults.ascii)),
    )
    return settings, section.errors


def _keys(section: Section, actions: Collection[str] | None) -> dict[str, str]:
    if actions is not None:
        section.allow(actions, "action")
    keys: dict[str, str] = {}
    for action, key in section.scalars():
        if actions is not None and action not in actions:
            continue
        other = next((a for a, k in keys.items() if k == key), None)
        if not key.isprintable() or not key or " " in key:
            section.fail(action, f"{key!r} is no key; write it as x, X, f5, ctrl+d or plus")
        elif other is not None:
            section.fail(action, f"key {key!r} is for {other!r} already")
        else:
            keys[action] = key
    return keys
