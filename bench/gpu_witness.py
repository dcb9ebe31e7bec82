"""Runs device code on the first GPU and prints CUDA's status for each piece: what bench.gpu holds verdicts against.

    python gpu_witness.py library PATH MODULES
    python gpu_witness.py image PATH

One process for one question, because an error may leave a context unusable. Standard library only. Knows nothing of
stoker.
"""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path


def library(path: str, modules: int) -> list[int]:
    """CUDA's status of each module's kernel; 0 if it ran and computed the right number."""
    loaded = ctypes.CDLL(path)
    return [int(getattr(loaded, f"run{number}")()) for number in range(modules)]


def image(path: str) -> int:
    """The driver's status of loading an image and finding its kernel."""
    cuda = ctypes.CDLL("libcuda.so.1")
    context, module, function = (ctypes.c_void_p() for _ in range(3))
    data = ctypes.create_string_buffer(Path(path).read_bytes())
    # In this order; `or` ends with the first that fails.
    status = (
        cuda.cuInit(0)
        or cuda.cuDevicePrimaryCtxRetain(ctypes.byref(context), 0)
        or cuda.cuCtxSetCurrent(context)
        or cuda.cuModuleLoadData(ctypes.byref(module), data)
        or cuda.cuModuleGetFunction(ctypes.byref(function), module, b"kernel")
    )
    return int(status)


def main() -> None:
    """Print the status of each piece, on one line."""
    kind, path, *more = sys.argv[1:]
    print(*(library(path, int(more[0])) if kind == "library" else [image(path)]))


if __name__ == "__main__":
    main()
