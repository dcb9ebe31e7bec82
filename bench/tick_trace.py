"""Shows which files and functions one steady tick of the engine enters, with a real ninja whose jobs only sleep.

    python -m bench.tick_trace [--jobs 12] [--ticks 8] [--names]

The engine runs as it always does, with a profiler in it. Calls that come close together are one burst: a tick, or a
shorter answer between two ticks. The figures are those of the median tick.
"""

from __future__ import annotations

import argparse
import os
import runpy
import statistics
import sys
import tempfile
import time
from pathlib import Path
from types import FrameType
from typing import Any

from stoker.act.stop import stop_build
from stoker.contract.spec_file import BuildSpec
from stoker.launch import start as starting
from stoker.launch.request import BuildRequest
from stoker.launch.start import launch
from support.program import PYPI_NINJA

SETTLE_SECONDS = 12.0
"""Until the plan has been made, the first estimates been given, and the newborn jobs been measured."""

PATIENCE = 30.0
"""Seconds beyond that until an engine counts as failed."""

GAP_SECONDS = 0.1
"""Calls that are further apart belong to two bursts."""

SOURCE = f"{os.sep}stoker{os.sep}"


def main() -> None:
    """Trace one build and print what was counted."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--jobs", type=int, default=12, help="sleeping jobs; those beyond the cores wait on deck")
    parser.add_argument("--ticks", type=int, default=8, help="seconds to record")
    parser.add_argument("--names", action="store_true", help="print each function of the median tick")
    args = parser.parse_args()
    bursts = trace(args.jobs, args.ticks)
    ticks = [calls for calls in bursts if len(set(calls)) > max(len(set(calls)) for calls in bursts) // 2]
    tick = sorted(ticks, key=lambda calls: len(set(calls)))[len(ticks) // 2]
    functions = sorted(set(tick))
    files = {function.partition(":")[0] for function in functions}
    calls = statistics.median(len(calls) for calls in ticks)
    print(f"{len(ticks)} ticks: {len(files)} files, {len(functions)} functions, {calls:.0f} calls in the median one")
    if args.names:
        print("\n".join(functions))


def trace(jobs: int, seconds: int) -> list[list[str]]:
    """The calls within stoker by burst, each as `file:function`."""
    with tempfile.TemporaryDirectory(prefix="stoker-bench-") as name:
        folder = Path(name)
        out = folder / "calls"
        manifest = "rule r\n  command = sleep 600; : $out\n" + "".join(f"build o{i}: r\n" for i in range(jobs))
        (folder / "build.ninja").write_text(manifest)
        os.environ.update(XDG_STATE_HOME=name, XDG_RUNTIME_DIR=name, XDG_CONFIG_HOME=name)
        code = f"import sys; sys.path[:0] = {sys.path!r}; from bench.tick_trace import engine; engine()"
        engine = (sys.executable, "-P", "-c", code, str(out), str(seconds))
        spec_of = starting._spec_of  # noqa: SLF001
        starting._spec_of = lambda request, log: spec_of(request, log)._replace(engine=engine)  # noqa: SLF001
        paths = launch(BuildRequest(BuildSpec("trace", str(folder), (PYPI_NINJA, f"-j{jobs}"))))
        try:
            give_up_at = time.monotonic() + SETTLE_SECONDS + seconds + PATIENCE
            while not out.exists() and time.monotonic() < give_up_at:
                time.sleep(0.5)
        finally:
            stop_build(paths, force=True)
            while not paths.exit.exists():
                time.sleep(0.1)
        lines = [line.split(" ", 1) for line in out.read_text().splitlines()]
    bursts: list[list[str]] = []
    last = 0.0
    for at, call in lines:
        if float(at) - last > GAP_SECONDS:
            bursts.append([])
        last = float(at)
        bursts[-1].append(call)
    return bursts


def profiled_engine(out: Path, seconds: float) -> None:
    """Be the engine; write the calls that it makes in so many seconds, once it has settled."""
    begin = time.monotonic() + SETTLE_SECONDS
    calls: list[str] = []

    def note(frame: FrameType, event: str, _arg: Any) -> None:
        now = time.monotonic()
        if event != "call" or now < begin:
            return
        if now > begin + seconds:
            sys.setprofile(None)
            partial = out.with_suffix(".part")
            partial.write_text("\n".join(calls))
            partial.rename(out)
            return
        path = frame.f_code.co_filename
        if SOURCE in path:
            calls.append(f"{now:.3f} {path.rpartition(SOURCE)[2]}:{frame.f_code.co_qualname}")

    sys.setprofile(note)
    runpy.run_module("stoker.engine", run_name="__main__", alter_sys=True)


def engine() -> None:
    """Be what the keeper starts with the arguments OUT SECONDS FOLDER."""
    out, seconds, folder = sys.argv[1:]
    sys.argv = ["engine", folder]
    profiled_engine(Path(out), float(seconds))


if __name__ == "__main__":
    main()
