"""Reads a profile: its chain of files, the user's values for variables, and every text with them in it.

Unaware of builds. An error is reported with its file and line; a profile with one is not used.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from pathlib import Path

from stoker.config.config_error import ConfigError, did_you_mean
from stoker.config.profiles.chain import NAME, find_profile, read_chain
from stoker.config.profiles.check_fleet import faults
from stoker.config.profiles.form import read
from stoker.config.profiles.profile import Profile
from stoker.config.profiles.variables import NAME as VARIABLE
from stoker.config.profiles.variables import Variables
from stoker.config.strict_yaml import Section

MAX_STEPS = 32
EXTRA, HEAVY = "extra", "heavy"
"""Lists of words: what a person writes behind `--`, and the profile's heavy targets."""

_ENVIRONMENT = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)
_SHELL = ("&&", "||", "|", "&", ";", "<", ">", ">>", "2>&1")


class ProfileError(Exception):
    """A profile cannot be used as it was asked for; the message is one line with the remedy."""


class FaultyProfileError(ProfileError):
    """There are faults in the profile's files; the message names the first one."""


def load_profile(wanted: str, settings: Mapping[str, str] | None = None, extra: Sequence[str] = ()) -> Profile:
    """Return the profile of this name or path, without a fault. `settings` are a person's values of its variables.

    Raises ProfileError, FaultyProfileError and NoSuchProfileError.
    """
    profile, errors = read_profile(find_profile(wanted), settings, extra)
    if profile is None or errors:
        more = f" (and {len(errors) - 1} more: stoker profiles check {wanted})" if len(errors) > 1 else ""
        raise FaultyProfileError(f"{errors[0]}{more}")
    return profile


def read_profile(
    path: Path,
    settings: Mapping[str, str] | None = None,
    extra: Sequence[str] = (),
    files: set[Path] | None = None,
) -> tuple[Profile | None, list[ConfigError]]:
    """Return the profile in a file as far as it can be read, and its faults.

    `files` takes every place that was looked at.
    Raises ProfileError where `settings` or `extra` do not go with it.
    """
    errors: list[ConfigError] = []
    try:
        merged = read_chain(path, errors, files)
    except ConfigError as err:
        return None, [*errors, err]
    given = dict(settings or {})
    variables = _variables(merged, given, extra)
    _split_commands(merged)
    if extra and not errors and not _takes_extra(merged):
        raise ProfileError(f"profile {path.stem!r} takes no words behind --; none of its commands holds ${{{EXTRA}}}")
    chosen = _chosen(merged, variables, given)
    _settle_variables(merged, variables)
    filled = merged.changed(variables.text, variables.words)
    profile = read(filled, Profile, name=path.stem, path=path, chosen=chosen)
    _check_environment(filled, profile)
    _check_container(filled, profile)
    _check_fleet(filled, profile)
    _check_steps(filled, profile)
    return profile, errors


def _variables(merged: Section, given: Mapping[str, str], extra: Sequence[str]) -> Variables:
    """Return all values, with those by hand before the defaults."""
    values = dict(merged.section("variables").scalars())
    names = {*values, HEAVY} if HEAVY in merged else {*values}
    for name in given:
        if name not in names:
            raise ProfileError(f"this profile has no variable {name!r}{did_you_mean(name, names)}")
    values |= {name: value for name, value in given.items() if name != HEAVY}
    return Variables(values, {EXTRA: tuple(extra), HEAVY: _heavy(merged, given, Variables(values, {}))})


def _heavy(merged: Section, given: Mapping[str, str], variables: Variables) -> tuple[str, ...]:
    """Return the heavy targets: by hand as a shell would cut them into words, else the profile's."""
    heavy: tuple[str, ...] = ()
    try:
        if HEAVY in given:
            heavy = tuple(shlex.split(given[HEAVY]))
        else:
            heavy = tuple(word for each in merged.words(HEAVY) if (word := variables.text(each)))
    except ValueError as err:
        if HEAVY in given:
            raise ProfileError(f"{HEAVY}={given[HEAVY]}: {err}") from err
        merged.fail(HEAVY, str(err))
    if HEAVY in merged:
        merged.put(HEAVY, tuple(map(_literal, heavy)), merged.place_of(HEAVY))
    return heavy


