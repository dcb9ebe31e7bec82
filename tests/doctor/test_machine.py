"""Memory, disks and limits: really made small for a child that is the real program."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from stoker.doctor.check import Check
from stoker.doctor.facts import Memory, Volume
from stoker.doctor.find_machine import read_limits, read_memory, read_volume
from stoker.doctor.judge_machine import judge_limits, judge_memory, judge_volumes
from stoker.doctor.need import GIB, MIB, HeaviestJob, Need
from stoker.record.history import History
from stoker.sense.machine.cgroup import MemoryLimit
from support.clinic import Clinic, system_env
from support.memory_group import MemoryGroup

EXAMINE = [sys.executable, "-P", "-m", "stoker", "doctor", "--json"]

HEAVY = HeaviestJob("heavy.o", 6 * GIB, measured=True)
ROOM = Memory(64 * GIB, 60 * GIB, 0, 0, 8.0)


def doctor(command: list[str], tree: Path, **env: str) -> tuple[int, dict[str, dict[str, str]]]:
    """The status and the checks by name of a doctor that `command` starts in a tree."""
    result = subprocess.run(
        command,
        cwd=tree,
        env={**system_env(), "XDG_STATE_HOME": str(tree / "state"), **env},
        capture_output=True,
        timeout=110,
        check=False,
    )
    assert result.stdout, result.stderr
    data: dict[str, Any] = json.loads(result.stdout)
    return result.returncode, {check["name"]: check for check in data["checks"]}


def in_shell(words: str) -> list[str]:
    return ["sh", "-c", f'{words}; exec "$@"', "sh", *EXAMINE]


def test_a_tiny_temporary_folder_fails_with_its_size(tmp_path: Path) -> None:
    small = tmp_path / "small"
    small.mkdir()
    mount = f"mount -t tmpfs -o size=1m small {shlex.quote(str(small))}"
    status, checks = doctor(["unshare", "-m", *in_shell(mount)], tmp_path, TMPDIR=str(small))
    assert status == 1
    check = checks["temporary folder"]
    assert check["status"] == "fail"
    assert "tmpfs, 1.0 MiB" in check["why"]
    assert check["remedy"] == "export TMPDIR=/var/tmp"


def test_nvcc_takes_no_other_temporary_folder_where_gcc_does(clinic: Clinic) -> None:
    clinic.wants(temporary=str(clinic.root / "gone"))
    assert clinic.check("temporary folder").status == "warn"
    clinic.wants(cuda="must")
    assert clinic.check("temporary folder").status == "fail"


def test_a_tiny_disk_below_the_build_folder_fails(tmp_path: Path) -> None:
    mount = f"mkdir build; mount -t tmpfs -o size=1m,nr_inodes=50 small {shlex.quote(str(tmp_path / 'build'))}"
    status, checks = doctor(["unshare", "-m", *in_shell(mount)], tmp_path)
    assert status == 1
    assert checks["build folder"]["status"] == "fail"


def test_no_inodes_left_fails(tmp_path: Path) -> None:
    mount = f"mkdir build; mount -t tmpfs -o size=64m,nr_inodes=50 small {shlex.quote(str(tmp_path / 'build'))}"
    status, checks = doctor(["unshare", "-m", *in_shell(mount)], tmp_path)
    assert status == 1
    assert "inodes" in checks["build folder"]["why"]
    assert checks["build folder"]["remedy"].startswith("df -i ")


def test_a_disk_that_is_read_only_fails(tmp_path: Path) -> None:
    mount = f"mkdir build; mount -t tmpfs -o ro small {shlex.quote(str(tmp_path / 'build'))}"
    status, checks = doctor(["unshare", "-m", *in_shell(mount)], tmp_path)
    assert status == 1
    assert "cannot be written to" in checks["build folder"]["why"]


def test_a_control_group_smaller_than_the_heaviest_remembered_job_fails(tmp_path: Path) -> None:
    """The history knows what a job of this build folder took; the group shows that it will be killed."""
    state = tmp_path / "state"
    history = History(state / "stoker/history.sqlite3")
    history.add("nvcc", "flash.cu.o", "", ((0.0, 1e6, ""), (90.0, 6.0 * GIB, "")))
    history.add("cxx", "of_another_build.o", "", ((0.0, 1e6, ""), (90.0, 9.0 * GIB, "")))
    history.close()
    (tmp_path / "build").mkdir()
    (tmp_path / "build/flash.cu.o").touch()
    with MemoryGroup(512 * MIB) as group:
        status, checks = doctor(group.wrap(EXAMINE), tmp_path)
    assert status == 1
    check = checks["memory limit"]
    assert check["status"] == "fail"
    assert check["why"].startswith("512 MiB for ")
    assert "6.0 GiB (flash.cu.o)" in check["why"]
    assert "another" not in check["why"]


def test_without_a_known_job_a_small_group_is_a_warning(tmp_path: Path) -> None:
    with MemoryGroup(512 * MIB) as group:
        status, checks = doctor(group.wrap(EXAMINE), tmp_path)
    assert status == 0
    assert checks["memory limit"]["status"] == "warn"


LIMITS = {
    "ulimit -n 200": "limit: open files",
    "ulimit -s 1024": "limit: stack",
    "ulimit -f 20000": "limit: file size",
    "ulimit -v 20000000": "limit: address space",
    "ulimit -t 600": "limit: CPU time",
}


def test_low_limits_are_reported_with_the_command_that_lifts_them(tmp_path: Path) -> None:
    _, checks = doctor(in_shell("; ".join(LIMITS)), tmp_path)
    for limit, name in LIMITS.items():
        assert checks[name]["status"] == "warn", name
        assert checks[name]["remedy"].startswith(limit[:9]), name


def test_hardly_any_open_files_fail_and_break_nothing(tmp_path: Path) -> None:
    status, checks = doctor(in_shell("ulimit -n 16"), tmp_path)
    assert status == 1
    assert checks["limit: open files"]["status"] == "fail"


def memory(memory: Memory, need: Need) -> dict[str, Check]:
    return {check.name: check for check in judge_memory(memory, need)}


def test_memory_is_counted_in_heaviest_jobs() -> None:
    assert "room for 10" in memory(ROOM, Need(job=HEAVY))["memory"].why


def test_swap_takes_what_does_not_fit() -> None:
    small = Memory(4 * GIB, 3 * GIB, 0, 0, 8.0)
    assert memory(small, Need(job=HEAVY))["memory"].status == "fail"
    swapping = Memory(4 * GIB, 3 * GIB, 8 * GIB, 8 * GIB, 8.0)
    assert memory(swapping, Need(job=HEAVY))["memory"].status == "warn"


def test_memory_that_is_asked_for_is_an_estimate_of_which_half_may_do() -> None:
    small = Memory(4 * GIB, 3 * GIB, 0, 0, 8.0)
    assert memory(small, Need(memory=7 * GIB))["memory"].status == "warn"
    assert memory(small, Need(memory=9 * GIB))["memory"].status == "fail"
    assert memory(small, Need(memory=4 * GIB))["memory"].status == "ok"


def test_a_guess_never_fails_a_build() -> None:
    small = Memory(4 * GIB, 3 * GIB, 0, 0, 8.0)
    guess = HeaviestJob("flash attention", 6 * GIB, measured=False)
    assert memory(small, Need(job=guess))["memory"].status == "warn"


def test_what_else_runs_counts() -> None:
    busy = Memory(64 * GIB, 2 * GIB, 0, 0, 8.0)
    assert memory(busy, Need(job=HEAVY))["memory"].status == "warn"
    limited = Memory(64 * GIB, 60 * GIB, 0, 0, 8.0, MemoryLimit("/group", 8 * GIB, 7 * GIB))
    assert memory(limited, Need(job=HEAVY))["memory limit"].status == "warn"


def test_swap_that_is_full_is_reported() -> None:
    assert memory(Memory(64 * GIB, 60 * GIB, 8 * GIB, 0, 8.0), Need())["swap"].status == "warn"


def test_too_few_cores() -> None:
    assert memory(ROOM, Need(cores=16, what="PyTorch"))["cores"].status == "warn"


def volumes(**fields: object) -> tuple[Volume, Volume]:
    usual = {"folder": "/b", "exists": True, "kind": "ext4", "size": 100 * GIB, "free": 50 * GIB, "inodes": 10**6}
    volume = Volume(**{**usual, "writable": True, **fields})  # type: ignore[arg-type]  # (fields by the tests' word)
    return volume, volume


def test_disk_is_held_against_what_a_fresh_build_needs() -> None:
    short, _ = judge_volumes(volumes(), Need(what="PyTorch", disk=60 * GIB))
    assert short.status == "warn"
    need = Need(what="PyTorch", disk=240 * GIB)
    fresh, _ = judge_volumes(volumes(), need)
    assert fresh.status == "fail"
    assert "50.0 GiB free" in fresh.why
    assert "240 GiB" in fresh.why
    begun, _ = judge_volumes(volumes(used_before=True), need)
    assert begun.status == "warn"


def test_inodes_are_held_against_the_files_that_a_build_makes() -> None:
    few = volumes(inodes=5000)
    assert next(judge_volumes(few, Need(inodes=200_000))).status == "fail"
    near = next(judge_volumes(volumes(inodes=150_000), Need(what="PyTorch", inodes=200_000)))
    assert (near.status, "makes about 200000" in near.why) == ("warn", True)
    assert next(judge_volumes(volumes(inodes=150_000, used_before=True), Need(inodes=200_000))).status == "ok"
    assert next(judge_volumes(few, Need())).status == "warn"
    assert next(judge_volumes(volumes(inodes=50), Need())).status == "fail"
    assert next(judge_volumes(volumes(inodes=None), Need(inodes=200_000))).status == "ok"


def test_a_tmpfs_counts_as_memory_and_a_file_server_is_slow() -> None:
    assert next(judge_volumes(volumes(kind="nfs4"), Need())).status == "warn"
    _, temporary = judge_volumes(volumes(kind="tmpfs"), Need(knobs="pytorch"))
    assert temporary.status == "warn"
    assert "memory" in temporary.why
    _, temporary = judge_volumes(volumes(kind="tmpfs"), Need())
    assert temporary.status == "ok"
    _, temporary = judge_volumes(volumes(kind="tmpfs"), Need(knobs="pytorch", in_memory=True))
    assert temporary.status == "ok"


def test_the_file_system_is_that_of_the_nearest_folder_that_is_there(tmp_path: Path) -> None:
    volume = read_volume(str(tmp_path / "a/b/c"))
    assert not volume.exists
    assert volume.size > 0
    assert volume.kind == read_volume(str(tmp_path)).kind != ""


def test_a_healthy_machine_has_nothing_to_complain_of() -> None:
    """Whatever machine runs this: what is read can be judged, with a word on each."""
    for check in (*judge_memory(read_memory(), Need()), *judge_limits(read_limits(), Need())):
        assert check.why
        assert check.status == "ok" or check.remedy
