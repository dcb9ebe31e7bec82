from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stoker.sense.proc.jobs import JobReport, JobTracker
from stoker.sense.proc.processes import CLK_TCK, Process, ProcessTable
from stoker.sense.proc.schedulers import SchedulerFinder, SchedulerProcess

HOG = "data = bytearray(60 << 20); print(len(data))\nwhile True: pass"
Until = Callable[[Callable[[], object]], None]


class Watch:
    """The loop of an engine, by hand."""

    def __init__(self, tracker: JobTracker | None = None) -> None:
        self.table = ProcessTable(os.getpid())
        self.finder = SchedulerFinder()
        self.tracker = tracker or JobTracker()
        self.started: list[str] = []
        self.vanished: list[str] = []
        self.schedulers: dict[int, SchedulerProcess] = {}

    def tick(self) -> JobReport:
        processes = self.table.scan()
        self.schedulers = dict(self.finder.find(processes))
        report = self.tracker.update(processes, self.schedulers, time.time())
        self.started += [j.label for j in report.started]
        self.vanished += [u.job.label for u in report.vanished]
        return report


def test_jobs_of_a_real_ninja_start_run_and_vanish(
    ninja: str, tmp_path: Path, start: Callable[..., Any], until: Until
) -> None:
    (tmp_path / "hog.py").write_text(HOG)
    (tmp_path / "build.ninja").write_text(
        f"rule hog\n  command = {sys.executable} hog.py -o $out && touch $out\n"
        "build a.o: hog\nbuild b.o: hog\nbuild c.o: hog\n"
    )
    start(ninja, "-j2", "-k0", cwd=tmp_path)
    watch = Watch()
    until(lambda: len(watch.tick().running) == 2)
    until(lambda: all(u.peak_rss > 60 << 20 and u.cpu_percent > 0 for u in watch.tick().running))
    report = watch.tick()
    assert {u.phase for u in report.running} <= {"python3", "python", Path(sys.executable).resolve().name[:15]}
    assert {u.state for u in report.running} == {"running"}
    assert all(u.cpu_seconds > 0 for u in report.running)
    assert all(abs(u.job.started - time.time()) < 60 for u in report.running)

    first = report.running[0]
    os.killpg(first.job.pid, signal.SIGSTOP)
    until(lambda: [u.state for u in watch.tick().running if u.job == first.job] == ["frozen"])
    os.killpg(first.job.pid, signal.SIGKILL)
    until(lambda: watch.tick().vanished or watch.vanished)
    until(lambda: len(watch.tick().running) == 2)
    assert len(watch.started) == 3


def test_short_processes_inside_a_job_are_counted(
    any_ninja: str, tmp_path: Path, start: Callable[..., Any], until: Until
) -> None:
    spin = f"{sys.executable} -c 'sum(range(3000000))'"
    (tmp_path / "build.ninja").write_text(
        f"rule r\n  command = {spin}; {spin}; {spin}; sleep 60; : $out\nbuild out: r\n"
    )
    start(any_ninja, cwd=tmp_path)
    watch = Watch()
    until(lambda: [u for u in watch.tick().running if u.phase == "sleep"])
    [use] = watch.tick().running
    assert use.cpu_seconds > 0.05


def test_the_plan_knows_better_than_the_command_line(
    any_ninja: str, tmp_path: Path, start: Callable[..., Any], until: Until
) -> None:
    (tmp_path / "build.ninja").write_text("rule r\n  command = sleep 60; : $out\nbuild out: r\n")
    start(any_ninja, cwd=tmp_path)
    asked: list[tuple[str, ...]] = []

    def resolve(scheduler: SchedulerProcess, argv: tuple[str, ...]) -> tuple[str, str] | None:
        asked.append(argv)
        return "made/by/plan", "archive"

    watch = Watch(JobTracker(resolve=resolve))  # type: ignore[arg-type]
    until(lambda: watch.tick().started or watch.started)
    assert watch.started == ["made/by/plan"]
    assert asked == [("/bin/sh", "-c", "sleep 60; : out")]


