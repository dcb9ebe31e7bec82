from __future__ import annotations

import mmap
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

import pytest

from stoker.sense.proc import processes, procfs
from stoker.sense.proc.processes import (
    PAGE_SIZE,
    SHARED_MOST,
    Process,
    ProcessTable,
    held_by,
    parse_stat,
    read_cmdline,
    read_cwd,
    read_environ,
    read_exe,
    start_wall,
)

MIB = 2**20


def _stat(pid: int, ppid: int, comm: str = "sh", state: str = "S", start: int = 5) -> str:
    fields = [state, ppid, pid, pid, 0, -1, 0, 0, 0, 0, 0, 3, 4, 5, 6, 20, 0, 7, 0, start, 999, 11, 0, 0]
    return f"{pid} ({comm}) " + " ".join(map(str, fields)) + "\n"


class FakeProc:
    def __init__(self, root: Path) -> None:
        self.root = root
        self.reads: list[str] = []

    def put(self, pid: int, ppid: int, comm: str = "sh", state: str = "S") -> None:
        (self.root / str(pid)).mkdir(exist_ok=True)
        (self.root / str(pid) / "stat").write_text(_stat(pid, ppid, comm, state))

    def remove(self, pid: int) -> None:
        (self.root / str(pid) / "stat").unlink()
        (self.root / str(pid)).rmdir()


