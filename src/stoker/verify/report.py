"""What verification found, as plain values, and the JSON that scripts rely on. Unaware of how it was found.

Sizes are bytes. Keys of the JSON may be added, never renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

from stoker.verify.archs import Arch

Severity = Literal["error", "warning", "info"]
Verdict = Literal["native", "ptx-jit", "part", "no", "none"]
"""How everything fares on one device: "part" when some modules cannot start there, "none" when there is no device code
to judge."""

Conclusion = Literal["runs", "part", "no", "unread", "none"]
"""The verdict on all of it: "unread" when something cannot be read and nothing is known not to run, "none" when there
was nothing to judge."""

FileVerdict = Literal["native", "ptx-jit", "partly", "no", "other", ""]
"""How one file fares on one device: "partly" when some modules have no code for it, "other" when it is for other GPUs
alone, "" without device code."""

RequestState = Literal["present", "missing", "extra"]

GOOD, WILL_NOT_RUN, CANNOT_BE_READ = 0, 1, 2
"""Exit statuses of `stoker verify`."""


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a person should know: an error will not run, a warning may not, info explains.

    `unreadable` marks a file that could not be judged at all.
    """

    severity: Severity
    file: str
    what: str
    remedy: str = ""
    unreadable: bool = False


@dataclass(frozen=True, slots=True)
class ArchUse:
    """What a file holds for one architecture. `kernels` is None where compression hides them; `empty` of the count
    hold no kernel at all (stubs that nvcc links into every library)."""

    kind: str
    arch: Arch
    count: int
    bytes: int
    kernels: int | None
    empty: int

    @property
    def name(self) -> str:
        """sm_90a, or compute_90a for PTX."""
        return self.arch.sm if self.kind == "cubin" else self.arch.compute


@dataclass(frozen=True, slots=True, order=True)
class Code:
    """One piece of device code in a module: a "cubin", "ptx", or "empty", machine code without a kernel.

    `version` is the PTX ISA's, or that of the machine code's format.
    """

    kind: str
    arch: Arch
    version: tuple[int, int]


@dataclass(frozen=True, slots=True)
class Modules:
    """`count` modules (one for each source file, about) that hold the same choice of device code."""

    codes: frozenset[Code]
    count: int


@dataclass(frozen=True, slots=True)
class FileReport:
    """One binary: the device code in it, and what the dynamic linker needs for it."""

    path: str
    size: int
    machine: str = ""
    archs: tuple[ArchUse, ...] = ()
    modules: tuple[Modules, ...] = ()
    other: Mapping[str, int] = field(default_factory=dict)
    needed: tuple[str, ...] = ()
    problems: tuple[Problem, ...] = ()
    verdicts: tuple[FileVerdict, ...] = ()
    """In the order of the report's devices."""

    @property
    def has_code(self) -> bool:
        """True when there is a kernel for some GPU in it."""
        return bool(self.modules)

    @property
    def device_bytes(self) -> int:
        """Bytes of device code."""
        return sum(a.bytes for a in self.archs)


@dataclass(frozen=True, slots=True)
class Requested:
    """One architecture: asked for and found, asked for and not found, or found and not asked for."""

    arch: str
    state: RequestState
    bytes: int


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """One GPU and whether what was built will run on it. Memory in bytes; empty or None is unknown."""

    name: str
    capability: str
    verdict: Verdict
    why: str
    memory: int | None = None
    driver: str = ""
    cuda: str = ""


@dataclass(frozen=True, slots=True)
class TorchFacts:
    """What torch says of itself. `error` when it could not be asked; the rest is then empty."""

    version: str = ""
    cuda: str = ""
    arch_list: tuple[str, ...] = ()
    capabilities: tuple[str, ...] = ()
    cxx11_abi: bool | None = None
    cudnn: str = ""
    nccl: str = ""
    path: str = ""
    error: str = ""


@dataclass(frozen=True, slots=True)
class KernelRun:
    """A small matrix product on one device. `error` is empty when the result was right."""

    device: str
    capability: str
    how: str
    seconds: float
    error: str


