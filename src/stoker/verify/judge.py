"""Judges device code against GPUs and against the requested architectures. Pure: knows nothing of files or NVML."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Literal, NamedTuple

from stoker.model.report import (
    Conclusion,
    DeviceReport,
    FileVerdict,
    Problem,
    RequestedArch,
    Severity,
    Verdict,
)
from stoker.verify.archs import Arch, Wanted, arch_named, cubin_runs, ptx_runs, toolkit_of_ptx
from stoker.verify.binary.device_code import Code, ModuleGroup, ReadFile
from stoker.verify.gpu.devices import Device
from stoker.verify.gpu.driver_versions import KNOWS_GPU, first_driver
from stoker.verify.library_builds import library, only_linked_with, vendors

Fit = Literal["native", "jit", "old-driver", "other-gpu", "no-kernel", "no-code"]
"""How a module fits a device. "other-gpu": it is only for other GPUs (all of its code is "a" or "f" code), such as
PyTorch's Hopper kernels, which the library does not start elsewhere. "no-kernel": it has machine code for this device,
but no kernel in it."""

DRIVERS = {11: "450.80.02", 12: "525.60.13", 13: "580.65.06"}
"""The oldest Linux driver that runs programs of a CUDA major version (CUDA release notes, minor version
compatibility)."""

_MAX_PROBLEMS = 10
_MOST_LIBRARIES = 100
"""More files than this are kernels, and the name of one says nothing."""
_ORDER: tuple[Verdict, ...] = ("no", "part", "ptx-jit", "native", "none")
"""Worst first."""

REFUSAL_REMEDY = "install it on the machine that it is for, or build it for this machine and its Python"

_CUDA_LIBRARY = re.compile(
    r"lib(?:cudart|cublas|cublasLt|nvrtc)(?:-[0-9a-f]+)?\.so\.(\d+)[\d.]*"
    r"|(?:cudart|cublas|cublasLt|nvrtc)64_(1\d)\d?(?:_0)?\.dll"
)
"""Libraries with CUDA's own version; auditwheel puts a hash into the names of those that it bundles. Under Windows CUDA
11.0 has cudart64_110.dll, CUDA 12 cudart64_12.dll and nvrtc64_120_0.dll."""


class JudgedFiles(NamedTuple):
    """Files that belong together, on one machine. `refusal` says why none of them runs there, whatever its GPU;
    `partial` that some of them do not load there; `fatal` that the others are then useless."""

    title: str
    files: tuple[ReadFile, ...]
    refusal: str = ""
    partial: bool = False
    fatal: bool = False


@dataclass(frozen=True, slots=True)
class ModuleTally:
    """How many modules of a file fit a device, and how."""

    native: int = 0
    jit: int = 0
    old_driver: int = 0
    other_gpu: int = 0
    no_code: int = 0

    def __add__(self, more: ModuleTally) -> ModuleTally:
        return ModuleTally(
            self.native + more.native,
            self.jit + more.jit,
            self.old_driver + more.old_driver,
            self.other_gpu + more.other_gpu,
            self.no_code + more.no_code,
        )

    @property
    def runs(self) -> int:
        """The number of modules that run."""
        return self.native + self.jit

    @property
    def fails(self) -> int:
        """The number of modules that should run and do not."""
        return self.old_driver + self.no_code


def fit(codes: Iterable[Code], device: Device) -> Fit:
    """Return how the driver would start a module that offers this code."""
    codes = tuple(codes)
    if any(c.kind == "cubin" and cubin_runs(c.arch, device.arch) for c in codes):
        return "native"
    ptx = [c for c in codes if c.kind == "ptx" and ptx_runs(c.arch, device.arch)]
    if any(device.cuda is None or toolkit_of_ptx(c.version) <= device.cuda for c in ptx):
        return "jit"
    if ptx:
        return "old-driver"
    if any(c.kind == "empty" and cubin_runs(c.arch, device.arch) for c in codes):
        return "no-kernel"
    return "other-gpu" if all(c.arch.variant for c in codes) else "no-code"


def conclude(
    problems: Sequence[Problem],
    requested: Sequence[RequestedArch],
    devices: Sequence[DeviceReport],
    *,
    partial: bool = False,
) -> Conclusion:
    """Return the verdict on which headline, JSON and exit status are based."""
    errors = [p for p in problems if p.severity == "error"]
    verdicts = {d.verdict for d in devices}
    missing = any(r.state == "missing" for r in requested)
    if "no" in verdicts or missing or any(not p.unreadable for p in errors):
        return "no"
    if errors:
        return "unread"
    if "part" in verdicts or partial:
        return "part"
    return "runs" if verdicts & {"native", "ptx-jit"} else "none"


def tally(file: ReadFile, device: Device) -> ModuleTally:
    """Return how a file's modules fit a device."""
    found: Counter[Fit] = Counter()
    fits = [fit(group.codes, device) for group in file.groups]
    chosen = _chosen_by_gpu(file)
    own = [
        held for group, how in zip(file.groups, fits, strict=True)
        if device.arch.capability in (held := _capabilities(group)) or how == "jit"
    ][:_MOST_KINDS]  # fmt: skip
    for group, how in zip(file.groups, fits, strict=True):
        held = _capabilities(group)
        # One for other GPUs, beside one for this GPU: lmdeploy has modules for 9.0 and modules for all but 9.0.
        by_design = chosen and (len(held) == 1 or any(map(held.isdisjoint, own)))
        found["other-gpu" if how == "no-code" and by_design else how] += group.count
    return ModuleTally(found["native"], found["jit"], found["old-driver"], found["other-gpu"], found["no-code"])


