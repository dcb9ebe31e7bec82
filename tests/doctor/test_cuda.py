"""CUDA: toolkits made for the test, so that each version and fault can be had on any machine."""

from __future__ import annotations

import os
import re
import shutil
from pathlib import Path

import pytest

from stoker.doctor.check import Check
from stoker.doctor.facts import Cuda, Surroundings, ToolkitPlace
from stoker.doctor.find_cuda import ask_toolkit
from stoker.doctor.judge_cuda import judge_cuda
from stoker.doctor.need import Need
from stoker.doctor.toolkits import limits_in, limits_of
from stoker.verify.archs import Arch
from stoker.verify.gpu.devices import Device
from support.clinic import HOST_CONFIG, Clinic, one

GNU = "Copyright (C) 2026 Free Software Foundation, Inc."


def gcc(clinic: Clinic, version: str) -> None:
    clinic.says("gcc", f"gcc (GCC) {version}\n{GNU}")


def test_without_nvcc_a_build_that_wants_cuda_fails(clinic: Clinic) -> None:
    clinic.only("gcc", "g++", "make")
    clinic.wants(cuda="must")
    check = clinic.check("nvcc")
    assert check.status == "fail"
    assert "PATH" in check.why
    assert check.remedy


def test_without_nvcc_other_builds_may_go_on(clinic: Clinic) -> None:
    clinic.only("gcc", "g++", "make")
    assert clinic.check("nvcc").status == "ok"
    clinic.wants(knobs="pytorch")
    check = clinic.check("nvcc")
    assert check.status == "warn"
    assert check.remedy == "export USE_CUDA=0"


@pytest.mark.parametrize("kind", ["link", "script"])
def test_an_extension_of_pytorch_learns_that_its_headers_are_elsewhere(clinic: Clinic, kind: str) -> None:
    """torch.utils.cpp_extension would take the folder above the one that the link or the script is in."""
    root = clinic.toolkit("13.0")
    nvcc = clinic.root / "bin" / "nvcc"
    if kind == "link":
        nvcc.symlink_to(root / "bin/nvcc")
    else:
        nvcc.write_text(f'#!/bin/sh\nexec {root}/bin/nvcc "$@"\n')
        nvcc.chmod(0o755)
    clinic.wants(cuda="must", knobs="extension")
    check = clinic.check("CUDA headers")
    assert (check.status, check.remedy) == ("warn", f"export CUDA_HOME={root}")
    assert f"takes {clinic.root} for CUDA_HOME" in check.why
    clinic.env["CUDA_HOME"] = str(root)
    assert "CUDA headers" not in [each.name for each in clinic.examine().checks]
    del clinic.env["CUDA_HOME"]
    clinic.wants(knobs="")
    assert "CUDA headers" not in [each.name for each in clinic.examine().checks]


@pytest.mark.parametrize("way", ["CUDA_HOME", "CUDACXX", "PATH", "usual"])
def test_a_toolkit_is_found_in_each_way(clinic: Clinic, way: str) -> None:
    root = clinic.toolkit("13.0")
    if way == "CUDA_HOME":
        clinic.env["CUDA_HOME"] = str(root)
    elif way == "CUDACXX":
        clinic.env["CUDACXX"] = str(root / "bin/nvcc")
    elif way == "PATH":
        clinic.env["PATH"] = f"{root / 'bin'}:{clinic.env['PATH']}"
    else:
        (clinic.root / "usual-cuda").symlink_to(root)
    clinic.wants(cuda="must")
    check = clinic.check("nvcc")
    assert check.status == "ok"
    assert check.why.startswith("13.0, ")
    assert way in check.why


