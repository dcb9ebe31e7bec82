"""`python -m stoker.engine FOLDER`: the command by which the supervisor starts an engine."""

from __future__ import annotations

import asyncio
import faulthandler
import gc
import os
import signal
import sys
from pathlib import Path

from stoker.config.paths import BuildPaths
from stoker.contract.strict_json import ContractError


def main() -> None:
    """Run one engine until its build has ended."""
    os.umask(0o077)
    faulthandler.register(signal.SIGQUIT)  # `kill -QUIT PID` writes a stack trace of every thread to engine.log
    # Modules are never garbage: to search them for it takes a tenth of the time to load them, and again later.
    gc.disable()
    from stoker.engine.loop.engine import Engine

    gc.freeze()
    gc.enable()
    try:
        asyncio.run(Engine(BuildPaths(Path(sys.argv[1]))).run())
    except ContractError as err:  # about a damaged file; the next engine reports it again
        sys.exit(str(err))


if __name__ == "__main__":
    main()
