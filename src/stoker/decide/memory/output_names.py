"""Which outputs are one and the same from build to build, and which belong together. Pure, on names."""

from __future__ import annotations

import re

KEPT_PARTS = 4
"""Last parts of an absolute path that name an output: pip and uv unpack a project somewhere else each time."""

_RANDOM = re.compile(r"\.?tmp.*|pip-.*|build-env-.*|build-via-sdist-.*|\.mesonpy-.*|.*[0-9a-f]{16,}")
"""Folders that mkdtemp, pip, uv and meson-python make up anew for each build."""

_TRY_COMPILE = re.compile(r"cmTC_[0-9a-f]{5}")
"""CMake's configure checks: a target of a random name each."""

_STEM = re.compile(r"[^0-9]*")


def lasting_name(output: str) -> str:
    """Return the output's name without what differs from build to build: temporary folders, and where the project
    lies."""
    if "cmTC_" in output:
        output = _TRY_COMPILE.sub("cmTC", output)
    *folders, file = output.split("/")
    if output.startswith("/"):
        made_up = [place for place, folder in enumerate(folders) if _RANDOM.fullmatch(folder)]
        kept = folders[made_up[-1] + 1 if made_up else 1 :][-(KEPT_PARTS - 1) :]
    else:
        kept = [folder for folder in folders if not _RANDOM.fullmatch(folder)]
    return "/".join((*kept, file))


def stem(output: str) -> str:
    """Return the file's name up to its first digit: flash_bwd_hdim128.o and flash_bwd_hdim256.o have one stem."""
    match = _STEM.match(output.rsplit("/", 1)[-1])
    return match[0] if match else ""
