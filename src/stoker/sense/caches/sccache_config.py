"""sccache's configuration file: its contents, and the version that makes its server use a scheduler.

sccache reads scheduler and token only from that file. Pure, except for reading it. Unaware of servers.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from stoker.sense.proc.procfs import read_all

MAX_CONFIG = 256 * 1024
"""Bytes of a configuration that are read; a whole one has some 2 KiB."""


class SccacheConfigError(ValueError):
    """The configuration cannot be completed; the message is one line with the remedy."""


def config_path(env: Mapping[str, str]) -> str:
    """Return where sccache looks for its configuration with this environment."""
    home = env.get("XDG_CONFIG_HOME") or os.path.join(env.get("HOME", "/"), ".config")
    return env.get("SCCACHE_CONF") or os.path.join(home, "sccache", "config")


def read_config(env: Mapping[str, str]) -> tuple[str, dict[str, Any]]:
    """Return the configuration as text and parsed; empty if there is none, or none that can be read."""
    path = config_path(env)
    text = (read_all(path, MAX_CONFIG) or b"").decode(errors="replace")
    if not text:
        return "", {}
    import tomllib  # each engine asks before its build starts, and most users have no such file

    try:
        config = json.loads(text) if path.endswith(".json") else tomllib.loads(text)
    except (ValueError, RecursionError):
        return "", {}
    return (text, config) if isinstance(config, dict) else ("", {})


def with_scheduler(env: Mapping[str, str], url: str, token: str) -> str:
    """Return the user's configuration with this scheduler added. Raises SccacheConfigError."""
    text, config = read_config(env)
    path = config_path(env)
    if "dist" in config:
        raise SccacheConfigError(f"{path} has a scheduler of its own, which counts; leave 'dist' out of one of them")
    if text and path.endswith(".json"):
        raise SccacheConfigError(f"{path} is JSON, to which nothing can be added; write it as TOML")
    lines = [text.rstrip(), "[dist]", f"scheduler_url = {_quoted(url)}"]
    if token:
        lines += ["[dist.auth]", 'type = "token"', f"token = {_quoted(token)}"]
    return "\n".join(lines).lstrip() + "\n"


def knows_scheduler(status: str | None) -> bool:
    """Return whether a server is set up to distribute, from the output of `sccache --dist-status`."""
    try:
        said = json.loads(status or "")
    except (ValueError, RecursionError):
        return False
    return isinstance(said, dict) and ("SchedulerStatus" in said or "NotConnected" in said)


def _quoted(text: str) -> str:
    """Return a basic string of TOML: its escapes include JSON's, except those of surrogates and of DEL."""
    return json.dumps(text, ensure_ascii=False).replace("\x7f", "\\u007f")
