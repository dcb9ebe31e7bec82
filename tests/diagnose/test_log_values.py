"""What the log says elsewhere stands in the remedy: the CUDA version, the package, the folder of a library."""

from __future__ import annotations

import io
import re

import pytest

from stoker.diagnose.match import Match
from stoker.diagnose.rule import shipped_rules
from stoker.diagnose.scan import scan

NO_CUDNN = "conv.cpp:1:10: fatal error: cudnn.h: No such file or directory\n"
NO_CUSPARSE = "a.h:7:10: fatal error: cusparse.h: No such file or directory\n"
NO_TORCH = "      ModuleNotFoundError: No module named 'torch'\n"


def first(text: str) -> Match:
    return scan(io.BytesIO(text.encode()), shipped_rules())[0]


@pytest.mark.parametrize(
    "line",
    [
        "-- The CUDA compiler identification is NVIDIA 12.4.131",
        '-- Found CUDAToolkit: /usr/local/cuda/include (found version "12.4.131")',
        "Cuda compilation tools, release 12.4, V12.4.131",
        "#1 FROM nvidia/cuda:12.4.1-devel-ubuntu22.04",
        "$ mamba install -y -c nvidia cuda-nvcc=12.4 cuda-cudart-dev=12.4",
        "Requirement already satisfied: torch==2.5.1+cu124 in /venv",
        "| NVIDIA-SMI 550.54   Driver Version: 550.54   CUDA Version: 12.4     |",
    ],
)
def test_packages_are_those_of_the_logs_cuda(line: str) -> None:
    assert "nvidia-cudnn-cu12" in first(f"{line}\n{NO_CUDNN}").remedy
    remedy = first(f"{line}\n{NO_CUSPARSE}").remedy
    assert "cuda-toolkit-12-4" in remedy
    assert "cuda-toolkit=12.4" in remedy


def test_without_a_version_in_the_log_a_remedy_names_none() -> None:
    assert "nvidia-cudnn-cuX" in first(NO_CUDNN).remedy
    assert "cuda-toolkit-X-Y" in first(NO_CUSPARSE).remedy


def test_no_remedy_names_a_package_for_a_cuda_that_it_does_not_know() -> None:
    literal = re.compile(r"nvidia-\w+-cu13|cudnn9-cuda-\d|cuda-toolkit-\d|-dev-1\d-\d")
    for rule in shipped_rules():
        for text in (rule.remedy, *rule.remedies.values()):
            assert not literal.search(text), rule.id


def test_a_header_beside_a_library_that_was_found_is_named_with_its_folder() -> None:
    match = first(f"-- cudnn found at /te/lib/python3.10/site-packages/nvidia/cudnn/lib/libcudnn.so.9\n{NO_CUDNN}")
    assert "header" in match.title
    assert "CPATH=/te/lib/python3.10/site-packages/nvidia/cudnn/include" in match.remedy


def test_a_folder_that_a_shell_would_not_take_for_one_word_is_not_repeated() -> None:
    remedy = first(f"found at /te/$(reboot)/nvidia/cudnn/lib/libcudnn.so.9\n{NO_CUDNN}").remedy
    assert "reboot" not in remedy
    assert "CUDNN_PATH=/path/to/cudnn" in remedy


def test_the_toolkit_of_a_mismatch_is_to_be_that_of_torch() -> None:
    log = "The detected CUDA version (11.5) mismatches the version that was used to compile\nPyTorch (12.1). Please\n"
    assert "CUDA_HOME=/usr/local/cuda-12.1 PATH=/usr/local/cuda-12.1/bin:$PATH" in first(log).remedy


def test_apexs_own_word_on_torchs_cuda_is_read() -> None:
    log = (
        "Cuda compilation tools, release 11.8, V11.8.89\n"
        "RuntimeError: Cuda extensions are being compiled with a version of Cuda that does not match the version used "
        "to compile Pytorch binaries.  Pytorch binaries were compiled with Cuda 12.1.\n"
    )
    assert "CUDA_HOME=/usr/local/cuda-12.1 PATH" in first(log).remedy


