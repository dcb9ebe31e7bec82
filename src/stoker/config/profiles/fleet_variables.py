"""The variables by which ccache, sccache, distcc and icecream learn a profile's settings for other machines.

What the user has set stays. Secrets go from the variable that the profile names to the one that the program reads, and
nowhere else. Unaware of builds, and of how a compiler's launcher is named.
"""

from __future__ import annotations

from collections.abc import Mapping
from urllib.parse import quote, urlsplit

from stoker.config.profiles.fleet import Distcc, Icecream, RemoteCache
from stoker.config.profiles.profile import Profile

DIST_IDLE_SECONDS = 3600
"""How long a server that knows a scheduler waits for work: the next one that a client starts would know none. Links of
ten minutes, after which sccache's server ends by itself, are seen in builds of PyTorch's size."""


def engine_variables(profile: Profile) -> dict[str, str]:
    """Return what distcc or icecream read."""
    if profile.distcc.words:
        return _distcc(profile.distcc)
    return _icecream(profile.icecream) if profile.icecream.scheduler else {}


def _distcc(distcc: Distcc) -> dict[str, str]:
    own = {"DISTCC_HOSTS": " ".join(distcc.words)}
    return own if distcc.fallback else {**own, "DISTCC_FALLBACK": "0"}


def _icecream(icecream: Icecream) -> dict[str, str]:
    own = {"ICECC_SCHEDULER": icecream.scheduler}
    return {**own, "ICECC_VERSION": icecream.environment} if icecream.environment else own


def secret_names(profile: Profile) -> tuple[str, ...]:
    """Return the variables of a person's environment that hold what the profile must not."""
    dist, remote = profile.dist, profile.remote_cache
    names = (
        dist.token_from if dist.scheduler else "",
        *((remote.password_from, remote.token_from) if remote.url else ()),
    )
    return tuple(name for name in names if name)


def remote_cache_variables(remote: RemoteCache, tool: str, environ: Mapping[str, str]) -> dict[str, str]:
    """Return what makes `tool` use the shared cache; secrets that are not in `environ` are left out."""
    if not remote.url:
        return {}
    password, token = (environ.get(name, "") for name in (remote.password_from, remote.token_from))
    if tool == "ccache":
        return _of_ccache(remote, password, token)
    return _of_sccache(remote, password, token)


def _of_ccache(remote: RemoteCache, password: str, token: str) -> dict[str, str]:
    parts = urlsplit(remote.url)
    # redis://PASSWORD@HOST where there is no name: ccache does not log in with an empty one.
    login = ":".join(quote(word, safe="") for word in (remote.username, password) if word) + "@" if password else ""
    url = parts._replace(netloc=f"{login}{parts.netloc}").geturl()
    more = [f"bearer-token={token}"] if token else []
    more += ["read-only=true"] if remote.read_only else []
    return {"CCACHE_REMOTE_STORAGE": "|".join([url, *more])}


def _of_sccache(remote: RemoteCache, password: str, token: str) -> dict[str, str]:
    parts = urlsplit(remote.url)
    if parts.scheme == "s3":
        return _s3(remote, parts.netloc, parts.path.strip("/"))
    kind = "REDIS" if parts.scheme.startswith("redis") else "WEBDAV"
    found = {"ENDPOINT": remote.url, "USERNAME": remote.username, "PASSWORD": password}
    found |= {"TOKEN": token} if kind == "WEBDAV" else {}
    return {f"SCCACHE_{kind}_{name}": value for name, value in found.items() if value}


def _s3(remote: RemoteCache, bucket: str, prefix: str) -> dict[str, str]:
    """Amazon's credentials are where Amazon's own tools look for them."""
    found = {
        "SCCACHE_BUCKET": bucket,
        "SCCACHE_S3_KEY_PREFIX": prefix,
        "SCCACHE_REGION": remote.region,
        "SCCACHE_ENDPOINT": remote.endpoint,
    }
    return {name: value for name, value in found.items() if value}
