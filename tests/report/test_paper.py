"""A recorded build on paper takes about as long as it took, and waits for what it waited for."""

from __future__ import annotations

import gzip
import json
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from report.test_recorded import ANY_EVENT, KILLED, build_of, sampled
from stoker.cli.main import main
from stoker.model import events as ev
from stoker.model.samples import JobSample
from stoker.record.journal_reader import read_journal
from stoker.report.paper import NothingRanError, on_paper
from stoker.report.recorded import recorded
from stoker.report.whatif import note, paper_runs, what_if
from stoker.simulate.runner import simulate

RECORDED = Path(__file__).parent / "recorded"

SAME = 0.15
"""How far a build on paper may be from the one that was recorded, as a share of its time."""


@pytest.fixture(params=sorted(path.name for path in RECORDED.glob("*.gz")))
def journal(request: pytest.FixtureRequest, tmp_path: Path) -> str:
    """The journal of a real build with memory pressure, on two cores beside other people's work."""
    path = tmp_path / "journal.jsonl"
    path.write_bytes(gzip.decompress((RECORDED / request.param).read_bytes()))
    return str(path)


def test_a_recorded_build_takes_on_paper_what_it_took(journal: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["simulate", journal, "--policy", "stoker", "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["makespan"] == pytest.approx(found["measured"], rel=SAME)


def test_a_trace_of_it_simulates_alike(journal: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    trace = tmp_path / "trace.jsonl"
    assert main(["export", journal, "--format", "trace", "-o", str(trace)]) == 0
    times = []
    for source in (journal, str(trace)):
        capsys.readouterr()
        assert main(["simulate", source, "--ram", "100G", "--cores", "4", "--policy", "fixed:4", "--json"]) == 0
        times.append(json.loads(capsys.readouterr().out))
    # The trace has no word of other work beside it.
    assert times[1]["makespan"] <= times[0]["makespan"] * 1.01
    assert times[1]["lost_seconds"] == times[0]["lost_seconds"] == 0


def test_jobs_wait_on_paper_for_the_groups_that_they_waited_for() -> None:
    plan = ev.SchedulerPlanned(1, 3, "dry-run", {}, after=((), (0,), (0, 1)))
    jobs = [
        event
        for n, (name, group) in enumerate((("gen.h", 0), ("a.o", 1), ("lib.a", 2)), 1)
        for event in (
            ev.JobStarted(n, 1, n, name, "cxx", 1000.0 + 4 * n),
            sampled(JobSample(n, 1 << 20, 100.0, "cc1plus")),
            ev.JobsExited((n,)),
            ev.JobFinished(n, 1, name, "cxx", 2.0, "ok", cpu_seconds=2.0, group=group),
        )
    ]
    paper = on_paper(build_of([plan, *jobs]))
    deps = {job.output: job.deps for job in paper.jobs}
    assert deps["a.o"] == ("gen.h",)
    assert deps["lib.a"] == ("gen.h", "a.o")
    assert simulate(paper.jobs, 8, 1 << 40, "fixed:8").makespan == pytest.approx(6.0, abs=0.1)


def test_schedulers_stay_one_behind_the_other() -> None:
    first: list[ev.Event] = [ev.JobStarted(1, 1, 1, "a", "cxx", 1004.0), ev.JobFinished(1, 1, "a", "cxx", 1.0, "ok")]
    second: list[ev.Event] = [
        ev.SchedulerStarted(2, "make", 9, "/b", "4", 2),
        ev.JobStarted(2, 2, 2, "a", "cxx", 1008.0),
        ev.JobFinished(2, 2, "a", "cxx", 1.0, "ok"),
    ]
    paper = on_paper(build_of([*first, *second]))
    assert [job.output for job in paper.jobs if job.deps == ("a",)] == ["end of scheduler 1"]
    assert [job.deps for job in paper.jobs if job.output == "a (2)"] == [("end of scheduler 1",)]


def test_without_jobs_there_is_nothing_to_put_on_paper() -> None:
    with pytest.raises(NothingRanError, match="b-1"):
        on_paper(build_of([]))


def test_more_memory_is_never_worse_and_a_real_build_has_all_its_lines() -> None:
    paper = on_paper(recorded(read_journal(KILLED)))
    found = {w.name: w for run in paper_runs(paper) if (w := what_if(paper, run)) is not None}
    assert {"as it was, on paper", "plain -j2", "stoker with 128 GiB", "stoker with 32 GiB more"} <= found.keys()
    assert found["stoker with 128 GiB"].seconds <= found["as it was, on paper"].seconds * 1.01
    assert found["stoker with 128 GiB"].kills == 0


def test_where_the_model_is_off_or_others_had_the_cores_the_note_says_so() -> None:
    paper = on_paper(recorded(read_journal(KILLED)))
    fair = note(paper, paper.measured)
    assert "hints" not in fair
    assert "far off" not in fair
    assert "0.50 times what was measured" in note(paper, paper.measured / 2)
    assert "Others wanted 20 times the cores" in note(replace(paper, others=20.0 * paper.cores))


@given(st.lists(ANY_EVENT, max_size=40), st.sampled_from([1.0, 0.0, -0.5]))
def test_any_journal_ends_on_paper(events: list[ev.Event], every: float) -> None:
    try:
        paper = on_paper(build_of(events, every))
    except NothingRanError:
        return
    result = simulate(paper.jobs, paper.cores, paper.memory, "fixed:2", others=paper.others)
    assert 0 < result.makespan < float("inf")
