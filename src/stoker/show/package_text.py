"""Renders the result of packaging a wheel, and its verification, as plain text. Does not know how it was done."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence

from stoker.model.packaged import Packaged, PackagedFile
from stoker.model.text import clean
from stoker.model.units import format_bytes
from stoker.show.report_text import WIDTH, render

_MAX_GROUPS = 12
_MAX_NAMES = 3
_INDENT = 10
_GREEN, _BOLD, _PLAIN = "\x1b[32m", "\x1b[1m", "\x1b[0m"


def render_packaged(packaged: Packaged, width: int = WIDTH, *, colour: bool = False) -> str:
    """Return the whole page, which ends with a newline and is safe to print on a terminal."""
    rows = [
        ("Wheel", [packaged.output]),
        ("Tag", _tag(packaged)),
        ("Size", [_size(packaged)]),
        ("Requires", [*_requires(packaged)] or ["no additional package"]),
        ("Vendored", [*_vendored(packaged)] or ["nothing"]),
        ("RPATH", [*_rpaths(packaged.files)]),
        ("GPUs", _gpus(packaged)),
    ]
    lines = []
    for title, texts in rows:
        for number, text in enumerate(texts):
            label = (title if number == 0 else "").ljust(_INDENT)
            first, *more = textwrap.wrap(
                clean(text), max(40, width - _INDENT), break_long_words=False, break_on_hyphens=False
            ) or [""]
            inked = f"{_BOLD}{label}{_PLAIN}" if colour and number == 0 else label
            lines.append(f"{inked}{_GREEN}{first}{_PLAIN}" if colour and title == "Wheel" else f"{inked}{first}")
            lines += [" " * (_INDENT + 2) + line for line in more]
    return "\n".join(lines) + "\n\n" + render(packaged.verification, width, colour=colour)


def _tag(packaged: Packaged) -> list[str]:
    change = f"{packaged.tag_before} -> {packaged.tag}  ({packaged.mode} mode)"
    return [change, *(f"{r.who}: {r.tag or 'newer than any manylinux tag'}" for r in packaged.tag_reasons)]


def _size(packaged: Packaged) -> str:
    packed = f"{format_bytes(packaged.size_before)} -> {format_bytes(packaged.size)}"
    return f"{packed}; unpacked {format_bytes(packaged.unpacked_before)} -> {format_bytes(packaged.unpacked)}"


def _requires(packaged: Packaged) -> Iterable[str]:
    for pin in packaged.requires:
        yield f"{pin.requirement}  for {_few(pin.libraries)}"
    for line in packaged.dropped:
        yield f"no longer {line}"


def _vendored(packaged: Packaged) -> Iterable[str]:
    for copy in packaged.vendored:
        yield f"{copy.path}  {format_bytes(copy.size)}, from {copy.source}"
    for text in packaged.left_out:
        yield f"left out {text}"


def _rpaths(files: Sequence[PackagedFile]) -> Iterable[str]:
    """Yield one entry per change, however many files it affects."""
    groups: dict[tuple[tuple[str, ...], tuple[str, ...]], list[str]] = {}
    for file in files:
        groups.setdefault((file.rpath_before, file.rpath), []).append(file.path)
    for (before, after), paths in list(groups.items())[:_MAX_GROUPS]:
        was = "" if before == after else f", was {':'.join(before) or 'none'}"
        yield f"{_few(paths)}: {':'.join(after) or 'none'}{was}"
    if len(groups) > _MAX_GROUPS:
        yield f"and {len(groups) - _MAX_GROUPS} more: see --json"


def _gpus(packaged: Packaged) -> list[str]:
    gpus = packaged.gpus
    rows = (("run", gpus.native), ("run, slow first start", gpus.ptx_jit), ("run in part", gpus.part))
    texts = [f"{what}: {' '.join(names)}" for what, names in rows if names]
    return texts or ["no device code of its own: it needs none, or leaves that to the libraries"]


def _few(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMES} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more
