"""Which requirement brings a library, by names alone: for packages that are not installed here. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

_SUFFIX = re.compile(r"-(?:cu\d+|cuda\d*|gpu|cpu|lib|libs)$")
_LIBRARY = re.compile(r"(?:lib)?([A-Za-z][\w+]*?)(?:-[0-9a-f]{8})?(?:[-_.]?\d[\w.]*)?\.so(?:\.[\w.]+)?")

_ALSO = {
    "cudart": "cuda-runtime", "cublasLt": "cublas", "cusolverMg": "cusolver", "nvToolsExt": "nvtx",
    "cufftw": "cufft", "cufft": "cufft", "nvrtc-builtins": "nvrtc", "cufile_rdma": "cufile",
}  # fmt: skip
"""Libraries whose package has another name (NVIDIA's wheels, as `pip show -f` lists them)."""


def bringer(library: str, requirements: Iterable[str]) -> str:
    """The requirement that has a library of this name, "" without one: librmm.so is in librmm-cu12, libcublasLt.so.13
    in nvidia-cublas, libcudnn_ops.so.9 in nvidia-cudnn-cu13, libcufft.so.12 in cuda-toolkit[cufft,curand]."""
    match = _LIBRARY.fullmatch(library)
    stem = match[1] if match is not None else library.partition(".")[0].removeprefix("lib")
    names = {stem.lower(), _ALSO.get(stem, stem).lower(), stem.partition("_")[0].lower()}
    for requirement in requirements:
        for part in re.findall(r"[^\[\],]+", requirement):
            name = _SUFFIX.sub("", part.lower()).removeprefix("nvidia-").removeprefix("lib")
            if names & {name, name.removeprefix("cuda-"), f"nvidia-{name}", f"lib{name}"}:
                return requirement
    return ""


def bare(requirement: str) -> str:
    """A requirement's name without its extras."""
    return requirement.partition("[")[0]
