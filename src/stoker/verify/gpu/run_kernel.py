"""Runs a small matrix product on every GPU, in a subprocess, as the final proof. Never raises, never crashes the
caller."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from stoker.model.report import KernelRun
from stoker.verify.python_probe import NoProbeAnswerError, hear

SECONDS = 180.0
"""A first start that compiles all of torch's PTX took minutes; a hung device takes forever."""

BUSY, SKIPPED = "is busy; not tested", "was not tested"
"""Begin the error of a run that did not take place."""

PROGRAM = Path(__file__).with_name("matmul.py")


def run_kernels(
    python: str, folder: Path | None, environment: Mapping[str, str], seconds: float = SECONDS
) -> tuple[tuple[KernelRun, ...], str]:
    """Return one run for each device; if there are none, why.

    If the subprocess dies or runs out of time, that is the result of the device that it was testing.
    """
    try:
        script = PROGRAM.read_text(encoding="utf-8")
        facts, ended = hear(python, script, ["run", str(folder) if folder else ""], environment, seconds)
        runs, why = _runs(facts, ended)
    except (NoProbeAnswerError, OSError) as err:
        return (), str(err)
    except (AttributeError, KeyError, TypeError, ValueError):
        return (), "its answer is invalid"
    return runs, "" if runs else why


def untested(run: KernelRun) -> bool:
    """Whether the error says nothing about device or code, because nothing was run."""
    return run.error.startswith((BUSY, SKIPPED))


def _runs(facts: Sequence[Any], ended: str) -> tuple[tuple[KernelRun, ...], str]:
    runs: list[KernelRun] = []
    place: Any = None
    why = ended
    for fact in facts:
        if "starting" in fact:
            place = fact["starting"]
        elif "run" in fact:
            runs.append(_run(fact["run"], _error(fact["run"])))
            place = None
        elif "done" in fact:
            why = str(fact["done"]) or "there is no CUDA device"
    if place is not None:
        runs.append(_run(place, ended))
        for index in range(int(place["index"]) + 1, int(place["count"])):
            after = {**place, "device": f"GPU {index}", "capability": ""}
            runs.append(_run(after, f"{SKIPPED}, since the run ended at GPU {place['index']}"))
    return tuple(runs), why


def _error(run: Any) -> str:
    return f"{BUSY} ({run['error']})" if run["busy"] else str(run["error"])


def _run(place: Any, error: str) -> KernelRun:
    seconds = float(place.get("seconds", 0.0))
    return KernelRun(str(place["device"]), str(place["capability"]), str(place["how"]), seconds, error)
