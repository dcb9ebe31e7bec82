"""GPU architectures: their names, what TORCH_CUDA_ARCH_LIST means, and which code runs on which GPU.

The rules are NVIDIA's (CUDA Programming Guide, "Compute capabilities" and "Binary compatibility", "PTX compatibility",
"Family-specific targets"; the Tegra exception as in PyTorch's `torch/cuda/__init__.py`). Knows nothing of files or of
this machine's GPUs.
"""

from __future__ import annotations

import difflib
import re
from dataclasses import dataclass
from typing import Literal

Kind = Literal["cubin", "ptx"]

_NAME = re.compile(r"(?:sm_|compute_|lto_)?(\d{1,3})(?:\.(\d))?([af]?)", re.ASCII)
_ITEM = re.compile(r"(\d{1,2}\.\d[af]?)(?:\((\d{1,2}\.\d[af]?)\))?", re.ASCII)

_NUMBER = re.compile(r"(?<![\w.])(\d{1,2})(\d)(?=[af]?(?:[;\s+]|$))", re.ASCII)

TORCH_NAMES: dict[str, tuple[str, str]] = {
    "Kepler+Tesla": ("3.7", ""),
    "Kepler": ("3.5", "3.5"),
    "Maxwell+Tegra": ("5.3", ""),
    "Maxwell": ("5.0 5.2", "5.2"),
    "Pascal": ("6.0 6.1", "6.1"),
    "Volta+Tegra": ("7.2", ""),
    "Volta": ("7.0", "7.0"),
    "Turing": ("7.5", "7.5"),
    "Ampere+Tegra": ("8.7", ""),
    "Ampere": ("8.0 8.6", "8.0 8.6"),
    "Ada": ("8.9", "8.9"),
    "Hopper": ("9.0", "9.0"),
    "Blackwell+Tegra": ("10.1", ""),
    "Blackwell": ("10.0 12.0", "10.0 12.0"),
    "Rubin": ("10.7", "10.7"),
}
"""Names that PyTorch's build accepts: their binaries, and their PTX if `+PTX` follows.

From `select_compute_arch.cmake` of PyTorch 2.15. (For extensions, `torch.utils.cpp_extension` reads the same names
slightly differently: it always adds the PTX.)
"""

_UNKNOWABLE = ("Auto", "Common", "All", "native")

_TEGRA = frozenset({(3, 2), (5, 3), (6, 2), (7, 2), (8, 7), (10, 1), (11, 0)})
"""Capabilities of NVIDIA's embedded chips: their binaries do not run on other GPUs, nor the other way round."""

_THOR = frozenset({(10, 1), (11, 0)})
"""One chip under two numbers: 10.1 became 11.0 with CUDA 13."""

_PTX_TOOLKITS = {
    (6, 0): (9, 0), (6, 1): (9, 1), (6, 2): (9, 2), (6, 3): (10, 0), (6, 4): (10, 1), (6, 5): (10, 2),
    (8, 6): (12, 7), (8, 7): (12, 8), (8, 8): (12, 9),
}  # fmt: skip
"""PTX ISA versions and the CUDA version that introduced them, if they do not follow the regular pattern (PTX ISA,
release notes)."""


class ArchError(ValueError):
    """A name that is not an architecture; the message names it and the remedy."""


@dataclass(frozen=True, slots=True, order=True)
class Arch:
    """A compute capability, and whether the code is only for it ("a"), for its family ("f") or for any ("")."""

    major: int
    minor: int
    variant: str = ""

    @property
    def number(self) -> str:
        """As in architecture lists: 9.0a."""
        return f"{self.major}.{self.minor}{self.variant}"

    @property
    def sm(self) -> str:
        """The name of machine code: sm_90a."""
        return f"sm_{self.major}{self.minor}{self.variant}"

    @property
    def compute(self) -> str:
        """The name of PTX: compute_90a."""
        return f"compute_{self.major}{self.minor}{self.variant}"

    @property
    def capability(self) -> tuple[int, int]:
        """Major and minor number: (9, 0)."""
        return self.major, self.minor


