"""Makes one report for some paths: reads everything, then judges it. Knows nothing of builds or of how a report is
shown."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from stoker.model.report import DeviceReport, KernelRun, Problem, Report, Severity, TorchFacts
from stoker.verify.about import about, scope
from stoker.verify.archs import Arch, Wanted, parse_arch_list
from stoker.verify.binary.byte_source import UnreadableError
from stoker.verify.binary.device_code import ReadFile
from stoker.verify.every_gpu import whole_on_none
from stoker.verify.find_files import files_in, installed
from stoker.verify.gpu.devices import Device, device_of
from stoker.verify.gpu.driver_versions import cuda_of_driver, parse_cuda
from stoker.verify.gpu.local_gpus import DRIVER_SECONDS, local_gpus
from stoker.verify.gpu.run_kernel import run_kernels, untested
from stoker.verify.host import Host, implied_machine
from stoker.verify.judge import (
    REFUSAL_REMEDY,
    JudgedFiles,
    conclude,
    judge_file,
    judge_requested,
    judge_units,
)
from stoker.verify.library_builds import library
from stoker.verify.python_probe import python_of
from stoker.verify.torch_facts import ask_torch
from stoker.verify.verify_units import OTHER_SYSTEMS, VerifyUnit, add_file, check_loading, wheel_unit

Progress = Callable[[str], None]
"""Called with the file that is being read."""

MAX_FILES = 100_000


@dataclass(slots=True)
class VerifyRequest:
    """What to verify: paths or names of installed packages; against an architecture list and devices.

    `driver` (570.86) or `driver_cuda` (12.8): the driver to judge for, whatever the GPU. `driver_wait`: seconds within
    which the driver must report this machine's GPUs. `hashes`: compare every digest in a wheel's RECORD.
    """

    paths: Sequence[str]
    arch_list: str = ""
    devices: Sequence[str] = ()
    run: bool = False
    since: float | None = None
    environment: Mapping[str, str] = field(default_factory=lambda: dict(os.environ))
    driver_wait: float = DRIVER_SECONDS
    driver: str = ""
    driver_cuda: str = ""
    hashes: bool = False


def verify(request: VerifyRequest, progress: Progress = lambda _: None) -> Report:
    """Verify what is requested. Raises only ArchError, for an invalid architecture list, device or driver."""
    started = time.monotonic()
    wanted = parse_arch_list(request.arch_list) if request.arch_list.strip() else ()
    named = [device_of(text) for text in request.devices]
    driver_cuda = _driver_cuda(request)
    host = Host(python_of(request.environment), request.environment)
    units, problems = _read_all(request, host, progress)
    problems += [p for u in units for p in u.problems]
    files = [f for u in units for f in u.files]
    if _nothing_readable(files, problems):
        wanted, named = (), []
    requested, more = judge_requested(files, wanted, complete=not _unread(files, problems)) if wanted else ([], [])
    problems += more
    gpus, more = _devices(request, files, named, wanted)
    if driver_cuda is not None:
        gpus = [replace(gpu, driver=request.driver, cuda=driver_cuda) for gpu in gpus]
    problems += more
    devices, more = _judge_devices(units, gpus, host)
    problems += more if gpus else _refusals(units, host)
    nowhere = None if gpus else whole_on_none([_here(unit, unit.refusal) for unit in units])
    problems += [nowhere] if nowhere is not None else []
    files = [replace(f, verdicts=tuple(judge_file(f, gpu) for gpu in gpus)) for f in files]
    torch, runs, more = _ask(request, files, host.python_program, progress)
    problems += more
    everything = [p for f in files for p in f.problems] + problems
    everything.sort(key=lambda p: ("error", "warning", "info").index(p.severity))
    verdict = conclude(everything, requested, devices, partial=nowhere is not None or any(u.partial for u in units))
    return Report(
        ok=verdict not in ("no", "unread"),
        verdict=verdict,
        about="" if any(u.judged for u in units) else about(units),
        scope=scope(units),
        condition=" and ".join(u.condition for u in units if u.condition) if verdict not in ("no", "unread") else "",
        paths=tuple(request.paths),
        files=tuple(f.report for f in files),
        requested=tuple(requested),
        devices=tuple(devices),
        problems=tuple(everything),
        torch=torch,
        runs=runs,
        seconds=round(time.monotonic() - started, 3),
    )


def _driver_cuda(request: VerifyRequest) -> tuple[int, int] | None:
    """Return the CUDA version of the requested driver; None without one. Raises ArchError."""
    if request.driver:
        return cuda_of_driver(request.driver)
    return parse_cuda(request.driver_cuda) if request.driver_cuda else None


def _nothing_readable(files: Sequence[ReadFile], problems: Sequence[Problem]) -> bool:
    """Whether no code was found although something was unreadable, which may contain some."""
    return not any(f.has_code for f in files) and _unread(files, problems)


def _unread(files: Sequence[ReadFile], problems: Sequence[Problem]) -> bool:
    return any(p.unreadable for p in (*problems, *(p for f in files for p in f.problems)))


def _read_all(request: VerifyRequest, host: Host, progress: Progress) -> tuple[list[VerifyUnit], list[Problem]]:
    units: list[VerifyUnit] = []
    problems: list[Problem] = []
    for text in request.paths:
        loose = VerifyUnit(text)
        for path in _expand(text, request, host, problems):
            progress(str(path))
            if path.name.endswith(".whl"):
                units.append(wheel_unit(path, hashes=request.hashes))
            else:
                add_file(loose, path)
            if sum(len(u.files) for u in (*units, loose)) > MAX_FILES:
                problems.append(Problem("error", str(path), f"more than {MAX_FILES} binaries; gave up on the rest",
                                        "name fewer", unreadable=True))  # fmt: skip
                break
        units += [loose] if loose.files else []
    if not units and not problems:
        remedy = "name a .so, a wheel or a folder"
        problems.append(Problem("error", "", "no binary was found in what was given", remedy, unreadable=True))
    check_loading(units, host)
    for unit in units:
        unit.files = _forgive_other_builds(unit.files)
    return units, problems


def _expand(text: str, request: VerifyRequest, host: Host, problems: list[Problem]) -> Iterable[Path]:
    # Not Path.exists and is_dir: they raise if a name is too long or a folder is not accessible.
    known = "/" in text or os.path.exists(text)
    places = [Path(text)] if known else installed(text, host.python_program, request.environment)
    if not places:
        problems.append(
            Problem("error", text, "is neither a file, a folder nor an installed package",
                    "give a path, or the name of a package that is installed in the active environment",
                    unreadable=True)
        )  # fmt: skip
    for place in places:
        if not os.path.isdir(place):
            yield place
            continue
        try:
            found = files_in(place, request.since)
        except UnreadableError as err:
            problems.append(Problem("error", str(place), str(err), unreadable=True))
            continue
        if not found and request.since is None:
            problems.append(Problem("error", str(place), "holds no binary and no wheel", unreadable=True))
        yield from found


def _forgive_other_builds(files: list[ReadFile]) -> list[ReadFile]:
    """Only one of several builds of a library is loaded: what the others lack is no error if one lacks nothing."""
    whole = {library(f.path) for f in files if not any(p.severity == "error" for p in f.problems)}
    return [
        replace(f, problems=tuple(p if p.unreadable or p.severity != "error" else replace(p, severity="info")
                                  for p in f.problems)) if library(f.path) in whole else f
        for f in files
    ]  # fmt: skip


def _devices(
    request: VerifyRequest, files: list[ReadFile], named: list[Device], wanted: Sequence[Wanted]
) -> tuple[list[Device], list[Problem]]:
    """Return the devices named, otherwise this machine's if there is any code for a GPU."""
    if named or not any(f.has_code and not f.machine.startswith(OTHER_SYSTEMS) for f in files):
        return named, []
    found = local_gpus(request.environment, request.driver_wait)
    problems = [Problem("warning", "", text, "look at nvidia-smi and dmesg") for text in found.lost]
    problems += [Problem("info", "", text) for text in found.notes]
    # An architecture list is enough to judge by; but a driver that does not answer is always reported.
    if found.why and (found.broken or not wanted):
        remedy = "name the GPU it is meant for: --device H100"
        severity: Severity = "warning" if found.broken else "info"
        problems.append(Problem(severity, "", f"no GPU to judge for: {found.why}", remedy))
    return list(found.devices), problems


