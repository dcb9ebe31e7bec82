"""Whether a young job is stopped, as its processes show it."""

from __future__ import annotations

import os
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.act.tree import shows_stop
from stoker.contract.process import Key, start_ticks
from support.supervisors import state_of, until

VFORKS = """
#include <unistd.h>
int main() {
  if (vfork() == 0) sleep(1000);
}
"""


@pytest.fixture
def vforked(tmp_path: Path) -> Iterator[Key]:
    """A process that waits in the kernel for its child's exec, which does not come: it cannot stop until then."""
    (tmp_path / "vforks.c").write_text(VFORKS)
    subprocess.run(["gcc", "-o", "vforks", "vforks.c"], cwd=tmp_path, check=True)
    process = subprocess.Popen([tmp_path / "vforks"], start_new_session=True)
    until(lambda: state_of(process.pid) == "D")
    yield process.pid, start_ticks(process.pid) or 0
    os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def test_a_process_that_was_told_to_stop_and_has_not_had_the_time_shows_it(vforked: Key) -> None:
    assert not shows_stop(vforked)
    os.kill(vforked[0], signal.SIGSTOP)
    assert state_of(vforked[0]) == "D"
    assert shows_stop(vforked)
    os.kill(vforked[0], signal.SIGCONT)
    assert not shows_stop(vforked)


def test_a_stopped_child_shows_it_and_another_process_with_that_pid_does_not(vforked: Key) -> None:
    pid, start = vforked
    (child,) = Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    os.kill(int(child), signal.SIGSTOP)
    until(lambda: state_of(int(child)) == "T")
    assert shows_stop(vforked)
    assert not shows_stop((pid, start + 1))
