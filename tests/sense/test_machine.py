from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stoker.model.samples import Pressure
from stoker.sense.machine import machine as machine_module
from stoker.sense.machine.cgroup import Cgroups, MemoryLimit, find_cgroups, memory_group
from stoker.sense.machine.cpu import CpuReader, cpu_available
from stoker.sense.machine.disk import DiskReader
from stoker.sense.machine.gpu import GpuReader
from stoker.sense.machine.limits import binding_limit
from stoker.sense.machine.machine import MachineReader
from stoker.sense.machine.mounts import read_mounts
from stoker.sense.machine.oom import OomCounter
from stoker.sense.machine.pressure import parse_pressure, read_pressure

GIB = 2**30
NO_LIBRARY = "libstoker-has-no-such-library.so"


class FakeMachine:
    """A /proc and control group file systems in a folder."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.proc = root / "proc"
        self.mounts: list[str] = []
        self.write("proc/7/mountinfo", "")

    def write(self, path: str, text: str) -> None:
        target = self.root / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(text)

    def mount(self, point: str, kind: str, root: str = "/", options: str = "rw") -> None:
        (self.root / point).mkdir(parents=True, exist_ok=True)
        number = len(self.mounts) + 30
        shown = str(self.root / point).replace(" ", "\\040")
        self.mounts.append(f"{number} 1 0:{number} {root} {shown} rw,relatime shared:1 - {kind} {kind} {options}\n")
        self.write("proc/7/mountinfo", "nonsense\n" + "".join(self.mounts))

    def cgroup(self, text: str) -> None:
        self.write("proc/7/cgroup", text)

    def find(self) -> Cgroups:
        return find_cgroups(7, self.proc)


@pytest.fixture
def fake(tmp_path: Path) -> FakeMachine:
    return FakeMachine(tmp_path / "with space")


def _v2(fake: FakeMachine, folder: str, maximum: str, current: int = 0, high: str = "max", inactive: int = 0) -> None:
    fake.write(f"{folder}/memory.max", maximum + "\n")
    fake.write(f"{folder}/memory.high", high + "\n")
    fake.write(f"{folder}/memory.current", f"{current}\n")
    fake.write(f"{folder}/memory.stat", f"anon 5\nfile 9\ninactive_anon 7\ninactive_file {inactive}\n")


def _v1(
    fake: FakeMachine, folder: str, limit: int, usage: int = 0, inactive: int = 0, hierarchical: int = 2**63 - 4096
) -> None:
    fake.write(f"{folder}/memory.limit_in_bytes", f"{limit}\n")
    fake.write(f"{folder}/memory.usage_in_bytes", f"{usage}\n")
    fake.write(
        f"{folder}/memory.stat",
        f"cache 1\ninactive_file 3\nhierarchical_memory_limit {hierarchical}\ntotal_inactive_file {inactive}\n",
    )


def test_limits_of_version_2_up_the_tree(fake: FakeMachine) -> None:
    fake.mount("cg", "cgroup2")
    fake.cgroup("0::/user.slice/build.scope\n")
    _v2(fake, "cg/user.slice/build.scope", "max", 3 * GIB)
    _v2(fake, "cg/user.slice", str(8 * GIB), 5 * GIB, high=str(6 * GIB), inactive=GIB)
    [limit] = fake.find().memory_limits()
    assert limit == MemoryLimit(str(fake.root / "cg/user.slice"), 6 * GIB, 4 * GIB)
    assert limit.available == 2 * GIB


SCOPE = "user.slice/user-1000.slice/user@1000.service/app.slice/run-r0a1b2.scope"


def login(fake: FakeMachine, **limits: str) -> Cgroups:
    """The groups of a process that `systemd-run --user --scope` has started (systemd.special(7)); GiB by level.

    The root has no limit and no use of its own, and the user manager leaves memory.max of its own groups at "max".
    """
    fake.mount("cg", "cgroup2", options="rw,nsdelegate,memory_recursiveprot")
    fake.cgroup(f"0::/{SCOPE}\n")
    fake.write("cg/memory.stat", "anon 5\ninactive_file 0\n")
    used = {"user": 5, "manager": 4, "app": 2, "scope": 1}
    levels = ("slices", "user", "manager", "app", "scope")
    for level, folder in zip(levels, (SCOPE.split("/")[:n] for n in range(1, 6)), strict=True):
        maximum, _, high = limits.get(level, "max").partition(" high ")
        size = [str(int(text) * GIB) if text.isdigit() else "max" for text in (maximum, high)]
        _v2(fake, "/".join(["cg", *folder]), size[0], used.get(level, 6) * GIB, high=size[1])
    return fake.find()


@pytest.mark.parametrize(
    ("limits", "folder", "limit", "available"),
    [
        ({"scope": "3"}, SCOPE, 3, 2),
        ({"scope": "9", "user": "8"}, "user.slice/user-1000.slice", 8, 3),
        ({"manager": "max high 5", "app": "6"}, "user.slice/user-1000.slice/user@1000.service", 5, 1),
        ({"app": "6 high 3", "user": "30"}, "user.slice/user-1000.slice/user@1000.service/app.slice", 3, 1),
    ],
)
def test_of_the_limits_around_a_users_scope_the_one_that_is_hit_first_binds(
    fake: FakeMachine, limits: dict[str, str], folder: str, limit: int, available: int
) -> None:
    groups = login(fake, **limits)
    found = binding_limit({"MemTotal": 64 * GIB, "MemAvailable": 40 * GIB}, groups.memory_limits())
    assert (found.path, found.limit, found.available) == (
        str(fake.root / "cg" / folder), limit * GIB, available * GIB,
    )  # fmt: skip


def test_a_users_scope_tells_its_own_pressure_and_its_own_deaths(fake: FakeMachine) -> None:
    groups = login(fake)
    assert groups.memory_limits() == []
    assert groups.pressure_folder == fake.root / "cg" / SCOPE
    for folder, count in ((SCOPE, 2), ("user.slice", 9)):
        fake.write(f"cg/{folder}/memory.events", f"low 0\nhigh 3\nmax 7\noom 5\noom_kill {count}\noom_group_kill 0\n")
    assert OomCounter(groups, fake.proc).read() == 2
    assert memory_group(7, fake.proc) == f"/{SCOPE}"


def test_the_widest_group_that_is_killed_as_one_is_known(fake: FakeMachine) -> None:
    groups = login(fake)
    assert groups.killed_as_one() is None
    for folder, value in (("user.slice", 0), (SCOPE.rpartition("/")[0], 1), (SCOPE, 1)):
        fake.write(f"cg/{folder}/memory.oom.group", f"{value}\n")
    assert groups.killed_as_one() == fake.root / "cg" / SCOPE.rpartition("/")[0]


def test_limits_of_version_1(fake: FakeMachine) -> None:
    fake.mount("cg/memory", "cgroup", options="rw,memory")
    fake.mount("cg/cpu", "cgroup", options="rw,cpu,cpuacct")
    fake.cgroup("9:name=systemd:/\n4:memory:/docker/abc\n2:cpu,cpuacct:/docker/abc\n")
    _v1(fake, "cg/memory", 2**63 - 4096)
    _v1(fake, "cg/memory/docker", 2**63 - 4096)
    _v1(fake, "cg/memory/docker/abc", 4 * GIB, 3 * GIB, inactive=GIB)
    fake.write("cg/cpu/docker/abc/cpu.cfs_quota_us", "-1\n")
    fake.write("cg/cpu/docker/abc/cpu.cfs_period_us", "100000\n")
    fake.write("cg/cpu/docker/cpu.cfs_quota_us", "250000\n")
    fake.write("cg/cpu/docker/cpu.cfs_period_us", "100000\n")
    groups = fake.find()
    assert groups.memory_limits() == [MemoryLimit(str(fake.root / "cg/memory/docker/abc"), 4 * GIB, 2 * GIB)]
    assert groups.cpu_quota() == 2.5


def test_a_limit_above_what_a_container_sees(fake: FakeMachine) -> None:
    fake.mount("cg/memory", "cgroup", root="/docker/abc", options="rw,memory")
    fake.cgroup("4:memory:/docker/abc\n")
    _v1(fake, "cg/memory", 2**63 - 4096, GIB, hierarchical=2 * GIB)
    assert [limit.limit for limit in fake.find().memory_limits()] == [2 * GIB]


@pytest.mark.parametrize(
    ("mount_root", "path", "folder"),
    [
        ("/", "/", "cg"),
        ("/", "/a/b", "cg/a/b"),
        ("/docker/x", "/docker/x", "cg"),
        ("/docker/x", "/docker/x/sub", "cg/sub"),
        ("/docker/x", "/docker/xyz", "cg"),
        ("/", "/../elsewhere", "cg"),
        ("/", "/not/visible", "cg"),
        ("/kubepods", "/", "cg"),
    ],
)
def test_where_a_group_shows(fake: FakeMachine, mount_root: str, path: str, folder: str) -> None:
    fake.mount("cg", "cgroup2", root=mount_root)
    for name in ("cg", "cg/a/b", "cg/sub"):
        _v2(fake, name, "max")
    fake.cgroup(f"0::{path}\n")
    assert fake.find().unified[0] == fake.root / folder
    assert fake.find().unified[-1] == fake.root / "cg"


def test_both_versions_at_once(fake: FakeMachine) -> None:
    fake.mount("cg/memory", "cgroup", options="rw,memory")
    fake.mount("cg/unified", "cgroup2")
    fake.cgroup("4:memory:/job\n0::/job\n")
    _v1(fake, "cg/memory/job", 4 * GIB, GIB)
    fake.write("cg/unified/job/cpu.max", "150000 100000\n")
    fake.write("cg/unified/cpu.max", "max 100000\n")
    groups = fake.find()
    assert [limit.limit for limit in groups.memory_limits()] == [4 * GIB]
    assert groups.cpu_quota() == 1.5
    assert groups.pressure_folder == fake.root / "cg/unified/job"


def test_limits_of_processes_of_both_versions_up_the_tree(fake: FakeMachine) -> None:
    fake.mount("cg/pids", "cgroup", options="rw,pids")
    fake.mount("cg/unified", "cgroup2")
    fake.cgroup("8:pids:/docker/abc\n0::/box\n")
    for folder, limit, current in (
        ("pids/docker/abc", "500", 120),
        ("pids/docker", "max", 900),
        ("unified/box", "max", 7),
        ("unified", "300", 100),
    ):
        fake.write(f"cg/{folder}/pids.max", f"{limit}\n")
        fake.write(f"cg/{folder}/pids.current", f"{current}\n")
    assert fake.find().processes_left() == [380, 200]


@pytest.mark.parametrize("text", ["", "garbage\n", "0::\n", "4:memory:/x\n", ":::::\n"])
def test_odd_groups_are_no_limit(fake: FakeMachine, text: str) -> None:
    fake.cgroup(text)
    assert fake.find().memory_limits() == []
    assert fake.find().cpu_quota() is None
    assert fake.find().processes_left() == []


def test_a_vanished_process_has_no_groups(tmp_path: Path) -> None:
    assert find_cgroups(7, tmp_path) == Cgroups()
    assert read_mounts(7, tmp_path) == []


MACHINE = {"MemTotal": 64 * GIB, "MemAvailable": 20 * GIB}


@pytest.mark.parametrize(
    ("limits", "source", "available"),
    [
        ([], "machine", 20 * GIB),
        ([MemoryLimit("/a", 55 * GIB, 40 * GIB)], "/a", 15 * GIB),
        ([MemoryLimit("/a", 55 * GIB, 1 * GIB)], "machine", 20 * GIB),
        ([MemoryLimit("/a", 55 * GIB, 50 * GIB), MemoryLimit("/b", 8 * GIB, 7 * GIB)], "/b", GIB),
        ([MemoryLimit("/a", 100 * GIB, 99 * GIB)], "machine", 20 * GIB),
    ],
)
def test_the_limit_with_the_least_left_binds(limits: list[MemoryLimit], source: str, available: int) -> None:
    binding = binding_limit(MACHINE, limits)
    assert (binding.path, binding.available) == (source, available)


def test_file_pages_that_are_yet_to_be_written_are_in_use(fake: FakeMachine) -> None:
    """They cannot go before a disk has taken them: 2 GiB of 3 are inactive, and half of that is not written yet."""
    fake.mount("cg", "cgroup2")
    fake.mount("cg1", "cgroup", options="rw,memory")
    fake.cgroup("0::/box\n4:memory:/job\n")
    _v2(fake, "cg/box", str(4 * GIB), 3 * GIB, inactive=2 * GIB)
    _v1(fake, "cg1/job", 4 * GIB, 3 * GIB, inactive=2 * GIB, hierarchical=4 * GIB)
    assert [limit.available for limit in fake.find().memory_limits()] == [3 * GIB, 3 * GIB]
    for stat, words in (
        ("cg/box", f"file_dirty {GIB - 4096}\nfile_writeback 4096\n"),
        ("cg1/job", f"total_dirty {GIB - 4096}\ntotal_writeback 4096\n"),
    ):
        with (fake.root / stat / "memory.stat").open("a") as file:
            file.write(words)
    assert [limit.available for limit in fake.find().memory_limits()] == [2 * GIB, 2 * GIB]
    dirty = {"MemTotal": 16 * GIB, "MemAvailable": 9 * GIB, "Dirty": GIB, "Writeback": GIB}
    assert binding_limit(dirty, []).available == 7 * GIB


def test_a_group_of_its_own_tells_what_the_build_holds(fake: FakeMachine, tmp_path: Path) -> None:
    """Anonymous memory, tmpfs, the programs once, and what is yet to be written; not the cache that can go."""
    fake.write("proc/7/stat", "7 (sh) S 1 7 7 0 -1 0 " + "0 " * 44)
    fake.mount("cg", "cgroup2")
    fake.cgroup("0::/box\n")
    fake.write("cg/box/cgroup.procs", "7\n")
    fake.write(
        "cg/box/memory.stat",
        "anon 500\nfile 9000\nshmem 60\nfile_mapped 47\nfile_dirty 8\nfile_writeback 1\ninactive_file 8000\n",
    )
    reader = MachineReader(7, str(tmp_path), fake.proc, tmp_path)
    reader.read(1.0, held=900)
    assert reader.build_holds == 500 + 60 + 9
    fake.write("cg/box/cgroup.procs", "7\n1\n")
    other = MachineReader(7, str(tmp_path), fake.proc, tmp_path)
    other.read(1.0, held=900)
    assert other.build_holds == 900, "somebody else lives there, too"
    for made in (reader, other):
        made.close()


def test_cpu_shares_between_two_reads(tmp_path: Path) -> None:
    """Waiting for a disk is idle; a guest's time is in the user's already; a core that is switched off starts anew."""
    reader = CpuReader(tmp_path)
    assert reader.read() is None
    stat = tmp_path / "stat"
    stat.write_text("cpu  1\ncpu0 50 0 50 400 0 0 0 0 25 0\ncpu3 50 0 50 400 0 0 0 0 0 0\nintr 1\n")
    assert reader.read() == (0.0, (0, 0))
    stat.write_text("cpu  1\ncpu0 150 0 50 400 0 0 0 0 75 0\ncpu3 50 0 50 650 50 0 0 0 0 0\nintr 1\n")
    assert reader.read() == (25.0, (100, 0))
    assert reader.read() == (0.0, (0, 0))
    stat.write_text("cpu  1\ncpu0 250 0 50 400 0 0 0 0 75 0\n")
    assert reader.read() == (0.0, (0,))
    stat.write_text("cpu  1\ncpu0 x y z 1\n")
    assert reader.read() is None


def test_cores_that_may_be_used() -> None:
    cores = len(os.sched_getaffinity(0))
    assert cpu_available(os.getpid(), None) == cores
    assert cpu_available(os.getpid(), 0.5) == 0.5
    assert cpu_available(2**22 + 1, None) == os.cpu_count()


@pytest.mark.parametrize(
    ("text", "pressure"),
    [
        (b"some avg10=1.50 avg60=0 avg300=0 total=1\nfull avg10=0.25 avg60=0 avg300=0 total=1\n", Pressure(1.5, 0.25)),
        (b"some avg10=1.50 avg60=0 avg300=0 total=1\n", Pressure(1.5, 0.0)),
        (b"", None),
        (None, None),
        (b"some\n", None),
    ],
)
def test_pressure_texts(text: bytes | None, pressure: Pressure | None) -> None:
    assert parse_pressure(text) == pressure


def test_the_groups_own_pressure_comes_first(fake: FakeMachine) -> None:
    fake.write("proc/pressure/memory", "some avg10=9.00 avg60=0 avg300=0 total=1\n")
    group = fake.root / "group"
    assert read_pressure("memory", group, fake.proc) == Pressure(9.0, 0.0)
    fake.write("group/memory.pressure", "some avg10=2.00 avg60=0 avg300=0 total=1\n")
    assert read_pressure("memory", group, fake.proc) == Pressure(2.0, 0.0)
    assert read_pressure("memory", None, fake.proc) == Pressure(9.0, 0.0)
    assert read_pressure("io", group, fake.proc) is None


def test_only_a_group_in_which_nothing_else_lives_is_the_builds_own(fake: FakeMachine, tmp_path: Path) -> None:
    """7 is the build; 9 is born below it, 8 is somebody else, and 1 is where both come from."""
    for pid, parent in ((7, 1), (8, 1), (9, 7)):
        fake.write(f"proc/{pid}/stat", f"{pid} (sh) S {parent} {pid} {pid} 0 -1 0 " + "0 " * 44)
    fake.write("proc/pressure/memory", "some avg10=90.00 avg60=0 avg300=0 total=1\n")
    fake.mount("cg", "cgroup2")
    fake.cgroup("0::/box\n")
    fake.write("cg/memory.pressure", "some avg10=90.00 avg60=0 avg300=0 total=1\n")
    fake.write("cg/box/memory.pressure", "some avg10=40.00 avg60=0 avg300=0 total=1\n")
    fake.write("cg/box/cgroup.type", "domain\n")

    def found(members: str, below: str = "") -> Pressure | None:
        fake.write("cg/box/cgroup.procs", members)
        fake.write("cg/box/inner/cgroup.procs", below)
        reader = MachineReader(7, str(tmp_path), fake.proc, tmp_path)
        try:
            return reader.read(1.0).pressure_memory
        finally:
            reader.close()

    assert found("7\n9\n") == Pressure(40.0, 0.0, own=True)
    assert found("7\n", "9\n") == Pressure(40.0, 0.0, own=True)
    assert found("7\n8\n9\n") == Pressure(40.0, 0.0, own=False)
    assert found("7\n", "8\n") == Pressure(40.0, 0.0, own=False)
    fake.cgroup("0::/\n")
    fake.write("cg/cgroup.procs", "7\n")
    assert found("") == Pressure(90.0, 0.0, own=False), "the root of the hierarchy stands for the machine"


def test_the_write_rate_of_a_disk(tmp_path: Path) -> None:
    device = tmp_path.stat().st_dev
    stat = tmp_path / "sys" / "dev" / "block" / f"{os.major(device)}:{os.minor(device)}" / "stat"
    stat.parent.mkdir(parents=True)
    stat.write_text("1 2 3 4 5 6 1000 8 9 10 11")
    disk = DiskReader(str(tmp_path), sys_root=tmp_path / "sys")
    assert disk.write_rate(10.0) is None
    stat.write_text("1 2 3 4 5 6 3000 8 9 10 11")
    assert disk.write_rate(12.0) == 512_000.0
    stat.write_text("broken")
    assert disk.write_rate(13.0) is None
    assert (disk.free() or 0) > 0


def test_a_folder_without_a_disk_or_none_at_all(tmp_path: Path) -> None:
    disk = DiskReader(str(tmp_path / "gone"), tmp_path, tmp_path)
    assert disk.write_rate(1.0) is None
    assert disk.free() is None


def test_a_whole_sample_of_a_fake_machine(fake: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake.mount("cg", "cgroup2")
    fake.cgroup("0::/box\n")
    _v2(fake, "cg/box", str(4 * GIB), 3 * GIB, inactive=GIB)
    fake.write(
        "proc/meminfo",
        f"MemTotal: {16 * 2**20} kB\nMemAvailable: {9 * 2**20} kB\nSwapTotal: 2048 kB\nSwapFree: 1024 kB\n",
    )
    monkeypatch.setattr(os, "getloadavg", lambda: (1.25, 0.0, 0.0))
    reader = MachineReader(7, str(tmp_path), fake.proc, tmp_path, GpuReader(NO_LIBRARY))
    sample = reader.read(1.0)
    assert (sample.memory_budget, sample.memory_used, sample.memory_available) == (4 * GIB, 2 * GIB, 2 * GIB)
    assert sample.memory_limit_source == str(fake.root / "cg/box")
    assert (sample.swap_used, sample.swap_total, sample.load) == (2**20, 2**21, 1.25)
    assert (sample.gpus, sample.gpu_note) == ((), "no NVIDIA driver")
    assert sample.pressure_memory is None
    assert any("PSI" in note for note in reader.notes.take())
    _v2(fake, "cg/box", "max", 3 * GIB)
    assert reader.read(2.0).memory_limit_source == "machine"
    reader.close()


def test_between_two_samples_only_groups_with_a_limit_are_looked_at(fake: FakeMachine, tmp_path: Path) -> None:
    fake.mount("cg", "cgroup2")
    fake.cgroup("0::/user/box\n")
    fake.write("proc/meminfo", f"MemTotal: {16 * 2**20} kB\nMemAvailable: {9 * 2**20} kB\n")
    _v2(fake, "cg/user", "max")
    _v2(fake, "cg/user/box", str(4 * GIB), GIB)
    reader = MachineReader(7, str(tmp_path), fake.proc, tmp_path, GpuReader(NO_LIBRARY))
    reader.read(1.0)
    _v2(fake, "cg/user", str(2 * GIB))
    _v2(fake, "cg/user/box", str(4 * GIB), 3 * GIB)
    assert reader.memory(0).available == GIB, "its use is that of this moment"
    assert reader.memory(0).limit == 4 * GIB
    reader.read(2.0)
    assert reader.memory(0).available == GIB
    _v2(fake, "cg/user", str(2 * GIB), 2 * GIB)
    assert reader.memory(0).available == 0, "a limit that was set meanwhile counts from the next sample on"
    reader.close()


def test_nothing_can_be_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def unobtainable() -> tuple[float, float, float]:
        raise OSError

    monkeypatch.setattr(os, "getloadavg", unobtainable)
    reader = MachineReader(7, str(tmp_path), tmp_path, tmp_path, GpuReader(NO_LIBRARY))
    sample = reader.read(1.0)
    assert (sample.memory_budget, sample.cpu_percent, sample.cpu_cores, sample.load) == (0, 0.0, (), 0.0)
    reader.read(2.0)
    assert len(reader.notes.take()) == 2


def test_a_moved_process_is_followed(fake: FakeMachine, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(machine_module, "LOOK_AGAIN", 1)
    fake.mount("cg", "cgroup2")
    fake.write("proc/meminfo", f"MemTotal: {16 * 2**20} kB\nMemAvailable: {9 * 2**20} kB\n")
    _v2(fake, "cg/a", str(4 * GIB))
    _v2(fake, "cg/b", str(2 * GIB))
    reader = MachineReader(7, str(tmp_path), fake.proc, tmp_path, GpuReader(NO_LIBRARY))
    budgets = []
    for text in ("0::/a\n", "0::/b\n", ""):
        fake.cgroup(text)
        budgets.append(reader.read(1.0).memory_budget)
    assert budgets == [4 * GIB, 2 * GIB, 2 * GIB]


def test_the_real_machine(tmp_path: Path, until: Callable[..., Any]) -> None:
    reader = MachineReader(os.getpid(), str(tmp_path))
    reader.read(time.time())
    until(lambda: reader.read(time.time()).cpu_percent > 0)
    sample = reader.read(time.time())
    assert 0 < sample.memory_used < sample.memory_budget
    assert 0 < sample.cpu_available <= len(sample.cpu_cores)
    assert sample.disk_free
    reader.close()