def test_a_variable_that_points_to_nothing(clinic: Clinic) -> None:
    root = clinic.toolkit()
    clinic.env |= {"CUDA_HOME": "/nowhere", "PATH": f"{root / 'bin'}:{clinic.env['PATH']}"}
    clinic.wants(cuda="must")
    assert clinic.check("CUDA_HOME").status == "warn", "CMake finds the one on PATH"
    clinic.wants(knobs="extension")
    check = clinic.check("CUDA_HOME")
    assert check.status == "fail"
    assert "/nowhere" in check.why
    assert check.remedy == f"export CUDA_HOME={root}"


def test_a_compiler_variable_that_points_to_nothing(clinic: Clinic) -> None:
    root = clinic.toolkit()
    clinic.env |= {"CUDACXX": "/no where/nvcc", "CUDA_HOME": str(root)}
    assert clinic.check("CUDACXX").status == "warn"
    clinic.env["CUDACXX"] = "'/no where/nvcc' --threads 2"
    clinic.wants(cuda="must")
    check = clinic.check("CUDACXX")
    assert check.status == "fail"
    assert "/no where/nvcc" in check.why
    assert check.remedy == f"export CUDACXX={root}/bin/nvcc"


def test_a_broken_nvcc(clinic: Clinic) -> None:
    clinic.says("nvcc", "nvcc fatal   : Could not open profile 'nvcc.profile'", status=1)
    clinic.wants(cuda="must")
    check = clinic.check("nvcc")
    assert check.status == "fail"
    assert "nvcc.profile" in check.why
    clinic.wants(cuda="may")
    found = clinic.examine()
    assert one(found, "nvcc").status == "warn"
    assert not any(check.name == "nvcc host compiler" for check in found.checks)


def test_an_old_toolkit(clinic: Clinic) -> None:
    clinic.env["CUDA_HOME"] = str(clinic.toolkit("12.4"))
    clinic.wants(cuda="must", cuda_version=(12, 6))
    check = clinic.check("nvcc")
    assert check.status == "fail"
    assert "12.4" in check.why
    assert "12.6" in check.why


@pytest.mark.parametrize(("version", "status"), [("15.2.0", "ok"), ("16.1.0", "fail"), ("5.4.0", "warn")])
def test_the_host_compiler_is_held_against_the_toolkits_own_header(clinic: Clinic, version: str, status: str) -> None:
    gcc(clinic, version)
    clinic.env["CUDA_HOME"] = str(clinic.toolkit("13.0", gcc=15))
    clinic.wants(cuda="must")
    check = clinic.check("nvcc host compiler")
    assert check.status == status
    assert version in check.why
    if status == "fail":
        assert "15" in check.why
        assert check.remedy == "export CUDAHOSTCXX=g++-15 NVCC_CCBIN=g++-15"


def test_clang_has_a_limit_of_its_own(clinic: Clinic) -> None:
    clinic.says("clang++", "clang version 21.1.0")
    clinic.env |= {"CUDA_HOME": str(clinic.toolkit("13.0", clang=21)), "CUDAHOSTCXX": "clang++"}
    clinic.wants(cuda="must")
    check = clinic.check("nvcc host compiler")
    assert check.status == "fail"
    assert "clang up to 20" in check.why


def test_the_header_counts_more_than_the_table_and_the_table_only_warns(clinic: Clinic) -> None:
    gcc(clinic, "14.2.0")
    root = clinic.toolkit("12.6", gcc=14)
    clinic.env["CUDA_HOME"] = str(root)
    clinic.wants(cuda="must")
    assert clinic.check("nvcc host compiler").status == "ok"
    (root / "include/crt/host_config.h").unlink()
    check = clinic.check("nvcc host compiler")
    assert check.status == "warn"
    assert "13" in check.why


def test_the_check_can_be_switched_off(clinic: Clinic) -> None:
    gcc(clinic, "16.1.0")
    clinic.env |= {"CUDA_HOME": str(clinic.toolkit()), "NVCC_APPEND_FLAGS": "-allow-unsupported-compiler"}
    clinic.wants(cuda="must")
    assert clinic.check("nvcc host compiler").status == "warn"


