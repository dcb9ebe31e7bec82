"""Where a profile's temporary files go, what a person is told, and what is swept of builds that are dead."""

from __future__ import annotations

import json
import os
import subprocess
import time
from pathlib import Path

import pytest

from stoker.act import ramdisk
from stoker.config.profiles.profile import Tmp
from stoker.contract.process import start_ticks
from stoker.launch.tmpfs import ramdisk_for, sweep
from stoker.sense.machine.tmpfs_use import is_in_memory

MIB = 2**20
GIB = 2**30

needs_shm = pytest.mark.skipif(
    not os.access("/dev/shm", os.W_OK) or not is_in_memory("/dev/shm"), reason="no tmpfs to write to"
)


def test_a_profile_without_one_gets_none() -> None:
    assert ramdisk_for(Tmp(), {}, None) == (None, "", ())


@needs_shm
def test_it_goes_where_there_is_room_and_a_person_is_told_what_is_not_enforced() -> None:
    found = ramdisk_for(Tmp("tmpfs", 4 * MIB), {}, GIB)
    assert found.wish is not None
    assert found.wish.size == 4 * MIB
    assert is_in_memory(found.wish.parent)
    assert "up to 4.0 MiB" in found.note
    assert "nothing can enforce that limit" in found.note
    assert found.warnings == ()


def test_a_persons_own_tmpdir_on_a_disk_stays(tmp_path: Path) -> None:
    if is_in_memory(str(tmp_path)):
        pytest.skip("temporary files are in memory here")
    found = ramdisk_for(Tmp("tmpfs", 4 * MIB), {"TMPDIR": str(tmp_path)}, GIB)
    assert found.wish is None
    assert found.note == ""
    [warning] = found.warnings
    assert f"TMPDIR={tmp_path} is set, is not in memory, and stays" in warning


@needs_shm
def test_a_persons_own_tmpdir_in_memory_is_where_it_goes(tmp_path: Path) -> None:
    own = Path(f"/dev/shm/stoker-test-{os.getpid()}")
    own.mkdir()
    try:
        found = ramdisk_for(Tmp("tmpfs", 4 * MIB), {"TMPDIR": str(own)}, GIB)
    finally:
        own.rmdir()
    assert found.wish is not None
    assert found.wish.parent == str(own)


def test_what_cannot_be_is_a_warning_with_numbers() -> None:
    found = ramdisk_for(Tmp("tmpfs", 8 * GIB), {}, 4 * GIB)
    assert found.wish is None
    [warning] = found.warnings
    assert "8.0 GiB" in warning
    assert "4.0 GiB" in warning
    assert warning.endswith("TMPDIR stays as it is")


def build_at(folder: Path, *, alive: bool) -> Path:
    """A build's folder, whose supervisor is this process or none."""
    folder.mkdir()
    start = start_ticks(os.getpid())
    supervisor = {
        "supervisor_pid": os.getpid(),
        "supervisor_start": start if alive else 1,
        "build_pid": 0,
        "build_start": 0,
    }
    (folder / "supervisor.json").write_text(json.dumps(supervisor))
    return folder


def test_only_what_dead_builds_have_left_is_swept(tmp_path: Path) -> None:
    top = tmp_path / "t"
    top.mkdir()
    dead = ramdisk.make(str(top), str(build_at(tmp_path / "dead", alive=False)))
    pruned = ramdisk.make(str(top), str(tmp_path / "pruned"))
    alive = ramdisk.make(str(top), str(build_at(tmp_path / "alive", alive=True)))
    starting = ramdisk.make(str(top), str(tmp_path / "starting"))
    (tmp_path / "starting").mkdir()
    used = ramdisk.make(str(top), str(tmp_path / "gone"))
    elsewhere = ramdisk.make(str(top), str(tmp_path / "gone"))
    Path(elsewhere, ramdisk.OWNER).write_text(f"pid:[1]\n{tmp_path}/gone")  # of a container that shares this tmpfs
    others = top / "others"
    others.mkdir()
    daemon = subprocess.Popen(["sleep", "600"], env={"TMPDIR": ramdisk.tmpdir(used), "PATH": os.environ["PATH"]})
    try:
        assert set(sweep({"TMPDIR": str(top)})) >= {dead, pruned}
    finally:
        daemon.kill()
        daemon.wait()
    assert {str(p) for p in top.iterdir()} == {alive, starting, used, elsewhere, str(others)}
    assert used in sweep({"TMPDIR": str(top)})
    old = time.time() - 100
    os.utime(tmp_path / "starting", (old, old))
    assert starting in sweep({"TMPDIR": str(top)})
