"""What a build command reads first and does not find, so that it would fail at once.

Only what its words and the file system show. Unaware of who asks.
"""

from __future__ import annotations

import os
from collections.abc import Sequence

from stoker.launch.window import is_make, is_ninja
from stoker.sense.commands.scheduler_args import Arguments, make_arguments, ninja_arguments

MAKEFILES = ("GNUmakefile", "makefile", "Makefile")
"""What GNU make looks for, in its order."""


def missing_input(words: Sequence[str], cwd: str) -> str:
    """Return what this command would not find in `cwd`, with a remedy; nothing if it can begin."""
    name = os.path.basename(words[0])
    if not os.path.isdir(cwd):
        return f"there is no folder {cwd}"
    if is_ninja(name):
        return _without_folder(arguments := ninja_arguments(words), cwd) or _without_manifest(arguments, cwd)
    if is_make(name):
        return _without_folder(arguments := make_arguments(words), cwd) or _without_makefile(arguments, cwd)
    if (name, *words[1:2]) == ("cmake", "--build") and len(words) > 2:
        return _without_cache(os.path.join(cwd, words[2]), words[2])
    return ""


def _without_folder(arguments: Arguments, cwd: str) -> str:
    folder = os.path.join(cwd, arguments.directory)
    return "" if os.path.isdir(folder) else f"there is no folder {arguments.directory} (-C) in {cwd}"


def _without_manifest(arguments: Arguments, cwd: str) -> str:
    folder = os.path.join(cwd, arguments.directory)
    if arguments.builds_nothing or os.path.exists(os.path.join(folder, arguments.manifest)):
        return ""
    return f"there is no {arguments.manifest} in {os.path.normpath(folder)}; configure the build first"


def _without_makefile(arguments: Arguments, cwd: str) -> str:
    """Return nothing for targets without a makefile: make has rules of its own."""
    folder = os.path.join(cwd, arguments.directory)
    if arguments.builds_nothing or arguments.targets or arguments.manifest != "Makefile":
        return ""
    if any(os.path.exists(os.path.join(folder, name)) for name in MAKEFILES):
        return ""
    return f"there is no makefile in {os.path.normpath(folder)}, and no target is named"


def _without_cache(folder: str, named: str) -> str:
    if not os.path.isdir(folder):
        return f"there is no folder {named}; configure it first: cmake -S . -B {named}"
    if not os.path.exists(os.path.join(folder, "CMakeCache.txt")):
        return f"there is no CMakeCache.txt in {named}; configure it first: cmake -S . -B {named}"
    return ""
