"""Computes a small matrix product on every GPU and checks the result; run as a program by another Python.

Uses torch if it can be imported, because that proves torch's own kernels; otherwise the CUDA driver and the PTX below.
With the argument `list` it only reports which GPUs the CUDA driver finds. Prints each fact as a line of JSON as soon as
it is known, because the next call may hang. Standard library only, for Python 3.9 and later. Knows nothing of stoker.
"""

from __future__ import annotations

import contextlib
import ctypes
import importlib
import json
import sys
import time
from collections.abc import Callable
from functools import partial
from typing import Any

N = 64
"""Rows and columns: one block per row, one thread per column."""

MARK = "stoker-answer:"

PTX = b"""
.version 6.0
.target sm_50
.address_size 64
.visible .entry product(.param .u64 pa, .param .u64 pb, .param .u64 pc, .param .u32 pn)
{
  .reg .pred %p;
  .reg .b32 %row, %col, %n, %k, %i;
  .reg .f32 %x, %y, %sum;
  .reg .b64 %a, %b, %c, %at, %off;
  ld.param.u64 %a, [pa];
  ld.param.u64 %b, [pb];
  ld.param.u64 %c, [pc];
  ld.param.u32 %n, [pn];
  cvta.to.global.u64 %a, %a;
  cvta.to.global.u64 %b, %b;
  cvta.to.global.u64 %c, %c;
  mov.u32 %row, %ctaid.x;
  mov.u32 %col, %tid.x;
  mov.f32 %sum, 0f00000000;
  mov.u32 %k, 0;
again:
  mad.lo.u32 %i, %row, %n, %k;
  mul.wide.u32 %off, %i, 4;
  add.u64 %at, %a, %off;
  ld.global.f32 %x, [%at];
  mad.lo.u32 %i, %k, %n, %col;
  mul.wide.u32 %off, %i, 4;
  add.u64 %at, %b, %off;
  ld.global.f32 %y, [%at];
  fma.rn.f32 %sum, %x, %y, %sum;
  add.u32 %k, %k, 1;
  setp.lt.u32 %p, %k, %n;
  @%p bra again;
  mad.lo.u32 %i, %row, %n, %col;
  mul.wide.u32 %off, %i, 4;
  add.u64 %at, %c, %off;
  st.global.f32 [%at], %sum;
  ret;
}
"""
"""The product in PTX that every driver since 2017 compiles, for every GPU since Maxwell."""

_MAJOR, _MINOR = 75, 76
"""CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR and _MINOR."""

_MODE, _PROHIBITED = 20, 2
"""CU_DEVICE_ATTRIBUTE_COMPUTE_MODE and CU_COMPUTEMODE_PROHIBITED."""

_NO_MEMORY, _UNAVAILABLE, _INVALID_DEVICE = 2, 46, 101
"""CUDA_ERROR_OUT_OF_MEMORY, CUDA_ERROR_DEVICE_UNAVAILABLE (exclusive, and in use), CUDA_ERROR_INVALID_DEVICE (also for
a device in prohibited mode)."""

PLACES = ("libcuda.so.1", "/usr/lib/wsl/lib/libcuda.so.1")
"""The driver's library where ld.so finds it, and under WSL2, where ld.so does not always search."""

Matrix = list[list[float]]


def inputs() -> tuple[Matrix, Matrix]:
    """Return two matrices of small integers: all results are exact in single precision and in TF32, so the check is
    equality."""
    left = [[float((3 * i + j) % 7 - 3) for j in range(N)] for i in range(N)]
    right = [[float((i + 5 * j) % 11 - 5) for j in range(N)] for i in range(N)]
    return left, right


def product(left: Matrix, right: Matrix) -> Matrix:
    """Return what a device should compute."""
    columns = [[row[j] for row in right] for j in range(N)]
    return [[sum(x * y for x, y in zip(row, column)) for column in columns] for row in left]  # noqa: B905 - 3.9 has none


def difference(found: Matrix, expected: Matrix) -> str:
    """Return which number is wrong first; empty if all are equal. NaN equals nothing."""
    for i in range(N):
        for j in range(N):
            if found[i][j] != expected[i][j]:
                return f"the product is wrong: row {i}, column {j} is {found[i][j]!r}, not {expected[i][j]!r}"
    return ""


def say(fact: Any) -> None:
    """Print at once, on a separate line: others print too, and the next call may crash or hang."""
    print(f"\n{MARK}{json.dumps(fact)}", flush=True)


