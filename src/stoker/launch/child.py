"""Starts a module of this program in a process of its own, for a screen that asks it one thing.

Knows neither what is asked nor how it is answered.
"""

import asyncio
import sys
from asyncio.subprocess import DEVNULL, PIPE, Process


async def start_child(module: str, max_answer: int) -> Process:
    """Start `python -m module` with pipes as its stdin and stdout; lines of up to `max_answer` bytes are read.

    The screen's terminal and signals do not reach it. Raises OSError.
    """
    return await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", module),  # -P: the working folder must not shadow our modules
        stdin=PIPE,
        stdout=PIPE,
        stderr=DEVNULL,
        start_new_session=True,
        cwd="/",  # ours may be gone; the build has its own
        limit=max_answer,
    )