_MOST_KINDS = 64
"""Kinds of modules that are compared with each other, the most frequent ones: vLLM's libraries have up to 17."""


def _capabilities(group: ModuleGroup) -> frozenset[tuple[int, int]]:
    return frozenset(c.arch.capability for c in group.codes)


def _chosen_by_gpu(file: ReadFile) -> bool:
    """Whether a file has modules for different GPUs and chooses among them. A module for which the build forgot a GPU
    does not look like that: it shares its other GPUs with the rest.

    The file does if its modules are for three single capabilities, as in cuBLAS, or if two kinds have no GPU in common
    and a third shares one with each: libtorch_cuda.so of torch 2.15 has 29 for 9.0 alone, 29 for 10.0 and others for
    both; vLLM's kernels for experts have some for 7.5, some for 8.9 and 12.0, and others for all.
    """
    sets = {_capabilities(group) for group in file.groups[:_MOST_KINDS]}
    if sum(len(s) == 1 for s in sets) > 2:
        return True
    apart = [(a, b) for a, b in combinations(sets, 2) if a.isdisjoint(b)]
    return any(a & c and b & c for a, b in apart for c in sets)


def judge_file(file: ReadFile, device: Device) -> FileVerdict:
    """Return the verdict on one file by itself, on a device."""
    found = tally(file, device)
    if not found.runs:
        return "no" if found.fails else "other" if found.other_gpu else ""
    if not file.loads:
        return "no"
    if found.fails and not vendors(file.path):
        return "partly"
    return "native" if found.native >= found.jit else "ptx-jit"


def judge_units(units: Sequence[JudgedFiles], device: Device) -> tuple[DeviceReport, list[Problem]]:
    """Return the verdict on one device for everything: that of the worst unit, or, if all units run, the one for all
    files together."""
    judged = [judge_unit(unit, device) for unit in units]
    problems = [p for _, more in judged for p in more]
    reports = [report for report, _ in judged]
    worst = min(reports, key=lambda r: _ORDER.index(r.verdict), default=None)
    if worst is None or worst.verdict in ("native", "ptx-jit", "none"):
        worst, _ = judge_device([f for unit in units for f in unit.files if f.loads], device)
    return worst, problems


