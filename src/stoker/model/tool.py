"""The kinds of jobs. A module of its own, for programs that start often and need nothing else of the model."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

Tool = Literal["cxx", "nvcc", "link", "archive", "other"]
"""What a job does, as far as its command line shows."""

TOOL_NAMES: Mapping[str, str] = {"cxx": "c++", "nvcc": "nvcc", "link": "link", "archive": "ar", "other": "other"}
"""What people read, but for what compiles C: see `tool_name`."""

COMPILERS: frozenset[str] = frozenset({"cxx", "nvcc"})
"""Tools that compile a source, whose work a compiler cache can replace."""

C_OBJECTS = (".c.o", ".c.obj", ".c.lo", ".S.o", ".s.o", ".asm.o")
"""How the objects of C and assembler end in CMake's and Meson's build folders."""

_BUILD_TOOL = re.compile(
    r"""(?:^|[\s/;&|"'(])(?:(?:ninja|samu|g?make|pip3?|meson)(?:\s|$)|cmake\s+--build\s)|\bsetup\.py\s"""
)


def tool_name(tool: str, output: str, *, is_c: bool = False) -> str:
    """Return what people read of a job's tool: `cc` if it compiles C, as the output's name or (`is_c`) its compiler has
    shown."""
    return "cc" if tool == "cxx" and (is_c or output.endswith(C_OBJECTS)) else TOOL_NAMES[tool]


def is_build_tool(command: str) -> bool:
    """Return whether a command line runs a nested build, whose failed steps are reported one by one."""
    return _BUILD_TOOL.search(command) is not None
