"""The window: how many jobs a scheduler may start, more than may run so that there is a choice; and how it is passed
on.

Unaware of who starts the build. Never changes what the user wrote: their own -j is the maximum.
"""

from __future__ import annotations

import os
import re
import resource
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from stoker.contract.container_words import labelled
from stoker.sense.commands.scheduler_args import make_arguments, ninja_arguments, width_of_makeflags
from stoker.sense.machine.process_limit import processes_left

PER_CORE = 8
"""Jobs that a scheduler may have per core. Light jobs must be found behind 70 heavy ones in a row; more than eight
brought nothing in simulation."""

MOST = 512
"""A held job is a waiting shell of about a MiB, and a process in every list; more are useless."""

LEAST = 64
"""On few cores, 16 find the long chain of a small project too late. Of nine recorded projects seven come within 1.01 of
the bound on two cores with 64, four with 16 (in simulation, with a noisy history)."""

BYTES_EACH = 32 * 2**20
"""What a job holds that is found a moment late: a compiler that has started to read. All of them must fit."""

FILES_EACH = 2
FILES_KEPT = 128
"""Ninja has a pipe per job, and other files besides: with too few descriptors it aborts the build."""

PROCESSES_EACH = 4
PROCESSES_KEPT = 16
"""A job is a shell, a driver, a compiler and an assembler; stoker's own threads count as well. With too few processes
make and ninja abort the build."""

VARIABLES = ("CMAKE_BUILD_PARALLEL_LEVEL", "MAX_JOBS")
"""If something else starts the scheduler: `cmake --build` reads the first, PyTorch's and flash-attention's setup.py and
vLLM's the second."""

NINJA_FLAGS = "NINJAFLAGS"
"""Options that some wrappers of ninja pass on to it."""

CARGO_JOBS, GO_FLAGS = "CARGO_BUILD_JOBS", "GOFLAGS"
"""Where cargo and go, which run their compilers themselves, find their number of jobs: stoker cannot hold them."""

_GO_JOBS = re.compile(r"(?:^|\s)--?p=")
_NINJA = re.compile(r"(?:ninja|ninja-build|samu|samurai)(?:-?\d[\d.]*)?")
_MAKE = re.compile(r"g?make(?:-?\d[\d.]*)?")

_FRONT_ENDS = (("cmake", "--build"), ("meson", "compile"))
"""What hands a number in its words on to the scheduler that it starts."""

_JOBS = re.compile(r"(?:-j|--jobs|--parallel)=?(\d*)")


@dataclass(frozen=True, slots=True)
class Prepared:
    """A command as it is run, what is added to its environment, and messages for the user about both.

    `width` is how many jobs a scheduler that it starts may have at once; None if it builds nothing.
    """

    words: tuple[str, ...]
    environment: Mapping[str, str] = field(default_factory=dict)
    note: str = ""
    width: int | None = None


