"""Removes what wrappers put before a tool's own line: CI services, containers, package managers, mails, timestamps.

Knows nothing of what tools print.
"""

from __future__ import annotations

import functools
import re

from stoker.model.text import clean

_CLOCK = r"\d\d:\d\d:\d\d(?:[.,]\d{1,9})?"
_TIME = rf"\d{{4}}-\d\d-\d\d[T ]{_CLOCK}(?:Z|[ ]?[+-]\d\d:?\d\d)?"

_WRAPPERS = (
    r"#\d{1,6} (?:\d{1,7}\.\d{1,6} )?",  # docker build: step, seconds
    r"\d{1,7}\.\d{2,6} ",  # docker build: seconds, when it repeats what failed
    rf"{_TIME}(?: \d\d[OE]\+?)? ",  # GitHub Actions, GitLab, ts
    rf"\[(?:{_TIME}|{_CLOCK}|[A-Z][a-z]{{2}} [A-Z][a-z]{{2}} [\d :]{{13,20}})\] ?",  # Jenkins, `[date]`
    rf"{_CLOCK} ",  # Jenkins' timestamper
    rf"[A-Z][a-z]{{2}} [\d ]\d {_CLOCK} ",  # syslog, journald
    r"[\w.-]{1,80} [\w@.:\\-]{1,100}\[\d{1,10}\]: ",  # their host and unit
    r"[A-Za-z][\w.-]{0,80} {1,40}\| ",  # docker compose: the service
    r"[A-Za-z][\w.+-]{0,100}> ",  # nix build -L: the derivation
    r">> {1,6}\d{1,8} {2,6}|\d{1,8} {4}",  # spack: the line of its log
    r"> ",  # quoted; nix's last lines
    r"\| ",  # bitbake
    r"\[(?!end of output\])[A-Za-z][\w. -]{0,60}\] ",  # a parallel stage; an editor's terminal; not pip's own line
    r"##\[error\]|::error::",  # GitHub Actions
)
_WRAPPER = re.compile("|".join(_WRAPPERS))
_GH = re.compile(rb"[^\t\r\n]{1,100}\t[^\t\r\n]{1,100}\t(?=(?:\xef\xbb\xbf)?\d{4}-\d\d-\d\dT)")
"""`gh run view --log`: the names of job and step."""

_LAYERS = 5
"""Wrappers around each other: a quoted journal of a container's build has four."""

_SPACE = re.compile(r"\s{0,200}+")
_MAX_PREFIX = 250
_DIGITS = bytes.maketrans(b"0123456789", b"0" * 10)


def unwrapped(raw: bytes) -> str:
    """Return a line as its tool wrote it, made harmless, with the tool's own indentation."""
    gh = _GH.match(raw)
    raw = raw[gh.end() :] if gh else raw
    return _within(clean(raw, 2 * len(raw) + 1).rstrip() + " ").rstrip()


def is_wrapper(prefix: bytes) -> bool:
    """Return whether this is nothing but wrappers and spaces."""
    return not prefix.strip() or (len(prefix) <= _MAX_PREFIX and _is_wrapper(prefix.translate(_DIGITS)))


@functools.lru_cache(1024)
def _is_wrapper(prefix: bytes) -> bool:
    return unwrapped(prefix + b"~").strip() == "~"


def _within(text: str) -> str:
    for _ in range(_LAYERS):
        indent = _SPACE.match(text)
        wrapper = _WRAPPER.match(text, indent.end() if indent else 0)
        if not wrapper:
            break
        text = text[wrapper.end() :]
    return text