def test_wrappers_of_a_sub_make_are_no_jobs(
    tmp_path: Path, start: Callable[..., Any], until: Until, needs: Callable[..., Any]
) -> None:
    needs("make")
    (tmp_path / "sub").mkdir()
    (tmp_path / "Makefile").write_text("all: one two\none:\n\tcd sub && $(MAKE) all; :\ntwo:\n\tsleep 61; :\n")
    (tmp_path / "sub" / "Makefile").write_text("all: x y\nx y:\n\tsleep 62; : $@\n")
    start("make", "-j4", cwd=tmp_path, env={"MAKEFLAGS": ""})
    watch = Watch()
    until(lambda: len(watch.tick().running) == 3)
    report = watch.tick()
    texts = sorted(u.job.argv[-1] for u in report.running)
    assert texts == ["sleep 61; :", "sleep 62; : x", "sleep 62; : y"]
    assert len(watch.started) == 3
    assert len(watch.schedulers) == 2


def test_what_a_recipe_says_and_tidies_is_no_job_beside_what_it_makes(
    tmp_path: Path, start: Callable[..., Any], until: Until, needs: Callable[..., Any]
) -> None:
    """A FIFO that nobody reads keeps its helper there for as long as the test looks."""
    needs("make")
    os.mkfifo(tmp_path / "pipe")
    (tmp_path / "Makefile").write_text("all: a b\na:\n\techo done > pipe; :\nb:\n\tsleep 61; :\n")
    start("make", "-j4", cwd=tmp_path, env={"MAKEFLAGS": ""})
    watch = Watch()
    until(lambda: len(watch.tick().running) == 1 and shells_in(tmp_path) == 2)
    watch.tick()
    assert [u.job.argv[-1] for u in watch.tick().running] == ["sleep 61; :"]
    assert len(watch.started) == 1


def test_the_make_that_a_linker_runs_for_its_parts_is_a_piece_of_the_link(
    tmp_path: Path, start: Callable[..., Any], until: Until, needs: Callable[..., Any]
) -> None:
    """As gcc's link-time optimisation does, by a program of this name."""
    needs("make")
    wrapper = tmp_path / "lto-wrapper"
    wrapper.write_text("#!/bin/sh\nmake -f parts.mk -j2 all; :\n")
    wrapper.chmod(0o755)
    (tmp_path / "parts.mk").write_text("all: one two\none two:\n\tsleep 63; : $@\n")
    (tmp_path / "Makefile").write_text("lib.so:\n\t./lto-wrapper\n")
    start("make", cwd=tmp_path, env={"MAKEFLAGS": ""})
    watch = Watch()
    until(lambda: watch.tick().running and shells_in(tmp_path) == 2)
    report = watch.tick()
    assert [u.job.argv[-1] for u in report.running] == ["./lto-wrapper"]
    assert len(watch.schedulers) == 1


def shells_in(folder: Path) -> int:
    """How many shells run in the folder."""
    count = 0
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            in_it = Path(os.readlink(process / "cwd")) == folder.resolve()
            count += in_it and (process / "comm").read_text().strip() in ("sh", "dash", "bash")
    return count


def test_a_ninja_inside_a_job_keeps_its_own_jobs(
    any_ninja: str, tmp_path: Path, start: Callable[..., Any], until: Until
) -> None:
    inner = tmp_path / "inner"
    inner.mkdir()
    (tmp_path / "hog.py").write_text(HOG)
    (inner / "build.ninja").write_text(f"rule hog\n  command = {sys.executable} ../hog.py; : $out\nbuild deep: hog\n")
    (tmp_path / "build.ninja").write_text(f"rule r\n  command = cd inner && {any_ninja}; : $out\nbuild outer: r\n")
    top = start(any_ninja, cwd=tmp_path)
    watch = Watch()
    until(lambda: any(u.rss > 60 << 20 for u in watch.tick().running))
    report = watch.tick()
    assert len(report.running) == 2
    by_scheduler = {u.job.scheduler[0]: u for u in report.running}
    outer = by_scheduler.pop(top.pid)
    [deep] = by_scheduler.values()
    assert deep.rss > 60 << 20
    assert outer.rss < 60 << 20
    assert report.nested == {deep.job.scheduler: outer.job.key}


