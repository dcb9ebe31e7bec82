"""Facts found on the machine: frozen values, so that tests can falsify each one. Pure.

Unaware of how they were found and of what they mean for a build.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal

from stoker.doctor.need import Need, Version
from stoker.sense.machine.cgroup import MemoryLimit
from stoker.verify.archs import Arch
from stoker.verify.gpu.devices import Device

Family = Literal["gcc", "clang", "other"]


@dataclass(frozen=True, slots=True)
class Surroundings:
    """What to examine: the need, the environment that the build would have, and seconds for each command."""

    need: Need
    env: Mapping[str, str]
    patience: float
    manager: str = ""
    """The system's package manager: apt-get, dnf, zypper, pacman, apk or none."""


@dataclass(frozen=True, slots=True)
class Program:
    """A program: where it is, its version, and what went wrong when it was asked for that.

    `late` is True if it only ran out of time, which can happen to a sound program on a busy machine.
    """

    name: str
    path: str = ""
    version: Version = ()
    problem: str = ""
    late: bool = False

    @property
    def found(self) -> bool:
        """Whether there is such a file."""
        return bool(self.path)


@dataclass(frozen=True, slots=True)
class Compiler:
    """A compiler; `complaint` is what it said when it could not read a small source, empty if it could.

    `asked` is the variable that names it, empty where it was found on PATH. `headers` are those of the need that it
    finds.
    """

    command: Program
    family: Family = "other"
    asked: str = ""
    complaint: str = ""
    headers: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True)
class Python:
    """The Python that would build: its headers' folder, its packages' folder, and whether Python.h is there."""

    command: Program
    include: str = ""
    packages: str = ""
    has_header: bool = False
    modules: tuple[str, ...] = ()
    """Those of the need that it can import."""


@dataclass(frozen=True, slots=True)
class Tools:
    """Compilers and build tools. Of the need: `commands` and their paths, empty if missing; Python `modules`."""

    c: Compiler
    cxx: Compiler
    cmake: Program
    ninja: Program
    make: Program
    git: Program
    python: Python
    commands: Mapping[str, str]
    modules: Mapping[str, bool]
    manager: str = ""
    beside: Mapping[str, str] = field(default_factory=dict)
    """Of the commands and CMake, those beside the Python that builds, off PATH: a build's backend may find them."""


@dataclass(frozen=True, slots=True)
class ToolkitPlace:
    """A place where CUDA is looked for: `origin` says who names it, `nvcc` is empty if there is none.

    `version` is empty where nvcc does not print it.
    """

    origin: str
    root: str
    nvcc: str = ""
    version: Version = ()


@dataclass(frozen=True, slots=True)
class HostLimits:
    """The newest compilers that a toolkit takes, by major version; `origin` is its header's path or empty (a table)."""

    gcc: int | None = None
    clang: int | None = None
    origin: str = ""


@dataclass(frozen=True, slots=True)
class Toolkit:
    """The CUDA toolkit that a build would use. `archs` are what its nvcc compiles for; `header` is cuda.h's version."""

    nvcc: Program
    origin: str
    root: str = ""
    archs: tuple[Arch, ...] = ()
    codes: tuple[Arch, ...] = ()
    """Those that its ptxas makes machine code for, with the ones for one GPU ("a") and for a family ("f")."""
    limits: HostLimits = HostLimits()
    header: Version = ()
    beside: Version = ()
    """The same for the folder that its nvcc, as it was found, seems to be in: where PyTorch looks for the toolkit."""


@dataclass(frozen=True, slots=True)
class Library:
    """A CUDA library by its header. `reachable` is False where CMake would need a hint to find it."""

    name: str
    version: str
    folder: str
    reachable: bool


@dataclass(frozen=True, slots=True)
class Cuda:
    """Everything about CUDA. `host` is the compiler that nvcc would call; no toolkit is None."""

    toolkit: Toolkit | None
    places: tuple[ToolkitPlace, ...]
    host: Compiler | None = None
    libraries: tuple[Library, ...] = ()
    devices: tuple[Device, ...] = ()
    device_note: str = ""
    packaged: str = ""
    """The root of a toolkit in the Python environment's packages, which CMake does not look at by itself."""