@pytest.mark.parametrize(
    ("variables", "knobs", "status"),
    [
        ({}, "", "fail"),
        ({"CC": "gcc-12"}, "", "warn"),  # the project may pass it to nvcc, or not
        ({"CC": "gcc-12"}, "extension", "ok"),  # torch.utils.cpp_extension does
        ({"NVCC_PREPEND_FLAGS": "-O1 -ccbin gcc-12"}, "", "ok"),
        ({"CUDAFLAGS": "--compiler-bindir=gcc-12", "CUDAHOSTCXX": "gcc"}, "", "ok"),
    ],
)
def test_the_host_compiler_is_the_one_that_nvcc_is_given(
    clinic: Clinic, variables: dict[str, str], knobs: str, status: str
) -> None:
    gcc(clinic, "16.1.0")
    clinic.says("gcc-12", "gcc (GCC) 12.2.0\nCopyright (C) 2022 Free Software Foundation, Inc.")
    clinic.env |= {"CUDA_HOME": str(clinic.toolkit()), **variables}
    clinic.wants(cuda="must", knobs=knobs)
    assert clinic.check("nvcc host compiler").status == status


def test_two_toolkits_are_reported(clinic: Clinic) -> None:
    new, old = clinic.toolkit("13.0"), clinic.toolkit("12.8")
    clinic.env |= {"CUDA_HOME": str(new), "PATH": f"{old / 'bin'}:{clinic.env['PATH']}"}
    check = clinic.check("CUDA versions")
    assert check.status == "warn"
    assert "13.0 by CUDA_HOME" in check.why
    assert "12.8 by PATH" in check.why


def test_headers_of_another_version_beside_nvcc(clinic: Clinic) -> None:
    root = clinic.toolkit("13.0")
    (root / "include/cuda.h").write_text("#define CUDA_VERSION 12080\n")
    clinic.env["CUDA_HOME"] = str(root)
    clinic.wants(knobs="pytorch")
    check = clinic.check("CUDA versions")
    assert check.status == "fail"
    assert "12.8" in check.why


CUDNN = "#define CUDNN_MAJOR 9\n#define CUDNN_MINOR 26\n#define CUDNN_PATCHLEVEL 0\n"
NCCL = "#define NCCL_MAJOR 2\n#define NCCL_MINOR 30\n#define NCCL_PATCH 7\n"


def test_libraries_are_found_beside_the_toolkit_and_by_their_roots(clinic: Clinic) -> None:
    root = clinic.toolkit()
    (root / "include/cudnn_version.h").write_text(CUDNN)
    (clinic.root / "nccl/include").mkdir(parents=True)
    (clinic.root / "nccl/include/nccl.h").write_text(NCCL)
    clinic.env |= {"CUDA_HOME": str(root), "NCCL_ROOT": str(clinic.root / "nccl")}
    clinic.wants(libraries=("cudnn", "nccl"), knobs="pytorch")
    found = clinic.examine()
    assert one(found, "cudnn").why.startswith("9.26.0, ")
    assert one(found, "nccl").why.startswith("2.30.7, ")
    assert one(found, "cudnn").status == one(found, "nccl").status == "ok"


def packages(clinic: Clinic) -> Path:
    """An environment with NVIDIA's packages for Python, and the folder that they are in."""
    site = clinic.root / "site"
    (clinic.root / "venv/bin").mkdir(parents=True)
    python = clinic.root / "venv/bin/python"
    python.write_text(f"#!/bin/sh\nprintf 'stoker\\n/nowhere\\n{site}\\n3.12.1\\n\\n'\n")
    python.chmod(0o755)
    clinic.env["VIRTUAL_ENV"] = str(clinic.root / "venv")
    return site


