"""What of a build is verified, and that nothing that goes wrong there is more than a notice."""

from __future__ import annotations

import asyncio
import os
import struct
from collections.abc import Callable
from pathlib import Path

import pytest

from stoker.contract.spec_file import BuildSpec
from stoker.engine.aftermath import verification
from stoker.engine.aftermath.artifacts import MAX_CANDIDATES, Written, find_written, what_to_verify
from stoker.engine.aftermath.verification import announcement, verify_written
from stoker.model import events as ev
from stoker.model.tool import Tool
from stoker.record.journal_writer import JournalWriter
from support.program import until

BEGAN = 1_700_000_000.0


def elf(*sections: str) -> bytes:
    """A shared library of nothing but section headers with these names."""
    names = b"\0" + b"".join(s.encode() + b"\0" for s in (*sections, ".shstrtab"))
    header = struct.pack(
        "<16sHHIQQQIHHHHHH", b"\x7fELF\x02\x01\x01" + bytes(9),
        3, 62, 1, 0, 0, 64 + len(names), 0, 64, 0, 0, 64, len(sections) + 2, len(sections) + 1,
    )  # fmt: skip
    rows = [bytes(64)]
    for section in (*sections, ".shstrtab"):
        kind = 3 if section == ".shstrtab" else 1
        rows.append(struct.pack("<IIQQQQIIQQ", names.index(section.encode()), kind, 0, 0, 64, len(names), 0, 0, 0, 0))
    return header + names + b"".join(rows)


GPU, HOST = elf(".text", ".nv_fatbin"), elf(".text")


def archive(member: bytes) -> bytes:
    return b"!<arch>\n" + b"m.o/".ljust(48) + str(len(member)).encode().ljust(10) + b"`\n" + member


@pytest.fixture
def build(tmp_path: Path) -> Callable[..., Path]:
    """`build(name=(tool, contents), ...)` writes the files and the journal of a build that made them."""

    def write(**files: tuple[Tool, bytes]) -> Path:
        writer = JournalWriter(tmp_path / "journal.jsonl")
        writer.append(ev.SchedulerStarted(1, "ninja", 9, str(tmp_path), "1.13", 2), BEGAN)
        for name, (tool, contents) in files.items():
            path = tmp_path / name.replace("__", ".")
            path.write_bytes(contents)
            writer.append(ev.JobFinished(None, 1, path.name, tool, 1.0, "ok"), BEGAN)
        writer.close()
        return tmp_path / "journal.jsonl"

    return write


def names(written: Written) -> list[str]:
    return [p.name for p in written.paths]


def test_what_was_linked_counts_and_not_its_objects(build: Callable[..., Path]) -> None:
    journal = build(
        k__o=("nvcc", GPU), libk__so=("link", GPU), libbig__a=("archive", archive(GPU + bytes(99))),
        libhost__so=("link", HOST), prog=("link", GPU + bytes(9)), libc__a=("archive", archive(HOST)),
        source__ptx=("nvcc", GPU), note=("other", GPU),
    )  # fmt: skip
    written = find_written(journal, BEGAN)
    assert names(written) == ["libbig.a", "prog", "libk.so"]
    assert written.nvcc


def test_objects_count_where_nothing_was_linked(build: Callable[..., Path]) -> None:
    journal = build(k__o=("nvcc", GPU), host__o=("cxx", GPU), empty__o=("nvcc", HOST), libc__so=("link", HOST))
    assert names(find_written(journal, BEGAN)) == ["k.o"]


def test_a_relinked_library_counts_though_nvcc_did_not_run(build: Callable[..., Path]) -> None:
    written = find_written(build(libk__so=("link", GPU)), BEGAN)
    assert names(written) == ["libk.so"]
    assert not written.nvcc


def test_a_kernel_too_short_to_be_seen_is_known_by_the_plan(build: Callable[..., Path]) -> None:
    journal = build(k__o=("cxx", GPU), libk__a=("archive", archive(GPU)))
    assert names(find_written(journal, BEGAN)) == []
    writer = JournalWriter(journal)
    writer.append(ev.SchedulerPlanned(1, 2, "dry-run", {"nvcc": 1, "archive": 1}), BEGAN)
    writer.close()
    assert names(find_written(journal, BEGAN)) == ["libk.a"]
    journal.with_name("libk.a").unlink()
    journal.with_name("k.o").unlink()
    assert "nothing is verified" in str(announcement(find_written(journal, BEGAN)))


