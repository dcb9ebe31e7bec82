"""What other tools read of a build: every job is there, no time is negative, and nothing overlaps in a lane."""

from __future__ import annotations

import csv
import io
import json
import subprocess
import sys
from collections import defaultdict
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.test_recorded import ANY_EVENT, KILLED, build_of
from stoker.cli.main import main
from stoker.model import events as ev
from stoker.record.journal_reader import read_journal
from stoker.report.arch_costs import ArchCosts, arch_costs, cost_rows
from stoker.report.chrome import BUILD, FIRST_COMPILER, chrome_trace
from stoker.report.recorded import RecordedBuild, recorded
from stoker.report.tables import COLUMNS, FORMULA, job_row, jsonl, table
from stoker.report.time_traces import arch_seconds, merged, templates, time_trace


def check(trace: dict[str, Any], build: RecordedBuild) -> None:
    """Hold a trace against the format, and against the build."""
    lanes = defaultdict(list)
    for event in trace["traceEvents"]:
        assert event["ph"] in ("X", "M", "C", "i")
        assert isinstance(event["name"], str)
        assert isinstance(event["args"], dict)
        if event["ph"] != "M":
            assert event["ts"] >= 0
        if event["ph"] == "X":
            assert event["dur"] >= 0
            if event["cat"] not in ("frozen", "compiler"):
                lanes[event["pid"], event["tid"]].append((event["ts"], event["ts"] + event["dur"]))
        if event["ph"] == "C":
            assert all(isinstance(value, int | float) for value in event["args"].values())
    for spans in lanes.values():
        assert all(a[1] <= b[0] for a, b in pairwise(sorted(spans)))
    ran = [e for e in trace["traceEvents"] if e.get("cat") in ("cxx", "nvcc", "link", "archive", "other")]
    never = [e for e in trace["traceEvents"] if e.get("cat") == "job"]
    assert (len(ran), len(never)) == (
        sum(job.began is not None for job in build.jobs),
        sum(job.began is None for job in build.jobs),
    )
    json.dumps(trace, allow_nan=False)


def test_the_trace_of_a_real_build() -> None:
    build = recorded(read_journal(KILLED))
    trace = chrome_trace(build)
    check(trace, build)
    lanes = {e["tid"] for e in trace["traceEvents"] if e["ph"] == "X" and e["pid"] == BUILD}
    assert len(lanes) == max(moment.running for moment in build.moments)
    assert any(e.get("cat") == "decision" and "MiB" in e["args"]["why"] for e in trace["traceEvents"])


@given(st.lists(ANY_EVENT, max_size=40), st.sampled_from([1.0, 0.0, -0.5]))
def test_the_trace_of_any_journal(events: list[ev.Event], every: float) -> None:
    build = build_of(events, every)
    check(chrome_trace(build), build)


@given(st.lists(ANY_EVENT, max_size=20))
def test_rows_hold_every_job_and_nothing_that_a_spreadsheet_or_a_terminal_would_obey(events: list[ev.Event]) -> None:
    build = build_of(events)
    rows = list(csv.DictReader(io.StringIO("".join(table(build)))))
    objects = [json.loads(line) for line in jsonl(build)]
    assert len(rows) == len(objects) == len(build.jobs)
    for row in rows:
        assert not row["output"].startswith(FORMULA)
        assert all(value.isprintable() for value in row.values())


def test_the_columns_are_the_keys() -> None:
    build = recorded(read_journal(KILLED))
    assert tuple(job_row(build, build.jobs[0])) == COLUMNS


def test_a_file_is_there_whole_or_not_at_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    target = tmp_path / "build.json"
    assert main(["export", str(KILLED), "-o", str(target)]) == 0
    assert json.loads(target.read_text())["otherData"]["tool"] == "stoker"
    assert main(["export", str(KILLED), "-o", str(tmp_path / "no/such.json")]) == 1
    assert "cannot write" in capsys.readouterr().err
    assert [path.name for path in tmp_path.iterdir()] == ["build.json"]


def compiler_build(tmp_path: Path, output: str) -> RecordedBuild:
    begin: list[ev.Event] = [
        ev.SchedulerStarted(2, "ninja", 101, str(tmp_path), "1.13.2", 4),
        ev.JobStarted(1, 2, 7, output, "cxx", 1004.0),
    ]
    return build_of([*begin, *[ev.StepEnded(1, 0)] * 60, ev.JobFinished(1, 2, output, "cxx", 60.0, "ok")])


F3, K3 = {"args": {"detail": "f<3>"}}, {"args": {"detail": "k<3>"}}

CLANG = {
    "beginningOfTime": 1_010_000_000,
    "traceEvents": [
        {"ph": "X", "pid": 5, "tid": 5, "ts": 23, "dur": 1_970_060, "name": "ExecuteCompiler"},
        {"ph": "X", "pid": 5, "tid": 5, "ts": 9000, "dur": 352_131, "name": "InstantiateFunction", **F3},
        {"ph": "X", "pid": 5, "tid": 6, "ts": 0, "dur": 1_970_060, "name": "Total ExecuteCompiler"},
        {"ph": "b", "pid": 5, "tid": 5, "ts": 20, "name": "Source"},
    ],
}  # fmt: skip
"""As clang 19 writes it."""

