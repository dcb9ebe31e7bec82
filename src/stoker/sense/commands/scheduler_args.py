"""The command lines of ninja and make, as far as a watcher needs them. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Arguments:
    """What a scheduler was asked for. `width` None with `width_given` means no limit.

    `builds_nothing` is true for tool runs, dry runs, and queries such as --version. `failures` is how many jobs may
    fail until nothing new is started, None for no limit.
    """

    directory: str
    manifest: str
    width: int | None
    width_given: bool
    targets: tuple[str, ...]
    builds_nothing: bool
    failures: int | None = 1


Option = tuple[str, str | None]
"""A name and its value; the name "" is an operand."""

_NINJA_VALUES = "dfjklptwC"
_MAKE_VALUES = "fCIoWE"
_MAKE_OPTIONAL = "jlO"
_MAKE_LONG_VALUES = frozenset(
    [
        "file",
        "makefile",
        "directory",
        "include-dir",
        "old-file",
        "assume-old",
        "new-file",
        "assume-new",
        "what-if",
        "eval",
    ]
)


def ninja_arguments(argv: Sequence[str]) -> Arguments:
    """Parse `ninja ARGS...` (getopt_long of ninja.cc: options and operands in any order)."""
    options = list(_ninja_options(argv[1:]))
    given = dict(options)
    jobs = given.get("j")
    width = _number(jobs)
    return Arguments(
        given.get("C") or "",
        given.get("f") or "build.ninja",
        width or None,  # ninja takes -j0 as no limit
        jobs is not None,
        tuple(value or "" for name, value in options if not name),
        any(n in given for n in ("t", "n", "version", "h", "help")) or given.get("d") == "list",
        1 if "k" not in given else _number(given["k"]) or None,
    )


def make_arguments(argv: Sequence[str]) -> Arguments:
    """Parse `make ARGS...`. Targets are operands that assign no variable."""
    options = list(_make_options(argv[1:]))
    given = dict(options)
    directories = [value or "" for name, value in options if name in ("C", "directory")]
    jobs = next((n for n in ("j", "jobs") if n in given), None)
    quiet = {"n", "just-print", "dry-run", "recon", "q", "question", "t", "touch", "v", "version", "h", "help"}
    return Arguments(
        "/".join(directories),
        given.get("f") or given.get("file") or given.get("makefile") or "Makefile",
        _number(given[jobs]) if jobs else None,
        jobs is not None,
        tuple(v for n, v in options if not n and v and "=" not in v),
        not quiet.isdisjoint(given),
        None if not {"k", "keep-going"}.isdisjoint(given) else 1,
    )


def width_of_makeflags(flags: str) -> int | None:
    """Return the -j inside MAKEFLAGS (as make writes it for sub-makes, or as a user sets it); 1 when there is none."""
    match = re.search(r"(?:^|\s)(?:-j\s*(\d*)|--jobs(?:=(\d+))?)(?=\s|$)", flags) or re.match(r"j(\d*)(?=\s|$)", flags)
    if match is None:
        return 1
    return _number(next((g for g in match.groups() if g), None))


def _number(text: str | None) -> int | None:
    return int(text) if text and text.isdigit() else None


def _ninja_options(args: Sequence[str]) -> Iterator[Option]:
    rest = iter(args)
    for arg in rest:
        if arg == "--":
            yield from (("", a) for a in rest)
        elif arg.startswith("--"):
            name, _, value = arg[2:].partition("=")
            yield name, value or None
        elif arg.startswith("-") and len(arg) > 1:
            for option in _cluster(arg[1:], rest, _NINJA_VALUES):
                yield option
                if option[0] == "t":
                    return
        else:
            yield "", arg


def _make_options(args: Sequence[str]) -> Iterator[Option]:
    queue = list(args)
    while queue:
        arg = queue.pop(0)
        if arg == "--":
            yield from (("", a) for a in queue)
            return
        if arg.startswith("--"):
            name, equals, value = arg[2:].partition("=")
            if not equals and name in _MAKE_LONG_VALUES and queue:
                value = queue.pop(0)
            yield name, value or None
        elif arg.startswith("-") and len(arg) > 1:
            yield from _make_cluster(arg[1:], queue)
        else:
            yield "", arg


def _make_cluster(letters: str, queue: list[str]) -> Iterator[Option]:
    while letters:
        name, letters = letters[0], letters[1:]
        if name in _MAKE_VALUES:
            yield name, letters or (queue.pop(0) if queue else None)
            return
        if name in _MAKE_OPTIONAL:
            digits = re.match(r"[\d.]*", letters)
            value = digits[0] if digits else ""
            letters = letters[len(value) :]
            if not value and not letters and queue and queue[0].isdigit():
                value = queue.pop(0)
            yield name, value or None
        else:
            yield name, None


def _cluster(letters: str, rest: Iterator[str], with_value: str) -> Iterator[Option]:
    while letters:
        name, letters = letters[0], letters[1:]
        if name in with_value:
            yield name, letters or next(rest, None)
            return
        yield name, None
