"""Shared libraries: which are missing, and where the dynamic linker would have looked. Runs nothing that it reads.

The order is that of ld.so(8): DT_RPATH of the file and of those that loaded it, LD_LIBRARY_PATH, DT_RUNPATH, the cache,
the system's folders. Unaware of CUDA code.
"""

from __future__ import annotations

import os
import re
import struct
from collections import deque
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path, PurePosixPath
from typing import NamedTuple

from stoker.verify.binary.byte_source import Deadline, FileSource, UnreadableError
from stoker.verify.binary.elf import Dynamic, Elf, read_dynamic, read_elf
from stoker.verify.wheel.tags import SYSTEM_LIBRARIES

CACHE = Path("/etc/ld.so.cache")
_CACHE_MAGIC = b"glibc-ld.so.cache1.1"
_MAX_CACHE = 32 << 20
_MAX_LIBRARIES = 2000
"""Libraries looked at for one file: a process with more has other troubles."""
_MAX_TRIED = 64

_PROVIDERS = (
    (re.compile(r"libcuda\.so\.1|libnvidia-ml\.so\.1|libnvidia-ptxjitcompiler\.so\.1"), "the NVIDIA driver"),
    (re.compile(r"lib(?:torch|torch_cpu|torch_cuda|torch_python|torch_global_deps|c10|c10_cuda)\.so"), "torch"),
    (re.compile(r"libpython3(?:\.\d+t?)?\.so(?:\.1\.0)?"), "Python"),
)
"""Libraries that are there before the file is loaded, or come with the driver of the machine that runs it."""

_CUDA = re.compile(r"lib(?:cu[a-z]+|cublasLt|nv[a-zA-Z]+|nccl|cusparseLt|cupti|cufile)[\w-]*\.so(?:\.[\d.]+)?")
"""Libraries of the CUDA toolkit and its relatives, which torch loads for the extensions that are imported after it."""

_LOADER = re.compile(r"ld-(?:linux|musl)[\w-]*\.so\.\d+|libc\.musl-\w+\.so\.1")

_SYSTEM = ("/usr/lib", "/usr/lib64", "/lib", "/lib64", "/usr/local/lib", "/usr/local/cuda")


class MissingLibrary(NamedTuple):
    """A library that was not found: who needs it, where it was looked for, and who brings it, if known."""

    name: str
    needed_by: str
    tried: tuple[str, ...]
    provider: str


class _Loaded(NamedTuple):
    """A library in the queue, with the RPATHs of those that loaded it."""

    path: Path
    elf: Elf
    dynamic: Dynamic
    inherited: tuple[str, ...]


@dataclass(slots=True)
class Linker:
    """The machine's dynamic linker, as far as finding libraries goes."""

    environment: Mapping[str, str]
    cache: Path = CACHE
    _cached: dict[str, list[str]] | None = field(default=None, init=False)
    _headers: dict[Path, tuple[Elf, Dynamic] | None] = field(default_factory=dict, init=False)

    def missing(self, path: Path, elf: Elf, dynamic: Dynamic, deadline: Deadline) -> list[MissingLibrary]:
        """The libraries that loading `path` would fail for, in the order in which ld.so would ask for them."""
        queue = deque([_Loaded(path, elf, dynamic, ())])
        # One library of a name serves the whole process: ld.so compares names before it looks for files.
        known = {dynamic.soname, path.name}
        missing: list[MissingLibrary] = []
        while queue and len(known) < _MAX_LIBRARIES:
            deadline.check()
            user = queue.popleft()
            for name in user.dynamic.needed:
                if name in known:
                    continue
                known.add(name)
                found, tried = self._find(name, user)
                if found is None:
                    missing.append(
                        MissingLibrary(name, str(user.path), tried, provider(name, dynamic.needed, path.name))
                    )
                else:
                    known.add(found.dynamic.soname)
                    queue.append(found)
        return missing

    def _find(self, name: str, user: _Loaded) -> tuple[_Loaded | None, tuple[str, ...]]:
        tried: list[str] = []
        for candidate in self._candidates(name, user):
            headers = self._read(candidate)
            if headers is not None and (headers[0].bits, headers[0].machine) == (user.elf.bits, user.elf.machine):
                return _Loaded(candidate, *headers, _expanded(user)), ()
            if str(candidate) not in tried and len(tried) < _MAX_TRIED:
                tried.append(str(candidate))
        return None, tuple(tried)

    def _candidates(self, name: str, user: _Loaded) -> Iterable[Path]:
        if "/" in name:
            yield Path(name)
            return
        own = user.dynamic
        if not own.runpath:
            yield from (Path(d) / name for d in _expanded(user) if d)
        environment = self.environment.get("LD_LIBRARY_PATH", "")
        yield from (Path(d) / name for d in re.split("[:;]", environment) if d)
        yield from (Path(d) / name for entry in own.runpath for d in expand(entry, user.path, user.elf) if d)
        yield from (Path(p) for p in self._cache().get(name, ()))
        wide = user.elf.bits == 64
        yield from (Path(d) / name for d in (("/lib64", "/usr/lib64") if wide else ()))
        yield from (Path(d) / name for d in ("/lib", "/usr/lib"))

    def _read(self, path: Path) -> tuple[Elf, Dynamic] | None:
        if path not in self._headers:
            self._headers[path] = _headers(path)
        return self._headers[path]

    def _cache(self) -> dict[str, list[str]]:
        if self._cached is None:
            self._cached = read_cache(self.cache)
        return self._cached


