"""Runs `plan_maker` in a separate process to make a plan, so that this one stays small. Unaware of the graph."""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
from dataclasses import asdict, dataclass
from pathlib import Path

from stoker.sense.ninja.plan import Plan, graph_path, table_path

PLAN_TIMEOUT = 240
"""Seconds for a plan. PyTorch's takes a few, 100,000 edges some 20 of CPU: at the lowest priority next to compilers on
every core, that is several times as long."""


@dataclass(frozen=True, slots=True)
class PlanRequest:
    """A ninja at work: its executable, where and on what it runs, and since when (Unix seconds).

    `inside` is its pid where these are paths that only it sees, in a container; else 0.
    """

    exe: str
    directory: str
    manifest: str
    targets: tuple[str, ...]
    started: float
    inside: int = 0


async def make_plan(request: PlanRequest, path: Path, limit: float = PLAN_TIMEOUT) -> tuple[Plan | None, str]:
    """Make a plan in a process of low priority, write it to `path`, and load it. The text says why there is none.

    `limit` is in seconds. A plan may have a note of its own (`summary.note`) and no total. Cancelling ends the process.
    """
    spec, work = path.with_name(path.name + ".spec"), path.with_name(path.name + ".work")
    problem = ""
    try:
        # An earlier plan may still be in use: unlink its files, which stay mapped. Overwriting would truncate them.
        for old in (path, table_path(path), graph_path(path)):
            old.unlink(missing_ok=True)
        work.mkdir(mode=0o700)
        spec.write_text(json.dumps({**asdict(request), "work": str(work), "timeout": limit}))
        problem = await _run(spec, path, limit + 5)
    except OSError as err:
        problem = f"{err.filename}: {err.strerror}" if err.filename else f"{err.strerror} (ulimit -u, pids.max)"
    finally:
        shutil.rmtree(work, ignore_errors=True)
        spec.unlink(missing_ok=True)
    plan = None if problem else Plan.load(path)
    if plan is None:
        return None, f"no plan for {request.directory}: {problem or 'it was not written'}"
    return plan, plan.summary.note


async def _run(spec: Path, path: Path, limit: float) -> str:
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", "stoker.sense.ninja.plan_maker", str(spec), str(path)),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.DEVNULL,
        stderr=asyncio.subprocess.PIPE,
        start_new_session=True,
    )
    try:
        _, err = await asyncio.wait_for(process.communicate(), limit)
    except TimeoutError:
        return f"not done within {limit:.0f} s"
    finally:
        if process.returncode is None:
            with contextlib.suppress(ProcessLookupError):
                os.killpg(process.pid, signal.SIGKILL)
            await process.wait()
    lines = err.decode(errors="replace").strip().splitlines()
    return "" if process.returncode == 0 else (lines[-1] if lines else f"status {process.returncode}")
