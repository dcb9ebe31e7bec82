"""What was given, in a few words, where there is no code for NVIDIA's GPUs in it. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stoker.verify.binary.device_code import ReadFile
from stoker.verify.verify_units import VerifyUnit

_MAX_NAMES = 3


def about(units: Sequence[VerifyUnit]) -> str:
    """What it is instead: "pure Python", "ROCm code for gfx90a", "CPU code for x86_64 in 24 binaries"."""
    files = [f for u in units for f in u.files]
    if not files:
        return "pure Python, without any binary" if units else ""
    targets = sorted({name for f in files for name in f.other if name.startswith("gfx")})
    if targets or any("ROCm" in f.other for f in files):
        return f"ROCm code for AMD's GPUs: {', '.join(targets) or 'compressed'}"
    machines = sorted({f.machine for f in files if f.machine and f.machine != "cuda"})
    named = f" for {', '.join(machines)}" if machines else ""
    return f"CPU code{named} in {_listed(files)}"


def _listed(files: Iterable[ReadFile]) -> str:
    names = [f.path.rsplit("::", 1)[-1].rsplit("/", 1)[-1] for f in files]
    return ", ".join(names) if len(names) <= _MAX_NAMES else f"{len(names)} binaries"
