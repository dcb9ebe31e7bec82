"""Files from strangers and files that broke: every one ends as a report, in bounded memory and time."""

from __future__ import annotations

import os
import random
import struct
import tempfile
import tracemalloc
import zlib
from collections.abc import Callable
from dataclasses import asdict
from functools import cache
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stoker.verify.binary.byte_source import Deadline, MemorySource, UnreadableError
from stoker.verify.binary.deflated_source import DeflatedSource
from stoker.verify.binary.read_binary import Binary, read_binary
from stoker.verify.pipeline import VerifyRequest, verify

Compile = Callable[..., Path]


def read(data: bytes, deadline: Deadline | None = None) -> Binary:
    return read_binary("x", MemorySource(data), deadline or Deadline())


def container(*entries: bytes, claim: int | None = None) -> bytes:
    body = b"".join(entries)
    return struct.pack("<IHHQ", 0xBA55ED50, 1, 16, len(body) if claim is None else claim) + body


def entry(kind: int = 2, arch: int = 80, *, header: int = 64, payload: bytes = b"", claim: int | None = None) -> bytes:
    size = len(payload) if claim is None else claim
    head = struct.pack("<HHIQIIHHIIIQQQ", kind, 0x101, header, size, 0, 0, 8, 1, arch, 0, 0, 0x11, 0, 0)
    return head + bytes(max(0, header - 64)) + payload


def test_containers_by_hand() -> None:
    data = container(entry(), entry(1, 90, header=80, payload=bytes(200))) + bytes(8) + container(entry(2, 121))

    report = read(data).report

    assert report.problems == ()
    assert {a.arch: (a.count, a.bytes) for a in report.archs} == {
        "sm_80": (1, 64), "compute_90": (1, 280), "sm_121": (1, 64),
    }  # fmt: skip


def packed(arch: int, size: int) -> bytes:
    """A compressed cubin of so many bytes before compression, as LZ4 is marked."""
    return struct.pack("<HHIQIIHHIIIQQQ", 2, 0x101, 64, 64, 40, 0, 7, 1, arch, 0, 0, 0x2011, 0, size) + bytes(64)


def test_small_machine_code_counts_as_empty_only_if_all_of_its_source_does() -> None:
    """A source of PyTorch 2.6 without a kernel: 1752 bytes for 5.0, where the least kernel has 1544; 1808 for 9.0."""
    without_kernels = container(packed(50, 1752), packed(80, 1848), packed(90, 1808))
    stub_of_a_debug_link = container(packed(100, 1792))

    report = read(without_kernels + stub_of_a_debug_link).report

    assert {a.arch: a.empty for a in report.archs} == {"sm_50": 0, "sm_80": 0, "sm_90": 0, "sm_100": 1}
    assert [{c.arch.number for c in m.codes} for m in report.groups] == [{"5.0", "8.0", "9.0"}]


def test_a_kind_that_nobody_knows_yet_is_counted_apart() -> None:
    report = read(container(entry(64), entry(8))).report

    assert report.archs == ()
    assert report.other == {"kind 64": 1, "lto": 1}


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (container(entry(), claim=1 << 60), "claims"),
        (container(entry(claim=1 << 60)), "claims"),
        (container(entry(header=8)), "claims 8"),
        (container(bytes(32)), "cut off"),
        (struct.pack("<IHHQ", 0xBA55ED50, 9, 16, 0), "version 9"),
        (struct.pack("<IHHQ", 0xBA55ED50, 1, 0, 0), "header 0"),
        (struct.pack("<I", 0xBA55ED50), "cut off"),
        (container(entry()) + b"x" * (3 << 20), "are not a device code"),
        (b"#!/bin/sh\n", "not a program"),
        (b"", "empty"),
    ],
)
def test_a_broken_file_is_told_and_what_was_read_before_counts(data: bytes, words: str) -> None:
    report = read(data).report

    [problem] = report.problems
    assert words in problem.what
    assert problem.unreadable
    if len(data) > 100 and data.startswith(container(entry())):
        assert report.archs