def window_for(cores: int, budget: int, jobs: int | None, elsewhere: int = 0) -> int:
    """Return the width of a scheduler on a machine with `budget` bytes, if the user wants `jobs` at once and other
    machines take so many `elsewhere`."""
    wanted = max(LEAST, min(MOST, PER_CORE * max(cores, jobs or 0)), jobs or 0) + elsewhere
    soft_files, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    bounds = [budget // BYTES_EACH]
    if soft_files != resource.RLIM_INFINITY:
        bounds.append((soft_files - FILES_KEPT) // FILES_EACH)
    if (processes := processes_left()) is not None:
        bounds.append((processes - PROCESSES_KEPT) // PROCESSES_EACH)
    return max(jobs or 1, cores, min(wanted, *bounds))


def is_ninja(name: str) -> bool:
    """Return whether a program of this name is ninja, or takes the same options."""
    return _NINJA.fullmatch(name) is not None


def is_make(name: str) -> bool:
    """Return whether a program of this name is make."""
    return _MAKE.fullmatch(name) is not None


def prepared(words: Sequence[str], window: int, jobs: int | None, environ: Mapping[str, str]) -> Prepared:
    """Return the command with the window in it if it takes one, otherwise in its environment."""
    name = os.path.basename(words[0])
    words = labelled(words)
    if is_ninja(name):
        return _ninja(words, window)
    if is_make(name):
        return _make(words, window, jobs, environ)
    limits = _limits(environ)
    most = min([window, *limits.values()])
    own = _own_number(words)
    if name == "meson" and tuple(words[1:2]) == ("compile",) and own is None:
        words = (*words, f"-j{most}")
    wide = {**dict.fromkeys(VARIABLES, str(most)), NINJA_FLAGS: f"-j{most}"}
    added = {name: value for name, value in wide.items() if not environ.get(name)}
    given = " and ".join(f"{name}={environ[name]}" for name in limits)
    note = f"{given} is set and limits the jobs; unset it to let stoker decide" if given else ""
    return Prepared(tuple(words), added | _own_schedulers(jobs, environ), _kept(own) if own else note, own or most)


def _limits(environ: Mapping[str, str]) -> dict[str, int]:
    """Return the user's own numbers by variable.

    The least one holds for all variables: who allows two jobs does not expect 64 because a build reads another name.
    """
    texts = {name: environ.get(name, "") for name in VARIABLES}
    limits = {name: int(text) for name, text in texts.items() if text.isdecimal() and int(text)}
    flags = ninja_arguments(["ninja", *environ.get(NINJA_FLAGS, "").split()]).width
    return limits | ({NINJA_FLAGS: flags} if flags else {})


def _own_number(words: Sequence[str]) -> int | None:
    """Return the number in the words of a front end, 0 for an option without one; None without the option."""
    own = None
    if (os.path.basename(words[0]), *words[1:2]) in _FRONT_ENDS:
        for word, following in zip(words, (*words[1:], ""), strict=True):
            if match := _JOBS.fullmatch(word):
                own = int(match[1] or (following if following.isdecimal() else 0))
    return own


def _own_schedulers(jobs: int | None, environ: Mapping[str, str]) -> dict[str, str]:
    """Return the user's number for tools that run their jobs themselves; without one they run one per CPU."""
    if jobs is None:
        return {}
    added = {} if environ.get(CARGO_JOBS) else {CARGO_JOBS: str(jobs)}
    flags = environ.get(GO_FLAGS, "")
    return added if _GO_JOBS.search(flags) else {**added, GO_FLAGS: f"{flags} -p={jobs}".strip()}


def _ninja(words: Sequence[str], window: int) -> Prepared:
    arguments = ninja_arguments(words)
    if arguments.builds_nothing:
        return Prepared(tuple(words))
    if arguments.width is not None:
        return Prepared(tuple(words), note=_kept(arguments.width), width=arguments.width)
    return Prepared(_with_option(words, f"-j{window}"), width=window)  # -j0, which means no limit, too


def _make(words: Sequence[str], window: int, jobs: int | None, environ: Mapping[str, str]) -> Prepared:
    """Make without -j runs one job at a time, and some makefiles rely on that; a bare -j means any number.

    A make that knows about a jobserver would take slots for more, so it gets none.
    """
    arguments = make_arguments(words)
    if arguments.builds_nothing:
        return Prepared(tuple(words))
    if arguments.width is not None:
        return Prepared(tuple(words), note=_kept(arguments.width, instead=_BARE), width=arguments.width)
    flags = environ.get("MAKEFLAGS", "")
    wide = width_of_makeflags(flags)  # 1 if they have no -j
    if not arguments.width_given and wide is not None and wide > 1:
        return Prepared(tuple(words), note=_kept(wide, " in MAKEFLAGS", instead=_BARE), width=wide)
    if arguments.width_given or jobs is not None or wide is None:
        return Prepared(_with_option(words, f"-j{window}"), width=window)
    note = "make without -j runs one job at a time; write make -j to let stoker decide"
    return Prepared(tuple(words), {} if flags else {"MAKEFLAGS": ""}, note, 1)


def _with_option(words: Sequence[str], option: str) -> tuple[str, ...]:
    """Insert after all other options, as the last -j counts, and before the operands that follow a `--`."""
    end = words.index("--") if "--" in words else len(words)
    return (*words[:end], option, *words[end:])


_BARE = "write -j without a number"
"""Without -j make runs one job at a time."""


def _kept(width: int, where: str = "", instead: str = "leave it out") -> str:
    return f"-j{width}{where} is your limit; {instead} to let stoker decide"