@dataclass(frozen=True, slots=True)
class Report:
    """Everything that one verification found."""

    paths: tuple[str, ...]
    files: tuple[FileReport, ...]
    requested: tuple[Requested, ...] = ()
    devices: tuple[DeviceReport, ...] = ()
    problems: tuple[Problem, ...] = ()
    torch: TorchFacts | None = None
    runs: tuple[KernelRun, ...] = ()
    seconds: float = 0.0

    @property
    def all_problems(self) -> tuple[Problem, ...]:
        """Those of single files and those of the whole, gravest first."""
        both = [p for f in self.files for p in f.problems] + list(self.problems)
        return tuple(sorted(both, key=lambda p: ("error", "warning", "info").index(p.severity)))

    @property
    def verdict(self) -> Conclusion:
        """The one verdict from which headline, JSON and exit status follow."""
        errors = [p for p in self.all_problems if p.severity == "error"]
        found = {d.verdict for d in self.devices}
        missing = any(r.state == "missing" for r in self.requested)
        if "no" in found or missing or any(not p.unreadable for p in errors):
            return "no"
        if errors:
            return "unread"
        if "part" in found:
            return "part"
        return "runs" if found & {"native", "ptx-jit"} else "none"

    def exit_status(self, *, strict: bool = False) -> int:
        """0 all will run or nothing is to be judged, 1 something will not, 2 something cannot be read.

        What runs in part gives 0, and 1 when `strict`.
        """
        status = {"runs": GOOD, "none": GOOD, "part": GOOD, "no": WILL_NOT_RUN, "unread": CANNOT_BE_READ}
        return WILL_NOT_RUN if strict and self.verdict == "part" else status[self.verdict]

    @property
    def ok(self) -> bool:
        """True when the exit status is 0."""
        return self.exit_status() == GOOD


def to_json(report: Report) -> dict[str, Any]:
    """The object that `stoker verify --json` prints."""
    return {
        "ok": report.ok,
        "verdict": report.verdict,
        "paths": list(report.paths),
        "files": [_file(f) for f in report.files],
        "requested": [{"arch": r.arch, "state": r.state, "bytes": r.bytes} for r in report.requested],
        "devices": [_device(d) for d in report.devices],
        "problems": [_problem(p) for p in report.all_problems],
        "torch": None if report.torch is None else _torch(report.torch),
        "runs": [
            {"device": r.device, "capability": r.capability, "how": r.how, "seconds": r.seconds, "error": r.error}
            for r in report.runs
        ],
        "seconds": round(report.seconds, 3),
    }


def _file(file: FileReport) -> dict[str, Any]:
    return {
        "path": file.path,
        "size": file.size,
        "machine": file.machine,
        "archs": [
            {"kind": a.kind, "arch": a.name, "count": a.count, "bytes": a.bytes, "kernels": a.kernels, "empty": a.empty}
            for a in file.archs
        ],
        "other": dict(file.other),
        "needed": list(file.needed),
        "verdicts": list(file.verdicts),
        "problems": [_problem(p) for p in file.problems],
    }


def _problem(problem: Problem) -> dict[str, str]:
    return {"severity": problem.severity, "file": problem.file, "what": problem.what, "remedy": problem.remedy}


def _device(device: DeviceReport) -> dict[str, Any]:
    return {
        "name": device.name,
        "capability": device.capability,
        "verdict": device.verdict,
        "why": device.why,
        "memory": device.memory,
        "driver": device.driver,
        "cuda": device.cuda,
    }


def _torch(facts: TorchFacts) -> dict[str, Any]:
    return {
        "version": facts.version,
        "cuda": facts.cuda,
        "arch_list": list(facts.arch_list),
        "capabilities": list(facts.capabilities),
        "cxx11_abi": facts.cxx11_abi,
        "cudnn": facts.cudnn,
        "nccl": facts.nccl,
        "path": facts.path,
        "error": facts.error,
    }
