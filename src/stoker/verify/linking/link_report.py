"""Reports what stops a package's binaries from loading: missing libraries, versions and symbols.

Knows nothing of wheels as files, or of GPUs.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from stoker.model.report import Problem, Severity
from stoker.verify.binary.byte_source import Deadline, UnreadableError
from stoker.verify.binary.elf import Dynamic
from stoker.verify.binary.symbols import NeededSymbol
from stoker.verify.library_builds import library, vendors
from stoker.verify.linking.libraries import CUDA, Closure, Linker, MissingLibrary, SharedLibrary, foreign_paths
from stoker.verify.linking.nvidia_packages import cuda_major, cuda_without_packages, folder_of, nvidias, package_with
from stoker.verify.linking.python_facts import NOTHING, Brought
from stoker.verify.linking.requirements import (
    bare,
    best_extra,
    bringer,
    may_bring,
    named_after,
    of_system,
    plugin_host,
    unable_to_bring,
)
from stoker.verify.linking.undefined import lacking_versions, undefined_symbols
from stoker.verify.python_imports import Need, names_library, needs_of

_EXTENSION = re.compile(r"[^.]+\.(?:cpython-\d[\w-]*|pypy\d[\w-]*|abi3)\.so")
_MAX_NAMES, _MAX_LIBRARIES, _MAX_FOLDERS = 3, 6, 4
_MAX_TEXTS = 3
"""Different lists of missing libraries in one unit; beyond that, one list names them all."""

_REFUSES = ": the loader refuses it"

_TORCHS = re.compile(r"lib(?:torch|c10)_(cuda|hip|xpu)\w*\.so")
_TORCH_NAMES = {"cuda": "CUDA", "hip": "ROCm", "xpu": "Intel's GPUs"}
_TORCH_BUILDS = {
    "another CUDA": "libtorch_cuda.so", "ROCm": "libtorch_hip.so", "Intel's GPUs": "libtorch_xpu.so",
}  # fmt: skip
"""What a build of torch is for, by the library that only this build has."""

_FFMPEG = re.compile(r"lib(?:av(?:codec|device|filter|format|util)|sw(?:resample|scale)|postproc)\.so\.\d+")

_OF_DRIVER = re.compile(
    r"lib(?:cuda|nvidia-ml|nvidia-ptxjitcompiler|nvidia-nvvm|nvcuvid|nvidia-encode)(?:-[0-9a-f]{6,})?\.so(?:\.[\d.]+)?"
)

_MUSL = re.compile(r"libc\.musl-\w+\.so\.1|ld-musl-\w+\.so\.1")
_PLUGIN_DIGITS = re.compile(r"\d+")


@dataclass(frozen=True, slots=True)
class LinkUnit:
    """Binaries that are loaded together: those of a wheel or an installed package, or files named directly.

    `names` are the paths for the report, `with_code` the files with the unit's own device code, `companions` other
    libraries that are verified in the same run, `unread` the names of its unreadable files. `packaged`: the files
    belong to a package, whose own code may load them. `program` returns the Python that imports it.
    """

    title: str
    libraries: tuple[SharedLibrary, ...]
    names: Mapping[Path, str]
    program: Callable[[], Path | None]
    packaged: bool = False
    brought: Brought = NOTHING
    with_code: frozenset[Path] = frozenset()
    companions: tuple[SharedLibrary, ...] = ()
    unread: frozenset[str] = frozenset()
    sources: Callable[[], Mapping[str, str]] = dict
    """Returns the package's Python sources by path below site-packages; called only if something fails to load."""
    site: Path | None = None
    """The site-packages folder."""


class LinkFindings(NamedTuple):
    """The result: problems by path in the report, the paths that fail to load with a short reason, and notes on the
    unit.

    `partial`: something fails to load of which there is no other build in the unit, and the rest loads.
    """

    problems: Mapping[str, list[Problem]]
    failing: Mapping[str, str]
    notes: Sequence[Problem]
    partial: bool
    fatal: bool = False
    """Whether something fails to load and the rest is useless without it."""
    awaited: Sequence[str] = ()
    """Missing libraries that may come with requirements that are not installed here."""
    condition: str = ""
    """What must hold for the verdict, worded to follow an "if"."""


