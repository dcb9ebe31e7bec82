"""Wheels: RECORD, tags, libraries; read without unpacking, and whatever a hostile one does."""

from __future__ import annotations

import io
import random
import re
import struct
import tracemalloc
import zipfile
import zlib
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stoker.model.report import Problem, Report
from stoker.verify.binary import deflated_source
from stoker.verify.binary.byte_source import Deadline, MemorySource, UnreadableError
from stoker.verify.binary.deflated_source import DeflatedSource
from stoker.verify.binary.elf import Dynamic
from stoker.verify.pipeline import VerifyRequest, verify
from stoker.verify.wheel.tags import broken_by, fitting, parse_platform, strictest

Write = Callable[..., Path]
Compile = Callable[..., Path]


def report_of(path: Path) -> Report:
    return verify(VerifyRequest([str(path)], environment={}))


def grave(report: Report) -> list[Problem]:
    return [p for p in report.problems if p.severity == "error"]


def test_a_good_wheel_has_nothing_wrong(wheel: Write, cc: Compile) -> None:
    library = cc("_C.so").read_bytes()

    report = report_of(wheel({"pack/__init__.py": b"", "pack/_C.so": library}))

    assert grave(report) == []
    assert [f.path.rsplit("::")[-1] for f in report.files] == ["pack/_C.so"]
    assert report.exit_status() == 0


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda r: r.replace(b"pack/a.py,sha256=", b"pack/a.py,sha256=A"), "does not have the sha256"),
        (lambda r: r.replace(b",5\n", b",6\n"), "has 5 bytes, RECORD says 6"),
        (lambda r: r.replace(b"pack/a.py", b"pack/b.py"), "is not in RECORD"),
        (lambda r: r.replace(b"pack/a.py", b"pack/b.py"), "not in the wheel"),
        (lambda r: r.replace(b"pack/a.py,sha256=", b"pack/a.py,md5="), "no usable hash"),
        (lambda r: b"", "has no RECORD"),
    ],
)
def test_a_record_that_lies_is_told(wheel: Write, change: Callable[[bytes], bytes], words: str) -> None:
    report = report_of(wheel({"pack/a.py": b"a = 1"}, record=change))

    [severity] = {p.severity for p in report.problems if words in p.what}
    # pip installs the one without a word, and refuses the other.
    refused = words == "has no RECORD"
    assert (severity, report.exit_status()) == (("error", 1) if refused else ("warning", 0))


def test_a_member_that_was_changed_after_packing_is_told(wheel: Write, tmp_path: Path) -> None:
    good = wheel({"pack/a.py": b"a = 1", "pack/b.py": b"b = 1"})
    with zipfile.ZipFile(good) as archive:
        members = {m.filename: archive.read(m) for m in archive.infolist()}
    members["pack/a.py"] = b"a = 2"
    with zipfile.ZipFile(good, "w") as archive:
        for name, data in members.items():
            archive.writestr(name, data)

    [problem] = [p for p in report_of(good).problems if p.severity == "warning"]

    assert problem.file.endswith("pack/a.py")


def test_the_hash_of_a_large_member_is_compared_where_that_is_asked_for(wheel: Write) -> None:
    def forged(record: bytes) -> bytes:
        return re.sub(rb"pack/big.bin,sha256=.", b"pack/big.bin,sha256=_", record)

    path = wheel({"pack/big.bin": bytes(2 << 20)}, record=forged)

    texts = [
        [p.what for p in verify(VerifyRequest([str(path)], environment={}, hashes=hashes)).problems]
        for hashes in (False, True)
    ]

    assert [sum("does not have the sha256" in what for what in found) for found in texts] == [0, 1]


@pytest.mark.parametrize("padding", [0, 1 << 20])
def test_a_library_in_a_wheel_is_read_whatever_its_size(wheel: Write, cc: Compile, padding: int) -> None:
    """Small members are inflated at once, large ones in pieces."""
    path = wheel({"pack/_C.so": cc("_C.so", "", "-lm", "-Wl,--no-as-needed").read_bytes() + random.randbytes(padding)})

    [file] = report_of(path).files

    assert ("libc.so.6" in file.needed, file.size > padding, file.problems) == (True, True, ())


