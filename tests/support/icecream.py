"""A real icecream in network namespaces of a test's own: a scheduler and a daemon `near`, and another daemon `far`.

The scheduler broadcasts on every interface, so none of it may ever run where the machine's own interfaces are.
Knows nothing of stoker. Skips, with the reason, where the machine cannot run it.
"""

from __future__ import annotations

import contextlib
import os
import pwd
import shutil
import subprocess
import tempfile
import threading
import time
from pathlib import Path

import psutil
import pytest

PROGRAMS = ("icecc", "iceccd", "icecc-scheduler", "ip", "nsenter", "unshare")
PLACES = "/usr/sbin:/sbin:/usr/local/sbin"
"""Where Debian puts daemons, which is not on everybody's PATH."""

USER = "icecc"
"""Whom the daemons become; Debian's package makes it."""

NEAR, FAR = "10.77.0.1", "10.77.0.2"
PORT = 8765
"""The scheduler's own; its text port is the next one."""

PATIENCE = 120.0
"""Seconds in which both daemons are listed with a load that lets them have jobs; 25 on an idle machine."""


def obstacle() -> str:
    """Why it cannot run here, empty if it can."""
    if os.getuid() != 0:
        return "network namespaces and icecream's daemons need root"
    missing = [name for name in PROGRAMS if not _where(name)]
    if missing:
        return f"{', '.join(missing)} not installed"
    return "" if any(user.pw_name == USER for user in pwd.getpwall()) else f"there is no user {USER}"


def _where(name: str) -> str:
    return shutil.which(name, path=f"{os.environ['PATH']}:{PLACES}") or ""


