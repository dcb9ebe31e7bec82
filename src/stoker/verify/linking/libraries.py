"""Finds shared libraries as the dynamic linker would; lists those that are missing, and where it looked.

The order is that of ld.so(8): DT_RPATH of the file and of those that loaded it, LD_LIBRARY_PATH, DT_RUNPATH, the cache,
the system's folders. Runs nothing that it reads. Knows nothing of CUDA code.
"""

from __future__ import annotations

import os
import re
import struct
from collections import deque
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from stoker.verify.binary.byte_source import Deadline, FileSource, UnreadableError
from stoker.verify.binary.elf import Dynamic, Elf, read_dynamic, read_elf
from stoker.verify.binary.symbols import Symbols, read_symbols

CACHE = Path("/etc/ld.so.cache")
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_MAX_CACHE = 32 << 20
_MAX_LIBRARIES = 2000
"""Libraries looked at for one file; no real process has more."""
_MAX_TRIED = 64
_NONE: Mapping[str, Path] = {}

_PROVIDERS = (
    (re.compile(r"libcuda\.so\.1|libnvidia-ml\.so\.1|libnvidia-ptxjitcompiler\.so\.1"), "the NVIDIA driver"),
    (re.compile(r"lib(?:torch|torch_cpu|torch_cuda|torch_python|torch_global_deps|c10|c10_cuda)\.so"), "torch"),
    (
        re.compile(
            r"lib(?:amdhip64|amd_comgr|amd_smi|hip\w+|hsa-runtime64|roc[\w-]+|rccl|MIOpen|migraphx\w*)\.so(?:\.[\d.]+)?"
        ),
        "ROCm",
    ),
    (
        re.compile(
            r"lib(?:acl_(?:cblas|dvpp|op_compiler|rt|tdt_\w+)|ascend\w+|atb|fmk_\w*parser|ge_(?:common|compiler|executor|runner)"
            r"|graph(?:_base)?|hccl|hcomm|msprofiler|nnopbase|opapi\w*|register|runtime|tbe_adapter)\.so"
        ),
        "CANN",
    ),
    (re.compile(r"libpython3(?:\.\d+t?)?\.so(?:\.1\.0)?"), "Python"),
)
"""Libraries that are loaded before the file, or that come with the driver on the machine that has the GPU."""

CUDA = re.compile(
    r"lib(?!cu(?:rl|ps|psimage|nit|rses|objclient|objserver)\b)(?:cu[a-z]+|cublasLt|nv[a-zA-Z]+|nccl|cusparseLt|cupti|cufile)[\w-]*\.so(?:\.[\d.]+)?"
)
"""Libraries of the CUDA toolkit and related ones, which torch loads before the extensions that are imported after it;
not cuObject's, which no package has, nor libcurl, libcups and others with similar names."""

_SYSTEM = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/local/cuda")


class MissingLibrary(NamedTuple):
    """A library that was not found: which file needs it, where the search looked, and what provides it, if known."""

    name: str
    needed_by: str
    tried: tuple[str, ...]
    provider: str


@dataclass(frozen=True, slots=True, eq=False)
class SharedLibrary:
    """A file that the dynamic linker loads. `symbols` is None until read (`Linker.symbols`)."""

    path: Path
    elf: Elf
    dynamic: Dynamic
    symbols: Symbols | None = None


class Closure(NamedTuple):
    """Everything that loading one file brings into the process: the libraries in ld.so's order, the same by requested
    name, and what was not found. `imported` names the libraries that are loaded because a required package was imported
    before."""

    loaded: tuple[SharedLibrary, ...]
    by_name: Mapping[str, SharedLibrary]
    missing: tuple[MissingLibrary, ...]
    imported: tuple[str, ...]


class _Loaded(NamedTuple):
    """A library in the queue, with the RPATHs that it inherits from its loaders."""

    library: SharedLibrary
    inherited: tuple[str, ...]