@pytest.fixture
def proc(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FakeProc:
    fake = FakeProc(tmp_path)
    real = procfs.read_once

    def counted(path: str, size: int = 4096) -> bytes | None:
        fake.reads.append(path.split("/")[-2])
        return real(path, size)

    kept = procfs.KeptFiles.read

    def counted_kept(files: procfs.KeptFiles, path: str, size: int = 4096) -> bytes | None:
        fake.reads.append(path.split("/")[-2])
        return kept(files, path, size)

    monkeypatch.setattr("stoker.sense.proc.processes.read_once", counted)
    monkeypatch.setattr(procfs.KeptFiles, "read", counted_kept)
    for pid, ppid in [(1, 0), (50, 1), (100, 50), (101, 100), (102, 101), (200, 1), (201, 200)]:
        fake.put(pid, ppid)
    (tmp_path / "meminfo").write_text("")
    return fake


def test_a_stat_line_with_a_nasty_name_is_read() -> None:
    process = parse_stat(_stat(7, 3, "a) R 1 (b\n", "R").encode())
    assert process is not None
    assert process == Process(7, 3, 7, 7, "R", "a) R 1 (b\n", 5, 7, 11, 11 * PAGE_SIZE, 7)


@pytest.mark.parametrize("text", [b"", b"7", b"7 (x", b"7 (x) R 1", b"x (y) " + b"z " * 30])
def test_garbage_is_no_process(text: bytes) -> None:
    assert parse_stat(text) is None


def test_descendants_are_found_and_others_are_not(proc: FakeProc) -> None:
    assert set(ProcessTable(100, proc.root).scan()) == {101, 102}


def test_what_was_below_a_root_that_is_killed_stays_known_and_so_do_its_children(proc: FakeProc) -> None:
    table = ProcessTable(100, proc.root)
    table.scan()
    proc.remove(100)
    proc.put(101, 1)
    proc.put(103, 101)
    assert set(table.scan()) == {101, 102, 103}


def test_another_process_with_the_number_of_one_that_was_below_the_root_is_not_taken_for_it(proc: FakeProc) -> None:
    table = ProcessTable(100, proc.root)
    table.scan()
    (proc.root / "101" / "stat").write_text(_stat(101, 1, start=6))
    (proc.root / "102" / "stat").write_text(_stat(102, 1, start=5))
    assert set(table.scan()) == {102}


def test_a_process_that_is_included_counts_with_all_below_it_whoever_its_parent_is(proc: FakeProc) -> None:
    table = ProcessTable(999, proc.root)
    table.include(200)
    assert set(table.scan()) == {200, 201}


def test_what_is_included_late_counts_with_what_was_known_as_anothers(proc: FakeProc) -> None:
    table = ProcessTable(999, proc.root)
    table.scan()
    table.include(200)
    assert set(table.scan()) == {200, 201}


def test_foreign_processes_are_read_once(proc: FakeProc) -> None:
    table = ProcessTable(100, proc.root)
    table.scan()
    proc.reads.clear()
    table.scan()
    assert sorted(proc.reads) == ["100", "101", "102"]


def test_what_is_looked_out_for_among_others_is_met_once_it_has_its_last_name(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    table = ProcessTable(100, proc.root, noticed={"ninja"})
    table.scan()
    proc.put(202, 201, "sh")
    proc.put(103, 102, "ninja")
    monkeypatch.setattr(time, "clock_gettime", lambda _clock: 0.0)  # 202 has only just been forked
    table.scan()
    assert not table.take_outsiders()
    monkeypatch.undo()
    proc.put(202, 201, "ninja")
    table.scan()
    table.scan()
    assert [p.pid for p in table.take_outsiders()] == [202]
    assert not table.take_outsiders()


def test_new_children_appear_and_dead_ones_go(proc: FakeProc) -> None:
    table = ProcessTable(100, proc.root)
    table.scan()
    proc.put(103, 102)
    proc.remove(101)
    proc.put(102, 100)  # handed to the root, which is its subreaper
    assert set(table.scan()) == {102, 103}


def test_a_foreign_pid_that_came_back_as_ours_is_seen(proc: FakeProc) -> None:
    table = ProcessTable(100, proc.root)
    table.scan()
    proc.remove(201)
    table.scan()
    proc.put(201, 101)
    assert 201 in table.scan()


def test_a_foreign_pid_reused_between_two_scans_is_seen_in_the_end(proc: FakeProc) -> None:
    table = ProcessTable(100, proc.root)
    table.scan()
    proc.put(201, 101)
    assert any(201 in table.scan() for _ in range(processes.FORGET_FOREIGN_EVERY))


def test_a_child_whose_parent_ended_while_reading_is_not_forgotten(proc: FakeProc) -> None:
    table = ProcessTable(100, proc.root)
    proc.put(104, 103)  # 103 is gone already
    assert 104 not in table.scan()
    proc.put(104, 100)
    assert 104 in table.scan()


def test_what_rests_is_read_at_every_fourth_scan_only(proc: FakeProc) -> None:
    table = ProcessTable(100, proc.root)
    proc.put(102, 101, state="T")
    table.scan([102])
    proc.reads.clear()
    scans = [table.scan([102]) for _ in range(8)]
    assert proc.reads.count("102") == 2
    assert proc.reads.count("101") == 8
    assert {scan[102].state for scan in scans} == {"T"}
    proc.put(102, 101, state="R")  # somebody has set it going
    assert [table.scan([102])[102].state for _ in range(4)].count("R") >= 1
    proc.reads.clear()
    table.scan([102])
    assert "102" in proc.reads  # it does not rest any more


def test_what_rests_goes_with_its_parent_to_another(proc: FakeProc) -> None:
    table = ProcessTable(100, proc.root)
    proc.put(102, 101, state="T")
    for _ in range(2):
        table.scan([102])
    proc.remove(101)
    proc.put(102, 100, state="T")
    assert table.scan([102])[102].ppid == 100


def test_what_rests_and_is_gone_is_gone(proc: FakeProc) -> None:
    table = ProcessTable(100, proc.root)
    proc.put(102, 101, state="T")
    table.scan([102])
    proc.remove(102)
    assert 102 not in table.scan([102])


def test_no_proc_is_a_note_and_not_an_error(tmp_path: Path) -> None:
    table = ProcessTable(1, tmp_path / "missing")
    assert table.scan() == {}
    assert table.scan() == {}
    assert len(table.notes.take()) == 1
    assert table.notes.take() == []


def test_a_real_process_tells_all_about_itself(tmp_path: Path, until: Callable[[Callable[[], object]], None]) -> None:
    code = "import os,time; open('f','wb').write(b'x'*8192); os.sync(); print('up', flush=True); time.sleep(60)"
    before = time.time()
    with subprocess.Popen(
        [sys.executable, "-c", code, "a b", "\udcff"],
        cwd=tmp_path,
        env={**os.environ, "STOKER_TEST": "x y"},
        stdout=subprocess.PIPE,
    ) as child:
        assert child.stdout is not None
        child.stdout.readline()
        process = ProcessTable(os.getpid()).scan()[child.pid]
        assert process.rss > 0
        assert process.ppid == os.getpid()
        assert read_cmdline(child.pid)[-2:] == ("a b", "\udcff")
        assert read_cwd(child.pid) == str(tmp_path.resolve())
        assert os.path.samefile(read_exe(child.pid) or "", sys.executable)
        assert read_environ(child.pid, "STOKER_TEST") == "x y"
        assert read_environ(child.pid, "STOKER_TES") is None
        assert before - 1 <= start_wall(process.start_ticks, time.time()) <= time.time()
        child.kill()
        until(lambda: ProcessTable(os.getpid()).scan()[child.pid].state == "Z")
        assert read_cmdline(child.pid) == ()
    assert child.pid not in ProcessTable(os.getpid()).scan()
    assert read_cmdline(child.pid) == ()
    assert read_cwd(child.pid) is None
    assert read_exe(child.pid) is None


MAPPER = """
import mmap, sys
file = open(sys.argv[1], "rb")
pages = mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)
seen = [pages[at] for at in range(0, len(pages), 4096)]
own = mmap.mmap(-1, int(sys.argv[2]) << 20, flags=int(sys.argv[3]))
for at in range(0, len(own), 4096):
    own[at] = 1
print(flush=True)
sys.stdin.read()
"""
"""A process that maps all of a file, and so many MiB of its own, private or shared (MAP_PRIVATE, MAP_SHARED)."""


Mappers = list[subprocess.Popen[bytes]]


@pytest.fixture
def mapping(tmp_path: Path) -> Iterator[Callable[..., Mappers]]:
    """Starts processes that map one file of so many MiB."""
    started: Mappers = []

    def start(
        count: int, file_mib: int, own_mib: int = 1, flags: int = mmap.MAP_PRIVATE
    ) -> list[subprocess.Popen[bytes]]:
        (tmp_path / "file").write_bytes(bytes(file_mib * MIB))
        argv = [sys.executable, "-S", "-c", MAPPER, str(tmp_path / "file"), str(own_mib), str(flags)]
        started.extend(subprocess.Popen(argv, stdin=subprocess.PIPE, stdout=subprocess.PIPE) for _ in range(count))
        for process in started:
            assert process.stdout is not None
            assert process.stdout.readline() == b"\n"
        return started

    yield start
    for process in started:
        process.kill()
        process.communicate()


def exact(pids: Iterable[int]) -> int:
    """What the kernel says that processes hold together, each page shared out among all that map it."""
    texts = [Path(f"/proc/{pid}/smaps_rollup").read_text() for pid in pids]
    return sum(int(line.split()[1]) * 1024 for text in texts for line in text.splitlines() if line.startswith("Pss:"))


def test_what_processes_share_is_held_once(mapping: Callable[..., Mappers]) -> None:
    pids = {process.pid for process in mapping(6, 40)}
    found = {pid: p for pid, p in ProcessTable(os.getpid()).scan().items() if pid in pids}
    assert sum(p.rss for p in found.values()) > 6 * 40 * MIB
    assert held_by(found.values()) == pytest.approx(exact(found), abs=30 * MIB)
    assert max(p.held for p in found.values()) < 30 * MIB


def test_what_a_process_maps_alone_and_shared_memory_are_its_own(
    mapping: Callable[..., Mappers],
) -> None:
    (process,) = mapping(1, 200, 50, mmap.MAP_SHARED)
    found = ProcessTable(os.getpid()).scan()[process.pid]
    assert found.shared == SHARED_MOST, "no program is larger: the rest is what it works on"
    assert found.held > 200 * MIB - SHARED_MOST + 50 * MIB


def test_a_process_that_only_waits_is_weighed_once(
    mapping: Callable[..., Mappers], monkeypatch: pytest.MonkeyPatch
) -> None:
    mapping(2, 10)
    table = ProcessTable(os.getpid())
    first = table.scan()
    weighed: list[int] = []
    monkeypatch.setattr("stoker.sense.proc.processes.shared_pages", lambda pid, _root: weighed.append(pid))
    assert {pid: p.shared for pid, p in table.scan().items()} == {pid: p.shared for pid, p in first.items()}
    assert weighed == []


def test_a_process_that_only_waits_stays_the_same_until_it_does_something(proc: FakeProc) -> None:
    table = ProcessTable(101, proc.root)
    waiting = table.scan()[102]
    assert table.scan()[102] is waiting
    proc.put(102, 101, state="R")
    assert table.scan()[102].state == "R"
    proc.put(102, 101, comm="cc1plus")
    assert [table.scan()[102].comm for _ in range(2)] == ["cc1plus", "cc1plus"]


def test_a_process_is_weighed_again_once_it_has_grown_noticeably(
    proc: FakeProc, monkeypatch: pytest.MonkeyPatch
) -> None:
    pages = 1000
    table = ProcessTable(101, proc.root)
    weighed: list[int] = []

    def shared_pages(pid: int, _root: str) -> int:
        weighed.append(pid)
        return 4096

    monkeypatch.setattr("stoker.sense.proc.processes.shared_pages", shared_pages)
    for grown in (0, 100, 200, 300, 400, 500):  # pages of 4 KiB: 256 are a MiB
        text = _stat(102, 101).split()
        text[23] = str(pages + grown)
        (proc.root / "102" / "stat").write_text(" ".join(text) + "\n")
        assert table.scan()[102].shared == 4096
    assert weighed == [102, 102]
