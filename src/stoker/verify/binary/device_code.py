"""The device code of one file, module by module: what the verdict on it rests on. Unaware of files and devices."""

from __future__ import annotations

from dataclasses import dataclass, fields
from typing import NamedTuple

from stoker.model.report import FileReport
from stoker.verify.archs import Arch
from stoker.verify.library_builds import runtime_compiler


class Image(NamedTuple):
    """One piece of device code; sizes in bytes. `kernels` is None where compression hides them.

    A `doubtful` one is empty if nothing larger is in its container. `toolkit` is the CUDA version that wrote machine
    code, as far as it shows.
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
    """One piece of device code in a module: a "cubin", "ptx", or "empty", machine code without a kernel.

    `version` is the PTX ISA's, or that of the machine code's format.
    """

    kind: str
    arch: Arch
    version: tuple[int, int]


@dataclass(frozen=True, slots=True)
class ModuleGroup:
    """`count` modules (one for each source file, about) that hold the same choice of device code."""

    codes: frozenset[Code]
    count: int


@dataclass(frozen=True, slots=True)
class ReadFile(FileReport):
    """A file's report in the making, with the code that it is judged by.

    `toolkit` is the newest CUDA version that wrote machine code in it, or PTX beside what its runtime registers, as
    far as it shows.
    """

    groups: tuple[ModuleGroup, ...] = ()
    toolkit: tuple[int, int] | None = None
    refusal: str = ""
    """Why the dynamic linker would refuse it, in a few words."""
    calls_compiler: bool = True
    """False where its symbols show that it neither calls NVRTC nor has the driver load what was compiled."""

    @property
    def compiles_when_it_runs(self) -> bool:
        """Whether it compiles device code itself, by NVRTC. Torch's link line alone is no sign of that: it has every
        extension need libnvrtc.so."""
        return self.calls_compiler and any(map(runtime_compiler, self.needed))

    @property
    def report(self) -> FileReport:
        """What is kept once it has been judged."""
        return FileReport(**{f.name: getattr(self, f.name) for f in fields(FileReport)})