def test_a_library_among_pythons_packages_needs_a_hint(clinic: Clinic) -> None:
    header = packages(clinic) / "nvidia/cudnn/include/cudnn_version.h"
    header.parent.mkdir(parents=True)
    header.write_text(CUDNN)
    clinic.env["CUDA_HOME"] = str(clinic.toolkit())
    clinic.wants(libraries=("cudnn",))
    check = clinic.check("cudnn")
    assert check.status == "warn"
    assert check.remedy == f"export CUDNN_ROOT={header.parent.parent}"
    clinic.env["CUDNN_ROOT"] = str(header.parent.parent)
    assert clinic.check("cudnn").status == "ok"


def test_a_toolkit_among_pythons_packages_needs_a_hint(clinic: Clinic) -> None:
    root = packages(clinic) / "nvidia/cu13"
    root.parent.mkdir(parents=True)
    clinic.only("gcc", "g++", "make")
    clinic.toolkit("13.0").rename(root)
    clinic.wants(cuda="must")
    check = clinic.check("nvcc")
    assert check.status == "fail"
    assert f"CUDA_HOME={root}" in check.remedy


def test_pytorch_makes_its_own_nccl_unless_asked_otherwise(clinic: Clinic) -> None:
    clinic.env["CUDA_HOME"] = str(clinic.toolkit())
    clinic.wants(libraries=("nccl",), knobs="pytorch")
    assert clinic.check("nccl").status == "ok"
    clinic.env["USE_SYSTEM_NCCL"] = "1"
    assert clinic.check("nccl").status == "fail"


def judged(cuda: Cuda) -> dict[str, Check]:
    return {check.name: check for check in judge_cuda(cuda, Need(), {})}


def test_a_build_without_cuda_hears_nothing_of_it() -> None:
    assert list(judge_cuda(Cuda(None, ()), Need(cuda="no"), {})) == []


def test_limits_are_read_from_the_header_by_meaning() -> None:
    limits = limits_in(HOST_CONFIG.format(gcc=15, clang=21), "/x")
    assert (limits.gcc, limits.clang, limits.origin) == (15, 20, "/x")
    assert limits_in("", "/x").gcc is None


def test_later_toolkits_have_no_limit_in_the_table() -> None:
    assert limits_of((12, 8)).gcc == 14
    assert limits_of((99, 0)).gcc is None


def test_a_driver_too_old_for_the_toolkit_is_a_warning(clinic: Clinic) -> None:
    from stoker.doctor.facts import Program, Toolkit

    kit = Toolkit(Program("nvcc", "/nvcc", (13, 0)), "PATH")
    device = Device("Some GPU", Arch(9, 0), cuda=(12, 4))
    assert judged(Cuda(kit, (), devices=(device,)))["GPU"].status == "warn"
    newer = Device("Some GPU", Arch(9, 0), cuda=(13, 2))
    assert judged(Cuda(kit, (), devices=(newer,)))["GPU"].status == "ok"


def test_the_table_says_what_the_toolkit_of_this_machine_says() -> None:
    header = Path("/usr/local/cuda/include/crt/host_config.h")
    version = re.search(r"#define CUDA_VERSION (\d+)", text_of(header.parents[1] / "cuda.h"))
    if version is None:
        pytest.skip("no CUDA toolkit in /usr/local/cuda")
    table = limits_of((int(version[1]) // 1000, int(version[1]) % 1000 // 10))
    reported = limits_in(header.read_text(), str(header))
    assert (table.gcc, table.clang) in ((reported.gcc, reported.clang), (None, None))


def text_of(path: Path) -> str:
    return path.read_text() if path.exists() else ""


def test_the_real_nvccs_architectures_are_known_with_those_for_one_gpu_alone(clinic: Clinic) -> None:
    nvcc = shutil.which("nvcc")
    if nvcc is None:
        pytest.skip("nvcc is not on PATH")
    found = ask_toolkit(ToolkitPlace("PATH", "", nvcc), Surroundings(clinic.need, dict(os.environ), 60.0))
    assert Arch(9, 0) in found.archs
    assert Arch(9, 0, "a") in found.codes
    assert {arch.capability for arch in found.codes} == {arch.capability for arch in found.archs}