def judge_device(files: Sequence[ReadFile], device: Device) -> tuple[DeviceReport, list[Problem]]:
    """Return the verdict on one device for files that belong together and load."""
    return judge_unit(JudgedFiles("", tuple(files)), device)


def judge_unit(unit: JudgedFiles, device: Device) -> tuple[DeviceReport, list[Problem]]:
    """Return the verdict on one device for files that belong together, and a problem for each that does not run there,
    or only in part."""
    if unit.refusal:
        return _refused(unit, device)
    alone = all(only_linked_with(f.path) for f in unit.files)
    coded = [f for f in unit.files if f.has_code and (alone or not only_linked_with(f.path))]
    if not coded:
        return _report(device, *_without_code(unit)), []
    spare = frozenset(library(f.path) for f in unit.files if f.loads and not f.has_code)
    outcomes = _FileOutcomes(coded, device, spare)
    problems = outcomes.problems()
    driver = _driver_problem(unit.files, device)
    problems += [driver] if driver is not None else []
    related = [_related_gpu_problem(f, outcomes.tallies[f.path], device) for f in coded if f.loads]
    siblings = [problem for problem in related if problem is not None]
    problems += siblings
    verdict, why = outcomes.verdict()
    if unit.partial and verdict != "no" and not outcomes.lost:
        why = f"{_unloaded(unit.files)}; {why}"
    if (siblings or unit.partial) and verdict != "no":
        verdict = "part"
    if driver is not None and verdict != "no":
        verdict, why = "no", driver.what
    elif unit.fatal and verdict != "no":
        verdict, why = "no", _unloaded(unit.files)
    return _report(device, verdict, why), problems


def _refused(unit: JudgedFiles, device: Device) -> tuple[DeviceReport, list[Problem]]:
    """Return the verdict on what does not run on the machine, and whether it would run on this device elsewhere."""
    elsewhere, _ = judge_unit(JudgedFiles(unit.title, tuple(replace(f, loads=True) for f in unit.files)), device)
    why = f"{unit.refusal}; {elsewhere.why}" if elsewhere.verdict == "no" else unit.refusal
    return _report(device, "no", why), [Problem("error", unit.title, unit.refusal, REFUSAL_REMEDY)]


def _report(device: Device, verdict: Verdict, why: str) -> DeviceReport:
    return DeviceReport(
        device.name, device.arch.number, verdict, why, device.memory, device.driver, _dotted(device.cuda)
    )


