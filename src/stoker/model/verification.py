"""What a verification found, as values: the object that `stoker verify --json` prints, as far as it is kept.

Unaware of binaries and of how they were judged. Sizes are bytes. Everything in it is bounded by `bounded`, because it
becomes a line of the journal and a part of the state.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

Severity = Literal["info", "warning", "error"]
Verdict = Literal["native", "ptx-jit", "part", "no", "none"]
"""How everything fares on one device: "part" when some modules cannot start there, "none" when there is no device code
to judge."""

Conclusion = Literal["runs", "part", "no", "unread", "none", ""]
"""The verdict on all of it: "unread" when something cannot be read and nothing is known not to run, "none" when there
was nothing to judge; "" in journals that were written before there was one."""

FileVerdict = Literal["native", "ptx-jit", "partly", "no", "other", ""]
"""How one file fares on one device: "partly" when some modules have no code for it, "other" when it is for other GPUs
alone, "" without device code."""

RequestState = Literal["present", "missing", "extra"]

MAX_FILES = 200
MAX_PROBLEMS = 200
MAX_DEVICES = 64
MAX_ARCHS = 100
"""Architectures of one file, or asked for: CUDA 13 knows about 30 names."""

MAX_TEXT = 2000
"""Characters of a sentence."""

MAX_PATH = 4096


@dataclass(frozen=True, slots=True)
class HeldArch:
    """What a file holds for one architecture (sm_90a, or compute_90 for PTX); `empty` pieces have no kernel."""

    kind: Literal["cubin", "ptx"]
    arch: str
    count: int
    bytes: int
    kernels: int | None = None
    empty: int = 0


@dataclass(frozen=True, slots=True)
class VerifiedFile:
    """One binary; `verdicts` in the order of the devices."""

    path: str
    size: int
    archs: tuple[HeldArch, ...] = ()
    verdicts: tuple[FileVerdict, ...] = ()

    @property
    def code(self) -> tuple[HeldArch, ...]:
        """The architectures for which there is a kernel."""
        return tuple(a for a in self.archs if a.count > a.empty)


@dataclass(frozen=True, slots=True)
class RequestedArch:
    """An architecture that was asked for and is present or missing, or that nobody asked for."""

    arch: str
    state: RequestState
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class JudgedDevice:
    """One GPU and whether what was built will run on it. Empty or None is unknown."""

    name: str
    capability: str
    verdict: Verdict
    why: str
    memory: int | None = None
    driver: str = ""
    cuda: str = ""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something a person should know, and what to do about it."""

    severity: Severity
    file: str
    what: str
    remedy: str = ""


@dataclass(frozen=True, slots=True)
class TorchView:
    """What torch says of itself; `error` when it could not be asked."""

    version: str = ""
    cuda: str = ""
    arch_list: tuple[str, ...] = ()
    error: str = ""


@dataclass(frozen=True, slots=True)
class Verification:
    """One verification; `ok` unless something will not run or cannot be read. `left_out`: files and problems beyond the
    bounds."""

    ok: bool
    verdict: Conclusion = ""
    files: tuple[VerifiedFile, ...] = ()
    requested: tuple[RequestedArch, ...] = ()
    devices: tuple[JudgedDevice, ...] = ()
    problems: tuple[Problem, ...] = ()
    torch: TorchView | None = None
    seconds: float = 0.0
    left_out: int = 0


def bounded(found: Verification) -> Verification:
    """The same within the bounds; what comes first stays."""
    beyond = max(0, len(found.files) - MAX_FILES) + max(0, len(found.problems) - MAX_PROBLEMS)
    return replace(
        found,
        files=tuple(_file(f) for f in found.files[:MAX_FILES]),
        requested=tuple(replace(r, arch=r.arch[:MAX_TEXT]) for r in found.requested[:MAX_ARCHS]),
        devices=tuple(_device(d) for d in found.devices[:MAX_DEVICES]),
        problems=tuple(_problem(p) for p in found.problems[:MAX_PROBLEMS]),
        torch=None if found.torch is None else _torch(found.torch),
        left_out=found.left_out + beyond,
    )


def _file(file: VerifiedFile) -> VerifiedFile:
    return replace(
        file,
        path=file.path[:MAX_PATH],
        archs=tuple(replace(a, arch=a.arch[:MAX_TEXT]) for a in file.archs[:MAX_ARCHS]),
        verdicts=file.verdicts[:MAX_DEVICES],
    )


def _device(device: JudgedDevice) -> JudgedDevice:
    return replace(
        device,
        name=device.name[:MAX_TEXT],
        capability=device.capability[:MAX_TEXT],
        why=device.why[:MAX_TEXT],
        driver=device.driver[:MAX_TEXT],
        cuda=device.cuda[:MAX_TEXT],
    )


def _problem(problem: Problem) -> Problem:
    return Problem(problem.severity, problem.file[:MAX_PATH], problem.what[:MAX_TEXT], problem.remedy[:MAX_TEXT])


def _torch(torch: TorchView) -> TorchView:
    return TorchView(
        torch.version[:MAX_TEXT],
        torch.cuda[:MAX_TEXT],
        tuple(a[:MAX_TEXT] for a in torch.arch_list[:MAX_ARCHS]),
        torch.error[:MAX_TEXT],
    )
