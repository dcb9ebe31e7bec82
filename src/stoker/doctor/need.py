"""What a build needs from the machine: plain values that come from a profile, a source tree, or defaults.

Unaware of where they come from and of what the machine has.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

MIB = 2**20
GIB = 2**30

Want = Literal["must", "may", "no"]
"""must: without it the build fails; may: it is worth a warning; no: it is not looked at."""

Knobs = Literal["pytorch", "extension", ""]
"""Whose environment variables count: PyTorch's own build, `torch.utils.cpp_extension`, or none of these."""

Version = tuple[int, ...]


COMPILERS = ("CUDACXX", "CUDA_NVCC_EXECUTABLE")
"""Variables that name nvcc itself: CMake's own, and the one that PyTorch makes of it."""

ROOTS = ("CUDA_HOME", "CUDA_PATH", "CUDAToolkit_ROOT")
"""Variables that name a toolkit: the first two are torch.utils.cpp_extension's and FindCUDA's, the last CMake's."""

FLAGS = ("NVCC_PREPEND_FLAGS", "CUDAFLAGS", "CMAKE_CUDA_FLAGS", "TORCH_NVCC_FLAGS", "NVCC_APPEND_FLAGS")
"""Variables with options for nvcc: its own two, CMake's, and those that PyTorch reads. The last word counts."""


@dataclass(frozen=True, slots=True)
class HeaviestJob:
    """The heaviest job that is known of a build: its peak in bytes, and whether it was measured or is a guess."""

    name: str
    bytes: int
    measured: bool


@dataclass(frozen=True, slots=True)
class Cost:
    """What one GPU architecture costs: CPU seconds for `files` CUDA files, and where that is from.

    `rest` are the CUDA files of which nothing is known. `cores` may be used, 0: not known. `sizes` are the bytes of
    machine code by architecture ("9.0") in `library`, which the last build made; empty without one.
    """

    files: int = 0
    seconds: float = 0.0
    origin: str = ""
    rest: int = 0
    cores: float = 0.0
    library: str = ""
    sizes: tuple[tuple[str, int], ...] = ()


@dataclass(frozen=True, slots=True)
class Need:
    """What a build wants. Sizes are in bytes, folders absolute; the defaults are for a build nothing is known of."""

    what: str = "a build"
    source: str = "/"
    build: str = "/"
    temporary: str = "/tmp"  # noqa: S108  (looked at, never written to)
    disk: int = 0
    """Free space that a fresh build fills in the build folder; 0: not known."""
    temporary_space: int = 512 * MIB
    """Free space for the compilers' intermediate files; less is worth a warning."""
    in_memory: bool = False
    """Those files are meant to be in memory."""
    inodes: int = 0
    """Files that it makes; 0: not known."""
    largest_file: int = 0
    """The largest file that it writes; 0: not known."""
    job: HeaviestJob | None = None
    memory: int = 0
    """Memory that the build wants to itself; 0: not known."""
    cores: int = 0
    """Cores, below which it takes days; 0: not known."""
    cuda: Want = "may"
    compilers: Want = "must"
    scheduler: Want = "must"
    """Ninja or make."""
    folder: Want = "must"
    """Whether it is known to build in `build`."""
    commands: tuple[str, ...] = ()
    """Commands without which it fails."""
    interpreter: str = ""
    """The Python that builds, as a command; empty: that of the active environment."""
    headers: tuple[str, ...] = ()
    """Headers without which it fails, as `#include <...>` names them."""
    files: tuple[str, ...] = ()
    """Paths in the source tree without which it fails."""
    modules: tuple[str, ...] = ()
    """Python modules without which it fails."""
    gpu_or: tuple[str, ...] = ()
    """Variables of the environment, one of which must be set where there is no GPU to ask."""
    python_headers: Want = "may"
    submodules: Want = "may"
    cmake_tool: Want = "may"
    libraries: tuple[str, ...] = ()
    """CUDA libraries that are worth a word: cudnn, nccl."""
    knobs: Knobs = ""
    arch_variable: str = "TORCH_CUDA_ARCH_LIST"
    """Where the build reads GPU architectures from."""
    arch_choice: tuple[str, ...] = ()
    arch_default: str = ""
    """The words that it knows there, and what it takes without any; empty where these are PyTorch's."""
    cost: Cost = Cost()
    dist: str = ""
    """sccache-dist's scheduler, which has other machines compile; empty for none but that of sccache's own file."""
    secrets: tuple[str, ...] = ()
    """Variables that hold secrets without which others refuse to work for it."""
    container: tuple[str, ...] = ()
    """The command that runs `true` in the container in which it is built; empty where it is built in none."""
    gcc: Version = ()
    clang: Version = ()
    cmake: Version = ()
    python: Version = ()
    cuda_version: Version = ()
    """Oldest versions that will do; empty is any."""
    cmake_policy: Version = ()
    """The oldest CMake that the project itself says it suits: CMake 4 refuses projects older than 3.5."""


PYTORCH = Need(
    what="PyTorch",
    disk=10 * GIB,
    temporary_space=4 * GIB,
    inodes=200_000,
    largest_file=256 * MIB,
    python_headers="must",
    submodules="must",
    libraries=("cudnn", "nccl"),
    knobs="pytorch",
    gcc=(9, 3),
    job=HeaviestJob("a large C++ file of torch_python", 3 * GIB // 2, measured=False),
)
"""PyTorch's own tree.

Disk: "at least 10 GB" of its README. Temporary space, inodes and the largest file (libtorch_cpu.so) are estimates on
the low side. gcc: 9.3 as its CMakeLists.txt demanded while it was C++17. `recognise` reads the newer one, CUDA's and
Python's from the tree: they have changed with every few releases.
"""

FLASH_ATTENTION = HeaviestJob(
    "flash_bwd_hdim256 of flash-attention, for each GPU architecture", 6742 * MIB, measured=False
)
"""Measured with nvcc 13.0 for sm_80 (profiles/priors.yaml, flash-bwd-hdim256); a guess for any other build."""
