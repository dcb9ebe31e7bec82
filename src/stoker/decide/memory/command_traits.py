"""Derives a job's cost from its command line: the flags that matter, the cores it keeps busy, the GPUs it compiles for.

Pure. The input is one sequence of words per program; the caller has already removed shells and launchers.
"""

from __future__ import annotations

import hashlib
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

Words = Sequence[str]

MAX_COMMAND = 1 << 16
"""Characters of a command line that patterns are matched against; the longest of PyTorch has 12,000."""

MAX_TARGETS = 16
"""Maximum number of GPU architectures that are distinguished; nvcc 13's -arch=all means 12."""

ALL_TARGETS = 12
ALL_MAJOR_TARGETS = 6
"""How many nvcc 13.0 compiles for with -arch=all and -arch=all-major; other versions differ by two or three."""

_MAX_VALUE = 16
"""Longer values of -D are names, paths and commits, not sizes."""

_PATH_FOLLOWS = frozenset((
    *("-I", "-L", "-l", "-o", "-B", "-T", "-MF", "-MT", "-MQ", "-isystem", "-iquote", "-idirafter", "-isysroot"),
    *("--sysroot", "-include", "-imacros", "-include-pch", "--output-file", "--output", "-ccbin", "--compiler-bindir"),
    *("-odir", "--output-directory", "-optf", "--options-file", "-aux-info", "-dumpbase", "-dumpdir", "-soname"),
    *("-rpath", "--dependency-output"),
))  # fmt: skip
"""Options whose next word is a path, a library or a name."""

_VALUE_FOLLOWS = frozenset((
    *("-gencode", "--generate-code", "-arch", "--gpu-architecture", "-code", "--gpu-code", "-std", "--std", "-x"),
    *("-t", "--threads", "-U", "--undefine-macro", "--param", "-target", "--target", "-m", "-mllvm", "-maxrregcount"),
    *("--x", "--maxrregcount", "-split-compile", "--split-compile"),
))  # fmt: skip
"""Options whose next word is their value and matters."""

_NO_COST = (
    *("-I", "-L", "-l", "-o", "-B", "-M", "-W", "-i", "@", "--sysroot", "--output", "--compiler-bindir", "-ccbin"),
    *("-fdebug-prefix-map", "-ffile-prefix-map", "-fmacro-prefix-map", "-ffile-compilation-dir", "-frandom-seed"),
    *("-fdebug-compilation-dir", "-fdiagnostics", "-fcolor", "-fno-color", "--diag", "-diag", "-Qunused", "-dump"),
)
"""Prefixes of words that do not affect cost: paths, warnings, dependency files, colours."""

_COSTLY = ("-Wl,", "-Wa,", "-lineinfo")
"""Exceptions that do affect cost."""

_NAMES = re.compile(r"soname|rpath|-Map|version-script|dependency-file")

_LTO_JOBS = re.compile(r"-flto=(\d+|auto|jobserver|thin)|-Wl,(?:--thinlto-jobs|-plugin-opt,jobs)=(\d+)")
_ARCH = re.compile(r"arch=(\w+)")


class Traits(NamedTuple):
    """What a job's command line says about its cost.

    `flags` is a digest of the flags that matter. `command` is the command line for patterns. `width` is the number of
    cores kept busy, infinite for "as many as there are". nvcc compiles for `targets` GPU architectures, `lanes` of them
    at a time. `cached`: a compiler cache precedes the compiler, so the job may end almost at once. `mixed`: another
    program runs beside the compiler, such as a script.
    """

    flags: str = ""
    command: str = ""
    width: float = 1.0
    lanes: int = 1
    targets: int = 1
    cached: bool = False
    mixed: bool = False


PLAIN = Traits()
"""A job about which nothing is known."""


