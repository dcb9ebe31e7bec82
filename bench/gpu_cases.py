"""The device code that bench.gpu compiles: libraries for and beside a GPU, and separate images. Knows nothing of
stoker, and nothing of what runs."""

from __future__ import annotations

import re
import shutil
import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

SOURCE = """
#include <cuda_runtime.h>
__global__ void kernel{n}(int *out) {{ *out = 41 + {n}; }}
extern "C" int run{n}(void) {{
  int *there, here = 0;
  cudaError_t error = cudaMalloc(&there, sizeof here);
  if (error == cudaSuccess) {{ kernel{n}<<<1, 1>>>(there); error = cudaGetLastError(); }}
  if (error == cudaSuccess) error = cudaMemcpy(&here, there, sizeof here, cudaMemcpyDeviceToHost);
  return error != cudaSuccess ? (int)error : here == 41 + {n} ? 0 : -1;
}}
"""
"""One module: a kernel, and a function that returns 0 if it computes the right number here, else CUDA's error."""


@dataclass(frozen=True, slots=True)
class Library:
    """A shared library. `modules` has the targets of each: "90" for machine code, "90+" with PTX, "ptx90" for PTX
    alone; without any, nvcc's own choice. `called`: of how many modules the program calls the kernel, where it chooses
    by GPU."""

    name: str
    modules: Sequence[Sequence[str]]
    flags: Sequence[str] = ()
    called: int | None = None


LIBRARIES = (
    Library("own", [["90"]]),
    Library("own, architecture-specific", [["90a"]]),
    Library("own and PTX", [["90+"]]),
    Library("own among others", [["75", "80", "90", "100", "120"]]),
    Library("older machine code alone", [["80"]]),
    Library("all of the 8.x", [["80", "86", "87", "89"]]),
    Library("older machine code and PTX", [["80+"]]),
    Library("oldest PTX alone", [["ptx75"]]),
    Library("own PTX alone", [["ptx90"]]),
    Library("own PTX, architecture-specific", [["ptx90a"]]),
    Library("newer PTX alone", [["ptx100"]]),
    Library("newer PTX, architecture-specific", [["ptx100a"]]),
    Library("newer machine code alone", [["100"]]),
    Library("newer, family-specific", [["100f"]]),
    Library("newer, architecture-specific", [["120a"]]),
    Library("newer machine code and oldest PTX", [["120", "ptx75"]]),
    Library("nvcc's own choice", [[]]),
    Library("all major ones", [[]], ["-arch=all-major"]),
    Library("this machine's", [[]], ["-arch=native"]),
    Library("two modules, one for another GPU", [["90"], ["80"]]),
    Library("three modules, one for another GPU", [["90"], ["90"], ["100"]]),
    Library("two modules, one as PTX", [["90"], ["80+"]]),
    Library("two modules for Hopper and Blackwell", [["90a"], ["100a"]], called=1),
    Library("two modules, neither for this one", [["80"], ["100"]]),
    Library("relocatable", [["90"]], ["-rdc=true"]),
    Library("relocatable, for another GPU", [["80"]], ["-rdc=true"]),
    Library("relocatable PTX", [["ptx80"]], ["-rdc=true"]),
    Library("relocatable PTX, two modules", [["ptx80"], ["ptx75"]], ["-rdc=true"]),
    Library("relocatable, older, and PTX", [["80+"]], ["-rdc=true"]),
    Library("relocatable, newer, and PTX", [["100", "ptx75"]], ["-rdc=true"]),
    Library("relocatable, one module with newer PTX", [["80+"], ["80", "ptx100"]], ["-rdc=true"]),
    Library("relocatable, one module without PTX", [["80+"], ["80"]], ["-rdc=true"]),
    Library("relocatable, one module as PTX", [["90"], ["ptx80"]], ["-rdc=true"]),
    Library("compressed for size", [["90"]], ["-Xfatbin", "-compress-all", "--compress-mode=size"]),
    Library("compressed, for another GPU", [["80"]], ["-Xfatbin", "-compress-all", "--compress-mode=size"]),
    Library("not compressed", [["80+"]], ["--no-compress"]),
    Library("with debug information", [["90"]], ["-G"]),
    Library("with line information, PTX", [["ptx80"]], ["-lineinfo"]),
)


