"""The first process of a user-mode Linux (support.uml): makes a machine of a bare kernel, and runs one command in it.

Standard library alone, without site-packages. The machine has a writable root above the real one, /proc, /sys, /dev and
/run, and control groups of version 2 as systemd lays them out: a login's session for root; for anybody else a subtree
that is delegated to the user manager, with the command in a scope of its own below `app.slice`.
"""

from __future__ import annotations

import ctypes
import glob
import json
import os
import pwd
import subprocess
import sys
import traceback
from pathlib import Path
from typing import Any

OVERLAY = "/usr/lib/uml/modules/*/kernel/fs/overlayfs/overlay.ko"
GROUPS = Path("/sys/fs/cgroup")
LAYER = "/run/layer"
FINIT_MODULE, REBOOT_POWER_OFF, MS_MOVE = 313, 0x4321FEDC, 8192
NO_FILE = 127
"""Exit status for a command that cannot be started, as a shell has it."""

_libc = ctypes.CDLL(None, use_errno=True)


def main(results: str) -> None:
    """Prepare, run, write the status into `results`, and switch the machine off."""
    try:
        status = machine(results)
    except BaseException:  # noqa: BLE001 - the first process must not end: the kernel would panic and say nothing
        traceback.print_exc()
        status = None
    if status is not None:
        Path(results, "status").write_text(str(status))
    sys.stdout.flush()
    os.sync()
    _libc.reboot(REBOOT_POWER_OFF)


def machine(results: str) -> int:
    """The whole life of the machine but its end; the command's exit status."""
    mount("proc", "/proc")
    mount("tmpfs", "/run")
    new_root()
    mount("hostfs", results, option=results)
    order = json.loads(Path(results, "order.json").read_text())
    account = new_account(order["user"]) if order["user"] else pwd.getpwuid(0)
    for path in order["readable"]:
        let_in(Path(path))
    os.chmod(results, 0o777)
    Path("/proc/sys/kernel/dmesg_restrict").write_text(
        "1"
    )  # as distributions have it: only root reads the kernel's log
    return run(order, account, group_of(account))


# -- files -------------------------------------------------------------------------------------------------------------


def mount(kind: str, folder: str, flags: int = 0, option: str = "", source: str = "none") -> None:
    """mount(2); the folder is made if it is not there."""
    os.makedirs(folder, exist_ok=True)
    if _libc.mount(source.encode(), folder.encode(), kind.encode(), flags, option.encode()) != 0:
        raise OSError(ctypes.get_errno(), f"{kind} on {folder}: {os.strerror(ctypes.get_errno())}")


def new_root() -> None:
    """A root that can be written to: the real one below, memory above."""
    with open(glob.glob(OVERLAY)[0], "rb") as module:
        if _libc.syscall(FINIT_MODULE, module.fileno(), b"", 0) != 0:
            raise OSError(ctypes.get_errno(), f"{module.name}: {os.strerror(ctypes.get_errno())}")
    mount("tmpfs", LAYER)
    root, above, work = (f"{LAYER}/{name}" for name in ("root", "above", "work"))
    for folder in (root, above, work):
        os.mkdir(folder)
    mount("overlay", root, option=f"lowerdir=/,upperdir={above},workdir={work}")
    for kind, folder in (
        ("proc", "/proc"), ("sysfs", "/sys"), ("cgroup2", "/sys/fs/cgroup"), ("devtmpfs", "/dev"),
        ("devpts", "/dev/pts"), ("tmpfs", "/dev/shm"), ("tmpfs", "/run"),
    ):  # fmt: skip
        mount(kind, root + folder)
    os.chdir(root)
    mount("", "/", MS_MOVE, source=".")
    os.chroot(".")
    os.chdir("/")


def let_in(folder: Path) -> None:
    """Let everybody read what is below a folder, as a checkout of anybody's own would be."""
    for path in (folder, *folder.parents):
        path.chmod(path.stat().st_mode | 0o055)


# -- accounts and groups -----------------------------------------------------------------------------------------------


def new_account(name: str) -> pwd.struct_passwd:
    """A normal account, as a system's own tool makes it."""
    subprocess.run(["/usr/sbin/useradd", "--create-home", "--shell", "/bin/bash", name], check=True)
    return pwd.getpwnam(name)


def group_of(account: pwd.struct_passwd) -> Path:
    """The control group for the command; memory and processes can be limited from its parent on."""
    slice_ = GROUPS / "user.slice" / f"user-{account.pw_uid}.slice"
    if account.pw_uid == 0:
        return made(slice_ / "session-1.scope")
    manager = slice_ / f"user@{account.pw_uid}.service"
    group = made(manager / "app.slice" / "run-tests.scope")
    for folder in (manager, manager / "app.slice", group):
        for path in (folder, *(folder / n for n in ("cgroup.procs", "cgroup.subtree_control", "cgroup.threads"))):
            os.chown(path, account.pw_uid, account.pw_gid)
    return group


def made(group: Path) -> Path:
    """Make it and all above it, each with its controllers enabled for the next."""
    above = [folder for folder in reversed(group.parents) if folder.is_relative_to(GROUPS)]
    group.mkdir(parents=True)
    for folder in above:
        here = (folder / "cgroup.controllers").read_text().split()
        wanted = [f"+{name}" for name in ("memory", "pids", "cpu", "io") if name in here]
        (folder / "cgroup.subtree_control").write_text(" ".join(wanted))
    return group


# -- the command -------------------------------------------------------------------------------------------------------


def run(order: dict[str, Any], account: pwd.struct_passwd, group: Path) -> int:
    """The command in a login's environment; this process reaps whatever is left to it meanwhile."""
    runtime, temporary = f"/run/user/{account.pw_uid}", f"/var/tmp/{account.pw_name}"
    for folder in (runtime, temporary):
        os.makedirs(folder)
        os.chown(folder, account.pw_uid, account.pw_gid)
        os.chmod(folder, 0o700 if folder == runtime else 0o755)
    environment = {
        "HOME": account.pw_dir, "USER": account.pw_name, "LOGNAME": account.pw_name, "SHELL": "/bin/bash",
        "XDG_RUNTIME_DIR": runtime, "TMPDIR": temporary, "LANG": "C.UTF-8",
        "PATH": "/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
        **order["environment"],
    }  # fmt: skip
    child = os.fork()
    if child == 0:
        try:
            (group / "cgroup.procs").write_text(str(os.getpid()))
            os.setsid()
            os.chdir(order["cwd"])
            os.initgroups(account.pw_name, account.pw_gid)
            os.setgid(account.pw_gid)
            os.setuid(account.pw_uid)
            os.execvpe(order["command"][0], order["command"], environment)
        except OSError as err:
            print(err, file=sys.stderr)
        os._exit(NO_FILE)
    while True:
        pid, status = os.wait()
        if pid == child:
            return os.waitstatus_to_exitcode(status)


if __name__ == "__main__":
    main(sys.argv[1])
