"""Whom the kernel killed: counted and read for real, in a memory group whose limit is met."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from stoker.sense.machine.cgroup import Cgroups, find_cgroups, memory_group
from stoker.sense.machine.oom import KernelLog, OomCounter, Victim, is_within, victim_of
from support.memory_group import MemoryGroup

Eater = subprocess.Popen[bytes]

EATS = [sys.executable, "-I", "-S", "-c", "held = [bytearray(2**20) for _ in range(500)]"]
REAL = (
    b"3,2668,4915949409,-;Memory cgroup out of memory: Killed process 27918 (cc1plus) total-vm:168472kB, "
    b"anon-rss:121600kB, file-rss:17940kB, shmem-rss:0kB, UID:0 pgtables:360kB oom_score_adj:0\n"
)


def eaten(log: KernelLog, eater: Eater) -> list[Victim]:
    """What the kernel says of that process; others on this machine may die at the same time."""
    return [v for v in log.victims() if v.pid == eater.pid]


def eat(group: MemoryGroup) -> Eater:
    """A process that was killed for its memory."""
    with subprocess.Popen(group.wrap(EATS)) as eater:
        assert eater.wait() == -9
    return eater


def test_a_death_in_the_group_is_counted_and_named() -> None:
    log = KernelLog()
    with MemoryGroup(64 << 20) as group:
        counter = OomCounter(group.cgroups)
        assert counter.read() == 0
        eater = eat(group)
        assert counter.read() == group.kills == 1
        (victim,) = eaten(log, eater)
        assert victim.program[:6] == "python"
        assert 32 << 20 < victim.rss <= 64 << 20
        assert eaten(log, eater) == []
    log.close()


def test_deaths_in_another_group_are_not_ours() -> None:
    with MemoryGroup(64 << 20) as mine, MemoryGroup(64 << 20) as other:
        with subprocess.Popen(mine.wrap(["sleep", "1000"])) as inside:
            while inside.pid not in mine.pids():
                pass
            log = KernelLog(group=memory_group(inside.pid))
            inside.kill()
        for _ in range(4):
            if eaten(log, eat(other)) == []:
                break
            time.sleep(5.1)  # the kernel names the groups of ten deaths in five seconds, whoever else has some now
        else:
            raise AssertionError("a death in another group was taken for ours")
        eater = eat(mine)
        assert [v.program[:6] for v in eaten(log, eater)] == ["python"]
    log.close()


@pytest.mark.parametrize(
    ("logged", "group", "within"),
    [
        (b"/docker/0a1b/build", b"/docker/0a1b/build", True),
        (b"/docker/0a1b/build/job", b"/docker/0a1b/build", True),
        (b"/docker/0a1b/build", b"/build", True),  # seen from within the container
        (b"/docker/0a1b/building", b"/build", False),
        (b"/docker/ffff", b"/docker/0a1b/build", False),
        (b"/docker/ffff", b"", True),  # a group that cannot be seen
    ],
)
def test_which_groups_are_ours(logged: bytes, group: bytes, within: bool) -> None:
    assert is_within(logged, group) is within


def test_a_process_that_is_killed_by_hand_is_not_counted() -> None:
    log = KernelLog()
    with MemoryGroup(64 << 20) as group:
        counter = OomCounter(group.cgroups)
        with subprocess.Popen(group.wrap(["sh", "-c", "kill -9 $$"])) as killed:
            assert killed.wait() == -9
        assert counter.read() == 0
    assert eaten(log, killed) == []
    log.close()


def test_the_count_of_a_living_process_can_be_read() -> None:
    assert (OomCounter(find_cgroups(os.getpid())).read() or 0) >= 0


def test_version_2_counts_in_the_events_of_the_innermost_group(tmp_path: Path) -> None:
    inner, outer = tmp_path / "a" / "b", tmp_path / "a"
    inner.mkdir(parents=True)
    (inner / "memory.events").write_text("low 0\nhigh 12\nmax 7\noom 4\noom_kill 3\noom_group_kill 1\n")
    (outer / "memory.events").write_text("oom_kill 99\n")
    assert OomCounter(Cgroups(unified=(inner, outer))).read() == 3


def test_without_a_group_the_whole_machine_is_counted(tmp_path: Path) -> None:
    (tmp_path / "vmstat").write_text("nr_free_pages 5\noom_kill 8\n")
    assert OomCounter(Cgroups(), tmp_path).read() == 8
    assert OomCounter(Cgroups(memory_v1=(tmp_path / "gone",)), tmp_path).read() == 8


@pytest.mark.parametrize("text", ["", "oom_kill\n", "oom_kill many\n", "oom_kills 3\n"])
def test_a_kernel_that_does_not_tell_is_no_count(tmp_path: Path, text: str) -> None:
    (tmp_path / "vmstat").write_text(text)
    assert OomCounter(Cgroups(), tmp_path).read() is None


@pytest.mark.parametrize(
    ("record", "victim"),
    [
        (REAL, Victim(27918, "cc1plus", 121600 * 1024)),
        (
            b"3,1,2,-;Out of memory: Killed process 7 (cicc) total-vm:1kB, anon-rss:2kB, file-rss:0kB\n",
            Victim(7, "cicc", 2048),
        ),
        # before Linux 5.0
        (b"3,1,2,-;Out of memory: Kill process 7 (ld) score 900 or sacrifice child\n", Victim(7, "ld", 0)),
        (
            b"3,1,2,-;Out of memory: Killed process 7 (a) b(\xff) total-vm:1kB\n",
            Victim(7, "a) b(\N{REPLACEMENT CHARACTER}", 0),
        ),
        (b"6,1,2,-;oom-kill:constraint=CONSTRAINT_MEMCG,task=cc1plus,pid=7,uid=0\n", None),
        (b"4,1,2,-;cc1plus invoked oom-killer: gfp_mask=0xcc0\n", None),
        (b"", None),
        (b";Out of memory: Killed process 7 (x) total-vm:", None),
        (b"3,1,2,-;Out of memory: Killed process 99999999999999 (x) total-vm:", None),
    ],
)
def test_words_of_the_kernel(record: bytes, victim: Victim | None) -> None:
    assert victim_of(record) == victim


def test_a_process_that_writes_into_the_kernels_log_kills_nobody() -> None:
    """syslog(2): a process's own messages are of another facility than the kernel's."""
    log = KernelLog()
    with open("/dev/kmsg", "wb", buffering=0) as file:
        file.write(b"Out of memory: Killed process 1 (init) anon-rss:1kB")
    assert [v for v in log.victims() if v.pid == 1] == []
    log.close()


def test_a_log_that_may_not_be_read_tells_nothing(tmp_path: Path) -> None:
    log = KernelLog(tmp_path / "none")
    assert log.victims() == []
    log.close()
    log.close()


def test_only_what_comes_from_now_on_is_told(tmp_path: Path) -> None:
    (tmp_path / "kmsg").write_bytes(REAL)
    log = KernelLog(tmp_path / "kmsg")
    assert log.victims() == []
    log.close()