def _judge_devices(
    units: Sequence[VerifyUnit], devices: list[Device], host: Host
) -> tuple[list[DeviceReport], list[Problem]]:
    problems: list[Problem] = []
    reports: list[DeviceReport] = []
    judged: dict[tuple[Arch, object, str], None] = {}
    for device in devices:
        report, more = judge_units([_for_device(unit, device, host) for unit in units], device)
        reports.append(report)
        # Eight equal GPUs make one list of problems, not eight.
        key = device.arch, device.cuda, device.name
        problems += more if key not in judged else []
        judged[key] = None
    return reports, problems


def _for_device(unit: VerifyUnit, device: Device, host: Host) -> JudgedFiles:
    """Return a unit's files for the machine with this GPU: this machine, or another, of which only the processor is
    known."""
    unit = replace(unit, files=_of_one_system(unit.files))
    elsewhere = implied_machine(device)
    machine = elsewhere or host.machine
    refusal = ""
    machines = unit.machines or (unit.foreign_machines if elsewhere else set())
    if machines and machine not in machines:
        beside = f"{device.name} is in a machine with {machine}" if elsewhere else f"this machine is {machine}"
        refusal = f"is for {', '.join(sorted(machines))}; {beside}"
    elif machine == host.machine:
        refusal = unit.refusal
    if elsewhere and machine != host.machine:
        return JudgedFiles(unit.title, tuple(replace(f, loads=True) for f in unit.files), refusal)
    return _here(unit, refusal)