class _FileOutcomes:
    """How each file of a unit runs on a device.

    `own` are the files that decide: NVIDIA's libraries choose for themselves, so they count only if there is nothing
    else. Of these, `lost` do not run at all, and no other build of the same library does; `partial` run in part.
    `whole` says that nothing runs; `elsewhere` are libraries that compile what is missing.
    """

    def __init__(self, coded: Sequence[ReadFile], device: Device, spare: frozenset[str]) -> None:
        self.device = device
        self.tallies = {f.path: tally(f, device) for f in coded}
        self.own = [f for f in coded if not vendors(f.path)] or list(coded)
        served = {library(f.path) for f in coded if self._runs(f)}
        failing = [f for f in coded if not self._runs(f) and (self.tallies[f.path].fails or not f.loads)]
        self.lost = {f.path: f for f in failing if library(f.path) not in served}
        self.elsewhere = [f for f in self.own if self._for_other_gpus_alone(f)]
        self.whole = not any(map(self._runs, self.own)) and not self.elsewhere
        lost = [*self.lost.values()]
        self.spared = self.whole and bool(lost) and all(not f.loads and library(f.path) in spare for f in lost)
        self.partial = [f for f in self.own if self._runs(f) and self.tallies[f.path].fails and not vendors(f.path)]

    def _for_other_gpus_alone(self, file: ReadFile) -> bool:
        """Whether a library has faster kernels for some GPUs, and compiles its kernels for all others at run time."""
        found = self.tallies[file.path]
        return file.loads and not found.fails and found.other_gpu > 0 and file.compiles_when_it_runs

    def _runs(self, file: ReadFile) -> bool:
        return file.loads and self.tallies[file.path].runs > 0

    def problems(self) -> list[Problem]:
        """Return a problem for each lost or partial file; why a file does not load is reported elsewhere."""
        found = [_problem(f, self.tallies[f.path], self.device, fatal=self.whole, lost=f.path in self.lost)
                 for f in (*self.lost.values(), *self.partial) if f.loads]  # fmt: skip
        return _bounded(found, len(self.own) if self.whole else len(found), self.device)

    def verdict(self) -> tuple[Verdict, str]:
        """Return the verdict and its reason."""
        total = sum((self.tallies[f.path] for f in self.own if self._runs(f)), ModuleTally())
        if self.spared:
            return "part", f"{_unloaded(self.lost.values())}; a build without device code can"
        if self.whole:
            return "no", self._why_not()
        if not total.runs:
            what = f"{_names(self.elsewhere)} holds code only for other GPUs ({_held(self.elsewhere)})"
            return "part", f"{what}; what it compiles at run time (NVRTC) is not judged"
        whole: Verdict = "native" if total.native >= total.jit else "ptx-jit"
        parts = [f"{_names([*self.lost.values()])} will not run, and what uses it fails"] if self.lost else []
        if self.partial:
            share = f"{total.fails} of {total.runs + total.fails}"
            parts.append(f"{share} modules {_why_they_fail(total, self.device)} and fail when they are used")
        parts += [f"machine code for {total.native} of {total.runs + total.fails} modules"] if total.native else []
        if total.jit:
            parts.append(f"{total.jit} compiled from PTX by the driver at the first start, which is slow once")
        if total.other_gpu:
            parts.append(f"{total.other_gpu} are only for other GPUs")
        return "part" if self.lost or self.partial else whole, "; ".join(parts)

    def _why_not(self) -> str:
        unloaded = [f for f in self.own if not f.loads]
        if any(self.tallies[f.path].runs for f in unloaded):
            return _unloaded(unloaded)
        worst = [f for f in self.own if f.path in self.lost] or self.own
        total = sum((self.tallies[f.path] for f in worst), ModuleTally())
        if total.old_driver and not total.no_code:
            return f"the driver (CUDA {_dotted(self.device.cuda)}) is too old for the PTX: {_names(worst)}"
        return f"no code for {self.device.arch.sm}: {_names(self.own)}, with {_held(self.own)}"


def _why_they_fail(found: ModuleTally, device: Device) -> str:
    if found.old_driver and not found.no_code:
        return f"have only PTX that the driver (CUDA {_dotted(device.cuda)}) is too old for"
    return f"have no code for {device.arch.sm}"


def _bounded(problems: list[Problem], count: int, device: Device) -> list[Problem]:
    """Return the first problems, and how many more of the `count` files have one: a package may contain thousands of
    single cubins."""
    if len(problems) <= _MAX_PROBLEMS:
        return problems
    more = Problem("info", "", f"{count - _MAX_PROBLEMS} more files have no code for {device.name}")
    return [*problems[:_MAX_PROBLEMS], more]


def _without_code(unit: JudgedFiles) -> tuple[Verdict, str]:
    if any("lto" in f.other for f in unit.files):
        return "no", "there is only LTO code, which runs after a device link (nvcc -dlto)"
    unloaded = [f for f in unit.files if not f.loads]
    if any(p.severity == "error" and not p.unreadable for f in unloaded for p in f.problems):
        return "no", _unloaded(unloaded)
    if unit.partial:
        return "part", f"{_unloaded(unloaded)}; the rest can"
    return "none", "no code for NVIDIA's GPUs was found in it"


