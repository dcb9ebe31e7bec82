"""A build that writes device code ends with a verdict on it; other builds end as they always did."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from support.program import PYPI_NINJA, Stoker, write_ninja, write_project

pytestmark = pytest.mark.long

KERNEL = """
__global__ void fill(int *p) { p[threadIdx.x] = 7; }
extern "C" int start(int *p) { fill<<<1, 32>>>(p); return 0; }
"""
NVCC = shutil.which("nvcc")
needs_nvcc = pytest.mark.skipif(NVCC is None, reason="nvcc is not on PATH: the CUDA toolkit is not installed")

FAKE_NVML = r"""
#include <string.h>
int nvmlInitWithFlags(unsigned f) { return 0; }
int nvmlInit_v2(void) { return 0; }
int nvmlShutdown(void) { return 0; }
const char *nvmlErrorString(int s) { return "?"; }
int nvmlSystemGetDriverVersion(char *t, unsigned n) { strncpy(t, "580.95.05", n); return 0; }
int nvmlSystemGetCudaDriverVersion_v2(int *v) { *v = 13000; return 0; }
int nvmlDeviceGetCount_v2(unsigned *n) { *n = 2; return 0; }
int nvmlDeviceGetHandleByIndex_v2(unsigned i, void **h) { *h = (void *)(long)(i + 1); return 0; }
int nvmlDeviceGetCudaComputeCapability(void *h, int *a, int *b) { *a = h == (void *)1 ? 8 : 9; *b = 0; return 0; }
int nvmlDeviceGetMemoryInfo(void *h, unsigned long long *m) { m[0] = 80ULL << 30; m[1] = m[2] = 0; return 0; }
int nvmlDeviceGetName(void *h, char *t, unsigned n) {
  strncpy(t, h == (void *)1 ? "NVIDIA A100" : "NVIDIA H100", n);
  return 0;
}
"""


@pytest.fixture
def cuda_project(tmp_path: Path) -> Path:
    """A ninja build of one kernel for sm_80, linked into a library, and a program without device code."""
    folder = tmp_path / "cuda"
    edges = [("k.o", f"{NVCC} -Xcompiler -fPIC -gencode arch=compute_80,code=sm_80 -c k.cu -o k.o")]
    write_ninja(folder, edges)
    (folder / "k.cu").write_text(KERNEL)
    with (folder / "build.ninja").open("a") as file:
        file.write(
            f"rule link\n  command = {NVCC} -arch=sm_80 -shared k.o -o libk.so\nbuild libk.so: link k.o\n"
            "rule prog\n  command = printf 'int main() { return 0; }' | g++ -x c++ - -o prog\nbuild prog: prog\n"
        )
    return folder


def fake_nvml(tmp_path: Path) -> Path:
    """A folder with a driver's library that knows an A100 and an H100."""
    folder = tmp_path / "nvml"
    folder.mkdir()
    command = ["gcc", "-shared", "-fPIC", "-x", "c", "-", "-o", str(folder / "libnvidia-ml.so.1")]
    subprocess.run(command, input=FAKE_NVML.encode(), check=True, capture_output=True)
    return folder


@needs_nvcc
def test_a_cuda_build_ends_with_what_its_binaries_hold(stoker: Stoker, cuda_project: Path) -> None:
    result = stoker.run(
        "run", "--plain", "--", "ninja", "-C", str(cuda_project), TORCH_CUDA_ARCH_LIST="8.0;9.0", LD_LIBRARY_PATH=""
    )
    assert result.returncode == 0
    told = result.stderr.decode()
    assert "sm_80" in told
    assert "sm_90 was asked for and is in no file" in told
    assert told.splitlines()[-1].startswith("stoker: done in ")
    (journal,) = stoker.folder("").glob("*/journal.jsonl")
    events = stoker.events(journal.parent.name)
    ends = ("step_ended", "verified", "build_ended")
    assert [e["type"] for e in events if e["type"] in ends] == [*ends]
    assert events[-1]["type"] == "build_ended"
    found = events[-2]["found"]
    (file,) = found["files"]
    assert file["path"] == str(cuda_project / "libk.so")
    assert [a["arch"] for a in file["archs"] if a["count"] > a.get("empty", 0)] == ["sm_80"]
    assert {r["arch"]: r["state"] for r in found["requested"]} == {"sm_80": "present", "sm_90": "missing"}
    status = stoker.status()
    assert status["state"] == "done"
    assert status["verification"]["ok"] is False
    assert b"verified  sm_90 asked for and missing; holds sm_80" in stoker.run("status").stdout