@dataclass(slots=True)
class _Examination:
    """One pass through a unit."""

    unit: LinkUnit
    linker: Linker
    closures: dict[Path, Closure] = field(default_factory=dict)
    lost: dict[Path, list[MissingLibrary]] = field(default_factory=dict)
    refused: dict[Path, list[Problem]] = field(default_factory=dict)
    """What stops a file from loading, apart from missing libraries: versions and symbols."""
    expected: dict[str, dict[str, None]] = field(default_factory=dict)
    """Libraries that are not installed here, by what brings them."""
    awaited: dict[str, list[str]] = field(default_factory=dict)
    """Libraries that requirements not installed here may bring, with these requirements."""
    problems: dict[str, list[Problem]] = field(default_factory=dict)

    def run(self) -> LinkFindings:
        own = {_real(li.path) for li in (*self.unit.libraries, *self.unit.companions)}
        imported = dict(self.unit.brought.libraries)
        if self.unit.packaged:
            imported |= self._loaded_by_hand()
            imported |= {li.path.name: li.path for li in self.unit.libraries}
        for member in self.unit.libraries:
            self._examine(member, own, imported)
        failing = self._failing()
        served = {_build_key(li.path) for li in self.unit.libraries if li.path not in failing}
        missed = {p for p in failing if _build_key(p) not in served}
        fatal = bool(missed) and self._fatal(failing)
        for path in (*self.lost, *(p for p in self.refused if p not in self.lost)):
            severity: Severity = "info" if path not in missed else "error" if fatal else "warning"
            name = self.unit.names[path]
            found = [*self._missing(path), *self.refused.get(path, ())]
            self.problems.setdefault(name, []).extend(Problem(severity, name, p.what, p.remedy) for p in found)
        why = {self.unit.names[p]: self._why(p) for p in failing}
        partial = bool(missed) and not fatal
        return LinkFindings(self.problems, why, self._notes(), partial, fatal, tuple(self.awaited), self._condition())

    def _examine(self, member: SharedLibrary, own: set[str], imported: Mapping[str, Path]) -> None:
        name = self.unit.names[member.path]
        try:
            closure = self.linker.load(member, Deadline(), imported)
        except UnreadableError as err:
            self.problems[name] = [Problem("warning", name, f"its libraries could not all be looked up: {err}")]
            return
        self.closures[member.path] = closure
        self._note_missing(member, closure, own)
        refused = [_version_problem(v.version, holder) for v, holder in lacking_versions(member, closure, self.linker)]
        lacking = undefined_symbols(member, closure, self.linker, lambda: self._others(imported))
        refused += [_symbol_problem(lacking, closure)] if lacking else []
        if refused:
            self.refused[member.path] = refused

    def _loaded_by_hand(self) -> dict[str, Path]:
        """Return the package's own libraries by SONAME if their file names differ and its Python code names them: a
        library that was loaded by its path serves later requests for its SONAME."""
        names = {li.path.name for li in self.unit.libraries}
        needed = {n for li in self.unit.libraries for n in li.dynamic.needed} - names
        found = [li for li in self.unit.libraries if li.dynamic.soname in needed]
        sources = [*self.unit.sources().values()] if found else []
        return {li.dynamic.soname: li.path for li in found
                if names_library(sources, li.dynamic.soname, li.path.name)}  # fmt: skip

    def _others(self, imported: Mapping[str, Path]) -> Iterable[SharedLibrary]:
        """Yield what else may be in the process: the rest of the package, what it requires, and Python with its
        libraries."""
        yield from self.unit.libraries
        yield from self.unit.companions
        for path in imported.values():
            if (there := self.linker.at(path)) is not None:
                yield there
        program = self.unit.program()
        python = self.linker.at(program) if program is not None else None
        if python is not None:
            yield from self.linker.load(python, Deadline()).loaded

    def _note_missing(self, member: SharedLibrary, closure: Closure, own: set[str]) -> None:
        """Sort the missing libraries: expected if the driver, Python or a requirement brings them; awaited while it is
        unknown what all requirements bring; lost otherwise."""
        for missing in closure.missing:
            if missing.needed_by != str(member.path) and _real(Path(missing.needed_by)) in own:
                continue
            if missing.name.rpartition("/")[2] in self.unit.unread:
                continue
            brought = self.unit.brought
            who = missing.provider or bringer(missing.name, brought.absent, brought.limits)
            torch_here = who == "torch" and bool(brought.torch or "libc10.so" in closure.by_name)
            if torch_here:
                who = ""  # torch is loaded, but with the libraries of another CUDA version
            elif (
                not missing.provider and "torch" in map(bare, self.unit.brought.absent) and CUDA.fullmatch(missing.name)
            ):
                who = "torch"
            if who:
                self.expected.setdefault(who, {})[missing.name] = None
            elif not torch_here and not self._in_an_extra(missing.name) and (may := self._may_bring(missing.name)):
                # Files that need FFmpeg use the system's, of any version that they were built for.
                self.awaited[missing.name] = ["FFmpeg"] if _FFMPEG.fullmatch(missing.name) else may
            else:
                self.lost.setdefault(member.path, []).append(missing)

    def _missing(self, path: Path) -> list[Problem]:
        """Return the lost libraries as one problem; the same one for many files if they lack nearly the same
        libraries."""
        lost = self.lost.get(path, [])
        if not lost:
            return []
        if len({tuple(m.name for m in more) for more in self.lost.values()}) > _MAX_TEXTS:
            lost = [m for more in self.lost.values() for m in more]
        names = list(dict.fromkeys(m.name for m in lost))
        if any(map(_MUSL.fullmatch, names)):
            what = "is built for musl, the C library of Alpine Linux; this machine has glibc"
            return [Problem("error", "", what, "use the build for glibc (manylinux), or run it on a system with musl")]
        users = {m.needed_by for m in lost} - {str(p) for p in self.lost}
        needed = f" (needed by {_listed(sorted(users), 1)})" if users else ""
        folders = list(dict.fromkeys(f for m in lost for f in _folders(m)))
        be = "is" if len(names) == 1 else "are"
        looked = _listed(folders, _MAX_FOLDERS) or "no folder"
        what = f"{_listed(names, _MAX_LIBRARIES)}{needed} {be} missing; looked in {looked}"
        if unlike := self._another_torch(lost):
            return [Problem("error", "", f"{what}; {unlike.what}", unlike.remedy)]
        return [Problem("error", "", what, self._remedy(names, folders))]

    def _another_torch(self, lost: Sequence[MissingLibrary]) -> Problem | None:
        """Return what to add to a problem if the installed torch lacks libraries that another build of torch brings."""
        brought = self.unit.brought
        theirs = [m.name for m in lost if m.provider == "torch" or _TORCHS.fullmatch(m.name)]
        if not brought.torch or not theirs:
            return None
        kind = next((of for of, name in _TORCH_BUILDS.items() if name in brought.libraries), "CPUs")
        majors = sorted({cuda_major(li.dynamic.needed) or 0 for li in self.unit.libraries} - {0})
        wanted = next((m[1] for n in theirs if (m := _TORCHS.fullmatch(n)) and m[1] in _TORCH_NAMES), "cuda")
        build = _TORCH_NAMES[wanted] + (f" {_any_of(majors)}" if wanted == "cuda" and majors else "")
        if wanted == "cuda" and len(majors) > 1:
            build += ", the one whose build here has code for the GPU"
        return Problem("error", "", f"the torch here ({brought.torch}) is for {kind}", f"install a torch for {build}")

    def _remedy(self, names: Sequence[str], folders: Sequence[str]) -> str:
        by_extra = {n for n in names if self._extras([n])}
        rest = [n for n in names if n not in by_extra]
        if not by_extra:
            return self._by_hand(names, folders)
        extras = f"pip install '{self.unit.title}[{','.join(self._extras(names))}]'"
        if not rest:
            return f"an extra brings {_it(names)}: {extras}"
        by_hand = f"for {_listed(rest)}: {self._by_hand(rest, folders)}"
        return f"an extra brings {_listed(sorted(by_extra))}: {extras}; {by_hand}"

    def _by_hand(self, names: Sequence[str], folders: Sequence[str]) -> str:
        into = "in the RPATH or in LD_LIBRARY_PATH"
        major = cuda_major(n for li in self.unit.libraries for n in li.dynamic.needed)
        if old := next(filter(None, (cuda_without_packages(n, major) for n in names)), ""):
            return (
                f"NVIDIA has no packages of CUDA {old}'s libraries: install its toolkit, and put its folder {into}, or "
                "take a build for a later CUDA"
            )
        by_package: dict[str, list[str]] = {}
        for name in names:
            by_package.setdefault(package_with(name, major) if nvidias(name) else "", []).append(name)
        unknown = by_package.pop("", [])
        systems = [n for n in unknown if of_system(n)]
        others = [n for n in unknown if n not in systems]
        texts = []
        if by_package:
            texts.append(f"pip install {' '.join(by_package)}")
            # A library whose RUNPATH leads to NVIDIA's folders finds them there.
            elsewhere = [p for p in by_package if not (at := folder_of(p)) or not any(f.endswith(at) for f in folders)]
            if elsewhere:
                texts[0] += f", and put {'its folder' if len(elsewhere) == 1 else 'their folders'} {into}"
        if systems:
            named = _listed(systems, _MAX_LIBRARIES) if by_package or others else _it(systems)
            texts.append(f"install {named} with the system's package manager (apt, dnf)")
        if others:
            named = _listed(others) if by_package or systems else _it(others)
            texts.append(f"install {named}, or put the folder {into}")
        return "; ".join(texts)

    def _may_bring(self, name: str) -> list[str]:
        brought = self.unit.brought
        beside = {n for li in self.unit.libraries for n in li.dynamic.needed}
        return may_bring(name, brought.absent, self._host(), brought.limits, beside)

    def _host(self) -> str:
        """Return the package that this one is a plugin of; "" for others."""
        host = plugin_host(self.unit.title)
        # A package with an extension module of its own is no plugin, but another build of its host (faiss-gpu).
        apart = bool(host) and not any(map(self._extension, self.unit.libraries))
        return host if apart else ""

    def _in_an_extra(self, name: str) -> bool:
        """Whether an extra names the package with this library, which is then not required otherwise. What its packages
        require says nothing: cudaq-qec's extra for TensorRT brings libcudart too, as its cuda-quantum does."""
        return any(named_after(name, r) for r in self.unit.brought.by_extra.values())

    def _extras(self, names: Sequence[str]) -> list[str]:
        """Return the fewest extras that together bring all that any extra brings of these: extras for different CUDA
        versions exclude each other."""
        left, found = [*names], list[str]()
        while served := best_extra(left, self.unit.brought.by_extra):
            found.append(served.extra)
            left = [n for n in left if n not in served.brings]
        return found

    def _condition(self) -> str:
        conditions = [self._of_awaited()] if self.awaited else []
        if self.unit.packaged and self.unit.brought.undeclared and "torch" in self.expected:
            major = cuda_major(n for li in self.unit.libraries for n in li.dynamic.needed)
            torch = f"a torch for CUDA {major}" if major else "torch"
            conditions.append(f"{torch}, which its metadata do not require, is installed")
        return " and ".join(conditions)

    def _of_awaited(self) -> str:
        absent = self._awaited_of(self.awaited)
        any_of = "one of " if len(absent) > 1 else ""
        return f"{any_of}{_listed(absent)}, not installed here, brings {_listed([*self.awaited])}"

    def _assumed_useless(self) -> list[str]:
        """Return missing requirements that are assumed to bring none of NVIDIA's libraries."""
        names = [m.name for more in self.lost.values() for m in more if nvidias(m.name)]
        brought = self.unit.brought
        return [r for r in unable_to_bring(names, brought.absent, brought.limits) if r not in self.expected]

    def _awaited_of(self, names: Iterable[str]) -> list[str]:
        return [*dict.fromkeys(r for name in names for r in self.awaited[name])]

    def _failing(self) -> set[Path]:
        """Return what will not load, itself or because of one of the unit's own libraries that it needs."""
        broken = {_real(p) for p in (*self.lost, *self.refused)}
        return {
            li.path for li in self.unit.libraries
            if any(_real(n.path) in broken for n in (li, *self.closures.get(li.path, _EMPTY).loaded))
        }  # fmt: skip

    def _why(self, path: Path) -> str:
        first = next(iter((*self._missing(path), *self.refused.get(path, ()))), None)
        return first.what.partition("; looked in ")[0].removesuffix(_REFUSES) if first is not None else ""

    def _fatal(self, failing: set[Path]) -> bool:
        """Whether the whole unit fails.

        It does if none of its main files loads (extension modules, otherwise files that no other one needs), if none of
        the files with its device code loads, or if something fails that importing the package imports.
        """
        needed = {n for li in self.unit.libraries for n in li.dynamic.needed}
        roots = [li for li in self.unit.libraries if not {li.dynamic.soname, li.path.name} & needed]
        if all(vendors(str(li.path)) for li in roots):
            roots = []  # each is useful by itself
        main = [li for li in roots if self._extension(li)] or roots or self.unit.libraries
        code = self.unit.with_code
        if code and failing.issuperset(code):
            return True
        needs = self._needs(failing)
        if "required" in needs.values():
            return True
        # If the package catches the failure, it works without that module.
        caught = all(needs.get(li.path) == "guarded" for li in main)
        return failing.issuperset(li.path for li in main) and not caught

    def _needs(self, failing: set[Path]) -> dict[Path, Need]:
        """Return how the package imports its extension modules that will not load, as far as its sources show."""
        site = self.unit.site
        if site is None:
            return {}
        names = {".".join((*p.relative_to(site).parts[:-1], p.name.partition(".")[0])): p
                 for p in (li.path for li in self.unit.libraries) if p.is_relative_to(site)}  # fmt: skip
        lost = {name for name, path in names.items() if path in failing}
        return {names[name]: need for name, need in needs_of(self.unit.sources(), names, lost).items()}

    def _extension(self, member: SharedLibrary) -> bool:
        if _EXTENSION.fullmatch(member.path.name):
            return True
        symbols = self.linker.symbols(member)
        initial = b"PyInit_" + os.fsencode(member.path.name.partition(".")[0])
        return symbols is not None and symbols.offers(NeededSymbol(initial, b""))

    def _drivers_own(self) -> list[Problem]:
        """Warn about libraries of the driver in the package: they fit one version of the driver's kernel module."""
        notes = []
        for inside in self.unit.libraries if self.unit.packaged else ():
            users = [li.path.name for li in self.unit.libraries if inside.path.name in li.dynamic.needed]
            if not users or "stubs" in inside.path.parts or not _OF_DRIVER.fullmatch(inside.path.name):
                continue
            what = (
                f"is a library of NVIDIA's driver, and {_listed(users)} loads it: it works only with the driver of its "
                "own version"
            )
            remedy = "leave it out: auditwheel repair --exclude libcuda.so.1"
            notes.append(Problem("warning", self.unit.names[inside.path], what, remedy))
        return notes

    def _notes(self) -> list[Problem]:
        notes = []
        for who, names in self.expected.items():
            text = f"{_listed(list(names))}: {who} brings {_it(names)}"
            if who == "torch":
                text += ", and must be imported first; none that fits is installed here"
            elif who not in ("Python", "the NVIDIA driver", "ROCm", "CANN"):
                text += ", which is required; none that fits is installed here"
            notes.append(Problem("info", self.unit.title, text))
        notes += self._drivers_own()
        if useless := self._assumed_useless():
            who = _listed(useless, _MAX_LIBRARIES)
            what = f"{who}: not installed here, and assumed to bring none of NVIDIA's libraries"
            notes.append(Problem("info", self.unit.title, what))
        host = self._host()
        required = host in map(bare, self.unit.brought.absent)
        of_host = [n for n, may in self.awaited.items() if may == [host] and not required]
        if of_host:
            what = f"{_listed(of_host, _MAX_LIBRARIES)}: may come with {host}, which its metadata do not require"
            notes.append(Problem("warning", self.unit.title, what, f"pip install {host}, and verify again"))
        if rest := [n for n in self.awaited if n not in of_host]:
            what = (
                f"{_listed(rest, _MAX_LIBRARIES)}: may come with requirements that are not installed here: "
                f"{_listed(self._awaited_of(rest), _MAX_LIBRARIES)}"
            )
            notes.append(Problem("warning", self.unit.title, what, "install the requirements, and verify again"))
        return notes


