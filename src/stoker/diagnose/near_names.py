"""Names from the lines above a failure that its own line does not have: Python's version, the folders searched, the
GPUs that nvcc compiled for, the package whose own code failed, libraries of a link or those that it names too early,
a path that falls apart at a space, what kind of compiler or toolkit the last command was, and of which folder.

Knows nothing of rules.
Like names in the line they end up in commands that people paste, so each has a strict pattern.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from itertools import islice

from stoker.diagnose.wrappers import unwrapped

PYTHON, SEARCHED, GPUS, CALLER, FIRST = "python_version", "searched", "gpu_options", "caller", "libraries_first"
SPACED, COPIES, GIVEN = "spaced_path", "copies", "libraries_given"
AMD, AMD_NATIVE, ISOLATED, CONDA, HPC = "amd_target", "amd_native", "isolated_folder", "conda_nvcc", "hpc_sdk"
NEAR_KINDS = (PYTHON, SEARCHED, GPUS, CALLER, FIRST, SPACED, COPIES, GIVEN, AMD, AMD_NATIVE, ISOLATED, CONDA, HPC)

_PYTHONS = (
    re.compile(rb"/include/python(3\.\d{1,2})\b"),
    re.compile(rb"/(?:lib|bin)/python(3\.\d{1,2})\b"),
    re.compile(rb"\bcpython-(3\d{1,2})\b"),
)
"""Where a command names the Python for which it builds, the surest first."""

_FOLDER = re.compile(rb"\s-I ?(/[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}){1,30})/?(?=\s)")
_OF_OTHERS = re.compile(
    rb"\A/usr/(?:local/)?include|\A/usr/lib|/(?:site|dist)-packages/|/include/python3|/cuda(?:-\d|/|\Z)|conda|/envs/|/opt/rocm"
)
"""Folders of the system and of installed packages, which are there."""

_MOST_FOLDERS = 3

_COPY = re.compile(
    rb"\s-(?:I|isystem) ?((?:\.{0,2}/)?(?:[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}/){0,20}"
    rb"(?:third[_-]?party|3rd[_-]?party|vendor(?:ed)?|extern(?:al)?|deps|contrib|bundled|subprojects|libs)"
    rb"(?:/[A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}){1,20})/?(?=\s)"
)
"""Folders in which projects keep copies of other projects."""

_GPU = re.compile(
    rb"\s-arch[= ](?:sm|compute)_(\d{2,3}[af]?)(?=\s)|\bcode=\[?(?:compute_\d{2,3}[af]?,)?sm_(\d{2,3}[af]?)\b"
)
_MOST_GPUS = 8

_LINK = re.compile(rb"(?:: && )?(?:\S{0,200}[/-])?(?:gcc|g\+\+|cc|c\+\+|clang|clang\+\+)(?:-\d{1,2})? ")
_LIBRARY = re.compile(rb"-l[A-Za-z0-9_][A-Za-z0-9_.+-]{0,60}")
_MOST_LIBRARIES = 8
_OF_SYSTEM = (b"-lm", b"-lpthread", b"-ldl", b"-lrt", b"-latomic", b"-lstdc++")
"""Libraries that need none of the others, so that they stand last."""

_SPACED = re.compile(
    rb"\s-c (/[A-Za-z0-9_.+/-]{1,200}+(?<!\.cu)(?<!\.cpp) [A-Za-z0-9_][A-Za-z0-9_.+-]{0,99}+)"
    rb"/[A-Za-z0-9_.+/-]{1,300}\.(?:cu|cpp|cc|c)(?=\s)"
)
"""A path with a space in it, which a command has without quotes."""

_FRAME = re.compile(rb'\bFile "[^"\n]{0,300}?(?:/(?:site|dist)-packages/([A-Za-z0-9_]{1,60})/[^"\n]{1,200})?", line \d')
_BACKENDS = {
    "flit_core": "flit_core",
    "hatchling": "hatchling",
    "mesonpy": "meson-python",
    "pbr": "pbr",
    "scikit_build_core": "scikit-build-core",
    "setuptools_scm": "setuptools-scm",
    "sipbuild": "sip",
    "skbuild": "scikit-build",
}
"""Packages that build others, by their module: none of them calls the project's own code, so they fail by what they
themselves need."""


_AMD = re.compile(
    rb"(?:[\s/]|\A)hipcc(?:\.bin)? |\bamdclang|--offload-arch=gfx|-D__HIP_PLATFORM_AMD__|-DUSE_ROCM\b|\.hip:\d|-x hip "
)
"""What only a command for AMD's GPUs, or a message about one of its sources, contains."""

_NVIDIA = re.compile(rb"\bnvcc |-gencode\b|\.cu(?:\.o\b|\(\d)")
_GFX = re.compile(rb"--offload-arch=(gfx[0-9a-f]{3,5})\b")
_NATIVE = re.compile(rb"--offload-arch=(native)\b")
_PATH = rb"(?:/[A-Za-z0-9_.][A-Za-z0-9_.+-]{0,99})"
_ISOLATED = re.compile(rb"(" + _PATH + rb"{0,10}/(?:pip-build-env-[a-z0-9_]{4,12}|builds-v0/\.tmp\w{1,12}))(?=/)")
_CONDA_NVCC = re.compile(
    rb"(" + _PATH + rb"{0,12}/(?:envs/[A-Za-z0-9_.-]{1,60}|(?:mini|ana)conda\d?|(?:mini|mamba)forge\d?))/bin/nvcc "
)
_HPC_SDK = re.compile(rb"(" + _PATH + rb"{0,10}/hpc_sdk/Linux_(?:x86_64|aarch64)/\d\d\.\d{1,2})(?=[/\s:])")


