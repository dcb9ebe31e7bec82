"""What bench.gpu makes of the GPU's answers and of nvidia-smi's."""

from __future__ import annotations

import importlib.util
import sys
from pathlib import Path
from types import ModuleType

import pytest


def _load() -> ModuleType:
    """The module by its file: this folder has the same name as that package."""
    path = Path(__file__).parents[2] / "bench/gpu_compared.py"
    spec = importlib.util.spec_from_file_location("gpu_compared", path)
    assert spec is not None
    assert spec.loader is not None
    module = sys.modules["gpu_compared"] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


gpu = _load()


@pytest.mark.parametrize(
    ("status", "machine_code_alone", "verdict"),
    [
        ([0], [0], "native"),
        ([0], [223], "ptx-jit"),
        ([0, 0], [0, 223], "native"),
        ([0, 0, 0], [223, 0, 223], "ptx-jit"),
        ([0, 209], [0, 209], "part"),
        ([209, 500], [209, 223], "no"),
    ],
)
def test_a_verdict_follows_from_what_ran(status: list[int], machine_code_alone: list[int], verdict: str) -> None:
    assert gpu.meaning(status, machine_code_alone) == verdict


def test_a_sample_is_compared_with_what_was_noted_around_it() -> None:
    rows = gpu.witnessed("2026/11/27 12:00:00.500, 1000, 40, 30, 70.5\n2026/11/27 12:00:09.500, 9000, 90, 50, 300\n")
    card = {"memory_used": 1004 << 20, "utilisation": 40.0, "temperature": 30.0, "power_watts": None}
    samples = [{"t": rows[0][0] + 1, "machine": {"gpus": [card]}}]

    found = {meter.name: (meter.samples, meter.middle, meter.most) for meter in gpu.compared(samples, rows)}

    assert found == {"memory": (1, 4.0, 4.0), "use": (1, 0.0, 0.0), "temperature": (1, 0.0, 0.0)}
