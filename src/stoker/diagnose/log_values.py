"""Values from anywhere in a log that a remedy needs: the CUDA versions, the package, a library's folder.

Like names in a line they end up in commands that people paste, so each has a strict pattern. Knows nothing of rules.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from types import MappingProxyType
from typing import NamedTuple

_TOOLKIT, _COMPILER, _NVCC, _TORCH, _DRIVER = "toolkit", "cuda_compiler", "nvcc", "torch", "driver"
_FOUND, _NEWER = "found_toolkit", "newer_toolkit"
_PACKAGE, _CUDNN, _ROCM = "built_package", "cudnn_folder", "rocm_folder"
_PKG_CONFIG = "pkg_config_first"
_CCCL = "cccl_folder"
_COLLECTED, _METADATA = "collected", "metadata"
_REDHAT = "of_redhat"
_IDENTIFIED = "identified_compiler"
_ISOLATED = "isolated_build"

OLD_PIP = "old_pip"
"""What a remedy for something missing begins with if the log says that pip is too old for today's wheels."""


class _Value(NamedTuple):
    """What to search for after a mark, and the kind of value.

    `last`: a later line replaces an earlier one. `behind`: what must precede the mark.
    """

    kind: str
    regex: re.Pattern[bytes]
    last: bool = False
    behind: re.Pattern[bytes] | None = None


_VERSION = rb"(\d{1,2})\.(\d{1,2})(?=[\s.,)\"'])"
_NAME = rb"([A-Za-z0-9][A-Za-z0-9_.-]{0,99}?)"

_OF_TORCH = re.compile(
    rb"(?i:torch(?:audio|vision)?)(?:\.__version__)?['\")]{0,2}[-\s:=(>v]{0,4}(?:version:? )?\d[0-9a-z.]{0,20}\Z"
)
"""Of +cuNNN: other packages have their own, which says nothing of the installed PyTorch."""

_AT_MARGIN = re.compile(rb"[\n\d] {0,20}\Z")
"""Of the second line of a message, in pip's frame or behind docker's seconds."""

_CUDA_FOLDER = re.compile(rb"/cuda-(\d{1,2})\.(\d{1,2})\Z")
"""What precedes the path of nvcc in a command, where the folder has the toolkit's number."""

_AT_BEGIN = re.compile(rb"(?:\A|\n|#\d{1,4} \d{1,6}\.\d{1,4} )\Z")
"""Of what pip collects for the user: the lines of its isolated environments are indented."""

_COMPILER_NAME = re.compile(rb"(?:CXX|C) compiler identification is ((?:GNU|Clang|AppleClang) \d[\d.]{0,12}\d)(?=\s)")
"""What CMake says of the compiler that it found."""