@dataclass(slots=True)
class Linker:
    """This machine's dynamic linker, but only its search for libraries.

    `overlay` are files that are not on disk, such as those of a wheel, at the paths where pip would install them;
    `hidden` paths count as absent.
    """

    environment: Mapping[str, str]
    cache: Path = CACHE
    overlay: Mapping[Path, SharedLibrary] = field(default_factory=dict)
    hidden: frozenset[Path] = frozenset()
    _cached: dict[str, list[str]] | None = field(default=None, init=False)
    _libraries: dict[str, SharedLibrary | None] = field(default_factory=dict, init=False)
    """By requested path. Strings, not Paths: a package of twenty libraries looks in 5,000 places."""
    _symbols: dict[Path, Symbols | None] = field(default_factory=dict, init=False)

    def load(self, library: SharedLibrary, deadline: Deadline, imported: Mapping[str, Path] = _NONE) -> Closure:
        """Return what loading a library brings into the process.

        `imported` are libraries, by name, of packages that are imported before it: they count if the search finds
        nothing.
        """
        queue = deque([_Loaded(library, ())])
        loaded = [library]
        # A process has one library per name: ld.so compares names before it looks for files.
        known = {library.dynamic.soname: library, library.path.name: library}
        missing: dict[str, MissingLibrary] = {}
        before: list[str] = []
        while queue and len(known) < _MAX_LIBRARIES:
            deadline.check()
            user = queue.popleft()
            folders = self._folders(user)
            for name in user.library.dynamic.needed:
                if name in known or name in missing:
                    continue
                found, tried = self._find(name, user, folders)
                if found is None and (path := imported.get(name)) and (there := self.at(path)):
                    found = _Loaded(there, ())
                    before.append(name)
                if found is None:
                    who = provider(name, library.dynamic.needed, library.path.name)
                    missing[name] = MissingLibrary(name, str(user.library.path), tried, who)
                    continue
                known[name] = known[found.library.dynamic.soname] = found.library
                queue.append(found)
                loaded.append(found.library)
        return Closure(tuple(loaded), known, tuple(missing.values()), tuple(before))

    def symbols(self, library: SharedLibrary) -> Symbols | None:
        """Return a library's symbols; None if it has none, or is unreadable."""
        if library.symbols is None and library.path not in self._symbols:
            self._symbols[library.path] = _symbols_on_disk(library)
        return library.symbols or self._symbols.get(library.path)

    def at(self, path: Path) -> SharedLibrary | None:
        """Return the library at a path; None if there is none, or it is unreadable."""
        return self._at(str(path))

    def _at(self, path: str) -> SharedLibrary | None:
        if path not in self._libraries:
            place = Path(os.path.normpath(path))
            hidden = place in self.hidden
            self._libraries[path] = self.overlay.get(place) or (None if hidden else _on_disk(Path(path)))
        return self._libraries[path]

    def _find(self, name: str, user: _Loaded, folders: Sequence[str]) -> tuple[_Loaded | None, tuple[str, ...]]:
        tried: dict[str, None] = {}
        own = user.library.elf
        for candidate in self._candidates(name, user.library, folders):
            found = self._at(candidate)
            if found is not None and (found.elf.bits, found.elf.machine) == (own.bits, own.machine):
                return _Loaded(found, _expanded(user)), ()
            if len(tried) < _MAX_TRIED:
                tried[candidate] = None
        return None, tuple(tried)

    def _candidates(self, name: str, library: SharedLibrary, folders: Sequence[str]) -> Iterable[str]:
        if "/" in name:
            yield name
            return
        yield from (os.path.join(folder, name) for folder in folders)
        yield from self._cache().get(name, ())
        wide = library.elf.bits == 64
        yield from (f"{folder}/{name}" for folder in (("/lib64", "/usr/lib64") if wide else ()))
        yield from (f"{folder}/{name}" for folder in ("/lib", "/usr/lib"))

    def _folders(self, user: _Loaded) -> list[str]:
        """Return the folders that are searched before the cache."""
        own = user.library.dynamic
        environment = self.environment.get("LD_LIBRARY_PATH", "")
        folders = [
            *(_expanded(user) if not own.runpath else ()),
            *re.split("[:;]", environment),
            *(d for entry in own.runpath for d in expand(entry, user.library.path, user.library.elf)),
        ]
        return [folder for folder in folders if folder]

    def _cache(self) -> dict[str, list[str]]:
        if self._cached is None:
            self._cached = read_cache(self.cache)
        return self._cached


