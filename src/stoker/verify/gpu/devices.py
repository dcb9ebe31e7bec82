"""A GPU to judge for, by capability or name. Knows nothing of binaries or of this machine's GPUs."""

from __future__ import annotations

from dataclasses import dataclass

from stoker.verify.archs import Arch, ArchError, parse_arch
from stoker.verify.gpu.gpu_names import capability_of, hint

CAPABILITIES = frozenset({
    (3, 0), (3, 2), (3, 5), (3, 7), (5, 0), (5, 2), (5, 3), (6, 0), (6, 1), (6, 2), (7, 0), (7, 2), (7, 5), (8, 0),
    (8, 6), (8, 7), (8, 8), (8, 9), (9, 0), (10, 0), (10, 1), (10, 3), (10, 7), (11, 0), (12, 0), (12, 1),
})  # fmt: skip
"""All that exist, from Kepler to Rubin (`nvcc --list-gpu-arch` of CUDA 10 to 13, and NVIDIA's pages as in
gpu_names)."""

LAST_MAJOR = 20
"""A capability later than those may belong to a future GPU; beyond this it must be a typing error."""


@dataclass(frozen=True, slots=True)
class Device:
    """One GPU. Memory in bytes; `cuda` is the newest CUDA version that its driver supports; None means unknown."""

    name: str
    arch: Arch
    memory: int | None = None
    driver: str = ""
    cuda: tuple[int, int] | None = None


def device_of(text: str) -> Device:
    """Return a device by capability (9.0, sm_90) or name (A100, "GeForce RTX 4090"); raises ArchError."""
    try:
        arch = parse_arch(text)
    except ArchError:
        return _by_name(text)
    if arch.variant:
        raise ArchError(f"a device has a plain compute capability such as 9.0, not {text!r}")
    if arch.capability in CAPABILITIES or (max(CAPABILITIES) < arch.capability < (LAST_MAJOR + 1, 0)):
        return Device(f"compute capability {arch.number}", arch)
    if text.strip().isdigit() and capability_of(text):  # 980 is a GeForce
        return _by_name(text)
    raise ArchError(f"no GPU has compute capability {arch.number}; give one that exists, as in --device 9.0, or a name")


def _by_name(text: str) -> Device:
    if capability := capability_of(text):
        return Device(text.strip(), parse_arch(capability))
    raise ArchError(f"unknown device {text!r}; {hint(text) or 'give its compute capability, as in --device 9.0'}")
