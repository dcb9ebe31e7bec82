"""The program's entry point: with too little memory to load the rest it says so, in one line. Stdlib only."""

from __future__ import annotations

import gc
import resource
import sys

LEAST_ADDRESS_SPACE = 64 * 1024 * 1024
"""Bytes of address space (ulimit -v) below which no command gets to work, on Python 3.11. Where exactly it fails, and
with which message, is chance."""


def main() -> int:
    """Run the command line and return the exit status."""
    limit, _ = resource.getrlimit(resource.RLIMIT_AS)
    if limit != resource.RLIM_INFINITY and limit < LEAST_ADDRESS_SPACE:
        print(
            f"stoker: the address space is limited to {limit >> 20} MiB (ulimit -v), too little to run at all; raise "
            "that limit; a build that was started goes on",
            file=sys.stderr,
        )
        return 1
    gc.disable()  # while modules are loaded, which are never garbage: to search them takes a tenth of that time
    from stoker.cli.main import main as run

    return run()
