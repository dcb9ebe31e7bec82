"""What jobs took in earlier builds: kept through crashes and rivals, and never a build's trouble."""

from __future__ import annotations

import math
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from stoker.record import history as history_module
from stoker.record.history import MAX_VARIANTS, History

GIB = 2**30
COURSE = ((0.0, 1e6, "nvcc"), (30.0, 3.0 * GIB, "cicc"), (60.0, 1e9, "ptxas"))


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "state" / "history.sqlite3"


@pytest.fixture
def history(path: Path) -> Iterator[History]:
    opened = History(path)
    yield opened
    opened.close()


def course(peak: float, seconds: float) -> tuple[tuple[float, float, str], ...]:
    return ((0.0, peak / 4, "cc1plus"), (seconds, peak, "cc1plus"))


def run_other(path: Path, body: str) -> subprocess.Popen[str]:
    """Another build's process that uses the same file."""
    head = f"""
        from pathlib import Path
        from stoker.record.history import History
        path = Path({str(path)!r})
    """
    code = textwrap.dedent(head) + textwrap.dedent(body)
    return subprocess.Popen(
        [sys.executable, "-c", code],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        cwd=path.parent.parent,
    )


def sound(path: Path) -> bool:
    connection = sqlite3.connect(path)
    try:
        return bool(connection.execute("PRAGMA integrity_check").fetchone()[0] == "ok")
    finally:
        connection.close()


# -- what is kept ------------------------------------------------------------------------------------------------------


def test_what_was_added_is_found_by_the_next_build(path: Path) -> None:
    first = History(path)
    assert first.find("nvcc", "a.o", "f") is None
    first.add("nvcc", "a.o", "f", COURSE)
    first.close()
    second = History(path)
    found = second.find("nvcc", "a.o", "f")
    assert found is not None
    assert found.points == COURSE
    assert (found.runs, found.same_flags) == (1, True)
    assert (math.exp(found.log_peak), math.exp(found.log_seconds)) == pytest.approx((3 * GIB, 60))
    assert second.find("cxx", "a.o", "f") is None
    assert second.find("nvcc", "b.o", "f") is None
    assert second.take_notes() == []
    second.close()


def test_nobody_else_can_read_it(path: Path, history: History) -> None:
    history.add("nvcc", "a.o", "f", COURSE)
    history.flush()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    for file in path.parent.iterdir():
        assert file.stat().st_mode & 0o077 == 0, file


def test_other_flags_are_found_and_marked_and_the_latest_counts(path: Path) -> None:
    now = [1000.0]
    history = History(path, clock=lambda: now[0])
    for flags, peak in (("old", 1 * GIB), ("new", 2 * GIB)):
        now[0] += 1
        history.add("cxx", "a.o", flags, course(peak, 10))
        history.flush()
    found = history.find("cxx", "a.o", "unheard of")
    assert found is not None
    assert not found.same_flags
    assert math.exp(found.log_peak) == pytest.approx(2 * GIB)
    own = history.find("cxx", "a.o", "old")
    assert own is not None
    assert own.same_flags
    assert math.exp(own.log_peak) == pytest.approx(GIB)
    history.close()


def test_means_lean_towards_recent_builds_and_tell_how_far_runs_differ(history: History) -> None:
    for _ in range(10):
        history.add("cxx", "steady.o", "", course(GIB, 10))
    history.flush()
    for peak in [GIB] * 10 + [4 * GIB] * 6:
        history.add("cxx", "grown.o", "", course(peak, 10))
        history.flush()
    steady, grown = history.find("cxx", "steady.o", ""), history.find("cxx", "grown.o", "")
    assert steady is not None
    assert grown is not None
    assert steady.runs == 10
    assert steady.peak_variance == pytest.approx(0.0)
    assert 3 * GIB < math.exp(grown.log_peak) < 4 * GIB
    assert grown.peak_variance > 0.1
    assert grown.points == course(4 * GIB, 10)


@pytest.mark.parametrize("name", ["", "x" * 5000, "caf\udce9.o", "a'; DROP TABLE job; --.o", "\0", "ü/日本.o"])
def test_any_name_will_do(history: History, name: str) -> None:
    history.add("cxx", name, "", COURSE)
    history.flush()
    found = history.find("cxx", name, "")
    assert found is not None
    assert found.runs == 1
    assert history.find("cxx", name + "y", "") is None
    assert len(history.known().heaviest[0].output) <= 512


@pytest.mark.parametrize("points", [(), COURSE * 6, ((5.0, 1.0, ""), (3.0, 1.0, ""))])
def test_what_is_no_course_is_refused(history: History, points: tuple[tuple[float, float, str], ...]) -> None:
    with pytest.raises(ValueError, match="1 to 16 points"):
        history.add("cxx", "a.o", "", points)


