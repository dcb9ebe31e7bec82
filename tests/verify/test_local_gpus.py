"""The GPUs of this machine by NVML (a fake one, by the real binding), and what is said of those that do not answer."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stoker.cli.main import main
from support.fake_gpus import NVML

ASK = """
import dataclasses, json, sys
from stoker.verify.local_gpus import local_gpus
print(json.dumps(dataclasses.asdict(local_gpus(float(sys.argv[1])))))
"""

Ask = Callable[..., Any]


@pytest.fixture
def nvml(cc: Callable[..., Path]) -> Ask:
    """Ask the real binding, in a process that finds the fake library."""
    folder = cc("libnvidia-ml.so.1", NVML).parent

    def ask(seconds: float = 60.0, **environment: str) -> Any:
        env = {**os.environ, "LD_LIBRARY_PATH": str(folder), **environment}
        done = subprocess.run([sys.executable, "-c", ASK, str(seconds)], env=env, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    return ask


def test_the_gpus_of_this_machine_are_asked_of_nvml(nvml: Ask) -> None:
    found = nvml()

    assert (found["why"], found["lost"]) == ("", [])
    first, second = found["devices"]
    assert (first["name"], second["name"]) == ("NVIDIA H100", "RTX 5090")
    assert first["arch"] == {"major": 9, "minor": 0, "variant": ""}
    assert first["memory"] == 80 << 30
    assert first["driver"] == "570.86.15"
    assert first["cuda"] == [12, 8]


@pytest.mark.parametrize(
    ("fake", "field", "value"),
    [
        ("memory=3", "memory", None),  # GB10 and Jetson: no memory of their own
        ("memory=4", "memory", None),  # a GPU in MIG mode, to whom may not ask
        ("cuda=12", "cuda", None),  # a container with the driver's tools alone
        ("driver=999", "driver", ""),
        ("name=999", "name", "GPU 1"),
        ("junk=1", "name", "GPU 1"),
        ("uuid=3", "name", "RTX 5090"),
        ("shutdown=999", "name", "RTX 5090"),
    ],
)
def test_what_a_gpu_does_not_tell_loses_no_gpu(nvml: Ask, fake: str, field: str, value: object) -> None:
    found = nvml(FAKE=fake)

    assert (len(found["devices"]), found["lost"], found["why"]) == (2, [], "")
    assert found["devices"][1][field] == value


@pytest.mark.parametrize("fake", ["handle:0=15", "capability:0=3"])
def test_a_lost_gpu_is_told_and_does_not_hide_the_other(nvml: Ask, fake: str) -> None:
    found = nvml(FAKE=fake)

    assert [d["name"] for d in found["devices"]] == ["RTX 5090"]
    [lost] = found["lost"]
    assert lost.startswith("GPU 0 does not answer: ")
    assert found["why"] == ""


@pytest.mark.parametrize(
    ("fake", "broken"),
    [("count=999", True), ("init=18", True), ("init=9", False), ("init=12", False)],
)
def test_a_broken_driver_is_told_and_none_is_the_normal_case(nvml: Ask, fake: str, broken: bool) -> None:
    found = nvml(FAKE=fake, FAKE_WORDS="1")

    assert (found["devices"], found["broken"]) == ([], broken)
    assert found["why"]


def test_a_driver_that_never_answers_is_given_up(nvml: Ask) -> None:
    found = nvml(0.2, FAKE_HANGS="1")

    assert (found["devices"], found["broken"]) == ([], True)
    assert "did not answer" in found["why"]


def test_what_came_before_the_driver_hung_is_kept(nvml: Ask) -> None:
    seconds, found = 0.5, nvml(0.5, FAKE="hang:1=1")
    while not found["devices"]:  # so little time that not even the first was reached
        seconds *= 2
        found = nvml(seconds, FAKE="hang:1=1")

    assert [d["name"] for d in found["devices"]] == ["NVIDIA H100"]
    assert "GPUs may be missing" in found["lost"][0]


@pytest.fixture
def stoker(cc: Callable[..., Path]) -> Callable[..., tuple[int, Any]]:
    """`stoker verify --json` in a process that finds the fake library: its exit status and what it prints."""
    folder = cc("libnvidia-ml.so.1", NVML).parent

    def call(*words: str, **environment: str) -> tuple[int, Any]:
        env = {**os.environ, "LD_LIBRARY_PATH": str(folder), **environment}
        command = [sys.executable, "-m", "stoker", "verify", "--json", *words]
        done = subprocess.run(command, env=env, capture_output=True, text=True)
        assert done.stderr == ""
        return done.returncode, json.loads(done.stdout)

    return call


@pytest.fixture
def library(nvcc: Callable[..., Path]) -> str:
    return str(nvcc("local.so", "-shared", "-Xcompiler", "-fPIC", "-gencode", "arch=compute_90,code=compute_90"))


def test_a_lost_gpu_is_a_warning(stoker: Callable[..., tuple[int, Any]], library: str) -> None:
    status, report = stoker(library, FAKE="handle:1=15,cuda=12")

    assert status == 0
    assert [d["name"] for d in report["devices"]] == ["NVIDIA H100"]
    [problem] = report["problems"]
    assert problem["severity"] == "warning"
    assert problem["what"] == "GPU 1 does not answer: GPU is lost; it was not judged"


@pytest.mark.parametrize("words", [(), ("--arch-list", "9.0+PTX")])
def test_a_driver_that_does_not_answer_is_a_warning(
    stoker: Callable[..., tuple[int, Any]], library: str, words: tuple[str, ...]
) -> None:
    _, report = stoker(library, "--driver-wait", "0.2", *words, FAKE_HANGS="1")

    warnings = [p["what"] for p in report["problems"] if p["severity"] == "warning"]
    assert warnings == ["no GPU to judge for: the NVIDIA driver did not answer in 0.2 s"]


@pytest.mark.parametrize("text", ["0", "-1", "nan", "soon"])
def test_a_wait_that_makes_no_sense_is_refused(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main(["verify", "x.so", f"--driver-wait={text}"]) == 2
    assert "no number of seconds" in capsys.readouterr().err
