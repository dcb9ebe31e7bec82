"""The last look at a build, which no fault of a file or a disk may turn into one of the viewer."""

from __future__ import annotations

import os
import resource
from pathlib import Path

import pytest

from stoker.config.paths import BuildPaths
from stoker.model.look import Look
from stoker.record.look_file import LookFile

LOOK = Look(1_790_000_000.5, 14, 2, 6, 1)


def test_a_look_is_remembered_privately_and_whole(tmp_path: Path) -> None:
    old = os.umask(0)
    try:
        LookFile(BuildPaths(tmp_path)).remember(Look(1.0, 99))
        LookFile(BuildPaths(tmp_path)).remember(LOOK)
    finally:
        os.umask(old)
    assert LookFile(BuildPaths(tmp_path)).recall() == LOOK
    assert [path.name for path in tmp_path.iterdir()] == ["last-look.json"]
    assert (tmp_path / "last-look.json").stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize(
    "content",
    [b"", b"[]", b"{}", b'{"time": "x"}', b'{"time": 1e999}', b"\xff", b"[" * 10**6, b'{"time": 1, "done": 1.5}'],
)
def test_what_cannot_be_used_is_no_look(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "last-look.json").write_bytes(content)
    assert LookFile(BuildPaths(tmp_path)).recall() is None


def test_where_nothing_can_be_remembered_nothing_fails(tmp_path: Path) -> None:
    gone = LookFile(BuildPaths(tmp_path / "removed"))
    gone.remember(LOOK)
    assert gone.recall() is None
    (tmp_path / "last-look.json").mkdir()
    blocked = LookFile(BuildPaths(tmp_path))
    blocked.remember(LOOK)
    assert blocked.recall() is None


def test_a_look_that_cannot_be_written_leaves_the_one_before(tmp_path: Path) -> None:
    file = LookFile(BuildPaths(tmp_path))
    file.remember(LOOK)
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, hard))  # every write fails, as on a full disk
    try:
        file.remember(Look(2.0))
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert file.recall() == LOOK
    assert [path.name for path in tmp_path.iterdir()] == ["last-look.json"]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder to another user")
def test_a_folder_of_another_user_gets_no_look(tmp_path: Path) -> None:
    folder = tmp_path / "theirs"
    folder.mkdir()
    os.chown(folder, 65534, 65534)
    LookFile(BuildPaths(folder)).remember(LOOK)
    assert not list(folder.iterdir())
