"""Which tmpfs is good enough for temporary files, and how much of one a folder holds: on real ones, mounted for it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from stoker.sense.machine import tmpfs_use
from stoker.sense.machine.cgroup import find_cgroups
from stoker.sense.machine.machine import MachineReader
from stoker.sense.machine.tmpfs_use import RamDiskReader, choose, places
from support.memory_group import MemoryGroup, NoMemoryGroupError

MIB = 2**20
GIB = 2**30
Mount = Callable[..., Path]


@pytest.fixture
def mount(tmp_path: Path) -> Iterator[Mount]:
    """Mount a tmpfs with these options."""
    mounted: list[Path] = []

    def run(name: str, options: str) -> Path:
        if os.getuid() != 0:
            pytest.skip("mounting a tmpfs takes root")
        folder = tmp_path / name
        folder.mkdir()
        result = subprocess.run(["mount", "-t", "tmpfs", "-o", options, "stoker-test", str(folder)], check=False)
        if result.returncode:
            pytest.skip("mounting is not allowed here")
        mounted.append(folder)
        return folder

    yield run
    for folder in mounted:
        subprocess.run(["umount", str(folder)], check=True)


def test_a_tmpfs_with_room_is_taken(mount: Mount) -> None:
    folder = mount("t", "size=64m")
    choice = choose(32 * MIB, GIB, {"TMPDIR": str(folder)})
    assert choice.place is not None
    assert (choice.place.path, choice.place.size, choice.size, choice.why) == (str(folder), 64 * MIB, 32 * MIB, "")


def test_one_that_is_too_small_is_not_and_the_reason_has_numbers_and_a_remedy_that_works(mount: Mount) -> None:
    folder = mount("t", "size=64m")
    (folder / "others").write_bytes(bytes(16 * MIB))
    choice = choose(56 * MIB, GIB, {"TMPDIR": str(folder)})
    assert choice.place is None
    assert f"no RAM disk of 56.0 MiB: {folder} has 48.0 MiB free of 64.0 MiB" in choice.why
    remedy = choice.why.partition("as root: ")[2].partition(" (")[0]
    subprocess.run(remedy.split(), check=True)
    assert choose(56 * MIB, GIB, {"TMPDIR": str(folder)}).place is not None


def test_one_that_runs_no_programs_is_not_taken(mount: Mount) -> None:
    """As /dev/shm in Docker: a configure script could not run what it has just compiled there."""
    folder = mount("t", "size=64m,noexec")
    program = folder / "conftest"
    program.write_text("#!/bin/sh\n")
    program.chmod(0o700)
    with pytest.raises(PermissionError):
        subprocess.run([str(program)], check=False)
    choice = choose(8 * MIB, GIB, {"TMPDIR": str(folder)})
    assert choice.place is None
    assert "noexec" in choice.why
    remedy = choice.why.partition("as root: ")[2].partition(" (")[0]
    subprocess.run(remedy.split(), check=True)
    assert choose(8 * MIB, GIB, {"TMPDIR": str(folder)}).place is not None
    subprocess.run([str(program)], check=True)


def test_one_with_hardly_any_inodes_is_not_taken(mount: Mount) -> None:
    folder = mount("t", "size=64m,nr_inodes=100")
    choice = choose(8 * MIB, GIB, {"TMPDIR": str(folder)})
    assert choice.place is None
    assert "more files only" in choice.why


def test_one_without_a_limit_is_taken(mount: Mount) -> None:
    folder = mount("t", "size=0,nr_inodes=0")
    choice = choose(8 * GIB, 16 * GIB, {"TMPDIR": str(folder)})
    assert choice.place is not None
    reading = RamDiskReader(str(folder), GIB).read()
    assert reading is not None
    assert reading.free is None


def test_it_cannot_be_larger_than_the_memory_that_it_is_a_part_of(mount: Mount) -> None:
    folder = mount("t", "size=64m")
    choice = choose(48 * MIB, 40 * MIB, {"TMPDIR": str(folder)})
    assert choice.place is None
    assert "48.0 MiB" in choice.why
    assert "40.0 MiB of memory in all" in choice.why


def test_without_a_size_it_is_a_share_of_the_memory(mount: Mount) -> None:
    folder = mount("t", "size=64m")
    assert choose(None, 128 * MIB, {"TMPDIR": str(folder)}).size == 32 * MIB


def test_a_folder_on_a_disk_is_none(tmp_path: Path) -> None:
    if tmpfs_use.is_in_memory(str(tmp_path)):
        pytest.skip("temporary files are in memory here")
    assert places({"TMPDIR": str(tmp_path)}) == places({"TMPDIR": str(tmp_path / "missing")}) == []
    assert "there is no tmpfs" in choose(MIB, GIB, {"TMPDIR": str(tmp_path)}).why


def test_the_machines_own_are_found_and_each_once() -> None:
    found = places({"XDG_RUNTIME_DIR": "/dev/shm"})
    assert len({os.stat(p.path).st_dev for p in found}) == len(found)
    if os.access("/dev/shm", os.W_OK) and tmpfs_use.is_in_memory("/dev/shm"):
        assert "/dev/shm" in [p.path for p in found]


def reading(reader: RamDiskReader) -> int:
    found = reader.read()
    assert found is not None
    return found.used


def test_what_a_folder_holds_is_measured_and_nothing_beside_it(mount: Mount) -> None:
    top = mount("t", "size=64m")
    (top / "others").write_bytes(bytes(8 * MIB))
    folder = top / "mine"
    (folder / "deep" / "er").mkdir(parents=True)
    reader = RamDiskReader(str(folder), 16 * MIB)
    assert reading(reader) == 0
    (folder / "a").write_bytes(bytes(3 * MIB))
    (folder / "deep" / "er" / "b").write_bytes(bytes(2 * MIB))
    os.link(folder / "a", folder / "deep" / "same")
    (folder / "out").symlink_to(top / "others")
    (folder / "out-folder").symlink_to(top, target_is_directory=True)
    assert reading(reader) == 5 * MIB
    with (folder / "sparse").open("wb") as file:
        file.truncate(GIB)
    assert reading(reader) == 5 * MIB
    (folder / "a").unlink()
    (folder / "deep" / "same").unlink()
    assert reading(reader) == 2 * MIB
    assert reader.notes.take() == []


def test_many_files_are_counted_now_and_then_and_measured_each_time(
    mount: Mount, monkeypatch: pytest.MonkeyPatch
) -> None:
    top = mount("t", "size=64m")
    (top / "others").write_bytes(bytes(8 * MIB))
    folder = top / "mine"
    folder.mkdir()
    for number in range(1000):
        (folder / str(number)).touch()
    looked: list[str] = []
    scandir = os.scandir

    def counting(path: str) -> Iterator[os.DirEntry[str]]:
        looked.append(path)
        return scandir(path)

    monkeypatch.setattr(os, "scandir", counting)
    reader = RamDiskReader(str(folder), 32 * MIB)
    sizes = []
    for _ in range(12):
        sizes.append(reading(reader))
        with (folder / "grows").open("ab") as file:
            file.write(bytes(MIB))
    assert sizes == [n * MIB for n in range(12)]
    assert 2 <= len(looked) <= 4


def test_of_very_many_files_the_file_systems_own_sum_tells(mount: Mount) -> None:
    top = mount("t", "size=64m")
    (top / "others").write_bytes(bytes(8 * MIB))
    folder = top / "mine"
    folder.mkdir()
    reader = RamDiskReader(str(folder), 32 * MIB)
    assert reading(reader) == 0
    for number in range(tmpfs_use.MAX_ENTRIES + 10):
        (folder / str(number)).touch()
    (folder / "large").write_bytes(bytes(4 * MIB))
    assert reading(reader) == 4 * MIB


def test_a_folder_that_is_gone_tells_nothing(tmp_path: Path) -> None:
    assert RamDiskReader(str(tmp_path / "gone"), MIB).read() is None


def test_it_says_once_that_it_holds_more_than_it_may_and_that_it_is_full(mount: Mount) -> None:
    top = mount("t", "size=16m")
    reader = RamDiskReader(str(top), 8 * MIB)
    (top / "a").write_bytes(bytes(9 * MIB))
    assert reading(reader) == reading(reader) == 9 * MIB
    [note] = reader.notes.take()
    assert "more than the 8.0 MiB" in note
    (top / "b").write_bytes(bytes(6 * MIB + MIB // 2))
    assert reading(reader) == reading(reader)
    [note] = reader.notes.take()
    assert "'No space left on device'" in note


HOLDER = """\
import pathlib, sys
path = pathlib.Path(sys.argv[1])
path.write_bytes(bytes(64 << 20))
print("written", flush=True)
sys.stdin.readline()
path.unlink()
print("gone", flush=True)
sys.stdin.readline()
"""


def test_what_it_holds_counts_once_against_a_real_limit_and_against_a_persons(mount: Mount) -> None:
    """In a control group of 512 MiB, 64 MiB of files are 64 MiB less by the kernel's count, and less for --memory."""
    top = mount("t", "size=256m")
    try:
        group = MemoryGroup(512 * MIB)
    except NoMemoryGroupError as err:
        pytest.skip(str(err))
    with group:
        argv = group.wrap([sys.executable, "-c", HOLDER, str(top / "file")])
        holder = subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE)
        assert holder.stdin is not None
        assert holder.stdout is not None
        assert holder.stdout.readline() == b"written\n"
        assert str(group.folder) in map(str, find_cgroups(holder.pid).memory_v1)
        free: dict[str, list[int]] = {"group": [], "person": []}
        for _ in range(2):
            for who, own in (("group", None), ("person", 256 * MIB)):
                reader = MachineReader(holder.pid, "/", own_limit=own, ramdisk=RamDiskReader(str(top), 128 * MIB))
                sample = reader.read(0.0, 16 * MIB, 16 * MIB)
                assert sample.ramdisk is not None
                assert sample.memory_available == reader.memory(16 * MIB).available or who == "group"
                free[who].append(sample.memory_available)
                reader.close()
            holder.stdin.write(b"\n")
            holder.stdin.flush()
            holder.stdout.readline()
        holder.wait()
        holder.stdin.close()
        holder.stdout.close()
    assert sample.memory_budget == 256 * MIB
    assert free["person"][1] - free["person"][0] == pytest.approx(64 * MIB, abs=4 * MIB)
    assert (256 - 64 - 32) * MIB < free["person"][0] < (256 - 64) * MIB
    held = free["group"][1] - free["group"][0]
    assert 60 * MIB <= held <= 68 * MIB  # Python's own pages come and go beside them