def _related_gpu_problem(file: ReadFile, found: ModuleTally, device: Device) -> Problem | None:
    """Return a problem if most of a file was built only for a related GPU, such as 12.0a for a 12.1: likely a
    mistake."""
    if not found.runs or vendors(file.path):
        return None
    near = [m for m in file.groups if fit(m.codes, device) == "other-gpu"
            and any(c.arch.major == device.arch.major for c in m.codes)]  # fmt: skip
    count = sum(m.count for m in near)
    if count < found.runs:
        return None
    archs = sorted({c.arch for m in near for c in m.codes if c.arch.major == device.arch.major})
    family = f"{device.arch.major}.{min(archs[0].minor, device.arch.minor)}f"
    asked = f"{family} (its family) or {device.arch.number}a"
    remedy = _built_for(file, asked, asked)
    return Problem(
        "warning", file.path,
        f"{count} of {count + found.runs + found.fails} modules are only for {', '.join(a.sm for a in archs)} and "
        f"cannot start on {_called(device)}", remedy,
    )  # fmt: skip


def _called(device: Device) -> str:
    return device.name if device.arch.number in device.name else f"{device.name} ({device.arch.number})"


def _problem(file: ReadFile, found: ModuleTally, device: Device, *, fatal: bool, lost: bool) -> Problem:
    name = _called(device)
    severity: Severity = "error" if fatal else "warning"
    if found.old_driver and not found.no_code:
        needed = max(toolkit_of_ptx(c.version) for m in file.groups for c in m.codes if c.kind == "ptx")
        return Problem(
            severity, file.path,
            f"its PTX was written by CUDA {_dotted(needed)}, which the driver of {name} (CUDA {_dotted(device.cuda)}) "
            "cannot compile", f"update the driver, or build machine code: add {device.arch.number} to the list",
        )  # fmt: skip
    remedy = "" if vendors(file.path) else _built_for(file, device.arch.number, device.arch.number)
    if lost:
        return Problem(severity, file.path, f"will not run on {name}: it holds {_held([file])}", remedy)
    share = f"{found.fails} of {found.runs + found.fails}"
    return Problem("warning", file.path, f"{share} modules have no code for {name} and fail when they are used", remedy)


def _built_for(file: ReadFile, asked_of_torch: str, asked: str) -> str:
    """Return how to rebuild a file: torch's extensions take an architecture list that other builds ignore."""
    ours = any(n.startswith(("libtorch", "libc10")) for n in file.needed) or _TORCHS_OWN.search(file.path)
    if ours:
        return f"build with {asked_of_torch} in TORCH_CUDA_ARCH_LIST"
    return f"build it for {asked} too, with nvcc's -gencode, or CMAKE_CUDA_ARCHITECTURES"


_TORCHS_OWN = re.compile(r"(?:^|/|::)torch/(?:lib/)?[^/]+$")


def _driver_problem(files: Sequence[ReadFile], device: Device) -> Problem | None:
    """Return a problem if the driver is too old for the GPU, or for the CUDA version that a file was built with or is
    linked to."""
    if device.cuda is None:
        return None
    if (too_old := _unknown_gpu(device)) is not None:
        return too_old
    groups: dict[str, list[tuple[int, ReadFile]]] = {}
    for file in (f for f in files if f.has_code):
        majors = [int(m[1] or m[2]) for n in file.needed if (m := _CUDA_LIBRARY.fullmatch(n))]
        majors += [file.toolkit[0]] if file.toolkit else []
        # A build without a known CUDA version may be for an older one.
        groups.setdefault(library(file.path), []).append((max(majors, default=0), file))
    for builds in groups.values():
        major, file = min(builds, key=lambda b: b[0])
        if major > device.cuda[0]:
            driver = f"the driver {device.driver}".rstrip()
            need = f"{DRIVERS[major]} or later" if major in DRIVERS else f"one for CUDA {major}"
            return Problem(
                "error", file.path,
                f"needs CUDA {major}; {driver} of {device.name} supports CUDA up to {_dotted(device.cuda)}",
                f"install driver {need}, or build with CUDA {device.cuda[0]}",
            )  # fmt: skip
    return None


