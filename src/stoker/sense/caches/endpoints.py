"""The shared storage of a compiler cache: from the same variables and files that the caches read.

Names and passwords are dropped when they are read. Unaware of whether anybody answers there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal
from urllib.parse import SplitResult, unquote, urlsplit

from stoker.model.cache_use import CacheTool
from stoker.sense.caches.sccache_config import config_path, read_config

Protocol = Literal["redis", "memcached", "http"]

MAX_ENDPOINTS = 8
"""Of a cluster: probing more than these gives no new information."""

PORTS = {"redis": 6379, "rediss": 6379, "tcp": 11211, "http": 80, "https": 443}
_PROTOCOLS: Mapping[str, Protocol] = {
    "redis": "redis", "rediss": "redis", "tcp": "memcached", "http": "http", "https": "http", "redis+unix": "redis",
    "unix": "redis",
}  # fmt: skip
_AMAZON = "s3.{}amazonaws.com"


@dataclass(frozen=True, slots=True)
class CachePlace:
    """One place. `origin` is the variable or the file that names it; `socket` is a Unix socket's path, otherwise
    empty."""

    tool: CacheTool
    protocol: Protocol
    host: str
    port: int
    origin: str
    tls: bool = False
    socket: str = ""
    path: str = "/"

    @property
    def name(self) -> str:
        """Its usual notation: redis://build1:6379."""
        if self.socket:
            return f"{self.protocol}+unix:{self.socket}"
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"{self.protocol}{'s' if self.tls else ''}://{host}:{self.port}"


def endpoints(env: Mapping[str, str], ccache_storage: str = "") -> tuple[CachePlace, ...]:
    """Return the places that ccache and sccache use with this environment.

    `ccache_storage` is ccache's own report of its remote storage, if it was queried.
    """
    found = [*_of_sccache(env), *_of_ccache(env, ccache_storage)]
    return tuple(dict.fromkeys(found))[:MAX_ENDPOINTS]


def _of_sccache(env: Mapping[str, str]) -> Iterator[CachePlace]:
    if bucket := env.get("SCCACHE_BUCKET", ""):
        at = _s3(
            bucket, env.get("SCCACHE_ENDPOINT", ""), env.get("SCCACHE_REGION", ""), env.get("SCCACHE_S3_USE_SSL", "")
        )
        yield from _endpoint("sccache", at, "SCCACHE_BUCKET")
        return
    variables = (
        *("SCCACHE_REDIS_ENDPOINT", "SCCACHE_REDIS", "SCCACHE_REDIS_CLUSTER_ENDPOINTS"),
        *("SCCACHE_MEMCACHED_ENDPOINT", "SCCACHE_MEMCACHED", "SCCACHE_WEBDAV_ENDPOINT"),
    )
    set_ones = [name for name in variables if env.get(name)]
    for name in set_ones:
        for url in env[name].split(","):
            yield from _endpoint("sccache", url, name)
    if not set_ones:
        yield from _of_sccache_file(env)


def _of_sccache_file(env: Mapping[str, str]) -> Iterator[CachePlace]:
    caches = read_config(env)[1].get("cache")
    if not isinstance(caches, dict):
        return
    for kind in ("s3", "redis", "memcached", "webdav"):
        section = caches.get(kind)
        if isinstance(section, dict):
            for url in _urls(kind, section):
                yield from _endpoint("sccache", url, config_path(env))
            return


def _urls(kind: str, section: Mapping[str, Any]) -> list[str]:
    def text(key: str) -> str:
        value = section.get(key)
        return value if isinstance(value, str) else ""

    if kind == "s3":
        return [_s3(text("bucket"), text("endpoint"), text("region"), str(section.get("use_ssl", "")).lower())]
    return [url for key in ("endpoint", "url", "cluster_endpoints") for url in text(key).split(",") if url]


def _s3(bucket: str, endpoint: str, region: str, tls: str) -> str:
    """Return the address of a bucket; if it has no scheme, sccache uses http if SSL is off; by default it is on."""
    if endpoint:
        scheme = "http" if tls in ("", "false", "0", "off") else "https"
        return endpoint if "://" in endpoint else f"{scheme}://{endpoint}/{bucket}"
    return "https://" + _AMAZON.format(f"{region}." if region and region != "auto" else "") + f"/{bucket}"


def _of_ccache(env: Mapping[str, str], said: str) -> Iterator[CachePlace]:
    name = next((n for n in ("CCACHE_REMOTE_STORAGE", "CCACHE_SECONDARY_STORAGE") if env.get(n)), "")
    text = env[name] if name else said
    for place in text.split():
        yield from _endpoint("ccache", place.partition("|")[0], name or "remote_storage in ccache.conf")


def _endpoint(tool: CacheTool, url: str, origin: str) -> Iterator[CachePlace]:
    """Yield the place that an address names; nothing if it names none, like a folder."""
    url = url.strip()
    parts, port = _split(url if "://" in url or url.startswith(("unix:", "redis+unix:")) else f"redis://{url}")
    protocol = _PROTOCOLS.get(parts.scheme) if parts is not None else None
    if parts is None or protocol is None:
        return
    if "unix" in parts.scheme:
        yield CachePlace(tool, protocol, "", 0, origin, socket=unquote(parts.path))
    elif parts.hostname:
        tls = parts.scheme in ("rediss", "https")
        yield CachePlace(
            tool, protocol, parts.hostname, port or PORTS[parts.scheme], origin, tls=tls, path=parts.path or "/"
        )


def _split(url: str) -> tuple[SplitResult | None, int | None]:
    try:
        parts = urlsplit(url)
        port = parts.port
    except ValueError:
        return None, None
    return parts, port
