"""Lists the GPUs that NVIDIA's management library (NVML) reports. Asks about each separately, so that what one GPU, or
the driver, does not report costs nothing for the others; and in a subprocess, because the library may crash or hang.
Knows nothing of binaries or CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from stoker.verify.archs import Arch
from stoker.verify.gpu.devices import Device
from stoker.verify.python_probe import NoProbeAnswerError, hear

LIBRARY = "libnvidia-ml.so.1"
WSL = "/usr/lib/wsl/lib"
"""The folder of the driver's libraries under WSL2; ld.so does not always search it."""

PROGRAM = Path(__file__).with_name("list_gpus.py")


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU of this machine. `index` is NVML's, which counts by PCI bus; `uuid` (GPU-...) is empty if unknown."""

    index: int
    device: Device
    uuid: str = ""


@dataclass(frozen=True, slots=True)
class Heard:
    """What NVML has reported.

    `lost` has the index of each GPU that does not answer, and the reason; `why` says why NVML reported nothing, or
    nothing more. `broken`: a driver is present and does not answer properly; having no driver is normal.
    """

    gpus: list[Gpu] = field(default_factory=list)
    lost: list[tuple[int, str]] = field(default_factory=list)
    why: str = ""
    broken: bool = False


def ask_nvml(environment: Mapping[str, str], seconds: float) -> Heard:
    """Return what NVML reports to a program in this environment within this many seconds. Never raises."""
    places = [LIBRARY, f"{WSL}/{LIBRARY}"]
    try:
        facts, ended = hear(sys.executable, PROGRAM.read_text(encoding="utf-8"), places, environment, seconds)
        return _heard(facts, ended)
    except (NoProbeAnswerError, OSError) as err:
        return Heard(why=f"the NVIDIA driver (NVML): {err}", broken=True)
    except (AttributeError, KeyError, TypeError, ValueError):
        return Heard(why="NVML's answer is invalid", broken=True)


def _heard(facts: Sequence[Any], ended: str) -> Heard:
    """`ended` counts if the program ended before it reported that this was all."""
    gpus, lost, driver, cuda = list[Gpu](), list[tuple[int, str]](), "", None
    for fact in facts:
        if "why" in fact:
            return Heard(gpus, lost, str(fact["why"]), bool(fact["broken"]))
        if "lost" in fact:
            lost.append((int(fact["gpu"]), str(fact["lost"])))
        elif "gpu" in fact:
            major, minor = fact["capability"]
            device = Device(str(fact["name"]), Arch(int(major), int(minor)), fact["memory"], driver, cuda)
            gpus.append(Gpu(int(fact["gpu"]), device, str(fact["uuid"])))
        else:
            driver, number = str(fact["driver"]), fact["cuda"]
            cuda = None if number is None else (int(number) // 1000, int(number) % 1000 // 10)
    return Heard(gpus, lost, f"the NVIDIA driver (NVML): {ended}", broken=True)
