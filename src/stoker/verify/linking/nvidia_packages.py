"""Says which of NVIDIA's packages contains a library, judging by names alone, to advise on a missing one. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from packaging.specifiers import Specifier, SpecifierSet
from packaging.version import InvalidVersion, Version

from stoker.verify.library_builds import vendors
from stoker.verify.linking.libraries import CUDA

_LIBRARY = re.compile(r"lib([A-Za-z][\w-]*)\.so(?:\.(\d+)[\d.]*)?")
_WITHOUT_SUFFIX = 13
"""The first CUDA version whose toolkit packages have no version in their names."""
_FIRST_WITH_PACKAGES = 11
"""The first CUDA version whose libraries pip can install."""
_VERSIONED = ("cudart", "cublas", "cublasLt", "nvrtc", "nvJitLink")
"""Libraries that have the same version as CUDA."""

_TOOLKIT = {
    "cudart": "cuda-runtime", "cublas": "cublas", "cublasLt": "cublas", "cufft": "cufft", "cufftw": "cufft",
    "curand": "curand", "cusolver": "cusolver", "cusolverMg": "cusolver", "cusparse": "cusparse",
    "nvrtc": "cuda-nvrtc", "nvrtc-builtins": "cuda-nvrtc", "nvJitLink": "nvjitlink", "cupti": "cuda-cupti",
    "cufile": "cufile", "nvjpeg": "nvjpeg", "nvToolsExt": "nvtx",
}  # fmt: skip
"""In the toolkit: nvidia-NAME-cu12, and since CUDA 13 nvidia-NAME."""

_APART = {
    "cudnn": "nvidia-cudnn", "nccl": "nvidia-nccl", "cudss": "nvidia-cudss", "cusparseLt": "nvidia-cusparselt",
    "nvshmem_host": "nvidia-nvshmem", "cutensor": "cutensor", "cutensornet": "cutensornet",
    "custatevec": "custatevec", "cudensitymat": "cudensitymat", "nvcomp": "nvidia-nvcomp",
    "nvimgcodec": "nvidia-nvimgcodec", "cublasmp": "nvidia-cublasmp", "nvinfer": "tensorrt",
    "nvinfer_plugin": "tensorrt", "nvonnxparser": "tensorrt", "nvinfer_lean": "tensorrt-lean",
    "nvinfer_dispatch": "tensorrt-dispatch",
}  # fmt: skip
"""Not in the toolkit: NAME-cu12, NAME-cu13."""

_REQUIRES = {
    "cublas": ("nvrtc",),
    "cudnn": ("cublas", "cublasLt", "nvrtc"), "cusolver": ("cublas", "cublasLt", "cusparse", "nvJitLink", "nvrtc"),
    "cusparse": ("nvJitLink",), "cufft": ("nvJitLink",), "cudss": ("cublas", "cublasLt", "nvrtc"),
    "cutensornet": ("cutensor",), "cudensitymat": ("cutensor", "cutensornet"),
    "cublasmp": ("cublas", "cublasLt", "nvrtc", "nccl"),
    "cusolvermp": ("cublas", "cublasLt", "cublasmp", "cudart", "cusolver", "cusparse", "nccl", "nvJitLink", "nvrtc"),
    "tensorrt": ("cudart",),
    "cuda-quantum": (
        "cudart", "cublas", "cublasLt", "curand", "cusolver", "cusparse", "nvJitLink", "nvrtc", "custatevec",
        "cutensornet", "cudensitymat", "cutensor",
    ),
    "cuquantum": ("custatevec", "cutensornet", "cudensitymat", "cutensor"),
}  # fmt: skip
"""Other NVIDIA libraries that a package of NVIDIA's brings through its requirements, for CUDA 12 and 13."""

_SINCE = {
    ("nvidia-cublas-cu12", "nvrtc"): ("12.8.5", "12.9.2"),
    ("nvidia-cublas", "nvrtc"): ("13.1.1", "13.2.2", "13.4"),
}
"""The first versions that have one of these requirements if earlier ones had not: of each series, the last one's for
all later ones."""

Limits = Mapping[str, SpecifierSet]
"""The versions that requirements admit, by name."""
NO_LIMITS: Limits = {}

_FOR_CUDA = re.compile(
    r"cu\d{2,3}|cuda|gpu|nvidia|cupy|rapids|torch|tensorflow|jax|paddle|mxnet|\bcu(?:cim|df|graph|ml|opt|vs)\b|nemo|dali|tensorrt"
)
FRAMEWORKS = frozenset((
    "accelerate", "auto-gptq", "bitsandbytes", "deepspeed", "easyocr", "fairseq", "fastai", "flash-attn",
    "flashinfer-python", "kornia", "lightning", "lmdeploy", "mamba-ssm", "monai", "openai-whisper", "peft",
    "sentence-transformers", "sglang", "skorch", "spconv", "speechbrain", "stanza", "tensordict", "thinc",
    "timm", "torchao", "triton", "trl", "ultralytics", "vllm", "xformers",
))  # fmt: skip
"""Packages that require torch or CUDA's libraries although their names do not say so."""

_BINDINGS = re.compile(
    r"nvidia-(?:ml-py\d*|pyindex|cutlass-dsl|modelopt|cudnn-frontend)|pynvml"
    r"|cuda-(?:pathfinder|core|bindings|python|cccl)|cupy-cuda\d+x"
)
"""NVIDIA's packages, and cupy, that bring none of its libraries, unless an extra asks for them (cupy-cuda12x[ctk])."""

_NVIDIAS_OWN = re.compile(
    r"(?:nvidia|cuda|custatevec|cutensor|cutensornet|cudensitymat|cuquantum|tensorrt)-(?!dali|toolkit)"
)


