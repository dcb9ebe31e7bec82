"""The device code of one file, module by module, on which the verdict is based. Knows nothing of files or GPUs."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from stoker.model.report import FileReport
from stoker.verify.archs import Arch
from stoker.verify.library_builds import runtime_compiler


class Image(NamedTuple):
    """One piece of device code; sizes in bytes. `kernels` is None if compression hides them.

    A `doubtful` one counts as empty if its container has nothing larger. `toolkit` is the CUDA version that wrote
    machine code, if it is visible.
    """

    kind: str
    arch: Arch
    version: tuple[int, int]
    size: int
    kernels: int | None
    empty: bool
    doubtful: bool = False
    toolkit: tuple[int, int] | None = None


@dataclass(frozen=True, slots=True, order=True)
class Code:
    """One piece of device code in a module: a "cubin", "ptx", or "empty", which is machine code without a kernel.

    `version` is that of the PTX ISA, or of the machine code's format.
    """

    kind: str
    arch: Arch
    version: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ModuleGroup:
    """`count` modules (about one per source file) that offer the same device code."""

    codes: frozenset[Code]
    count: int


@dataclass(frozen=True, slots=True)
class ReadFile(FileReport):
    """A file's report before it is complete, with the code that it is judged by.

    `toolkit` is the newest CUDA version that wrote its machine code, or the PTX that it registers with the CUDA
    runtime, if that is visible.
    """

    groups: tuple[ModuleGroup, ...] = ()
    toolkit: tuple[int, int] | None = None
    refusal: str = ""
    """Why the dynamic linker would refuse the file, in a few words."""
    calls_compiler: bool = True
    """False if its symbols show that it neither calls NVRTC nor has the driver load compiled code."""

    @property
    def compiles_when_it_runs(self) -> bool:
        """Whether it compiles device code itself, with NVRTC. Linking with torch alone does not show that: torch makes
        every extension need libnvrtc.so."""
        return self.calls_compiler and any(map(runtime_compiler, self.needed))

    @property
    def report(self) -> FileReport:
        """The report without what only the judgement needs."""
        return FileReport(**{f.name: getattr(self, f.name) for f in fields(FileReport)})
