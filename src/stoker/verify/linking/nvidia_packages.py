"""Which of NVIDIA's packages has a library, by names alone: for advice where it is missing. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from stoker.verify.library_builds import vendors
from stoker.verify.linking.libraries import CUDA

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
    "nvimgcodec": "nvidia-nvimgcodec", "cublasmp": "nvidia-cublasmp", "nvinfer": "tensorrt",
    "nvinfer_plugin": "tensorrt", "nvonnxparser": "tensorrt", "nvinfer_lean": "tensorrt-lean",
    "nvinfer_dispatch": "tensorrt-dispatch",
}  # fmt: skip
"""Not of the toolkit: NAME-cu12, NAME-cu13."""

_REQUIRES = {
    "cudnn": ("cublas", "cublasLt", "nvrtc"), "cusolver": ("cublas", "cublasLt", "cusparse", "nvJitLink"),
    "cusparse": ("nvJitLink",), "cufft": ("nvJitLink",), "cudss": ("cublas", "cublasLt"),
    "cutensornet": ("cutensor",), "cudensitymat": ("cutensor", "cutensornet"),
    "cublasmp": ("cublas", "cublasLt"), "tensorrt": ("cudart",),
    "cuquantum": ("custatevec", "cutensornet", "cudensitymat", "cutensor"),
}  # fmt: skip
"""What of NVIDIA's other libraries a package of its brings by what it requires, for CUDA 12 and 13."""

_FOR_CUDA = re.compile(
    r"cu\d{2,3}|cuda|gpu|nvidia|cupy|rapids|torch|tensorflow|jax|paddle|mxnet|\bcu(?:cim|df|graph|ml|opt|vs)\b|nemo|dali|tensorrt"
)
_FRAMEWORKS = frozenset((
    "accelerate", "auto-gptq", "bitsandbytes", "deepspeed", "easyocr", "fairseq", "fastai", "flash-attn",
    "flashinfer-python", "kornia", "lightning", "lmdeploy", "mamba-ssm", "monai", "openai-whisper", "peft",
    "sentence-transformers", "sglang", "skorch", "spconv", "speechbrain", "stanza", "tensordict", "thinc",
    "timm", "torchao", "triton", "trl", "ultralytics", "vllm", "xformers",
))  # fmt: skip
"""Packages that require torch or CUDA's libraries, and whose name does not say so."""

_BINDINGS = re.compile(
    r"nvidia-(?:ml-py\d*|pyindex|cutlass-dsl|modelopt|cudnn-frontend)|pynvml"
    r"|cuda-(?:pathfinder|core|bindings|python|cccl)"
)
"""NVIDIA's packages that bring none of its libraries, unless an extra asks for them."""

_NVIDIAS_OWN = re.compile(
    r"(?:nvidia|cuda|custatevec|cutensor|cutensornet|cudensitymat|cuquantum|tensorrt)-(?!dali|toolkit)"
)


_KNOWN = {*_TOOLKIT.values(), *(n.removeprefix("nvidia-") for n in _APART.values()), *_REQUIRES, "npp", "cuda-nvcc"}
"""NVIDIA's packages of which it is known what they bring and require."""


def nvidias(library: str) -> bool:
    """Whether a library is of the CUDA toolkit, or another of NVIDIA's that come in packages of their own."""
    return bool(CUDA.fullmatch(library)) or vendors(library)


def can_bring(requirement: str, library: str) -> bool:
    """Whether a requirement that is not installed here could bring this one of NVIDIA's libraries, by its name.

    Nobody else bundles them for others: they come with NVIDIA's packages, of which it is known what they require, or
    with what is made for CUDA or requires a framework that is. itk, graphviz and nanobind bring none.
    """
    name, _, extras = requirement.partition("[")
    if _BINDINGS.fullmatch(name):
        return bool(extras)
    if _NVIDIAS_OWN.match(name):
        known = re.sub(r"-cu\d+$", "", name.removeprefix("nvidia-")) in _KNOWN
        return brings_along(requirement, library) if known else True
    return name in _FRAMEWORKS or bool(_FOR_CUDA.search(name))


def brings_along(requirement: str, library: str) -> bool:
    """Whether one of NVIDIA's packages requires the one with this library: nvidia-cudnn-cu12 requires that with
    libcublas.so.12, and cuda-toolkit[cusolver] that with libcusparse.so.12."""
    match = _LIBRARY.fullmatch(library)
    if match is None:
        return False
    suffix = re.search(r"-cu(\d+)$", requirement)
    if suffix is not None and match[1] in _VERSIONED and match[2] and int(suffix[1]) != int(match[2]):
        return False
    name = re.sub(r"-cu\d+$|\[.*", "", requirement.removeprefix("nvidia-"))
    parts = re.findall(r"[\w-]+", requirement.partition("[")[2]) if name == "cuda-toolkit" else [name]
    return any(match[1] in _REQUIRES.get(part, ()) for part in parts)


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


def folder_of(package: str) -> str:
    """Where one of NVIDIA's packages puts its libraries below the folder for packages: nvidia/cublas/lib, and since
    CUDA 13 nvidia/cu13/lib; "" where that is not known."""
    name = re.fullmatch(r"nvidia-([a-z-]+?)(-cu\d+)?", package.partition(" ")[0])
    if name is None:
        return ""
    own = name[2] or name[1] not in _TOOLKIT.values()
    return f"/nvidia/{name[1].replace('-', '_')}/lib" if own else f"/nvidia/cu{_WITHOUT_SUFFIX}/lib"


def package_with(library: str, major: int | None) -> str:
    """What pip calls the package with this library for this CUDA, "" where that is not known.

    Without a CUDA version the name has cu12, and says that it may be another.
    """
    match = _LIBRARY.fullmatch(library)
    stem = match[1] if match is not None else ""
    suffix = f"-cu{major}" if major is not None else "-cu12 (or the one for your CUDA)"
    stem = "cudnn" if stem.startswith("cudnn_") else stem
    if _APART.get(stem, "").startswith("tensorrt") and match is not None and match[2]:
        return f"'{_APART[stem]}-cu{major or 12}=={match[2]}.*'"  # the library's version is TensorRT's
    if stem in _APART:
        return f"{_APART[stem]}{suffix}"
    if stem in _TOOLKIT:
        return f"nvidia-{_TOOLKIT[stem]}{suffix if major is None or major < _WITHOUT_SUFFIX else ''}"
    return ""
