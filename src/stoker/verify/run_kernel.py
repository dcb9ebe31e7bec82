"""A small matrix product on every GPU, in a subprocess: the last proof. Never raises, never crashes the caller."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from stoker.verify.asking import NoAnswerError, ask
from stoker.verify.report import KernelRun

SECONDS = 180.0
"""A first start that compiles all of torch's PTX took minutes; a hung device takes for ever."""

PROGRAM = Path(__file__).with_name("matmul.py")


def run_kernels(
    python: str, folder: Path | None, environment: Mapping[str, str], seconds: float = SECONDS
) -> tuple[tuple[KernelRun, ...], str]:
    """One run for each device, and why there is none when there is none."""
    try:
        script = PROGRAM.read_text(encoding="utf-8")
        answer = ask(python, script, ["run", str(folder) if folder else ""], environment, seconds)
        runs = tuple(_run(r) for r in answer["runs"])
    except (NoAnswerError, OSError, KeyError, TypeError, ValueError) as err:
        return (), str(err)
    return runs, "" if runs else str(answer.get("error") or "there is no CUDA device")


def _run(data: Any) -> KernelRun:
    return KernelRun(
        str(data["device"]), str(data["capability"]), str(data["how"]), float(data["seconds"]), str(data["error"])
    )
