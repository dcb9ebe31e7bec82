"""Runs a command under a real kernel with cgroup v2 that is booted for it alone, in a second: user-mode Linux.

That is Debian's package user-mode-linux, a kernel that runs as an ordinary process. Its files are this machine's, with
a layer above them that takes every write and is gone afterwards; only the folder for results is shared. It has one CPU,
no swap and no PSI. Knows nothing of stoker; `uml_init` is what happens inside.
"""

from __future__ import annotations

import contextlib
import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

KERNEL = "linux.uml"
OVERLAY = "/usr/lib/uml/modules/*/kernel/fs/overlayfs/overlay.ko"
_INIT = Path(__file__).resolve().with_name("uml_init.py")
_SHIM = _INIT.with_name("uml_xstate.c")
_SHARED_MEMORY = Path("/dev/shm")


class NoKernelError(Exception):
    """Why no kernel can be booted here."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """How the command ended (None: it did not, in the time that it had), and what kernel and command printed."""

    status: int | None
    console: str


def missing() -> str:
    """What keeps this machine from booting one; "" if nothing does."""
    if platform.machine() != "x86_64":
        return f"user-mode Linux is for x86_64, and this is {platform.machine()}"
    if shutil.which(KERNEL) is None:
        return f"{KERNEL} is not installed: apt-get install user-mode-linux"
    if not list(Path("/").glob(OVERLAY[1:])):
        return f"{OVERLAY} is not there: apt-get install user-mode-linux"
    if os.geteuid() != 0:
        return "its root would be no root: its files belong to whoever boots it; boot it as root"
    return ""


def boot(
    command: Sequence[str],
    results: Path,
    *,
    user: str = "",
    readable: Sequence[Path] = (),
    environment: Mapping[str, str] | None = None,
    memory_mib: int = 3072,
    seconds: float = 600.0,
) -> Outcome:
    """Run `command` inside, as root or as a new account named `user`, who can read the folders `readable`.

    What it writes into the folder `results` is found there afterwards; its working folder is the caller's. Raises
    NoKernelError.
    """
    if why := missing():
        raise NoKernelError(why)
    results.mkdir(parents=True, exist_ok=True)
    order = {
        "command": list(command),
        "user": user,
        "readable": [str(path) for path in readable],
        "environment": dict(environment or {}),
        "cwd": str(Path.cwd()),
        "results": str(results),
    }
    (results / "status").unlink(missing_ok=True)
    (results / "order.json").write_text(json.dumps(order))
    init = results / "init"
    init.write_text(f"#!/bin/sh\nexec {shlex.join([sys.executable, '-I', '-S', str(_INIT), str(results)])}\n")
    init.chmod(0o755)
    with tempfile.TemporaryDirectory(prefix="uml-", dir=_memory_folder(memory_mib)) as folder:
        line = [*_kernel_line(init, memory_mib), f"uml_dir={folder}/"]
        _run(line, _register_shim(Path(folder)), results / "console", folder, seconds)
    status = results / "status"
    console = (results / "console").read_text(errors="replace")
    return Outcome(int(status.read_text()) if status.exists() else None, console)


def _kernel_line(init: Path, memory_mib: int) -> list[str]:
    """`con0` is the console's output; the root is this machine's, which nothing inside writes to."""
    return [KERNEL, f"mem={memory_mib}M", "root=none", "rootfstype=hostfs", "hostfs=/", "ro", f"init={init}",
            "con=null", "con0=null,fd:1", "quiet", "panic=-1"]  # fmt: skip


def _memory_folder(memory_mib: int) -> str | None:
    """Where the kernel's memory, a file that has no name, does best: in memory, where there is room for it."""
    with contextlib.suppress(OSError):
        found = os.statvfs(_SHARED_MEMORY)
        if found.f_bavail * found.f_frsize > (memory_mib + 64) << 20:
            return str(_SHARED_MEMORY)
    return None


def _register_shim(folder: Path) -> str:
    """The library of uml_xstate.c, compiled; "" where there is no compiler: many processors need none."""
    library = folder / "xstate.so"
    command = ["cc", "-O1", "-shared", "-fPIC", "-o", str(library), str(_SHIM)]
    with contextlib.suppress(OSError):
        if subprocess.run(command, check=False, capture_output=True).returncode == 0:
            return str(library)
    return ""


def _run(kernel: Sequence[str], shim: str, console: Path, folder: str, seconds: float) -> None:
    """The kernel to its end, or the end of its time. All its processes, which it traces, are in one session."""
    environment = {**os.environ, "TMPDIR": folder} | ({"LD_PRELOAD": shim} if shim else {})
    with (
        console.open("wb") as out,
        subprocess.Popen(
            kernel,
            env=environment,
            stdin=subprocess.DEVNULL,
            stdout=out,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        ) as process,
    ):
        try:
            with contextlib.suppress(subprocess.TimeoutExpired):
                process.wait(seconds)
        finally:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
