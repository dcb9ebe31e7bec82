"""A build that somebody wants, before it has a folder. Unaware of how it is started."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Self

from stoker.contract.spec_file import Origin, PersonsDecision, RamDiskPlace, StepSpec


@dataclass(frozen=True, slots=True)
class BuildRequest:
    """What to run: `command`, with `environment` added, or `steps` where there are any. More in `BuildSpec`.

    `window` is how wide schedulers are made. `environ` is the environment to which theirs is added (None: ours),
    `missing` names secrets that it lacks and an earlier build had.
    """

    command: tuple[str, ...]
    cwd: str
    name: str
    words: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    jobs: int | None = None
    memory: int | None = None
    window: int = 1
    note: str = ""
    notices: tuple[str, ...] = ()
    steps: tuple[StepSpec, ...] = ()
    first: int = 1
    verify: tuple[str, ...] = ()
    arch_list: str = "TORCH_CUDA_ARCH_LIST"
    since: float | None = None
    profile: Origin | None = None
    environ: Mapping[str, str] | None = None
    missing: tuple[str, ...] = ()
    alone: tuple[str, ...] = ()
    decided: PersonsDecision | None = None
    ramdisk: RamDiskPlace | None = None
    cache: str = ""
    earlier: str = ""

    @property
    def base(self) -> Mapping[str, str]:
        """The environment to which the build's own is added."""
        return os.environ if self.environ is None else self.environ

    def all_steps(self) -> tuple[StepSpec, ...]:
        """Return the steps; of a build without any its one command."""
        return self.steps or (StepSpec(self.name, self.command, self.cwd, self.words),)

    def noticing(self, *texts: str) -> Self:
        """Return the same with these warnings."""
        return replace(self, notices=(*self.notices, *texts))