def _on_disk(path: Path) -> SharedLibrary | None:
    try:
        with FileSource(path) as source:
            elf = read_elf(source)
            return SharedLibrary(path, elf, read_dynamic(source, elf) or Dynamic())
    except (OSError, UnreadableError, ValueError):
        return None


def _symbols_on_disk(library: SharedLibrary) -> Symbols | None:
    try:
        with FileSource(library.path) as source:
            return read_symbols(source, library.elf)
    except (OSError, UnreadableError):
        return None


def _expanded(user: _Loaded) -> tuple[str, ...]:
    """Return the RPATHs that apply to what this library loads: its own, unless it has a RUNPATH, and its loaders'."""
    library = user.library
    own = () if library.dynamic.runpath else library.dynamic.rpath
    return (*(d for entry in own for d in expand(entry, library.path, library.elf)), *user.inherited)


def expand(entry: str, path: Path, elf: Elf) -> list[str]:
    """Expand $ORIGIN, $LIB and $PLATFORM in a search path entry; two results for $LIB, which differs between
    distributions."""
    origin = str(path.absolute().parent)
    entry = re.sub(r"\$(?:ORIGIN\b|\{ORIGIN\})", lambda _: origin, entry)
    entry = re.sub(r"\$(?:PLATFORM\b|\{PLATFORM\})", lambda _: elf.machine_name, entry)
    if "$LIB" not in entry and "${LIB}" not in entry:
        return [entry]
    choices = ("lib64" if elf.bits == 64 else "lib", f"lib/{elf.machine_name}-linux-gnu")
    return [re.sub(r"\$(?:LIB\b|\{LIB\})", lambda _, c=choice: c, entry) for choice in choices]  # type: ignore[misc]


def provider(name: str, needed: Iterable[str], user: str) -> str:
    """Return what provides a library that is on no search path, "" if unknown.

    An extension of torch is imported after torch, so torch's CUDA libraries are already loaded. That does not hold for
    torch's own libraries (`user` is the file's name).
    """
    for pattern, who in _PROVIDERS:
        if pattern.fullmatch(name):
            return who
    beside_torch = not user.startswith(("libtorch", "libc10")) and any(_PROVIDERS[1][0].fullmatch(n) for n in needed)
    return "torch" if beside_torch and CUDA.fullmatch(name) else ""


def read_cache(path: Path) -> dict[str, list[str]]:
    """Return paths by library name from ld.so.cache; empty if there is none (musl) or its format is unknown."""
    try:
        with FileSource(path) as source:
            data = source.read(0, _MAX_CACHE)
    except (OSError, UnreadableError):
        return {}
    start = data.find(_CACHE_MAGIC)
    if start < 0 or len(data) < start + 48:
        return {}
    found: dict[str, list[str]] = {}
    (count,) = struct.unpack_from("=I", data, start + 20)
    for i in range(min(count, (len(data) - start - 48) // 24)):
        _, key, value = struct.unpack_from("=iII", data, start + 48 + 24 * i)
        found.setdefault(_text(data, start + key), []).append(_text(data, start + value))
    return found


def _text(data: bytes, at: int) -> str:
    end = data.find(b"\0", at, at + 4096)
    return os.fsdecode(data[at:end]) if end >= 0 else ""


def foreign_paths(dynamic: Dynamic, *, packaged: bool) -> list[str]:
    """Return RPATH and RUNPATH entries that are useless or dangerous on another machine.

    A relative or empty entry is searched from the current folder, so whoever can write there controls the process. With
    `packaged`, any absolute folder outside the system's counts as the build machine's; otherwise only one that no
    longer exists.
    """
    found = []
    for entry in (*dynamic.rpath, *dynamic.runpath):
        relative = not entry.startswith(("/", "$"))
        system = any(entry == root or entry.startswith((f"{root}/", f"{root}-")) for root in _SYSTEM)
        foreign = entry.startswith("/") and not system and (packaged or not os.path.isdir(entry))
        if (relative or foreign) and entry not in found:
            found.append(entry)
    return found
