"""On which GPUs a package runs, of all that there are, by the device code that a report found. Pure."""

from __future__ import annotations

from stoker.model.packaged import GpuReach
from stoker.model.report import FileReport, Report
from stoker.verify.archs import Arch, arch_named, cubin_runs, ptx_runs
from stoker.verify.gpu.devices import CAPABILITIES
from stoker.verify.library_builds import vendors


def gpu_reach(report: Report) -> GpuReach:
    """The capabilities for which all files with code of their own have some, and how it is started there.

    NVIDIA's own libraries choose among theirs, and do not count.
    """
    files = [f for f in report.files if f.has_code and not vendors(f.path)]
    native, jit, part = [], [], []
    for capability in sorted(CAPABILITIES):
        device = Arch(*capability)
        machine = [_machine_code(f, device) for f in files]
        either = [m or _ptx(f, device) for m, f in zip(machine, files, strict=True)]
        name = device.number
        if files and all(machine):
            native.append(name)
        elif files and all(either):
            jit.append(name)
        elif any(either):
            part.append(name)
    return GpuReach(tuple(native), tuple(jit), tuple(part))


def _machine_code(file: FileReport, device: Arch) -> bool:
    return any(a.kind == "cubin" and cubin_runs(arch_named(a.arch), device) for a in file.code)


def _ptx(file: FileReport, device: Arch) -> bool:
    return any(a.kind == "ptx" and ptx_runs(arch_named(a.arch), device) for a in file.code)
