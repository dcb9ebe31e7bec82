"""Which of NVIDIA's packages has a library, by names alone: for advice where it is missing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_LIBRARY = re.compile(r"lib([A-Za-z][\w-]*)\.so(?:\.(\d+)[\d.]*)?")
_WITHOUT_SUFFIX = 13
"""The first CUDA whose toolkit's packages have no version in their names."""
_FIRST_WITH_PACKAGES = 11
"""The first CUDA whose libraries pip can install."""
_VERSIONED = ("cudart", "cublas", "cublasLt", "nvrtc", "nvJitLink")
"""Libraries whose own version is CUDA's."""

_TOOLKIT = {
    "cudart": "cuda-runtime", "cublas": "cublas", "cublasLt": "cublas", "cufft": "cufft", "cufftw": "cufft",
    "curand": "curand", "cusolver": "cusolver", "cusolverMg": "cusolver", "cusparse": "cusparse",
    "nvrtc": "cuda-nvrtc", "nvrtc-builtins": "cuda-nvrtc", "nvJitLink": "nvjitlink", "cupti": "cuda-cupti",
    "cufile": "cufile", "nvjpeg": "nvjpeg", "nvToolsExt": "nvtx",
}  # fmt: skip
"""Of the toolkit: nvidia-NAME-cu12, and from CUDA 13 on nvidia-NAME."""

_APART = {
    "cudnn": "nvidia-cudnn", "nccl": "nvidia-nccl", "cudss": "nvidia-cudss", "cusparseLt": "nvidia-cusparselt",
    "nvshmem_host": "nvidia-nvshmem", "cutensor": "cutensor", "cutensornet": "cutensornet",
    "custatevec": "custatevec", "cudensitymat": "cudensitymat", "nvcomp": "nvidia-nvcomp",
    "nvimgcodec": "nvidia-nvimgcodec", "cublasmp": "nvidia-cublasmp",
}  # fmt: skip
"""Not of the toolkit: NAME-cu12, NAME-cu13."""


def cuda_without_packages(library: str, major: int | None) -> str:
    """The CUDA of this library where NVIDIA has no packages of it: "9.0" of libcusparse.so.9.0; else "".

    Up to CUDA 10.0 each library of the toolkit had the toolkit's version; `major` is that of its user, if known.
    """
    match = _OLD.fullmatch(library)
    if match is not None and match[1] in _TOOLKIT and int(match[2]) < _FIRST_WITH_PACKAGES:
        return f"{match[2]}.{match[3]}"
    return str(major) if major is not None and major < _FIRST_WITH_PACKAGES and package_with(library, major) else ""


_OLD = re.compile(r"lib([A-Za-z][\w-]*)\.so\.(\d+)\.(\d)")


def cuda_major(needed: Iterable[str]) -> int | None:
    """The CUDA major version that somebody needs who needs these libraries; None where they do not say."""
    for name in needed:
        match = _LIBRARY.fullmatch(name)
        if match is not None and match[1] in _VERSIONED and match[2]:
            return int(match[2])
    return None


def package_with(library: str, major: int | None) -> str:
    """What pip calls the package with this library for this CUDA, "" where that is not known.

    Without a CUDA version the name has cu12, and says that it may be another.
    """
    match = _LIBRARY.fullmatch(library)
    stem = match[1] if match is not None else ""
    suffix = f"-cu{major}" if major is not None else "-cu12 (or the one for your CUDA)"
    stem = "cudnn" if stem.startswith("cudnn_") else stem
    if stem in _APART:
        return f"{_APART[stem]}{suffix}"
    if stem in _TOOLKIT:
        return f"nvidia-{_TOOLKIT[stem]}{suffix if major is None or major < _WITHOUT_SUFFIX else ''}"
    return ""