NVCC = {
    "traceEvents": [
        {},
        {"name": "process_name", "ph": "M", "pid": 12, "args": {"name": "cicc"}},
        {"name": "thread_name", "ph": "M", "pid": 12, "tid": 0, "args": {"name": "k.cu [compute_80]"}},
        {"name": "process_name", "ph": "M", "pid": 9, "args": {"name": "cudafe++"}},
        {"name": "thread_name", "ph": "M", "pid": 9, "tid": 0, "args": {"name": "k.cu [compute_90]"}},
        {"ph": "X", "pid": 9, "tid": 0, "ts": 1_052_468, "dur": 1_260_121, "name": "cudafe++", "args": {}},
        {"ph": "X", "pid": 12, "tid": 0, "ts": 2_653_019, "dur": 705_524, "name": "CUDA C++ Front-End", "args": {}},
        {"ph": "X", "pid": 12, "tid": 0, "ts": 2_700_000, "dur": 5000, "name": "Instantiating Template Function", **K3},
        {"ph": "X", "pid": 12, "tid": 0, "ts": "then", "dur": -5, "name": "broken"},
    ],
}  # fmt: skip
"""As nvcc 13 writes it."""


def test_compilers_own_traces_stand_where_they_happened(tmp_path: Path) -> None:
    build = compiler_build(tmp_path, "a.o")
    clang, nvcc = (time_trace(build.jobs[0], data) for data in (CLANG, NVCC))
    assert clang is not None
    assert nvcc is not None
    events = list(merged(build, iter([clang, nvcc])))
    check(chrome_trace(build, events), build)
    spans = {e["name"]: (e["ts"], e["dur"]) for e in events if e["ph"] == "X"}
    assert spans["ExecuteCompiler"] == (9_000_023, 1_970_060)  # the build began at 1001, the compiler at 1010
    assert "Total ExecuteCompiler" not in spans
    end = round((build.jobs[0].ended - build.started) * 1e6)
    assert sum(spans["CUDA C++ Front-End"]) == end  # nvcc does not say when: it ends with its job
    assert {e["pid"] for e in events} == {FIRST_COMPILER, FIRST_COMPILER + 1}
    assert arch_seconds([clang, nvcc]) == {"80": 0.705524}  # cudafe++ runs once, whatever nvcc calls it
    assert templates(iter([clang, nvcc])) == [("f<3>", 0.352131, 1), ("k<3>", 0.005, 1)]


@pytest.mark.parametrize("data", [None, [], {"traceEvents": {}}, {"traceEvents": [3, None, {"ph": "X", "ts": 1e400}]}])
def test_what_is_no_compilers_trace_does_no_harm(tmp_path: Path, data: object) -> None:
    build = compiler_build(tmp_path, "a.o")
    found = time_trace(build.jobs[0], data)
    assert found is None or found.events == ()


def test_ctrl_c_leaves_no_half_file(tmp_path: Path) -> None:
    """The real program, interrupted while it writes into a folder."""
    program = (
        "import sys, os, signal\n"
        "from pathlib import Path\n"
        "from stoker.cli.recorded_build import write_out\n"
        "def parts():\n"
        "    yield 'half'\n"
        "    os.kill(os.getpid(), signal.SIGINT)\n"
        "    yield 'rest'\n"
        "write_out(parts(), Path(sys.argv[1]))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", program, str(tmp_path / "x.html")], capture_output=True, check=False, timeout=60
    )
    assert done.returncode != 0
    assert list(tmp_path.iterdir()) == []


def seen(archs: dict[str, float], jobs: int = 2) -> RecordedBuild:
    begun: list[ev.Event] = [ev.JobStarted(n, 1, n, f"k{n}.o", "nvcc", 1004.0) for n in range(1, jobs + 1)]
    ends = (
        ev.JobFinished(n, 1, f"k{n}.o", "nvcc", 9.0, "ok", cpu_seconds=10.0, archs=archs) for n in range(1, jobs + 1)
    )
    return build_of([*begun, *ends])


def test_each_architecture_has_what_was_seen_of_it_and_its_share() -> None:
    found = arch_costs(seen({"80": 3.0, "90a": 5.0}), {})
    assert [(c.arch, c.cpu, c.clock) for c in found.costs] == [("80", 6.0, None), ("90a", 10.0, None)]
    assert "2 of 2 CUDA jobs" in found.how
    assert [row[2] for row in cost_rows(found)[1]] == ["30 %", "50 %"]


def test_too_little_that_was_seen_is_left_out_and_that_is_said() -> None:
    for archs in ({"80": 0.5, "90a": 0.4}, {}):
        found = arch_costs(seen(archs), {})
        assert found.costs == ()
        assert "too short to be seen" in found.how
    assert arch_costs(build_of([]), {}) == ArchCosts()


def test_nvccs_own_traces_stand_beside_what_was_seen() -> None:
    found = arch_costs(seen({"80": 3.0}), {"80": 7.0})
    assert [(c.arch, c.cpu, c.clock) for c in found.costs] == [("80", 6.0, 7.0)]
    assert "own traces" in found.how
    assert cost_rows(found)[0] == ("leaving out", "saves CPU time", "of all jobs'", "by the clock")


def test_a_journal_may_hold_any_name_of_an_architecture() -> None:
    hostile = {f"{n}": 9.0 for n in range(10, 99)} | {"<b>": 9.0, "\x1b[31m": 9.0, "80" * 99: 9.0}
    found = arch_costs(seen(hostile), {})
    assert all(cost.arch.isdigit() and len(cost.arch) == 2 for cost in found.costs)
