"""What to run, and in which environment: `launch/` writes it once; supervisor, engine and `--resume` read it."""

import os
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

from stoker.contract.strict_json import ContractError, load

NOTHING: Mapping[str, str] = MappingProxyType({})


class StepSpec(NamedTuple):
    """One command of a build: how it is run, and `words`, the command as the user wrote it.

    `environment` is added to the build's; `level` is how many jobs may run while nobody has set a number, `retries` how
    often it runs again after deaths for memory (None: as often as makes sense), `scheduler` what should run its jobs.
    `remedy` marks a step that only repairs what made an earlier build fail.
    """

    name: str
    command: tuple[str, ...]
    cwd: str
    words: tuple[str, ...] = ()
    environment: Mapping[str, str] = NOTHING
    level: int | None = None
    retries: int | None = None
    scheduler: str = "any"
    remedy: bool = False


class RamDiskPlace(NamedTuple):
    """A tmpfs for the temporary files of all steps, and the bytes that they may take; `folder` once it exists."""

    parent: str
    size: int
    folder: str = ""


class DistScheduler(NamedTuple):
    """sccache-dist's scheduler, and the variable of the environment that holds its token."""

    url: str
    token_from: str = ""


class Origin(NamedTuple):
    """The profile that a build comes from: its name and file, the user's values, and the arguments after `--`.

    `memory_by_hand`: the user set the build's memory, so the profile's does not count.
    """

    name: str
    path: str
    settings: Mapping[str, str] = NOTHING
    extra: tuple[str, ...] = ()
    memory_by_hand: bool = False


class PersonsDecision(NamedTuple):
    """Who decided what, and why: the first line of the build's decisions."""

    who: str
    what: str
    why: str


class BuildSpec(NamedTuple):
    """What to run: `steps`, from number `first` (from 1) on, each only if the previous one ended with 0.

    `command` is how the build is run if it has no profile, and `words` what the user wrote. `jobs` is how many may run
    at once (None: automatic), `memory` how many bytes they may hold (None: no limit), `note` a message for the user,
    `notices` warnings.

    `verify` are path patterns to verify after a successful build; what was written since the Unix time `since` counts
    as its own (None: since it began). `arch_list` is the environment variable with the GPU architectures. `alone` are
    outputs that the first step builds first and alone. `decided` is what the user decided before it began. `earlier` is
    the ID of the build that this one resumes. A build that is `apart` neither uses the history nor adds to it.

    `cache` is the compiler cache that was set up, `dist` the scheduler for its server. `cache_log` is the user's own
    log of ccache, empty for the build's, None if this ccache writes none; what it contains before byte
    `cache_log_start` is from earlier builds. `notify` is the notify command. `engine` is the engine's command line,
    without the build's folder. `created` is in Unix seconds.
    """

    name: str
    cwd: str
    command: tuple[str, ...]
    words: tuple[str, ...] = ()
    steps: tuple[StepSpec, ...] = ()
    first: int = 1
    jobs: int | None = None
    memory: int | None = None
    note: str = ""
    notices: tuple[str, ...] = ()
    verify: tuple[str, ...] = ()
    arch_list: str = "TORCH_CUDA_ARCH_LIST"
    since: float | None = None
    profile: Origin | None = None
    alone: tuple[str, ...] = ()
    decided: PersonsDecision | None = None
    earlier: str = ""
    apart: bool = False
    ramdisk: RamDiskPlace | None = None
    cache: str = ""
    dist: DistScheduler | None = None
    cache_log: str | None = ""
    cache_log_start: int = 0
    notify: str = ""
    engine: tuple[str, ...] = ()
    created: float = 0.0

    def all_steps(self) -> tuple[StepSpec, ...]:
        """Return the steps; for a build without steps its one command."""
        return self.steps or (StepSpec(self.name, self.command, self.cwd, self.words),)

    def step(self, number: int) -> StepSpec:
        """Return a step by its number, from 1. Raises ContractError if there is none."""
        if not 1 <= number <= len(self.steps):
            raise ContractError(f"spec.json has no step {number}")
        return self.steps[number - 1]


class SavedEnvironment(NamedTuple):
    """`environment.json`: the environment that the build was started in, and the names of the variables that look like
    secrets."""

    kept: Mapping[str, str]
    left_out: tuple[str, ...]


def load_spec(folder: str | os.PathLike[str]) -> BuildSpec:
    """Read a build's specification and check that it can be run. Raises OSError and ContractError."""
    spec = load(BuildSpec, os.path.join(folder, "spec.json"))
    if not 1 <= spec.first <= len(spec.steps):
        raise ContractError("spec.json: first is the number of no step")
    if not spec.engine or not all(step.command for step in spec.steps):
        raise ContractError("spec.json: a command is empty")
    return spec
