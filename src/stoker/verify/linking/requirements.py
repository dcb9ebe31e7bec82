"""Says which requirement brings a library, judging by names alone, for packages that are not installed here. Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import NamedTuple

from stoker.verify.linking.libraries import CUDA
from stoker.verify.linking.nvidia_packages import (
    FRAMEWORKS,
    NO_LIMITS,
    Limits,
    brings_along,
    can_bring,
    cuda_major,
    nvidias,
)

_SUFFIX = re.compile(r"-(?:cu\d+|cuda\d*|gpu|cpu|lib|libs)$")
_LIBRARY = re.compile(r"(?:lib)?([A-Za-z][\w+]*?)(?:-[0-9a-f]{8})?(?:[-_.]?\d[\w.]*)?\.so(?:\.[\w.]+)?")

_ALSO = {
    "cudart": "cuda-runtime", "cublasLt": "cublas", "cusolverMg": "cusolver", "nvToolsExt": "nvtx",
    "cufftw": "cufft", "cufft": "cufft", "nvrtc-builtins": "nvrtc", "cufile_rdma": "cufile",
    "nvinfer": "tensorrt", "nvinfer_plugin": "tensorrt", "nvonnxparser": "tensorrt",
}  # fmt: skip
"""Libraries whose package has another name (NVIDIA's wheels, as `pip show -f` lists them)."""


def bringer(library: str, requirements: Iterable[str], limits: Limits = NO_LIMITS) -> str:
    """Return the requirement that contains a library of this name, "" if there is none: librmm.so is in librmm-cu12,
    libcublasLt.so.13 in nvidia-cublas, libcudnn_ops.so.9 in nvidia-cudnn-cu13, libcufft.so.12 in
    cuda-toolkit[cufft,curand]."""
    requirements = list(requirements)
    itself = named_after(library, requirements)
    return itself or next((r for r in requirements if brings_along(r, library, limits)), "")


def named_after(library: str, requirements: Iterable[str]) -> str:
    """Return the requirement that contains a library of this name itself, not through its own requirements; "" if there
    is none."""
    match = _LIBRARY.fullmatch(library)
    stem = match[1] if match is not None else library.partition(".")[0].removeprefix("lib")
    whole = library.partition(".")[0].removeprefix("lib").lower()  # libshiboken6.abi3.so.6.12 of shiboken6
    names = {whole, stem.lower().replace("_", "-"), _ALSO.get(stem, stem).lower(), stem.lower().partition("_")[0]}
    for requirement in requirements:
        for part in re.findall(r"[^\[\],]+", requirement):
            name = _SUFFIX.sub("", part.lower()).removeprefix("nvidia-").removeprefix("lib")
            if names & {name, name.removeprefix("cuda-"), f"nvidia-{name}", f"lib{name}"}:
                return requirement
    return ""


class ServingExtra(NamedTuple):
    """An extra of a package, and the libraries that it brings."""

    extra: str
    brings: frozenset[str]


def best_extra(libraries: Iterable[str], by_extra: Mapping[str, Iterable[str]]) -> ServingExtra | None:
    """Return the extra that brings the most of these libraries; None if none brings any.

    An extra that is for another CUDA version, by its name or its requirements', brings none of CUDA's libraries.
    """
    libraries = list(libraries)
    major = cuda_major(libraries)
    found = []
    for extra, requirements in by_extra.items():
        majors = _majors([extra, *requirements])
        foreign = major is not None and bool(majors) and major not in majors
        brings = frozenset(n for n in libraries if bringer(n, requirements) and not (foreign and CUDA.fullmatch(n)))
        found += [ServingExtra(extra, brings)] if brings else []
    return max(found, key=lambda s: len(s.brings), default=None)


def _majors(names: Iterable[str]) -> set[int]:
    """Return the CUDA major versions in names of extras and requirements: 12 in "minimal-cu12", "sysctk12",
    "cuda-12-6"."""
    return {int(m[1]) for n in names for m in _MAJOR.finditer(bare(n))}


_MAJOR = re.compile(r"(?:cu|cuda|ctk)[-_]?(1[1-9])(?:[-_.]?\d)?x?(?![0-9a-z])", re.IGNORECASE)


def may_bring(
    library: str, requirements: Iterable[str], host: str, limits: Limits = NO_LIMITS, beside: Iterable[str] = ()
) -> list[str]:
    """Return the requirements that may bring this library although their names do not say so: through their own
    requirements, or among other libraries. A plugin is used with its `host` package even if it does not require
    that. `beside` are all libraries that are needed: they show for which GPUs a torch is wanted."""
    known = [r for r in requirements if bare(r) not in _WITHOUT_LIBRARIES]
    if nvidias(library):
        found = [r for r in known if can_bring(r, library, limits)]
    elif of_system(library):
        found = []
    else:
        of_torch = _WITH_TORCH.fullmatch(library) or (
            _INTELS_TOO.fullmatch(library) and any(map(_INTELS_ALONE.match, beside))
        )
        found = [r for r in known if not _NVIDIAS.match(r) and (of_torch or not _WITH_NO_OTHERS.fullmatch(r))]
    if not found and host and library.removeprefix("lib").lower().startswith(host):
        return [host]
    return found


def of_system(library: str) -> bool:
    """Whether a library comes with the system, and no package on PyPI brings it for others: those of the display, of
    printing, and clients of databases."""
    return bool(_OF_SYSTEM.fullmatch(library))


_OF_SYSTEM = re.compile(
    r"lib(?:wayland-\w+|X(?:11|11-xcb|au|aw|composite|cursor|damage|dmcp|ext|fixes|ft|i|inerama|mu|pm|randr|render|ss|t"
    r"|tst|v|xf86vm)|xcb(?:-[\w-]+)?|xkb\w+(?:-x11)?|SM|ICE|GL|GLX|GLU|GLdispatch|GLESv\w+|OpenGL|EGL|gbm|drm(?:_\w+)?"
    r"|glib-2\.0|gobject-2\.0|gio-2\.0|gthread-2\.0|gmodule-2\.0|gtk-[34x\d.-]+|gdk-[34x\d.-]+|gdk_pixbuf-2\.0|atk-1\.0"
    r"|pango(?:cairo|ft2)?-1\.0|cairo(?:-gobject)?|fontconfig|dbus-1|cups|asound|pulse[\w-]*|udev|systemd|input|mtdev"
    r"|odbc(?:inst)?|pq|mysqlclient|mariadb|fbclient|fabric|ibverbs|rdmacm|efa|mlx[45]|numa)\.so(?:\.[\d.]+)?"
)


def requires_torch(requirement: str) -> bool:
    """Whether a requirement is torch or brings it, judging by its name."""
    name = bare(requirement)
    return "torch" in name or name in FRAMEWORKS


def unable_to_bring(libraries: Iterable[str], requirements: Iterable[str], limits: Limits = NO_LIMITS) -> list[str]:
    """Return the little-known requirements that are assumed to bring none of these libraries of NVIDIA's."""
    wanted = list(libraries)
    return [r for r in requirements if wanted and bare(r) not in _WITHOUT_LIBRARIES
            and not any(can_bring(r, n, limits) for n in wanted)]  # fmt: skip


def plugin_host(package: str) -> str:
    """Return the package that a plugin is named after: openmm for OpenMM-CUDA-12 and OpenMM-HIP-6; "" for other
    names."""
    plugin = _PLUGIN.fullmatch(package)
    return plugin[1].lower() if plugin is not None else ""


_PLUGIN = re.compile(r"(\w{4,})[-_](?:cu|cuda|gpu|hip|rocm)[-_\d]*", re.IGNORECASE)

_NVIDIAS = re.compile(r"(?:nvidia|cuda|custatevec|cutensor|cutensornet|cudensitymat|cuquantum)-(?!dali)")
"""Packages that bring only NVIDIA's own libraries."""

_WITH_NO_OTHERS = re.compile(r"torch|cupy-cuda\d+x|shiboken[26]")
"""Packages that bring their own libraries, which are recognised by name, those of the vendor of the GPU that they are
built for, and no others."""
_WITH_TORCH = re.compile(
    r"lib(?:torch|c10|caffe2|shm|gomp|omp|aotriton"
    r"|sycl|ze_|ur_|umf|mkl_|svml|imf|irng|intlc|iomp5|ccl|pti_)[\w-]*\.so(?:\.[\w.]+)?"
)
"""Libraries that come with some build of torch: its own, AMD's, and those of Intel's packages, which torch for Intel's
GPUs requires."""
_INTELS_TOO = re.compile(r"lib(?:OpenCL|mpi|hwloc|tbb|tcm)[\w-]*\.so(?:\.[\w.]+)?")
"""Libraries in Intel's packages that others use as well: only what is for Intel's GPUs gets them with torch."""
_INTELS_ALONE = re.compile(r"lib(?:c10_xpu|torch_xpu|sycl|ze_|ur_|mkl_sycl|intlc|imf|svml|pti_)")

_WITHOUT_LIBRARIES = frozenset(
    (
        "absl-py", "aiohttp", "astpretty", "astunparse", "attrs", "beautifulsoup4", "cachetools", "cerberus", "certifi",
        "cffi", "charset-normalizer", "click", "cloudpickle", "colorama", "coloredlogs", "cuda-pathfinder", "decorator",
        "dill", "einops", "fastapi", "filelock", "flatbuffers", "fsspec", "gast", "google-pasta", "grpcio", "h5py",
        "httpx", "huggingface-hub", "humanfriendly", "idna", "importlib-metadata", "importlib-resources", "jinja2",
        "joblib", "jsonschema", "llvmlite", "loguru", "lxml", "markdown", "markupsafe", "matplotlib", "ml-dtypes",
        "mpmath", "msgpack", "multiprocess", "networkx", "ninja", "numba", "numpy", "nvtx", "onnx", "opt-einsum",
        "packaging", "pandas", "pillow", "pip", "platformdirs", "ply", "protobuf", "psutil", "py-cpuinfo", "pybind11",
        "pydantic", "pydantic-core", "pygments", "python-dateutil", "pytz", "pyyaml", "pyzmq", "regex", "requests",
        "rich", "safetensors", "scikit-learn", "scipy", "sentencepiece", "setuptools", "six", "sympy", "tabulate",
        "termcolor", "tokenizers", "toml", "tomli", "tqdm", "typing-extensions", "tzdata", "urllib3", "uvicorn",
        "werkzeug", "wheel", "wrapt", "zipp", "zstandard",
    )
)  # fmt: skip
"""Packages that many others require, and that bring no library for others, directly or through their requirements."""


def bare(requirement: str) -> str:
    """Return a requirement's name without its extras."""
    return requirement.partition("[")[0]
