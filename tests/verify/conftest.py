"""Binaries to verify: real ones by nvcc, gcc and ar; packages by hand; fake drivers compiled on the spot."""

from __future__ import annotations

import base64
import hashlib
import re
import shutil
import subprocess
import zipfile
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from importlib import metadata
from pathlib import Path

import pytest

from support.compiled import compile_to
from support.fake_gpus import CUDA, NVML

KERNELS = """
__global__ void first(int *p) { *p = 1; }
__global__ void second(float *p) { p[threadIdx.x] *= 2; }
"""
MORE = """
__global__ void third(int *p) { p[threadIdx.x] = 3; }
extern "C" int start(int *p) { third<<<1, 1>>>(p); return 0; }
"""

Compile = Callable[..., Path]


@pytest.fixture(scope="session")
def nvcc(tmp_path_factory: pytest.TempPathFactory) -> Compile:
    """`nvcc(name, *arguments)` compiles the two small sources (or those named) and returns the file; once each."""
    program = shutil.which("nvcc")
    if program is None:
        pytest.skip("nvcc is not on PATH: the CUDA toolkit is not installed")
    folder = tmp_path_factory.mktemp("nvcc")
    (folder / "k.cu").write_text(KERNELS)
    (folder / "m.cu").write_text(MORE)
    (folder / "newer.cu").write_text(f"#if !defined(__CUDA_ARCH__) || __CUDA_ARCH__ >= 900{KERNELS}#endif\n")
    (folder / "host.cu").write_text("int host() { return 1; }\n")

    def compile_once(name: str, *arguments: str, sources: Sequence[str] = ("k.cu",)) -> Path:
        target = folder / name
        if not target.exists():
            subprocess.run([program, *arguments, *sources, "-o", name], cwd=folder, check=True, capture_output=True)
        return target

    return compile_once


@pytest.fixture(scope="session")
def cuobjdump() -> Callable[[Path], Counter[str]]:
    """What NVIDIA's own tool lists: sm_90a for machine code, compute_90a for PTX, with counts."""
    try:
        files = metadata.files("nvidia-cuda-cuobjdump") or []
    except metadata.PackageNotFoundError:
        files = []
    program = next((str(f.locate()) for f in files if f.name == "cuobjdump"), shutil.which("cuobjdump"))
    if program is None:
        pytest.skip("cuobjdump is not installed")

    def listed(path: Path) -> Counter[str]:
        done = subprocess.run([program, str(path)], capture_output=True, text=True, check=True)
        kinds = re.findall(r"^Fatbin (elf|ptx) code:", done.stdout, re.MULTILINE)
        archs = re.findall(r"^arch = sm_(\w+)", done.stdout, re.MULTILINE)
        assert len(kinds) == len(archs)
        return Counter(("sm_" if k == "elf" else "compute_") + a for k, a in zip(kinds, archs, strict=True))

    return listed


@pytest.fixture
def cc(tmp_path: Path) -> Compile:
    """`cc(name, source, *arguments)` builds a shared library in the test's folder by gcc."""

    def compile_shared(name: str, source: str = "int f(void) { return 1; }", *arguments: str) -> Path:
        target = tmp_path / name
        compile_to(target, source, ["gcc", "-shared", "-fPIC", "-x", "c"], *arguments)
        return target

    return compile_shared


@pytest.fixture(scope="session")
def fake_gpus(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with stand-ins for NVML and for the CUDA driver (support.fake_gpus)."""
    folder = tmp_path_factory.mktemp("gpus")
    for name, source in (("libnvidia-ml.so.1", NVML), ("libcuda.so.1", CUDA)):
        command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / name), f"-Wl,-soname,{name}"]
        subprocess.run(command, input=source.encode(), check=True, capture_output=True)
    return folder


Members = Mapping[str, bytes]


def record_of(members: Members, info: str) -> bytes:
    """A RECORD as `wheel pack` writes it."""
    lines = []
    for name, data in members.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).rstrip(b"=").decode()
        lines.append(f"{name},sha256={digest},{len(data)}")
    return ("\n".join([*lines, f"{info}/RECORD,,"]) + "\n").encode()


@pytest.fixture
def wheel(tmp_path: Path) -> Callable[..., Path]:
    """`wheel(members, ...)` writes a wheel that is right unless an argument says otherwise."""

    def write(
        members: Members,
        name: str = "pack-1.0-py3-none-linux_x86_64.whl",
        *,
        record: Callable[[bytes], bytes] = lambda r: r,
        tag: str = "",
        requires: Sequence[str] = (),
        compression: int = zipfile.ZIP_DEFLATED,
        project: str = "pack",
    ) -> Path:
        info = "pack-1.0.dist-info"
        tags = tag or "-".join(name.removesuffix(".whl").split("-")[2:])
        metadata_text = f"Metadata-Version: 2.1\nName: {project}\nVersion: 1.0\n"
        everything = {
            **members,
            f"{info}/WHEEL": f"Wheel-Version: 1.0\nTag: {tags}\n".encode(),
            f"{info}/METADATA": (metadata_text + "".join(f"Requires-Dist: {r}\n" for r in requires)).encode(),
        }
        path = tmp_path / name
        with zipfile.ZipFile(path, "w", compression) as archive:
            for member, data in everything.items():
                archive.writestr(member, data)
            archive.writestr(f"{info}/RECORD", record(record_of(everything, info)))
        return path

    return write
