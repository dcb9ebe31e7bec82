"""Static libraries: by the real ar, thin ones, BSD names, and broken ones."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from stoker.verify.binary.archive import read_members
from stoker.verify.binary.byte_source import FileSource, MemorySource, UnreadableError
from stoker.verify.pipeline import VerifyRequest, verify

LONG = "a_name_that_is_longer_than_fifteen_characters.o"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "short.o").write_bytes(b"odd")
    (tmp_path / LONG).write_bytes(b"even")
    return tmp_path


def test_members_of_a_library_by_ar(folder: Path) -> None:
    subprocess.run(["ar", "qc", "lib.a", "short.o", LONG], cwd=folder, check=True)

    with FileSource(folder / "lib.a") as source:
        members = list(read_members(source))
        bodies = [source.read(m.offset or 0, m.size) for m in members]

    assert [m.name for m in members] == ["short.o", LONG]
    assert bodies == [b"odd", b"even"]


def test_members_of_a_thin_library_are_files_beside_it(folder: Path) -> None:
    subprocess.run(["ar", "qcT", "lib.a", "short.o", LONG], cwd=folder, check=True)

    with FileSource(folder / "lib.a") as source:
        assert [(m.name, m.offset, m.size) for m in read_members(source)] == [("short.o", None, 3), (LONG, None, 4)]


def test_device_code_behind_a_thin_library_is_found(nvcc: Callable[..., Path], tmp_path: Path) -> None:
    made = nvcc("thin-member.o", "-c", "-arch=sm_80")
    (tmp_path / "k.o").write_bytes(made.read_bytes())
    subprocess.run(["ar", "qcT", "lib.a", "k.o"], cwd=tmp_path, check=True)

    report = verify(VerifyRequest([str(tmp_path / "lib.a")], devices=["8.0"], environment={}))
    assert [d.verdict for d in report.devices] == ["native"]

    (tmp_path / "k.o").unlink()
    report = verify(VerifyRequest([str(tmp_path / "lib.a")], devices=["8.0"], environment={}))
    assert report.exit_status() != 0
    assert any("k.o" in p.file for p in report.problems)


def test_the_long_names_of_bsd_stand_before_the_body() -> None:
    name = b"bsd_name.o\0\0"
    header = b"#1/12".ljust(16) + b"0".ljust(32) + b"15".ljust(10) + b"`\n"

    [member] = read_members(MemorySource(b"!<arch>\n" + header + name + b"odd\n"))

    assert (member.name, member.size) == ("bsd_name.o", 3)


@pytest.mark.parametrize(
    ("tail", "words"),
    [
        (b"short", "cut off"),
        (b"x.o/".ljust(16) + b"0".ljust(32) + b"99999".ljust(10) + b"`\n", "claims 99999"),
        (b"x.o/".ljust(16) + b"0".ljust(32) + b"-8".ljust(10) + b"`\n", "no number"),
        (bytes(60), "no member header"),
    ],
)
def test_a_broken_library_is_told(tail: bytes, words: str) -> None:
    with pytest.raises(UnreadableError, match=words):
        list(read_members(MemorySource(b"!<arch>\n" + tail)))
