from __future__ import annotations

import os
import subprocess
import time
from pathlib import Path

import pytest

from stoker.sense.ninja.build_files import log_path
from stoker.sense.ninja.build_log import Entry, NinjaLog
from stoker.sense.ninja.plan_process import PlanRequest, make_plan

NOW = 1_700_000_100.0
STARTED = NOW - 50
NEW = int((STARTED + 1) * 1e9)
OLD = int((STARTED - 1000) * 1e9)


def _line(start: int, end: int, output: str, mtime: int = NEW, command: str = "abc") -> str:
    return f"{start}\t{end}\t{mtime}\t{output}\t{command}\n"


@pytest.fixture
def log(tmp_path: Path) -> NinjaLog:
    return NinjaLog(tmp_path / ".ninja_log")


def _outputs(entries: list[Entry] | tuple[Entry, ...]) -> list[str]:
    return [e.output for e in entries]


@pytest.mark.parametrize("version", [5, 6, 7])
def test_new_lines_are_read_once(log: NinjaLog, version: int) -> None:
    assert log.read_new() == []
    log.path.write_text(f"# ninja log v{version}\n" + _line(0, 1500, "a.o"))
    [entry] = log.read_new()
    assert (entry.output, entry.seconds, entry.offset_after) == ("a.o", 1.5, log.path.stat().st_size)
    assert log.read_new() == []
    with log.path.open("a") as file:
        file.write(_line(1, 2, "b.o"))
    assert _outputs(log.read_new()) == ["b.o"]
    assert log.notes.take() == []


def test_a_cut_off_line_waits_for_its_rest(log: NinjaLog) -> None:
    whole = _line(1, 2, "b.o")
    log.path.write_text(_line(0, 1, "a.o") + whole[:7])
    assert _outputs(log.read_new()) == ["a.o"]
    with log.path.open("a") as file:
        file.write(whole[7:])
    assert _outputs(log.read_new()) == ["b.o"]


def test_the_outputs_of_one_edge_count_once_also_across_reads(log: NinjaLog) -> None:
    log.path.write_text(
        _line(0, 9, "a.h", command="x") + _line(0, 9, "a.cc", command="x") + _line(0, 9, "b", command="y")
    )
    assert _outputs(log.read_new()) == ["a.h", "b"]
    with log.path.open("a") as file:
        file.write(_line(0, 9, "b2", command="y"))
    assert log.read_new() == []


def test_what_a_run_has_recorded_can_be_asked_at_any_time(log: NinjaLog) -> None:
    log.begin_run(STARTED)
    log.path.write_text(_line(0, 9, "old", OLD) + _line(0, 9, "a.o"))
    log.read_new()
    assert [log.holds(output, STARTED + 60) for output in ("a.o", "old", "b.o")] == [True, False, False]
    assert log.read_new() == []


def test_two_edges_of_one_command_that_ran_in_the_same_milliseconds_are_two(log: NinjaLog) -> None:
    log.path.write_text(_line(0, 9, "a", NEW) + _line(0, 9, "b", NEW + 1) + _line(0, 9, "b2", NEW + 1))
    assert _outputs(log.read_new()) == ["a", "b"]


def test_the_outputs_of_one_edge_of_samurai_count_once(log: NinjaLog) -> None:
    log.path.write_text(_line(0, 0, "a.h", NEW) + _line(0, 0, "a.cc", NEW + 1))
    assert _outputs(log.read_new()) == ["a.h"]


def test_garbage_is_skipped_with_one_note(log: NinjaLog) -> None:
    log.path.write_bytes(b"# ninja log v6\n\x00\xff\n1\t2\n\nx\ty\tz\ta\tb\n" + _line(0, 1, "a.o").encode())
    assert _outputs(log.read_new()) == ["a.o"]
    assert len(log.notes.take()) == 1


def test_an_unknown_version_is_said(log: NinjaLog) -> None:
    log.path.write_text("# ninja log v99\n" + _line(0, 1, "a.o"))
    assert _outputs(log.read_new()) == ["a.o"]
    assert "99" in log.notes.take()[0]


def test_a_line_without_end_does_not_fill_the_memory(log: NinjaLog) -> None:
    log.path.write_bytes(b"x" * 3_000_000 + b"\n" + _line(0, 1, "a.o").encode())
    assert _outputs(log.read_new()) == ["a.o"]


