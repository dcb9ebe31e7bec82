"""What an engine leaves behind for whoever stands in for it."""

from __future__ import annotations

import concurrent.futures
import json
import os
import subprocess
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from stoker.act.handover import Handover
from stoker.config.paths import BuildPaths
from stoker.contract.gate_file import read_gate
from stoker.contract.process import Key, key_of

NOBODY: Key = (2**22 + 1, 1)
"""No process has a pid above the kernel's limit; small ones may be a kernel thread's, with small start times."""


@pytest.fixture
def paths(tmp_path: Path) -> BuildPaths:
    return BuildPaths(tmp_path)


@pytest.fixture
def job() -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen(["sleep", "1000"]) as process:
        yield process
        process.kill()


def jobs(paths: BuildPaths) -> tuple[Key, ...]:
    gate = read_gate(str(paths.root))
    assert gate is not None
    return gate.jobs


def test_the_supervisor_reads_what_the_engine_wrote(paths: BuildPaths) -> None:
    Handover(paths).write_gate(3, [(1, 2)], [(3, 4), (5, 6)], [(7, 8)], {(9, 10): (3, 4), (11, 12): (3, 4)})
    gate = read_gate(str(paths.root))
    assert gate is not None
    assert gate[:4] == (3, ((1, 2),), ((3, 4), (5, 6)), ((7, 8),))
    assert gate.hosted_of((3, 4)) == [(9, 10), (11, 12)]


def test_a_job_whose_scheduler_was_killed_stays_on_the_list_while_it_lives(
    paths: BuildPaths, job: subprocess.Popen[bytes]
) -> None:
    handover = Handover(paths)
    handover.write_gate(1, [(1, 2)], [], [key_of(job.pid)])
    handover.write_gate(1, [], [], [])
    assert jobs(paths) == (key_of(job.pid),)
    after_a_restart = Handover(paths)
    after_a_restart.write_gate(1, [], [], [NOBODY])
    assert jobs(paths) == (NOBODY, key_of(job.pid))
    job.kill()
    job.wait()
    after_a_restart.write_gate(1, [], [], [])
    assert jobs(paths) == ()


def test_nothing_is_written_while_nothing_changes(paths: BuildPaths) -> None:
    handover = Handover(paths)
    handover.write_gate(1, [(1, 2)], [], [])
    (paths.root / "gate.json").unlink()
    handover.write_gate(1, [(1, 2)], [], [])
    assert not (paths.root / "gate.json").exists()
    handover.write_gate(2, [(1, 2)], [], [])
    assert (paths.root / "gate.json").exists()


def test_a_shorter_note_over_a_longer_one_is_read_alone(paths: BuildPaths) -> None:
    handover = Handover(paths)
    handover.write_gate(3, [(1, 2)], [(n, n) for n in range(1000)], [])
    handover.write_gate(2, [(1, 2)], [], [])
    assert read_gate(str(paths.root)) == (2, ((1, 2),), (), (), ())


@pytest.mark.parametrize("new_pages", [slice(0, 1), slice(1, 2)], ids=["half written", "overtaken"])
def test_a_note_that_is_part_new_and_part_old_says_nothing(paths: BuildPaths, new_pages: slice) -> None:
    """The engine writes over the last note, and may be killed on the way; a reader that meets the writer may be in
    front again at the next page."""
    notes, file = [], paths.root / "gate.json"
    for start in (1, 2):
        Handover(paths).write_gate(3, [], [(n, start) for n in range(1000, 2000)], [])
        notes.append(file.read_bytes().splitlines(keepends=True)[0])
    old, new = ([note[at : at + 4096] for at in range(0, len(note), 4096)] for note in notes)
    assert [len(page) for page in old] == [len(page) for page in new]
    old[new_pages] = new[new_pages]
    file.write_bytes(b"".join(old))
    assert json.loads(file.read_bytes())["level"] == 3  # JSON all the same
    assert read_gate(str(paths.root)) is None


def test_a_reader_beside_a_writer_always_gets_a_whole_note(paths: BuildPaths) -> None:
    """Many notes of several pages, each of one number only."""
    handover, over = Handover(paths), threading.Event()

    def write() -> None:
        for n in range(1, 300):
            handover.write_gate(n, [], [(n, n)] * (500 + n % 700), [])
        over.set()

    handover.write_gate(1, [], [(1, 1)] * 500, [])
    with concurrent.futures.ThreadPoolExecutor() as pool:
        writing = pool.submit(write)
        while not over.is_set() and not writing.done():
            gate = read_gate(str(paths.root))
            assert gate is not None
            assert set(gate.stopped) == {(gate.level, gate.level)}
        writing.result()


def test_what_could_not_be_written_is_written_later(tmp_path: Path) -> None:
    paths = BuildPaths(tmp_path / "not-yet")
    handover = Handover(paths)
    handover.write_gate(1, [], [], [])
    handover.beat()
    paths.root.mkdir()
    handover.write_gate(1, [], [], [])
    assert (paths.root / "gate.json").exists()


def test_a_heartbeat_changes_the_files_time(paths: BuildPaths) -> None:
    handover = Handover(paths)
    handover.beat()
    file = paths.root / "heartbeat"
    os.utime(file, (1, 1))
    handover.beat()
    assert file.stat().st_mtime > 1


def write(paths: BuildPaths, **files: dict[str, Any]) -> None:
    for name, value in files.items():
        (paths.root / f"{name}.json").write_text(json.dumps(value))


GONE = {"supervisor_pid": 2**22 + 1, "supervisor_start": 1, "build_pid": 2**22 + 1, "build_start": 1}
ENDED = {"exit_code": 1, "signal": None, "attempt": 2, "ended": 5.0}


def test_a_question_about_an_attempt_that_is_over_is_none(paths: BuildPaths) -> None:
    """The supervisor may be about to take its question away, the command having started again."""
    write(paths, ended=ENDED, supervisor={**GONE, "attempt": 3})
    assert Handover(paths).asked() is None
    write(paths, supervisor={**GONE, "attempt": 2})
    assert Handover(paths).asked() is not None


def test_an_engine_that_died_after_its_answer_leaves_no_question(paths: BuildPaths) -> None:
    write(paths, ended=ENDED, supervisor={**GONE, "attempt": 2}, verdict={"attempt": 2, "again": True})
    assert Handover(paths).asked() is None
    write(paths, verdict={"attempt": 1, "again": True})
    assert Handover(paths).asked() is not None


def test_an_answer_without_a_supervisor_reaches_nobody_and_hurts_nobody(
    paths: BuildPaths, job: subprocess.Popen[bytes]
) -> None:
    """The supervisor's pid may be somebody else's by now, whom SIGUSR1 would end."""
    write(paths, ended=ENDED, supervisor={**GONE, "attempt": 2, "supervisor_pid": job.pid})
    Handover(paths).answer(2, again=False)
    with pytest.raises(subprocess.TimeoutExpired):
        job.wait(0.2)