def _process(pid: int, ppid: int, ticks: int = 0, children: int = 0, state: str = "S", rss: int = 1000) -> Process:
    return Process(pid, ppid, pid, 1, state, f"p{pid}", 10, ticks, children, rss, 1)


NINJA = SchedulerProcess(10, 10, "ninja", "/b", "/usr/bin/ninja", ("ninja",), 4, "build.ninja", ())


def _scan(*processes: Process) -> dict[int, Process]:
    return {p.pid: p for p in (_process(10, 1), *processes)}


def _fake_cmdline(root: Path, pid: int, argv: bytes) -> None:
    (root / str(pid)).mkdir(exist_ok=True)
    (root / str(pid) / "cmdline").write_bytes(argv)


def test_a_child_that_is_not_yet_itself_waits(tmp_path: Path) -> None:
    tracker = JobTracker(tmp_path)
    _fake_cmdline(tmp_path, 20, b"ninja\0")
    assert tracker.update(_scan(_process(20, 10)), {10: NINJA}, 100.0).started == ()
    _fake_cmdline(tmp_path, 20, b"sh\0-c\0g++ -c a.cc -o a.o\0")
    [job] = tracker.update(_scan(_process(20, 10)), {10: NINJA}, 101.0).started
    assert (job.output, job.tool) == ("a.o", "cxx")


def test_new_jobs_come_in_the_order_in_which_their_scheduler_started_them(tmp_path: Path) -> None:
    """Many start within one tick of the kernel's clock, and a scan has no order of its own."""
    tracker = JobTracker(tmp_path)
    for pid in (20, 21, 22, 9):
        _fake_cmdline(tmp_path, pid, b"g++\0-c\0a.cc\0")
    later = _process(9, 10)._replace(start_ticks=11)  # pids have begun anew
    found = tracker.update(_scan(later, _process(22, 10), _process(20, 10), _process(21, 10)), {10: NINJA}, 100.0)
    assert [job.pid for job in found.started] == [20, 21, 22, 9]


