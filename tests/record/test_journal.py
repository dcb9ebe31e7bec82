"""The journal keeps every record that was complete, whatever the disk and a crash do to the file."""

from __future__ import annotations

import asyncio
import errno
import fcntl
import json
import os
import resource
import subprocess
import sys
import tracemalloc
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from stoker.model import events as ev
from stoker.model.codec import decode_record, encode_record
from stoker.model.reduce import reduce_all
from stoker.model.samples import JobSample, MachineSample
from stoker.model.state import BuildState
from stoker.record import checkpoint, journal_reader, journal_writer
from stoker.record.journal_error import JournalError
from stoker.record.journal_follower import follow_journal
from stoker.record.journal_reader import JournalReader, load_state, offset_after, read_journal
from stoker.record.journal_writer import JournalBusyError, JournalWriter
from stoker.record.jsonlines import dump_line

T0 = 1_700_000_000.0
NOBODY = 61234 if os.getuid() == 0 else os.getuid()
"""A user whom limits bind."""

BEGIN = ev.BuildStarted("b-1", "torch", ("ninja", "-C", "out"), "/src", "/log", "host", 8, 2**34, "0.1.0")
MACHINE = MachineSample(50.0, (50, 50), 2.0, 2**34, 2**33, 2**33, "machine")


def finished(n: int) -> ev.JobFinished:
    return ev.JobFinished(None, 1, f"src/file{n}.o", "cxx", 1.5, "ok")


def sampled(jobs: int = 3) -> ev.Sampled:
    samples = tuple(JobSample(n, 2**20 * n, 99.5, "cc1plus") for n in range(jobs))
    return ev.Sampled(MACHINE, samples, 2**30, 12, 0, "", 100)


def write(path: Path, events: list[ev.Event]) -> list[ev.Record]:
    journal = JournalWriter(path)
    records = [journal.append(event, T0 + n)[0] for n, event in enumerate(events)]
    journal.close()
    return records


def problem(journal: JournalWriter) -> str:
    """What the person is told; empty when all is well."""
    return journal.problem or ""


def build(jobs: int) -> list[ev.Event]:
    scheduler = ev.SchedulerStarted(1, "ninja", 42, "/src/out", "1.13", 8)
    return [BEGIN, scheduler, *(finished(n) for n in range(jobs))]