def test_what_was_half_read_is_listed_and_not_judged() -> None:
    report = read(container(entry(1, 80, payload=bytes(500))) + container(entry(), claim=999)).report

    assert [a.arch for a in report.archs] == ["compute_80"]
    assert not report.has_code
    assert [p.unreadable for p in report.problems] == [True]


def test_a_million_tiny_entries_end_at_the_deadline() -> None:
    class Clock:
        """A minute passes at every look."""

        now = 0.0

        def __call__(self) -> float:
            self.now += 60.0
            return self.now

    report = read(container(*[entry()] * 5000), Deadline(3000.0, Clock())).report

    assert "gave up after 3000 s" in report.problems[0].what
    assert 0 < report.archs[0].count < 5000


@pytest.mark.long
@pytest.mark.parametrize(
    "data",
    [
        b"".join(container(entry(1, i % 1000, payload=bytes(96))) for i in range(100_000)),
        container(*(entry(i % 50_000) for i in range(200_000))),
    ],
    ids=["containers", "kinds"],
)
def test_memory_does_not_grow_with_what_a_file_pretends_to_hold(data: bytes) -> None:
    tracemalloc.start()
    try:
        read(data)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert peak < 20 << 20


@pytest.mark.parametrize("name", [b"n" * 60_000 + b"\0", b"n" * (60 << 20)], ids=["long", "without an end"])
def test_many_sections_with_one_long_name_are_bounded(name: bytes) -> None:
    """To look for the end of each of these names takes a quarter of an hour."""
    count = 150_000
    header = b"\x7fELF\x02\x01\x01" + bytes(9)
    header += struct.pack("<HHIQQQIHHHHHH", 1, 62, 1, 0, 0, 64, 0, 64, 0, 0, 64, 0, 1)
    at = 64 + 64 * count
    first = struct.pack("<IIQQQQIIQQ", 0, 0, 0, 0, 0, count, 1, 0, 0, 0)
    strings = struct.pack("<IIQQQQIIQQ", 0, 3, 0, 0, at, len(name), 0, 0, 0, 0)
    data = header + first + strings + struct.pack("<IIQQQQIIQQ", 0, 1, 0, 0, 0, 0, 0, 0, 0, 0) * (count - 2) + name
    tracemalloc.start()
    try:
        report = read(data).report
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert report.problems == ()
    assert peak < (200 << 20) + len(name)


def test_what_is_no_regular_file_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe.so")

    report = verify(VerifyRequest([str(tmp_path / "pipe.so"), "/dev/zero", "/nonexistent/x.so"], environment={}))

    assert report.exit_status() == 2
    assert len(report.files) == 3
    assert all(f.problems for f in report.files)


def test_one_bad_file_does_not_hide_the_others(tmp_path: Path, cc: Compile) -> None:
    bad = tmp_path / "bad.so"
    bad.write_bytes(b"\x7fELF" + b"\xff" * 100)

    report = verify(VerifyRequest([str(bad), str(cc("good.so"))], environment={}))

    assert {Path(f.path).name: bool(f.problems) for f in report.files} == {"bad.so": True, "good.so": False}
    assert report.exit_status() == 2


def test_a_loop_of_links_and_folders_ends(tmp_path: Path, cc: Compile) -> None:
    library = cc("real/lib.so")
    (tmp_path / "real/again.so").symlink_to(library)
    os.link(library, tmp_path / "real/hard.so")
    (tmp_path / "real/loop").symlink_to(tmp_path)
    (tmp_path / "real/self.so").symlink_to("self.so")

    report = verify(VerifyRequest([str(tmp_path)], environment={}))

    assert len(report.files) == 1


def test_version_records_that_point_at_themselves_end(cc: Compile) -> None:
    """`vna_next` and `vn_next` are offsets in a list: zero moves nowhere, and a huge count asks to go round."""
    data = bytearray(cc("loop.so", '#include <stdio.h>\nint f(void) { return puts("x"); }').read_bytes())
    place = data.find(struct.pack("<HH", 1, 1))
    for offset in range(place, min(place + 64, len(data) - 4), 2):
        struct.pack_into("<H", data, offset, 0xFFFF)
        read(bytes(data))