_EMPTY = Closure((), {}, (), ())


def examine(unit: LinkUnit, linker: Linker) -> LinkFindings:
    """Return what stops the unit's binaries from loading on this machine."""
    return _Examination(unit, linker).run()


_RELATIVE_PATHS = "set $ORIGIN-relative paths: patchelf --set-rpath"


def own_folders(name: str, dynamic: Dynamic) -> list[Problem]:
    """Return a note about RPATH entries that lead somewhere on this machine and nowhere else."""
    useless = foreign_paths(dynamic, packaged=False)
    here = [repr(entry) for entry in foreign_paths(dynamic, packaged=True) if entry not in useless]
    path = "RUNPATH" if dynamic.runpath else "RPATH"
    what = f"its {path} holds {', '.join(here)}: a folder of this machine, which others lack"
    return [Problem("info", name, what, f"before it goes to others, {_RELATIVE_PATHS}")] if here else []


def path_problems(name: str, dynamic: Dynamic, *, packaged: bool = False) -> list[Problem]:
    """Return problems for RPATH entries that lead nowhere: on this machine, or, for a file in a wheel (`packaged`), on
    any other."""
    entries = foreign_paths(dynamic, packaged=packaged)
    gone = [repr(e) for e in entries if e]
    path = "RUNPATH" if dynamic.runpath else "RPATH"
    where = "a folder of the machine that built it" if packaged else "not there on this machine"
    texts = [f"its {path} holds {', '.join(gone)}: {where}"] if gone else []
    if "" in entries:
        texts.append(f"its {path} has an empty entry: libraries are loaded from whatever folder it is started in")
    if vendors(name):
        return [Problem("info", name, text) for text in texts]  # only NVIDIA can fix it
    return [Problem("warning", name, text, _RELATIVE_PATHS) for text in texts]


