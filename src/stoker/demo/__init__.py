"""Generates a small real ninja project whose jobs compete for memory: C++ if a compiler works, otherwise Python work.

Unaware of how it is built and shown. The same arguments on the same machine give the same files.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import tempfile
from pathlib import Path
from typing import NamedTuple

from stoker.demo.cxx import cxx_project
from stoker.demo.python import python_project
from stoker.demo.sizing import CXX_BUDGET, PYTHON_BUDGET, cxx_plan, python_plan

_PROBE = (
    "#include <map>\n#include <string>\nint main() { return static_cast<int>(std::map<int, std::string>{}.size()); }\n"
)
_PROBE_SECONDS = 60


class Demo(NamedTuple):
    """The command that builds it, and the memory in bytes for which its jobs compete."""

    command: tuple[str, ...]
    budget: int


def make_demo(
    folder: Path, ninja: str, *, seconds: float, available: int, fail: bool = False, compiler: str | None = None
) -> Demo:
    """Write the project into `folder`, to be built by `ninja`.

    It takes about `seconds` with the budget that it names: on any machine less than its jobs want side by side, and
    never more than half of the `available` bytes. `fail` puts one real error into it. `compiler` is a C++ compiler's
    path, "" for Python work, None for what works here. Raises OSError where the folder cannot be written.
    """
    if compiler is None:
        compiler = "" if available < 2 * CXX_BUDGET else find_compiler()
    if compiler:
        plan = cxx_plan(seconds, min(available // 2, CXX_BUDGET))
        files = cxx_project(plan, compiler, fail=fail)
    else:
        plan = python_plan(seconds, min(available // 2, PYTHON_BUDGET))
        files = python_project(plan, fail=fail)
    for name, text in files.items():
        path = folder / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return Demo((ninja, "-C", str(folder)), plan.budget)


def find_compiler() -> str:
    """Return the path of a C++ compiler that can compile and link here; "" if there is none."""
    for name in (os.environ.get("CXX", ""), "g++", "clang++", "c++"):
        path = shutil.which(name) if name else None
        if path is not None and _works(path):
            return path
    return ""


def _works(compiler: str) -> bool:
    """Return whether a compiler has its headers and its linker too, which a lone compiler package lacks."""
    with tempfile.TemporaryDirectory(prefix="stoker-probe-") as folder:
        source = Path(folder, "probe.cpp")
        source.write_text(_PROBE)
        try:
            run = subprocess.run(
                [compiler, "-std=c++17", str(source), "-o", str(Path(folder, "probe"))],
                capture_output=True,
                timeout=_PROBE_SECONDS,
                check=False,
            )
        except (OSError, subprocess.TimeoutExpired):
            return False
    return run.returncode == 0


def find_ninja() -> str:
    """Return the path of the ninja that came with the extra "demo", else of the system's; "" if there is none."""
    try:
        import ninja
    except ImportError:
        return shutil.which("ninja") or shutil.which("ninja-build") or ""
    return os.path.join(ninja.BIN_DIR, "ninja")
