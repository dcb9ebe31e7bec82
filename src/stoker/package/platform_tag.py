"""The platform tag of a packaged wheel: what its symbols need, and no less than the required packages need.

Unaware of zip files.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from stoker.model.packaged import TagReason
from stoker.package.owners import Owner
from stoker.package.packaging_error import PackagingError
from stoker.package.staging import library_at
from stoker.verify.binary.byte_source import UnreadableError
from stoker.verify.linking.libraries import SharedLibrary
from stoker.verify.wheel.tags import PlatformPromise, fitting, needs, parse_platform

_FIRST = {"x86_64": (2, 5), "i686": (2, 5)}
_FIRST_OTHER = (2, 17)
"""The oldest glibc that manylinux knows for a machine (PEP 513; PEP 599 for all others)."""


def reasons_for(
    libraries: Sequence[SharedLibrary], own: frozenset[str], required: Mapping[str, Owner]
) -> list[TagReason]:
    """Who needs which tag: the wheel's symbols first. The tag is empty where no manylinux tag will do.

    `own` names the libraries that are not the system's, `required` the packages that own some of them.
    """
    machine = libraries[0].elf.machine_name
    found = [TagReason("its symbols", _fitting(libraries, own, machine))]
    owned: dict[str, list[Owner]] = {}
    for owner in required.values():
        owned.setdefault(owner.name, []).append(owner)
    for name, owners in sorted(owned.items()):
        tag = _tag_of(owners, machine)
        found += [TagReason(f"{name} {owners[0].version}", tag)] if tag is not None else []
    return found


def highest(reasons: Sequence[TagReason], machine: str) -> str:
    """The tag that all of these need together: `linux_...` where there is none."""
    promises = [parse_platform(r.tag) for r in reasons]
    if any(p is None for p in promises):
        return f"linux_{machine}"
    libc = max(p.libc for p in promises if p is not None)
    return f"manylinux_{libc[0]}_{libc[1]}_{machine}"


def checked(asked: str, machine: str) -> PlatformPromise:
    """The tag that a person asks for. Raises PackagingError."""
    promise = parse_platform(asked)
    if promise is None or promise.kind == "musllinux":
        raise PackagingError(f"{asked!r} is not a glibc tag; write it as manylinux_2_28_{machine}, or auto")
    if promise.machine != machine:
        raise PackagingError(f"{asked!r} is for {promise.machine}, and the wheel's libraries are for {machine}")
    return promise


def kept_or_refused(asked: str, reasons: Sequence[TagReason], machine: str) -> str:
    """The tag that was asked for. Raises PackagingError where it promises more than is kept."""
    promise = checked(asked, machine)
    for reason in reasons if promise.kind == "manylinux" else ():
        needed = parse_platform(reason.tag)
        if needed is None or needed.libc > promise.libc:
            what = f"{asked} promises more than is kept: {reason.who} needs {reason.tag or 'a newer system'}"
            raise PackagingError(f"{what}; build it on an older system, or leave out --plat")
    return asked


def _fitting(libraries: Sequence[SharedLibrary], own: frozenset[str], machine: str) -> str:
    tag = fitting([v for library in libraries for v in needs(library.dynamic, own)], machine)
    promise = parse_platform(tag)
    if promise is None:
        return ""
    libc = max(promise.libc, _FIRST.get(machine, _FIRST_OTHER))
    return f"manylinux_{libc[0]}_{libc[1]}_{machine}"


def _tag_of(owned: Sequence[Owner], machine: str) -> str | None:
    """What an installed package needs by its own tags; by its symbols where it has a linux tag. None: nothing."""
    lines = (owned[0].distribution.read_text("WHEEL") or "").splitlines()
    tags = [li.partition(":")[2].strip().rpartition("-")[2] for li in lines if li.startswith("Tag:")]
    promises = [p for p in map(parse_platform, tags) if p is not None and p.machine == machine]
    libcs = [p.libc for p in promises if p.kind == "manylinux"]
    if libcs:
        libc = min(libcs)
        return f"manylinux_{libc[0]}_{libc[1]}_{machine}"
    return _by_symbols(owned, machine) if promises else None


def _by_symbols(owned: Sequence[Owner], machine: str) -> str:
    found = []
    for owner in owned:
        try:
            library = library_at(owner.path, owner.path)
        except (OSError, UnreadableError):
            continue
        found += [library] if library is not None else []
    return _fitting(found, frozenset(), machine)