@dataclass(frozen=True, slots=True, order=True)
class Wanted:
    """One item that an architecture list requests."""

    kind: Kind
    arch: Arch

    @property
    def name(self) -> str:
        """sm_90a or compute_90a."""
        return self.arch.sm if self.kind == "cubin" else self.arch.compute


def arch_of(number: int, variant: str = "") -> Arch:
    """Return the architecture for a number as in binaries: 90 is 9.0, 120 is 12.0."""
    return Arch(number // 10, number % 10, variant)


def parse_arch(text: str) -> Arch:
    """Parse 9.0, 9.0a, 90a, sm_90a or compute_90a; raises ArchError."""
    match = _NAME.fullmatch(text.strip())
    if match is None:
        raise ArchError(f"{text!r} is not a compute capability; write it as 9.0, 9.0a or sm_90")
    if match[2] is not None:
        return Arch(int(match[1]), int(match[2]), match[3])
    return arch_of(int(match[1]), match[3])


def arch_named(name: str) -> Arch:
    """Return the architecture for a name made by `Arch.sm` or `Arch.compute`, even if a file claims an unknown
    number."""
    digits = name.partition("_")[2].rstrip("af")
    return arch_of(int(digits), name[len(name) - 1 :] if name.endswith(("a", "f")) else "")


def parse_arch_list(text: str) -> tuple[Wanted, ...]:
    """Return what a TORCH_CUDA_ARCH_LIST requests, in its order, each once; raises ArchError."""
    wanted: dict[Wanted, None] = {}
    for item in re.split(r"[ \t;]+", text.strip(" \t;")):
        wanted.update(dict.fromkeys(_item(item)))
    return tuple(wanted)


def with_dots(text: str) -> str:
    """Convert an architecture list from the form of CMake and flash-attention (90;120) to PyTorch's (9.0;12.0)."""
    return _NUMBER.sub(lambda found: f"{found[1]}.{found[2]}", text)


def _item(item: str) -> list[Wanted]:
    base = item.removesuffix("+PTX")
    binaries, ptx = TORCH_NAMES.get(base, ("", ""))
    if not binaries:
        match = _ITEM.fullmatch(base)
        if match is None:
            raise ArchError(_unknown(item))
        binaries, ptx = match[1], " ".join(part for part in match.groups() if part)
    found = [Wanted("cubin", parse_arch(b)) for b in binaries.split()]
    if base != item:
        found += [Wanted("ptx", parse_arch(p)) for p in (ptx or binaries).split()]
    return found


def _unknown(item: str) -> str:
    if not item:
        return "the list of architectures is empty; write it as 8.0;9.0+PTX"
    if item in _UNKNOWABLE:
        return f"{item!r} means something else on every machine; write the capabilities, as in 8.0;9.0+PTX"
    if "," in item:
        return f"{item!r}: separate architectures by semicolons or spaces, as in 8.0;9.0+PTX"
    near = difflib.get_close_matches(item.removesuffix("+PTX"), TORCH_NAMES, 1)
    hint = f"did you mean {near[0]!r}?" if near else "write it as 8.0, 9.0a or 9.0+PTX"
    return f"{item!r} is not an architecture; {hint}"


def cubin_runs(code: Arch, device: Arch) -> bool:
    """Whether machine code for `code` runs on `device` as it is.

    Plain code: same major and no higher minor, and not between embedded chips and others. "a": exactly that capability.
    "f": that capability and higher minors of its family, which so far is the same major.
    """
    if code.capability in _THOR and device.capability in _THOR:
        return True
    if code.variant == "a" or code.capability in _TEGRA or device.capability in _TEGRA:
        return code.capability == device.capability
    return code.major == device.major and code.minor <= device.minor


def ptx_runs(code: Arch, device: Arch) -> bool:
    """Whether the driver can compile PTX for `code` on `device`: for any later capability, unless "a" or "f" restricts
    it."""
    if code.variant:
        return cubin_runs(code, device)
    return code.capability <= device.capability


def toolkit_of_ptx(version: tuple[int, int]) -> tuple[int, int]:
    """Return the CUDA version whose driver first reads this PTX ISA version: 7.8 is CUDA 11.8, 9.0 is CUDA 13.0."""
    major, minor = version
    return _PTX_TOOLKITS.get(version, (major + 4, minor))
