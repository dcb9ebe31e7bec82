"""Lists the GPUs that NVIDIA's management library (NVML) reports; run as a program by stoker's own Python.

Its arguments are the paths where the library may be. Prints each fact as a line of JSON as soon as it is known, because
the next call may hang, or end this process. Knows nothing of stoker.
"""

from __future__ import annotations

import contextlib
import ctypes
import json
import sys
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

MARK = "stoker-answer:"

T = TypeVar("T")


def main(places: Sequence[str]) -> None:
    """Print all that NVML reports; the last line says that this was all, or why not."""
    try:
        say(_ask(places))
    except Exception as err:  # noqa: BLE001 - the binding raises more than its NVMLError, and all of it is the finding
        say({"why": f"NVML failed ({_words(err)})", "broken": True})


def say(fact: object) -> None:
    """Print one line at once."""
    print(MARK + json.dumps(fact), flush=True)


def _ask(places: Sequence[str]) -> dict[str, object]:
    try:
        import pynvml as nvml
    except ImportError as err:
        return {"why": f"NVML's Python binding is not there ({err})", "broken": False}
    _load(places)
    try:
        nvml.nvmlInit()
    except nvml.NVMLError as err:
        absent = err.value in (nvml.NVML_ERROR_LIBRARY_NOT_FOUND, nvml.NVML_ERROR_DRIVER_NOT_LOADED)
        return {"why": f"no NVIDIA driver answers ({_words(err)})", "broken": not absent}
    try:
        return _hear_all(nvml)
    finally:
        _answer(nvml.nvmlShutdown)


def _load(places: Sequence[str]) -> None:
    """Load the library from where ld.so does not look. The binding requests it by name, and so gets the loaded one."""
    for place in places:
        with contextlib.suppress(OSError):
            ctypes.CDLL(place)
            return


def _hear_all(nvml: Any) -> dict[str, object]:
    driver = _text(_answer(nvml.nvmlSystemGetDriverVersion))
    # Unknown if a container has only the driver's tools; then libcuda is asked.
    say({"driver": driver, "cuda": _answer(nvml.nvmlSystemGetCudaDriverVersion_v2)})
    count = int(nvml.nvmlDeviceGetCount())
    for index in range(count):
        try:
            say({"gpu": index, **_hear(nvml, index)})
        except Exception as err:  # noqa: BLE001 - as in main
            say({"gpu": index, "lost": _words(err)})
    return {"why": "" if count else "the NVIDIA driver finds no GPU", "broken": False}


def _hear(nvml: Any, index: int) -> dict[str, object]:
    handle = nvml.nvmlDeviceGetHandleByIndex(index)
    return {
        "capability": nvml.nvmlDeviceGetCudaComputeCapability(handle),
        "name": _text(_answer(lambda: nvml.nvmlDeviceGetName(handle))) or f"GPU {index}",
        # A GPU without memory of its own (GB10, Jetson) reports none; one in MIG mode does not report it to every user.
        "memory": _answer(lambda: int(nvml.nvmlDeviceGetMemoryInfo(handle).total)),
        "uuid": _text(_answer(lambda: nvml.nvmlDeviceGetUUID(handle))),
    }


def _answer(question: Callable[[], T]) -> T | None:
    """Return the answer; None for what this GPU or driver does not report."""
    try:
        return question()
    except Exception:  # noqa: BLE001 - as in main; a name that is no UTF-8 is a UnicodeDecodeError
        return None


def _text(value: str | bytes | None) -> str:
    return value.decode("utf-8", "replace") if isinstance(value, bytes) else value or ""


def _words(err: Exception) -> str:
    return _answer(lambda: str(err)) or type(err).__name__


if __name__ == "__main__":
    main(sys.argv[1:])
