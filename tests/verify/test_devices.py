"""GPUs by name, by number, and by NVML (a fake one, by the real binding)."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from stoker.verify.archs import ArchError
from stoker.verify.devices import device_of

NAMES = {
    "V100": "7.0", "Tesla V100-SXM2-32GB": "7.0", "T4": "7.5", "Tesla T4": "7.5", "GeForce RTX 2080 Ti": "7.5",
    "Quadro RTX 6000": "7.5", "A100": "8.0", "NVIDIA A100-SXM4-80GB": "8.0", "a30": "8.0", "A10": "8.6", "A10G": "8.6",
    "A40": "8.6", "NVIDIA GeForce RTX 3090": "8.6", "rtx3060": "8.6", "RTX A6000": "8.6", "Orin": "8.7",
    "Jetson AGX Orin": "8.7", "L4": "8.9", "L40S": "8.9", "RTX 4090": "8.9", "4090": "8.9",
    "NVIDIA GeForce RTX 4090 Laptop GPU": "8.9",
    "RTX 6000 Ada Generation": "8.9", "H100": "9.0", "NVIDIA H100 80GB HBM3": "9.0", "H100 PCIe": "9.0",
    "NVIDIA H200": "9.0", "GH200": "9.0", "NVIDIA GH200 480GB": "9.0", "B200": "10.0", "GB200": "10.0", "B300": "10.3",
    "GB300": "10.3", "Thor": "11.0", "RTX 5090": "12.0", "NVIDIA GeForce RTX 5070 Ti": "12.0",
    "RTX PRO 6000 Blackwell Workstation Edition": "12.0", "GB10": "12.1", "DGX Spark": "12.1",
}  # fmt: skip


@pytest.mark.parametrize(("name", "capability"), NAMES.items())
def test_a_gpu_is_known_by_the_names_it_goes_by(name: str, capability: str) -> None:
    assert device_of(name).arch.number == capability


@pytest.mark.parametrize("text", ["9.0", "sm_90", "90"])
def test_a_gpu_is_known_by_its_capability(text: str) -> None:
    assert device_of(text).arch.number == "9.0"


@pytest.mark.parametrize(
    ("text", "hint"), [("H1000", "H100"), ("toaster", "--device 9.0"), ("9.0a", "plain"), ("", "--device 9.0")]
)
def test_an_unknown_gpu_is_refused_with_a_hint(text: str, hint: str) -> None:
    with pytest.raises(ArchError, match=hint):
        device_of(text)


FAKE_NVML = r"""
#include <string.h>
#include <unistd.h>
#include <stdlib.h>
typedef struct { unsigned long long total, free, used; } Memory;
static int broken(void) { return getenv("FAKE_NVML_BROKEN") ? 999 : 0; }
int nvmlInitWithFlags(unsigned f) { if (getenv("FAKE_NVML_HANGS")) pause(); return 0; }
int nvmlInit_v2(void) { return nvmlInitWithFlags(0); }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int s) { return "it is broken"; }
int nvmlSystemGetDriverVersion(char *t, unsigned n) { strncpy(t, "570.86.15", n); return broken(); }
int nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 12080; return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = (void *)(long)(i + 1); return 0; }
int nvmlDeviceGetCudaComputeCapability(void *h, int *a, int *b) { *a = h == (void *)1 ? 9 : 12; *b = 0; return 0; }
int nvmlDeviceGetMemoryInfo(void *h, Memory *m) { m->total = 80ULL << 30; m->free = m->used = 0; return 0; }
int nvmlDeviceGetName(void *h, char *t, unsigned n) {
  strncpy(t, h == (void *)1 ? "NVIDIA H100" : "RTX 5090", n);
  return 0;
}
"""

ASK = """
import dataclasses, json, sys
from stoker.verify.devices import local_devices
devices, why = local_devices(float(sys.argv[1]))
print(json.dumps([[dataclasses.asdict(d) for d in devices], why]))
"""


@pytest.fixture
def nvml(cc: Callable[..., Path]) -> Callable[..., Any]:
    """Ask the real binding, in a process that finds the fake library."""
    folder = cc("libnvidia-ml.so.1", FAKE_NVML).parent

    def ask(seconds: float = 60.0, **environment: str) -> Any:
        env = {**os.environ, "LD_LIBRARY_PATH": str(folder), **environment}
        command = [sys.executable, "-c", ASK, str(seconds)]
        return json.loads(subprocess.run(command, env=env, capture_output=True, text=True, check=True).stdout)

    return ask


def test_the_gpus_of_this_machine_are_asked_of_nvml(nvml: Callable[..., Any]) -> None:
    devices, why = nvml()

    assert why == ""
    assert [d["name"] for d in devices] == ["NVIDIA H100", "RTX 5090"]
    assert devices[0]["arch"] == {"major": 9, "minor": 0, "variant": ""}
    assert devices[0]["memory"] == 80 << 30
    assert devices[0]["driver"] == "570.86.15"
    assert devices[0]["cuda"] == [12, 8]


def test_a_broken_driver_is_told_and_does_no_harm(nvml: Callable[..., Any]) -> None:
    devices, why = nvml(FAKE_NVML_BROKEN="1")

    assert devices == []
    assert "NVML failed" in why


def test_a_driver_that_never_answers_is_given_up(nvml: Callable[..., Any]) -> None:
    devices, why = nvml(0.2, FAKE_NVML_HANGS="1")

    assert devices == []
    assert "did not answer" in why
