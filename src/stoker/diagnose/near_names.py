"""Names from the lines above a failure that its own line does not have: Python's version, the folders searched, the
GPUs that nvcc compiled for, the package whose own code failed, libraries of a link or those that it names too early,
a path that falls apart at a space.

Knows nothing of rules.
Like names in the line they end up in commands that people paste, so each has a strict pattern.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from stoker.diagnose.wrappers import unwrapped

PYTHON, SEARCHED, GPUS, CALLER, FIRST = "python_version", "searched", "gpu_options", "caller", "libraries_first"
SPACED, COPIES, GIVEN = "spaced_path", "copies", "libraries_given"
NEAR_KINDS = (PYTHON, SEARCHED, GPUS, CALLER, FIRST, SPACED, COPIES, GIVEN)

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


def names_near(above: bytes) -> dict[str, str]:
    """Return the names in the lines above a failure; those that are not there are left out."""
    names = {}
    for regex in _PYTHONS:
        if (said := regex.findall(above)) and (last := said[-1].decode()):
            names[PYTHON] = last if "." in last else f"3.{last[1:]}"
            break
    command = next((line for line in reversed(above.split(b"\n")) if _FOLDER.search(line)), b"")
    folders = dict.fromkeys(one for one in _FOLDER.findall(command) if not _OF_OTHERS.search(one))
    if folders:
        names[SEARCHED] = " ".join(one.decode("ascii") for one in list(folders)[:_MOST_FOLDERS])
    if copies := _copies(above):
        names[COPIES] = copies
    if gpus := _gpu_options(above):
        names[GPUS] = gpus
    if early := _libraries_first(above):
        names[FIRST] = early
    if given := _libraries_given(above):
        names[GIVEN] = given
    if spaced := _SPACED.findall(above):
        names[SPACED] = spaced[-1].decode("ascii")
    frames = _FRAME.findall(above)
    if frames and (backend := _BACKENDS.get(frames[-1].decode())):
        names[CALLER] = backend
    return names


def _copies(above: bytes) -> str:
    """Return the folders of copies of other projects in which the last command above searches for headers."""
    command = next((line for line in reversed(above.split(b"\n")) if _COPY.search(line)), b"")
    folders = dict.fromkeys(one.decode("ascii") for one in _COPY.findall(command))
    return " ".join(list(folders)[:_MOST_FOLDERS])


def _gpu_options(above: bytes) -> str:
    """Return the options by which the last command above names its GPUs, as nvcc takes them; empty without one."""
    command = next((line for line in reversed(above.split(b"\n")) if _GPU.search(line)), b"")
    gpus = list(dict.fromkeys((arch or code).decode() for arch, code in _GPU.findall(command)))[:_MOST_GPUS]
    if len(gpus) == 1:
        return f"-arch=sm_{gpus[0]}"
    return " ".join(f"-gencode arch=compute_{gpu},code=sm_{gpu}" for gpu in gpus)


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
