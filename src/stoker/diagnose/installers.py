"""Recognises which tool installs or builds in a log, and on what system, and words a remedy for it. Knows nothing of
rules or of reading logs."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from types import MappingProxyType

UV = "uv"
POETRY = "poetry"
NIX = "nix"
BAZEL = "bazel"
TOOLS = (UV, POETRY, NIX, BAZEL)

MARKS: Mapping[bytes, str] = MappingProxyType(
    {
        b"uv/builds-v0/": UV,
        b"Failed to build `": UV,
        b"Failed to download and build `": UV,
        b"Creating virtual environment at: .venv": UV,
        b"not a problem with poetry": POETRY,
        b"ChefBuildError": POETRY,
        b"ChefInstallError": POETRY,
        b"Running phase: ": NIX,
        b"error: builder for '/nix/store/": NIX,
        b"error: Cannot build '/nix/store/": NIX,
        b"INFO: Analyzed ": BAZEL,
        b"ERROR: Build did NOT complete successfully": BAZEL,
        b"ERROR: Build failed. Not running target": BAZEL,
        b"/.cache/bazel/_bazel_": BAZEL,
    }
)
"""Words that no other tool prints, and the tool. pip has none, because remedies are worded for pip."""

IMAGE_MARKS = (
    b"load build definition from",
    b"Sending build context to Docker",
    b"did not complete successfully: exit code",
    b"Step 1/",
    b"STEP 1/",
    b"STEP 2/",
)
"""Words of docker, podman and buildah when they build an image."""

_IN_IMAGE = " In a Dockerfile write ENV NAME=VALUE instead of export, which ends with its RUN."

DNF, APK, APT, CLUSTER = "of_dnf", "of_apk", "of_apt", "on_cluster"
SYSTEMS: Mapping[bytes, str] = MappingProxyType(
    {
        **dict.fromkeys((b"dnf install", b"yum install", b"microdnf ", b".el8", b".el9", b".el10"), DNF),
        **dict.fromkeys((b"(Red Hat ", b"FROM rockylinux", b"FROM almalinux", b"FROM fedora", b"Rocky Linux"), DNF),
        **dict.fromkeys((b"apk add", b"-alpine-linux-musl", b"fetch https://dl-cdn.alpinelinux.org"), APK),
        **dict.fromkeys((b"apt-get ", b"apt install", b"apt update", b"dpkg", b"Ubuntu ", b"(Debian "), APT),
        **dict.fromkeys(
            (b"srun: ", b"$ srun ", b"slurmstepd", b"salloc: ", b"sbatch ", b"Submitted batch job "), CLUSTER
        ),
        **dict.fromkeys((b"#SBATCH ", b"module load "), CLUSTER),
    }
)
"""Words that show the package manager of the machine that builds, or that it belongs to a cluster."""

_LISTED = re.compile(r"apt install ([^();]{1,200}) \(((?:[^()]|\([^()]{0,100}\)){1,600})\)")
_OF = MappingProxyType(
    {
        DNF: re.compile(r"(?:\A|; )Fedora: (dnf install [^;()]{1,200})(?=;|\Z)"),
        APK: re.compile(r"(?:\A|; )Alpine: (apk add [^;()]{1,200})(?=;|\Z)"),
    }
)
"""Where a list of package managers names the one of another distribution."""

_ROOT = re.compile(r"\b(?:apt|dnf) install\b")
_WITHOUT_ROOT = (
    "On a cluster, where one is not root, look for a module first (module avail, module spider NAME, then module load; "
    "conda install -c conda-forge brings most as well). "
)

_INSTALLS: Mapping[str, str] = MappingProxyType({UV: "uv pip install", POETRY: "poetry run python -m pip install"})
"""What replaces `pip install` in the project's environment; uv's environments contain no pip."""

_IN_DERIVATION = (
    "In a Nix derivation nothing can be installed: add it to nativeBuildInputs (a program), buildInputs (a library), "
    "or build-system and dependencies (a Python package). Elsewhere: "
)
_INSTALL = re.compile(r"\b(?:apt|pip|dnf|conda|brew) install\b")

_CONSTRAINTS = "PIP_CONSTRAINT=$PWD/constraint.txt PIP_BUILD_CONSTRAINT=$PWD/constraint.txt"
"""Versions for an isolated build: older versions of pip (23) read the first variable, newer ones (26) the second."""

_UV_CONSTRAINTS = "UV_BUILD_CONSTRAINT=$PWD/constraint.txt"

_PIP = re.compile(r"(?<![\w-])(?<!uv )(?:python3? -m )?pip install(?! -U pip\b)")


def spoken(remedy: str, installer: str, *, in_image: bool = False) -> str:
    """Return the remedy with pip's commands replaced by those of the log's installer, and a word on variables in an
    image's build.
    """
    if in_image and re.search(r"\bexport [A-Z]", remedy) and not re.search(r"\bENV\b", remedy):
        remedy += _IN_IMAGE
    install = _INSTALLS.get(installer)
    if installer == UV:
        remedy = remedy.replace(_CONSTRAINTS, _UV_CONSTRAINTS)
    if installer == NIX and _INSTALL.search(remedy):
        return f"{_IN_DERIVATION}{remedy}"
    return _PIP.sub(install, remedy) if install else remedy


def for_system(remedy: str, said: Collection[str]) -> str:
    """Return the remedy with the package manager of the log's machine first, and modules before it on a cluster.

    A log that shows several (a container on another distribution) decides nothing.
    """
    managers = [one for one in (DNF, APK, APT) if one in said]
    own = _OF.get(managers[0]) if len(managers) == 1 else None
    if own is not None:
        remedy = _LISTED.sub(lambda listed: _first_of(listed, own), remedy)
    needs_root = CLUSTER in said and _ROOT.search(remedy) and "module avail" not in remedy
    return f"{_WITHOUT_ROOT}{remedy}" if needs_root else remedy


def _first_of(listed: re.Match[str], own: re.Pattern[str]) -> str:
    """Return a list of package managers with one of them first, as it is if that is not among them."""
    found = own.search(listed[2])
    if found is None:
        return listed[0]
    others = f"{listed[2][: found.start()]}{listed[2][found.end() :]}".removeprefix("; ")
    return f"{found[1]} (Debian, Ubuntu: apt install {listed[1]}{'; ' * bool(others)}{others})"
