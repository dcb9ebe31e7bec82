"""Both modes with the real CUDA: a library on cudart, cuBLAS and nvrtc, and an extension of torch."""

from __future__ import annotations

import json
import os
import re
import shutil
import subprocess
import sys
import venv
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

from stoker.model.packaged import Packaged
from stoker.package.package_wheel import PackageRequest, package_wheel
from stoker.verify.wheel.tags import parse_platform
from support.wheels import distribution, zipped

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

BARE = Path(__file__).resolve().parents[1] / "support/bare.sh"
SOURCE = r"""
#include <cublas_v2.h>
#include <cuda_runtime.h>
#include <nvrtc.h>
__global__ void kernel(float *y) { y[threadIdx.x] = 1; }
extern "C" int versions(int *cudart, int *cublas, int *nvrtc) {
    int minor, failure; size_t size = 0; nvrtcProgram program;
    const char *options[] = {"--gpu-architecture=compute_80"};
    cudaRuntimeGetVersion(cudart); cublasGetProperty(MAJOR_VERSION, cublas); nvrtcVersion(nvrtc, &minor);
    nvrtcCreateProgram(&program, "__global__ void f() {}", "f.cu", 0, 0, 0);
    failure = nvrtcCompileProgram(program, 1, options);
    if (!failure) nvrtcGetPTXSize(program, &size);
    return failure ? -failure : (int)size;
}
extern "C" void launch(float *y) { kernel<<<1, 1>>>(y); }
"""
INIT = b"""\
import ctypes, pathlib
_library = ctypes.CDLL(str(pathlib.Path(__file__).parent / "libkernels.so"))
def versions():
    found = [ctypes.c_int() for _ in range(3)]
    size = _library.versions(*map(ctypes.byref, found))
    return [*(each.value for each in found), size]
"""
ASK = """
import json, kernels
answer = kernels.versions()
maps = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
print(json.dumps([answer, sorted(path for path in maps if "libcu" in path or "libnv" in path)]))
"""
TAG = "py3-none-linux_x86_64"


def python_of(environment: Path) -> str:
    return str(environment / "bin/python")


def environment(path: Path) -> Path:
    venv.create(path)
    return path


def install(place: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """With our own pip: to put one into each environment takes longer than what it installs there."""
    pip = [sys.executable, "-m", "pip", "--python", python_of(place)]
    command = [*pip, "install", "-q", "--disable-pip-version-check", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Path, Path]]:
    """The wheel as built, and the environment that it was built in."""
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH: the CUDA toolkit is not installed")
    root = tmp_path_factory.mktemp("cuda")
    found = re.search(r"release (\d+\.\d+)", subprocess.run([nvcc, "--version"], capture_output=True, text=True).stdout)
    assert found is not None
    place = environment(root / "env")
    done = install(place, f"cuda-toolkit[cublas,cudart,nvrtc]=={found[1]}.*")
    if done.returncode:
        pytest.skip(f"NVIDIA's packages cannot be installed: {done.stderr.strip().splitlines()[-1]}")
    (root / "kernels.cu").write_text(SOURCE)
    [cuda] = place.glob("lib/python*/site-packages/nvidia/cu1*")
    libraries = [f"-l:{next((cuda / 'lib').glob(f'lib{n}.so.*')).name}" for n in ("cublas", "nvrtc")]
    command = [nvcc, "-cudart", "shared", "-shared", "-Xcompiler", "-fPIC", "-arch=sm_80", "kernels.cu"]
    command += ["-o", "libkernels.so", f"-I{cuda}/include", f"-L{cuda}/lib", *libraries]
    subprocess.run([*command, "-Xlinker", f"-rpath,{cuda}/lib"], cwd=root, check=True)
    files = {"kernels/__init__.py": INIT, "kernels/libkernels.so": (root / "libkernels.so").read_bytes()}
    yield zipped(root / f"kernels-1.0-{TAG}.whl", distribution("kernels-1.0", files, TAG)), place
    shutil.rmtree(root)


def packaged(built: tuple[Path, Path], mode: str, folder: Path) -> Packaged:
    variables = {"VIRTUAL_ENV": str(built[1]), "PATH": os.environ["PATH"]}
    request = PackageRequest(built[0], mode, folder, level=0, environment=variables)  # type: ignore[arg-type]
    return package_wheel(request, lambda what, done, total: None)