def _here(unit: VerifyUnit, refusal: str) -> JudgedFiles:
    """Return a unit's files for this machine."""
    return JudgedFiles(unit.title, tuple(_of_one_system(unit.files)), refusal, unit.partial, unit.fatal)


def _of_one_system(files: list[ReadFile]) -> list[ReadFile]:
    """Return the files for Linux, if there are any: a wheel may contain builds for several systems (ctransformers)."""
    return [f for f in files if not f.machine.startswith(OTHER_SYSTEMS)] or files


def _refusals(units: Sequence[VerifyUnit], host: Host) -> list[Problem]:
    """Return why units do not run on this machine, for use without a GPU to judge for."""
    found = []
    for unit in units:
        machines = unit.machines
        other = f"is for {', '.join(sorted(machines))}; this machine is {host.machine}"
        why = unit.refusal or (other if machines and host.machine not in machines else "")
        found += [Problem("error", unit.title, why, REFUSAL_REMEDY)] if why else []
    return found


def _ask(
    request: VerifyRequest, files: list[ReadFile], python: str, progress: Progress
) -> tuple[TorchFacts | None, tuple[KernelRun, ...], list[Problem]]:
    """Return torch's own answers if torch itself is verified, and the kernel runs if they are requested."""
    folder = _torch_folder(files)
    problems: list[Problem] = []
    facts: TorchFacts | None = None
    runs: tuple[KernelRun, ...] = ()
    if folder is not None:
        progress("torch's own answers")
        facts = ask_torch(python, folder, request.environment)
        if facts.error:
            problems.append(Problem("error", str(folder / "torch"), f"torch cannot be imported: {facts.error}"))
    if request.run:
        progress("a kernel on every GPU")
        runs, why = run_kernels(python, folder, request.environment)
        if why:
            problems.append(
                Problem("error", "", f"no kernel was run: {why}", "leave out --run on a machine without a GPU")
            )
        problems += [_run_problem(index, r) for index, r in enumerate(runs) if r.error]
    return facts, runs, problems


def _run_problem(index: int, run: KernelRun) -> Problem:
    gpu = f"GPU {index}" if run.device == f"GPU {index}" else f"GPU {index} ({run.device})"
    if untested(run):
        return Problem("warning", "", f"{gpu} {run.error}")
    return Problem("error", "", f"a matrix product on {gpu} failed: {run.error}")


def _torch_folder(files: list[ReadFile]) -> Path | None:
    """Return the folder of the `torch` package to which a verified file belongs."""
    for file in files:
        for parent in Path(file.path).absolute().parents if "::" not in file.path else ():
            if parent.name == "torch" and (parent / "__init__.py").is_file():
                return parent.parent
    return None
