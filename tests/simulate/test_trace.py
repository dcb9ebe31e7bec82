"""Trace files: what is written can be read, what is recorded is understood, what is broken is named."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stoker.simulate.synthetic import BUILDS
from stoker.simulate.trace import MIB, TraceError, read, write

RECORDED = {
    "output": "k.o",
    "tool": "nvcc",
    "wall_s": 200.0,
    "cpu_s": 100.0,
    "peak_mib": 400,
    "samples": [[0.0, 10, "cudafe++"], [80.0, 200, "cicc"], [199.0, 50, "ptxas"]],
}


def recorded(tmp_path: Path, **changes: object) -> Path:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps({**RECORDED, **changes}) + "\n")
    return path


def test_a_contended_recording_is_scaled_to_a_core_of_its_own(tmp_path: Path) -> None:
    (job,) = read(recorded(tmp_path))
    assert (job.cpu, job.width, job.seconds) == (100, 1, 100)
    assert [p.age for p in job.points] == pytest.approx([0, 40, 99.5, 100])
    assert job.points[1].phase == "cicc"


def test_a_peak_between_samples_counts(tmp_path: Path) -> None:
    (job,) = read(recorded(tmp_path))
    assert job.peak == 400 * MIB


def test_more_cpu_than_wall_time_means_more_than_one_core(tmp_path: Path) -> None:
    (job,) = read(recorded(tmp_path, cpu_s=600.0))
    assert (job.width, job.seconds) == (3, 200)


def test_a_job_without_samples_holds_its_peak_all_along(tmp_path: Path) -> None:
    (job,) = read(recorded(tmp_path, samples=[]))
    assert {p.size for p in job.points} == {400 * MIB}


@pytest.mark.parametrize("name", sorted(BUILDS))
def test_a_written_build_reads_as_it_was(name: str, tmp_path: Path) -> None:
    jobs = BUILDS[name](jobs=30)
    path = tmp_path / "build.jsonl"
    assert write(jobs, path) == 30
    again = read(path)
    assert [j.output for j in again] == [j.output for j in jobs]
    assert [j.peak for j in again] == pytest.approx([j.peak for j in jobs], rel=1e-3)
    assert [j.memory_time for j in again] == pytest.approx([j.memory_time for j in jobs], rel=1e-2)


def test_dependencies_survive(tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(json.dumps(RECORDED) + "\n" + json.dumps({**RECORDED, "output": "lib.so", "deps": ["k.o"]}) + "\n")
    assert read(path)[1].deps == ("k.o",)


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("", "holds no job"),
        ("nonsense\n", "line 1"),
        ("[]\n", "line 1"),
        (json.dumps(RECORDED) + "\n{}\n", "line 2: no 'wall_s'"),
        (json.dumps({**RECORDED, "cpu_s": -1}) + "\n", "more than 0"),
        (json.dumps({**RECORDED, "cpu_s": "NaN"}) + "\n", "'NaN' is no time and no size"),
        (json.dumps({**RECORDED, "wall_s": 1e308}) + "\n", "'1e\\+308' is no time and no size"),
        (json.dumps({**RECORDED, "peak_mib": 10**400}) + "\n", "'10+' is no time and no size"),
        (json.dumps({**RECORDED, "samples": [[0, 1e308, "x"]]}) + "\n", "'1e\\+308' is no time and no size"),
        (json.dumps({**RECORDED, "samples": [[9, 1, "x"], [3, 1, "x"]]}) + "\n", "order of time"),
        (json.dumps({**RECORDED, "deps": ["gone.o"]}) + "\n", "no earlier job makes"),
    ],
)
def test_what_is_wrong_is_named(text: str, named: str, tmp_path: Path) -> None:
    path = tmp_path / "t.jsonl"
    path.write_text(text)
    with pytest.raises(TraceError, match=named):
        read(path)


@pytest.mark.parametrize("data", [b"\xff\xfe{}\n", b"[" * 100_000 + b"\n", b'{"output": "' + b"x" * 5_000_000])
def test_what_is_no_text_or_has_no_end_is_told_with_its_line(tmp_path: Path, data: bytes) -> None:
    path = tmp_path / "t.jsonl"
    path.write_bytes(data)
    with pytest.raises(TraceError, match="line 1: "):
        read(path)