@pytest.mark.parametrize("padding", [0, 1 << 20])
def test_a_library_in_a_wheel_that_breaks_off_is_unreadable(wheel: Write, cc: Compile, padding: int) -> None:
    path = wheel({"pack/_C.so": cc("_C.so").read_bytes() + random.randbytes(padding)})
    data = bytearray(path.read_bytes())
    middle = len(data) // 4
    data[middle : middle + 64] = b"\xff" * 64
    path.write_bytes(data)

    report = report_of(path)

    assert (report.verdict, report.exit_status()) == ("unread", 2)
    assert {p.file.rsplit("::")[-1] for p in grave(report)} == {"pack/_C.so"}


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
def test_a_member_whose_checksum_is_wrong_is_damaged(wheel: Write, compression: int) -> None:
    """pip's zipfile raises BadZipFile for it."""
    content = b"a = 12345"
    path = wheel({"pack/a.py": content}, compression=compression)
    right = struct.pack("<I", zlib.crc32(content))
    path.write_bytes(path.read_bytes().replace(right, bytes(b ^ 1 for b in right)))

    report = report_of(path)

    assert [(p.unreadable, "damaged" in p.what) for p in grave(report)] == [(True, True)]
    assert report.exit_status() == 2


@pytest.mark.parametrize(
    ("name", "tag", "severity", "words"),
    [
        ("pack-1.0-py3-none-manylinux_2_28_x86_64.whl", "py3-none-linux_x86_64", "warning", "is tagged"),
        ("other-1.0-py3-none-any.whl", "", "error", "pip will refuse"),
        ("pack-2.0-py3-none-any.whl", "", "warning", "holds pack-1.0.dist-info"),
        ("pack.whl", "py3-none-any", "error", "is not NAME-VERSION-PYTHON-ABI-PLATFORM.whl: pip will refuse it"),
    ],
)
def test_names_that_disagree_are_told(wheel: Write, name: str, tag: str, severity: str, words: str) -> None:
    report = report_of(wheel({"pack/a.py": b"a = 1"}, name, tag=tag))

    assert any(p.severity == severity and words in p.what for p in report.problems)


def test_a_library_for_another_machine_or_python_is_told(wheel: Write, cc: Compile) -> None:
    library = cc("x.so").read_bytes()
    members = {"pack/_C.cpython-310-x86_64-linux-gnu.so": library}

    report = report_of(wheel(members, "pack-1.0-cp311-cp311-manylinux_2_28_s390x.whl"))

    words = " ".join(p.what for p in grave(report))
    assert "tagged for s390x" in words
    assert "CPython 310" in words


def test_names_that_leave_the_folder_are_told(wheel: Write) -> None:
    report = report_of(wheel({"../../etc/passwd": b"x", "/abs.py": b"y"}))

    assert sum("outside the folder" in p.what for p in grave(report)) == 2


@pytest.mark.parametrize(
    ("tag", "versions", "beyond"),
    [
        ("manylinux_2_28_x86_64", ("GLIBC_2.28", "GLIBC_2.2.5"), []),
        ("manylinux_2_28_x86_64", ("GLIBC_2.29", "GLIBC_2.34"), ["GLIBC_2.34"]),
        ("manylinux2014_x86_64", ("GLIBC_2.18",), ["GLIBC_2.18"]),
        ("manylinux2014_x86_64", ("GLIBCXX_3.4.21", "CXXABI_1.3.7"), ["GLIBCXX_3.4.21"]),
        ("manylinux_2_28_x86_64", ("GLIBCXX_3.4.24", "CXXABI_1.3.11", "GCC_7.0.0"), []),
        ("manylinux_2_28_x86_64", ("GLIBC_PRIVATE", "CXXABI_FLOAT128", "OTHER_9.9"), []),
        ("manylinux_2_35_x86_64", ("GLIBC_ABI_DT_RELR",), ["GLIBC_ABI_DT_RELR"]),
        ("manylinux_2_36_x86_64", ("GLIBC_ABI_DT_RELR", "GLIBC_2.36"), []),
        ("manylinux_2_12_x86_64", ("ZLIB_1.2.3.4",), ["ZLIB_1.2.3.4"]),
        ("manylinux_2_17_x86_64", ("ZLIB_1.2.3.4",), []),
        ("musllinux_1_2_x86_64", ("GLIBC_2.2.5",), ["GLIBC_2.2.5"]),
        ("linux_x86_64", ("GLIBC_2.99",), []),
    ],
)
def test_a_platform_tag_is_held_against_the_symbols(tag: str, versions: tuple[str, ...], beyond: list[str]) -> None:
    promise = parse_platform(tag)
    assert promise is not None

    assert broken_by(promise, Dynamic(versions=(("libc.so.6", versions),)), frozenset()) == beyond


