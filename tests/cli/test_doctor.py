"""`stoker doctor` as it is called: its words, its status, its table and its JSON."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from stoker.cli.main import main
from stoker.doctor.check import examination, fail, ok, warn
from stoker.show.doctor_text import render

FAULTS = examination(
    "PyTorch",
    [
        ok("cmake", "3.25.1, /usr/bin/cmake"),
        warn("clock", "one two three " * 20, "touch \x1b[31mx"),
        fail("nvcc", "there is none", "export CUDA_HOME=/usr/local/cuda " + "x" * 100),
        ok("CMAKE_CXX_COMPILER_LAUNCHER", "ccache"),
    ],
)


@pytest.fixture(autouse=True)
def own_folders(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "state"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "config"))
    for name in ("CC", "CXX", "MAX_JOBS", "TORCH_CUDA_ARCH_LIST", "CUDA_HOME", "TMPDIR"):
        monkeypatch.delenv(name, raising=False)


def asked(capsys: pytest.CaptureFixture[str], *words: str) -> tuple[int, dict[str, Any]]:
    status = main(["doctor", "--json", *words])
    out, err = capsys.readouterr()
    assert err == ""
    return status, json.loads(out)


def test_json_holds_every_check_with_its_four_keys(capsys: pytest.CaptureFixture[str]) -> None:
    status, data = asked(capsys)
    assert (status, data["ok"]) in ((0, True), (1, False))
    names = [check["name"] for check in data["checks"]]
    assert len(names) > 15
    for check in data["checks"]:
        assert check["status"] in ("ok", "warn", "fail")
        assert {"name", "status", "why", "remedy"} <= check.keys()


def test_one_failing_check_is_status_1(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    status, data = asked(capsys)
    assert status == 1
    assert data["ok"] is False
    assert data["checks"][0]["status"] == "fail"
    failing = {check["name"]: check for check in data["checks"] if check["status"] == "fail"}
    assert failing["C++ compiler"]["remedy"] == "unset CXX"


def test_the_table_says_the_same(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CXX", "no-such-compiler")
    assert main(["doctor"]) == 1
    out, err = capsys.readouterr()
    assert err == ""
    assert "\x1b" not in out
    assert out.startswith("Not ready for ")
    assert "FAIL C++ compiler" in out


def test_bad_words_are_status_2(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["doctor", "--nonsense"]) == 2
    assert "stoker doctor --help" in capsys.readouterr().err


PROFILE = """
variables:
  python: python3
  arch: ""
env:
  USE_CUDA: "1"
  TORCH_CUDA_ARCH_LIST: ${arch}
  MAX_JOBS: many
steps:
  all:
    command: make
checks:
  disk: 1000 TiB
  memory: 900 TiB
  cores: 4096
  commands: ["${python}", make, no-such-command]
  headers: [stdio.h, no_such_header.h]
  files: [no/such/file]
  python: [no_such_module]
  submodules: yes
  cuda: "99.1"
  cmake: "99.2"
"""


@pytest.fixture
def profile(tmp_path: Path) -> str:
    file = tmp_path / "config/stoker/profiles/mine.yaml"
    file.parent.mkdir(parents=True)
    file.write_text(PROFILE)
    return "mine"


def test_a_profiles_checks_are_made_each_one(capsys: pytest.CaptureFixture[str], profile: str) -> None:
    status, data = asked(capsys, "-p", profile)
    assert status == 1
    assert data["what"] == "mine"
    found = {check["name"]: check for check in data["checks"]}
    for name in (
        *("build folder", "memory", "command no-such-command", "header no_such_header.h", "file no/such/file"),
        *("python modules", "nvcc", "cmake", "MAX_JOBS"),
    ):
        assert found[name]["status"] == "fail", name
    assert "99.2" in found["cmake"]["why"]
    assert found["cores"]["status"] == found["submodules"]["status"] == "warn"


def test_a_profiles_environment_is_judged_with_values_by_hand_and_the_persons_own(
    capsys: pytest.CaptureFixture[str], profile: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MAX_JOBS", "7")
    _, data = asked(capsys, "-p", profile, "--set", "arch=8.0,9.0")
    found = {check["name"]: check for check in data["checks"]}
    assert found["TORCH_CUDA_ARCH_LIST"]["status"] == "fail"
    assert "8.0,9.0" in found["TORCH_CUDA_ARCH_LIST"]["why"]
    assert found["MAX_JOBS"]["why"].startswith("7: ")


@pytest.mark.parametrize(
    "words",
    [
        ("-p", "no-such-profile"),
        ("-p", "mine", "--set", "arch"),
        ("-p", "mine", "--set", "archs=9.0"),
        ("--set", "arch=9.0"),
        ("-p", "faulty"),
    ],
)
def test_bad_words_about_profiles_are_status_2(
    capsys: pytest.CaptureFixture[str], profile: str, tmp_path: Path, words: tuple[str, ...]
) -> None:
    (tmp_path / "config/stoker/profiles/faulty.yaml").write_text("stepps: 1\n")
    assert main(["doctor", *words]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.count("\n") == 1


def test_asking_leaves_nothing_behind(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    asked(capsys)
    assert list(tmp_path.iterdir()) == []


def test_rows_fit_80_columns_and_only_commands_go_on() -> None:
    lines = render(FAULTS, colour=False).splitlines()
    assert lines[0] == "Not ready for PyTorch: 1 must be fixed, 1 worth a look."
    assert [line.split()[0] for line in lines[2:] if line[:1] != " "] == ["FAIL", "warn", "ok", "ok"]
    assert all(len(line) <= 80 for line in lines if "->" not in line)
    assert sum("->" in line for line in lines) == 2
    assert "\x1b" not in "".join(lines)


def test_limits_that_are_well_are_one_row() -> None:
    checks = [ok("limit: stack", "8.0 MiB"), ok("cmake", "3.25"), warn("limit: files", "few"), ok("limit: CPU", "none")]
    lines = render(examination("x", checks), colour=False).splitlines()
    assert [" ".join(line.split()) for line in lines[2:]] == [
        "warn limit: files few",
        "ok limits stack 8.0 MiB; CPU none",
        "ok cmake 3.25",
    ]


def test_in_colour_only_the_verdicts_are_coloured() -> None:
    coloured = render(FAULTS, colour=True)
    assert "\x1b[0;1;31mFAIL\x1b[0m nvcc" in coloured
    assert "\x1b[31mx" not in coloured
