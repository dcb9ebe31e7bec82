"""The GPUs of this machine by NVML (a fake one, by the real binding) or by the CUDA driver (fake too), and what is said
of those that do not answer."""

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

ASK = """
import dataclasses, json, os, sys
from stoker.verify.gpu.local_gpus import local_gpus
print(json.dumps(dataclasses.asdict(local_gpus(os.environ, float(sys.argv[1])))))
"""

Ask = Callable[..., Any]

OWN = ("CUDA_VISIBLE_DEVICES", "CUDA_DEVICE_ORDER")
"""What the machine that the tests run on may have set."""


def environment_with(folder: Path, **more: str) -> dict[str, str]:
    """Where the fake libraries are found; to the CUDA driver there is no GPU unless FAKE_GPUS says so."""
    own = {k: v for k, v in os.environ.items() if k not in OWN}
    return {**own, "LD_LIBRARY_PATH": str(folder), "FAKE_GPUS": "0", **more}


@pytest.fixture
def gpus(fake_gpus: Path) -> Ask:
    """Ask the real binding, in a process that finds the fake libraries."""

    def ask(seconds: float = 60.0, **environment: str) -> Any:
        env = environment_with(fake_gpus, **environment)
        done = subprocess.run([sys.executable, "-c", ASK, str(seconds)], env=env, capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, "")
        return json.loads(done.stdout)

    return ask


def test_the_gpus_of_this_machine_are_asked_of_gpus(gpus: Ask) -> None:
    found = gpus()

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
def test_what_a_gpu_does_not_tell_loses_no_gpu(gpus: Ask, fake: str, field: str, value: object) -> None:
    found = gpus(FAKE=fake)

    assert (len(found["devices"]), found["lost"], found["why"]) == (2, [], "")
    assert found["devices"][1][field] == value


@pytest.mark.parametrize("fake", ["handle:0=15", "capability:0=3"])
def test_a_lost_gpu_is_told_and_does_not_hide_the_other(gpus: Ask, fake: str) -> None:
    found = gpus(FAKE=fake)

    assert [d["name"] for d in found["devices"]] == ["RTX 5090"]
    [lost] = found["lost"]
    assert lost.startswith("GPU 0 does not answer: ")
    assert found["why"] == ""


@pytest.mark.parametrize(
    ("fake", "broken"),
    [("count=999", True), ("init=18", True), ("init=9", False), ("init=12", False)],
)
def test_a_broken_driver_is_told_and_none_is_the_normal_case(gpus: Ask, fake: str, broken: bool) -> None:
    found = gpus(FAKE=fake, FAKE_WORDS="1")

    assert (found["devices"], found["broken"]) == ([], broken)
    assert found["why"]


def test_a_driver_that_crashes_takes_nobody_along(gpus: Ask) -> None:
    found = gpus(FAKE="crash:0=1")

    assert (found["devices"], found["broken"]) == ([], True)
    assert "ended by signal 6" in found["why"]


def test_what_came_before_the_driver_crashed_is_kept(gpus: Ask) -> None:
    found = gpus(FAKE="crash:1=1")

    assert [d["name"] for d in found["devices"]] == ["NVIDIA H100"]
    assert "ended by signal 6; GPUs may be missing" in found["lost"][0]


def test_a_driver_that_never_answers_is_given_up(gpus: Ask) -> None:
    found = gpus(0.2, FAKE_HANGS="1")

    assert (found["devices"], found["broken"]) == ([], True)
    assert "no answer in 0.2 s" in found["why"]


def test_what_came_before_the_driver_hung_is_kept(gpus: Ask) -> None:
    seconds, found = 0.5, gpus(0.5, FAKE="hang:1=1")
    while not found["devices"]:  # so little time that not even the first was reached
        seconds *= 2
        found = gpus(seconds, FAKE="hang:1=1")

    assert [d["name"] for d in found["devices"]] == ["NVIDIA H100"]
    assert "GPUs may be missing" in found["lost"][0]


BY_BUS = {"CUDA_DEVICE_ORDER": "PCI_BUS_ID"}
FIRST, SECOND, BOTH, NONE = ["NVIDIA H100"], ["RTX 5090"], ["NVIDIA H100", "RTX 5090"], list[str]()