def names_near(above: bytes, wanted: Iterable[str] = NEAR_KINDS) -> dict[str, str]:
    """Return the wanted names in the lines above a failure; those that are not there are left out."""
    return {name: said for name in wanted if name in _FINDERS and (said := _FINDERS[name](above))}


def _python_version(above: bytes) -> str:
    """Return the version of the Python for which the last command builds, as 3.N."""
    said = next((found[-1].decode() for regex in _PYTHONS if (found := regex.findall(above))), "")
    return said if not said or "." in said else f"3.{said[1:]}"


def _searched(above: bytes) -> str:
    """Return the project's own folders in which the last command above searches for headers."""
    folders = dict.fromkeys(_FOLDER.findall(_last_line_with(_FOLDER, above)))
    return _joined(one for one in folders if not _OF_OTHERS.search(one))


def _copies(above: bytes) -> str:
    """Return the folders of copies of other projects in which the last command above searches for headers."""
    return _joined(dict.fromkeys(_COPY.findall(_last_line_with(_COPY, above))))


def _last_line_with(pattern: re.Pattern[bytes], above: bytes) -> bytes:
    return next((line for line in reversed(above.split(b"\n")) if pattern.search(line)), b"")


def _joined(folders: Iterable[bytes]) -> str:
    return b" ".join(islice(folders, _MOST_FOLDERS)).decode("ascii")


def _gpu_options(above: bytes) -> str:
    """Return the options by which the last command above names its GPUs, as nvcc takes them; empty without one."""
    found = _GPU.findall(_last_line_with(_GPU, above))
    gpus = list(dict.fromkeys((arch or code).decode() for arch, code in found))[:_MOST_GPUS]
    if len(gpus) == 1:
        return f"-arch=sm_{gpus[0]}"
    return " ".join(f"-gencode arch=compute_{gpu},code=sm_{gpu}" for gpu in gpus)


def _spaced_path(above: bytes) -> str:
    """Return the last path above that falls apart at its space."""
    paths = _SPACED.findall(above)
    return paths[-1].decode("ascii") if paths else ""


def _caller(above: bytes) -> str:
    """Return the package whose code the last frame of a traceback is in, if it is one that builds others."""
    frames = _FRAME.findall(above)
    return _BACKENDS.get(frames[-1].decode(), "") if frames else ""


def _links(above: bytes) -> Iterator[bytes]:
    """Yield the links above that name libraries, as their tool wrote them, the last one first."""
    for line in reversed(above.split(b"\n")):
        for part in reversed(line.split(b"\r")) if b" -l" in line else ():
            command = unwrapped(part).strip().encode()
            if _LINK.match(command):
                yield command


def _libraries_first(above: bytes) -> str:
    """Return the -l options of the last link above if all of them precede its objects; empty otherwise."""
    command = next((link for link in _links(above) if b".o" in link), b"").split()
    libraries = [at for at, word in enumerate(command) if word.startswith(b"-l")]
    objects = [at for at, word in enumerate(command) if word.endswith(b".o")]
    if not libraries or not objects or max(libraries) > min(objects):
        return ""
    named = [command[at] for at in libraries if _LIBRARY.fullmatch(command[at])]
    return " ".join(one.decode("ascii") for one in named[:_MOST_LIBRARIES])


def _libraries_given(above: bytes) -> str:
    """Return the -l options of the last link above, the system's last; empty unless it names two of others or more."""
    command = next(_links(above), b"")
    named = list(dict.fromkeys(word for word in command.split() if _LIBRARY.fullmatch(word)))
    own = [one for one in named if one not in _OF_SYSTEM]
    if len(own) < 2 or len(named) > _MOST_LIBRARIES:
        return ""
    return b" ".join((*own, *(one for one in named if one in _OF_SYSTEM))).decode("ascii")


def _amd_target(above: bytes) -> str:
    """Return the AMD GPU for which the last command above compiles, `gfx` if it does not name one; empty if that
    command is not for AMD's GPUs."""
    at = max((match.start() for match in _AMD.finditer(above)), default=-1)
    if at < 0 or _NVIDIA.search(above, at):
        return ""
    found: list[bytes] = _GFX.findall(_last_line_with(_GFX, above))
    return found[0].decode() if found else "gfx"


def _last(pattern: re.Pattern[bytes]) -> Callable[[bytes], str]:
    """Return what finds the last name of a pattern above."""

    def find(above: bytes) -> str:
        found: list[bytes] = pattern.findall(above)
        return found[-1].decode() if found else ""

    return find


_FINDERS: Mapping[str, Callable[[bytes], str]] = {
    PYTHON: _python_version,
    SEARCHED: _searched,
    GPUS: _gpu_options,
    CALLER: _caller,
    FIRST: _libraries_first,
    SPACED: _spaced_path,
    COPIES: _copies,
    GIVEN: _libraries_given,
    AMD: _amd_target,
    AMD_NATIVE: _last(_NATIVE),
    ISOLATED: _last(_ISOLATED),
    CONDA: _last(_CONDA_NVCC),
    HPC: _last(_HPC_SDK),
}
"""How each name is found; empty where it is not there."""
