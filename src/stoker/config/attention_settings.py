"""The user's choices of what a terminal is sent besides its screen. Unaware of terminals, and of settings.yaml."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True, slots=True)
class AttentionSettings:
    """What a terminal is sent beside its screen. `notify`: how it announces what matters, "auto" as it is known to;
    `progress`: whether it is sent OSC 9;4, "auto" where it is known to show it; `title`: whether its title says how far
    the build is."""

    notify: Literal["auto", "off", "bell", "osc9", "osc777", "osc99"] = "auto"
    progress: Literal["auto", "yes", "no"] = "auto"
    title: Literal["yes", "no"] = "yes"
