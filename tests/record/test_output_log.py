"""The build's output by offset, whether or not there is any."""

from __future__ import annotations

import os
from pathlib import Path

from stoker.record.output_log import FileLog
from stoker.show.update_source import OutputLog


def test_reads_by_offset_and_grows_with_the_file(tmp_path: Path) -> None:
    log: OutputLog = FileLog(tmp_path / "output.log")
    assert (log.size(), log.read(0, 10)) == (0, b"")
    (tmp_path / "output.log").write_bytes(b"one\ntwo\n\xff\x00")
    assert log.size() == 10
    assert log.read(4, 3) == b"two"
    assert log.read(8, 100) == b"\xff\x00"
    assert log.read(1000, 5) == b""
    with (tmp_path / "output.log").open("ab") as file:
        file.write(b"more")
    assert log.read(10, 4) == b"more"


def test_what_is_no_file_reads_as_nothing(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "output.log")
    assert FileLog(tmp_path / "output.log").read(0, 10) == b""
    assert FileLog(tmp_path).read(0, 10) == b""