@needs_nvcc
def test_a_library_without_code_for_a_gpu_here_is_called_out(
    stoker: Stoker, cuda_project: Path, tmp_path: Path
) -> None:
    result = stoker.run(
        "run", "--plain", "--", "ninja", "-C", str(cuda_project),
        LD_LIBRARY_PATH=str(fake_nvml(tmp_path)), TORCH_CUDA_ARCH_LIST="",
    )  # fmt: skip
    assert result.returncode == 0, "what is built well has been built well, wherever it will run"
    told = result.stderr.decode()
    assert "will not run on NVIDIA H100 (9.0)" in told
    verification = stoker.status()["verification"]
    assert {d["name"]: d["verdict"] for d in verification["devices"]} == {"NVIDIA A100": "native", "NVIDIA H100": "no"}
    remedies = [p["remedy"] for p in verification["problems"]]
    assert "build it for 9.0 too, with nvcc's -gencode, or CMAKE_CUDA_ARCHITECTURES" in remedies, "no torch built this"


@needs_nvcc
def test_a_library_that_runs_in_part_is_said_to(stoker: Stoker, cuda_project: Path, tmp_path: Path) -> None:
    manifest = cuda_project / "build.ninja"
    text = manifest.read_text().replace("-shared k.o", "-shared k.o more.o").replace("link k.o", "link k.o more.o")
    both = f"{NVCC} -Xcompiler -fPIC -gencode arch=compute_80,code=sm_80 -gencode arch=compute_90,code=sm_90"
    manifest.write_text(f"{text}build more.o: sh\n  cmd = {both} -c more.cu -o more.o\n")
    (cuda_project / "more.cu").write_text(KERNEL.replace("fill", "more").replace("start", "other"))
    result = stoker.run(
        "run", "--plain", "--", "ninja", "-C", str(cuda_project),
        LD_LIBRARY_PATH=str(fake_nvml(tmp_path)), TORCH_CUDA_ARCH_LIST="",
    )  # fmt: skip
    assert result.returncode == 0
    told = result.stderr.decode()
    assert "runs in part on NVIDIA H100 (9.0); runs natively on NVIDIA A100 (8.0)" in told
    assert "NVIDIA H100 (9.0): runs in part: 1 of 2 modules have no code for sm_90 and fail when they are used" in told
    verification = stoker.status()["verification"]
    assert (verification["ok"], verification["verdict"]) == (True, "part")
    assert {d["name"]: d["verdict"] for d in verification["devices"]} == {
        "NVIDIA A100": "native", "NVIDIA H100": "part",
    }  # fmt: skip


@needs_nvcc
def test_a_list_that_nobody_can_check_costs_a_word_and_not_the_verdict(stoker: Stoker, cuda_project: Path) -> None:
    result = stoker.run("run", "--plain", "--", "ninja", "-C", str(cuda_project), TORCH_CUDA_ARCH_LIST="Common")
    assert result.returncode == 0
    assert b"TORCH_CUDA_ARCH_LIST is not checked" in result.stderr
    assert stoker.status()["verification"] is not None


@needs_nvcc
def test_device_code_that_is_gone_at_the_end_is_said_to_be(stoker: Stoker, cuda_project: Path) -> None:
    with (cuda_project / "build.ninja").open("a") as file:  # long enough for a look at the build, on any machine
        file.write("rule pause\n  command = sleep 3\nbuild pause: pause libk.so\n")
    script = f"{PYPI_NINJA} -C {cuda_project} && rm -r {cuda_project}"
    result = stoker.run("run", "--plain", "--", "sh", "-c", script)
    assert result.returncode == 0
    assert b"nothing is verified" in result.stderr
    assert stoker.status()["verification"] is None


def test_a_build_without_device_code_has_no_verdict(stoker: Stoker, tmp_path: Path) -> None:
    folder = write_project(tmp_path / "small", 2)
    result = stoker.run("run", "--plain", "--", "ninja", "-C", str(folder))
    assert result.returncode == 0
    assert b"verif" not in result.stderr
    assert stoker.status()["verification"] is None