@dataclass(frozen=True, slots=True)
class Memory:
    """Bytes, and cores that may be used. `limit` is the tightest control group's, if that is tighter than the RAM.

    `killed_as_one` is the control group of which the kernel kills all processes when it kills one for lack of memory.
    """

    total: int
    available: int
    swap_total: int
    swap_free: int
    cores: float
    limit: MemoryLimit | None = None
    killed_as_one: str = ""


@dataclass(frozen=True, slots=True)
class ContainerTrial:
    """What came of starting a container of `image`: what the engine said where there was a problem.

    `path` is empty where the engine is not there. `limits` are the most open files and processes that this user may
    have, -1 for any number.
    """

    engine: str
    path: str
    image: str
    said: str = ""
    problem: str = ""
    limits: tuple[int, int] = (-1, -1)
    seconds: float = 0.0
    late: bool = False


@dataclass(frozen=True, slots=True)
class Volume:
    """The file system of a folder, asked for or its nearest parent that exists. Bytes; `inodes` None is without end."""

    folder: str
    exists: bool
    kind: str
    size: int
    free: int
    inodes: int | None
    writable: bool
    used_before: bool = False
    """Whether a build has begun here: then part of what it needs is there already."""


@dataclass(frozen=True, slots=True)
class Limits:
    """Soft and hard limits by name, as getrlimit(2) has them; None is unlimited. `processes` run for this user."""

    soft: Mapping[str, int | None]
    hard: Mapping[str, int | None]
    processes: int
    privileged: bool
    """Root: the limit on processes does not count for it (setrlimit(2), CAP_SYS_RESOURCE)."""


@dataclass(frozen=True, slots=True)
class FutureDates:
    """Files that are dated in the future: how many of how many, and the one furthest ahead (in seconds)."""

    looked_at: int = 0
    future: int = 0
    worst: str = ""
    ahead: float = 0.0
    input_ahead: float = 0.0
    """The same of the files that decide whether the build files are regenerated (CMakeLists.txt, *.cmake)."""
    input_name: str = ""
    top_ahead: float = 0.0
    """The same of the CMakeLists.txt that every build of the tree reads."""
    complete: bool = True


@dataclass(frozen=True, slots=True)
class SourceTree:
    """The source tree and what an earlier build left beside it."""

    submodules: int
    missing: tuple[str, ...]
    """Those of the tree itself first."""
    nested_missing: int
    """How many of them are submodules of submodules, which a build may do without."""
    is_checkout: bool
    dated: FutureDates
    absent: tuple[str, ...]
    """Files of the need that are not there."""
    cache: Mapping[str, str]
    """Entries of CMakeCache.txt in the build folder; empty without one."""
    gone: tuple[str, ...] = ()
    """Compilers and launchers, by path, that are in this cache and no longer there."""


@dataclass(frozen=True, slots=True)
class CompilerCache:
    """ccache or sccache. Sizes in bytes, None if unknown; `hits` and `misses` since its figures began."""

    command: Program
    size: int | None = None
    size_limit: int | None = None
    hits: int = 0
    misses: int = 0
    note: str = ""


@dataclass(frozen=True, slots=True)
class Environment:
    """The environment of the build, what of it points to a program that is there, and the memory it may fill."""

    values: Mapping[str, str]
    launchers: Mapping[str, bool]
    memory: int
    configures: bool = True
    """Whether CMake will read these variables: it reads them once, where there is no cache of it yet."""
    tests: bool = False
    """Whether this tree builds its C++ tests unless switched off: PyTorch's setup.py does, its CMake files do not."""
    rocm: bool = False
    """Whether ROCm is installed."""
    throttles: Mapping[str, bool] = field(default_factory=dict)
    """PyTorch's own limits on attention kernels that are set, and whether this tree reads them."""
