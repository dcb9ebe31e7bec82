"""A requested build, before it has a folder. Unaware of how it is started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from stoker.contract.spec_file import BuildSpec


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What to run, with `environment` added to the environment of all steps; `window` is the width of its schedulers.

    `environ` is the environment to which theirs is added (None: ours), `missing` names secrets that it lacks and an
    earlier build had. `secrets` are names of variables whose values are never written down, whatever they look like.
    None of these belongs into the specification, which is written down.
    """

    spec: BuildSpec
    window: int = 1
    environment: Mapping[str, str] = field(default_factory=dict)
    environ: Mapping[str, str] | None = None
    missing: tuple[str, ...] = ()
    secrets: tuple[str, ...] = ()

    @property
    def base(self) -> Mapping[str, str]:
        """The environment to which the build's own is added."""
        return os.environ if self.environ is None else self.environ

    def noticing(self, *texts: str) -> Self:
        """Return the same with these warnings."""
        return replace(self, spec=self.spec._replace(notices=(*self.spec.notices, *texts)))
