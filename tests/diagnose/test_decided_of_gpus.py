"""What the log shows of the compiler, the toolkit and the GPU decides what a missing header or an unknown GPU means."""

from __future__ import annotations

import io

import pytest

from stoker.diagnose.log_reading import read_log
from stoker.diagnose.rule import shipped_rules
from stoker.model.diagnosis import Cause

RULES = shipped_rules()
HIPCC = "/opt/rocm/bin/hipcc -I/venv/torch/include -c ops.hip -o ops.o -fPIC --offload-arch={}\n"
NVCC = "{}/bin/nvcc -I/venv/torch/include -c ops.cu -o ops.o -gencode arch=compute_80,code=sm_80\n"
THRUST = "complex.h:8:10: fatal error: 'thrust/complex.h' file not found\n"
CUBLAS = "CUDAContextLight.h:8:10: fatal error: cublas_v2.h: No such file or directory\n"
NO_GPU = "clang: error: cannot determine amdgcn architecture: /opt/rocm/bin/amdgpu-arch: ; consider passing it\n"
PTX = "ptxas /tmp/a.ptx, line 9; fatal   : Unsupported .version 7.8; current version is '7.6'\n"
FRAME = 'File "{}/lib/python3.10/site-packages/setuptools/build_meta.py", line 320, in run_setup\n'
NO_RUNTIME = "RuntimeError: Unknown runtime environment\n"
HPC = "/opt/nvidia/hpc_sdk/Linux_x86_64/23.9"
ENV = "/opt/miniconda3/envs/gs"
TARGET = """-- Could NOT find {0} (missing: {0}_LIBRARY {0}_INCLUDE_DIR)
-- Configuring done
CMake Error at CMakeLists.txt:42 (add_executable):
  Target "tool" links to target "{1}" but the target was
  not found.  Perhaps a find_package() call is missing for an IMPORTED target,
  or an ALIAS target is missing?
"""
NO_CUDA = "AssertionError: Torch not compiled with CUDA enabled\n"
DECIDED = {
    "thrust of ROCm": (HIPCC.format("gfx1100") + THRUST, "rocm-library-in-cuda-name", "rocthrust-dev"),
    "thrust of CUDA": (NVCC.format("/usr/local/cuda") + THRUST, "cccl-header-missing", "include/cccl"),
    "nvcc after hipcc": (
        HIPCC.format("gfx90a") + NVCC.format("/usr/local/cuda") + THRUST,
        "cccl-header-missing",
        "include/cccl",
    ),
    "cuBLAS of CUDA for AMD": (HIPCC.format("gfx90a") + CUBLAS, "cuda-source-for-amd", "hipify-perl"),
    "cuBLAS of the HPC SDK": (
        NVCC.format(f"{HPC}/cuda/12.2") + "Cuda compilation tools, release 12.2, V12.2.140\n" + CUBLAS,
        "hpc-sdk-math-libraries",
        f"export CPATH={HPC}/math_libs/12.2/include",
    ),
    "cuBLAS of a toolkit": (NVCC.format("/usr/local/cuda") + CUBLAS, "cuda-header-missing", "cuda-toolkit"),
    "a GPU by the flags": (HIPCC.format("native") + NO_GPU, "rocm-native-without-gpu", "s/--offload-arch=native/"),
    "a GPU asked for": (NO_GPU, "rocm-asks-gpu", "PYTORCH_ROCM_ARCH=gfx90a"),
    "two toolkits of conda": (NVCC.format(ENV) + PTX, "conda-toolkits-mixed", f"{ENV}/bin/ptxas --version"),
    "two toolkits": (NVCC.format("/usr/local/cuda") + PTX, "two-cuda-versions", "type -a nvcc ptxas"),
    "torch of pip's isolation": (
        FRAME.format("/tmp/pip-build-env-s2n0/overlay") + NO_RUNTIME,
        "isolated-torch-without-cuda",
        "python use_existing_torch.py",
    ),
    "torch of the environment": (FRAME.format("/venv") + NO_RUNTIME, "torch-without-cuda", "--force-reinstall torch"),
    "torch for ROCm": ("torch.__version__  = 2.4.1+rocm6.1\n" + NO_CUDA, "torch-of-rocm", "README"),
    "ROCm with another torch": (
        "No ROCm runtime is found, using ROCM_HOME='/opt/rocm'\n" + NO_CUDA,
        "torch-not-of-rocm",
        "--no-build-isolation",
    ),
    "a package of the tables": (
        TARGET.format("zstd", "zstd::libzstd_shared"),
        "cmake-target-not-found-of-table",
        "apt install libzstd-dev",
    ),
    "a package that nobody knows": (TARGET.format("Quux", "Quux::core"), "cmake-target-missing", "package of Quux"),
    "a package that was not looked for": (TARGET.format("CURL", "Quux::core"), "cmake-target-missing", "of Quux"),
    "CUDA's type for AMD": (
        HIPCC.format("gfx1100") + "act.hip:22:10: error: unknown type name '__nv_bfloat16'\n",
        "hip-name-of-cuda",
        "hipify-perl",
    ),
    "HIP without a platform": (
        "$ CXX=/opt/rocm/bin/hipcc cmake ..\n  No CMAKE_CUDA_COMPILER could be found.\n",
        "hip-takes-nvidia",
        "HIP_PLATFORM=amd",
    ),
    "nvcc that does not compile": (
        "-- The CUDA compiler identification is unknown\n  Failed to detect a default CUDA architecture.\n",
        "nvcc-not-identified",
        "nvcc t.cu",
    ),
    "no GPU to ask": ("  Failed to detect a default CUDA architecture.\n", "cuda-arch-native", "ARCH_LIST="),
    "CUB of CUDA 13": (
        "Cuda compilation tools, release 13.0,\na.cpp:3:10: fatal error: cub/cub.cuh: No such file or directory\n",
        "cub-header-missing",
        "include/cccl",
    ),
}


def first(log: str) -> Cause:
    return read_log(io.BytesIO(log.encode()), RULES, has_failed=True).causes[0]


@pytest.mark.parametrize("log", DECIDED)
def test_what_the_log_shows_decides_the_cause(log: str) -> None:
    text, rule, remedy = DECIDED[log]
    cause = first(text)
    assert cause.rule == rule
    assert remedy in cause.remedy


def test_no_download_of_cub_is_named_for_a_toolkit_that_brings_it() -> None:
    assert "git clone" not in first(DECIDED["CUB of CUDA 13"][0]).remedy
