"""The folder for temporary files: private, removed with all that is in it, and never anything beside it."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from stoker.act import ramdisk

ROOT = os.getuid() == 0


@pytest.fixture
def folder(tmp_path: Path) -> str:
    return ramdisk.make(str(tmp_path), "/state/builds/b-1")


def test_it_is_private_and_tells_whose_it_is(folder: str, tmp_path: Path) -> None:
    assert os.stat(folder).st_mode & 0o777 == os.stat(ramdisk.tmpdir(folder)).st_mode & 0o777 == 0o700
    assert list(ramdisk.found_in(str(tmp_path))) == [(folder, "/state/builds/b-1")]
    assert list(ramdisk.found_in(str(tmp_path / "missing"))) == []


def test_all_of_it_goes_and_nothing_else(folder: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    (outside / "deep").mkdir(parents=True)
    (outside / "keep").write_text("kept")
    inside = Path(ramdisk.tmpdir(folder))
    (inside / "link").symlink_to(outside, target_is_directory=True)
    (inside / "file-link").symlink_to(outside / "keep")
    os.link(outside / "keep", inside / "hard")
    os.mkfifo(inside / "fifo")
    (inside / "a" / "b").mkdir(parents=True)
    (inside / "a" / "b" / "up").symlink_to("../../../..", target_is_directory=True)
    (inside / "a" / "\n\udcff.cpp").write_text("x")

    assert ramdisk.remove(folder)

    assert not os.path.lexists(folder)
    assert (outside / "keep").read_text() == "kept"
    assert (outside / "deep").is_dir()


def test_a_folder_of_any_depth_goes(tmp_path: Path) -> None:
    """Deeper than Python may recurse and than a process may have files open."""
    folder = ramdisk.make("/dev/shm" if os.access("/dev/shm", os.W_OK) else str(tmp_path), str(tmp_path))
    here = os.open(ramdisk.tmpdir(folder), os.O_RDONLY)
    for _ in range(1200):
        os.mkdir("deeper", dir_fd=here)
        inner = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    assert ramdisk.remove(folder)
    assert not os.path.exists(folder)


def test_write_protected_folders_go_too(folder: str) -> None:
    """As Go's module cache has them; a root that is bound by permissions stands in for a user."""
    inner = Path(ramdisk.tmpdir(folder), "mod", "pkg")
    inner.mkdir(parents=True)
    (inner / "file").write_text("x")
    inner.chmod(0o555)
    inner.parent.chmod(0o555)
    remove = f"import sys; from stoker.act import ramdisk; sys.exit(not ramdisk.remove({folder!r}))"
    bound = ["setpriv", "--bounding-set=-all", "--inh-caps=-all"] if ROOT else []
    assert subprocess.run([*bound, sys.executable, "-c", remove], check=False).returncode == 0
    assert not os.path.exists(folder)


@pytest.mark.skipif(not ROOT, reason="mounting takes root")
def test_what_is_mounted_in_it_stays_and_is_not_touched(folder: str, tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir(mode=0o750)
    (outside / "keep").write_text("kept")
    inside = Path(ramdisk.tmpdir(folder))
    (inside / "x" / "mounted").mkdir(parents=True)
    (inside / "other").write_text("x")
    subprocess.run(["mount", "--bind", str(outside), str(inside / "x" / "mounted")], check=True)
    try:
        assert not ramdisk.remove(folder)
        assert (outside / "keep").read_text() == "kept"
        assert os.stat(outside).st_mode & 0o777 == 0o750
        assert not (inside / "other").exists()
    finally:
        [mounted] = [
            line.split()[4] for line in Path("/proc/self/mountinfo").read_text().splitlines() if folder in line
        ]
        subprocess.run(["umount", mounted], check=True)
    assert ramdisk.remove(folder)
    assert (outside / "keep").exists()


def test_what_is_not_ours_is_never_removed(tmp_path: Path) -> None:
    real = tmp_path / "real"
    real.mkdir(mode=0o700)
    (real / "keep").write_text("kept")
    link = tmp_path / f"{ramdisk.PREFIX}link"
    link.symlink_to(real, target_is_directory=True)
    open_to_all = tmp_path / f"{ramdisk.PREFIX}open"
    open_to_all.mkdir()
    open_to_all.chmod(0o777)
    (open_to_all / ramdisk.OWNER).write_text("/x")
    for path in (link, open_to_all, real):
        assert not ramdisk.remove(str(path))
        ramdisk.clear(str(path))
    assert (real / "keep").exists()
    assert open_to_all.exists()
    assert list(ramdisk.found_in(str(tmp_path))) == []
    assert ramdisk.remove(str(tmp_path / f"{ramdisk.PREFIX}gone"))


def test_clearing_leaves_an_empty_folder_for_temporaries(folder: str, tmp_path: Path) -> None:
    inside = Path(ramdisk.tmpdir(folder))
    (inside / "tmpxft").mkdir()
    (inside / "tmpxft" / "a.ptx").write_bytes(bytes(9999))
    ramdisk.clear(folder)
    assert list(inside.iterdir()) == []
    assert list(ramdisk.found_in(str(tmp_path))) == [(folder, "/state/builds/b-1")]


@pytest.fixture(params=["", "/sub"])
def daemon(folder: str, request: pytest.FixtureRequest) -> Iterator[subprocess.Popen[bytes]]:
    environment = {"TMPDIR": ramdisk.tmpdir(folder) + request.param, "PATH": os.environ["PATH"]}
    process = subprocess.Popen(["sleep", "600"], env=environment)
    yield process
    process.kill()
    process.wait()


def test_who_uses_it_is_found_by_tmpdir(folder: str, daemon: subprocess.Popen[bytes], tmp_path: Path) -> None:
    other = ramdisk.make(str(tmp_path), "/x")
    assert ramdisk.users(folder) == ramdisk.users(folder, [daemon.pid, os.getpid()]) == [daemon.pid]
    assert ramdisk.users(other) == []
    assert ramdisk.users(folder, [os.getpid()]) == []