def _build_key(path: Path) -> str:
    """Return the same key for several builds of one library, also if they differ only by a number (libx4.so,
    libx5.so)."""
    folder, _, name = library(str(path)).rpartition("/")
    return f"{folder}/{_PLUGIN_DIGITS.sub('#', name)}"


def _version_problem(version: str, holder: SharedLibrary) -> Problem:
    what = f"needs version {version}, which {holder.path} does not have{_REFUSES}"
    remedy = f"install a newer {holder.path.name}, or build it with the one that is here"
    if version.startswith("GLIBC_"):
        remedy = "build it on the oldest system that it must run on, or run it on a newer one"
    return Problem("error", "", what, remedy)


def _symbol_problem(lacking: list[NeededSymbol], closure: Closure) -> Problem:
    names = [
        s.name.decode("utf-8", "replace") + (f" ({s.version.decode('utf-8', 'replace')})" if s.version else "")
        for s in lacking
    ]
    what = f"undefined symbol: {_listed(names)}{_REFUSES}"
    torch = next((str(li.path) for li in closure.loaded if li.path.name in ("libc10.so", "libtorch_cpu.so")), "")
    remedy = "link it with the library that defines it, or build it with the one that is installed"
    if torch:
        remedy = (
            f"it was built for a different torch than the one with {torch}: build it with this one, or install the one "
            "that it was built with"
        )
    return Problem("error", "", what, remedy)


def _listed(names: Sequence[str], most: int = _MAX_NAMES) -> str:
    more = len(names) - most
    return f"{', '.join(names[:most])}{f' and {more} more' if more > 0 else ''}"


def _any_of(numbers: Sequence[int]) -> str:
    *most, last = map(str, numbers)
    return f"{', '.join(most)} or {last}" if most else last


def _it(names: Iterable[str]) -> str:
    return "it" if len(list(names)) == 1 else "them"


def _folders(missing: MissingLibrary) -> tuple[str, ...]:
    """Return the folders of the paths that were tried, in their shortest form."""
    return tuple(dict.fromkeys(os.path.normpath(os.path.dirname(p) or ".") for p in missing.tried))


def _real(path: Path) -> str:
    return os.path.realpath(path)