def test_cpu_is_a_share_of_one_core_over_the_last_tick(tmp_path: Path) -> None:
    tracker = JobTracker(tmp_path)
    _fake_cmdline(tmp_path, 20, b"g++\0-c\0a.cc\0")
    tracker.update(_scan(_process(20, 10)), {10: NINJA}, 100.0)
    tree = (_process(20, 10, ticks=CLK_TCK // 2), _process(21, 20, ticks=CLK_TCK, children=CLK_TCK // 2, rss=5000))
    [use] = tracker.update(_scan(*tree), {10: NINJA}, 101.0).running
    assert (use.cpu_percent, use.rss, use.cpu_seconds) == (200.0, 6000, 2.0)
    reaped = _process(20, 10, ticks=CLK_TCK // 2, children=2 * CLK_TCK)
    [use] = tracker.update(_scan(reaped), {10: NINJA}, 102.0).running
    assert (use.cpu_percent, use.rss, use.peak_rss, use.cpu_seconds) == (50.0, 1000, 6000, 2.5)


def test_a_zombie_is_gone_and_a_reused_pid_is_another_job(tmp_path: Path) -> None:
    tracker = JobTracker(tmp_path)
    _fake_cmdline(tmp_path, 20, b"g++\0-c\0a.cc\0")
    tracker.update(_scan(_process(20, 10)), {10: NINJA}, 100.0)
    report = tracker.update(_scan(_process(20, 10, state="Z")), {10: NINJA}, 101.0)
    assert [u.job.pid for u in report.vanished] == [20]
    assert report.running == ()
    report = tracker.update(_scan(_process(20, 10)._replace(start_ticks=99)), {10: NINJA}, 102.0)
    assert [j.start_ticks for j in report.started] == [99]
    assert report.vanished == ()


def test_a_stopped_job_that_was_not_read_anew_uses_what_it_used(tmp_path: Path) -> None:
    tracker = JobTracker(tmp_path)
    _fake_cmdline(tmp_path, 20, b"sh\0-c\0x\0")
    still = _process(20, 10, state="T"), _process(21, 20, state="T")
    [first] = tracker.update(_scan(*still), {10: NINJA}, 100.0).running
    assert sorted(tracker.still(first.job.key)) == [20, 21]
    [again] = tracker.update(_scan(*still), {10: NINJA}, 101.0).running
    assert again is first
    [grown] = tracker.update(_scan(*still, _process(22, 21, state="T", rss=5000)), {10: NINJA}, 102.0).running
    assert grown.rss == 7000
    half = still[0], _process(21, 20, state="R")
    [first] = tracker.update(_scan(*half), {10: NINJA}, 102.5).running
    assert not tracker.still(first.job.key)
    alive = _process(20, 10, state="R", ticks=CLK_TCK // 2)
    [going] = tracker.update(_scan(alive), {10: NINJA}, 103.0).running
    assert (going.state, going.cpu_percent) == ("running", 100.0)
    assert [u.job.pid for u in tracker.update(_scan(), {10: NINJA}, 104.0).vanished] == [20]


def test_a_job_that_sleeps_is_as_it_was_and_uses_no_cpu_until_it_goes_on(tmp_path: Path) -> None:
    tracker = JobTracker(tmp_path)
    _fake_cmdline(tmp_path, 20, b"sh\0-c\0x\0")
    shell = _process(20, 10, state="S")
    asleep = _scan(shell, _process(21, 20, state="S", ticks=CLK_TCK))
    uses = [use for second in range(4) for use in tracker.update(asleep, {10: NINJA}, 1e9 + second).running]
    assert [use.cpu_percent for use in uses[1:]] == [0.0, 0.0, 0.0]
    assert uses[3] is uses[2], "nothing about it was worked out again"
    assert (uses[3].cpu_seconds, uses[3].rss, uses[3].state) == (1.0, 2000, "running")
    assert not tracker.still(uses[3].job.key), "but it may go on at any moment, so each scan reads it"
    awake = _scan(shell, _process(21, 20, state="R", ticks=CLK_TCK + CLK_TCK // 2, rss=5000))
    [use] = tracker.update(awake, {10: NINJA}, 1e9 + 4).running
    assert (use.cpu_percent, use.cpu_seconds, use.rss) == (50.0, 1.5, 6000)


def test_a_stopped_client_of_a_cache_is_looked_at_again(tmp_path: Path) -> None:
    """Its server may begin the compiler that it has asked for only now."""
    tracker = JobTracker(tmp_path)
    _fake_cmdline(tmp_path, 20, b"sccache\0g++\0-c\0a.cc\0")
    client = _process(20, 10, state="T")._replace(comm="sccache")
    [first] = tracker.update(_scan(client), {10: NINJA}, 100.0).running
    [again] = tracker.update(_scan(client), {10: NINJA}, 101.0).running
    assert again is not first


def test_a_job_is_frozen_only_when_all_of_it_is(tmp_path: Path) -> None:
    tracker = JobTracker(tmp_path)
    _fake_cmdline(tmp_path, 20, b"sh\0-c\0x\0")
    half = _scan(_process(20, 10, state="T"), _process(21, 20, state="R"))
    assert [u.state for u in tracker.update(half, {10: NINJA}, 100.0).running] == ["running"]
    whole = _scan(_process(20, 10, state="T"), _process(21, 20, state="T"), _process(22, 20, state="Z"))
    assert [u.state for u in tracker.update(whole, {10: NINJA}, 101.0).running] == ["frozen"]


def test_what_a_stopped_job_used_before_is_not_what_it_uses_now(tmp_path: Path) -> None:
    tracker = JobTracker(tmp_path)
    _fake_cmdline(tmp_path, 20, b"sh\0-c\0x\0")
    figures = []
    for second, ticks, state in ((0, 0, "R"), (1, CLK_TCK, "T"), (2, CLK_TCK, "T"), (3, 2 * CLK_TCK, "R")):
        scan = _scan(_process(20, 10, ticks=ticks, state=state))
        figures += [use.cpu_percent for use in tracker.update(scan, {10: NINJA}, 1e9 + second).running]
    assert figures[1:] == [100.0, 0.0, 100.0]