def test_what_was_appended_is_read_back_in_order_and_numbered(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    records = write(path, [*build(3), sampled()])
    assert list(read_journal(path)) == records
    assert [r.seq for r in records] == [1, 2, 3, 4, 5, 6]
    assert path.stat().st_mode & 0o777 == 0o600


def test_the_line_that_append_returns_is_the_line_in_the_file(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = JournalWriter(path)
    lines = [journal.append(event, T0)[1] for event in (BEGIN, finished(1), sampled())]
    assert path.read_bytes() == b"", "nothing is written before the flush"
    journal.flush()
    assert path.read_bytes() == b"".join(lines)
    journal.close()


def test_file_names_that_are_no_utf8_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    name = os.fsdecode(b"caf\xe9/\xff\x00\n\x1b[2J.o")
    write(path, [BEGIN, replace(finished(1), output=name)])
    assert path.read_bytes().isascii()
    event = list(read_journal(path))[1].event
    assert isinstance(event, ev.JobFinished)
    assert event.output == name


def test_a_figure_that_is_no_number_does_not_break_the_line(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, [BEGIN, ev.Estimated(float("nan"), float("inf"), 1.0)])
    assert list(read_journal(path))[1].event == ev.Estimated(0.0, 0.0, 1.0)


def test_cut_anywhere_it_keeps_every_whole_record_and_goes_on_from_there(tmp_path: Path) -> None:
    whole = tmp_path / "whole.jsonl"
    records = write(whole, [BEGIN, finished(1), sampled(1), finished(2)])
    data = whole.read_bytes()
    ends = [i + 1 for i, byte in enumerate(data) if byte == 10]
    path = tmp_path / "journal.jsonl"
    for cut in range(len(data) + 1):
        path.write_bytes(data[:cut])
        complete = records[: sum(end <= cut for end in ends)]
        assert list(read_journal(path)) == complete
        journal = JournalWriter(path)
        assert journal.seq == len(complete)
        record, _ = journal.append(finished(9), T0 + 9)
        journal.close()
        assert list(read_journal(path)) == [*complete, record]


def test_zeros_behind_the_last_line_are_what_a_power_cut_leaves(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    records = write(path, build(2))
    with path.open("ab") as file:
        file.write(bytes(200_000))
    assert list(read_journal(path)) == records
    assert JournalWriter(path).seq == len(records)
    assert path.stat().st_size < 200_000


def test_garbage_in_the_middle_is_counted_and_costs_only_itself(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    records = write(path, build(4))
    lines = path.read_bytes().splitlines(keepends=True)
    bad = [b"\x00\xff garbage\n", b"[1,2]\n", b"{}\n", b"[" * 100_000 + b"\n", b"\n", b'{"v":1,"seq":"x"}\n']
    path.write_bytes(b"".join([*lines[:3], *bad, *lines[3:]]))
    found = JournalReader(path)
    assert list(found) == records
    assert found.skipped == len(bad)


@pytest.mark.parametrize("number", ["1" * 401, "-" + "9" * 20, "1e308", "-1e15", "1e999"])
def test_a_line_with_a_number_that_nobody_can_calculate_with_is_skipped(tmp_path: Path, number: str) -> None:
    path = tmp_path / "journal.jsonl"
    write(path, [BEGIN])
    head = f'{{"v":1,"seq":2,"t":{T0},"type"'
    with path.open("a") as file:
        file.write(f'{{"v":1,"seq":2,"t":{number},"type":"engine_started","pid":1,"adopted":false}}\n')
        file.write(f'{{"v":1,"seq":{number},"t":1,"type":"engine_started","pid":1,"adopted":false}}\n')
        file.write(f'{head}:"engine_started","pid":{number},"adopted":false}}\n')
        file.write(f'{head}:"estimated","seconds":{number},"low":1,"high":1}}\n')
        file.write(f'{head}:"scheduler_planned","sid":1,"total":1,"source":"status","tools":{{"cxx":{number}}}}}\n')
    found = read_journal(path)
    assert [r.event for r in found] == [BEGIN]
    assert found.skipped == 5


def test_the_largest_numbers_come_back_as_they_were(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    events: list[ev.Event] = [
        ev.EngineStarted(2**63 - 1, adopted=False),
        ev.Estimated(999_999_999_999_999.0, -1.0, 0.5),
    ]
    records = write(path, [BEGIN, *events])
    assert list(read_journal(path)) == records


def test_a_fifo_and_a_device_are_no_journals(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "fifo")
    (tmp_path / "zero").symlink_to("/dev/zero")
    for name in ("fifo", "zero"):
        for follow_links in (False, True):
            with pytest.raises(OSError, match="not a regular file"):
                list(JournalReader(tmp_path / name, follow_links=follow_links))


def test_an_event_of_a_newer_stoker_is_skipped(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    records = write(path, build(1))
    with path.open("ab") as file:
        file.write(dump_line({**encode_record(records[-1]), "seq": 4, "type": "teleported"}))
    assert list(read_journal(path)) == records
    assert JournalWriter(path).seq == 4, "its number is taken all the same"


def test_a_file_that_is_no_journal_is_refused_in_one_line(tmp_path: Path) -> None:
    path = tmp_path / "notes.txt"
    path.write_text("dear diary\ntoday\n")
    with pytest.raises(JournalError, match=r"notes\.txt is not a readable journal") as caught:
        list(read_journal(path))
    assert "\n" not in str(caught.value)


def test_a_journal_of_another_version_names_the_version(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(dump_line({**encode_record(ev.Record(1, T0, BEGIN)), "v": 2}))
    with pytest.raises(JournalError, match="version 2 is not 1"):
        load_state(path)


def test_no_journal_yet_is_an_empty_one(tmp_path: Path) -> None:
    assert list(read_journal(tmp_path / "none.jsonl")) == []
    assert load_state(tmp_path / "none.jsonl") == BuildState()


def test_a_line_beyond_the_limit_is_skipped_without_being_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_reader, "MAX_LINE", 500)
    path = tmp_path / "journal.jsonl"
    records = write(path, [BEGIN, replace(finished(1), output="x" * 5000), finished(2)])
    found = JournalReader(path)
    assert list(found) == [records[0], records[2]]
    assert found.skipped == 1


@settings(max_examples=300, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_a_flipped_byte_costs_at_most_the_lines_it_touches(tmp_path: Path, data: st.DataObject) -> None:
    path = tmp_path / "journal.jsonl"
    path.unlink(missing_ok=True)
    records = write(path, [BEGIN, *(finished(n) for n in range(6)), sampled(2)])
    raw = bytearray(path.read_bytes())
    where = data.draw(st.integers(0, len(raw) - 1))
    raw[where] ^= data.draw(st.integers(1, 255))
    path.write_bytes(raw)
    found = list(read_journal(path))
    untouched = [r for r in records if r in found]
    # The flip of a newline joins two lines; a new newline cuts one.
    assert len(untouched) >= len(records) - 2
    reduce_all(found)


@settings(max_examples=200, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.binary(max_size=400))
def test_any_bytes_at_all_are_read_or_refused(tmp_path: Path, raw: bytes) -> None:
    path = tmp_path / "journal.jsonl"
    path.write_bytes(raw)
    try:
        list(read_journal(path))
    except JournalError:
        assert raw
    journal = JournalWriter(path)
    record, _ = journal.append(BEGIN, T0)
    journal.close()
    assert list(read_journal(path))[-1] == record


def test_two_engines_cannot_write_one_journal(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    first = JournalWriter(path)
    with pytest.raises(JournalBusyError):
        JournalWriter(path)
    first.close()
    JournalWriter(path).close()


def test_a_killed_engine_leaves_the_journal_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    script = (
        "import sys, time; from pathlib import Path; from stoker.record.journal_writer import JournalWriter;"
        "from stoker.model.events import Noticed; j = JournalWriter(Path(sys.argv[1]));"
        "j.append(Noticed('info', 'x'), 1.0); j.flush(); print('ready', flush=True); time.sleep(600)"
    )
    with subprocess.Popen([sys.executable, "-c", script, str(path)], stdout=subprocess.PIPE) as engine:
        assert engine.stdout is not None
        assert engine.stdout.readline() == b"ready\n"
        with pytest.raises(JournalBusyError):
            JournalWriter(path)
        engine.kill()
    journal = JournalWriter(path)
    assert journal.seq == 1
    journal.close()


def test_a_disk_that_cannot_lock_takes_a_journal_all_the_same(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """As Lustre without -o flock, and NFS without its lock service."""

    def refuse(_fd: int, _operation: int) -> None:
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr(fcntl, "flock", refuse)
    path = tmp_path / "journal.jsonl"
    records = write(path, build(2))
    assert list(read_journal(path)) == records


def test_at_the_limit_of_processes_a_journal_is_written_and_seen_on_the_disk_later(tmp_path: Path) -> None:
    """A thread counts as a process. The limit does not bind root, so root's test runs as somebody else."""
    os.chown(tmp_path, NOBODY, NOBODY)
    script = (
        "import os, resource; from pathlib import Path; from stoker.record.journal_writer import JournalWriter;"
        "from stoker.model.events import StopRequested; clock = [0.0];"
        f"os.getuid() or (os.setgid({NOBODY}), os.setuid({NOBODY}));"
        "journal = JournalWriter(Path('journal.jsonl'), lambda: clock[0]);"
        "soft, hard = resource.getrlimit(resource.RLIMIT_NPROC);"
        "resource.setrlimit(resource.RLIMIT_NPROC, (0, hard));"
        "journal.append(StopRequested('ann', False), 1.0); journal.flush(); before = journal._sync_due;"
        "resource.setrlimit(resource.RLIMIT_NPROC, (soft, hard));"
        "clock[0] = 9.0; journal.flush(); print(before, journal._sync_due, len(os.listdir('/proc/self/fd')) < 9)"
    )
    done = subprocess.run([sys.executable, "-c", script], cwd=tmp_path, capture_output=True, check=False)
    assert done.stdout.split() == [b"True", b"False", b"True"], done.stderr
    assert len(list(read_journal(tmp_path / "journal.jsonl"))) == 1


# -- a disk that is full ---------------------------------------------------------------------------------------


@pytest.fixture
def tiny_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of 64 KiB."""
    if os.geteuid() != 0:
        pytest.skip("mounting a tmpfs takes root")
    folder = tmp_path / "tiny"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "stoker-test", str(folder)]
    if subprocess.run(mount, capture_output=True).returncode:
        pytest.skip("mounting is not allowed here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_full_disk_costs_no_record_once_there_is_room(tiny_disk: Path) -> None:
    ballast = tiny_disk / "ballast"
    ballast.write_bytes(bytes(40_000))
    journal = JournalWriter(tiny_disk / "journal.jsonl")
    records = [journal.append(BEGIN, T0)[0]]
    for n in range(1000):
        records.append(journal.append(finished(n), T0 + n)[0])
        journal.flush()
    assert "No space left on device" in problem(journal)
    assert "\n" not in problem(journal)
    on_disk = list(read_journal(journal._path))
    assert on_disk == records[: len(on_disk)], "what is there is whole, and in order"
    assert 0 < len(on_disk) < len(records)

    ballast.unlink()
    subprocess.run(["mount", "-o", "remount,size=1m", str(tiny_disk)], check=True)
    journal.flush()
    assert not problem(journal)
    assert journal.dropped == 0
    assert list(read_journal(journal._path)) == records
    journal.close()


def test_a_disk_that_is_full_from_the_start_is_tried_again(tiny_disk: Path) -> None:
    fill = ["dd", "if=/dev/zero", f"of={tiny_disk / 'ballast'}", "bs=4096"]
    assert subprocess.run(fill, capture_output=True).returncode != 0
    journal = JournalWriter(tiny_disk / "journal.jsonl")
    record, _ = journal.append(BEGIN, T0)
    journal.flush()
    assert problem(journal)
    (tiny_disk / "ballast").unlink()
    journal.flush()
    journal.close()
    assert list(read_journal(journal._path)) == [record]


def test_a_short_write_is_cut_back_to_whole_lines(tmp_path: Path) -> None:
    """The file size limit stops a write in the middle of a line, as a full disk may."""
    path = tmp_path / "journal.jsonl"
    journal = JournalWriter(path)
    records = [journal.append(event, T0)[0] for event in build(100)]
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (1000, hard))
        journal.flush()
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert problem(journal)
    data = path.read_bytes()
    assert data.endswith(b"\n")
    assert 0 < len(data) < 1000
    journal.flush()
    assert not problem(journal)
    journal.close()
    assert list(read_journal(path)) == records


def test_when_memory_runs_out_too_samples_go_first(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_writer, "MAX_PENDING", 50_000)
    path = tmp_path / "journal.jsonl"
    journal = JournalWriter(path)
    for event in build(50):
        journal.append(event, T0)
    for _ in range(500):
        journal.append(sampled(), T0)
    assert journal.dropped > 0
    assert journal._pending_bytes <= 50_000
    journal.append(ev.BuildEnded("done", 0, ""), T0)
    journal.close()
    kinds = [r.event.kind for r in read_journal(path)]
    assert kinds.count("job_finished") == 50
    assert kinds[0] == "build_started"
    assert kinds[-1] == "build_ended"
    assert 0 < kinds.count("sampled") < 500


def test_even_without_samples_memory_stays_bounded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_writer, "MAX_PENDING", 50_000)
    journal = JournalWriter(tmp_path / "journal.jsonl")
    for event in build(5000):
        journal.append(event, T0)
    assert journal._pending_bytes <= 50_000
    journal.close()
    records = list(read_journal(journal._path))
    assert records[0].event == BEGIN
    assert records[-1].seq == 5002


def test_important_events_reach_the_disk_but_not_at_every_tick(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[int] = []
    monkeypatch.setattr(os, "fdatasync", synced.append)
    now = [100.0]
    journal = JournalWriter(tmp_path / "journal.jsonl", clock=lambda: now[0])

    def tick(event: ev.Event, seconds: float) -> int:
        now[0] += seconds
        journal.append(event, T0)
        journal.flush()
        if journal._syncing is not None:
            journal._syncing.join()
        return len(synced)

    assert tick(BEGIN, 0) == 1
    assert tick(sampled(), 60) == 1
    failure = ev.FailureFound("x.o", "c++", 1, (), 0, 0)
    assert tick(failure, 1) == 2
    assert tick(failure, 1) == 2, "too soon after the last one"
    assert tick(sampled(), 5) == 3, "made up for"
    journal.append(ev.BuildEnded("done", 0, ""), T0)
    journal.close()
    assert len(synced) == 4


# -- long journals -----------------------------------------------------------------------------------------------


@pytest.mark.long
def test_a_hundred_thousand_records_are_read_once_and_not_held(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "journal.jsonl"
    count = 100_000
    line = dump_line(encode_record(ev.Record(7, T0, finished(7))))
    with path.open("wb") as file:
        for seq in range(1, count + 1):
            file.write(line.replace(b'"seq":7', b'"seq":%d' % seq))
    decoded = 0

    def counting(data: object) -> ev.Record:
        nonlocal decoded
        decoded += 1
        return decode_record(data)

    monkeypatch.setattr(journal_reader, "decode_record", counting)
    last = 0
    records = iter(read_journal(path))
    first = next(records)
    tracemalloc.start()
    for record in records:
        last = record.seq
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert (first.seq, last) == (1, count)
    assert decoded == count
    assert peak < 2**20, "bytes held while reading do not grow with the journal"


def test_reading_on_from_a_record_reads_little_of_what_is_before(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    records = write(path, build(5000))
    size = path.stat().st_size
    for seq in (0, 1, 2500, 4000, records[-1].seq, 10_000):
        offset = offset_after(path, seq)
        rest = list(JournalReader(path, offset))
        wanted = [r for r in records if r.seq > seq]
        assert rest[len(rest) - len(wanted) :] == wanted
        assert offset >= size * min(seq, len(records)) / len(records) - 2**17


def test_a_checkpoint_saves_reading_and_changes_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(journal_writer, "CHECKPOINT_BYTES", 20_000)
    path = tmp_path / "journal.jsonl"
    journal = JournalWriter(path)
    state = BuildState()
    for n, event in enumerate([*build(500), sampled(), sampled()]):
        record, _ = journal.append(event, T0 + n)
        state = reduce_all([record], state)
        journal.flush()
        journal.checkpoint(state)
    journal.close()
    saved = checkpoint.load_checkpoint(path)
    assert saved is not None
    assert path.stat().st_size - saved.offset < 30_000
    assert load_state(path) == state == reduce_all(read_journal(path))


@pytest.mark.parametrize("harm", ["garbage", "other journal", "other version", "beyond the end"])
def test_a_checkpoint_that_does_not_fit_is_ignored(tmp_path: Path, harm: str) -> None:
    path = tmp_path / "journal.jsonl"
    records = write(path, build(20))
    state = reduce_all(records)
    wrong = replace(state, name="wrong")
    beside = checkpoint.checkpoint_path(path)
    match harm:
        case "garbage":
            beside.write_bytes(b"\xff{")
        case "other journal":
            checkpoint.save_checkpoint(path, replace(wrong, seq=5), path.stat().st_size)
        case "other version":
            checkpoint.save_checkpoint(path, wrong, path.stat().st_size)
            beside.write_text(json.dumps({**json.loads(beside.read_text()), "stoker": "99.0"}))
        case "beyond the end":
            checkpoint.save_checkpoint(path, wrong, path.stat().st_size + 1)
    assert load_state(path) == state


# -- following ---------------------------------------------------------------------------------------------------


async def test_following_gives_what_comes_and_ends_with_the_build(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    journal = JournalWriter(path)
    script: list[list[ev.Event]] = [build(1), [], [finished(5), finished(6)], [ev.BuildEnded("done", 0, "")]]

    async def tick(_seconds: float) -> None:
        for event in script.pop(0):
            journal.append(event, T0)
        journal.flush()

    found = [r.seq async for r in follow_journal(path, 2, sleep=tick)]
    assert found == [3, 4, 5, 6]
    journal.close()


async def test_following_a_build_that_died_ends_with_its_last_record(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    records = write(path, build(3))
    found = [r async for r in follow_journal(path, over=lambda: True)]
    assert found == records


async def test_half_a_line_is_not_given_until_it_is_whole(tmp_path: Path) -> None:
    path = tmp_path / "journal.jsonl"
    whole = tmp_path / "whole.jsonl"
    records = write(whole, [BEGIN, ev.BuildEnded("done", 0, "")])
    data = whole.read_bytes()
    path.write_bytes(data[:-20])
    following = follow_journal(path, sleep=lambda _: asyncio.sleep(0))
    assert await anext(following) == records[0]
    waiting = asyncio.ensure_future(anext(following))
    for _ in range(20):
        await asyncio.sleep(0)
    assert not waiting.done()
    path.write_bytes(data)
    assert await waiting == records[1]
    await following.aclose()  # type: ignore[attr-defined]
