"""Checks a profile's keys about other machines and shared caches for contradictions, each error with its remedy.

Checks only the text. Unaware of whether anybody answers.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple
from urllib.parse import urlsplit

from stoker.config.profiles.fleet import Distcc, engine_of, engine_section
from stoker.config.profiles.profile import Profile

HOST = re.compile(
    r"--randomize|--localslots(?:_cpp)?=\d{1,4}|(?!-)[\w@.:\[\]+-]+(?:/\d{1,4})?(?::[\w./+-]+)?(?:,[\w=@./-]+)*",
    re.ASCII,
)
"""A word of DISTCC_HOSTS (distcc(1), "HOST SPECIFICATIONS")."""

SCHEMES = {"ccache": ("redis", "http"), "sccache": ("redis", "rediss", "http", "https", "s3")}
"""Of the addresses of a shared cache, those that each cache speaks (ccache(1), "REMOTE STORAGE BACKENDS"; sccache's
docs/Configuration.md)."""

MAX_HOST = 256
"""Characters of such a word: a host's name has 253 at most."""

_PLACE = re.compile(r"(?!-)[\w.-]{1,253}(?::\d{1,5})?", re.ASCII)
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*", re.ASCII)


class Fault(NamedTuple):
    """What is wrong, and at which key of which section of the profile (none: the section itself)."""

    section: str
    key: str
    text: str


def faults(profile: Profile) -> Iterator[Fault]:
    """Yield what is wrong with these parts of a profile, each with its remedy."""
    yield from _mixtures(profile)
    yield from _hosts(profile.distcc)
    yield from _addresses(profile)
    for section, name in (("dist", "token_from"), ("remote_cache", "password_from"), ("remote_cache", "token_from")):
        value = getattr(getattr(profile, section), name)
        if value and not _VARIABLE.fullmatch(value):  # it may be the secret itself, which is not to be printed
            yield Fault(section, name, f"{name!r} is the name of a variable that holds the secret: export it, name it")


def _mixtures(profile: Profile) -> Iterator[Fault]:
    engine, remote = engine_of(profile.distcc, profile.icecream), profile.remote_cache.url
    if profile.dist.scheduler and profile.cache != "sccache":
        yield Fault("dist", "", "'dist' is sccache's own; write cache: sccache")
    if profile.distcc.words and profile.icecream.scheduler:
        yield Fault("icecream", "", "'distcc' and 'icecream' exclude each other; leave one out")
    if engine and profile.cache == "sccache":
        yield Fault(
            engine_section(engine), "", "sccache calls compilers itself; write cache: ccache, or dist: for sccache"
        )
    if remote and profile.cache == "none":
        yield Fault("remote_cache", "", "'remote_cache' is for a cache; write cache: sccache, or ccache")
    if profile.container.image:
        used = (("dist", profile.dist.scheduler), (engine_section(engine), engine), ("remote_cache", remote))
        for section in (name for name, value in used if value):
            yield Fault(section, "", f"{section!r} does not reach into the container; write it into container.env")


def _hosts(distcc: Distcc) -> Iterator[Fault]:
    for word in distcc.words:
        if len(word) > MAX_HOST or not HOST.fullmatch(word):
            yield Fault(
                "distcc", "hosts", f"{word[:MAX_HOST]!r} is not a distcc host; write build1/16, @build2 or localhost/2"
            )
        elif ",cpp" in word:
            yield Fault("distcc", "hosts", f"{word!r} is for distcc's pump; leave ,cpp out: this machine preprocesses")


def _addresses(profile: Profile) -> Iterator[Fault]:
    dist, icecream, remote = profile.dist, profile.icecream, profile.remote_cache
    if dist.scheduler and (_scheme(dist.scheduler) not in ("http", "https") or "@" in dist.scheduler):
        yield Fault("dist", "scheduler", "'scheduler' is an address like http://10.0.0.5:10600, without a password")
    if icecream.scheduler and not _PLACE.fullmatch(icecream.scheduler):
        yield Fault(
            "icecream", "scheduler", f"'scheduler' is a host like build1 or build1:8765, not {icecream.scheduler!r}"
        )
    if not remote.url:
        return
    if "@" in remote.url:
        yield Fault("remote_cache", "url", "'url' holds a name or password; write username: and password_from: NAME")
        return
    if remote.read_only and profile.cache != "ccache":
        yield Fault("remote_cache", "read_only", "'read_only' is for ccache alone; sccache puts in what it compiles")
    scheme = _scheme(remote.url)
    for tool, known in SCHEMES.items():
        if profile.cache in (tool, "auto") and scheme not in known:
            place = f"{scheme}://" if scheme else repr(remote.url)
            text = f"{tool} cannot use a cache at {place}; it can at {', '.join(known)}"
            yield Fault("remote_cache", "url", text)
            return


def _scheme(url: str) -> str:
    """Return an address' scheme; empty where it names no host."""
    try:
        parts = urlsplit(url)
        _ = parts.port  # looked at only when it is asked for
    except ValueError:
        return ""
    return parts.scheme if parts.hostname else ""
