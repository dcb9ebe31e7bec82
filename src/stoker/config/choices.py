"""What a user may change while a build runs, as their files say it now: levels, memory, retries and classes of the
profile, their own priors.yaml, the thresholds of settings.yaml. Unaware of builds and of when to read.

The reader of profiles is loaded only when one is read: each build waits until its engine is loaded, and most have none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from stoker.config.config_error import ConfigError
from stoker.config.paths import settings_path
from stoker.config.priors import load_classes, own_priors
from stoker.config.settings import load_settings
from stoker.decide.memory.prior_classes import Prior
from stoker.decide.policy.thresholds import Thresholds

if TYPE_CHECKING:
    from stoker.config.profiles.profile import Profile, ProfileStep


class StepChoice(NamedTuple):
    """How many jobs a step may run at once (None: as many as there are cores), and how often it runs again."""

    level: int | None
    retries: int


@dataclass(frozen=True, slots=True)
class ProfileChoices:
    """What a profile says of a build that runs; `memory` in bytes, None for all there is. `steps` by their names."""

    memory: int | None = None
    steps: Mapping[str, StepChoice] = field(default_factory=dict)
    classes: tuple[Prior, ...] = ()


@dataclass(frozen=True, slots=True)
class Choices:
    """All that can change; `classes` are those of priors.yaml."""

    profile: ProfileChoices = field(default_factory=ProfileChoices)
    classes: tuple[Prior, ...] = ()
    thresholds: Thresholds = field(default_factory=Thresholds)


class ProfileOrigin(NamedTuple):
    """The profile that a build runs by: its file, and a person's values for its variables."""

    path: Path
    settings: Mapping[str, str]
    extra: tuple[str, ...] = ()


class ReadChoices(NamedTuple):
    """One source as it is now. If there are errors, `choices` has what can still be used.

    `files` are all paths that were checked; `rest` is equal as long as nothing else in the source has changed.
    """

    choices: Choices
    faults: list[ConfigError]
    files: frozenset[Path]
    rest: object = None


def level_of(step: ProfileStep, profile: Profile) -> int | None:
    """Return how many jobs a step may run at once while the level is automatic; None where the profile does not say."""
    return min((level for level in (step.level, profile.level) if level is not None), default=None)


def from_profile(origin: ProfileOrigin, before: Choices) -> ReadChoices:
    """Return `before` with what the profile and all that it extends say now."""
    from stoker.config.profiles.load import ProfileError, read_profile

    files: set[Path] = {origin.path}
    try:
        profile, faults = read_profile(origin.path, origin.settings, origin.extra, files)
    except ProfileError as err:
        profile, faults = None, [ConfigError(origin.path, 0, str(err))]
    if profile is None or faults:
        return ReadChoices(before, faults, frozenset(files))
    steps = {step.name: StepChoice(level_of(step, profile), step.retries) for step in profile.steps}
    said = ProfileChoices(profile.memory, steps, profile.priors)
    rest = [
        profile.env,
        (profile.cache, profile.remote_cache, profile.compilers),
        (profile.dist, profile.distcc, profile.icecream),
        profile.device_time,
        profile.tmp,
        profile.container,
        [(s.name, s.words, s.env, s.cwd, s.when) for s in profile.steps],
    ]
    return ReadChoices(Choices(said, before.classes, before.thresholds), faults, frozenset(files), rest)


def from_priors(before: Choices) -> ReadChoices:
    """Return `before` with the classes that a person's own priors.yaml has now."""
    path = own_priors()
    classes, faults = load_classes(path)
    faults += _gone(path, missed=bool(before.classes))
    return ReadChoices(Choices(before.profile, classes, before.thresholds), faults, frozenset({path}))


def from_settings(before: Choices) -> ReadChoices:
    """Return `before` with the thresholds that settings.yaml has now."""
    path = settings_path()
    settings, faults = load_settings(path)
    faults += _gone(path, missed=before.thresholds != Thresholds())
    return ReadChoices(Choices(before.profile, before.classes, settings.thresholds), faults, frozenset({path}))


def _gone(path: Path, *, missed: bool) -> list[ConfigError]:
    """Return an error for a file in use that is gone: an editor may be rewriting it, or its disk may be away."""
    return [ConfigError(path, 0, "is gone")] if missed and not path.exists() and not path.is_symlink() else []
