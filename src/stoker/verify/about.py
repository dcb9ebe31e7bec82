"""Describes in a few words what was verified: its kind if it has no code for NVIDIA's GPUs, and which part was judged
if that is small. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from stoker.model.units import format_bytes
from stoker.verify.binary.device_code import ReadFile
from stoker.verify.binary.other_code import SYCL
from stoker.verify.library_builds import only_linked_with
from stoker.verify.verify_units import VerifyUnit

_MAX_NAMES = 3


def about(units: Sequence[VerifyUnit]) -> str:
    """Return what it is instead: "pure Python", "ROCm code for gfx90a", "SYCL code", "CPU code for x86_64 in 24
    binaries"."""
    files = [f for u in units for f in u.files]
    if not files:
        return (_unknown(units) or "pure Python, without any binary") if units else ""
    targets = sorted({name for f in files for name in f.other if name.startswith("gfx")})
    if targets or any("ROCm" in f.other for f in files):
        return f"ROCm code for AMD's GPUs: {', '.join(targets) or 'its targets are compressed and not read'}"
    if any(SYCL in f.other for f in files):
        return f"SYCL code for Intel's GPUs in {_listed([f for f in files if SYCL in f.other])}"
    machines = sorted({f.machine for f in files if f.machine and f.machine != "cuda"})
    named = f" for {', '.join(machines)}" if machines else ""
    return f"CPU code{named} in {_listed([f for f in files if not _to_link_with(f)])}{_beside(files)}"


def _unknown(units: Sequence[VerifyUnit]) -> str:
    """Return what may hold binaries for all that is known; "" if there is nothing like that."""
    opaque = sorted((o for u in units for o in u.opaque), key=lambda o: -o[1])
    if not opaque:
        return ""
    named = [f"{name} ({format_bytes(size)})" for name, size in opaque[:_MAX_NAMES]]
    more = f" and {len(opaque) - _MAX_NAMES} more" if len(opaque) > _MAX_NAMES else ""
    be = "is" if len(opaque) == 1 else "are"
    return f"no binary that can be read; {', '.join(named)}{more} {be} in a format that is not known"


def scope(units: Sequence[VerifyUnit]) -> str:
    """Return what was judged if that is a trivial part: "2 modules of device code (11 KiB) in 2 of 9 binaries were
    judged"; "" if device code is in every binary or much of them, or there is none."""
    files = [f for u in units for f in u.files]
    coded = [f for u in units for f in u.judged]
    share = sum(f.device_bytes for f in coded), sum(f.size for f in files)
    if not coded or len(coded) == len(files) or share[0] * _TRIVIAL >= share[1]:
        return ""
    modules = sum(f.modules for f in coded)
    judged = (
        f"{modules} module{'s' * (modules != 1)} of device code ({format_bytes(share[0])}) in {len(coded)} of "
        f"{len(files)} {'binaries' if len(files) != 1 else 'binary'} {'were' if modules != 1 else 'was'} judged"
    )
    return judged + (f", {_NOT_JUDGED}" if any(f.compiles_when_it_runs for f in files) else "")


_TRIVIAL = 100
"""If device code is a smaller part of the binaries than one in this many, it is not what a package is about: in
pennylane-lightning-gpu it is 11 KB of 4 MB; in torch, cuBLAS and xformers a third or more."""

_NOT_JUDGED = "what it compiles at run time (NVRTC) was not"


def _beside(files: Sequence[ReadFile]) -> str:
    """Return what is not judged although it concerns GPUs."""
    only = [f for f in files if _to_link_with(f)]
    texts = [f"device code only to link with, in {_listed(only)}"] if only else []
    texts += [_NOT_JUDGED.replace("was not", "is not judged")] * any(f.compiles_when_it_runs for f in files)
    return "".join(f"; {text}" for text in texts)


def _to_link_with(file: ReadFile) -> bool:
    return file.has_code and only_linked_with(file.path)


def _listed(files: Iterable[ReadFile]) -> str:
    names = [f.path.rsplit("::", 1)[-1].rsplit("/", 1)[-1] for f in files]
    return ", ".join(names) if len(names) <= _MAX_NAMES else f"{len(names)} binaries"