class CalmMachine:
    """A file in the place of /proc/stat by which two CPUs are idle: icecream gives no job to a busy machine, which the
    one that runs tests may be for hours."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._ended = threading.Event()
        self._write(0)
        self._thread = threading.Thread(target=self._go_on, daemon=True)
        self._thread.start()

    def __str__(self) -> str:
        return str(self._path)

    def _go_on(self) -> None:
        began = time.monotonic()
        while not self._ended.wait(0.1):
            self._write(round((time.monotonic() - began) * 100))

    def _write(self, ticks: int) -> None:
        """In place, and always as long: a reader sees the old figures or the new ones."""
        both = f"cpu  0 0 0 {2 * ticks:012} 0 0 0 0 0 0\n"
        each = "".join(f"cpu{n} 0 0 0 {ticks:012} 0 0 0 0 0 0\n" for n in range(2))
        with self._path.open("r+b" if self._path.exists() else "w+b", buffering=0) as file:
            file.write((both + each).encode())

    def end(self) -> None:
        self._ended.set()
        self._thread.join()


class Icecream:
    """One scheduler and two daemons, `near` with as many places as `near_jobs`; a context manager that ends them.

    `prefix` are words before a command that has to run beside the scheduler; `env` is what its compilers need.
    """

    def __init__(self, near_jobs: int = 1, far_jobs: int = 3) -> None:
        if why := obstacle():
            pytest.skip(why)
        # Not below a test's own folder: the daemons give up root, and nobody else may enter that.
        self.folder = folder = Path(tempfile.mkdtemp(prefix="stoker-ice-"))
        folder.chmod(0o755)
        shutil.chown(folder, USER)
        self.calm = CalmMachine(folder / "stat")
        self._jobs = {"near": near_jobs, "far": far_jobs}
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self.settings = {"USE_SCHEDULER": f"{NEAR}:{PORT}"}
        self.env = {**os.environ, **self.settings}

    def __enter__(self) -> Icecream:
        try:
            self._make_network()
            self.start_scheduler()
            for name in ("far", "near"):
                self.start_daemon(name)
            self._wait()
        except BaseException:
            self.__exit__()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        for name in reversed(tuple(self._running)):
            self.stop(name)
        self.calm.end()
        shutil.rmtree(self.folder, ignore_errors=True)

    # -- the network -------------------------------------------------------------------------------------------

    def _make_network(self) -> None:
        """Two namespaces, each held by a process of its own, with a cable between them: they end with these."""
        for name in ("near", "far"):
            mounts = f"mount -t tmpfs none /run && mkdir /run/icecc && chown {USER} /run/icecc"
            calm = f"mount --bind {self.calm} /proc/stat" if name == "far" else "true"
            hold = f"{mounts} && {calm} && exec sleep infinity"
            holder = self._running[f"{name}-net"] = subprocess.Popen(["unshare", "-m", "-n", "--", "sh", "-c", hold])
            deadline = time.monotonic() + 10
            while Path(f"/proc/{holder.pid}/comm").read_text() != "sleep\n":
                if time.monotonic() > deadline:
                    pytest.skip("no network namespaces here")
                time.sleep(0.01)
        far = str(self._running["far-net"].pid)
        self._ip("near", "link", "add", "v0", "type", "veth", "peer", "name", "v0", "netns", far)
        for name, address in (("near", NEAR), ("far", FAR)):
            self._ip(name, "link", "set", "lo", "up")
            self._ip(name, "addr", "add", f"{address}/24", "dev", "v0")
            self._ip(name, "link", "set", "v0", "up")

    def inside(self, name: str) -> list[str]:
        """The words before a command that has to run in a namespace, where daemons have a /run of their own."""
        return ["nsenter", "-t", str(self._running[f"{name}-net"].pid), "-n", "-m", "--wd=.", "--"]

    @property
    def prefix(self) -> list[str]:
        """The words before a command that has to run beside the scheduler."""
        return self.inside("near")

    def _ip(self, name: str, *words: str) -> None:
        made = subprocess.run([*self.inside(name), _where("ip"), *words], capture_output=True, check=False)
        if made.returncode != 0:
            pytest.skip(f"no network of our own: {made.stderr.decode(errors='replace').strip()}")

    # -- the daemons -------------------------------------------------------------------------------------------

    def start_scheduler(self) -> None:
        """Start the scheduler (again)."""
        self._start("scheduler", "near", "icecc-scheduler", "-n", "stokertest", "-p", str(PORT))

    def start_daemon(self, name: str) -> None:
        """Start a daemon (again)."""
        base = self.folder / f"{name}-envs"
        base.mkdir(exist_ok=True)
        shutil.chown(base, USER)
        words = ("-n", "stokertest", "-s", f"{NEAR}:{PORT}", "-m", str(self._jobs[name]), "-N", name, "-b", str(base))
        self._start(name, name, "iceccd", *words)

    def _start(self, name: str, where: str, program: str, *words: str) -> None:
        log = self.folder / f"{name}.log"
        self._running[name] = subprocess.Popen(
            [*self.inside(where), _where(program), *words, "-l", str(log), "-v", "-v", "-v"],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )

    def stop(self, name: str) -> None:
        """Kill a daemon, or the scheduler."""
        process = self._running.pop(name)
        below = psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []
        process.kill()
        process.wait()
        for child in below:
            with contextlib.suppress(psutil.NoSuchProcess):
                child.kill()

    def _wait(self) -> None:
        deadline = time.monotonic() + PATIENCE
        while True:
            listed = self.ask("listcs")
            if all(f" {name} (" in listed for name in self._jobs) and "load=1000" not in listed:
                return
            if time.monotonic() > deadline:
                log = "".join(file.read_text(errors="replace")[-400:] for file in self.folder.glob("*.log"))
                pytest.skip(f"no icecream: {listed} {log}")
            time.sleep(0.5)

    # -- asking ------------------------------------------------------------------------------------------------

    def ask(self, command: str) -> str:
        """What the scheduler answers at its text port; empty where it does not."""
        asking = f"exec 3<>/dev/tcp/{NEAR}/{PORT + 1}; printf '{command}\\nquit\\n' >&3; timeout 5 cat <&3"
        with contextlib.suppress(subprocess.TimeoutExpired):
            return subprocess.run(
                [*self.prefix, "bash", "-c", asking], capture_output=True, timeout=10, check=False
            ).stdout.decode(errors="replace")
        return ""
