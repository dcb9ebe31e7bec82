"""`python -m stoker.engine FOLDER`: how the supervisor starts an engine."""

from __future__ import annotations

import asyncio
import faulthandler
import os
import signal
import sys
from pathlib import Path

from stoker.config.paths import BuildPaths
from stoker.engine.loop.engine import Engine


def main() -> None:
    """Run one engine until its build has ended."""
    os.umask(0o077)
    faulthandler.register(signal.SIGQUIT)  # `kill -QUIT PID` writes into engine.log where each thread is
    asyncio.run(Engine(BuildPaths(Path(sys.argv[1]))).run())


if __name__ == "__main__":
    main()
