"""Two sides beside each other: noise is no regression, a slower flag is one."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

from report.test_recorded import KILLED, build_of, sampled
from stoker.cli.commands.compare import _lines
from stoker.cli.main import main
from stoker.model import events as ev
from stoker.model.samples import JobSample
from stoker.report.comparison import compare
from stoker.report.recorded import RecordedBuild
from support.program import Stoker

DONE = ev.BuildEnded("done", 0, "")


def run(cpu: float, peak: int = 1 << 30, output: str = "a.o", began: float = 985.0) -> RecordedBuild:
    """A build of one job that ended at 1005."""
    end = ev.JobFinished(1, 1, output, "cxx", 5.0, "ok", peak_rss=peak, cpu_seconds=cpu)
    return build_of([ev.JobStarted(1, 1, 1, output, "cxx", began), end, DONE])


def verdicts(before: list[RecordedBuild], after: list[RecordedBuild]) -> dict[str, str]:
    found = compare(before, after, 0.05)
    return {c.figure: c.verdict for c in (*found.totals, *found.jobs)}


def test_one_run_shows_no_noise() -> None:
    assert verdicts([run(10)], [run(20), run(20)])["cpu_seconds"] == "unknown"


def test_what_lies_within_the_spread_of_either_side_is_noise() -> None:
    assert verdicts([run(10), run(14)], [run(13), run(15)])["cpu_seconds"] == "same"
    assert verdicts([run(10), run(14)], [run(14.5), run(15)])["cpu_seconds"] == "same"
    assert verdicts([run(10), run(10.1)], [run(10.3), run(10.4)])["cpu_seconds"] == "same"  # not above the share


def test_what_is_beyond_the_spread_and_the_share_has_changed() -> None:
    found = compare([run(10), run(10.5)], [run(15), run(15.2)], 0.05)
    assert [c.figure for c in found.regressed] == ["cpu_seconds"]
    assert [(c.job, c.figure, c.verdict) for c in found.jobs] == [("a.o", "cpu_seconds", "worse")]
    assert verdicts([run(15), run(15.2)], [run(10), run(10.5)])["cpu_seconds"] == "better"
    grown = compare([run(10, 1 << 30), run(10, 1 << 30)], [run(10, 3 << 29), run(10, 3 << 29)], 0.05)
    assert [(c.figure, c.verdict) for c in grown.jobs] == [("peak_bytes", "worse")]


def test_a_peak_may_lie_between_two_samples_of_a_short_job() -> None:
    """Of two seconds one may be unseen, with half of what the job came to hold."""
    before, after = ([run(2, mib << 20, began=1003.0) for mib in side] for side in ((300, 310), (390, 400)))
    assert compare(before, after, 0.05).regressed == ()
    before, after = ([run(20, mib << 20) for mib in side] for side in ((300, 310), (390, 400)))
    assert [c.verdict for c in compare(before, after, 0.05).jobs] == ["worse"]


def test_what_other_work_explains_is_no_regression() -> None:
    def beside_others(cpu: float, pace: float) -> RecordedBuild:
        ran = [sampled(JobSample(1, 1 << 30, 100 * pace, "cc1plus")) for _ in range(round(cpu / pace))]
        begin = ev.JobStarted(1, 1, 1, "a.o", "cxx", 1004.0)
        return build_of([begin, *ran, ev.JobFinished(1, 1, "a.o", "cxx", 5.0, "ok", cpu_seconds=cpu), DONE])

    alone, beside, slower = (
        [beside_others(cpu, pace), beside_others(cpu + 0.1, pace)] for cpu, pace in ((20, 1.0), (23, 0.3), (40, 0.3))
    )
    assert compare(alone, beside, 0.05).regressed == ()
    assert [c.figure for c in compare(alone, slower, 0.05).regressed] == ["seconds", "cpu_seconds"]


def test_jobs_of_one_side_are_named() -> None:
    found = compare([run(10), run(10)], [run(10, output="b.o"), run(10, output="b.o")], 0.05)
    assert (found.gone, found.new) == (("a.o",), ("b.o",))


def _journal(folder: Path, name: str, exit_code: int | None = 0, *, over: bool = True) -> str:
    """A recorded build, ended otherwise and with another ID."""
    changed: dict[str, dict[str, object]] = {
        "build_started": {"id": name},
        "build_ended": {"exit_code": exit_code, "reason": ""},
    }
    records = [json.loads(line) for line in KILLED.read_text().splitlines()]
    file = folder / f"{name}.jsonl"
    kept = [{**r, **changed.get(r["type"], {})} for r in records if over or r["type"] != "build_ended"]
    file.write_text("".join(json.dumps(record) + "\n" for record in kept))
    return str(file)


def test_ci_needs_more_than_one_run(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    one, another = _journal(tmp_path, "one"), _journal(tmp_path, "another")
    assert main(["compare", one, another, "--fail-above", "5%"]) == 2
    assert "A1,A2 B1,B2" in capsys.readouterr().err
    assert main(["compare", one, another, "--fail-above", "x"]) == 2
    assert "write it as 5%" in capsys.readouterr().err
    both = f"{one},{another}"
    assert main(["compare", both, both, "--fail-above", "0%", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["regressed"] == []
    assert main(["compare", one, another]) == 0
    assert "one run of a side shows no noise" in capsys.readouterr().out


def test_a_run_counts_once(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What is named twice has no spread."""
    good = _journal(tmp_path, "good")
    assert main(["compare", f"{good},{good}", good]) == 2
    assert "good is named twice; a run counts once" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("name", "code", "over", "how"),
    [
        ("bad", 1, True, "bad ended with status 1 after "),
        ("lost", None, True, "lost has no end in its journal after "),
        ("lives", 0, False, "lives has no end in its journal after "),
    ],
)
def test_what_did_not_end_well_is_compared_job_by_job_but_not_judged_in_all(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], name: str, code: int | None, over: bool, how: str
) -> None:
    """It took less time and memory, and did less."""
    good, other = _journal(tmp_path, "good"), _journal(tmp_path, name, code, over=over)
    assert main(["compare", good, other]) == 0
    said = capsys.readouterr().out
    assert how in said
    assert "none is called better or worse; jobs that ended well on both sides: " in said
    assert main(["compare", good, other, "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [len(side) for side in told["unfinished"]] == [0, 1]
    assert {change["verdict"] for change in told["totals"]} == {"unknown"}
    assert main(["compare", good, other, "--fail-above", "5%"]) == 2
    assert "--fail-above judges only builds that ended well" in capsys.readouterr().err


def test_what_an_unfinished_side_lacks_is_not_said_to_be_gone_for_good(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = _journal(tmp_path, "good"), Path(_journal(tmp_path, "bad", 1))
    records = [json.loads(line) for line in bad.read_text().splitlines()]
    last = max(n for n, r in enumerate(records) if r["type"] == "job_finished" and r["outcome"] == "ok")
    bad.write_text("".join(json.dumps(r) + "\n" for n, r in enumerate(records) if n != last))
    assert main(["compare", good, str(bad)]) == 0
    assert "only before (the other side did not finish): 1 job (" in capsys.readouterr().out


def test_of_single_runs_the_jobs_that_differ_most_are_named() -> None:
    said = "\n".join(_lines(compare([run(10)], [run(20)], 0.05)))
    assert "differ most" in said
    assert "+100 %  cpu  a.o" in said


SOURCE = "".join(
    f"int f{n}(const int *a, int b) {{ int s = 0; for (int i = 0; i < b; i++) s += a[i] * {n} ^ a[s & 7] + i % {n + 3};"
    " return s; }\n"
    for n in range(200)
)
"""Loops, which take six times as long with -O2, and no header, which takes seconds without."""


@pytest.mark.long
@pytest.mark.timeout(600)
@pytest.mark.skipif(not shutil.which("g++"), reason="wants g++")
def test_recorded_builds_are_like_themselves_and_a_slower_flag_shows(stoker: Stoker, tmp_path: Path) -> None:
    """How much two runs of one build differ is the machine's affair: what is noise is judged on figures, above."""
    folder = tmp_path / "project"
    folder.mkdir()
    (folder / "a.cpp").write_text(SOURCE)
    found: dict[str, list[str]] = {}
    for flag in ("-O0", "-O0", "-O2", "-O2"):
        rule = f"rule cxx\n  command = g++ {flag} -c $in -o $out\n"
        (folder / "build.ninja").write_text(rule + "".join(f"build {n}.o: cxx a.cpp\n" for n in range(2)))
        for made in (".ninja_log", "0.o", "1.o"):
            (folder / made).unlink(missing_ok=True)
        build = stoker.detach("ninja", "-C", str(folder), jobs=1)
        assert stoker.ended(build)["state"] == "done"
        found.setdefault(flag, []).append(build)
    first, again = ",".join(found["-O0"]), ",".join(reversed(found["-O0"]))
    alike = stoker.run("compare", first, again, "--json")
    assert json.loads(alike.stdout)["regressed"] == [], alike.stdout
    slower = stoker.run("compare", first, ",".join(found["-O2"]), "--fail-above", "5%", "--json")
    assert "cpu_seconds" in json.loads(slower.stdout)["regressed"], slower.stdout
    assert slower.returncode == 1


def test_jobs_are_counted_as_everywhere_else() -> None:
    """Two attempts at a job are one job that was made."""
    ends: list[ev.Event] = [
        ev.JobFinished(1, 1, "a.o", "cxx", 5.0, "failed"),
        ev.JobKilled("a.o", "memory", jid=1),
        ev.JobFinished(2, 1, "a.o", "cxx", 5.0, "ok", cpu_seconds=4.0),
    ]
    build = build_of([*(ev.JobStarted(n, 1, n, "a.o", "cxx", 1004.0) for n in (1, 2)), *ends])
    (jobs,) = [c for c in compare([build], [build], 0.05).totals if c.figure == "jobs"]
    assert jobs.before == jobs.after == 1


def test_each_job_has_all_of_its_runs() -> None:
    found = compare([run(10), run(11)], [run(20), run(21)], 0.05)
    (pair,) = found.pairs
    assert (pair.job, pair.verdict) == ("a.o", "worse")
    assert pair.cpu.share == pytest.approx(20.5 / 10.5 - 1)
    assert [one["cpu_seconds"] for one in (*pair.before, *pair.after)] == [10, 11, 20, 21]
    assert found.names == (("b-1", "b-1"), ("b-1", "b-1"))