@pytest.mark.parametrize(
    ("versions", "tag"),
    [
        (("GLIBC_2.2.5", "GLIBC_2.25", "GLIBCXX_3.4.21"), "manylinux_2_26_x86_64"),  # pyzmq 27.3.0, as auditwheel says
        (("GLIBC_2.14", "GLIBCXX_3.4.21", "CXXABI_1.3.9"), "manylinux_2_24_x86_64"),  # levenshtein 0.27.5
        (("GLIBC_2.27", "GCC_4.8.0", "QUADMATH_1.0"), "manylinux_2_27_x86_64"),  # numpy 2.4.6
        (("GLIBC_2.34", "GCC_4.2.0"), "manylinux_2_34_x86_64"),  # cryptography 50.0.2
        (("GLIBC_ABI_DT_RELR",), "manylinux_2_36_x86_64"),
        ((), "manylinux_2_5_x86_64"),
        (("GLIBCXX_3.4.99",), ""),
    ],
)
def test_the_tag_that_fits_is_the_lowest_that_holds_all_symbols(versions: tuple[str, ...], tag: str) -> None:
    assert fitting(versions, "x86_64") == tag


def test_a_linux_wheel_is_told_the_tag_that_its_symbols_allow(wheel: Write, cc: Compile) -> None:
    library = cc("_C.so", "#include <math.h>\ndouble f(double x) { return pow(x, x); }", "-lm").read_bytes()

    report = report_of(wheel({"pack/_C.so": library}, "pack-1.0-py3-none-linux_x86_64.whl"))

    (problem,) = [p for p in report.problems if "linux tag" in p.what]
    found = re.search(r"--platform-tag manylinux_2_(\d+)_x86_64", problem.remedy)
    assert found is not None
    assert int(found[1]) >= 31, "this pow came with glibc 2.29, and no distribution has 2.29 or 2.30"


def test_a_library_that_travels_along_sets_no_limit() -> None:
    promise = parse_platform("manylinux_2_17_x86_64")
    assert promise is not None
    dynamic = Dynamic(versions=(("libstdc++.so.6", ("GLIBCXX_3.4.30",)),))

    assert broken_by(promise, dynamic, frozenset({"libstdc++.so.6"})) == []


def test_of_several_tags_the_hardest_counts() -> None:
    promises = [p for t in ("manylinux_2_28_x86_64", "manylinux2014_x86_64", "any") if (p := parse_platform(t))]

    found = strictest(promises)

    assert found is not None
    assert found.libc == (2, 17)