def test_earlier_runs_are_history(log: NinjaLog) -> None:
    log.path.write_text(
        _line(0, 8000, "a.o", OLD) + _line(0, 9000, "b.o", OLD) + _line(0, 10, "c.o") + _line(0, 2000, "a.o")
    )
    first = log.first_read(STARTED, NOW)
    assert _outputs(first.this_run) == ["c.o", "a.o"]
    assert first.history == {"a.o": 8.0, "b.o": 9.0}
    with log.path.open("a") as file:
        file.write(_line(5, 2500, "b.o"))
    assert _outputs(log.read_new()) == ["b.o"]


def test_a_run_that_ended_just_before_is_told_apart_by_its_milliseconds(log: NinjaLog) -> None:
    log.path.write_text(_line(0, 900, "a.o") + _line(0, 5000, "b.o") + _line(0, 100, "c.o"))
    first = log.first_read(STARTED, NOW)
    assert _outputs(first.this_run) == ["c.o"]
    assert set(first.history) == {"a.o", "b.o"}


def test_a_run_that_began_a_moment_before_is_not_this_one(log: NinjaLog) -> None:
    """A small build may take a tenth of a second, and be called again at once."""
    just = int((STARTED - 0.1) * 1e9)
    log.path.write_text(_line(0, 40, "a.o", just) + _line(2, 80, "b.o", just + 2_000_000))
    first = log.first_read(STARTED, NOW)
    assert first.this_run == ()
    assert set(first.history) == {"a.o", "b.o"}


def test_an_entry_that_ends_after_now_is_of_another_run(log: NinjaLog) -> None:
    log.path.write_text(_line(0, 500_000, "a.o", mtime=0) + _line(0, 600_000, "b.o", mtime=0))
    assert log.first_read(STARTED, NOW).this_run == ()


def test_ninja_that_keeps_no_mtime(log: NinjaLog) -> None:
    log.path.write_text(
        _line(0, 90_000, "a.o", mtime=0) + _line(0, 100, "c.o", mtime=0) + _line(0, 200, "d.o", mtime=0)
    )
    assert _outputs(log.first_read(STARTED, NOW).this_run) == ["c.o", "d.o"]


def test_a_rebuilt_manifest_starts_the_milliseconds_anew_in_the_same_run(log: NinjaLog) -> None:
    log.path.write_text(_line(0, 900, "x.o", OLD) + _line(3, 4000, "build.ninja") + _line(0, 100, "a.o"))
    assert _outputs(log.first_read(STARTED, NOW).this_run) == ["build.ninja", "a.o"]


def test_what_a_restat_rule_left_as_it_was_is_of_this_run_where_it_follows_what_surely_is(log: NinjaLog) -> None:
    """Ninja before 1.12 records the time of the file."""
    log.path.write_text(_line(0, 900, "x.o", OLD) + _line(0, 100, "a.o") + _line(0, 150, "same.h", OLD))
    assert _outputs(log.first_read(STARTED, NOW).this_run) == ["a.o", "same.h"]


def test_a_rewritten_log_gives_only_what_is_new(log: NinjaLog) -> None:
    old, run = _line(0, 10, "old.o", OLD), _line(0, 30, "a.o")
    log.path.write_text(old * 3 + run)
    assert _outputs(log.first_read(STARTED, NOW).this_run) == ["a.o"]
    rewritten = log.path.with_name("new")
    rewritten.write_text(old + run + _line(0, 40, "b.o"))
    rewritten.rename(log.path)
    assert _outputs(log.read_new()) == ["b.o"]
    assert log.read_new() == []


def test_what_was_written_before_the_log_was_deleted_is_still_read(tmp_path: Path) -> None:
    log = NinjaLog(tmp_path / "build" / ".ninja_log")
    log.path.parent.mkdir()
    log.path.write_text(_line(0, 1, "a.o"))
    assert _outputs(log.read_new()) == ["a.o"]
    with log.path.open("a") as file:
        file.write(_line(0, 2, "b.o"))
    log.path.unlink()
    log.path.parent.rmdir()
    assert not log.lost
    assert _outputs(log.read_new()) == ["b.o"]
    assert log.read_new() == []
    log.close()
    assert log.read_new() == []
    assert NinjaLog(log.path).lost