@settings(max_examples=25)  # a file is made for each
@given(st.lists(st.tuples(st.floats(), st.floats(), st.text(max_size=3)), min_size=1, max_size=4))
def test_figures_that_cannot_be_true_are_not_kept(points: list[tuple[float, float, str]]) -> None:
    with tempfile.TemporaryDirectory() as folder:
        history = History(Path(folder) / "state" / "history.sqlite3")
        try:
            history.add("cxx", "a.o", "", points)
        except ValueError:
            return
        finally:
            history.close()
        again = History(Path(folder) / "state" / "history.sqlite3")
        found = again.find("cxx", "a.o", "")
        again.close()
        if found is not None:
            assert all(math.isfinite(value) for point in found.points for value in point[:2])
            assert math.isfinite(found.log_peak + found.log_seconds)


# -- bounds ------------------------------------------------------------------------------------------------------------


def test_the_jobs_not_seen_for_longest_go(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(history_module, "MAX_ROWS", 100)
    monkeypatch.setattr(history_module, "PRUNED_ROWS", 90)
    now = [0.0]
    history = History(path, clock=lambda: now[0])
    for number in range(100):
        now[0] = float(number)
        history.add("cxx", f"{number}.o", "", COURSE)
        history.flush()
    now[0] = 200.0
    history.add("cxx", "0.o", "", COURSE)
    history.add("cxx", "new.o", "", COURSE)
    history.flush()
    assert history.known().jobs == 90
    assert history.find("cxx", "0.o", "") is not None, "it ran again"
    assert history.find("cxx", "new.o", "") is not None
    assert history.find("cxx", "1.o", "") is None
    assert history.find("cxx", "99.o", "") is not None
    history.close()


def test_flags_that_change_with_every_build_do_not_fill_it(history: History) -> None:
    history.add("cxx", "other.o", "", COURSE)
    for build in range(50):
        history.add("cxx", "a.o", f"commit {build}", COURSE)
        history.flush()
    assert history.known().jobs == MAX_VARIANTS + 1
    latest = history.find("cxx", "a.o", "commit 49")
    assert latest is not None
    assert latest.same_flags


# -- several builds, and sudden ends ---------------------------------------------------------------------------------


def test_builds_that_write_at_once_lose_nothing_of_each_other(path: Path) -> None:
    path.parent.mkdir(parents=True)
    body = """
        import sys
        history = History(path)
        for n in range(40):
            for job in range(5):
                history.add("cxx", f"{job}.o", "", ((0.0, 1e9, ""), (10.0, 2e9, "")))
            history.flush()
            assert history.find("cxx", "0.o", "") is not None
        history.close()
        print(history.pending, history.take_notes())
    """
    others = [run_other(path, body) for _ in range(4)]
    assert [other.communicate()[0].strip() for other in others] == ["0 []"] * 4
    history = History(path)
    assert (history.known().jobs, history.known().runs) == (5, 4 * 40 * 5)
    history.close()
    assert sound(path)


def test_a_kill_in_mid_write_costs_at_most_what_was_being_written(path: Path) -> None:
    path.parent.mkdir(parents=True)
    body = """
        history = History(path)
        n = 0
        while True:
            for job in range(200):
                history.add("cxx", f"{n}-{job}.o", "", ((0.0, 1e9, ""), (10.0, 2e9, "")))
            history.flush()
            n += 1
            print(n, flush=True)
    """
    for _ in range(5):
        other = run_other(path, body)
        assert other.stdout is not None
        before = [other.stdout.readline() for _ in range(3)]
        other.send_signal(signal.SIGKILL)
        written = int(([*before, *other.stdout.readlines()])[-1])
        other.wait()
        other.stdout.close()
        history = History(path)
        assert history.take_notes() == []
        assert history.known().jobs >= 200 * written
        assert history.known().jobs % 200 == 0, "all of a flush or nothing"
        assert history.find("cxx", f"{written - 1}-199.o", "") is not None
        history.add("cxx", "after.o", "", COURSE)
        history.forget()
        history.close()
        assert sound(path)


# -- whatever may be wrong with the file ---------------------------------------------------------------------------


def written(path: Path, jobs: int = 400) -> None:
    history = History(path)
    for number in range(jobs):
        history.add("cxx", f"some/folder/with/a/name/{number}.o", "", COURSE)
    history.close()


def spoil(path: Path, how: str) -> None:
    data = path.read_bytes()
    if how == "garbage":
        path.write_bytes(b"\x7fELF" + os.urandom(100_000))
    elif how == "cut":
        path.write_bytes(data[: len(data) // 2])
    elif how == "head cut":
        path.write_bytes(data[:50])
    elif how == "holes":
        path.write_bytes(data[:4096] + bytes(len(data) - 4096))
    elif how == "somebody else's":
        path.unlink()
        connection = sqlite3.connect(path)
        connection.execute("CREATE TABLE job (id INTEGER)")
        connection.close()


@pytest.mark.parametrize("how", ["garbage", "cut", "head cut", "holes", "somebody else's"])
def test_a_damaged_file_makes_room_for_a_new_one(path: Path, how: str) -> None:
    written(path)
    spoil(path, how)
    damaged = path.read_bytes()
    history = History(path)
    history.find("cxx", "some/folder/with/a/name/399.o", "")
    history.add("cxx", "a.o", "f", COURSE)
    history.flush()
    history.flush()
    assert history.find("cxx", "a.o", "f") is not None
    (note,) = history.take_notes()
    assert "damaged" in note
    assert path.with_name("history.sqlite3.damaged").read_bytes()[:50] == damaged[:50]
    history.close()
    assert sound(path)
    again = History(path)
    assert again.find("cxx", "a.o", "f") is not None
    assert again.take_notes() == []
    again.close()


def test_a_row_that_holds_nonsense_is_passed_over(path: Path) -> None:
    written(path, 3)
    connection = sqlite3.connect(path)
    for number, points in enumerate(("no json", "[[1, 2]]", "[[0, 1e999, 5]]")):
        connection.execute("UPDATE job SET points = ? WHERE output LIKE ?", (points, f"%/{number}.o"))
    connection.execute("UPDATE job SET log_peak = 'heavy' WHERE output LIKE '%/2.o'")
    connection.commit()
    connection.close()
    history = History(path)
    for number in range(3):
        assert history.find("cxx", f"some/folder/with/a/name/{number}.o", "") is None
    assert len(history.known().heaviest) == 2
    history.close()


def test_a_file_of_a_later_stoker_is_left_alone(path: Path) -> None:
    written(path)
    connection = sqlite3.connect(path)
    connection.execute("PRAGMA user_version = 99")
    connection.commit()
    connection.close()
    before = path.read_bytes()
    history = History(path)
    assert history.find("cxx", "some/folder/with/a/name/1.o", "") is None
    history.add("cxx", "a.o", "", COURSE)
    history.flush()
    history.close()
    (note,) = history.take_notes()
    assert "later stoker" in note
    assert path.read_bytes() == before


@pytest.mark.parametrize("what", ["folder", "fifo", "no parent"])
def test_what_is_no_file_is_done_without(path: Path, what: str) -> None:
    if what == "no parent":
        path.parent.write_text("a file where a folder should be")
    else:
        path.parent.mkdir(parents=True)
        path.mkdir() if what == "folder" else os.mkfifo(path)
    history = History(path)
    assert history.find("cxx", "a.o", "") is None
    history.add("cxx", "a.o", "", COURSE)
    history.flush()
    assert history.forget() == 0
    history.close()
    assert any("not used" in note for note in history.take_notes())


def test_a_file_that_may_not_be_written_is_done_without() -> None:
    """As a user who is not root, whom no permission stops."""
    with tempfile.TemporaryDirectory() as top:
        folder = Path(top)
        path = folder / "state" / "history.sqlite3"
        written(path)
        path.chmod(0o400)
        nobody = 65534 if os.getuid() == 0 else os.getuid()
        folder.chmod(0o755)
        for file in (path.parent, *path.parent.iterdir()):
            os.chown(file, nobody, nobody if os.getuid() == 0 else os.getgid())
        path.parent.chmod(0o500)
        body = f"""
            import os
            path = Path("state/history.sqlite3")
            if os.getuid() == 0:
                os.setgid({nobody})
                os.setuid({nobody})
            history = History(path)
            history.add("cxx", "a.o", "", ((0.0, 1e9, ""), (10.0, 2e9, "")))
            history.flush()
            history.close()
            print(len(history.take_notes()))
        """
        assert run_other(path, body).communicate()[0].strip() == "1"
        path.parent.chmod(0o700)


def test_a_full_disk_keeps_what_it_can_later(history: History, path: Path) -> None:
    """The file may not grow: SQLite says what a full disk would make it say."""
    history.add("cxx", "a.o", "", COURSE)
    history.flush()
    with history._file.transaction() as connection:
        pages = connection.execute("PRAGMA page_count").fetchone()[0]
        connection.execute(f"PRAGMA max_page_count = {pages}")
    for number in range(300):
        history.add("cxx", f"{number}.o", "", COURSE)
    history.flush()
    assert history.pending == 300
    (note,) = history.take_notes()
    assert "full" in note
    history.flush()
    assert history.take_notes() == []
    with history._file.transaction() as connection:
        connection.execute("PRAGMA max_page_count = 100000")
    history.flush()
    assert history.pending == 0
    assert history.find("cxx", "299.o", "") is not None


# -- for a person ------------------------------------------------------------------------------------------------------


def test_the_heaviest_are_listed_and_all_can_be_forgotten(history: History, path: Path) -> None:
    for number in range(30):
        history.add("nvcc", f"{number}.o", "", course((number + 1) * GIB, 10))
    history.add("cxx", "small.o", "", course(1e8, 2))
    history.add("cxx", "small.o", "", course(1e8, 2))
    history.flush()
    known = history.known(3)
    assert (known.jobs, known.runs, known.tools) == (31, 32, (("nvcc", 30), ("cxx", 1)))
    assert [job.output for job in known.heaviest] == ["29.o", "28.o", "27.o"]
    assert known.heaviest[0].peak == pytest.approx(30 * GIB)
    other = History(path)
    assert history.forget() == 31
    assert history.known() == history_module.Known()
    assert other.find("nvcc", "1.o", "") is None
    other.add("nvcc", "1.o", "", COURSE)
    other.close()
    assert history.known().jobs == 1
