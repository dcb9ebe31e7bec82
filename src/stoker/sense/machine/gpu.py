"""The GPUs as NVIDIA's management library sees them.

A machine without a GPU, driver or library is the normal case. The driver is queried in a separate thread, because it
may take seconds to wake up, and may hang forever when a GPU falls off the bus. If its library crashes, so do we; our
successor finds a note of that, and does not query it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any, TypeVar

from stoker.model.samples import GpuSample

INTERVAL = 2.0
"""Seconds between two rounds of queries; NVML's own utilisation is an average over up to a second."""

RETRY = 60.0
"""Seconds until a driver that failed is tried again."""

LIBRARY = "libnvidia-ml.so.1"
WSL = "/usr/lib/wsl/lib"
"""Where the driver's libraries are under WSL2; ld.so does not always find them."""

MAX_TRIES = 2
"""Processes that may die while they query the driver before nobody does any more: one may have been killed for another
reason."""

NO_DRIVER = "no NVIDIA driver"
CRASHES = "the NVIDIA driver's library crashes; its GPUs are not watched"

T = TypeVar("T")


class GpuReader:
    """Keeps the newest figures of all GPUs. `note` says why there are none.

    The file `tries` has a byte for each process that has asked and got no answer.
    """

    def __init__(self, library: str = LIBRARY, interval: float = INTERVAL, tries: Path | None = None) -> None:
        self.gpus: tuple[GpuSample, ...] = ()
        self.note = ""
        self._interval = interval
        self._tries = tries
        self._on_trial = False
        self._stop = threading.Event()
        self._thread: threading.Thread | None = None
        if not _loads(library):
            self.note = NO_DRIVER
            return
        if self._tried() >= MAX_TRIES:
            self.note = CRASHES
            return
        self.note = "asking the NVIDIA driver"
        self._thread = threading.Thread(target=self._run, name="gpu", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Stop. A thread that hangs in the driver is left behind."""
        self._stop.set()
        if self._thread is not None:
            self._thread.join(timeout=1.0)

    def _run(self) -> None:
        try:
            import pynvml  # here, because only machines with a driver should pay its 5 MiB
        except ImportError:
            self.note = "the package nvidia-ml-py is not installed"
            return
        while not self._stop.is_set():
            self._try()
            try:
                self._ask_until_it_fails(pynvml)
            except pynvml.NVMLError as err:
                self.gpus, self.note = (), _reason(err)
            self._survived()
            self._stop.wait(RETRY)

    def _ask_until_it_fails(self, nvml: Any) -> None:
        nvml.nvmlInit()
        try:
            while not self._stop.is_set():
                self.gpus = read_gpus(nvml)
                self._survived()
                self.note = "" if self.gpus else "no GPU"
                self._stop.wait(self._interval)
        finally:
            _asked(nvml, nvml.nvmlShutdown)

    def _tried(self) -> int:
        """Return how many processes have asked and got no answer."""
        try:
            return os.stat(self._tries).st_size if self._tries is not None else 0
        except OSError:
            return 0

    def _try(self) -> None:
        """Note that we ask: it may crash us."""
        if self._tries is not None:
            with contextlib.suppress(OSError), open(self._tries, "ab") as file:
                file.write(b".")
        self._on_trial = True

    def _survived(self) -> None:
        """Note that the driver has answered, in whatever way."""
        if self._on_trial and self._tries is not None:
            with contextlib.suppress(OSError):
                self._tries.unlink()
        self._on_trial = False


def read_gpus(nvml: Any) -> tuple[GpuSample, ...]:
    """Query once. Raises NVMLError only if not even the number of GPUs is available."""
    return tuple(_read_gpu(nvml, index) for index in range(nvml.nvmlDeviceGetCount()))


def _read_gpu(nvml: Any, index: int) -> GpuSample:
    handle = _asked(nvml, lambda: nvml.nvmlDeviceGetHandleByIndex(index))
    if handle is None:
        return GpuSample(index, "", None, None, None)
    name = _asked(nvml, lambda: nvml.nvmlDeviceGetName(handle))
    use = _asked(nvml, lambda: nvml.nvmlDeviceGetUtilizationRates(handle))
    memory = _memory(nvml, handle)
    temperature = _asked(nvml, lambda: nvml.nvmlDeviceGetTemperature(handle, nvml.NVML_TEMPERATURE_GPU))
    milliwatts = _asked(nvml, lambda: nvml.nvmlDeviceGetPowerUsage(handle))
    return GpuSample(
        index,
        name.decode(errors="replace") if isinstance(name, bytes) else name or "",
        None if use is None else float(use.gpu),
        None if memory is None else int(memory.used),
        None if memory is None else int(memory.total),
        None if temperature is None else float(temperature),
        None if milliwatts is None else milliwatts / 1000,
    )


def _memory(nvml: Any, handle: Any) -> Any:
    """Return the device's memory as nvidia-smi shows it. The first version of the query, all that drivers before 510
    know, counts what the driver reserves for itself as used: 480 MiB of an H100."""
    newer = _asked(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2))
    return newer if newer is not None else _asked(nvml, lambda: nvml.nvmlDeviceGetMemoryInfo(handle))


def _asked(nvml: Any, question: Callable[[], T]) -> T | None:
    """Return the answer; None if this GPU or driver does not report it."""
    try:
        return question()
    except (nvml.NVMLError, OSError, UnicodeDecodeError):
        return None


def _reason(error: Exception) -> str:
    text = str(error)
    return NO_DRIVER if "Driver Not Loaded" in text or "Shared Library Not Found" in text else f"NVML: {text}"


def _loads(library: str) -> bool:
    """Load a library if it exists: one that is loaded by its path is found by its name from then on."""
    for place in (library, f"{WSL}/{library}"):
        try:
            ctypes.CDLL(place)
        except OSError:
            continue
        return True
    return False