def attempt(
    how: str, index: int, count: int, identity: Callable[[], tuple[str, str]], compute: Callable[[], Matrix],
    expected: Matrix,
) -> None:  # fmt: skip
    """Report the device that is tested, then its result; any failure becomes its error text."""
    place: dict[str, Any] = {"index": index, "count": count, "how": how, "device": f"GPU {index}", "capability": ""}
    say({"starting": place})
    started, error, busy = time.monotonic(), "", False
    try:
        place["device"], place["capability"] = identity()
        say({"starting": place})
        error = difference(compute(), expected)
    except Exception as err:  # noqa: BLE001 - torch and the driver raise what they like, and all of it is the finding
        error, busy = first_line(err), is_busy(err, index)
    say({"run": {**place, "seconds": round(time.monotonic() - started, 3), "error": error, "busy": busy}})


def is_busy(err: Exception, index: int) -> bool:
    """Whether a healthy device, or its memory, is in use by another program, or its compute mode forbids programs."""
    status, text = getattr(err, "status", 0), str(err)
    if status in (_NO_MEMORY, _UNAVAILABLE) or "out of memory" in text or "busy or unavailable" in text:
        return True
    return (status == _INVALID_DEVICE or "invalid device ordinal" in text) and is_prohibited(index)


def is_prohibited(index: int) -> bool:
    """Whether the device's compute mode forbids programs."""
    mode = ctypes.c_int()
    try:
        cuda = load()
        check(cuda, "cuInit", 0)
        check(cuda, "cuDeviceGetAttribute", ctypes.byref(mode), _MODE, handle(cuda, index))
    except (OSError, CudaError):
        return False
    return mode.value == _PROHIBITED


def by_torch(torch: Any) -> None:
    """Compute a product on every device with torch: cuBLAS' kernel, and torch's own before and after. Raises what torch
    raises."""
    a, b = inputs()
    around = product([[2 * x + 1 for x in row] for row in a], b)
    expected = [[around[i][j] + b[i][j] for j in range(N)] for i in range(N)]

    def identity(index: int) -> tuple[str, str]:
        major, minor = torch.cuda.get_device_capability(index)
        return torch.cuda.get_device_name(index), f"{major}.{minor}"

    def compute(index: int) -> Matrix:
        left, right = (torch.tensor(m, dtype=torch.float32, device=torch.device("cuda", index)) for m in (a, b))
        result: Matrix = ((left * 2 + 1) @ right + right).cpu().tolist()
        return result

    count = torch.cuda.device_count()
    if not count:
        torch.cuda.init()  # the count is 0 for any reason; this raises the actual one
    for i in range(count):
        attempt("torch", i, count, partial(identity, i), partial(compute, i), expected)


class CudaError(RuntimeError):
    """An error from the CUDA driver, in its own words; `status` is its number."""

    def __init__(self, name: str, status: int, words: str) -> None:
        super().__init__(f"{name}: {words or f'error {status}'}")
        self.status = status


def load() -> ctypes.CDLL:
    """Return the CUDA driver's library; raises OSError if there is none."""
    try:
        return ctypes.CDLL(PLACES[0])
    except OSError:
        for place in PLACES[1:]:
            with contextlib.suppress(OSError):
                return ctypes.CDLL(place)
        raise


def count_devices(cuda: ctypes.CDLL) -> int:
    """Start the driver and count its devices; raises CudaError."""
    check(cuda, "cuInit", 0)
    count = ctypes.c_int()
    check(cuda, "cuDeviceGetCount", ctypes.byref(count))
    return count.value


def listing() -> Any:
    """Return what the CUDA driver reports about each device, without creating a context."""
    try:
        cuda = load()
    except OSError:
        return {"absent": True}
    try:
        count = count_devices(cuda)
    except CudaError as err:
        return {"error": str(err), "status": err.status}
    version = ctypes.c_int()
    known = asked(cuda, "cuDriverGetVersion", ctypes.byref(version))
    return {"cuda": version.value if known else None, "devices": [listed(cuda, i) for i in range(count)]}


def listed(cuda: ctypes.CDLL, index: int) -> Any:
    """Return one device's name, capability and memory in bytes, or why its capability is unknown."""
    try:
        name, capability = identity(cuda, index)
        size = ctypes.c_size_t()
        known = asked(cuda, "cuDeviceTotalMem_v2", ctypes.byref(size), handle(cuda, index))
    except CudaError as err:
        return {"error": str(err)}
    return {"name": name, "capability": capability, "memory": size.value if known else None}


def by_driver() -> None:
    """Compute a product on every device with the CUDA driver; raises OSError or CudaError if there is no driver."""
    cuda = load()
    count, expected = count_devices(cuda), product(*inputs())
    for i in range(count):
        attempt("driver", i, count, partial(identity, cuda, i), partial(on_device, cuda, i), expected)