_KNOWN = {
    *_TOOLKIT.values(), *(n.removeprefix("nvidia-") for n in _APART.values()), *_REQUIRES, "npp", "cuda-nvcc",
} - {"cuda-quantum"}  # fmt: skip
"""NVIDIA's packages whose libraries and requirements are all known; cuda-quantum has many of its own."""


def nvidias(library: str) -> bool:
    """Whether a library belongs to the CUDA toolkit, or is another one of NVIDIA's that has a package of its own."""
    return bool(CUDA.fullmatch(library)) or vendors(library)


def can_bring(requirement: str, library: str, limits: Limits = NO_LIMITS) -> bool:
    """Whether a requirement that is not installed here could bring this NVIDIA library, judging by its name.

    No other package bundles these for others: they come with NVIDIA's packages, whose requirements are known, or with
    packages that are made for CUDA or require a framework that is. itk, graphviz and nanobind bring none.
    """
    name, _, extras = requirement.partition("[")
    if _BINDINGS.fullmatch(name):
        return bool(extras)
    if _NVIDIAS_OWN.match(name):
        known = re.sub(r"-cu\d+$", "", name.removeprefix("nvidia-")) in _KNOWN
        return brings_along(requirement, library, limits) if known else True
    return name in FRAMEWORKS or bool(_FOR_CUDA.search(name))


def brings_along(requirement: str, library: str, limits: Limits = NO_LIMITS) -> bool:
    """Whether one of NVIDIA's packages requires the package with this library: nvidia-cudnn-cu12 requires the one with
    libcublas.so.12, and cuda-toolkit[cusolver] the one with libcusparse.so.12. pip takes the newest version that the
    limits admit."""
    match = _LIBRARY.fullmatch(library)
    if match is None:
        return False
    since = _SINCE.get((requirement, match[1]), ())
    if since and not any(all(_admits(limit, v, since[-1]) for limit in limits.get(requirement, ())) for v in since):
        return False
    suffix = re.search(r"-cu(\d+)$", requirement)
    if suffix is not None and match[1] in _VERSIONED and match[2] and int(suffix[1]) != int(match[2]):
        return False
    name = re.sub(r"-cu\d+$|\[.*", "", requirement.removeprefix("nvidia-"))
    parts = re.findall(r"[\w-]+", requirement.partition("[")[2]) if name == "cuda-toolkit" else [name]
    return any(match[1] in _REQUIRES.get(part, ()) for part in parts)


def _admits(limit: Specifier, first: str, last: str) -> bool:
    """Whether a limit admits a version of a series that begins with `first`; the `last` series has no end."""
    # .999: whether it admits the series' end, as >12.9.1 and <13 do; its beginning, as ==12.9.* and ~=12.0 do.
    if any(limit.contains(v, prereleases=True) for v in (first, f"{first}.999")):
        return True
    try:
        pinned = Version(limit.version.removesuffix(".*"))
    except InvalidVersion:
        return False
    own = pinned.release[:2] == Version(first).release[:2] or first == last
    return limit.operator in ("==", "===", "~=") and own and pinned >= Version(first)


def cuda_without_packages(library: str, major: int | None) -> str:
    """Return the library's CUDA version if NVIDIA has no packages for it: "9.0" for libcusparse.so.9.0; "" otherwise.

    Up to CUDA 10.0 each library of the toolkit had the toolkit's version; `major` is the CUDA version of its user, if
    known.
    """
    match = _OLD.fullmatch(library)
    if match is not None and match[1] in _TOOLKIT and int(match[2]) < _FIRST_WITH_PACKAGES:
        return f"{match[2]}.{match[3]}"
    return str(major) if major is not None and major < _FIRST_WITH_PACKAGES and package_with(library, major) else ""


_OLD = re.compile(r"lib([A-Za-z][\w-]*)\.so\.(\d+)\.(\d)")


def cuda_major(needed: Iterable[str]) -> int | None:
    """Return the CUDA major version that a file with these needed libraries requires; None if they do not show it."""
    for name in needed:
        match = _LIBRARY.fullmatch(name)
        if match is not None and match[1] in _VERSIONED and match[2]:
            return int(match[2])
    return None


def folder_of(package: str) -> str:
    """Return where one of NVIDIA's packages puts its libraries below site-packages: nvidia/cublas/lib, since CUDA 13
    nvidia/cu13/lib; "" if unknown."""
    name = re.fullmatch(r"nvidia-([a-z-]+?)(-cu\d+)?", package.partition(" ")[0])
    if name is None:
        return ""
    own = name[2] or name[1] not in _TOOLKIT.values()
    return f"/nvidia/{name[1].replace('-', '_')}/lib" if own else f"/nvidia/cu{_WITHOUT_SUFFIX}/lib"


def package_with(library: str, major: int | None) -> str:
    """Return pip's name of the package with this library for this CUDA version, "" if unknown.

    Without a CUDA version the name has cu12, and says that another may be right.
    """
    match = _LIBRARY.fullmatch(library)
    stem = match[1] if match is not None else ""
    suffix = f"-cu{major}" if major is not None else "-cu12 (or the one for your CUDA)"
    stem = "cudnn" if stem.startswith("cudnn_") else stem
    if _APART.get(stem, "").startswith("tensorrt") and match is not None and match[2]:
        return f"'{_APART[stem]}-cu{major or 12}=={match[2]}.*'"  # the library has TensorRT's version
    if stem in _APART:
        return f"{_APART[stem]}{suffix}"
    if stem in _TOOLKIT:
        return f"nvidia-{_TOOLKIT[stem]}{suffix if major is None or major < _WITHOUT_SUFFIX else ''}"
    return ""