def asked(command: Sequence[str]) -> tuple[list[int], list[str]]:
    done = subprocess.run([*command, "-c", ASK], capture_output=True, text=True, check=True, cwd="/")
    answer, maps = json.loads(done.stdout)
    return answer, maps


def shown_by_auditwheel(wheel: Path, nowhere: Path) -> str:
    """What it says of the wheel's own symbols: those of a toolkit that it finds on this machine are none of them."""
    nowhere.mkdir()
    command = [sys.executable, "-W", "ignore", "-m", "auditwheel", "show", "--json"]
    command += ["--ldpaths", str(nowhere), str(wheel)]
    return str(json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)["sym_tag"])


@pytest.mark.parametrize("mode", ["pypi", "bundle"])
def test_a_wheel_on_cuda_runs_elsewhere(built: tuple[Path, Path], mode: str, tmp_path: Path) -> None:
    made = packaged(built, mode, tmp_path / "out")
    fresh = environment(tmp_path / "fresh")
    done = install(fresh, made.output, *(["--no-index"] if mode == "bundle" else []))
    assert done.returncode == 0, done.stderr

    answer, maps = asked(["env", "-i", python_of(fresh)])

    cudart, cublas, nvrtc, ptx = answer
    assert (cudart // 1000, ptx > 0) == (cublas, True)
    assert nvrtc == cublas
    assert len([path for path in maps if "libcudart" in path]) == 1
    assert all(path.startswith(str(fresh)) for path in maps)
    by_symbols = made.tag_reasons[0].tag
    libcs = [p.libc for r in made.tag_reasons if (p := parse_platform(r.tag)) is not None]
    assert made.tag == "manylinux_{}_{}_x86_64".format(*max(libcs))
    assert by_symbols == shown_by_auditwheel(Path(made.output), tmp_path / "nowhere")
    assert [p for p in made.verification.problems if p.severity != "info"] == []
    shutil.rmtree(tmp_path / "out")
    if os.geteuid() or shutil.which("unshare") is None:
        pytest.skip("ran in a fresh environment; a place without CUDA and network wants root and unshare")
    (tmp_path / "root").mkdir()
    places = [str(fresh), sys.base_prefix, str(Path(python_of(fresh)).resolve().parent.parent)]
    bare = ["unshare", "-m", "-n", "--fork", "bash", str(BARE), str(tmp_path / "root"), *places, "--"]
    assert asked([*bare, python_of(fresh)])[0] == answer


EXTENSION = """
namespace c10::cuda { signed char device_count(); }
namespace at { int get_num_threads(); }
extern "C" int threads() { return at::get_num_threads() + 0 * c10::cuda::device_count(); }
"""
"""In torch's own words, without its headers, which take g++ a minute."""


def test_a_module_of_an_extension_of_torch_loads_by_itself(tmp_path: Path) -> None:
    """As built it finds torch's libraries only because `import torch` has loaded them before."""
    named = os.environ.get("STOKER_TORCH_ENV", "")
    if not named:
        pytest.skip("STOKER_TORCH_ENV names no environment that has torch with CUDA")
    place = Path(named)
    [site] = place.glob("lib/python*/site-packages")
    libraries = [f"-L{site / 'torch/lib'}", "-ltorch_cpu", "-lc10_cuda", "-Wl,--allow-shlib-undefined"]
    command = ["g++", "-shared", "-fPIC", "-x", "c++", "-", "-o", str(tmp_path / "_C.so"), *libraries]
    subprocess.run(command, input=EXTENSION.encode(), check=True)
    built = tmp_path / "_C.so"
    files = {"threads/__init__.py": b"", "threads/_C.so": built.read_bytes()}
    wheel = zipped(tmp_path / f"threads-1.0-{TAG}.whl", distribution("threads-1.0", files, TAG))

    made = packaged((wheel, place), "pypi", tmp_path / "out")

    assert [p.requirement.partition("==")[0] for p in made.requires] == ["torch"]
    assert made.vendored == ()
    # Beside torch, as pip would put it, without touching that environment.
    there = tmp_path / "site"
    there.mkdir()
    for name in ("torch", "nvidia"):
        (there / name).symlink_to(site / name)
    shutil.unpack_archive(made.output, there, "zip")
    for module, loads in ((built, False), (there / "threads/_C.so", True)):
        script = f"import ctypes; print(ctypes.CDLL({str(module)!r}).threads() > 0)"
        done = subprocess.run(["env", "-i", python_of(place), "-S", "-c", script], capture_output=True, text=True)
        assert (done.stdout.strip() == "True") is loads, done.stderr
