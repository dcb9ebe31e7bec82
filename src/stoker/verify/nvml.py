"""The GPUs as NVIDIA's management library (NVML) tells of them, each by itself: what one does not answer, or the
driver as a whole does not tell, costs no other GPU anything. Unaware of binaries and of CUDA_VISIBLE_DEVICES."""

from __future__ import annotations

import contextlib
import ctypes
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeVar

from stoker.verify.archs import Arch
from stoker.verify.devices import Device

LIBRARY = "libnvidia-ml.so.1"
WSL = "/usr/lib/wsl/lib"
"""Where the driver's libraries are below WSL2; ld.so is not always told of it."""

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Gpu:
    """A GPU of this machine. `index` is NVML's, which counts by PCI bus; `uuid` (GPU-...) is empty if not told."""

    index: int
    device: Device
    uuid: str = ""


@dataclass(slots=True)
class Heard:
    """What NVML has said so far.

    `lost` has the index of each GPU that does not answer, and the reason; `why` says why nothing, or nothing more, was
    heard. It is `broken` when there is a driver that does not answer as it should: no driver is the normal case.
    """

    gpus: list[Gpu] = field(default_factory=list)
    lost: list[tuple[int, str]] = field(default_factory=list)
    why: str = ""
    broken: bool = False


def ask_nvml(seconds: float) -> Heard:
    """What NVML tells in so many seconds. Never raises."""
    heard = Heard()
    # In a thread of its own: a call into a wedged driver never returns, and no signal gets it back.
    thread = threading.Thread(target=_listen, args=(heard,), daemon=True)
    thread.start()
    thread.join(seconds)
    if thread.is_alive():
        why = f"the NVIDIA driver did not answer in {seconds:g} s"
        return Heard(list(heard.gpus), list(heard.lost), why, broken=True)
    return heard


def _listen(heard: Heard) -> None:
    try:
        _ask(heard)
    except Exception as err:  # noqa: BLE001 - the binding raises more than its NVMLError, and all of it is the finding
        heard.why, heard.broken = f"NVML failed ({_words(err)})", True


def _ask(heard: Heard) -> None:
    try:
        import pynvml as nvml
    except ImportError as err:
        heard.why = f"NVML's Python binding is not there ({err})"
        return
    _find_library()
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as err:
        heard.why = f"no NVIDIA driver answers ({_words(err)})"
        heard.broken = err.value not in (nvml.NVML_ERROR_LIBRARY_NOT_FOUND, nvml.NVML_ERROR_DRIVER_NOT_LOADED)
        return
    try:
        _hear_all(nvml, heard)
    finally:
        _told(nvml.nvmlShutdown)


def _find_library() -> None:
    """Load the library where ld.so does not look. The binding asks for it by its name, which finds what is loaded."""
    try:
        ctypes.CDLL(LIBRARY)
    except OSError:
        with contextlib.suppress(OSError):
            ctypes.CDLL(f"{WSL}/{LIBRARY}")


def _hear_all(nvml: Any, heard: Heard) -> None:
    driver = _text(_told(nvml.nvmlSystemGetDriverVersion))
    # Where a container has only the driver's tools, this is not known: the answer is libcuda's.
    number = _told(nvml.nvmlSystemGetCudaDriverVersion_v2)
    cuda = None if number is None else (number // 1000, number % 1000 // 10)
    count = int(nvml.nvmlDeviceGetCount())
    if not count:
        heard.why = "the NVIDIA driver knows no GPU"
    for index in range(count):
        try:
            heard.gpus.append(_hear(nvml, index, driver, cuda))
        except Exception as err:  # noqa: BLE001 - as in _listen
            heard.lost.append((index, _words(err)))


def _hear(nvml: Any, index: int, driver: str, cuda: tuple[int, int] | None) -> Gpu:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    major, minor = nvml.nvmlDeviceGetCudaComputeCapability(handle)
    name = _text(_told(lambda: nvml.nvmlDeviceGetName(handle))) or f"GPU {index}"
    # A GPU without memory of its own (GB10, Jetson) tells none, nor does one in MIG mode tell everybody.
    memory = _told(lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total))
    uuid = _text(_told(lambda: nvml.nvmlDeviceGetUUID(handle)))
    return Gpu(index, Device(name, Arch(major, minor), memory, driver, cuda), uuid)


def _told(question: Callable[[], T]) -> T | None:
    """The answer, None for what this GPU or driver does not tell."""
    try:
        return question()
    except Exception:  # noqa: BLE001 - as in _listen; a name that is no UTF-8 is a UnicodeDecodeError
        return None


def _text(value: str | bytes | None) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value or ""


def _words(err: Exception) -> str:
    return _told(lambda: str(err)) or type(err).__name__
