"""Where files go, and what is refused."""

from __future__ import annotations

import os
import socket
import tempfile
from pathlib import Path

import pytest

from stoker.config.paths import (
    BuildPaths,
    UnsafeFolderError,
    config_dir,
    private_dir,
    runtime_dir,
    socket_folder,
    state_dir,
)


@pytest.mark.parametrize("length", [40, 54, 55, 56, 64, 100])
def test_the_longest_name_still_makes_a_socket_that_one_can_connect_to(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, length: int
) -> None:
    base = Path("/tmp") / ("r" * (length - 5))
    base.mkdir(mode=0o700)
    try:
        monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
        path = BuildPaths(tmp_path / ("n" * 24 + "-1120-2359-abcd")).socket
        private_dir(path.parent)
        with socket.socket(socket.AF_UNIX) as server, socket.socket(socket.AF_UNIX) as client:
            server.bind(str(path))
            server.listen()
            client.connect(str(path))
        path.unlink()
    finally:
        if runtime_dir().parent == base and runtime_dir().exists():
            runtime_dir().rmdir()
        base.rmdir()


def test_a_runtime_folder_that_somebody_else_has_taken_costs_no_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with tempfile.TemporaryDirectory(prefix="stoker-test-") as folder:
        monkeypatch.setenv("XDG_RUNTIME_DIR", folder)
        monkeypatch.setenv("XDG_STATE_HOME", f"{folder}/state")
        Path(folder, "stoker").write_text("planted")
        own = socket_folder()
        assert own == Path(folder, "state/stoker/run")
        assert own.stat().st_mode & 0o777 == 0o700
        monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / ("s" * 100)))
        assert socket_folder() == Path(folder, "stoker")  # too long for a socket: nothing better is left


@pytest.mark.skipif(os.geteuid() != 0, reason="a folder of another user takes root")
def test_the_runtime_folder_of_another_user_is_not_ours_after_su(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    os.chown(tmp_path, 12345, 12345)
    assert runtime_dir() == Path("/tmp/stoker-0")


def test_the_launchers_word_on_the_socket_counts_in_every_login(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    paths = BuildPaths(tmp_path / "b")
    paths.root.mkdir()
    paths.socket_note.write_text("/run/user/1000/stoker/b.sock")
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(tmp_path))
    assert paths.socket == Path("/run/user/1000/stoker/b.sock")


def test_a_user_without_a_home_learns_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_STATE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    with pytest.raises(UnsafeFolderError, match="set HOME or XDG_STATE_HOME"):
        state_dir()


def test_settings_do_not_need_a_home_where_the_state_has_a_place(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def no_home() -> Path:
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("XDG_CONFIG_HOME", raising=False)
    monkeypatch.setattr(Path, "home", no_home)
    assert config_dir() == tmp_path / "stoker" / "config"


def test_a_folder_of_somebody_else_is_refused(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(UnsafeFolderError):
        private_dir(tmp_path / "file")
    open_to_all = tmp_path / "open"
    open_to_all.mkdir(mode=0o755)
    assert private_dir(open_to_all).stat().st_mode & 0o777 == 0o700
