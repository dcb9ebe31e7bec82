"""A profile, once read: plain values. The YAML's keys and its JSON schema are made from these classes.

Unaware of files and of who runs the steps.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from stoker.config.profiles.fleet import Dist, Distcc, Icecream, RemoteCache
from stoker.config.profiles.key import key as _key
from stoker.config.profiles.key import mapping as _mapping
from stoker.config.profiles.kinds import MAX_RETRIES, Cores, Deflation, Dotted, Level, Memory, Retries, Size
from stoker.decide.memory.prior_classes import Prior

Cache = Literal["none", "auto", "ccache", "sccache"]
Scheduler = Literal["any", "ninja", "make", "none"]
Compilers = Literal["auto", "cmake", "environment"]


@dataclass(frozen=True, slots=True)
class When:
    """Whether a step is part of this build. All that is given must hold when the build begins."""

    file: tuple[str, ...] = _key("paths in the folder that is built, all of which exist", ())
    no_file: tuple[str, ...] = _key("paths none of which exists", ())
    command: tuple[str, ...] = _key("commands all of which are on PATH", ())
    no_command: tuple[str, ...] = _key("commands none of which is on PATH", ())
    equals: Mapping[str, str] = _mapping("variables that have these values")
    differs: Mapping[str, str] = _mapping("variables that do not have these values")
    heavy: bool | None = _key("whether there are heavy targets")


@dataclass(frozen=True, slots=True)
class PackageStep:
    """A wheel of an earlier step, made into one that installs elsewhere by `stoker package`."""

    wheel: str = _key("its path, or a pattern: the newest match", "")
    mode: Literal["pypi", "bundle"] = _key("pypi: require NVIDIA's packages; bundle: copy their libraries", "pypi")
    output: str = _key("the folder of the new wheel", "wheelhouse")
    plat: str = _key("its platform tag; auto: the lowest true one", "auto")
    deflate: Deflation = _key("0 (stored) to 9", 6)

    @property
    def words(self) -> tuple[str, ...]:
        """The command, as a person would write it."""
        options = ("--mode", self.mode, "-o", self.output, "--plat", self.plat, "--level", str(self.deflate))
        return ("stoker", "package", self.wheel, *options)


@dataclass(frozen=True, slots=True)
class ProfileStep:
    """One command of a build."""

    name: str = field(metadata={"file": False})
    command: tuple[str, ...] = _key("a list of words, or one string that is split as a shell would; no shell runs", ())
    env: Mapping[str, str] = _mapping("environment of this step only")
    cwd: str = _key("where it runs, relative to the folder that is built", ".")
    level: Level | None = _key("the most jobs at once while the level is automatic")
    when: When = _key("conditions; the step is skipped unless all of them hold", When())
    retries: Retries = _key("how often it runs again when compilers were killed for memory", MAX_RETRIES)
    scheduler: Scheduler = _key("the expected scheduler; stoker reports another one", "any")
    package: PackageStep | None = _key("instead of a command: packages a wheel; see packaging.md")

    @property
    def words(self) -> tuple[str, ...]:
        """Its command, or that of what it packages."""
        return self.package.words if self.package is not None else self.command


@dataclass(frozen=True, slots=True)
class BuildContainer:
    """Where the commands of all steps run, each in its own container that is removed when it ends."""

    engine: Literal["podman", "docker"] = _key("the program that runs it", "podman")
    image: str = _key("its image; empty: no container", "")
    memory: Memory | None = _key("its memory limit, which governs the jobs")
    tmpfs: tuple[str, ...] = _key("folders in memory, such as /tmp:size=32g,exec", ())
    gpus: str = _key("which GPUs it sees, such as all", "")
    volumes: tuple[str, ...] = _key("more folders, such as /data:/data:ro; the one that is built is always there", ())
    user: str = _key("the user it runs as, such as 1000:1000", "")
    env: Mapping[str, str] = _mapping("environment inside, in addition to that of the profile and its steps")
    options: tuple[str, ...] = _key("more options for the engine's run, such as --network=none", ())


@dataclass(frozen=True, slots=True)
class Tmp:
    """Where compilers keep temporary files."""

    kind: Literal["none", "tmpfs"] = _key("tmpfs: in memory, which counts as used memory", "none")
    size: Size | None = _key("how much it may hold")


@dataclass(frozen=True, slots=True)
class Checks:
    """Needs of a build. What is left out is not asked for. Sizes are bytes."""

    disk: Size | None = _key("free space in the folder that is built")
    memory: Size | None = _key("the least memory that the build needs")
    cores: Cores | None = _key("number of cores, below which the build takes days")
    commands: tuple[str, ...] = _key("commands that must be on PATH", ())
    headers: tuple[str, ...] = _key("C headers that the compiler must find", ())
    files: tuple[str, ...] = _key("files that must exist in the folder that is built", ())
    python: tuple[str, ...] = _key("modules that ${python} must be able to import", ())
    submodules: bool = _key("whether git submodules must have been fetched", default=False)
    cuda: Dotted | None = _key("the oldest suitable CUDA toolkit")
    cmake: Dotted | None = _key("the oldest suitable CMake")
    gpu_or: tuple[str, ...] = _key("environment variables, one of which must be set on a machine without a GPU", ())


@dataclass(frozen=True, slots=True)
class Profile:
    """How a project is built. `path` is its file; `variables` are their values, with a person's own among them.

    `chosen` names the environment variables whose value depends on what a person has set by hand.
    """

    name: str = field(metadata={"file": False})
    path: Path = field(metadata={"file": False})
    chosen: frozenset[str] = field(default=frozenset(), metadata={"file": False})
    description: str = _key("one line for `stoker profiles list`", "")
    extends: str = _key("a profile that supplies the keys missing here", "")
    variables: Mapping[str, str] = _mapping("names and defaults; --set NAME=VALUE")
    env: Mapping[str, str] = _mapping("environment of all steps; an empty value sets nothing")
    level: Level | None = _key("the most jobs at once while the level is automatic")
    memory: Memory | None = _key("how much memory the jobs may hold together, unless --memory is given")
    heavy: tuple[str, ...] = _key("targets that need much memory, for ${heavy} in a command", ())
    cache: Cache = _key("compiler cache; auto: the first one on PATH", "none")
    cache_size: Size | None = _key("how much the cache may hold, unless a size is already set")
    compilers: Compilers = _key(
        "how the build learns of cache and engine: cmake by CMAKE_*_COMPILER_LAUNCHER, environment by CC and CXX; "
        "auto: environment where the folder has a setup.py or Makefile, and no CMakeLists.txt",
        "auto",
    )
    remote_cache: RemoteCache = _key("a cache shared by several machines; see fleet.md", RemoteCache())
    dist: Dist = _key("sccache-dist's scheduler, which distributes compilations; see fleet.md", Dist())
    distcc: Distcc = _key("machines that compile through distcc; see fleet.md", Distcc())
    icecream: Icecream = _key("machines that compile through icecream; see fleet.md", Icecream())
    device_time: bool = _key("nvcc (CUDA 13 or newer) writes a time trace next to each object", default=False)
    tmp: Tmp = _key("where compilers keep temporary files", Tmp())
    container: BuildContainer = _key("where all commands run; see containers.md", BuildContainer())
    steps: tuple[ProfileStep, ...] = _key("commands by name, in order", ())
    priors: tuple[Prior, ...] = _key("job classes that go before all others; see prediction.md", ())
    verify: tuple[str, ...] = _key("path patterns that are verified after a successful build", ())
    arch_list: str = _key(
        "the environment variable with the GPU architectures, which verified files must contain",
        "TORCH_CUDA_ARCH_LIST",
    )
    checks: Checks = _key("what the build needs", Checks())