class TestHostile:
    """A wheel from a stranger costs no more memory and time than an honest one, and hides nothing beside it."""

    def test_a_bomb_is_bounded_in_memory(self, tmp_path: Path) -> None:
        path = tmp_path / "pack-1.0-py3-none-any.whl"
        with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
            with archive.open("pack/zeros.so", "w", force_zip64=True) as member:
                member.write(b"\x7fELF\x02\x01\x01" + bytes(57))
                for _ in range(300):
                    member.write(bytes(1 << 20))
            archive.writestr("pack-1.0.dist-info/WHEEL", "Tag: py3-none-any\n")
        tracemalloc.start()
        try:
            report = report_of(path)
            _, peak = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()

        assert report.files
        assert peak < 64 << 20

    def test_a_size_that_deflate_cannot_reach_is_refused_unread(self) -> None:
        with pytest.raises(UnreadableError, match="more than"):
            DeflatedSource(MemorySource(bytes(1000)), 1 << 30, Deadline())

    def test_a_member_that_unpacks_to_more_than_it_claims_is_told(self, wheel: Write) -> None:
        path = wheel({"pack/a.bin": bytes(5 << 20), "pack/b.py": b"b = 1"})
        data = path.read_bytes()
        size, lie = struct.pack("<I", 5 << 20), struct.pack("<I", 100)
        path.write_bytes(data.replace(size, lie))

        problems = grave(report_of(path))

        assert any("a.bin" in p.file and "more than the 100" in p.what for p in problems)
        assert not any("b.py" in p.file for p in problems)

    def test_members_that_share_their_bytes_are_refused(self, tmp_path: Path) -> None:
        buffer = io.BytesIO()
        with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
            archive.writestr("a", bytes(range(256)) * 400)
        data = buffer.getvalue()
        at = data.index(b"PK\x01\x02")
        entry, end = data[at : data.index(b"PK\x05\x06")], data[data.index(b"PK\x05\x06") :]
        many = 5000
        tail = end[:8] + struct.pack("<HHI", many, many, len(entry) * many) + end[16:]
        path = tmp_path / "pack-1.0-py3-none-any.whl"
        path.write_bytes(data[:at] + entry * many + tail)

        [problem] = grave(report_of(path))

        assert "packed bytes" in problem.what

    def test_a_directory_that_claims_too_much_is_refused_unread(self, wheel: Write) -> None:
        path = wheel({"pack/a.py": b"a"})
        data = bytearray(path.read_bytes())
        at = data.rindex(b"PK\x05\x06")
        struct.pack_into("<HHI", data, at + 8, 0xFFFE, 0xFFFE, 0xFFFFFFF0)
        path.write_bytes(data)

        assert report_of(path).exit_status() == 2

    @pytest.mark.parametrize("data", [b"", b"PK\x05\x06", b"not a zip file" * 100, b"PK\x05\x06" + b"\xff" * 18])
    def test_what_is_no_wheel_is_told_and_the_rest_goes_on(self, tmp_path: Path, wheel: Write, data: bytes) -> None:
        bad = tmp_path / "bad-1.0-py3-none-any.whl"
        bad.write_bytes(data)
        good = wheel({"pack/a.py": b"a = 1"})

        report = verify(VerifyRequest([str(bad), str(good)], environment={}))

        assert report.exit_status() == 2
        assert {Path(p.file).name for p in grave(report)} == {bad.name}

    def test_broken_deflated_data_is_told_and_the_rest_goes_on(self, wheel: Write, cc: Compile) -> None:
        library = cc("x.so").read_bytes()
        path = wheel({"pack/broken.so": library, "pack/good.so": library})
        data = bytearray(path.read_bytes())
        data[200:900] = bytes(700)
        path.write_bytes(data)

        report = report_of(path)

        assert any("broken.so" in p.file for p in grave(report))
        assert [f.path.rsplit("/")[-1] for f in report.files if not f.problems] == ["good.so"]

    def test_a_truncated_wheel_is_told(self, wheel: Write) -> None:
        path = wheel({"pack/a.py": b"a = 1" * 1000})
        path.write_bytes(path.read_bytes()[:-30])

        assert report_of(path).exit_status() == 2


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    piece=st.binary(min_size=1, max_size=3000),
    times=st.integers(1, 30),
    reads=st.lists(st.tuples(st.integers(-5, 99999), st.integers(0, 4000))),
)
def test_a_deflated_member_reads_like_its_bytes(
    monkeypatch: pytest.MonkeyPatch, piece: bytes, times: int, reads: list[tuple[int, int]]
) -> None:
    data = piece * times
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = packer.compress(data) + packer.flush()
    seen: list[bytes] = []
    # As if the data were a thousand times as large.
    monkeypatch.setattr(deflated_source, "_CHUNK", 300)
    monkeypatch.setattr(deflated_source, "_LEAST_STRIDE", 4000)
    source, plain = DeflatedSource(MemorySource(packed), len(data), Deadline(), seen.append), MemorySource(data)

    for offset, length in reads:
        assert source.read(offset, length) == plain.read(offset, length)
    assert source.finish() == len(data)
    assert b"".join(seen) == data
    for offset, length in reads:
        assert source.read(offset, length) == plain.read(offset, length)


@pytest.mark.parametrize("tail", [b"", b"x", b"a longer tail"])
def test_bytes_behind_deflated_data_are_passed_over(tail: bytes) -> None:
    packer = zlib.compressobj(9, zlib.DEFLATED, -15)
    packed = packer.compress(bytes(1 << 20)) + packer.flush()

    assert DeflatedSource(MemorySource(packed + tail), 1 << 20, Deadline()).finish() == 1 << 20


class BreakingOff:
    """An inflater that ends as ISA-L's binding does for some damaged data, which fuzzing has found."""

    eof = False
    unconsumed_tail = b""

    def decompress(self, data: bytes, max_length: int, /) -> bytes:
        raise RuntimeError("Leftover input before the buffer is unavailable")


def test_whatever_the_inflater_raises_the_data_is_unreadable(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("isal.isal_zlib.decompressobj", lambda _: BreakingOff())

    with pytest.raises(UnreadableError, match="broken deflated data"):
        DeflatedSource(MemorySource(bytes(100)), 1000, Deadline()).finish()
