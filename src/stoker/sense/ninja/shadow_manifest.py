"""A copy of a ninja manifest with which a dry run touches nothing of the live build.

Unaware of processes. `ninja -n` is not harmless: it writes and deletes response files, reads and deletes the depfiles
of `deps = gcc` rules, truncates a half-written .ninja_deps, and stops at a dyndep file that does not exist yet (seen
with 1.11.1 and 1.13.2). A real ninja next to it would lose dependencies for good. None of these paths is part of a
command's hash, so pointing them elsewhere changes no decision about what is up to date.

Pools are removed: they order edges, which a dry run does not need, and while an edge of the console pool "runs" ninja
keeps only the last line of all that it would print, so most of the plan would be missing.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path

MAX_MANIFEST = 512 * 1024 * 1024
"""Bytes of all manifest files together; the largest known ones (Chromium, Android) have about 100 to 900 MB."""

_INCLUDE = re.compile(rb"(include|subninja)[ \t]+(.*?)[ \t]*\r?$", re.DOTALL)
_BINDING = re.compile(rb"[ \t]+(\w+)[ \t]*=")
_USES_RSPFILE = re.compile(rb"\$rspfile\b|\$\{rspfile\}")
_USES_DEPFILE = re.compile(rb"\$depfile\b|\$\{depfile\}")
_USES_POOL = re.compile(rb"\$pool\b|\$\{pool\}")
_CONSOLE = re.compile(rb"[ \t]+pool[ \t]*=[ \t]*console[ \t]*\r?")
_DYNDEP = re.compile(rb"[ \t]+dyndep[ \t]*=[ \t]*((?:[^$\r\n]|\$[ :$])+?)[ \t]*\r?$")
_ESCAPED = re.compile(rb"\$([ :$])")
_BUILD_WITHOUT_INPUT = re.compile(rb"build[ \t](?:[^$:]|\$.)*:[ \t]*(?!phony[ \t]*\r?$)[\w.-]+[ \t]*\r?$", re.DOTALL)


class ShadowError(Exception):
    """This manifest cannot be copied safely; the message says why."""


class ShadowManifest:
    """Writes the copies into `folder`, which must be empty and private."""

    def __init__(self, directory: Path, manifest: str, folder: Path) -> None:
        self._directory = directory
        self._manifest = manifest
        self._folder = folder
        self._copies: dict[str, Path] = {}
        self._size = 0

    def write(self) -> Path:
        """The manifest to give to `ninja -f`, from the build's own directory. Raises ShadowError.

        The copy is a subninja, so that its own `builddir` binds there for its commands, while ninja itself
        takes the top level's and keeps its logs in `folder`.
        """
        copy = self._copy(self._manifest)
        top = self._folder / "shadow.ninja"
        builddir = _escaped(self._folder, value=True)
        top.write_bytes(b"builddir = %b\nsubninja %b\n" % (builddir, _escaped(copy)))
        return top

    def _copy(self, path: str) -> Path:
        if path in self._copies:
            return self._copies[path]
        target = self._copies[path] = self._folder / f"part{len(self._copies)}.ninja"
        try:
            data = (self._directory / path).read_bytes()
        except OSError as err:
            raise ShadowError(f"cannot read {path}: {err.strerror}") from err
        self._size += len(data)
        if self._size > MAX_MANIFEST:
            raise ShadowError(f"the manifest is larger than {MAX_MANIFEST // 2**20} MiB")
        if _USES_RSPFILE.search(data):
            raise ShadowError(f"commands in {path} use $rspfile, which cannot be pointed elsewhere")
        target.write_bytes(b"\n".join(self._rewritten(data)))
        return target

    def _rewritten(self, data: bytes) -> Iterator[bytes]:
        keep: set[bytes] = {b"depfile"} if _USES_DEPFILE.search(data) else set()
        if _USES_POOL.search(data):  # it must look the same; only the console does harm
            keep.add(b"pool")
        block: list[bytes] = []
        for line in _logical_lines(data):
            if line[:1] in (b" ", b"\t"):
                block.append(line)
                continue
            yield from self._bindings(block, keep)
            block = []
            yield self._statement(line)
        yield from self._bindings(block, keep)

    def _bindings(self, block: list[bytes], keep: set[bytes]) -> Iterator[bytes]:
        """Rewrite the bindings of one rule or edge. A depfile without `deps` stays: ninja only reads it.

        One that commands name as `$depfile` stays too, or they would look changed; `-d keepdepfile` protects it. An
        existing dyndep file stays: its contents decide what is up to date.
        """
        keys = [m[1] if (m := _BINDING.match(line)) else b"" for line in block]
        for key, line in zip(keys, block, strict=True):
            touched = key == b"rspfile" or (key == b"depfile" and b"deps" in keys)
            if touched and key not in keep:
                yield b"  %b = %b" % (key, _escaped(self._folder / key.decode(), value=True))
            elif key == b"dyndep":
                yield from [line] if self._dyndep_exists(line) else []
            elif key != b"pool" or (key in keep and not _CONSOLE.fullmatch(line)):
                yield line

    def _dyndep_exists(self, line: bytes) -> bool:
        match = _DYNDEP.fullmatch(line)
        return match is not None and (self._directory / os.fsdecode(_ESCAPED.sub(rb"\1", match[1]))).exists()

    def _statement(self, line: bytes) -> bytes:
        """Give an edge without inputs an existing, order-only one: `-t compdb` leaves out those without."""
        if line.startswith(b"build") and _BUILD_WITHOUT_INPUT.match(line):
            return line.rstrip() + b" || " + _escaped(self._folder / "shadow.ninja")
        include = _INCLUDE.match(line)
        return self._included(include) if include else line

    def _included(self, match: re.Match[bytes]) -> bytes:
        path = re.sub(rb"\$\r?\n[ \t]*", b"", match[2])
        plain = _ESCAPED.sub(rb"\1", path)
        if re.search(rb"\$[^ :$]", path):
            raise ShadowError(f"it includes {os.fsdecode(path)}, a path with a variable")
        return b"%b %b" % (match[1], _escaped(self._copy(os.fsdecode(plain))))


def _logical_lines(data: bytes) -> Iterator[bytes]:
    """Lines, with those that end in `$` joined to the next as they are written."""
    held: list[bytes] = []
    for line in data.split(b"\n"):
        held.append(line)
        text = line.rstrip(b"\r")
        if (len(text) - len(text.rstrip(b"$"))) % 2 == 0:
            yield b"\n".join(held)
            held = []
    if held:
        yield b"\n".join(held)


def _escaped(path: Path, *, value: bool = False) -> bytes:
    """Escape a path for ninja: `$` first, then the characters that end a path (not needed in a value)."""
    text = os.fsencode(path).replace(b"$", b"$$")
    return text if value else text.replace(b" ", b"$ ").replace(b":", b"$:")
