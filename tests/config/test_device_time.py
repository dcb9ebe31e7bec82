"""`device_time: true` has nvcc write its own time beside each object, and leaves a person's flags alone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from stoker.config.profiles.added_variables import added_by
from stoker.config.profiles.profile import Profile


def flags(*, wanted: bool = True, env: dict[str, str] | None = None, **environ: str) -> str | None:
    profile = Profile("mine", Path("mine.yaml"), device_time=wanted, env=env or {})
    return added_by(profile, environ, "/").to(environ).get("NVCC_APPEND_FLAGS")


def test_the_flag_stands_behind_those_that_are_there_and_once() -> None:
    assert flags(wanted=False) is None
    assert flags() == "-fdevice-time-trace -"
    assert flags(NVCC_APPEND_FLAGS="-lineinfo") == "-lineinfo -fdevice-time-trace -"
    assert flags(env={"NVCC_APPEND_FLAGS": "-G"}) == "-G -fdevice-time-trace -"
    assert flags(NVCC_APPEND_FLAGS="-fdevice-time-trace -") == "-fdevice-time-trace -"


@pytest.mark.long
@pytest.mark.skipif(not shutil.which("nvcc"), reason="wants nvcc")
def test_nvcc_obeys_it(tmp_path: Path) -> None:
    (tmp_path / "k.cu").write_text("__global__ void k(int *a) { a[threadIdx.x] = 1; }\n")
    env = {**os.environ, "NVCC_APPEND_FLAGS": flags() or ""}
    subprocess.run(["nvcc", "-c", "k.cu", "-o", "k.o"], cwd=tmp_path, env=env, check=True)
    assert json.loads((tmp_path / "k.o.json").read_text())["traceEvents"]
