"""What a verification found: the object that `stoker verify --json` prints, and a build's journal keeps within bounds.

Unaware of binaries and of how they were judged. Sizes are bytes. Keys of the JSON may be added, never renamed.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
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

GOOD, WILL_NOT_RUN, CANNOT_BE_READ = 0, 1, 2
"""Exit statuses of `stoker verify`."""

MAX_FILES = 200
MAX_PROBLEMS = 200
MAX_DEVICES = 64
MAX_ARCHS = 100
"""Architectures of one file, or asked for: CUDA 13 knows about 30 names."""

MAX_TEXT = 2000
"""Characters of a sentence."""

MAX_PATH = 4096


@dataclass(frozen=True, slots=True)
class Problem:
    """Something that a person should know, and what to do about it: an error will not run, a warning may not, info
    explains.

    `unreadable` marks a file that could not be judged at all.
    """

    severity: Severity
    file: str
    what: str
    remedy: str = ""
    unreadable: bool = False


@dataclass(frozen=True, slots=True)
class HeldArch:
    """What a file holds for one architecture (sm_90a, or compute_90 for PTX).

    `kernels` is None where compression hides them. `empty` of the `count` pieces hold no kernel at all: stubs that nvcc
    links into every library. Of PTX, `ptx` is the newest version of its language, and `driver` the first NVIDIA driver
    for Linux that compiles it.
    """

    kind: Literal["cubin", "ptx"]
    arch: str
    count: int
    bytes: int
    kernels: int | None = None
    empty: int = 0
    ptx: str = ""
    driver: str = ""


@dataclass(frozen=True, slots=True)
class FileReport:
    """One binary: the device code in it, what the dynamic linker needs for it, and how it fares on each device."""

    path: str
    size: int
    machine: str = ""
    archs: tuple[HeldArch, ...] = ()
    other: Mapping[str, int] = field(default_factory=dict)
    """Device code of other kinds, such as "lto", in pieces."""
    needed: tuple[str, ...] = ()
    verdicts: tuple[FileVerdict, ...] = ()
    """In the order of the report's devices."""
    problems: tuple[Problem, ...] = ()
    modules: int = 0
    """How many modules hold a kernel: one for each source file, about."""
    loads: bool = True
    """False when this machine's dynamic linker would refuse it."""

    @property
    def has_code(self) -> bool:
        """True when there is a kernel for some GPU in it."""
        return self.modules > 0

    @property
    def code(self) -> tuple[HeldArch, ...]:
        """The architectures for which there is a kernel."""
        return tuple(a for a in self.archs if a.count > a.empty)

    @property
    def device_bytes(self) -> int:
        """Bytes of device code for architectures with a kernel: nvcc links a stub for another into every file."""
        return sum(a.bytes for a in self.code)


@dataclass(frozen=True, slots=True)
class RequestedArch:
    """One architecture: asked for and present, asked for and missing, or present and not asked for."""

    arch: str
    state: RequestState
    bytes: int = 0


@dataclass(frozen=True, slots=True)
class DeviceReport:
    """One GPU and whether what was built will run on it. Empty or None is unknown."""

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
    """One verification; `ok` unless something will not run or cannot be read.

    `problems` are those of the whole and of each file, gravest first. `left_out` counts the files and problems beyond
    the bounds.
    """

    ok: bool
    verdict: Conclusion = ""
    about: str = ""
    """What it is instead, where there is no code for NVIDIA's GPUs to judge."""
    condition: str = ""
    """What has to hold for the verdict, to be read after an "if": requirements of unknown content bring a library."""
    scope: str = ""
    """What of it was judged, where that is a trivial part."""
    paths: tuple[str, ...] = ()
    files: tuple[FileReport, ...] = ()
    requested: tuple[RequestedArch, ...] = ()
    devices: tuple[DeviceReport, ...] = ()
    problems: tuple[Problem, ...] = ()
    torch: TorchFacts | None = None
    runs: tuple[KernelRun, ...] = ()
    seconds: float = 0.0
    left_out: int = 0

    def exit_status(self, *, strict: bool = False) -> int:
        """0 all will run or nothing is to be judged, 1 something will not, 2 something cannot be read.

        What runs in part gives 0, and 1 when `strict`.
        """
        if self.verdict == "unread":
            return CANNOT_BE_READ
        return WILL_NOT_RUN if self.verdict == "no" or (strict and self.verdict == "part") else GOOD


def bounded(report: Report) -> Report:
    """What a build's journal keeps of a report: the first of each list, short texts, and no details of the host."""
    beyond = max(0, len(report.files) - MAX_FILES) + max(0, len(report.problems) - MAX_PROBLEMS)
    return Report(
        report.ok,
        report.verdict,
        report.about[:MAX_TEXT],
        report.condition[:MAX_TEXT],
        report.scope[:MAX_TEXT],
        files=tuple(_file(f) for f in report.files[:MAX_FILES]),
        requested=tuple(replace(r, arch=r.arch[:MAX_TEXT]) for r in report.requested[:MAX_ARCHS]),
        devices=tuple(_device(d) for d in report.devices[:MAX_DEVICES]),
        problems=tuple(_problem(p) for p in report.problems[:MAX_PROBLEMS]),
        torch=None if report.torch is None else _torch(report.torch),
        seconds=report.seconds,
        left_out=report.left_out + beyond,
    )


def _file(file: FileReport) -> FileReport:
    archs = tuple(replace(a, arch=a.arch[:MAX_TEXT]) for a in file.archs[:MAX_ARCHS])
    return FileReport(
        file.path[:MAX_PATH], file.size, archs=archs, verdicts=file.verdicts[:MAX_DEVICES], loads=file.loads
    )


def _device(device: DeviceReport) -> DeviceReport:
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


def _torch(torch: TorchFacts) -> TorchFacts:
    return TorchFacts(
        torch.version[:MAX_TEXT],
        torch.cuda[:MAX_TEXT],
        tuple(a[:MAX_TEXT] for a in torch.arch_list[:MAX_ARCHS]),
        error=torch.error[:MAX_TEXT],
    )
