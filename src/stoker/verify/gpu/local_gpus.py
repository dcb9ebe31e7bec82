"""Finds the GPUs of this machine that a program would see, and says why others are left out. Knows nothing of
binaries."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass

from stoker.verify.gpu.devices import Device
from stoker.verify.gpu.libcuda import DriverDevices, ask_libcuda
from stoker.verify.gpu.nvml import Heard, ask_nvml
from stoker.verify.gpu.visible_devices import setting, visible

DRIVER_SECONDS = 60.0
"""A healthy driver that is awake answers in well under a second. On a machine without display and persistence mode it
first wakes every GPU, for 1 to 3 s each (NVIDIA, "Driver Persistence"): 24 s with eight. A stuck driver never
answers."""


@dataclass(frozen=True, slots=True)
class LocalGpus:
    """The devices to judge for; sentences about GPUs that do not answer (`lost`) and those that CUDA_VISIBLE_DEVICES
    leaves out (`notes`); and why there is no device, if there is none.

    `broken`: the reason is a driver that is present and does not answer properly.
    """

    devices: tuple[Device, ...] = ()
    lost: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    why: str = ""
    broken: bool = False


def local_gpus(environment: Mapping[str, str], seconds: float = DRIVER_SECONDS) -> LocalGpus:
    """Ask the driver, for at most this many seconds, which GPUs a program in this environment would see. Never
    raises."""
    deadline = time.monotonic() + seconds
    heard = ask_nvml(environment, seconds)
    lost = [f"GPU {index} does not answer: {why}; it was not judged" for index, why in heard.lost]
    if not heard.gpus:
        return _by_cuda(heard, lost, environment, deadline - time.monotonic())
    if heard.why:
        lost.append(f"{heard.why}; GPUs may be missing here")
    choice = visible(heard.gpus, environment, complete=not lost)
    notes = [choice.note] if choice.note else []
    if choice.hidden:
        named = ", ".join(f"GPU {gpu.index} ({gpu.device.name})" for gpu in choice.hidden)
        notes.append(f"{setting(environment)} leaves out {named}; not judged")
    why = "" if choice.shown else f"{setting(environment)} leaves out every one"
    return LocalGpus(tuple(gpu.device for gpu in choice.shown), tuple(lost), tuple(notes), why)


def _by_cuda(heard: Heard, lost: list[str], environment: Mapping[str, str], seconds: float) -> LocalGpus:
    """Return what the CUDA driver reports in the remaining time if NVML reported no GPU. The driver applies
    CUDA_VISIBLE_DEVICES."""
    # A driver that has not answered NVML by now will not answer at all.
    found = ask_libcuda(environment, seconds) if seconds > 0 else DriverDevices()
    chosen = setting(environment)
    if found.devices:
        missing = lost if len(found.devices) < len(lost) else []
        notes = (f"{chosen} may leave out others, which were not judged",) if chosen else ()
        return LocalGpus(found.devices, (*missing, *found.lost), notes)
    reasons = [heard.why or "none answers", f"{found.why}{f' ({chosen})' if chosen else ''}" if found.why else ""]
    why = "; ".join(reason for reason in reasons if reason)
    return LocalGpus((), (*lost, *found.lost), (), why, heard.broken or found.broken)