def traits_of(commands: Sequence[Words], *, cached: bool = False, mixed: bool = False) -> Traits:
    """Summarize the command lines of a job's programs, which run one after the other."""
    return Traits(
        flags_of(commands),
        " ".join(word for words in commands for word in words)[:MAX_COMMAND],
        max((width_of(words) for words in commands), default=1.0),
        max((lanes_of(words) for words in commands), default=1),
        max((targets_of(words) for words in commands), default=1),
        cached,
        mixed,
    )


def flags_of(commands: Iterable[Words]) -> str:
    """Return a digest of the programs' names and of the words that affect the job's cost, in order.

    Left out: sources, outputs and every other path, search folders, libraries, dependency files, warnings, and
    long values of definitions (versions, commits). Empty if there are no words.
    """
    kept = [word for words in commands for word in _that_matter(words)]
    text = "\0".join(kept).encode("utf-8", "surrogatepass")
    return hashlib.blake2b(text, digest_size=8).hexdigest() if kept else ""


def width_of(words: Words) -> float:
    """Return the cores that a program keeps busy: nvcc's threads, a link's LTO jobs; infinite for as many as exist."""
    if _is_nvcc(words):
        return float(lanes_of(words))
    if "-c" in words:
        return 1.0
    widths = [match for match in map(_LTO_JOBS.fullmatch, words) if match]
    given = [float(m[1] or m[2]) for m in widths if (m[1] or m[2]).isdecimal()]
    if given:
        return max(1.0, given[-1])
    return math.inf if widths else 1.0


def targets_of(words: Words) -> int:
    """Return how many GPU architectures nvcc compiles for: it runs one cicc for each that it generates code from."""
    if not _is_nvcc(words):
        return 1
    targets: set[str] = set()
    for value in _values(words, "-gencode", "--generate-code"):
        targets.update(_ARCH.findall(value))
    for value in _values(words, "-arch", "--gpu-architecture"):
        if value in ("all", "all-major"):
            return ALL_TARGETS if value == "all" else ALL_MAJOR_TARGETS
        targets.add(value)
    return min(max(1, len(targets)), MAX_TARGETS)


def lanes_of(words: Words) -> int:
    """Return how many architectures nvcc compiles for at a time; --threads 0 means all of them."""
    targets = targets_of(words)
    if targets == 1:
        return 1
    threads = [v for v in _values(words, "-t", "--threads") if v.isdecimal()]
    threads += [w[2:] for w in words if w.startswith("-t") and w[2:].isdecimal()]
    wanted = int(threads[-1][:6]) if threads else 1
    return min(wanted or targets, targets)


def _is_nvcc(words: Words) -> bool:
    return bool(words) and words[0].rsplit("/", 1)[-1] == "nvcc"


def _values(words: Words, *names: str) -> Iterator[str]:
    """Yield the values of an option, written as `-arch X` or `-arch=X`."""
    for place, word in enumerate(words):
        if word in names:
            yield from words[place + 1 : place + 2]
        elif word.startswith(names):
            name, equals, value = word.partition("=")
            if equals and name in names:
                yield value


def _that_matter(words: Words) -> Iterator[str]:
    if words:
        yield words[0].rsplit("/", 1)[-1]
    rest = iter(words[1:])
    for word in rest:
        if not word.startswith("-"):
            continue
        if word in _PATH_FOLLOWS:
            next(rest, "")
        elif word in _VALUE_FOLLOWS:
            yield word
            yield next(rest, "")
        elif word.startswith("-D"):
            yield _definition(word[2:] or next(rest, ""))
        elif not word.startswith(_NO_COST) or (word.startswith(_COSTLY) and not _NAMES.search(word)):
            option, _, value = word.partition("=")
            if "/" not in option:
                yield option if "/" in value else word


def _definition(text: str) -> str:
    """Return a macro's name, with its value if that may switch something on or set a size."""
    name, equals, value = text.partition("=")
    plain = len(value) <= _MAX_VALUE and value.isascii() and value.replace("_", "").isalnum()
    return f"-D{name}={value}" if equals and plain else f"-D{name}"
