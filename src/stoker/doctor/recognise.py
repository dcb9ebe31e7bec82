"""What a source tree needs from the machine, read from the tree itself: PyTorch, an extension of it, or any other.

Unaware of the machine.
"""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from dataclasses import replace

from stoker.doctor.find_source import cmake_minimum, read_text
from stoker.doctor.find_tools import version_in
from stoker.doctor.need import FLASH_ATTENTION, PYTORCH, Need, Version, Want
from stoker.doctor.switches import switch

_STANDARD = re.compile(r"^\s*set\s*\(\s*CMAKE_CXX_STANDARD\s+(\d\d)\b", re.IGNORECASE | re.MULTILINE | re.ASCII)

_CUDA = re.compile(r"PyTorch requires CUDA (\d+\.\d+) (?:and|or) above", re.ASCII)
"""What cmake/public/cuda.cmake ends with where nvcc is older; 9.0 in 2019, 12.6 in 2026."""

_PYTHON = re.compile(
    r"^(?:requires-python\s*=\s*\"\s*>=\s*(\d+\.\d+)|python_min_version\s*=\s*\((\d+),\s*(\d+))",
    re.MULTILINE | re.ASCII,
)
"""In pyproject.toml, and in the setup.py of older trees."""

FLASH_ARCHS = "FLASH_ATTN_CUDA_ARCHS"

GCC_FOR_CXX20 = (11, 3)
"""The oldest gcc for PyTorch's headers since they want C++20 (its CMakeLists.txt; vLLM's says the same)."""


def recognise(folder: str, env: Mapping[str, str]) -> Need:
    """Return the need of the tree in `folder`, built in `folder`/build, or in `folder` if it has a CMakeCache.txt."""
    build = folder if os.path.isfile(f"{folder}/CMakeCache.txt") else f"{folder}/build"
    need = _kind(folder, env)
    oldest, policy = cmake_minimum(folder)
    return replace(
        need,
        source=folder,
        build=build,
        temporary=env.get("TMPDIR") or need.temporary,
        cmake=oldest,
        cmake_policy=policy,
        # A Python package's build may bring a CMake of its own.
        cmake_tool="must" if oldest and not os.path.isfile(f"{folder}/pyproject.toml") else need.cmake_tool,
    )


def _kind(folder: str, env: Mapping[str, str]) -> Need:
    if os.path.isdir(f"{folder}/aten/src/ATen") and os.path.isdir(f"{folder}/torch/csrc"):
        return _pytorch(folder, env)
    python = any(os.path.isfile(f"{folder}/{name}") for name in ("setup.py", "pyproject.toml"))
    headers: Want = "may" if python else "no"
    if "torch.utils.cpp_extension" in read_text(f"{folder}/setup.py"):
        need = Need(what="an extension of PyTorch", knobs="extension", python_headers="must")
        return _flash_attention(need, folder) if os.path.isdir(f"{folder}/csrc/flash_attn") else need
    return Need(python_headers=headers, cmake_tool="no" if python else "may")


def _flash_attention(need: Need, folder: str) -> Need:
    """Return flash-attention's need: its setup.py names its own variable for architectures, and those it knows."""
    text = read_text(f"{folder}/setup.py")
    default = re.search(rf'getenv\("{FLASH_ARCHS}", "([\d;]+)"\)', text, re.ASCII)
    if default is None:
        return replace(need, job=FLASH_ATTENTION)
    choice = tuple(dict.fromkeys(re.findall(r'"(\d+)" in cuda_archs\(\)', text, re.ASCII)))
    return replace(need, job=FLASH_ATTENTION, arch_variable=FLASH_ARCHS, arch_choice=choice, arch_default=default[1])


def _pytorch(folder: str, env: Mapping[str, str]) -> Need:
    standard = _STANDARD.search(read_text(f"{folder}/CMakeLists.txt"))
    gcc = GCC_FOR_CXX20 if standard is not None and int(standard[1]) >= 20 else PYTORCH.gcc
    wanted = switch(env.get("USE_CUDA"))
    need = replace(PYTORCH, gcc=gcc, python=_oldest_python(folder))
    if wanted is False:
        return replace(need, cuda="no", libraries=())
    attention = all(switch(env.get(name)) is not False for name in ("USE_FLASH_ATTENTION", "USE_MEM_EFF_ATTENTION"))
    job = FLASH_ATTENTION if attention else PYTORCH.job
    oldest = _CUDA.search(read_text(f"{folder}/cmake/public/cuda.cmake"))
    return replace(
        need,
        cuda="must" if wanted else "may",
        cuda_version=version_in(oldest[1]) if oldest is not None else (),
        job=job,
    )


def _oldest_python(folder: str) -> Version:
    """Return what the tree asks for; empty where it does not say."""
    for name in ("pyproject.toml", "setup.py"):
        if asked := _PYTHON.search(read_text(f"{folder}/{name}")):
            return version_in(asked[1] or f"{asked[2]}.{asked[3]}")
    return ()