VALUES: Mapping[bytes, _Value] = MappingProxyType(
    {
        b"Cuda compilation tools, release ": _Value(_TOOLKIT, re.compile(rb".{32}" + _VERSION)),
        b"CUDA compiler identification is NVIDIA ": _Value(_COMPILER, re.compile(rb".{39}" + _VERSION)),
        b"Found CUDAToolkit: /": _Value(_FOUND, re.compile(rb".{19}(/usr/local/cuda-(\d{1,2})\.(\d{1,2}))/")),
        b"Found CUDAToolkit: ": _Value(_TOOLKIT, re.compile(rb'[^\n]{0,300}?version "' + _VERSION)),
        b"Found CUDA: ": _Value(_TOOLKIT, re.compile(rb'[^\n]{0,300}?version "' + _VERSION)),
        b"FROM nvidia/cuda:": _Value(_TOOLKIT, re.compile(rb".{17}" + _VERSION)),
        b"cuda-nvcc=": _Value(_TOOLKIT, re.compile(rb".{10}" + _VERSION)),
        b"cuda-nvcc-": _Value(_TOOLKIT, re.compile(rb".{10}" + _VERSION)),
        b"cuda-toolkit=": _Value(_TOOLKIT, re.compile(rb".{13}" + _VERSION)),
        b"The detected CUDA version (": _Value(_TOOLKIT, re.compile(rb".{27}" + _VERSION), last=True),
        b"torch was compiled with ": _Value(_TORCH, re.compile(rb".{24}" + _VERSION), last=True),
        b"compile PyTorch (": _Value(_TORCH, re.compile(rb".{17}" + _VERSION), last=True),
        b"binaries were compiled with Cuda ": _Value(_TORCH, re.compile(rb".{33}" + _VERSION), last=True),
        b"PyTorch (": _Value(_TORCH, re.compile(rb".{9}" + _VERSION), last=True, behind=_AT_MARGIN),
        b"+cu1": _Value(_TORCH, re.compile(rb"\+cu(\d\d)(\d)\b"), behind=_OF_TORCH),
        b"CUDA Version: ": _Value(_DRIVER, re.compile(rb".{14}" + _VERSION)),
        b"Found pkg-config: NO": _Value(_PKG_CONFIG, re.compile(rb"")),
        b"Failed to build `": _Value(_PACKAGE, re.compile(rb".{17}" + _NAME + rb"(?:[=@][^`\n]{0,99})?`"), last=True),
        b"Building wheel for ": _Value(_PACKAGE, re.compile(rb".{19}" + _NAME + rb" \("), last=True),
        b"Failed building wheel for ": _Value(_PACKAGE, re.compile(rb".{26}" + _NAME + rb"(?=\s)"), last=True),
        b"/bin/nvcc ": _Value(_NVCC, re.compile(rb"/bin/nvcc "), behind=_CUDA_FOLDER),
        b"Collecting ": _Value(
            _COLLECTED, re.compile(rb".{11}" + _NAME + rb"(?=[\s=<>!~\[;@])"), last=True, behind=_AT_BEGIN
        ),
        b"error: subprocess-exited-with-error": _Value(_METADATA, re.compile(rb"")),
        b"error: metadata-generation-failed": _Value(_METADATA, re.compile(rb"")),
        b"Complete output from command python setup.py egg_info": _Value(_METADATA, re.compile(rb"")),
        b"/opt/rocm-": _Value(_ROCM, re.compile(rb"(/opt/rocm-\d[\d.]{0,12}\d)(?=[\s/\"':])")),
        b"Installing build dependencies": _Value(_ISOLATED, re.compile(rb"")),
        b"/builds-v0/.tmp": _Value(_ISOLATED, re.compile(rb"")),
        b"/opt/rh/": _Value(_REDHAT, re.compile(rb"/opt/rh/")),
        b"entOS": _Value(_REDHAT, re.compile(rb"entOS")),
        b"@centos": _Value(_REDHAT, re.compile(rb"@centos")),
        b"(Red Hat ": _Value(_REDHAT, re.compile(rb".{9}\d")),
        b"Rocky Linux": _Value(_REDHAT, re.compile(rb"Rocky")),
        b"AlmaLinux": _Value(_REDHAT, re.compile(rb"Alma")),
        b"@rocky": _Value(_REDHAT, re.compile(rb"@rocky")),
        b".el7": _Value(_REDHAT, re.compile(rb"\.el7(?!\d)")),
        b".el8": _Value(_REDHAT, re.compile(rb"\.el8(?!\d)")),
        b".el9": _Value(_REDHAT, re.compile(rb"\.el9(?!\d)")),
        b"C compiler identification is ": _Value(_IDENTIFIED, _COMPILER_NAME),
        b"CXX compiler identification is ": _Value(_IDENTIFIED, _COMPILER_NAME),
        b"You are using pip version ": _Value(OLD_PIP, re.compile(rb".{26}((?:1?\d|20\.[012])(?:\.\d{1,3}){1,2})[,;]")),
        b"/nvidia/cudnn/lib/libcudnn": _Value(_CUDNN, re.compile(rb"/nvidia/cudnn")),
        b"ROCM_PATH=": _Value(
            _ROCM, re.compile(rb".{10}[\"']?((?:/[A-Za-z0-9_.][A-Za-z0-9_.+-]{0,99}){1,12})(?=[\s\"'])")
        ),
    }
)
"""The words that precede each value. They are rare: hardly any compiler command contains them."""