@pytest.mark.parametrize(("target", "number"), [("sm_120", "12.0"), ("sm_100a", "10.0a")])
def test_a_kernel_of_hoppers_is_left_out_and_the_own_gpu_kept(target: str, number: str) -> None:
    line = f"ptxas /tmp/k.ptx, line 2332; error   : Instruction 'wgmma.fence' not supported on .target '{target}'\n"
    match = first(line)
    assert f'TORCH_CUDA_ARCH_LIST="{number}"' in match.remedy
    assert "needs at least" not in match.why


def test_what_a_feature_requires_is_the_least_that_is_compiled_for() -> None:
    line = "ptxas /tmp/t.ptx, line 123; error   : Feature 'cp.async' requires .target sm_90a or higher\n"
    assert 'TORCH_CUDA_ARCH_LIST="9.0a", -DCMAKE_CUDA_ARCHITECTURES=90a' in first(line).remedy


@pytest.mark.parametrize(
    ("said", "rule"),
    [("Permission denied", "programs-refused-in-tmp"), ("no such file or directory", "stale-build-environment")],
)
def test_a_program_that_is_refused_is_not_one_that_is_gone(said: str, rule: str) -> None:
    log = (
        "  CMake Error:\n    Running\n\n     '/tmp/pip-build-env-2s3n5xk0/normal/bin/ninja' '--version'\n\n"
        f"    failed with:\n\n     {said}\n\n\n  -- Configuring incomplete, errors occurred!\n"
    )
    assert first(log).rule.id == rule


@pytest.mark.parametrize("name", ["OpenBLAS", "libofnobody"])
def test_where_pkg_config_is_missing_it_is_installed_too(name: str) -> None:
    line = f'../scipy/meson.build:159:9: ERROR: Dependency "{name}" not found, tried pkgconfig'
    assert "apt install pkg-config (" in first(f"Found pkg-config: NO\n\n{line}\n").remedy
    assert (
        "apt install pkg-config (" not in first(f"Found pkg-config: YES (/usr/bin/pkg-config) 1.8.1\n{line}\n").remedy
    )


def test_the_package_that_conda_cannot_fit_in_is_named() -> None:
    log = (
        "Could not solve for environment specs\nThe following packages are incompatible\n"
        "├─ python 3.12**  is requested and can be installed;\n"
        "└─ pytorch3d 0.7.5**  is not installable because there are no viable options\n"
    )
    assert first(log).title == "conda finds no version of pytorch3d that fits what else is wanted"


def test_bazels_own_message_stands_before_the_fetch_that_it_ended() -> None:
    log = "ERROR: An error occurred during the fetch of repository 'a':\n   Traceback (most recent call last):\n"
    assert (
        first(f"{log}Error in fail: no compiler of ours is here\n").text == "Error in fail: no compiler of ours is here"
    )


def test_uv_builds_with_the_torch_that_the_project_installs() -> None:
    remedy = first(f"  × Failed to build `flash-attn==2.7.0.post2`\n{NO_TORCH}").remedy
    assert 'flash-attn = [{ requirement = "torch", match-runtime = true }]' in remedy
    assert 'no-build-isolation-package = ["flash-attn"]' in remedy


def test_the_last_package_that_was_built_is_the_one_that_failed() -> None:
    log = "  Building wheel for a (setup.py) ... done\n  Building wheel for b (setup.py) ... error\nuv/builds-v0/x\n"
    assert "--no-build-isolation-package b" in first(log + NO_TORCH).remedy


@pytest.mark.parametrize(
    ("header", "rule"), [("cuda_fp8.h", "cuda-header-too-new"), ("cusparse.h", "cuda-header-missing")]
)
def test_a_header_of_every_toolkit_does_not_make_it_too_old(header: str, rule: str) -> None:
    assert first(f"a.cu:1:10: fatal error: {header}: No such file or directory\n").rule.id == rule


@pytest.mark.parametrize("answer", ["gpu-architecture-dropped", "unsupported-gpu-architecture"])
def test_cmakes_trial_that_fails_for_the_architecture_is_said_once(answer: str) -> None:
    number = 70 if answer == "gpu-architecture-dropped" else 120
    trial = "  is not able to compile a simple test program.\n"
    log = f"{trial}nvcc fatal   : Unsupported gpu architecture 'compute_{number}'\n"
    assert [m.rule.id for m in scan(io.BytesIO(log.encode()), shipped_rules())] == [answer]


