"""`stoker unpause` where no engine answers: whatever of a build is stopped goes on."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path

from stoker.act.stop import continue_build
from stoker.act.tree import descendants
from support.supervisors import Start, finish, job_pid, ninja, state_of, stopped, supervisor_of, until

VFORKS = """
#include <signal.h>
#include <stdio.h>
#include <unistd.h>
int main() {
  if (vfork() == 0) {
    FILE* file = fopen("child.new", "w");
    fprintf(file, "%d", (int)getpid());
    fclose(file);
    rename("child.new", "0.pid");
    raise(SIGSTOP);
    execlp("sleep", "sleep", "1000", (char*)0);
    _exit(1);
  }
  pause();
}
"""
"""A shell's moment between vfork and exec, made to last: until the child has run its exec, the parent cannot stop."""


def test_each_stopped_job_goes_on_and_is_counted(start: Start, tmp_path: Path) -> None:
    paths = start(*ninja(tmp_path, 3))
    for n in (1, 2):
        os.kill(job_pid(tmp_path, n), signal.SIGSTOP)
    until(lambda: stopped(tmp_path, [0, 1, 2]) == [1, 2])
    assert continue_build(paths) == 2
    until(lambda: not stopped(tmp_path, [0, 1, 2]))
    for n in range(3):
        finish(tmp_path, n)


def test_a_process_whose_stop_is_still_to_come_is_not_forgotten(start: Start, tmp_path: Path) -> None:
    (tmp_path / "vforks.c").write_text(VFORKS)
    subprocess.run(["gcc", "-o", "vforks", "vforks.c"], cwd=tmp_path, check=True)
    paths = start("./vforks")
    child, parent = job_pid(tmp_path, 0), supervisor_of(paths)["build_pid"]
    until(lambda: state_of(child) == "T")
    os.kill(parent, signal.SIGSTOP)
    assert state_of(parent) == "D"
    assert continue_build(paths) == 1
    until(lambda: Path(f"/proc/{child}/comm").read_text() == "sleep\n")
    until(lambda: state_of(parent) == "S")
    assert descendants(parent) == [child]