def build(library: Library, folder: Path, nvcc: str) -> Path:
    """Compile and link one; raises CalledProcessError with nvcc's words."""
    folder.mkdir(parents=True)
    objects = []
    for number, targets in enumerate(library.modules):
        source = folder / f"module{number}.cu"
        source.write_text(SOURCE.format(n=number))
        objects.append(source.with_suffix(".o"))
        words = ["-c", *_targets(targets), *library.flags, "-Xcompiler", "-fPIC", str(source), "-o", str(objects[-1])]
        subprocess.run([nvcc, *words], check=True, capture_output=True, text=True)
    target = folder / "lib.so"
    # The device link of relocatable code needs the targets too.
    link = [*_targets(library.modules[0]), *library.flags] if "-rdc=true" in library.flags else []
    words = [nvcc, "-shared", *link, *map(str, objects), "-o", str(target)]
    subprocess.run(words, check=True, capture_output=True, text=True)
    return target


def images(folder: Path, nvcc: str) -> list[tuple[str, Path]]:
    """Separate images: cubins, PTX, and containers, one with PTX of a version that no driver of today knows."""
    folder.mkdir(parents=True)
    source = folder / "kernel.cu"
    source.write_text('extern "C" __global__ void kernel(int *out) { *out = 42; }\n')
    made = []

    def make(name: str, kind: str, *words: str) -> Path:
        path = folder / f"{re.sub(r'[^a-z0-9]+', '-', name.lower())}.{kind}"
        subprocess.run([nvcc, *words, str(source), "-o", str(path)], check=True, capture_output=True, text=True)
        made.append((name, path))
        return path

    make("cubin of its own", "cubin", "-cubin", "-arch=sm_90")
    make("cubin, architecture-specific", "cubin", "-cubin", "-gencode=arch=compute_90a,code=sm_90a")
    make("cubin of an older GPU", "cubin", "-cubin", "-arch=sm_80")
    make("cubin of a newer GPU", "cubin", "-cubin", "-arch=sm_100")
    make("PTX", "ptx", "-ptx", "-arch=compute_90")
    old = make("PTX of an older GPU", "ptx", "-ptx", "-arch=compute_75")
    make("PTX of a newer GPU", "ptx", "-ptx", "-arch=compute_120")
    make("PTX, architecture-specific", "ptx", "-ptx", "-gencode=arch=compute_90a,code=compute_90a")
    make("container", "fatbin", "-fatbin", "-gencode=arch=compute_90,code=sm_90")
    make("container with PTX", "fatbin", "-fatbin", "-gencode=arch=compute_80,code=compute_80")
    make("container of other GPUs", "fatbin", "-fatbin", *_targets(["80", "100"]))
    made += _too_new(folder, old)
    return made


def _too_new(folder: Path, ptx: Path) -> list[tuple[str, Path]]:
    """The same PTX as a later toolkit would write it, bare and in a container, if the toolkit's fatbinary is here."""
    text = re.sub(r"^\.version .*$", ".version 9.9", ptx.read_text(), flags=re.MULTILINE)
    later = folder / "ptx-later.ptx"
    later.write_text(text)
    made = [("PTX of a later toolkit", later)]
    if shutil.which("fatbinary"):
        container = folder / "ptx-later.fatbin"
        words = ["fatbinary", f"--create={container}", "-64", f"--image3=kind=ptx,sm=75,file={later}"]
        if subprocess.run(words, check=False, capture_output=True).returncode == 0:
            made.append(("container with a later toolkit's PTX", container))
    return made


def _targets(names: Sequence[str]) -> list[str]:
    words = []
    for name in names:
        number = name.removeprefix("ptx").removesuffix("+")
        if not name.startswith("ptx"):
            words.append(f"-gencode=arch=compute_{number},code=sm_{number}")
        if name.startswith("ptx") or name.endswith("+"):
            words.append(f"-gencode=arch=compute_{number},code=compute_{number}")
    return words