@pytest.mark.parametrize(
    ("value", "more", "seen"),
    [
        ("1", BY_BUS, SECOND),
        (" 0 ", BY_BUS, FIRST),
        ("1,0", {}, BOTH),
        ("0,2,1", BY_BUS, FIRST),  # up to the first that there is not
        ("0,-1,1", BY_BUS, FIRST),
        ("0,,1", BY_BUS, FIRST),
        ("7", BY_BUS, NONE),
        ("7", {}, NONE),
        ("", {}, NONE),
        ("-1", {}, NONE),
        ("-1,0", {}, NONE),
        ("NoDevFiles", {}, NONE),
        ("GPU-5090", {}, SECOND),
        ("GPU-1000bbbb-0000", {}, FIRST),
        ("GPU-5090aaaa-0000,GPU-1000bbbb-0000", {}, BOTH),
        ("GPU-5090,GPU-7,GPU-1000", {}, SECOND),
        ("GPU-", {}, NONE),  # not one GPU alone begins so
        ("GPU-77", {}, NONE),
    ],
)
def test_what_cuda_does_not_see_is_not_judged(gpus: Ask, value: str, more: dict[str, str], seen: list[str]) -> None:
    found = gpus(CUDA_VISIBLE_DEVICES=value, **more)

    assert [d["name"] for d in found["devices"]] == seen
    assert found["lost"] == []
    assert all(name in " ".join(found["notes"]) for name in BOTH if name not in seen)
    assert bool(found["notes"]) == (seen != BOTH)
    assert bool(found["why"]) == (seen == NONE)
    assert not found["broken"]


def test_a_number_is_certain_among_equal_gpus(gpus: Ask) -> None:
    found = gpus(CUDA_VISIBLE_DEVICES="1", FAKE_EQUAL="1")

    assert len(found["devices"]) == 1
    assert found["notes"] == ["CUDA_VISIBLE_DEVICES=1 leaves out GPU 0 (RTX 5090); not judged"]


@pytest.mark.parametrize(
    ("value", "more", "why"),
    [
        ("1", {}, "CUDA_DEVICE_ORDER=PCI_BUS_ID"),  # CUDA counts the fastest first
        ("MIG-11111111-2222", BY_BUS, "part of a GPU"),
        ("0,GPU-5090", BY_BUS, "numbers and names"),
        ("1,1", BY_BUS, "twice"),
        ("GPU-5090", {"FAKE": "uuid:0=3"}, "reports its name"),
        ("0", {**BY_BUS, "FAKE": "handle:0=15"}, "not every GPU answers"),
    ],
)
def test_what_is_not_certain_hides_nothing(gpus: Ask, value: str, more: dict[str, str], why: str) -> None:
    found = gpus(CUDA_VISIBLE_DEVICES=value, **more)

    assert len(found["devices"]) + len(found["lost"]) == 2
    [note] = found["notes"]
    assert why in note


@pytest.fixture
def stoker(fake_gpus: Path) -> Callable[..., tuple[int, Any]]:
    """`stoker verify --json` in a process that finds the fake libraries: its exit status and what it prints."""

    def call(*words: str, **environment: str) -> tuple[int, Any]:
        env = environment_with(fake_gpus, **environment)
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
    assert warnings == ["no GPU to judge for: the NVIDIA driver (NVML): no answer in 0.2 s"]


@pytest.mark.parametrize("text", ["0", "-1", "nan", "soon"])
def test_a_wait_that_makes_no_sense_is_refused(capsys: pytest.CaptureFixture[str], text: str) -> None:
    assert main(["verify", "x.so", f"--driver-wait={text}"]) == 2
    assert "not a number of seconds" in capsys.readouterr().err


def test_what_is_left_out_is_told_and_does_not_fail_the_verification(
    stoker: Callable[..., tuple[int, Any]], nvcc: Callable[..., Path]
) -> None:
    path = str(nvcc("hopper.so", "-shared", "-Xcompiler", "-fPIC", "-gencode", "arch=compute_90,code=sm_90"))

    assert stoker(path, FAKE_CUDA="13000")[0] == 1
    status, report = stoker(path, FAKE_CUDA="13000", CUDA_VISIBLE_DEVICES="GPU-1000")

    assert status == 0
    assert [d["name"] for d in report["devices"]] == ["NVIDIA H100"]
    [problem] = report["problems"]
    assert problem["severity"] == "info"
    assert problem["what"] == "CUDA_VISIBLE_DEVICES=GPU-1000 leaves out GPU 1 (RTX 5090); not judged"


NO_NVML = {"FAKE": "init=12", "FAKE_GPUS": "2"}


