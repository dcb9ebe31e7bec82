"""Decides by name which outputs are the same from build to build, and which belong together. Pure."""

from __future__ import annotations

import re

KEPT_PARTS = 4
"""Number of last parts of an absolute path that identify an output: pip and uv unpack a project to a new place each
time."""

_RANDOM = re.compile(r"\.?tmp.*|pip-.*|build-env-.*|build-via-sdist-.*|\.mesonpy-.*|.*[0-9a-f]{16,}")
"""Folders to which mkdtemp, pip, uv and meson-python give a new name in each build."""

_TRY_COMPILE = re.compile(r"cmTC_[0-9a-f]{5}")
"""CMake's configure checks: each has a target with a random name."""

_STEM = re.compile(r"[^0-9]*")


def lasting_name(output: str) -> str:
    """Return the output's name without the parts that differ between builds: temporary folders and the project's
    location."""
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
    """Return the file's name up to its first digit: flash_bwd_hdim128.o and flash_bwd_hdim256.o share a stem."""
    match = _STEM.match(output.rsplit("/", 1)[-1])
    return match[0] if match else ""
