"""Recognises which tool installs or builds in a log, and words a remedy for it. Knows nothing of rules or of reading
logs."""

from __future__ import annotations

import re
from collections.abc import Mapping
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