@pytest.mark.parametrize("fake", ["init=12", "init=9", "init=999", "count=999", "capability=3"])
def test_where_nvml_is_of_no_use_the_cuda_driver_is_asked(gpus: Ask, fake: str) -> None:
    found = gpus(FAKE=fake, FAKE_GPUS="2")

    assert (found["why"], found["broken"], found["lost"]) == ("", False, [])
    first, second = found["devices"]
    assert first == second
    assert first["name"] == "Stand-in"
    assert first["arch"] == {"major": 8, "minor": 9, "variant": ""}
    assert first["memory"] == 16 << 30
    assert first["cuda"] == [13, 0]


@pytest.mark.parametrize(
    ("fake", "field", "value"),
    [
        ("cuDriverGetVersion=3", "cuda", None),
        ("cuDeviceGetName=3", "name", "GPU 1"),
        ("cuDeviceTotalMem=3", "memory", None),
    ],
)
def test_what_the_cuda_driver_does_not_tell_loses_no_gpu(gpus: Ask, fake: str, field: str, value: object) -> None:
    found = gpus(FAKE=f"init=12,{fake}", FAKE_GPUS="2")

    assert (len(found["devices"]), found["lost"]) == (2, [])
    assert found["devices"][1][field] == value


def test_a_gpu_that_the_cuda_driver_lost_does_not_hide_the_other(gpus: Ask) -> None:
    found = gpus(FAKE="init=12,cuDeviceGetAttribute:0=3", FAKE_GPUS="2")

    assert len(found["devices"]) == 1
    assert found["lost"] == ["GPU 0 does not answer: cuDeviceGetAttribute: bad; it was not judged"]


@pytest.mark.parametrize(
    ("fake", "broken", "why"),
    [
        ("cuInit=100", False, "no CUDA-capable device"),
        ("cuInit=34", False, "cuInit"),  # the library of a toolkit, which is no driver
        ("cuInit=803", True, "cuInit"),
        ("cuInit=-2", True, "ended by signal 11"),
        ("cuInit=-1", True, "answer"),
    ],
)
def test_a_cuda_driver_that_does_not_answer_either_is_told(gpus: Ask, fake: str, broken: bool, why: str) -> None:
    # Only the one that hangs ever waits for the limit.
    found = gpus(2.0 if fake.endswith("=-1") else 60.0, FAKE=f"init=12,{fake}", FAKE_GPUS="1")

    assert (found["devices"], found["broken"]) == ([], broken)
    assert why in found["why"]


def test_a_choice_that_hides_all_from_the_cuda_driver_is_told(gpus: Ask) -> None:
    found = gpus(FAKE="init=12", CUDA_VISIBLE_DEVICES="-1")

    assert "no CUDA-capable device (CUDA_VISIBLE_DEVICES=-1)" in found["why"]


def test_a_gpu_without_nvml_is_judged(stoker: Callable[..., tuple[int, Any]], library: str) -> None:
    status, report = stoker(library, **NO_NVML)

    assert status == 1
    assert [(d["name"], d["capability"], d["verdict"]) for d in report["devices"]] == [("Stand-in", "8.9", "no")] * 2


BELOW_WSL = """
import ctypes, os, sys
from stoker.sense.machine import gpu
from stoker.verify.gpu import matmul, nvml
try:
    ctypes.CDLL("libnvidia-ml.so.1")
    sys.exit(77)
except OSError:
    gpu.WSL = nvml.WSL = sys.argv[1]
matmul.PLACES = (matmul.PLACES[0], sys.argv[1] + "/libcuda.so.1")
if sys.argv[2] == "verify":
    print([g.device.name for g in nvml.ask_nvml(os.environ, 60.0).gpus], matmul.listing()["devices"][0]["name"])
else:
    reader = gpu.GpuReader()
    print(reader.note == gpu.NO_DRIVER)
    reader.close()
"""


@pytest.mark.parametrize(
    ("who", "words"),
    [("verify", "['NVIDIA H100', 'RTX 5090'] Stand-in\n"), ("sense", "False\n")],
)
def test_the_driver_is_found_where_wsl_has_it(fake_gpus: Path, who: str, words: str) -> None:
    env = {k: v for k, v in os.environ.items() if k not in (*OWN, "LD_LIBRARY_PATH")}
    done = subprocess.run(
        [sys.executable, "-c", BELOW_WSL, str(fake_gpus), who], env=env, capture_output=True, text=True
    )
    if done.returncode == 77:
        pytest.skip("this machine has a driver of its own")

    assert done.stdout == words
