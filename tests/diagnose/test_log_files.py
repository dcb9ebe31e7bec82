"""Logs as they come: packed, in UTF-16, cut off, damaged, a folder of them."""

from __future__ import annotations

import bz2
import gzip
import io
import lzma
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from stoker.cli.main import main
from stoker.diagnose import log_files
from stoker.diagnose.log_files import logs_in, unpacked

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
