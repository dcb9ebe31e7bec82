"""`stoker simulate` as a person or a program calls it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from stoker.cli.main import main
from stoker.simulate.runner import simulate
from stoker.simulate.trace import read

MACHINE = ["--ram", "32G", "--cores", "16"]
CONTRACT = {"policy", "makespan", "peak", "kills", "lost_seconds", "idle", "bound"}


@pytest.fixture
def trace(tmp_path: Path) -> str:
    path = tmp_path / "build.jsonl"
    assert main(["simulate", "--synthetic", "flash-attn", "--jobs", "16", "--write", str(path)]) == 0
    return str(path)


def test_all_policies_are_compared(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["simulate", trace, *MACHINE]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert lines[0].split()[:2] == ["policy", "makespan"]
    names = [line.split()[0] for line in lines[1:]]
    assert {"stoker", "fixed:16", "kill-and-restart", "psi", "lower"} <= set(names)


def test_one_policy_as_json_keeps_the_contract(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["simulate", trace, *MACHINE, "--policy", "stoker", "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result.keys() >= CONTRACT
    assert result["policy"] == "stoker"
    assert result["makespan"] >= result["bound"] > 0


def test_all_policies_as_json_are_one_object(trace: str, capsys: pytest.CaptureFixture[str]) -> None:
    capsys.readouterr()
    assert main(["simulate", trace, *MACHINE, "--json"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert result.keys() >= CONTRACT
    assert all(other.keys() >= CONTRACT for other in result["compared"])
    assert {"stoker", "psi"} <= {other["policy"] for other in result["compared"]}


@pytest.mark.long
def test_a_long_trace_is_written(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "long.jsonl"
    assert main(["simulate", "--synthetic", "pytorch", "--jobs", "100000", "--write", str(path)]) == 0
    assert "100000 jobs" in capsys.readouterr().out
    with path.open() as lines:
        assert sum(1 for _ in lines) == 100_000


@pytest.mark.parametrize(
    ("words", "status", "remedy"),
    [
        ([], 2, "--synthetic NAME"),
        (["TRACE", "--synthetic", "vllm", *MACHINE], 2, "--synthetic NAME"),
        (["--synthetic", "vllm"], 2, "--ram 64G --cores 32"),
        (["--synthetic", "vllm", *MACHINE, "--policy", "luck"], 2, "kill-and-restart"),
        (["--synthetic", "vllm", "--ram", "much", "--cores", "16"], 2, "64G"),
        (["--synthetic", "vllm", "--ram", "1G", "--cores", "0"], 2, "from 1 on"),
        (["/no/such/trace", *MACHINE], 1, "/no/such/trace"),
    ],
)
def test_bad_usage_is_one_line_with_a_remedy(
    words: list[str], status: int, remedy: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["simulate", *words]) == status
    out, err = capsys.readouterr()
    assert out == ""
    assert len(err.splitlines()) == 1
    assert remedy in err


def test_how_far_a_build_on_paper_is_can_be_followed(trace: str) -> None:
    shares: list[float] = []
    simulate(read(Path(trace)), 16, 32 * 2**30, far=shares.append)
    assert shares == sorted(shares)
    assert shares[-1] == 1.0
    assert len(set(shares)) > 3