def test_a_warning_about_an_op_that_is_not_built_is_no_failure() -> None:
    log = " [WARNING]  async_io requires the dev libaio .so object and headers but these were not found.\n"
    assert [m.rule.id for m in scan(io.BytesIO((log + NO_CUSPARSE).encode()), shipped_rules())] == [
        "cuda-header-missing"
    ]


def test_a_shells_killed_is_not_told_beside_the_compiler_that_was() -> None:
    step = "[1/9] Building CXX object b.o\nFAILED: b.o\n"
    log = f"Killed\n{step}c++: fatal error: Killed signal terminated program cc1plus\n"
    assert [m.rule.id for m in scan(io.BytesIO(log.encode()), shipped_rules())] == ["compiler-killed"]


@pytest.mark.parametrize(
    ("line", "version"),
    [
        ("Successfully installed numpy-2.0 torch-2.7.1+cu126 torchaudio-2.7.1+cu126", "12.6"),
        ("Requirement already satisfied: torch==2.5.1+cu124 in /venv", "12.4"),
        ("PyTorch version: 2.6.0+cu118", "11.8"),
        ("Collecting torch (from vllm==0.9.2+cu129)", "X.Y"),
        ("creating vllm-0.9.2+cu129.dist-info", "X.Y"),
        ("Cuda compilation tools, release 12.9, V12.9.86", "X.Y"),
    ],
)
def test_the_cuda_of_torch_is_read_from_torch_alone(line: str, version: str) -> None:
    remedy = first(f"{line}\n/usr/bin/ld: cannot find -lnvToolsExt: No such file or directory\n").remedy
    assert f"CUDA_HOME=/usr/local/cuda-{version} " in remedy


def test_the_folder_of_rocm_is_the_one_that_the_log_names() -> None:
    missing = "clang: error: cannot find ROCm device library; provide its path via '--rocm-path'\n"
    assert "find /opt/rocm -name ocml.bc" in first(missing).remedy
    assert "find /srv/therock -name ocml.bc" in first(f"$ export ROCM_PATH=/srv/therock\n{missing}").remedy


@pytest.mark.parametrize(
    ("said", "architecture"),
    [
        ("Cuda compilation tools, release 11.0, V11.0.221", "8.0"),
        ("[1/6] /usr/local/cuda-11.3/bin/nvcc -c a.cu", "8.6"),
        ("-- The CUDA compiler identification is NVIDIA 12.4.131", "9.0"),
        ("nothing about it", "X.Y"),
    ],
)
def test_the_newest_architecture_is_one_that_the_toolkit_knows(said: str, architecture: str) -> None:
    remedy = first(f"{said}\nnvcc fatal   : Unsupported gpu architecture 'compute_120'\n").remedy
    assert f'TORCH_CUDA_ARCH_LIST="{architecture}+PTX"' in remedy


def test_an_example_names_no_architecture_that_the_toolkit_does_not_know() -> None:
    line = "    arch_list[-1] += '+PTX'\nIndexError: list index out of range\n"
    assert 'TORCH_CUDA_ARCH_LIST="8.0;9.0"' in first(line).remedy
    assert 'TORCH_CUDA_ARCH_LIST="7.5;8.0"' in first(f"Cuda compilation tools, release 11.0, V1\n{line}").remedy


def test_the_nvcc_that_compiles_decides_beside_a_toolkit_that_cmake_found() -> None:
    found = '-- Found CUDAToolkit: /usr/local/cuda-13.0/targets/x86_64-linux/include (found version "13.0.48")\n'
    compiles = "-- The CUDA compiler identification is NVIDIA {}\n"
    unknown = "nvcc fatal   : Unsupported gpu architecture 'compute_120a'\n"
    older = first(f"{found}{compiles.format('12.0.140')}{unknown}").remedy
    assert "-DCMAKE_CUDA_COMPILER=/usr/local/cuda-13.0/bin/nvcc" in older
    assert "-DCMAKE_CUDA_ARCHITECTURES=90" in older
    assert "/usr/local/cuda-13.0/bin" not in first(f"{found}{compiles.format('13.0.48')}{unknown}").remedy


def test_deepspeed_says_which_cuda_torch_has() -> None:
    said = "Installed CUDA version 11.8 does not match the version torch was compiled with 12.4, unable to compile"
    match = first(f"op_builder.builder.CUDAMismatchException: >- DeepSpeed Op Builder: {said}\n")
    assert "CUDA_HOME=/usr/local/cuda-12.4" in match.remedy
