"""The control groups of containers by the paths that real machines give them, seen from outside."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from stoker.sense.machine.cgroup import find_cgroups
from stoker.sense.machine.machine import MachineReader
from stoker.sense.machine.oom import KernelLog, OomCounter
from stoker.sense.proc.containers import container_of, root_of

GIB = 2**30
PODMAN, DOCKER = (
    "3f084b4c7b789c1a0f174da3fcd339e31125d3096b3ff46a0bef4fad71d09362",
    "47335b04ebb4aefdc353dda62ddd38e5e1e00fc1372f0c8d0138417f0ccb9e6c",
)
ROOTLESS = f"/user.slice/user-1000.slice/user@1000.service/user.slice/libpod-{PODMAN}.scope"

VERSION_2 = {
    "rootless podman": (f"{ROOTLESS}/container", ROOTLESS, PODMAN),
    "podman of root, systemd": (f"/machine.slice/libpod-{PODMAN}.scope/container",) * 2 + (PODMAN,),
    "docker, systemd": (f"/system.slice/docker-{DOCKER}.scope",) * 2 + (DOCKER,),
    "docker, cgroupfs": (f"/docker/{DOCKER}",) * 2 + (DOCKER,),
}
VERSION_1 = {
    "podman of root, cgroupfs": (f"/libpod_parent/libpod-{PODMAN}", PODMAN),
    "docker, cgroupfs": (f"/docker/{DOCKER}", DOCKER),
    "docker, systemd": (f"/system.slice/docker-{DOCKER}.scope", DOCKER),
}


class FakeHost:
    """A /proc with a process of a container, 7, beside ours, and the hierarchies as we have them mounted."""

    def __init__(self, root: Path) -> None:
        self.root, self.proc = root, root / "proc"
        for pid, namespace in (("7", "inside"), ("self", "outside")):
            self.write(f"proc/{pid}/ns/mnt", namespace)
        (self.proc / "7" / "root").symlink_to("/")
        (self.proc / "self" / "root").symlink_to("/")

    def write(self, path: str, text: str) -> None:
        target = self.root / path.lstrip("/")
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def mount(self, kind: str, options: str, inner_root: str) -> None:
        """`inner_root` is what the container has mounted in the place of the whole."""
        point = self.root / "cg"
        point.mkdir(exist_ok=True)
        for pid, root in (("self", "/"), ("7", inner_root)):
            self.write(f"proc/{pid}/mountinfo", f"30 1 0:30 {root} {point} rw shared:1 - {kind} {kind} {options}\n")


@pytest.fixture
def host(tmp_path: Path) -> FakeHost:
    return FakeHost(tmp_path)


@pytest.mark.parametrize(("path", "limited", "name"), VERSION_2.values(), ids=VERSION_2.keys())
def test_a_limit_of_version_2_is_found_from_outside(host: FakeHost, path: str, limited: str, name: str) -> None:
    host.mount("cgroup2", "rw", "/../../..")
    host.write("proc/7/cgroup", f"0::{path}\n")
    for folder, limit in ((path, "max"), (limited, str(4 * GIB))):
        host.write(f"cg{folder}/memory.max", limit)
        host.write(f"cg{folder}/memory.high", "max")
        host.write(f"cg{folder}/memory.current", str(GIB))
        host.write(f"cg{folder}/memory.stat", "anon 5\ninactive_file 0\n")
    host.write(f"cg{path}/memory.events", "low 0\noom 4\noom_kill 3\noom_group_kill 0\n")
    groups = find_cgroups(7, host.proc)
    assert [limit.limit for limit in groups.memory_limits()] == [4 * GIB]
    assert container_of(7, host.proc) == name[:12]
    counter = OomCounter(find_cgroups(9, host.proc), host.proc)
    counter.include(groups, since=0.0)
    assert counter.read() == 3


@pytest.mark.parametrize(("path", "name"), VERSION_1.values(), ids=VERSION_1.keys())
def test_a_limit_of_version_1_is_found_from_outside(host: FakeHost, path: str, name: str) -> None:
    host.mount("cgroup", "rw,memory", path)
    host.write("proc/7/cgroup", f"8:pids:{path}\n4:memory:{path}\n0::/\n")
    host.write(f"cg{path}/memory.limit_in_bytes", str(4 * GIB))
    host.write(f"cg{path}/memory.usage_in_bytes", str(GIB))
    host.write(f"cg{path}/memory.stat", f"hierarchical_memory_limit {4 * GIB}\ntotal_inactive_file 0\n")
    host.write(f"cg{path}/memory.oom_control", "oom_kill_disable 0\nunder_oom 0\noom_kill 7\n")
    groups = find_cgroups(7, host.proc)
    assert [limit.limit for limit in groups.memory_limits()] == [4 * GIB]
    assert container_of(7, host.proc) == name[:12]
    assert root_of(7, host.proc) == f"{host.proc}/7/root"


def test_the_container_binds_while_it_is_watched_and_its_kills_count_when_it_is_gone(host: FakeHost) -> None:
    path = VERSION_1["docker, cgroupfs"][0]
    test_a_limit_of_version_1_is_found_from_outside(host, path, DOCKER)
    host.write("proc/meminfo", f"MemTotal: {64 * 2**20} kB\nMemAvailable: {60 * 2**20} kB\n")
    reader = MachineReader(9, str(host.root), host.proc)
    assert reader.memory(0).limit == 64 * GIB
    reader.watch([7])
    assert reader.memory(0).limit == 4 * GIB
    counter = OomCounter(find_cgroups(9, host.proc), host.proc)
    counter.include(find_cgroups(7, host.proc), since=0.0)
    assert counter.read() == 7
    (host.root / f"cg{path}/memory.oom_control").unlink()
    assert counter.read() == 7
    reader.watch([])
    assert reader.memory(0).limit == 64 * GIB


def test_of_a_container_that_was_there_before_only_what_comes_counts(host: FakeHost) -> None:
    path = VERSION_1["docker, cgroupfs"][0]
    test_a_limit_of_version_1_is_found_from_outside(host, path, DOCKER)
    counter = OomCounter(find_cgroups(9, host.proc), host.proc)
    counter.include(find_cgroups(7, host.proc), since=2.0**40)
    assert counter.read() == 0
    host.write(f"cg{path}/memory.oom_control", "oom_kill 9\n")
    assert counter.read() == 2


def test_the_kernels_log_is_believed_of_containers_that_are_ours() -> None:
    """A pipe that keeps records apart, as /dev/kmsg does; the words are those of a machine with rootless podman."""
    out, into = os.pipe2(os.O_DIRECT | os.O_NONBLOCK)
    kernel = KernelLog(Path(f"/proc/self/fd/{out}"), "/user.slice/session-1.scope")
    kernel.include(ROOTLESS)
    for pid, group in ((41, f"{ROOTLESS}/container"), (42, f"/docker/{DOCKER}"), (43, "/user.slice/session-1.scope")):
        place = f"oom-kill:constraint=CONSTRAINT_MEMCG,task_memcg={group},task=cc1plus,pid={pid},uid=1"
        death = f"Memory cgroup out of memory: Killed process {pid} (cc1plus) total-vm:9kB, anon-rss:2048kB"
        for text in (place, death):
            os.write(into, f"3,1,1,-;{text}\n".encode())
    assert [victim.pid for victim in kernel.victims()] == [41, 43]
    kernel.close()
    os.close(out)
    os.close(into)
