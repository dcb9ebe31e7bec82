"""A profile's keys about remote compilation and shared caches. Plain values.

Secrets are never values of a profile: it names the environment variable that holds one. Unaware of which variables the
programs read, and of whether anybody answers.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from stoker.config.profiles.key import key
from stoker.config.profiles.kinds import Cores

Engine = Literal["", "distcc", "icecc"]


@dataclass(frozen=True, slots=True)
class Dist:
    """sccache's own distribution."""

    scheduler: str = key("the address of sccache-dist's scheduler, such as http://10.0.0.5:10600; empty: none", "")
    token_from: str = key("the environment variable with its token", "SCCACHE_DIST_TOKEN")


@dataclass(frozen=True, slots=True)
class Distcc:
    """distcc: C and C++ alone."""

    hosts: tuple[str, ...] = key("as in DISTCC_HOSTS: [build1/16, 'build2/8,lzo', localhost/2]; none: nothing", ())
    preprocess: Cores | None = key("how many preprocessors distcc runs here at once (distcc's default: 8)")
    fallback: bool = key("whether to compile here what no host takes; no: it fails", default=True)

    @property
    def words(self) -> tuple[str, ...]:
        """The hosts; a variable may hold several, with blanks between them."""
        own = tuple(word for text in self.hosts for word in text.split())
        return own if not own or self.preprocess is None else (*own, f"--localslots_cpp={self.preprocess}")


@dataclass(frozen=True, slots=True)
class Icecream:
    """icecream: C and C++ alone. Its daemon runs on this machine already."""

    scheduler: str = key("the host of its scheduler, such as build1 or build1:8765; empty: none", "")
    environment: str = key("a compiler packed by icecc-create-env; otherwise the daemon packs it", "")


@dataclass(frozen=True, slots=True)
class RemoteCache:
    """A cache that several machines share."""

    url: str = key("redis://host:6379, rediss://…, http(s)://host/path, s3://bucket/prefix; empty: none", "")
    username: str = key("for redis and http", "")
    password_from: str = key("the environment variable with the password", "")
    token_from: str = key("for http: the environment variable with a bearer token", "")
    region: str = key("for s3", "")
    endpoint: str = key("for s3 outside Amazon, such as minio:9000", "")
    read_only: bool = key("ccache only: read from it, write nothing to it", default=False)


def engine_of(distcc: Distcc, icecream: Icecream) -> Engine:
    """Return the program that goes before compilers; empty for none."""
    if distcc.words:
        return "distcc"
    return "icecc" if icecream.scheduler else ""


def engine_section(engine: Engine) -> str:
    """Return the key of a profile that is about this program."""
    return "icecream" if engine == "icecc" else engine
