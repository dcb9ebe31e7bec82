"""What a profile says that a build needs before it begins: plain data for whoever looks after it.

Unaware of how any of it is found out.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from stoker.config.profiles.kinds import Cores, Dotted, Size


@dataclass(frozen=True, slots=True)
class Checks:
    """Needs of a build. What is left out is not asked for. Sizes are bytes."""

    disk: Size | None = field(default=None, metadata={"doc": "free space in the folder that is built"})
    memory: Size | None = field(default=None, metadata={"doc": "memory that the build can have at the least"})
    cores: Cores | None = field(default=None, metadata={"doc": "cores, below which the build is a matter of days"})
    commands: tuple[str, ...] = field(default=(), metadata={"doc": "commands that must be on PATH"})
    headers: tuple[str, ...] = field(default=(), metadata={"doc": "C headers that the compiler must find"})
    files: tuple[str, ...] = field(default=(), metadata={"doc": "files that must be in the folder that is built"})
    python: tuple[str, ...] = field(default=(), metadata={"doc": "modules that ${python} must be able to import"})
    submodules: bool = field(default=False, metadata={"doc": "git submodules must have been fetched"})
    cuda: Dotted | None = field(default=None, metadata={"doc": "the oldest CUDA toolkit that will do"})
    cmake: Dotted | None = field(default=None, metadata={"doc": "the oldest CMake that will do"})
    gpu_or: tuple[str, ...] = field(
        default=(), metadata={"doc": "variables of the environment, one of which must be set where there is no GPU"}
    )