UNKNOWN: Mapping[str, str] = MappingProxyType(
    {
        "cuda_version": "X.Y",
        "cuda_dashed": "X-Y",
        "cuda_major": "X",
        "newest_architecture": "X.Y",
        "newest_number": "XY",
        "usual_architectures": "8.0;9.0",
        "host_gcc": "12",
        "newer_gcc": "apt install g++-13; export CC=gcc-13 CXX=g++-13",
        "newer_binutils": (
            "apt install binutils brings the newest of this distribution, conda install -c conda-forge binutils in the "
            "active environment a newer one"
        ),
        _IDENTIFIED: "",
        "torch_cuda_version": "X.Y",
        "torch_cuda_dashed": "X-Y",
        _PACKAGE: "PACKAGE",
        _CUDNN: "/path/to/cudnn",
        _ROCM: "/opt/rocm",
        _PKG_CONFIG: "",
        _ISOLATED: "",
        _NEWER: "",
        _CCCL: "",
    }
)
"""The places of these values in a remedy, and what to write if the log does not have them."""

_IN_ISOLATION = (
    "This build is isolated: a tool that pip installed outside does not run in it. Take one that is new enough from "
    "apt or conda, first on PATH, or put it into requires under [build-system] of pyproject.toml, or install it and "
    "the others of that list and build with --no-build-isolation. Without isolation: "
)
"""What a remedy that names a tool of pip's begins with if pip or uv builds in an environment of its own."""

_NO_PKG_CONFIG = (
    "pkg-config is missing too, without which Meson finds little: apt install pkg-config (Fedora: dnf install "
    "pkgconf-pkg-config; conda install -c conda-forge pkg-config; macOS: brew install pkgconf). Then: "
)
"""What a remedy of Meson's begins with if the log says that it found none."""

_SINCE_CCCL = 13
"""The first CUDA whose headers of Thrust, CUB and libcu++ lie in a folder of their own."""

_NEWEST = (
    ((12, 9), (12, 1)),
    ((12, 8), (12, 0)),
    ((11, 8), (9, 0)),
    ((11, 4), (8, 7)),
    ((11, 1), (8, 6)),
    ((11, 0), (8, 0)),
    ((10, 0), (7, 5)),
    ((9, 0), (7, 0)),
)
"""The newest architecture that toolkits from a version on can compile for."""

_NEWEST_GCC = (
    ((13, 0), 15),
    ((12, 8), 14),
    ((12, 4), 13),
    ((12, 0), 12),
    ((11, 5), 11),
    ((11, 1), 10),
    ((11, 0), 9),
    ((10, 1), 8),
    ((9, 2), 7),
    ((9, 0), 6),
    ((8, 0), 5),
)
"""The newest GCC that toolkits from a version on take as host compiler (NVIDIA's installation guides)."""

_FIRST_TOOLSET, _LAST_DEVTOOLSET = 9, 11
"""The oldest gcc-toolset of RHEL 8, and the newest devtoolset of RHEL 7."""

_USUAL_GCC = 13
"""The newer GCC that a remedy names if the log's toolkit takes it."""

_USUAL = ((9, 0), (8, 6), (8, 0), (7, 5), (7, 0), (6, 1))
"""Architectures of common GPUs, of which a remedy names two as an example."""

_PIP_FIRST = (
    "pip {} is too old to take today's wheels, so it builds from source: python -m pip install -U pip, then the same "
    "install again; a wheel needs none of this. If there is no wheel: "
)
"""What a remedy begins with if the log says that pip is older than 20.3, which knows every kind of wheel."""

_BEHIND = 400
"""Bytes after a mark that are looked at."""

_BEFORE = 60
"""Bytes before a mark in which the name of its package stands."""

_FOLDER = re.compile(rb"(?:/[A-Za-z0-9_.][A-Za-z0-9_.+-]{0,99}){1,30}\Z")


