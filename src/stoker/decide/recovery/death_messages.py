"""Recognizes what tools print when one of them was killed, when they ran out of memory, and when there is a real error.

Pure: takes one line, returns its meaning. Only complete, known messages count, from the start of the line: a warning, a
path or a quoted source line may contain any of their words. Messages that gcc translates are known in English only.
"""

from __future__ import annotations

import re
from functools import cache
from typing import Literal

Said = Literal["killed", "exhausted", "error", ""]
"""killed: SIGKILL ended something; exhausted: an allocation failed; error: anything else that stops the tool."""

MAX_LINE = 4000
"""Characters examined; most tools state the problem in their first words, but cargo and Python in their last."""

_KILLED = r"""
      \S+:[ ](?:fatal[ ]|internal[ ]compiler[ ])?error:[ ]Killed   # gcc's driver; 'internal' before 10
          (?:[ ]signal[ ]terminated[ ]program[ ]\S+|[ ]\(program[ ]\S+\))$
    | \S+:[ ](?:fatal[ ])?error:[ ]\S+[ ]terminated[ ]with[ ]signal[ ]9\b        # collect2
    | nvcc[ ]error\s*:[ ]'[^']+'[ ]died[ ]due[ ]to[ ]signal[ ]9\b                # nvcc that starts its tools itself
    | '?(?:cicc|ptxas|cudafe\+\+|fatbinary|nvlink)'?[ ]died[ ]due[ ]to[ ]signal[ ]9\b
    | \S+:[ ]error:[ ]unable[ ]to[ ]execute[ ]command:[ ]Killed$                 # clang's driver
    | Killed(?::[ ]9)?$                                                          # sh of its child; nvcc 13 starts sh
    | \S*sh:[ ](?:line[ ])?\d+:\s+(?:\d+[ ])?Killed\b                            # bash, with line and pid
    | \S*make(?:\[\d+\])?:[ ]\*\*\*[ ]\[[^\]]+\][ ](?:Killed|Error[ ]137)$
    | \s*process[ ]didn't[ ]exit[ ]successfully:[ ].*\(signal:[ ]9,[ ]SIGKILL:[ ]kill\)$    # cargo
    | (?:\S+[ ])*\S+:[ ]signal:[ ]killed$                                        # go build
    | .*\bdied[ ]with[ ]<Signals\.SIGKILL:[ ]9>\.?$                              # Python's CalledProcessError
    | error:[ ]command[ ].+[ ](?:terminated[ ]by[ ]signal[ ]9|failed[ ]with[ ]exit[ ]code[ ](?:-9|137))$  # setuptools
    | sccache:[ ].*[Cc]ompiler[ ]killed[ ]by[ ]signal[ ]9\b
    """

_SIGNALLED = r"""
      \S+:[ ](?:fatal[ ]|internal[ ]compiler[ ])?error:[ ](?:Hangup|Interrupt|Terminated)   # gcc's driver
          (?:[ ]signal[ ]terminated[ ]program[ ]\S+|[ ]\(program[ ]\S+\))$
    | \S+:[ ](?:fatal[ ])?error:[ ]\S+[ ]terminated[ ]with[ ]signal[ ](?:1|2|15)\b           # collect2
    | (?:nvcc[ ]error\s*:[ ])?'?[\w+.-]+'?[ ]died[ ]due[ ]to[ ]signal[ ](?:1|2|15)\b          # nvcc
    | \S+:[ ]error:[ ]unable[ ]to[ ]execute[ ]command:[ ](?:Hangup|Interrupt|Terminated)$    # clang's driver
    | \S*make(?:\[\d+\])?:[ ]\*\*\*[ ]\[[^\]]+\][ ](?:Hangup|Interrupt|Terminated|Error[ ]1(?:29|30|43))$
    | (?:Hangup|Terminated)$                                                               # sh of its child
    | \S*sh:[ ](?:line[ ])?\d+:\s+(?:\d+[ ])?(?:Hangup|Terminated)\b                        # bash
    """
"""What the same tools print of a signal that ends a build but is not SIGKILL."""

