"""A machine with a CUDA of one function a library: libcudart, libcublas and libnvrtc with what it loads by name."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest

from support.wheels import Environment, distribution, link, zipped

INIT = b"""\
import ctypes, pathlib
_library = ctypes.CDLL(str(pathlib.Path(__file__).parent / "deep" / "libkernels.so"))
def versions():
    return _library.versions()
"""
KERNELS = "int cudart(void); int cublas(void); int nvrtc(void); int versions(void)"
SUM = "{ return cudart() + cublas() + nvrtc(); }"
NVRTC = """
#include <dlfcn.h>
int nvrtc(void) {
    void *builtins = dlopen("libnvrtc-builtins.so.13.0", RTLD_NOW);
    int (*number)(void) = builtins ? dlsym(builtins, "number") : 0;
    return number ? number() : -7000;
}
"""
TAG = "py3-none-linux_x86_64"
PYTHON_WORDS = """
import pack, re
names = {re.split("[/ ]", line.strip())[-1] for line in open("/proc/self/maps") if "libcu" in line}
print(pack.versions(), *sorted(names))
"""


class Machine:
    """The toolkit, an environment with NVIDIA's packages, and a wheel that was built with both."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.environment = Environment.new(root / "env")
        folder = root / "libraries"
        self.cudart = link(folder / "libcudart.so.13", "int cudart(void) { return 1; }", soname="libcudart.so.13")
        self.cublas = link(folder / "libcublas.so.13", "int cublas(void) { return 20; }", soname="libcublas.so.13")
        self.nvrtc = link(folder / "libnvrtc.so.13", NVRTC, soname="libnvrtc.so.13", rpath="$ORIGIN")
        self.builtins = link(
            folder / "libnvrtc-builtins.so.13.0", "int number(void) { return 300; }", soname="libnvrtc-builtins.so.13.0"
        )

    def install_nvidia(self) -> None:
        """NVIDIA's packages, each with a tag of its own."""
        place = "nvidia/cu13/lib"
        for name, tag, files in (
            ("nvidia_cuda_runtime-13.0.96", "manylinux_2_17_x86_64", [self.cudart]),
            ("nvidia_cublas-13.1.0.3", "manylinux_2_27_x86_64", [self.cublas]),
            ("nvidia_cuda_nvrtc-13.0.88", "manylinux2010_x86_64", [self.nvrtc, self.builtins]),
        ):
            members = {f"{place}/{f.name}": f.read_bytes() for f in files}
            self.environment.put(distribution(name, members, f"py3-none-{tag}"))

    def kernels(self, *more: str) -> Path:
        """The wheel's library, with the search path of the machine that built it."""
        libraries = [str(f) for f in (self.cudart, self.cublas, self.nvrtc)]
        target = self.root / "build" / "libkernels.so"
        return link(target, KERNELS + SUM, *libraries, *more, rpath=str(self.root / "libraries"))

    def wheel(
        self, members: Mapping[str, bytes] | None = None, requires: Sequence[str] = (), name: str = "pack-1.0"
    ) -> Path:
        files = members if members is not None else {"pack/deep/libkernels.so": self.kernels().read_bytes()}
        everything = distribution(name, {"pack/__init__.py": INIT, **files}, TAG, requires)
        return zipped(self.root / "dist" / f"{name}-{TAG}.whl", everything)


@pytest.fixture
def machine(tmp_path: Path) -> Machine:
    return Machine(tmp_path)
