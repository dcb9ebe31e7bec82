"""Logs as they come: packed, in UTF-16, cut off, damaged, a folder or a .zip of them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

import pytest

from stoker.cli.main import main
from stoker.diagnose import log_files, zipped_logs
from stoker.diagnose.log_files import logs_in, unpacked
from stoker.diagnose.zipped_logs import logs_in_zip

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

TEXT = "".join(f"[{n}/9999] Building é {n * n}\n" for n in range(9999))
DATA = TEXT.encode()
PACK: dict[str, Callable[[bytes], bytes]] = {
    "gzip": gzip.compress,
    "xz": lzma.compress,
    "zstd": zstd.compress,
    "bzip2": bz2.compress,
    "not": lambda data: data,
}


def all_of(data: bytes) -> bytes:
    file = unpacked(io.BytesIO(data))
    return b"".join(iter(lambda: file.read(1000), b""))


@pytest.mark.parametrize("pack", PACK.values(), ids=PACK.keys())
def test_what_is_packed_is_read_as_its_text(pack: Callable[[bytes], bytes]) -> None:
    assert all_of(pack(DATA)) == DATA
    assert all_of(pack(TEXT.encode("utf-16"))) == DATA
    assert all_of(pack(b"")) == b""


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
def test_utf_16_with_and_without_its_mark(encoding: str) -> None:
    assert all_of(TEXT.encode(encoding)) == DATA


def test_binary_junk_is_no_utf_16() -> None:
    for data in (bytes(range(256)) * 99, b"\0" * 9999, b"a\0b\nplain text that is long enough\n" * 9):
        assert all_of(data) == data


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstd.compress, bz2.compress])
def test_a_packed_log_that_was_cut_off_ends_where_it_breaks(pack: Callable[[bytes], bytes]) -> None:
    noise = b"".join(b"%d\n" % (n * n * 7919 % 1_000_003) for n in range(200_000))
    found = all_of(pack(noise)[:-2000])
    assert noise.startswith(found)


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstd.compress, bz2.compress])
@pytest.mark.parametrize("hostile", [b"\0" * 900_000, b"[9/9] Building\n" * 60_000], ids=["no-lines", "lines"])
def test_a_bomb_is_read_up_to_a_limit_and_judged_by_what_was_read(
    hostile: bytes,
    pack: Callable[[bytes], bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(log_files, "MAX_UNPACKED", 100_000)
    log = tmp_path / "bomb"
    log.write_bytes(pack(b"a.cpp:1:10: fatal error: mpi.h: No such file or directory\n" + hostile))
    assert main(["diagnose", str(log)]) == 0
    said = capsys.readouterr()
    assert "mpi.h" in said.out
    assert said.err.count("\n") == 1
    assert "the rest was not read" in said.err
    log.write_bytes(pack(hostile))
    assert main(["diagnose", str(log)]) == 1  # a build's end that was not read is no good one
    assert "nothing known in it" in capsys.readouterr().out


@pytest.mark.parametrize("magic", [b"\x1f\x8b", b"\xfd7zXZ\0", b"\x28\xb5\x2f\xfd", b"BZh"])
def test_what_only_looks_packed_is_refused_in_words(magic: bytes) -> None:
    with pytest.raises(OSError, match="cannot be unpacked"):
        all_of(magic + b"junk" * 99)


def test_logs_of_a_folder_in_order_and_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("b/2.log", "a/1.txt.gz", "c.out", "d.png", "e/f/3.log"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    (tmp_path / "link.log").symlink_to(tmp_path / "c.out")
    (tmp_path / "loop").symlink_to(tmp_path)
    found = [str(path.relative_to(tmp_path)) for path in logs_in(tmp_path)]
    assert found == ["a/1.txt.gz", "b/2.log", "c.out", "e/f/3.log"]
    monkeypatch.setattr(log_files, "MAX_LOGS", 2)
    assert len(logs_in(tmp_path)) == 2


COMPILES = "2026-01-02T03:04:05.6789012Z [1/2] Building CXX object a.o\n"
KILLED = "2026-01-02T03:04:06.6789012Z g++: fatal error: Killed signal terminated program cc1plus\n"
STEPS = {
    "0_build (12.8).txt": "\ufeff" + COMPILES + KILLED,
    "build (12.8)/1_Set up job.txt": "\ufeff2026-01-02T03:04:01.6789012Z Current runner version: '2.320.0'\n",
    "build (12.8)/system.txt": "2026-01-02T03:04:01Z Job is about to start running on the runner: GitHub Actions 2",
    "test/10_Build.txt": "\ufeff" + KILLED,
    "test/9_Configure.txt": "\ufeff" + COMPILES.strip(),
    "test/1_Set up job.txt": "\ufeff2026-01-02T03:04:01.6789012Z Current runner version: '2.320.0'\n",
}


def zipped(folder: Path, files: dict[str, str], name: str = "logs.zip") -> Path:
    with zipfile.ZipFile(folder / name, "w", zipfile.ZIP_DEFLATED) as archive:
        for file, text in files.items():
            archive.writestr(file, text)
    return folder / name


def test_a_zip_of_github_holds_a_log_of_each_job_of_its_steps_in_their_order(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = zipped(tmp_path, STEPS)
    logs = logs_in_zip(path)
    assert [log.name for log in logs] == [f"{path}: build (12.8)", f"{path}: test"]
    file = logs[1].text(lambda: None)
    text = b"".join(iter(lambda: file.read(50), b"")).decode()
    assert [line[-10:] for line in text.splitlines()] == [" '2.320.0'", "object a.o", "am cc1plus"]
    assert main(["diagnose", str(path)]) == 0
    said = capsys.readouterr().out
    assert said.count("[compiler-killed]") == 2
    assert "\n  > 3  2026-01-02T03:04:06.6789012Z g++: fatal error" in said, "the line as it is in the log"


def test_any_other_zip_of_logs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = zipped(tmp_path, {"a/build.log": KILLED, "../../b.txt": COMPILES, "c.png": "x"})
    assert [log.name.rpartition(": ")[2] for log in logs_in_zip(path)] == ["../../b.txt", "a/build.log"]
    assert main(["diagnose", str(zipped(tmp_path, {"c.png": "x"}, "none.zip"))]) == 2
    assert "none.zip: holds no logs" in capsys.readouterr().err


def test_a_zip_that_is_a_bomb_is_read_up_to_a_limit(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(zipped_logs, "MAX_UNPACKED", 200_000)
    path = zipped(tmp_path, {"0_a.txt": KILLED + "\0" * 9_000_000, "1_b.txt": "x" * 9_000_000})
    assert main(["diagnose", str(path)]) == 0
    said = capsys.readouterr()
    assert "[compiler-killed]" in said.out
    assert said.err.count("the rest was not read") == 2
    monkeypatch.setattr(zipped_logs, "MAX_LOGS", 1)
    assert len(logs_in_zip(path)) == 1


@pytest.mark.parametrize("damage", ["cut", "entries", "list", "junk"])
def test_a_damaged_zip_is_refused_in_one_line(damage: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = zipped(tmp_path, STEPS)
    data = bytearray(path.read_bytes())
    if damage == "cut":
        del data[-30:]
    elif damage == "entries":
        data[30:200] = b"\xff" * 170
    elif damage == "list":
        data[-10:-6] = (64 << 20).to_bytes(4, "little")
    else:
        data[4:] = b"junk" * 99
    path.write_bytes(data)
    assert main(["diagnose", str(path)]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_zip_by_stdin_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(OSError, match="give 'stoker diagnose' its name"):
        all_of(zipped(tmp_path, STEPS).read_bytes())