def test_old_and_lost_and_strange_files_are_passed_over(build: Callable[..., Path], tmp_path: Path) -> None:
    journal = build(
        old__so=("link", GPU), lost__so=("link", GPU), cut__so=("link", GPU[:70]), text__so=("link", b"INPUT(libk.so)"),
        twice__so=("link", GPU),
    )  # fmt: skip
    os.utime(tmp_path / "old.so", (BEGAN - 60, BEGAN - 60))
    (tmp_path / "lost.so").unlink()
    (tmp_path / "again.so").symlink_to("twice.so")
    os.mkfifo(tmp_path / "fifo.so")
    with journal.open("ab") as file:
        for name in ("again.so", "fifo.so", r"nul\u0000.so", "/", ".", "x" * 5000):
            file.write(
                b'{"v":1,"seq":90,"t":1,"type":"job_finished","jid":null,"sid":1,"output":"%s","tool":"link",'
                b'"seconds":1,"outcome":"ok"}\n' % name.encode()
            )
        file.write(b'"type":"job_finished" "tool":"link" garbage\n' + b'"tool":"nvcc"' * 20_000 + b"\n{")
    assert names(find_written(journal, BEGAN)) == ["twice.so"]


def test_a_build_without_device_code_is_told_nothing(build: Callable[..., Path], tmp_path: Path) -> None:
    assert announcement(find_written(build(a__so=("link", HOST), b__a=("archive", archive(GPU))), BEGAN)) == []
    assert announcement(find_written(tmp_path / "nowhere", BEGAN)) == []


def spec(folder: Path, *patterns: str, since: float | None = None) -> BuildSpec:
    return BuildSpec("x", str(folder), ("x",), verify=patterns, since=since)


def test_a_profile_names_what_is_verified_and_old_wheels_are_not(build: Callable[..., Path], tmp_path: Path) -> None:
    journal = build(libk__so=("link", GPU))
    (tmp_path / "dist" / "folder-1.whl").mkdir(parents=True)
    for name, size, age in (("old-1.whl", 9, 60.0), ("new-2.whl", 1, 0.0), ("more-2.whl", 5, 0.0), ("new.txt", 9, 0.0)):
        (tmp_path / "dist" / name).write_bytes(bytes(size))
        os.utime(tmp_path / "dist" / name, (BEGAN - age, BEGAN - age))
    written = what_to_verify(journal, spec(tmp_path, "dist/*.whl", "dist/new-*", "gone/*"), BEGAN)
    assert (names(written), written.unmatched) == (["more-2.whl", "new-2.whl"], ())
    absolute = what_to_verify(journal, spec(Path("/"), str(tmp_path / "**" / "new-*.whl")), BEGAN)
    assert names(absolute) == ["new-2.whl"]
    resumed = what_to_verify(journal, spec(tmp_path, "dist/old-*.whl", since=BEGAN - 90), BEGAN)
    assert names(resumed) == ["old-1.whl"]


def test_patterns_that_name_nothing_new_are_told_and_what_was_linked_counts(
    build: Callable[..., Path], tmp_path: Path
) -> None:
    journal = build(libk__so=("link", GPU), old__whl=("other", GPU))
    os.utime(tmp_path / "old.whl", (BEGAN - 60, BEGAN - 60))
    written = what_to_verify(journal, spec(tmp_path, "*.whl"), BEGAN)
    assert names(written) == ["libk.so"]
    told = [e.text for e in announcement(written) if isinstance(e, ev.Noticed)]
    assert told == [
        "this build wrote nothing that its profile has under verify: *.whl",
        "verifying 1 file with device code",
    ]
    without = what_to_verify(journal, spec(tmp_path), BEGAN)
    assert (names(without), without.unmatched) == (["libk.so"], ())


