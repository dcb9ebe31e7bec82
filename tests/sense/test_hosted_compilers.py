"""Whose compilers a cache's server runs, on a process table by hand; tests/e2e/test_cache.py has the real server."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path

import pytest

from stoker.sense.proc.hosted_compilers import STARTING_SECONDS, Client, Hosted, HostedFinder, likeness, starts_server
from stoker.sense.proc.processes import CLK_TCK, Process, ProcessTable, children_of


def client(*words: str, folder: str = "/b") -> Client:
    outputs = [b for a, b in pairwise(words) if a == "-o"]
    sources = tuple(w for w in words if w.endswith((".cpp", ".cu")))
    return Client((1, 1), outputs[0] if outputs else "", sources, folder)


COMPILES = client("-Iinc", "-o", "d/a.cpp.o", "-c", "/s/a.cpp")


@pytest.mark.parametrize(
    ("argv", "folder", "sure"),
    [
        (["c++", "-x", "c++", "-c", "-o", "d/a.cpp.o", "/s/a.cpp"], "/b", 4),
        (["c++", "-x", "c++", "-c", "-o", "d/a.cpp.o", "/s/a.cpp"], "/elsewhere", 0),
        (["c++", "-x", "c++", "-E", "/s/a.cpp"], "/b", 3),
        (["c++", "-c", "-o", "d/b.cpp.o", "/s/b.cpp"], "/b", 0),
        (["cudafe++", "--gen_c_file_name", "a.cudafe1.cpp", "a.cpp4.ii"], "/tmp/x", 0),
    ],
)
def test_a_compilation_is_told_by_its_output_its_source_and_its_folder(argv: list[str], folder: str, sure: int) -> None:
    assert likeness(COMPILES, argv, folder) == sure


def test_a_pass_of_nvcc_is_told_by_files_named_after_the_source() -> None:
    kernel = client("-o", "k.o", "-c", "/s/flash_bwd.cu")
    assert likeness(kernel, ["cicc", "--arch", "compute_80", "flash_bwd.cpp1.ii", "-o", "flash_bwd.ptx"], "/tmp/x") == 1
    assert likeness(kernel, ["cicc", "--arch", "compute_80", "flash_bwd_2.cpp1.ii"], "/tmp/x") == 0
    assert likeness(kernel, ["ptxas", "--flash_bwd.x"], "/tmp/x") == 0, "an option is no file"


class Bench:
    """A process tree by hand: jobs with clients, and a server beside them, as /proc would tell."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.processes: dict[int, Process] = {}

    def add(self, pid: int, ppid: int, comm: str, *argv: str, folder: str = "/") -> None:
        self.processes[pid] = Process(pid, ppid, pid, 1, "S", comm, pid, 1, 0, 2**20, 1)
        place = self.root / str(pid)
        place.mkdir()
        (place / "cmdline").write_bytes(b"".join(os.fsencode(word) + b"\0" for word in argv))
        (place / "comm").write_text(comm + "\n")
        (place / "cwd").symlink_to(folder)

    def remove(self, pid: int) -> None:
        del self.processes[pid]
        shutil.rmtree(self.root / str(pid))

    def clients(self) -> Iterator[tuple[tuple[int, int], Process]]:
        """Those below jobs, which are the children of process 10."""
        below = children_of(self.processes.values())
        for job in below.get(10, ()):
            for process in below.get(job.pid, ()):
                if process.comm == "sccache":
                    yield (job.pid, job.pid), process


@pytest.fixture
def bench(tmp_path: Path) -> Bench:
    bench = Bench(tmp_path)
    bench.add(10, 1, "ninja", "ninja")
    for job, name in ((20, "a"), (30, "b")):
        bench.add(job, 10, "sh", "sh", "-c", "sccache ...", folder="/b")
        words = ("sccache", "c++", "-o", f"{name}.o", "-c", f"/s/{name}.cpp")
        bench.add(job + 1, job, "sccache", *words, folder="/b")
    bench.add(50, 1, "sccache", "/usr/bin/sccache")
    return bench


def found(bench: Bench, guests: HostedFinder) -> dict[int, list[int]]:
    """The guests' processes by their job."""
    told: dict[int, list[int]] = {}
    for guest in guests.find(bench.processes, bench.clients()):
        assert isinstance(guest, Hosted)
        told.setdefault(guest.job[0], []).extend(sorted(p.pid for p in guest.tree))
    return told


