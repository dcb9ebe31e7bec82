"""What is judged as one unit: a wheel, an installed package, a folder, or a file. Reads its files, and finds out
whether its binaries load on this machine. Knows nothing of GPUs."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache
from importlib.metadata import Distribution, distributions
from pathlib import Path, PurePosixPath

from stoker.model.report import Problem
from stoker.verify.binary.byte_source import Deadline, FileSource, UnreadableError
from stoker.verify.binary.device_code import ReadFile
from stoker.verify.binary.elf import ET_REL
from stoker.verify.binary.other_code import UNIVERSAL
from stoker.verify.binary.read_binary import Binary, read_binary, with_calls
from stoker.verify.binary.symbols import read_symbols
from stoker.verify.host import Host, foreign_system
from stoker.verify.library_builds import only_linked_with, vendors
from stoker.verify.linking.libraries import CUDA, Linker, SharedLibrary, provider
from stoker.verify.linking.link_report import LinkFindings, LinkUnit, examine, own_folders, path_problems
from stoker.verify.linking.python_facts import (
    NOTHING,
    Brought,
    PythonFacts,
    brought_by,
    libraries_of,
    package_of,
    sources_of,
)
from stoker.verify.linking.requirements import bringer, plugin_host, requires_torch
from stoker.verify.wheel.tags import SYSTEM_LIBRARIES
from stoker.verify.wheel.wheel_file import wheel_sources
from stoker.verify.wheel.wheel_report import SEPARATOR, read_wheel

_LOADER = re.compile(r"ld-(?:linux|musl)[\w-]*\.so\.\d+|libc\.musl-\w+\.so\.1")
_TAGGED = re.compile(r"[^.]+(\.((?:cpython-\d|pypy\d|abi3)[\w-]*)\.so)")
OTHER_SYSTEMS = ("Windows", "macOS")
"""Prefixes of a file's machine if it is for another system, on which no GPU of this machine can run it."""
_MAX_NAMES = 6
_NO_SITE = Path("/site-packages")
"""The assumed site-packages for a wheel's files if no Python answers."""


@dataclass(slots=True)
class VerifyUnit:
    """Files that are judged together, and the problems of the whole unit.

    `refusal` says why none of it runs on this machine, whatever its GPU: pip would not install it.
    """

    title: str
    files: list[ReadFile] = field(default_factory=list)
    problems: list[Problem] = field(default_factory=list)
    libraries: dict[str, SharedLibrary] = field(default_factory=dict)
    """Linked files by the path in the report."""
    wheel: str = ""
    place: Path = Path()
    """The path of the wheel."""
    requires: list[str] = field(default_factory=list)
    requires_python: str = ""
    refusal: str = ""
    partial: bool = False
    """Whether some of it does not load on this machine, and the rest does."""
    fatal: bool = False
    """Whether some of it does not load on this machine, and the rest is useless without it."""
    condition: str = ""
    """What must hold for it to load, if that is unknown here."""
    opaque: list[tuple[str, int]] = field(default_factory=list)
    """Large files of a wheel in a format that is not known: names and sizes."""

    @property
    def judged(self) -> list[ReadFile]:
        """The files with device code that may run. Those that only serve to link with count if there is nothing
        else."""
        alone = all(only_linked_with(f.path) for f in self.files)
        return [f for f in self.files if f.has_code and (alone or not only_linked_with(f.path))]

    @property
    def machines(self) -> set[str]:
        """The processors that its files are for."""
        return {li.elf.machine_name for li in self.libraries.values()}

    @property
    def foreign_machines(self) -> set[str]:
        """The processors that its files for other systems are for."""
        return {f.machine.partition(" ")[2] for f in self.files if f.machine.startswith(OTHER_SYSTEMS)} - {UNIVERSAL}


def wheel_unit(path: Path, *, hashes: bool = False) -> VerifyUnit:
    """Read a wheel, with every digest in its RECORD if `hashes`."""
    found = read_wheel(path, hashes=hashes)
    libraries = {f"{path}{SEPARATOR}{member}": library for member, library in found.libraries.items()}
    return VerifyUnit(
        found.package or path.name,
        found.files,
        found.problems,
        libraries,
        path.name,
        path,
        found.requires,
        found.requires_python,
        opaque=found.opaque,
    )


