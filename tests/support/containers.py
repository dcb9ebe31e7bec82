"""Real containers without a registry: podman with runc, and an image of links into the host's /usr.

Knows nothing of stoker. Skips, with the reason, where the machine cannot run one.
"""

from __future__ import annotations

import functools
import io
import json
import os
import shutil
import subprocess
import tarfile
import time
from pathlib import Path

import pytest

IMAGE = "localhost/stoker-test:1"
FOLDERS = ("usr", "tmp", "etc", "proc", "sys", "dev", "w", "var/tmp", "root", "run")

CONF = """\
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=30000:30000"]
netns = "host"
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
"""
"""What lets podman run as root here: crun refuses control groups of both versions, and wants to raise limits."""


def image() -> bytes:
    """The image as a tar file: 11 kB, for /usr comes from the host."""
    file = io.BytesIO()
    with tarfile.open(fileobj=file, mode="w") as tar:
        for name in FOLDERS:
            folder = tarfile.TarInfo(name)
            folder.type, folder.mode = tarfile.DIRTYPE, 0o755
            tar.addfile(folder)
        for name in ("bin", "sbin", "lib", "lib64"):
            link = tarfile.TarInfo(name)
            link.type, link.linkname = tarfile.SYMTYPE, f"usr/{name}"
            tar.addfile(link)
    return file.getvalue()


@functools.cache
def obstacle() -> str:
    """Why no container runs here, empty if one does."""
    missing = [name for name in ("podman", "runc") if shutil.which(name) is None]
    if missing:
        return f"{' and '.join(missing)} not installed"
    if os.getuid() != 0:
        return "needs root for runc with version 1 control groups"
    return ""


STORAGE = """\
[storage]
driver = "vfs"
graphroot = "{folder}/images"
runroot = "{folder}/run"
"""
"""Images and containers of a test's own, in plain folders: nothing stays mounted behind it."""


class Podman:
    """podman with settings, images and containers of a test's own, below `folder`, which should be in memory."""

    def __init__(self, folder: Path) -> None:
        if why := obstacle():
            pytest.skip(f"no containers: {why}")
        (folder / "containers.conf").write_text(CONF)
        (folder / "storage.conf").write_text(STORAGE.format(folder=folder))
        self.settings = {
            "CONTAINERS_CONF": str(folder / "containers.conf"),
            "CONTAINERS_STORAGE_CONF": str(folder / "storage.conf"),
        }
        self.env = {**os.environ, **self.settings}
        made = self("import", "-q", "-", IMAGE.partition("/")[2], stdin=image())
        if made.returncode == 0:
            made = self("run", "--rm", "-v", "/usr:/usr:ro", IMAGE, "true")
        if made.returncode != 0:
            pytest.skip(f"no containers: {made.stderr.decode(errors='replace').strip()[-300:]}")

    def __call__(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["podman", *words], env=self.env, input=stdin, capture_output=True, check=False, timeout=120
        )

    def run_words(self, folder: Path, *options: str) -> list[str]:
        """The command line that runs something in a container with `folder` as its own working folder /w."""
        mounts = ["-v", "/usr:/usr:ro", "-v", f"{folder}:/w", "-w", "/w"]
        return ["podman", "run", "--rm", *mounts, *options, IMAGE]

    def names(self) -> list[str]:
        """The names of all containers, ended ones too."""
        listed = json.loads(self("ps", "-a", "--format", "json").stdout or b"[]")
        return [str(one["Names"][0]) for one in listed]


DAEMON = {
    "bridge": "none",
    "iptables": False,
    "storage-driver": "vfs",
    "default-ulimits": {"nofile": {"Name": "nofile", "Hard": 4096, "Soft": 4096}},
}


class Docker:
    """A docker daemon of a test's own, below `folder`; a context manager that ends it."""

    def __init__(self, folder: Path) -> None:
        missing = [name for name in ("dockerd", "/usr/bin/docker", "runc") if shutil.which(name) is None]
        if missing or os.getuid() != 0:
            pytest.skip(f"no docker: {' and '.join(missing) + ' not installed' if missing else 'needs root'}")
        places = {name: str(folder / name) for name in ("data-root", "exec-root", "pidfile")}
        self.settings = {"DOCKER_HOST": f"unix://{folder}/docker.sock"}
        self.env = {**os.environ, **self.settings}
        conf = folder / "daemon.json"
        conf.write_text(json.dumps({**DAEMON, **places, "hosts": [self.settings["DOCKER_HOST"]]}))
        self.log = folder / "dockerd.log"
        with self.log.open("wb") as log:
            self._daemon = subprocess.Popen(["dockerd", "--config-file", str(conf)], stdout=log, stderr=log)

    def __call__(self, *words: str, stdin: bytes = b"") -> subprocess.CompletedProcess[bytes]:
        return subprocess.run(
            ["/usr/bin/docker", *words], env=self.env, input=stdin, capture_output=True, check=False, timeout=120
        )

    def __enter__(self) -> Docker:
        deadline = time.monotonic() + 60
        while self("info").returncode != 0 and self._daemon.poll() is None and time.monotonic() < deadline:
            time.sleep(0.2)
        made = self("import", "-", IMAGE.partition("/")[2], stdin=image())
        if made.returncode != 0:
            self.__exit__()
            pytest.skip(f"no docker: {self.log.read_text(errors='replace').strip()[-300:]}")
        return self

    def __exit__(self, *_: object) -> None:
        for name in self.names():
            self("rm", "-f", name)
        self._daemon.terminate()
        self._daemon.wait(60)

    def run_words(self, folder: Path, *options: str) -> list[str]:
        """The command line that runs something in a container with `folder` as its own working folder /w."""
        mounts = ["--network", "none", "-v", "/usr:/usr:ro", "-v", f"{folder}:/w", "-w", "/w"]
        return ["/usr/bin/docker", "run", "--rm", *mounts, *options, IMAGE.partition("/")[2]]

    def names(self) -> list[str]:
        """The names of all containers, ended ones too."""
        return self("ps", "-a", "--format", "{{.Names}}").stdout.decode().split()