def identity(cuda: ctypes.CDLL, index: int) -> tuple[str, str]:
    """Return a device's name and compute capability."""
    text, major, minor = ctypes.create_string_buffer(256), ctypes.c_int(), ctypes.c_int()
    device = handle(cuda, index)
    check(cuda, "cuDeviceGetAttribute", ctypes.byref(major), _MAJOR, device)
    check(cuda, "cuDeviceGetAttribute", ctypes.byref(minor), _MINOR, device)
    named = asked(cuda, "cuDeviceGetName", text, 256, device)
    name = text.value.decode("utf-8", "replace") if named else ""
    return name or f"GPU {index}", f"{major.value}.{minor.value}"


def handle(cuda: ctypes.CDLL, index: int) -> ctypes.c_int:
    """Return the driver's handle for a device."""
    device = ctypes.c_int()
    check(cuda, "cuDeviceGet", ctypes.byref(device), index)
    return device


def on_device(cuda: ctypes.CDLL, index: int) -> Matrix:
    """Return the product, computed by one device."""
    device, context, module, function = handle(cuda, index), *(ctypes.c_void_p() for _ in range(3))
    check(cuda, "cuDevicePrimaryCtxRetain", ctypes.byref(context), device)
    try:
        check(cuda, "cuCtxSetCurrent", context)
        check(cuda, "cuModuleLoadData", ctypes.byref(module), PTX)
        check(cuda, "cuModuleGetFunction", ctypes.byref(function), module, b"product")
        return launch(cuda, function)
    finally:
        cuda.cuDevicePrimaryCtxRelease_v2(device)


def launch(cuda: ctypes.CDLL, function: ctypes.c_void_p) -> Matrix:
    """Copy in, compute, copy out. The process frees the memory when it ends."""
    size, flat = ctypes.c_size_t(4 * N * N), ctypes.c_float * (N * N)
    left, right, out = places = [ctypes.c_uint64() for _ in range(3)]
    for place in places:
        check(cuda, "cuMemAlloc_v2", ctypes.byref(place), size)
    a, b = inputs()
    for place, matrix in ((left, a), (right, b)):
        check(cuda, "cuMemcpyHtoD_v2", place, flat(*(x for row in matrix for x in row)), size)
    values = [*places, ctypes.c_uint32(N)]
    pointers = (ctypes.c_void_p * len(values))(*(ctypes.addressof(v) for v in values))
    check(cuda, "cuLaunchKernel", function, N, 1, 1, N, 1, 1, 0, None, pointers, None)
    check(cuda, "cuCtxSynchronize")
    result = flat()
    check(cuda, "cuMemcpyDtoH_v2", result, out, size)
    return [list(result[N * i : N * (i + 1)]) for i in range(N)]


def check(cuda: ctypes.CDLL, name: str, *arguments: Any) -> None:
    """Call a driver function; raises CudaError with the driver's own words."""
    status = getattr(cuda, name)(*arguments)
    if status:
        text = ctypes.c_char_p()
        cuda.cuGetErrorString(status, ctypes.byref(text))
        raise CudaError(name, status, (text.value or b"").decode("utf-8", "replace"))


def asked(cuda: ctypes.CDLL, name: str, *arguments: Any) -> bool:
    """Call a driver function that may fail; return whether it succeeded."""
    try:
        check(cuda, name, *arguments)
    except (AttributeError, CudaError):
        return False
    return True


def first_line(err: BaseException) -> str:
    """Return the first line of an exception's message."""
    lines = str(err).strip().splitlines()
    return lines[0][:300] if lines else type(err).__name__


def run() -> None:
    """Compute a product on every device, with torch if there is one for CUDA; raises if it cannot."""
    torch = import_torch()
    if torch is not None and torch.version.cuda:
        by_torch(torch)
    else:
        by_driver()


def import_torch() -> Any:
    """Import torch; None if there is none. Raises RuntimeError if it is installed and cannot be imported, because that
    is a result too."""
    try:
        return importlib.import_module("torch")
    except Exception as err:
        if isinstance(err, ModuleNotFoundError) and err.name == "torch":
            return None
        raise RuntimeError(f"torch cannot be imported: {first_line(err)}") from err


def main() -> None:
    """Run the task named by the first argument; the others are folders to import from."""
    task, *folders = sys.argv[1:]
    sys.path[:0] = [folder for folder in folders if folder]
    if task == "list":
        say(listing())
        return
    try:
        run()
    except Exception as err:  # noqa: BLE001 - as in attempt
        say({"done": first_line(err)})
    else:
        say({"done": ""})


if __name__ == "__main__":
    main()
