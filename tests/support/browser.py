"""A real browser without a screen and without a network: Debian's Chromium, whose every look-up of a name fails."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

CHROMIUM = shutil.which("chromium") or ""

OF_ITS_OWN = "not an origin"
"""How the log names the origin of what no page has asked for."""

PATIENCE = 120
"""Seconds for a page on a busy machine."""


def chromium(folder: Path, page: Path, *flags: str) -> subprocess.CompletedProcess[bytes]:
    """Open a page with these flags; its profile, and the log of what it asked of the network, are in `folder`."""
    return subprocess.run(
        [
            *(CHROMIUM, "--headless=old", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage"),
            *("--no-first-run", "--disable-background-networking", "--disable-component-update", "--disable-sync"),
            *(f"--user-data-dir={folder / 'profile'}", "--host-resolver-rules=MAP * ~NOTFOUND"),
            *(f"--log-net-log={folder / 'net.json'}", "--enable-logging=stderr", "--v=0"),
            *flags,
            page.as_uri(),
        ],
        capture_output=True,
        timeout=PATIENCE,
        check=True,
    )


def asked_of_the_network(folder: Path) -> list[str]:
    """The addresses other than files that the last page asked for."""
    log: dict[str, Any] = json.loads((folder / "net.json").read_text())
    asked = [event.get("params", {}) for event in log["events"]]
    # The browser asks for things of its own, such as the time: those have no page as their origin.
    urls = [str(params.get("url", "")) for params in asked if params.get("initiator") not in (None, OF_ITS_OWN)]
    return [url for url in urls if re.match(r"(?!file:|data:|about:|chrome)\w+:", url)]


def console(done: subprocess.CompletedProcess[bytes]) -> list[str]:
    """What the page wrote on its console, errors of its own included."""
    return [line for line in done.stderr.decode(errors="replace").splitlines() if "CONSOLE" in line]
