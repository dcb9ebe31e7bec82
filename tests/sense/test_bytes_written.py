"""What a tree of processes writes to disk, counted by the kernel's own figures and held against what was written."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Callable
from pathlib import Path

import pytest

from stoker.sense.machine.mounts import read_mounts
from stoker.sense.proc.bytes_written import Io, WrittenReader, read_io
from stoker.sense.proc.processes import ProcessTable

MIB = 2**20
SLACK = MIB // 2
"""For what the shells and Python write besides, such as folders' blocks."""


def device_kind(folder: Path) -> str:
    about = folder.stat().st_dev
    name = f"{os.major(about)}:{os.minor(about)}"
    return next((m.kind for m in read_mounts("self") if m.device == name), "")


@pytest.fixture
def on_disk(tmp_path: Path) -> Path:
    if device_kind(tmp_path) in ("", "tmpfs", "overlay"):
        pytest.skip("needs temporary files on a disk")
    return tmp_path


def write(path: Path, mib: int) -> str:
    return f"head -c {mib * MIB} /dev/zero >{path}"


Tree = Callable[[str], tuple[int, int]]


@pytest.fixture
def tree(on_disk: Path) -> Tree:
    """Run a script below a root that adopts orphans, as the supervisor does; what was counted at the end, and live."""

    def run(script: str) -> tuple[int, int]:
        root = textwrap.dedent(f"""
            import ctypes, os, subprocess, sys, time
            ctypes.CDLL(None).prctl(36, 1, 0, 0, 0)
            subprocess.run(["sh", "-c", {script!r}])
            while True:
                try: os.wait()
                except ChildProcessError: break
            print("done", flush=True)
            time.sleep(600)
        """)
        process = subprocess.Popen([sys.executable, "-c", root], stdout=subprocess.PIPE)
        try:
            reader, table = WrittenReader(process.pid), ProcessTable(process.pid)
            live = reader.read(table.scan())
            assert process.stdout is not None
            assert process.stdout.readline() == b"done\n"
            return reader.read(table.scan()), live
        finally:
            process.kill()
            process.communicate()

    return run


def test_what_ended_processes_wrote_counts(tree: Tree, on_disk: Path) -> None:
    """Children, grandchildren, and one whose parent did not wait for it."""
    orphan = f"(sleep 0.1; {write(on_disk / 'c', 16)}) &"
    total, _ = tree(f"{write(on_disk / 'a', 8)}; sh -c '{write(on_disk / 'b', 8)}; true'; sh -c '{orphan}'")
    assert 32 * MIB <= total < 32 * MIB + SLACK


def test_files_that_were_deleted_before_they_got_to_the_disk_do_not(tree: Tree, on_disk: Path) -> None:
    total, _ = tree(f"{write(on_disk / 'kept', 4)}; {write(on_disk / 'gone', 32)}; rm {on_disk}/gone")
    assert 4 * MIB <= total < 4 * MIB + SLACK


def test_files_in_memory_do_not(tree: Tree) -> None:
    shm = Path("/dev/shm")
    if device_kind(shm) != "tmpfs" or not os.access(shm, os.W_OK):
        pytest.skip("no tmpfs to write to")
    file = shm / f"stoker-test-{os.getpid()}"
    try:
        total, _ = tree(write(file, 32))
    finally:
        file.unlink(missing_ok=True)
    assert total < SLACK


def test_living_processes_count_while_they_live_and_only_once_when_they_have_ended(on_disk: Path) -> None:
    script = f"{write(on_disk / 'a', 8)}; echo ready; read line; {write(on_disk / 'b', 8)}; echo ready; read line"
    child = subprocess.Popen(["sh", "-c", script], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdin is not None
    before = read_io(os.getpid())
    reader = WrittenReader(os.getpid())
    own = before.written - before.cancelled
    found = []
    for _ in range(2):
        assert child.stdout.readline() == b"ready\n"
        found.append(reader.read([child.pid]) - own)
        child.stdin.write(b"\n")
        child.stdin.flush()
    child.communicate()
    found.append(reader.read([]) - own)
    for total, wrote in zip(found, (8, 16, 16), strict=True):
        assert wrote * MIB <= total < wrote * MIB + SLACK


class FakeProc:
    def __init__(self, root: Path) -> None:
        self.root = root

    def write(self, pid: int, written: int, cancelled: int = 0) -> None:
        (self.root / str(pid)).mkdir(exist_ok=True)
        text = f"rchar: 1\nwchar: 2\nwrite_bytes: {written}\ncancelled_write_bytes: {cancelled}\n"
        (self.root / str(pid) / "io").write_text(text)


def test_a_process_that_ends_between_two_reads_makes_the_sum_no_smaller(tmp_path: Path) -> None:
    proc = FakeProc(tmp_path)
    proc.write(1, 10)
    proc.write(2, 1000, 400)
    reader = WrittenReader(1, proc_root=tmp_path)
    assert reader.read([2]) == 610
    (tmp_path / "2" / "io").unlink()  # gone, and not yet waited for
    assert reader.read([2]) == 610
    proc.write(1, 1010, 400)
    assert reader.read([]) == 610


def test_a_new_root_goes_on_from_what_was_known(tmp_path: Path) -> None:
    """The supervisor is killed: what it knew is kept, and what the build's own process knows is counted once."""
    proc = FakeProc(tmp_path)
    proc.write(1, 5000)
    proc.write(2, 300)
    reader = WrittenReader(1, proc_root=tmp_path)
    assert reader.read([2]) == 5300
    reader.go_on_from(2, 5300)
    assert reader.read([2]) == 5300
    proc.write(2, 1300)
    assert reader.read([2]) == 6300
    later = WrittenReader(2, 6300, adopted=True, proc_root=tmp_path)
    assert later.read([2]) == 6300
    proc.write(2, 1400)
    assert later.read([2]) == 6400


def test_what_may_not_be_known_counts_as_nothing(tmp_path: Path) -> None:
    assert read_io(1, tmp_path) == Io()
    (tmp_path / "1").mkdir()
    (tmp_path / "1" / "io").write_bytes(b"write_bytes: x\n\xff\ncancelled_write_bytes: 7\n")
    assert read_io(1, tmp_path) == Io(0, 7)


def test_a_killed_process_counts_when_it_has_been_waited_for(on_disk: Path) -> None:
    before = read_io(os.getpid())
    child = subprocess.Popen(["sh", "-c", f"{write(on_disk / 'a', 8)}; echo ready; sleep 600"], stdout=subprocess.PIPE)
    assert child.stdout is not None
    child.stdout.readline()
    child.send_signal(signal.SIGKILL)
    child.wait()
    child.stdout.close()
    after = read_io(os.getpid())
    assert after.written - before.written >= 8 * MIB
