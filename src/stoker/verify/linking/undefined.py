"""Finds versions and symbols that nothing defines, so that the loader refuses a file although it finds every library.

Python binds all symbols when it imports an extension, so each one counts, as for `ldd -r`. Runs nothing that it reads.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable

from stoker.verify.binary.symbols import NeededSymbol, NeededVersion
from stoker.verify.linking.libraries import Closure, Linker, SharedLibrary

_PYTHON = re.compile(rb"_?Py[A-Z_]\w*")
_ROCM = re.compile(rb"_*(?:hip[A-Z]|hip[a-z]+[A-Z]|miopen[A-Z]|roc[a-z]+_|rccl|hsa_)\w*")
"""Some builds load ROCm's libraries themselves; an NVIDIA GPU needs none of them."""
_TORCH = re.compile(rb"aoti_torch_\w+")
"""Torch's C interface: a library that is not linked with torch looks it up in a process that has imported torch
(cuda-core)."""
_DRIVER = re.compile(rb"(?:cu[A-Z]|nvml[A-Z]|__?cuda|nvPTX)\w*")


def lacking_versions(
    library: SharedLibrary, closure: Closure, linker: Linker
) -> list[tuple[NeededVersion, SharedLibrary]]:
    """Return versions that a library lacks although it was found, each with that library."""
    own = linker.symbols(library)
    found = []
    for needed in own.needed_versions if own is not None else ():
        holder = closure.by_name.get(needed.library)
        offered = linker.symbols(holder) if holder is not None else None
        if holder is not None and offered is not None and needed.version not in (offered.versions or {needed.version}):
            found.append((needed, holder))
    return found


def undefined_symbols(
    library: SharedLibrary, closure: Closure, linker: Linker, others: Callable[[], Iterable[SharedLibrary]]
) -> list[NeededSymbol]:
    """Return the symbols that neither the loaded libraries, nor Python, nor any of the `others` define.

    `others` are the other libraries of the package and of those that it requires: they may load each other without the
    linker. Nothing is known of the symbols of a missing library, except of the driver's.
    """
    own = linker.symbols(library)
    absent = {m.provider for m in closure.missing}
    if own is None or not absent <= {"Python", "the NVIDIA driver"}:
        return []
    known = [_PYTHON, _ROCM] + [_TORCH] * (not any(n.startswith("libtorch") for n in library.dynamic.needed))
    known += [_DRIVER] * ("the NVIDIA driver" in absent)
    left = [s for s in own.needed if not any(p.fullmatch(s.name) for p in known)]
    left = _beyond(left, closure.loaded, linker)
    return _beyond(left, others(), linker) if left else []


def _beyond(needed: list[NeededSymbol], libraries: Iterable[SharedLibrary], linker: Linker) -> list[NeededSymbol]:
    for library in libraries:
        if not needed:
            break
        symbols = linker.symbols(library)
        if symbols is not None:
            needed = [s for s in needed if not symbols.offers(s)]
    return needed