@cache
def seeds(folder: str) -> tuple[bytes, ...]:
    return tuple(p.read_bytes() for p in sorted(Path(folder).iterdir()))


@pytest.fixture(scope="module")
def corpus(nvcc: Compile, tmp_path_factory: pytest.TempPathFactory) -> str:
    """Small real files: an object with a fatbin, one with -rdc, a static library, a cubin."""
    folder = tmp_path_factory.mktemp("corpus")
    made = [
        nvcc("fuzz.o", "-c", "-gencode", "arch=compute_80,code=sm_80",
             "-gencode", "arch=compute_90a,code=[sm_90a,compute_90a]"),
        nvcc("fuzz-rdc.o", "-c", "-rdc=true", "-arch=sm_80"),
        nvcc("fuzz.a", "-lib", "-arch=sm_80"),
        nvcc("fuzz.cubin", "-cubin", "-arch=sm_100f"),
        nvcc("fuzz.fatbin", "-fatbin", "-arch=sm_80"),
    ]  # fmt: skip
    for path in made:
        (folder / path.name).write_bytes(path.read_bytes())
    return str(folder)


damage = st.lists(
    st.tuples(
        st.floats(0, 1, exclude_max=True),
        st.sampled_from([1, 2, 4, 8]),
        st.sampled_from([0, 1, 0xFF, 0xFFFF, 0x7FFFFFFF, 0xFFFFFFFF, 0xFFFFFFFFFFFFFFFF, 0xBA55ED50])
        | st.integers(0, 2**64 - 1),
    ),
    max_size=12,
)


def broken(data: bytes, changes: list[tuple[float, int, int]], cut: float) -> bytes:
    """A copy with numbers overwritten, near the start and the end (where the structure is) as often as anywhere."""
    copy = bytearray(data)
    for where, width, value in changes:
        at = int(where * min(400, len(copy))) if width < 4 else int(where * len(copy))
        copy[at : at + width] = (value & (1 << 8 * width) - 1).to_bytes(width, "little")
    return bytes(copy[: int(len(copy) * cut)])


@pytest.mark.long
@settings(max_examples=400, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(which=st.integers(0, 4), changes=damage, cut=st.just(1.0) | st.floats(0, 1))
def test_damaged_binaries_are_reported(
    corpus: str, which: int, changes: list[tuple[float, int, int]], cut: float
) -> None:
    binary = read(broken(seeds(corpus)[which], changes, cut))

    for use in binary.report.archs:
        assert use.count > 0
        assert 0 <= use.empty <= use.count
        assert use.bytes >= 0
    assert all(p.what for p in binary.report.problems)


@pytest.mark.long
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(seed=st.integers(0, 2**32))
def test_damaged_wheels_are_reported(corpus: str, wheel: Callable[..., Path], seed: int) -> None:
    rng = random.Random(seed)
    good = wheel({f"pack/{i}.so": data for i, data in enumerate(seeds(corpus))})
    data = bytearray(good.read_bytes())
    for _ in range(rng.randrange(1, 6)):
        near_end = rng.random() < 0.5
        at = rng.randrange(max(0, len(data) - 900) if near_end else 0, len(data))
        data[at : at + 4] = rng.getrandbits(32).to_bytes(4, "little")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / good.name
        path.write_bytes(data)

        report = verify(VerifyRequest([str(path)], arch_list="8.0", devices=["8.0"], environment={}))

    assert asdict(report)["ok"] in (True, False)


@pytest.mark.parametrize("missing", [1, 9, 70_000])
def test_a_member_that_ends_early_ends_the_search(cc: Compile, missing: int) -> None:
    data = cc("short.so").read_bytes()
    packer = zlib.compressobj(6, zlib.DEFLATED, -15)
    packed = packer.compress(data) + packer.flush()

    report = read_binary("x", DeflatedSource(MemorySource(packed), len(data) + missing, Deadline()), Deadline()).report

    assert "cut off" in report.problems[0].what
    assert report.problems[0].unreadable


def test_the_deadline_is_a_problem_and_no_crash() -> None:
    with pytest.raises(UnreadableError, match="gave up"):
        Deadline(-1.0).check()