def _settle_variables(merged: Section, variables: Variables) -> None:
    """Put the final values in the place of the written ones; note a fault for each that has none."""
    section = merged.section("variables")
    values = Section(section.path, section.line, section.errors)
    for name, _ in section.scalars():
        if not VARIABLE.fullmatch(name) or name in (EXTRA, HEAVY):
            section.fail(name, f"a variable is not called {name!r}: small letters, digits and _; not extra, not heavy")
            continue
        try:
            values.put(name, _literal(variables.text(f"${{{name}}}")), section.place_of(name))
        except ValueError as err:
            section.fail(name, str(err))
    if "variables" in merged:
        merged.put("variables", values, merged.place_of("variables"))


def _literal(text: str) -> str:
    """Return a text that stands for itself when variables are put in."""
    return text.replace("$", "$$")


def _split_commands(merged: Section) -> None:
    """Cut commands that are one text into words, before anything is put into them: a value stays one word."""
    for _, step in merged.section("steps").sections():
        if "command" not in step or step.is_list("command"):
            continue
        text = step.text("command")
        try:
            words = tuple(shlex.split(text))
        except ValueError as err:
            step.fail("command", f"'command' cannot be cut into words: {str(err).lower()}")
            step.put("command", None, step.place_of("command"))
            continue
        operator = next((word for word in words if word in _SHELL), None)
        if operator is not None:
            step.fail("command", f"no shell runs a command, so {operator!r} means nothing; write two steps")
        step.put("command", words, step.place_of("command"))


def _takes_extra(merged: Section) -> bool:
    steps = merged.section("steps").sections()
    return any(f"${{{EXTRA}}}" in word for _, step in steps for word in step.words("command"))


def _chosen(merged: Section, variables: Variables, given: Mapping[str, str]) -> frozenset[str]:
    """Return environment variables whose value comes from a person's hand."""
    names = set()
    for name, text in merged.section("env").scalars():
        try:
            used = variables.used(text)
        except ValueError:
            continue  # reported where the value is put together
        if not used.isdisjoint(given):
            names.add(name)
    return frozenset(names)


def _check_environment(filled: Section, profile: Profile) -> None:
    sections = [filled.section("env"), *(step.section("env") for _, step in filled.section("steps").sections())]
    for section in sections:
        for name in section.names():
            if not _ENVIRONMENT.fullmatch(name):
                section.fail(name, f"{name!r} cannot be the name of an environment variable")
    if not _ENVIRONMENT.fullmatch(profile.arch_list):
        filled.fail("arch_list", f"{profile.arch_list!r} cannot be the name of an environment variable")


def _check_container(filled: Section, profile: Profile) -> None:
    container, section = profile.container, filled.section("container")
    for name in section.section("env").names():
        if not _ENVIRONMENT.fullmatch(name):
            section.fail(name, f"{name!r} cannot be the name of an environment variable")
    for key in ("image", "user", "gpus"):
        if getattr(container, key).startswith("-"):
            section.fail(key, f"{key!r} cannot begin with '-'; options of the engine go into 'options'")
    if container.image and profile.tmp.kind != "none":
        filled.fail("tmp", "'tmp' does not reach into the container; write container.tmpfs: [/tmp:size=32g,exec]")


_NEEDED = {"distcc": "hosts", "icecream": "scheduler", "dist": "scheduler", "remote_cache": "url"}
"""The key without which a section means nothing."""


def _check_fleet(filled: Section, profile: Profile) -> None:
    for name, key in _NEEDED.items():
        if name in filled and key not in filled.section(name):
            filled.fail(name, f"{name!r} needs {key!r}; write it, or leave {name!r} out")
    for fault in faults(profile):
        if fault.key:
            filled.section(fault.section).fail(fault.key, fault.text)
        else:
            filled.fail(fault.section, fault.text)


def _check_steps(filled: Section, profile: Profile) -> None:
    steps = filled.section("steps")
    for step in profile.steps:
        section = steps.section(step.name)
        if not NAME.fullmatch(step.name):
            steps.fail(step.name, f"a step is not called {step.name!r}: letters, digits, '.', '_' and '-', up to 64")
        has_command = "command" in section and section.value_of("command") != ()
        if step.package is not None and (has_command or not step.package.wheel):
            need = "has a command; write two steps" if has_command else "needs the wheel that it packages"
            steps.fail(step.name, f"step {step.name!r} {need}")
        elif step.package is None and not has_command:
            steps.fail(step.name, f"step {step.name!r} needs a command")
        when = section.section("when")
        for key in ("equals", "differs"):
            when.section(key).allow(profile.variables, "variable")
    if len(profile.steps) > MAX_STEPS:
        filled.fail("steps", f"more than {MAX_STEPS} steps")
    if not profile.steps and not filled.errors:
        filled.fail("steps", "a profile needs steps; write them, or extend a profile that has some")