def _headers(path: Path) -> tuple[Elf, Dynamic] | None:
    try:
        with FileSource(path) as source:
            elf = read_elf(source)
            return elf, read_dynamic(source, elf) or Dynamic()
    except (OSError, UnreadableError, ValueError):
        return None


def _expanded(user: _Loaded) -> tuple[str, ...]:
    """The RPATHs that hold for what this library loads: its own, unless it has a RUNPATH, and its loaders'."""
    own = () if user.dynamic.runpath else user.dynamic.rpath
    return (*(d for entry in own for d in expand(entry, user.path, user.elf)), *user.inherited)


def expand(entry: str, path: Path, elf: Elf) -> list[str]:
    """A search path entry with $ORIGIN, $LIB and $PLATFORM filled in; $LIB differs between distributions."""
    origin = str(path.absolute().parent)
    entry = re.sub(r"\$(?:ORIGIN\b|\{ORIGIN\})", lambda _: origin, entry)
    entry = re.sub(r"\$(?:PLATFORM\b|\{PLATFORM\})", lambda _: elf.machine_name, entry)
    if "$LIB" not in entry and "${LIB}" not in entry:
        return [entry]
    choices = ("lib64" if elf.bits == 64 else "lib", f"lib/{elf.machine_name}-linux-gnu")
    return [re.sub(r"\$(?:LIB\b|\{LIB\})", lambda _, c=choice: c, entry) for choice in choices]  # type: ignore[misc]


def provider(name: str, needed: Iterable[str], user: str) -> str:
    """Who brings a library that is on no search path, "" when nobody is known to.

    An extension of torch is imported after torch, whose CUDA libraries are in the process by then. Torch's own
    libraries (`user` is the file's name) have nobody to lean on.
    """
    for pattern, who in _PROVIDERS:
        if pattern.fullmatch(name):
            return who
    beside_torch = not user.startswith(("libtorch", "libc10")) and any(_PROVIDERS[1][0].fullmatch(n) for n in needed)
    return "torch" if beside_torch and _CUDA.fullmatch(name) else ""


def read_cache(path: Path) -> dict[str, list[str]]:
    """Paths by library name from ld.so.cache; empty when there is none (musl) or it is of another format."""
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
    """RPATH and RUNPATH entries that mean nothing, or worse, on another machine.

    An entry that is relative or empty is searched from the current folder: whoever owns that owns the process. With
    `packaged`, every absolute folder outside the system's is one of the machine that built it; otherwise only one
    that is not there any more.
    """
    found = []
    for entry in (*dynamic.rpath, *dynamic.runpath):
        relative = not entry.startswith(("/", "$"))
        system = any(entry == root or entry.startswith((f"{root}/", f"{root}-")) for root in _SYSTEM)
        foreign = entry.startswith("/") and not system and (packaged or not os.path.isdir(entry))
        if (relative or foreign) and entry not in found:
            found.append(entry)
    return found


def missing_in_package(path: str, dynamic: Dynamic, members: Mapping[str, list[str]], requires: str) -> list[str]:
    """Libraries that a wheel's member needs and nobody brings: not the wheel, the system, nor what it requires.

    `members` are the wheel's paths by file name, `requires` its requirements as one text.
    """
    folders, leaves = _package_folders(path, dynamic)
    found = []
    for name in dynamic.needed:
        inside = members.get(PurePosixPath(name).name, ())
        if any(str(PurePosixPath(m).parent) in folders for m in inside):
            continue
        by = provider(name, dynamic.needed, PurePosixPath(path).name)
        if by == "torch" and not re.search(r"\btorch\b", requires) and not inside:
            by = ""
        required = re.search(r"\b(?:nvidia-|cuda-toolkit|torch\b)", requires) and _CUDA.fullmatch(name)
        if not (
            by
            or inside
            or required
            or name in SYSTEM_LIBRARIES
            or _LOADER.fullmatch(name)
            or (leaves and _CUDA.fullmatch(name))
        ):
            found.append(name)
    return found


def _package_folders(path: str, dynamic: Dynamic) -> tuple[set[str], bool]:
    """The folders inside the wheel that are searched, and whether the search leaves the wheel for its neighbours."""
    folders, leaves = set(), False
    parent = PurePosixPath(path).parent
    for entry in (*dynamic.rpath, *dynamic.runpath):
        if entry.startswith(("$ORIGIN", "${ORIGIN}")):
            rest = re.sub(r"^\$(?:ORIGIN|\{ORIGIN\})/?", "", entry)
            place = os.path.normpath(str(parent / rest))
            leaves = leaves or place.startswith("..") or "nvidia" in place
            folders.add(place)
    return folders, leaves