class LogValues:
    """Collects the values while a log is read."""

    def __init__(self) -> None:
        self._said: dict[str, tuple[str, ...]] = {}

    def learn(self, value: _Value, data: bytes, at: int) -> None:
        """Store the value after a mark that begins at `at`; the first of its kind counts, unless `last`."""
        if value.kind in self._said and not value.last:
            return
        match = value.regex.match(data, at, at + _BEHIND)
        if match is None or (value.behind and not value.behind.search(data, max(0, at - _BEFORE), at)):
            return
        said = match.groups()
        if value.kind == _NVCC and (folder := _CUDA_FOLDER.search(data, max(0, at - _BEFORE), at)):
            said = folder.groups()
        if value.kind == _CUDNN:
            begin = data.rfind(b"\n", max(0, at - _BEHIND), at) + 1
            folder = _FOLDER.search(data, max(begin, at - _BEHIND), at)
            if folder is None or b"/../" in folder[0]:
                return
            said = (folder[0] + match[0],)
        self._said[value.kind] = tuple(part.decode("ascii") for part in said)

    def names(self) -> dict[str, str]:
        """Return what was found, by its place in a remedy.

        If nothing names the toolkit's version, torch's CUDA counts, otherwise the newest that the driver supports.
        """
        names: dict[str, str] = {kind: said[0] for kind, said in self._said.items() if kind in UNKNOWN and said}
        if _PKG_CONFIG in self._said:
            names[_PKG_CONFIG] = _NO_PKG_CONFIG
        if _ISOLATED in self._said:
            names[_ISOLATED] = _IN_ISOLATION
        if OLD_PIP in self._said:
            names[OLD_PIP] = _PIP_FIRST.format(self._said[OLD_PIP][0])
        if _METADATA in self._said and _COLLECTED in self._said:  # it failed before pip built a wheel
            names.setdefault(_PACKAGE, self._said[_COLLECTED][0])
        compiler = self._first(_COMPILER, _TOOLKIT, _NVCC)
        toolkit = compiler or self._first(_TORCH, _DRIVER)
        names |= _architectures(compiler)
        names |= _compilers(compiler, of_redhat=_REDHAT in self._said)
        names |= self._newer_than(compiler)
        if compiler and int(compiler[0]) >= _SINCE_CCCL:
            names[_CCCL] = "include/cccl"
        torch = self._first(_TORCH)
        if toolkit:
            names |= {"cuda_version": ".".join(toolkit), "cuda_dashed": "-".join(toolkit), "cuda_major": toolkit[0]}
        if torch:
            names |= {"torch_cuda_version": ".".join(torch), "torch_cuda_dashed": "-".join(torch)}
        return names

    def _newer_than(self, compiler: tuple[str, ...]) -> dict[str, str]:
        """Return the folder of a toolkit that CMake found, if it is newer than the nvcc that compiles."""
        folder, *version = self._first(_FOUND) or ("",)
        newer = bool(compiler) and [int(part) for part in version] > [int(part) for part in compiler]
        return {_NEWER: folder} if newer else {}

    def _first(self, *kinds: str) -> tuple[str, ...]:
        return next((self._said[kind] for kind in kinds if kind in self._said), ())


def _architectures(toolkit: tuple[str, ...]) -> dict[str, str]:
    """Return what a toolkit can compile for; nothing if its version is not known."""
    version = tuple(int(part) for part in toolkit)
    newest = next((newest for since, newest in _NEWEST if version >= since), None) if toolkit else None
    if newest is None:
        return {}
    names = {"newest_architecture": f"{newest[0]}.{newest[1]}", "newest_number": f"{newest[0]}{newest[1]}"}
    if newest < (9, 0):
        usual = sorted([one for one in _USUAL if one <= newest][:2])
        names["usual_architectures"] = ";".join(f"{major}.{minor}" for major, minor in usual)
    return names


def _compilers(toolkit: tuple[str, ...], *, of_redhat: bool) -> dict[str, str]:
    """Return the newest host compiler that a toolkit takes, and how to install a newer compiler that it takes."""
    version = tuple(int(part) for part in toolkit)
    newest = next((gcc for since, gcc in _NEWEST_GCC if version >= since), None) if toolkit else None
    names = {} if newest is None else {"host_gcc": str(newest)}
    newer = min(newest or _USUAL_GCC, _USUAL_GCC)
    if of_redhat:
        toolset, old = f"gcc-toolset-{max(newer, _FIRST_TOOLSET)}", f"devtoolset-{min(newer, _LAST_DEVTOOLSET)}"
        in_toolset = f"dnf install {toolset} && scl enable {toolset} bash"
        names["newer_gcc"] = (
            f"{in_toolset} (CentOS and RHEL 7: yum install {old}-gcc-c++ && scl enable {old} bash), or conda install "
            f"-c conda-forge gxx={newer}"
        )
        names["newer_binutils"] = (
            f"{in_toolset} brings gcc and binutils that go together (CentOS and RHEL 7: {old}); without root conda "
            "install -c conda-forge gxx binutils"
        )
    elif newer < _USUAL_GCC:
        taken = f"CUDA {'.'.join(toolkit)} takes no newer one"
        names["newer_gcc"] = f"apt install g++-{newer}; export CC=gcc-{newer} CXX=g++-{newer} ({taken})"
    return names