def add_file(unit: VerifyUnit, path: Path) -> None:
    """Read one file into a unit."""
    binary = _read_file(path)
    unit.files.append(binary.report)
    if binary.elf is not None and binary.dynamic is not None and binary.elf.type != ET_REL:
        unit.libraries[binary.report.path] = SharedLibrary(path, binary.elf, binary.dynamic)


def _read_file(path: Path) -> Binary:
    try:
        with FileSource(path) as source:
            binary = read_binary(str(path), source, Deadline(), lambda name: FileSource(path.parent / name))
            return _with_calls(binary, source)
    except (OSError, UnreadableError) as err:
        reason = err.strerror if isinstance(err, OSError) and err.strerror else str(err)
        problem = Problem("error", str(path), f"cannot be read: {reason}", unreadable=True)
        return Binary(ReadFile(str(path), 0, problems=(problem,)), None, None)


def _with_calls(binary: Binary, source: FileSource) -> Binary:
    """Find out whether a file that is linked with NVRTC also calls it; other files are returned unchanged."""
    if binary.elf is None or not binary.report.compiles_when_it_runs:
        return binary
    try:
        symbols = read_symbols(source, binary.elf)
    except UnreadableError:
        return binary
    return with_calls(binary, symbols) if symbols is not None else binary


def check_loading(units: Sequence[VerifyUnit], host: Host) -> None:
    """Find out what loads on this machine: set `loads` of the units' files, and add the problems."""
    linker = Linker(host.environment)
    loose = [u for u in units if not u.wheel]
    companions = tuple(li for u in loose for li in u.libraries.values())
    for unit in loose:
        _add(unit, _check_loose(unit, linker, companions, host))
    for unit in units:
        if unit.wheel:
            _check_wheel(unit, host)


def _check_loose(
    unit: VerifyUnit, linker: Linker, companions: tuple[SharedLibrary, ...], host: Host
) -> LinkFindings | None:
    here = {name: li for name, li in unit.libraries.items() if li.elf.machine_name == host.machine}
    for name, library in here.items():
        unit.problems += path_problems(name, library.dynamic)
    if not here:
        return None
    owner = _owner(here.values(), host)
    if owner is None:  # an installed one has arrived; a library's own folders are usual while it is built
        modules = [(name, li) for name, li in here.items() if _TAGGED.fullmatch(li.path.name)]
        unit.problems += [note for name, li in modules for note in own_folders(name, li.dynamic)]
    requires = list(owner.requires or ()) if owner is not None else []
    brought = _brought(unit.title, here.values(), requires, host)
    site = Path(str(owner.locate_file(""))) if owner is not None else None
    link = _link_unit(unit, here, brought, host, lambda: sources_of(owner) if owner is not None else {}, site)
    name = owner.metadata["Name"] if owner is not None else unit.title
    return examine(replace(link, title=name or unit.title, companions=companions), linker)


def _owner(libraries: Iterable[SharedLibrary], host: Host) -> Distribution | None:
    """Return the installed package that these files belong to; None for files outside site-packages."""
    first = next(iter(libraries)).path.absolute()
    if not {"site-packages", "dist-packages"} & set(first.parts):
        return None
    python = host.python()
    return package_of(first, python) if python is not None else None


def _check_wheel(unit: VerifyUnit, host: Host) -> None:
    python: PythonFacts | None = None
    if system := foreign_system(unit.wheel):
        unit.problems.append(Problem("info", unit.wheel, f"is for {system}: judged only by its device code"))
        unit.condition = f"it is installed on {system}"
    else:
        python, unit.refusal = host.python_for(unit.wheel, unit.requires_python)
    members = {name: li for name, li in unit.libraries.items() if li.elf.machine_name == host.machine}
    if unit.refusal or not members:
        return
    site = python.site if python is not None else _NO_SITE
    placed = {name: replace(li, path=site / li.path) for name, li in members.items()}
    brought = _brought(unit.title, placed.values(), unit.requires, host)
    hidden = frozenset[Path]()
    if python is not None:
        old = next(iter(distributions(name=unit.title, path=list(python.folders))), None)
        hidden = frozenset(libraries_of(old).values()) if old is not None else hidden
    linker = Linker(host.environment, overlay={li.path: li for li in placed.values()}, hidden=hidden)
    link = _link_unit(unit, placed, brought, host, lambda: wheel_sources(unit.place), site)
    found = examine(link, linker)
    _add(unit, found)
    unit.problems += _system_libraries(unit, brought, found)
    if python is not None and not unit.refusal:
        unit.refusal = _other_extensions(unit, python)


