"""How many jobs other machines will take, as far as that is known before a build: for its schedulers' window.

Unaware of jobs; the real number is tracked while the build runs.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping

MOST_SLOTS = 4096
"""Larger numbers are not believed."""

UNKNOWN_SLOTS = 256
"""Assumed if only a scheduler on the network knows: jobs that are not released cost a MiB each."""

ASK_SECONDS = 5.0
"""distcc searches for hosts by multicast DNS if its list says so, which takes some seconds."""

_LISTS = ("DISTCC_HOSTS", "DISTCC_POTENTIAL_HOSTS")
_CMAKE = tuple(f"CMAKE_{language}_COMPILER_LAUNCHER" for language in ("C", "CXX", "CUDA"))


def remote_slots(environ: Mapping[str, str]) -> int:
    """Return the slots of other machines for a build with this environment; 0 if no remote system is set up."""
    launchers = {os.path.basename(word) for name in _CMAKE for word in environ.get(name, "").split(";")}
    if environ.get("ICECC_SCHEDULER") or "icecc" in launchers:
        return UNKNOWN_SLOTS
    return _distcc(environ) if _lists_hosts(environ) else 0


def _lists_hosts(environ: Mapping[str, str]) -> bool:
    """Say whether the user has named hosts; the system-wide list exists wherever distcc is installed."""
    if any(environ.get(name, "").strip() for name in _LISTS):
        return True
    folder = environ.get("DISTCC_DIR") or os.path.join(environ.get("HOME", ""), ".distcc")
    return os.path.isfile(os.path.join(folder, "hosts"))


def _distcc(environ: Mapping[str, str]) -> int:
    program = shutil.which("distcc", path=environ.get("PATH"))
    if program is None:
        return 0
    try:
        answer = subprocess.run(
            [program, "-j"], env=dict(environ), cwd="/", capture_output=True, timeout=ASK_SECONDS, check=False
        ).stdout
    except (OSError, ValueError, subprocess.TimeoutExpired):
        return 0
    text = answer.strip()
    return min(MOST_SLOTS, int(text)) if text.isdigit() and len(text) < 10 else 0
