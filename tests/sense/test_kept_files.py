"""Files of /proc/PID that are kept open between reads: one that has gone is gone, and no file stays open for it."""

from __future__ import annotations

import os
import subprocess

from stoker.sense.proc.processes import parse_stat
from stoker.sense.proc.procfs import KeptFiles


def _stat(pid: int) -> str:
    return f"/proc/{pid}/stat"


def _open_files() -> set[str]:
    links = (f"/proc/self/fd/{fd}" for fd in os.listdir("/proc/self/fd"))
    return {os.readlink(link) for link in links if os.path.lexists(link)}


def test_each_read_shows_the_process_as_it_is_now() -> None:
    files = KeptFiles(4)
    with subprocess.Popen(["cat"], stdin=subprocess.PIPE, stdout=subprocess.PIPE) as child:
        path = _stat(child.pid)
        first = parse_stat(files.read(path) or b"")
        assert first is not None
        assert first.state != "Z"
        assert _open_files() & {path}
        child.communicate()
        assert files.read(path) is None
        assert not _open_files() & {path}


def test_no_more_are_kept_open_than_allowed_and_all_are_read() -> None:
    files = KeptFiles(1)
    mine, parent = _stat(os.getpid()), _stat(os.getppid())
    for path in (mine, parent, mine, parent):
        data = files.read(path)
        assert data is not None
        assert data.startswith(path.split("/")[2].encode())
    assert parent not in _open_files()


def test_what_is_not_kept_is_closed() -> None:
    files = KeptFiles(4)
    mine, parent = _stat(os.getpid()), _stat(os.getppid())
    for path in (mine, parent):
        files.read(path)
    files.keep({mine})
    assert mine in _open_files()
    assert parent not in _open_files()
    del files
    assert mine not in _open_files()