def test_of_too_many_files_the_largest_are_verified_and_the_rest_is_counted(tmp_path: Path) -> None:
    for n in range(MAX_CANDIDATES + 3):
        (tmp_path / f"{n}.whl").write_bytes(bytes(n))
    written = what_to_verify(tmp_path / "none", spec(tmp_path, "*.whl"), 0.0)
    assert (names(written)[0], len(written.paths), written.left_out) == (f"{MAX_CANDIDATES + 2}.whl", MAX_CANDIDATES, 3)


def program(folder: Path, body: str) -> str:
    path = folder / "python"
    path.write_text(f"#!/bin/sh\n{body}\n")
    path.chmod(0o755)
    return str(path)


@pytest.mark.parametrize(
    ("body", "why"),
    [
        ("echo 'stoker: no room' >&2; exit 2", "no room"),
        ("exit 3", "exit status 3"),
        ("echo '{\"ok\": 1}'", "exit status 0"),
        ("head -c 9000000 /dev/zero", "the report is too long"),
        ("sleep 600 & wait", "not done after 1 s"),
    ],
)
async def test_whatever_goes_wrong_is_a_notice(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, body: str, why: str
) -> None:
    monkeypatch.setattr("sys.executable", program(tmp_path, body))
    if "sleep" in body:
        monkeypatch.setattr(verification, "VERIFY_SECONDS", 1.0)
    (notice,) = await verify_written(Written((tmp_path / "k.so",), nvcc=True), "", "", asyncio.Event())
    assert isinstance(notice, ev.Noticed)
    assert why in notice.text
    assert f"stoker verify {tmp_path / 'k.so'}" in notice.text


async def test_a_program_that_is_not_there_is_a_notice(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.executable", str(tmp_path / "nothing"))
    (notice,) = await verify_written(Written((tmp_path / "k.so",), nvcc=True), "", "", asyncio.Event())
    assert isinstance(notice, ev.Noticed)
    assert "cannot be started" in notice.text


async def test_somebody_who_stops_the_build_need_not_wait_for_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = tmp_path / "here"
    monkeypatch.setattr("sys.executable", program(tmp_path, f"touch {here}; sleep 600 & wait"))
    enough = asyncio.Event()
    verifying = asyncio.create_task(verify_written(Written((tmp_path / "x.whl",), nvcc=False), "", "", enough))
    await asyncio.to_thread(until, here.exists, "a verification")
    enough.set()
    (notice,) = await verifying
    assert isinstance(notice, ev.Noticed)
    assert "it was stopped" in notice.text


async def test_the_list_of_the_build_is_passed_on(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    note = tmp_path / "words"
    monkeypatch.setattr("sys.executable", program(tmp_path, f'echo "$*" > {note}; echo \'{{"ok": true}}\''))
    written = Written((tmp_path / "k.so",), nvcc=True, left_out=4)
    (event,) = await verify_written(written, "ARCHS", "8.0;90+PTX", asyncio.Event())
    assert isinstance(event, ev.Verified)
    assert event.found.ok
    assert event.found.left_out == 4
    options = "--driver-wait=5 --arch-list=8.0;9.0+PTX"  # a third of its time: it must not be lost by waiting
    assert note.read_text() == f"-P -m stoker verify --json {options} {tmp_path / 'k.so'}\n"
    problem = '{"severity": "error", "file": "k.so", "what": "no", "remedy": "build with 9.0 in TORCH_CUDA_ARCH_LIST"}'
    monkeypatch.setattr("sys.executable", program(tmp_path, f'echo \'{{"ok": false, "problems": [{problem}]}}\''))
    (event,) = await verify_written(written, "ARCHS", "8.0", asyncio.Event())
    assert isinstance(event, ev.Verified)
    assert event.found.problems[0].remedy == "build with 9.0 in ARCHS", "which this build goes by"
    monkeypatch.setattr("sys.executable", program(tmp_path, f'echo "$*" > {note}; echo \'{{"ok": true}}\''))
    refused, event = await verify_written(written, "ARCHS", "All", asyncio.Event())
    assert isinstance(refused, ev.Noticed)
    assert refused.text.startswith("ARCHS is not checked: 'All' means something else")
    assert "arch-list" not in note.read_text()