def test_a_restarted_engine_goes_on_where_it_stopped(log: NinjaLog) -> None:
    log.path.write_text(_line(0, 1, "a.o") + _line(0, 2, "b.h", command="x"))
    offset = log.read_new()[-1].offset_after
    with log.path.open("a") as file:
        file.write(_line(0, 2, "b.cc", command="x") + _line(0, 3, "c.o"))
    again = NinjaLog(log.path)
    again.resume(offset)
    assert _outputs(again.read_new()) == ["c.o"]


@pytest.mark.parametrize(
    ("manifest", "folder"),
    [
        ("rule x\n  command = y\n", ""),
        ("builddir = out\n", "out"),
        ("root = a b\nbuilddir   =  ${root}/o$$x\n", "a b/o$x"),
        ("x = $\n  1\nbuilddir = $\n  out\nbuild a: phony\n", "out"),
        ("rule x\n  builddir = no\n", ""),
    ],
)
def test_the_log_may_lie_elsewhere(tmp_path: Path, manifest: str, folder: str) -> None:
    (tmp_path / "build.ninja").write_text(manifest)
    assert Path(log_path(str(tmp_path))) == tmp_path / folder / ".ninja_log"


def test_a_missing_manifest_has_its_log_beside_it(tmp_path: Path) -> None:
    assert Path(log_path(str(tmp_path))) == tmp_path / ".ninja_log"


def test_the_log_of_a_real_ninja(ninja: str, tmp_path: Path) -> None:
    rules = "builddir = deep/out\nrule r\n  command = touch $out\nbuild a b: r\nbuild c: r | a\nbuild all: phony a c\n"
    (tmp_path / "build.ninja").write_text(rules)
    (tmp_path / "deep").mkdir()
    started = time.time()
    subprocess.run([ninja], cwd=tmp_path, check=True, capture_output=True)
    log = NinjaLog(Path(log_path(str(tmp_path))))
    assert sorted(_outputs(log.first_read(started, time.time()).this_run)) == ["a", "c"]
    assert log.first_read(time.time() + 10, time.time() + 11).this_run == ()
    assert log.notes.take() == []


def test_what_makes_no_file_was_built_before_a_ninja_that_has_written_nothing(log: NinjaLog) -> None:
    """`ninja clean`, and then a build: `clean` has no file whose time would tell."""
    log.path.write_text(_line(0, 8000, "a.o", OLD) + _line(22, 411, "clean", mtime=0))
    os.utime(log.path, (STARTED - 1, STARTED - 1))
    first = log.first_read(STARTED, NOW)
    assert (first.this_run, first.history["clean"]) == ((), 0.389)


async def test_a_clean_before_the_build_is_no_job_of_its_plan(ninja: str, tmp_path: Path) -> None:
    rules = "rule r\n  command = touch $out\nrule clean\n  command = rm -f a.o\n"
    (tmp_path / "build.ninja").write_text(f"{rules}build a.o: r\nbuild clean: clean\ndefault a.o\n")
    path = tmp_path / ".ninja_log"
    path.write_text("# ninja log v5\n" + _line(22, 411, "clean", mtime=0))
    os.utime(path, (time.time() - 100,) * 2)
    request = PlanRequest(ninja, str(tmp_path), "build.ninja", (), time.time() - 50)
    plan, _ = await make_plan(request, tmp_path / "plan.json")
    assert plan is not None
    assert (plan.total, plan.summary.finished) == (1, 0)


def test_a_look_that_was_held_up_still_knows_its_run_by_the_start(tmp_path: Path) -> None:
    """An engine may be stopped between taking the time and reading; jobs that ended meanwhile count all the same."""
    path = tmp_path / ".ninja_log"
    start = 1_700_000_000.0
    path.write_text(f"# ninja log v7\n10\t5000\t{int((start + 0.01) * 1e9)}\ta.o\tab\n")
    assert [e.output for e in NinjaLog(path).first_read(start, start + 0.2).this_run] == ["a.o"]


def test_what_took_longer_than_ninja_has_run_was_built_before_it(log: NinjaLog) -> None:
    """Ninja 1.11 records when an output was written: of a step that runs again at once, that is a moment ago."""
    started = time.time()
    just = int((started - 0.06) * 1e9)
    log.path.write_text(_line(10, 140_000, "a.o", OLD) + _line(11, 158_000, "last.o", just))
    first = log.first_read(started, started + 0.2)
    assert first.this_run == ()
    assert first.history["last.o"] == pytest.approx(157.989)
