"""What the screens over recorded builds are given, from real files: a folder's builds, broken journals, many builds."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from report.test_recorded import KILLED
from stoker.cli import recorded_library
from stoker.cli.recorded_library import RecordedLibrary
from stoker.config.paths import builds_dir
from stoker.show.build_library import LibraryError


@pytest.fixture(autouse=True)
def own_state(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.chdir(tmp_path)


def add(name: str, cwd: Path, after: float = 0.0, exit_code: int = 0) -> Path:
    """A recorded build of that folder, so many seconds after the others."""
    folder = builds_dir() / name
    folder.mkdir(parents=True)
    end: dict[str, object] = {"exit_code": exit_code, "reason": "", "outcome": "failed" if exit_code else "done"}
    changed: dict[str, dict[str, object]] = {"build_started": {"id": name, "cwd": str(cwd)}, "build_ended": end}
    records = [json.loads(line) for line in KILLED.read_text().splitlines()]
    for record in records:
        record |= {key: record[key] + after for key in ("t", "started") if key in record} | changed.get(
            record["type"], {}
        )
    lines = [json.dumps(record, separators=(",", ":")) for record in records]
    (folder / "journal.jsonl").write_text("".join(f"{line}\n" for line in lines))
    return folder


def far(_share: float) -> None:
    pass


def test_the_builds_of_the_folder_come_with_their_figures_and_trends(tmp_path: Path) -> None:
    add("one-1", tmp_path)
    add("one-2", tmp_path, 1000.0)
    add("other-3", tmp_path / "other", 2000.0)
    library = RecordedLibrary()
    found = library.history(everywhere=False)
    assert (found.folder, found.unread) == (str(tmp_path), 0)
    assert [(line.id, line.share) for line in found.lines] == [("one-1", None), ("one-2", 1.0)]
    assert all(line.jobs and line.peak for line in found.lines)
    assert [line.id for line in library.history(everywhere=True).lines] == ["one-1", "one-2", "other-3"]


def test_of_many_builds_each_look_reads_a_part_and_at_least_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for number in range(3):
        add(f"b-{number}", tmp_path, 1000.0 * number)
    monkeypatch.setattr(recorded_library, "SLICE", -1.0)
    library = RecordedLibrary()
    left = []
    for _ in range(3):
        found = library.history(everywhere=False)
        left.append(found.unread)
        assert len(found.lines) == 3
    assert left == [2, 1, 0]
    assert found.lines[-1].jobs, "the newest is read first"


@pytest.mark.parametrize("data", [b"\x00\xff\x13 no journal", b"no\njournal\n", b""])
def test_a_journal_that_cannot_be_read_is_a_line_with_its_fault(tmp_path: Path, data: bytes) -> None:
    good = add("good-1", tmp_path)
    bad = add("bad-2", tmp_path, 1000.0)
    shutil.copy(good / "journal.jsonl", bad / "spec.json")
    (bad / "journal.jsonl").write_bytes(data)
    library = RecordedLibrary()
    lines = {line.id: line for line in library.history(everywhere=True).lines}
    assert set(lines) == {"good-1", "bad-2"}
    assert lines["good-1"].outcome == "done"
    with pytest.raises(LibraryError):
        library.brief("bad-2", far)


def test_a_build_in_brief_says_what_it_took_and_what_was_killed(tmp_path: Path) -> None:
    add("one-1", tmp_path)
    found = RecordedLibrary().brief("one-1", far)
    assert dict(found.figures)["jobs"]
    titles = [table.title for table in found.tables]
    assert {"where the time went", "slowest jobs", "largest jobs", "killed"} <= set(titles)


def test_two_sides_are_compared_and_what_cannot_be_says_why(tmp_path: Path) -> None:
    for number in range(4):
        add(f"b-{number}", tmp_path, 1000.0 * number)
    add("failed-4", tmp_path, 5000.0, exit_code=1)
    library = RecordedLibrary()
    found = library.comparison(["b-0", "b-1"], ["b-2", "b-3"], far)
    assert found.runs == (2, 2)
    assert found.regressed == ()
    assert found.pairs
    ((), (unfinished,)) = library.comparison(["b-0"], ["failed-4"], far).unfinished
    assert unfinished.startswith("failed-4 ended with status 1 after ")
    with pytest.raises(LibraryError, match="no build 'none'"):
        library.comparison(["none"], ["b-0"], far)
