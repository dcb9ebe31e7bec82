"""Lists the GPUs that the CUDA driver reports: programs run even where NVML is missing or useless (containers without
the driver's tools, Jetson, WSL2). Asks in a subprocess, because the library may crash or hang. Knows nothing of
binaries or NVML."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from stoker.verify.archs import parse_arch
from stoker.verify.gpu.devices import Device
from stoker.verify.gpu.run_kernel import PROGRAM
from stoker.verify.python_probe import NoProbeAnswerError, ask

_STUB, _NO_DEVICE = 34, 100
"""CUDA_ERROR_STUB_LIBRARY and CUDA_ERROR_NO_DEVICE: the library of a toolkit, or a machine without a GPU."""


@dataclass(frozen=True, slots=True)
class DriverDevices:
    """The devices that a CUDA program finds, in CUDA's order; sentences about those that do not answer; why there are
    none.

    `broken`: a driver is present and does not answer properly. Everything is empty without a driver.
    """

    devices: tuple[Device, ...] = ()
    lost: tuple[str, ...] = ()
    why: str = ""
    broken: bool = False


def ask_libcuda(environment: Mapping[str, str], seconds: float) -> DriverDevices:
    """Return what the CUDA driver reports to a program in this environment within this many seconds. Never raises."""
    try:
        answer = ask(sys.executable, PROGRAM.read_text(encoding="utf-8"), ["list"], environment, seconds)
        return _found(answer)
    except (NoProbeAnswerError, OSError) as err:
        return DriverDevices(why=f"the CUDA driver does not answer: {err}", broken=True)
    except (AttributeError, KeyError, TypeError, ValueError):
        return DriverDevices(why="the CUDA driver's answer is invalid", broken=True)


def _found(answer: Any) -> DriverDevices:
    if answer.get("absent"):
        return DriverDevices()
    if answer.get("error"):
        return DriverDevices(why=str(answer["error"]), broken=answer["status"] not in (_STUB, _NO_DEVICE))
    number = answer["cuda"]
    cuda = None if number is None else (int(number) // 1000, int(number) % 1000 // 10)
    answers = list(enumerate(answer["devices"]))
    devices = tuple(
        Device(str(d["name"]), parse_arch(d["capability"]), d["memory"], "", cuda)
        for _, d in answers
        if not d.get("error")
    )
    lost = tuple(f"GPU {i} does not answer: {d['error']}; it was not judged" for i, d in answers if d.get("error"))
    return DriverDevices(devices, lost, "" if devices else "the CUDA driver finds no GPU")
