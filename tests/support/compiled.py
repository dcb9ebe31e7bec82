"""Small libraries that many tests link alike: the compiler makes each of them once in a worker of pytest."""

from __future__ import annotations

import hashlib
import os
import re
import subprocess
from collections.abc import Sequence
from pathlib import Path

_PATH = re.compile("(?:^|[=,L])/")
"""A path in a compiler's option: nobody knows what it reads there."""

_made: dict[tuple[str, ...], bytes] = {}


def compile_to(target: Path, source: str, command: Sequence[str], *arguments: str) -> None:
    """Have a compiler read `source` and write `target`, unless it has done the same before.

    It is the same if words and source are, and what is in the files that are named by their paths. What depends on
    where files are, as a library does that was linked with one without a soname, is made each time.
    """
    target.parent.mkdir(parents=True, exist_ok=True)
    files = [word for word in arguments if os.path.isfile(word)]
    words = [_digest(word) if word in files else word for word in arguments]
    key = (source, *command, *words)
    if key not in _made:
        call = [*command, "-", "-o", str(target), "-x", "none", *arguments]
        subprocess.run(call, input=source.encode(), check=True, capture_output=True)
        made = target.read_bytes()
        if not any(_PATH.search(word) for word in words) and not any(os.fsencode(file) in made for file in files):
            _made[key] = made
    else:
        target.write_bytes(_made[key])
        target.chmod(0o755)


def _digest(file: str) -> str:
    return hashlib.sha256(Path(file).read_bytes()).hexdigest()