def test_each_job_has_the_compiler_that_works_for_it_and_what_is_below(bench: Bench) -> None:
    guests = HostedFinder(bench.root)
    assert found(bench, guests) == {}
    bench.add(60, 50, "c++", "c++", "-x", "c++", "-c", "-o", "b.o", "/s/b.cpp", folder="/b")
    bench.add(61, 60, "cc1plus", "cc1plus", "/s/b.cpp", folder="/b")
    bench.add(70, 50, "c++", "c++", "-c", "-o", "z.o", "/others/z.cpp", folder="/others")
    assert found(bench, guests) == {30: [60, 61]}, "the third one works for somebody else"
    bench.add(80, 50, "c++", "c++", "-c", "-o", "a.o", "/s/a.cpp", folder="/b")
    assert found(bench, guests) == {30: [60, 61], 20: [80]}
    bench.remove(61)
    bench.remove(60)
    assert found(bench, guests) == {20: [80]}


def test_a_child_between_fork_and_exec_is_not_judged_yet(bench: Bench) -> None:
    guests = HostedFinder(bench.root)
    bench.add(60, 50, "sccache", "/usr/bin/sccache", folder="/")
    assert found(bench, guests) == {}
    (bench.root / "60" / "cmdline").write_bytes(b"c++\0-c\0-o\0a.o\0/s/a.cpp\0")
    (bench.root / "60" / "cwd").unlink()
    (bench.root / "60" / "cwd").symlink_to("/b")
    assert found(bench, guests) == {20: [60]}


def test_a_server_outside_of_the_build_is_found_and_what_it_runs(bench: Bench) -> None:
    guests = HostedFinder(bench.root)
    server = bench.processes.pop(50)
    for process in (server, Process(60, 50, 60, 1, "R", "c++", 60, 1, 0, 2**20, 1)):
        write_stat(bench.root, process)
    (bench.root / "60" / "cmdline").write_bytes(b"c++\0-c\0-o\0a.o\0/s/a.cpp\0")
    (bench.root / "60" / "cwd").symlink_to("/b")
    assert ProcessTable(50, bench.root).scan().keys() == {60}
    assert found(bench, guests) == {20: [60]}


def write_stat(root: Path, p: Process) -> None:
    (root / str(p.pid)).mkdir(exist_ok=True)
    zeros = " ".join(["0"] * 7)
    text = (
        f"{p.pid} ({p.comm}) {p.state} {p.ppid} {p.pgrp} {p.session} {zeros} 1 0 0 0 20 0 1 0 {p.start_ticks} 0 256 0"
    )
    (root / str(p.pid) / "stat").write_text(text + "\n")


def test_a_child_that_was_born_between_two_searches_is_known_once_it_has_executed_its_command(bench: Bench) -> None:
    finder = HostedFinder(bench.root)
    found(bench, finder)
    assert finder.server_pids == {50}
    bench.add(60, 50, "sccache", "/usr/bin/sccache")
    assert finder.new_child(bench.processes[60]) is None, "it is still between fork and exec"
    bench.add(61, 50, "c++", "c++", "-c", "-o", "a.o", "/s/a.cpp", folder="/b")
    bench.add(62, 50, "c++", "c++", "-c", "-o", "z.o", "/others/z.cpp", folder="/others")
    child = finder.new_child(bench.processes[61])
    assert child is not None
    assert (child.job, child.key, child.prepares) == ((20, 20), (61, 61), False)
    assert finder.new_child(bench.processes[62]) is None, "it works for somebody else"


@pytest.mark.parametrize("word", ["-E", "--preprocess", "-M", "--dryrun"])
def test_a_compiler_that_compiles_nothing_only_prepares(bench: Bench, word: str) -> None:
    finder = HostedFinder(bench.root)
    bench.add(60, 50, "c++", "c++", word, "/s/a.cpp", folder="/b")
    bench.add(70, 50, "c++", "c++", "-c", "-o", "b.o", "/s/b.cpp", folder="/b")
    prepares = {hosted.job[0]: hosted.prepares for hosted in finder.find(bench.processes, bench.clients())}
    assert prepares == {20: True, 30: False}


def test_where_no_job_calls_the_cache_nobody_is_looked_for(bench: Bench) -> None:
    guests = HostedFinder(bench.root)
    assert guests.find(bench.processes, []) == []


def test_a_client_that_has_just_started_a_server_is_known_by_what_it_started_though_that_is_dead() -> None:
    born = round(time.clock_gettime(time.CLOCK_BOOTTIME) * CLK_TCK)
    shell = Process(20, 10, 20, 1, "S", "sh", born, 1, 0, 0, 1)
    client = Process(21, 20, 20, 1, "S", "sccache", born, 1, 0, 0, 1)
    started = Process(22, 21, 22, 22, "Z", "sccache", born, 1, 0, 0, 1)
    now = time.time()
    assert starts_server([shell, client, started], now)
    assert not starts_server([shell, client], now), "it found one"
    assert not starts_server([shell, client, started._replace(comm="cc1plus")], now), "that is no server"
    long_ago = started._replace(start_ticks=born - round((STARTING_SECONDS + 1) * CLK_TCK))
    assert not starts_server([shell, client, long_ago], now)
