"""What a GPU's answers mean, and how far a meter is from what nvidia-smi noted. Pure; knows nothing of stoker."""

from __future__ import annotations

import statistics
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any


@dataclass(frozen=True, slots=True)
class Meter:
    """One figure of the GPU: the differences between stoker's samples and nvidia-smi's nearest ones."""

    name: str
    samples: int
    middle: float
    most: float


def meaning(status: Sequence[int], machine_code_alone: Sequence[int]) -> str:
    """The verdict that fits what ran; if all did, that of most modules."""
    if any(status):
        return "part" if not all(status) else "no"
    return "ptx-jit" if 2 * sum(map(bool, machine_code_alone)) > len(status) else "native"


def witnessed(text: str) -> list[tuple[float, dict[str, float]]]:
    """What nvidia-smi noted: Unix time, and MiB, percent, degrees and watts."""
    rows = []
    for line in text.splitlines():
        stamp, *values = (word.strip() for word in line.split(","))
        when = datetime.strptime(stamp, "%Y/%m/%d %H:%M:%S.%f").astimezone().timestamp()
        rows.append((when, dict(zip(("memory", "use", "temperature", "power"), map(float, values), strict=True))))
    return rows


def compared(samples: Sequence[dict[str, Any]], rows: Sequence[tuple[float, dict[str, float]]]) -> list[Meter]:
    """By figure, how far each of stoker's samples is from all that nvidia-smi noted in the interval before it."""
    factors = {"memory": ("memory_used", 1 / 2**20), "use": ("utilisation", 1.0),
               "temperature": ("temperature", 1.0), "power": ("power_watts", 1.0)}  # fmt: skip
    found = []
    for name, (key, factor) in factors.items():
        gaps = []
        for sample in samples:
            near = [r[name] for when, r in rows if sample["t"] - 3.0 <= when <= sample["t"] + 0.5]
            value = sample["machine"]["gpus"][0].get(key)
            if near and value is not None:
                gaps.append(min(abs(value * factor - one) for one in near))
        if gaps:
            found.append(Meter(name, len(gaps), statistics.median(gaps), max(gaps)))
    return found
