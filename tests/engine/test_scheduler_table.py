"""Which of the ninjas that write one log a record belongs to."""

from __future__ import annotations

import time
from collections.abc import Iterable
from pathlib import Path

import pytest

from stoker.engine.jobs.scheduler_table import SchedulerTable
from stoker.engine.jobs.table import JobTable
from stoker.model.events import JobFinished
from stoker.model.state import BuildState
from stoker.sense.ninja.plan import Plan, key_of_command, table_path, write_table
from stoker.sense.proc.schedulers import SchedulerProcess
from support.jobs import NOT_INTERRUPTED, FixedExpectations


def ninja(folder: Path, pid: int) -> SchedulerProcess:
    return SchedulerProcess(pid, 10 * pid, "ninja", str(folder), "ninja", ("ninja",), 1, "build.ninja", ())


def lines(outputs: Iterable[str], ninja_started: float) -> str:
    """Records as ninja 1.12 and later write them: each job began 10 ms after its ninja."""
    began = int((ninja_started + 0.01) * 1e9)
    return "".join(f"10\t20\t{began}\t{output}\t{output}\n" for output in outputs)  # the hash tells edges apart


@pytest.mark.parametrize("apart", [0.1, 0.25, 1.5])
def test_of_two_ninjas_in_quick_succession_each_has_its_own_records(tmp_path: Path, apart: float) -> None:
    now = time.time()
    first, second = now - 2.0, now - 2.0 + apart
    log = tmp_path / ".ninja_log"
    log.write_text("# ninja log v6\n")
    table = SchedulerTable(JobTable(FixedExpectations(), BuildState()), BuildState(), NOT_INTERRUPTED)
    table.open(ninja(tmp_path, 7), first)
    assert table.read_logs(now, just_scanned=True) == []
    with log.open("a") as file:
        file.write(lines(["a1", "a2"], first) + lines(["b1"], second))
    table.open(ninja(tmp_path, 8), second)
    ends = [e for e in table.read_logs(now, just_scanned=True) if isinstance(e, JobFinished)]
    assert [(e.sid, e.output) for e in ends] == [(1, "a1"), (1, "a2"), (2, "b1")]


COMMAND = ("/bin/sh", "-c", "g++ -c x.cpp -o h.o.part && mv h.o.part h.o")
"""Its own words name another file than the manifest does."""


def plan(folder: Path) -> Plan:
    path = folder / "plan.json"
    with table_path(path).open("wb") as file:
        write_table(file, [(key_of_command(COMMAND[2]), "h.o", "cxx")])
    path.write_text('{"total": 1, "finished": 0, "planned": 1, "tools": {"cxx": 1}, "stamp": ""}')
    made = Plan.load(path)
    assert made is not None
    return made


def test_a_job_has_its_name_from_the_start_where_an_earlier_ninja_of_the_manifest_had_a_plan(tmp_path: Path) -> None:
    table = SchedulerTable(JobTable(FixedExpectations(), BuildState()), BuildState(), NOT_INTERRUPTED)
    first, second, elsewhere = ninja(tmp_path, 7), ninja(tmp_path, 8), ninja(tmp_path / "other", 9)
    book, _ = table.open(first, 1.0)
    assert table.resolve(first, COMMAND) is None
    book.take_plan(plan(tmp_path))
    assert table.resolve(first, COMMAND) == ("h.o", "cxx")
    table.close(set(), 2.0, 2.0)
    table.open(second, 3.0)
    table.open(elsewhere, 3.0)
    assert table.resolve(second, COMMAND) == ("h.o", "cxx")
    assert table.resolve(elsewhere, COMMAND) is None