def _other_extensions(unit: VerifyUnit, python: PythonFacts) -> str:
    """Return why Python imports none of a unit's extension modules; "" if it does, or if their names do not say which
    Python they are for."""
    tagged = [m for li in unit.libraries.values() if (m := _TAGGED.fullmatch(li.path.name))]
    if not tagged or any(m[1] in python.suffixes for m in tagged):
        return ""
    asked = ", ".join(sorted({m[2] for m in tagged}))
    return f"its extension modules are for {asked}; the Python here is {python.title} ({python.program})"


def _brought(title: str, libraries: Iterable[SharedLibrary], requires: Sequence[str], host: Host) -> Brought:
    """Return what is in the process before these libraries are loaded. An extension of torch is imported after torch,
    and a plugin after its host package, even if their metadata do not say so."""
    everything = list(libraries)
    own = {li.path.name for li in everything}
    names = {n for li in everything for n in li.dynamic.needed if n not in own}
    torch = ["torch"] if any(provider(n, (), "") == "torch" for n in names) else []
    plugin = [p for p in [plugin_host(title)] if p and not any(_TAGGED.fullmatch(li.path.name) for li in everything)]
    python = host.python() if requires or torch or plugin else None
    if python is None:
        return NOTHING
    installed = [p for p in plugin if not brought_by([p], python).absent]
    brought = brought_by([*requires, *torch, *installed], python)
    undeclared = "torch" in brought.absent and not any(map(requires_torch, brought_by(requires, python).absent))
    return brought._replace(undeclared=undeclared)


def _system_libraries(unit: VerifyUnit, brought: Brought, found: LinkFindings) -> list[Problem]:
    """Warn about libraries that a wheel takes from the system although no manylinux tag promises them."""
    inside = {li.path.name for li in unit.libraries.values()} | {li.dynamic.soname for li in unit.libraries.values()}
    users = [(name, li) for name, li in sorted(unit.libraries.items()) if name not in found.failing]
    names = {
        n: None for _, li in users for n in li.dynamic.needed
        if n not in inside and n not in SYSTEM_LIBRARIES and n not in brought.libraries and not _LOADER.fullmatch(n)
        and not provider(n, li.dynamic.needed, li.path.name) and not bringer(n, brought.absent, brought.limits)
        and not CUDA.fullmatch(n) and n not in found.awaited
    }  # fmt: skip
    if not names:
        return []
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    listed = ", ".join([*names][:_MAX_NAMES]) + more
    what = f"takes {listed} from the system; not every system has {'it' if len(names) == 1 else 'them'}"
    remedy = "bundle it (auditwheel repair), or require the package that has it"
    return [Problem("warning", unit.title, what, remedy)]


def _link_unit(
    unit: VerifyUnit,
    libraries: Mapping[str, SharedLibrary],
    brought: Brought,
    host: Host,
    sources: Callable[[], Mapping[str, str]],
    site: Path | None,
) -> LinkUnit:
    coded = {f.path for f in unit.files if f.has_code and not vendors(f.path)}
    return LinkUnit(
        unit.title, tuple(libraries.values()), {li.path: name for name, li in libraries.items()}, host.program,
        site is not None, brought, frozenset(li.path for name, li in libraries.items() if name in coded),
        unread=frozenset(PurePosixPath(f.path).name for f in unit.files if any(p.unreadable for p in f.problems)),
        sources=cache(sources), site=site,
    )  # fmt: skip


def _add(unit: VerifyUnit, found: LinkFindings | None) -> None:
    if found is not None:
        unit.problems += found.notes
        unit.partial, unit.fatal = found.partial, found.fatal
        unit.condition = found.condition
        unit.files = [
            replace(f, problems=(*found.problems.get(f.path, ()), *f.problems), loads=f.path not in found.failing,
                    refusal=found.failing.get(f.path, ""))
            for f in unit.files
        ]  # fmt: skip