_EXHAUSTED = r"""
      virtual[ ]memory[ ]exhausted:[ ]Cannot[ ]allocate[ ]memory$                # cc1plus
    | \S+:[ ]out[ ]of[ ]memory[ ]allocating[ ]\d+[ ]bytes\b                      # libiberty: cc1plus, as, ld
    | (?:\S+:[ ])?(?:rustc-)?LLVM[ ]ERROR:[ ]out[ ]of[ ]memory
    | terminate[ ]called[ ]after[ ]throwing[ ]an[ ]instance[ ]of[ ]'std::bad_alloc'
    | .*:[ ]catastrophic[ ]error:[ ]out[ ]of[ ]memory$                           # cudafe++
    | (?:ptxas|nvlink|fatbinary)[ ]fatal\s*:[ ]Memory[ ]allocation[ ]failure
    | memory[ ]allocation[ ]of[ ]\d+[ ]bytes[ ]failed                            # Rust programs
    | (?!.*\b(?:warning|note|remark):[ ])\S+:[ ].*\b[Mm]emory[ ]exhausted$       # binutils
    | (?!.*\b(?:warning|note|remark):[ ])\S+:[ ].*\bCannot[ ]allocate[ ]memory$  # ENOMEM, strerror(3)
    | MemoryError$
    """

_AFTERMATH = r"""
      collect2:[ ]error:[ ]ld[ ]returned
    | lto-wrapper:[ ](?:fatal[ ])?error:[ ].*[ ]returned[ ]\d+[ ]exit[ ]status$
    | \S+:[ ]error:[ ]lto-wrapper[ ]failed$
    | \S+:[ ]error:[ ](?:clang[ ]frontend|linker|assembler)[ ]command[ ]failed[ ]
    | \d+[ ](?:catastrophic[ ])?errors?[ ]detected[ ]in[ ]the[ ]compilation
    | ptxas[ ]fatal\s*:[ ]Ptx[ ]assembly[ ]aborted[ ]due[ ]to[ ]errors
    | (?:error|warning):[ ](?:could[ ]not[ ]compile|build[ ]failed)
    | (?:error|ERROR):[ ](?:subprocess-exited|metadata-generation|[Ff]ailed|command)
    """
"""Only reports that something earlier has failed."""

_ERROR = r"""
      (?![^'"|]*\b(?:warning|note|remark):[ ])
      (?:[^\s'"|][^'"|]*(?::[ ]|\)[ ]?:[ ]))?
          (?:fatal[ ]|catastrophic[ ]|internal[ ]compiler[ ])?error(?:\[E\d+\])?\s*(?:\#\S+)?:
    | (?:nvcc|ptxas|cicc|nvlink|fatbinary)[ ](?:fatal|error)\s*:
    | CMake[ ]Error\b
    | ninja:[ ](?:error|fatal):
    | .*\bundefined[ ]reference[ ]to\b
    | .*\*\*\*[ ]No[ ]rule[ ]to[ ]make[ ]target\b
    """


@cache
def _verbose(pattern: str) -> re.Pattern[str]:
    """Compile it when a line is first examined: a build's start need not wait for that."""
    return re.compile(pattern, re.VERBOSE)


def said_by(line: str) -> Said:
    """Return what one line of a tool's output means; leading spaces count, because diagnostics have none."""
    line = line.rstrip()
    if len(line) > MAX_LINE:
        line = line[: MAX_LINE // 2] + line[-MAX_LINE // 2 :]
    if _verbose(_KILLED).match(line):
        return "killed"
    if _verbose(_EXHAUSTED).match(line):
        return "exhausted"
    return "error" if _verbose(_ERROR).match(line) and not _verbose(_AFTERMATH).match(line) else ""


def is_signalled(line: str) -> bool:
    """Return whether one line of a tool's output only says that a signal ended a part of it, as a stop does."""
    line = line.rstrip()[:MAX_LINE]
    return _verbose(_SIGNALLED).match(line) is not None or said_by(line) == "killed"


_COMPILER = re.compile(
    r"""(?:^|[\s/;&|"'(])(?:[\w.]+-)*(?:g\+\+|gcc|c\+\+|cc|clang\+\+|clang|nvcc|hipcc|gfortran|rustc|ld)(?:-[\d.]+)?\s"""
)


def is_compiler(command: str) -> bool:
    """Return whether a command line runs a compiler or linker: those never fail silently."""
    return _COMPILER.search(command) is not None


_MAKE_TARGET = re.compile(r"\S*make(?:\[\d+\])?: \*\*\* \[(?:[^\s:\]]+:\d+: )?([^\]]+)\] (?:Killed|Error (?!2$)\d+)$")


def make_target(line: str) -> str | None:
    """Return the target whose own command failed, if make says so; `Error 2` comes from a nested make."""
    match = _MAKE_TARGET.match(line.rstrip()) if len(line) <= MAX_LINE else None
    return match[1] if match else None
