"""What a profile is, once read: plain values. The YAML's keys and its JSON schema are made from these classes.

Unaware of files and of who runs the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

from stoker.config.profiles.checks import Checks
from stoker.config.profiles.kinds import MAX_RETRIES, Level, Memory, Retries, Size
from stoker.decide.memory.prior_classes import Prior

Cache = Literal["none", "auto", "ccache", "sccache"]
Scheduler = Literal["any", "ninja", "make", "none"]


def _doc(text: str, **more: Any) -> dict[str, Any]:
    """Return what the schema says of a key."""
    return {"doc": text, **more}


@dataclass(frozen=True, slots=True)
class When:
    """Whether a step is part of this build. All that is given must hold when the build begins."""

    file: tuple[str, ...] = field(default=(), metadata=_doc("paths in the folder that is built, all of which exist"))
    no_file: tuple[str, ...] = field(default=(), metadata=_doc("paths none of which exists"))
    command: tuple[str, ...] = field(default=(), metadata=_doc("commands all of which are on PATH"))
    no_command: tuple[str, ...] = field(default=(), metadata=_doc("commands none of which is on PATH"))
    equals: Mapping[str, str] = field(default_factory=dict, metadata=_doc("variables that have these values"))
    differs: Mapping[str, str] = field(default_factory=dict, metadata=_doc("variables that do not have these values"))
    heavy: bool | None = field(default=None, metadata=_doc("whether there are heavy targets"))


@dataclass(frozen=True, slots=True)
class ProfileStep:
    """One command of a build."""

    name: str = field(metadata={"file": False})
    command: tuple[str, ...] = field(
        default=(), metadata=_doc("words, or one text that is cut into words as a shell would; no shell runs")
    )
    env: Mapping[str, str] = field(default_factory=dict, metadata=_doc("environment of this step alone"))
    cwd: str = field(default=".", metadata=_doc("where it runs, from the folder that is built"))
    level: Level | None = field(
        default=None, metadata=_doc("at most so many jobs at once while the level is automatic")
    )
    when: When = field(default=When(), metadata=_doc("left out of the build unless this holds"))
    retries: Retries = field(
        default=MAX_RETRIES, metadata=_doc("how often it is run again when compilers were killed for memory")
    )
    scheduler: Scheduler = field(default="any", metadata=_doc("what is expected to run the jobs; another is reported"))


@dataclass(frozen=True, slots=True)
class Tmp:
    """Where compilers keep temporary files."""

    kind: Literal["none", "tmpfs"] = field(default="none", metadata=_doc("tmpfs: in memory, which counts as used"))
    size: Size | None = field(default=None, metadata=_doc("the most that it may hold"))


@dataclass(frozen=True, slots=True)
class Profile:
    """How a project is built. `path` is its file; `variables` are their values, with a person's own among them.

    `chosen` names the environment variables whose value depends on what a person has set by hand.
    """

    name: str = field(metadata={"file": False})
    path: Path = field(metadata={"file": False})
    chosen: frozenset[str] = field(default=frozenset(), metadata={"file": False})
    description: str = field(default="", metadata=_doc("one line for `stoker profiles list`"))
    extends: str = field(default="", metadata=_doc("a profile whose keys count where this one has none"))
    variables: Mapping[str, str] = field(default_factory=dict, metadata=_doc("names and defaults; --set NAME=VALUE"))
    env: Mapping[str, str] = field(
        default_factory=dict, metadata=_doc("environment of all steps; an empty value sets nothing")
    )
    level: Level | None = field(
        default=None, metadata=_doc("at most so many jobs at once while the level is automatic")
    )
    memory: Memory | None = field(
        default=None, metadata=_doc("what the jobs may hold together, unless --memory says else")
    )
    heavy: tuple[str, ...] = field(default=(), metadata=_doc("targets that need much memory: ${heavy} in a command"))
    cache: Cache = field(default="none", metadata=_doc("compiler cache for CMake projects; auto: the one on PATH"))
    cache_size: Size | None = field(
        default=None, metadata=_doc("how much it may hold where nobody has chosen a size for it")
    )
    tmp: Tmp = field(default=Tmp(), metadata=_doc("where compilers keep temporary files"))
    steps: tuple[ProfileStep, ...] = field(default=(), metadata=_doc("commands in their order, by name"))
    priors: tuple[Prior, ...] = field(
        default=(), metadata=_doc("classes of jobs, before all others; see prediction.md")
    )
    verify: tuple[str, ...] = field(default=(), metadata=_doc("patterns of paths that are verified after a good build"))
    arch_list: str = field(
        default="TORCH_CUDA_ARCH_LIST",
        metadata=_doc("the variable of the environment that says for which GPUs; what is verified must hold them"),
    )
    checks: Checks = field(default=Checks(), metadata=_doc("what the build needs"))