def _unknown_gpu(device: Device) -> Problem | None:
    """Return a problem if the driver that a person named is older than the GPU. A driver that runs a GPU here supports
    it, whatever version it reports."""
    first = KNOWS_GPU.get(device.arch.capability)
    if device.memory is not None or device.cuda is None or first is None or device.cuda >= first:
        return None
    driver = f"the driver {device.driver}".rstrip()
    return Problem(
        "error", "", f"{driver} (CUDA {_dotted(device.cuda)}) is older than {device.name} and does not support it",
        f"install driver {first_driver(first)} or later",
    )  # fmt: skip


def judge_requested(
    files: Sequence[ReadFile], wanted: Sequence[Wanted], *, complete: bool = True
) -> tuple[list[RequestedArch], list[Problem]]:
    """Return each architecture requested or present, and a problem for each that is missing from a file with device
    code.

    Unless the files are `complete`, an architecture that is in no file is left out: an unreadable file may contain it.
    NVIDIA's own libraries beside others were not built here and do not count.
    """
    files = [f for f in files if not vendors(f.path)] or files
    cost: Counter[str] = Counter()
    for use in (a for f in files for a in f.code):
        cost[use.arch] += use.bytes
    names = [w.name for w in wanted if complete or w.name in cost]
    found = [RequestedArch(n, "present" if n in cost else "missing", cost.get(n, 0)) for n in names]
    order = {a.arch: (a.kind, arch_named(a.arch)) for f in files for a in f.archs}
    found += [RequestedArch(n, "extra", cost[n]) for n in sorted(cost, key=order.__getitem__) if n not in names]
    problems = [
        Problem("error", "", f"{r.arch} was asked for and is in no file", "look for a target that ignores "
                "TORCH_CUDA_ARCH_LIST, or a build that was not reconfigured after it changed")
        for r in found if r.state == "missing"
    ]  # fmt: skip
    for file in (f for f in files if f.has_code):
        has = {a.arch for a in file.code}
        lacks = [w for w in wanted if w.name in cost and w.name not in has and not w.arch.variant]
        if lacks and _general(file):
            text = ", ".join(w.name for w in lacks)
            problems.append(Problem("warning", file.path, f"lacks {text}, which was asked for and other files have"))
    return found, problems


def _general(file: ReadFile) -> bool:
    """Whether a file is more than code that is only for some GPUs by design."""
    return any(not c.arch.variant for m in file.groups for c in m.codes)


def _held(files: Iterable[ReadFile]) -> str:
    archs: dict[Arch, set[str]] = {}
    for use in (a for f in files for a in f.code):
        archs.setdefault(arch_named(use.arch), set()).add(use.arch)
    return ", ".join(name for arch in sorted(archs) for name in sorted(archs[arch], reverse=True)) or "nothing"


def _unloaded(files: Iterable[ReadFile]) -> str:
    """Return which of these do not load on this machine, and the first one's reason."""
    # The largest file represents the package better than the smallest.
    lost = sorted((f for f in files if not f.loads), key=lambda f: (not f.refusal, -f.size))
    return f"{_names(lost)} cannot be loaded here{': ' if lost[0].refusal else ''}{lost[0].refusal}"


def _names(files: Sequence[ReadFile]) -> str:
    if len(files) > _MOST_LIBRARIES:
        return f"{len(files)} files"
    first = files[0].path.rsplit("/", 1)[-1].rsplit("::", 1)[-1]
    return first if len(files) == 1 else f"{first} and {len(files) - 1} more"


def _dotted(version: tuple[int, int] | None) -> str:
    return "" if version is None else f"{version[0]}.{version[1]}"
