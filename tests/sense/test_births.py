"""Newborn children are found, each once, whichever way this kernel offers."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

from stoker.sense.proc.births import BirthWatch
from support.program import until

ME = os.getpid()


def watch_from_now() -> BirthWatch:
    """A watch that has met the children that other tests of this process have left."""
    watch = BirthWatch()
    watch.look({ME})
    return watch


def test_a_child_is_told_once_and_somebody_elses_never() -> None:
    watch = watch_from_now()
    with subprocess.Popen(["sh", "-c", "sleep 30 & echo; wait"], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert [p.pid for p in watch.look({ME})] == [child.pid]
        assert watch.look({ME}) == []
        subprocess.run(["true"], check=True)
        assert watch.look({ME}) == []
        child.kill()


def test_threads_of_a_child_are_no_children() -> None:
    code = "import threading, time; [threading.Thread(target=time.sleep, args=(30,), daemon=True).start() for _ in range(5)]; print(flush=True); time.sleep(30)"  # noqa: E501
    watch = watch_from_now()
    with subprocess.Popen([sys.executable, "-c", code], stdout=subprocess.PIPE) as child:
        assert child.stdout is not None
        child.stdout.readline()
        assert [p.pid for p in watch.look({ME})] == [child.pid]
        child.kill()


def test_where_the_last_pid_cannot_be_believed_proc_is_listed(tmp_path: Path) -> None:
    """A container may show a load average of its own making."""
    proc = tmp_path / "proc"
    proc.mkdir()
    (proc / "loadavg").write_text("0.00 0.00 0.00 1/100 0\n")
    watch = BirthWatch(proc)
    assert watch.look({7}) == []
    _process(proc, 41, ppid=7)
    _process(proc, 42, ppid=8)
    assert [p.pid for p in watch.look({7})] == [41]
    assert watch.look({7}) == []


def test_the_kernels_own_lists_of_children_are_used_where_there_are_any(tmp_path: Path) -> None:
    proc = tmp_path / "proc"
    for pid, children in ((ME, ""), (7, "41 42"), (8, "43")):
        (proc / str(pid) / "task" / str(pid)).mkdir(parents=True)
        (proc / str(pid) / "task" / str(pid) / "children").write_text(children)
    _process(proc, 41, ppid=7)
    _process(proc, 42, ppid=7)
    _process(proc, 43, ppid=8)
    watch = BirthWatch(proc)
    assert [p.pid for p in watch.look([7, 8])] == [41, 42, 43]
    assert watch.look([7, 8]) == []
    (proc / "7" / "task" / "7" / "children").write_text("42 44")
    _process(proc, 44, ppid=7)
    assert [p.pid for p in watch.look([7, 8])] == [44]
    assert watch.look([7]) == []
    assert [p.pid for p in watch.look([7, 8])] == [43]


def test_many_births_between_two_looks_are_all_found() -> None:
    watch = watch_from_now()
    children = [subprocess.Popen(["sleep", "30"]) for _ in range(60)]
    try:
        found: set[int] = set()

        def all_found() -> bool:
            found.update(p.pid for p in watch.look({ME}))
            return len(found) == 60

        until(all_found, "sixty children")
        assert found == {c.pid for c in children}
    finally:
        for child in children:
            child.kill()
            child.wait()


def _process(proc: Path, pid: int, ppid: int) -> None:
    (proc / str(pid)).mkdir(exist_ok=True)
    rest = " ".join(["0"] * 48)
    (proc / str(pid) / "stat").write_text(f"{pid} (sh) S {ppid} {pid} {pid} {rest}\n")
    (proc / str(pid) / "status").write_text(f"Name:\tsh\nTgid:\t{pid}\n")
