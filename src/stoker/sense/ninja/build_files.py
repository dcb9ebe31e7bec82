"""Where a ninja build keeps its manifest and its log.

Unaware of their contents, except for a `builddir` at the top of the manifest.
"""

from __future__ import annotations

import os.path
import re

MAX_MANIFEST_HEAD = 1024 * 1024
"""Bytes of build.ninja searched for `builddir`: ninja's manual asks to set it at the top, before any build line."""

_BUILDDIR = re.compile(rb"^builddir[ \t]*=[ \t]*(.*?)[ \t]*\r?$", re.MULTILINE)
_ASSIGNMENT = re.compile(rb"^([\w.-]+)[ \t]*=[ \t]*(.*?)[ \t]*\r?$", re.MULTILINE)
_VARIABLE = re.compile(rb"\$(?:\{([\w.-]+)\}|([\w-]+)|([$ :]))")


def log_path(directory: str, manifest: str = "build.ninja", root: str = "") -> str:
    """Return the .ninja_log of the ninja that runs in `directory`: there, or in the manifest's `builddir`; below
    `root`."""
    return root + os.path.join(directory, build_directory(directory, manifest, root), ".ninja_log")


def is_manifest(output: str, manifest: str) -> bool:
    """Say whether the job that made `output` regenerated the manifest: then ninja's counts and its clock restart."""
    return os.path.normpath(output) == os.path.normpath(manifest)


def build_directory(directory: str, manifest: str = "build.ninja", root: str = "") -> str:
    """Return the manifest's top-level `builddir`, relative to `directory` as it is written there; "" if there is
    none."""
    try:
        with open(root + os.path.join(directory, manifest), "rb") as file:
            head = file.read(MAX_MANIFEST_HEAD)
    except OSError:
        return ""
    if b"builddir" not in head:
        return ""
    head = head.replace(b"$\r\n", b"").replace(b"$\n", b"")
    matches = list(_BUILDDIR.finditer(head))
    if not matches:
        return ""
    variables: dict[bytes, bytes] = {}
    for assignment in _ASSIGNMENT.finditer(head, 0, matches[-1].start()):
        variables[assignment[1]] = _expand(assignment[2], variables)
    return os.fsdecode(_expand(matches[-1][1], variables))


def _expand(value: bytes, variables: dict[bytes, bytes]) -> bytes:
    """Ninja expands a top-level value once, where it stands."""
    return _VARIABLE.sub(lambda m: m[3] if m[3] is not None else variables.get(m[1] or m[2], b""), value)
