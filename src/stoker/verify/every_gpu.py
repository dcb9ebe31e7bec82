"""Says whether there is a GPU at all that runs everything, where none was named to judge for. Pure."""

from __future__ import annotations

from collections.abc import Sequence

from stoker.model.report import Problem
from stoker.verify.archs import Arch
from stoker.verify.gpu.devices import CAPABILITIES, Device
from stoker.verify.judge import JudgedFiles, judge_units, tally


def whole_on_none(units: Sequence[JudgedFiles]) -> Problem | None:
    """Return a warning if every GPU lacks the code of some module, with the one that lacks least; None if some GPU runs
    everything, or nothing runs anywhere."""
    files = [file for unit in units for file in unit.files]
    held = {code.arch.capability for file in files for group in file.groups for code in group.codes}
    lacking: list[tuple[int, bool, Problem]] = []
    for capability in sorted(CAPABILITIES, reverse=True):
        device = Device(f"compute capability {Arch(*capability).number}", Arch(*capability))
        report, problems = judge_units(units, device)
        if report.verdict in ("native", "ptx-jit"):
            return None
        warning = next((p for p in problems if p.severity == "warning"), None)
        if report.verdict == "part" and warning is not None:
            lacking.append((sum(tally(file, device).fails for file in files), capability not in held, warning))
    if not lacking:
        return None
    at_best = min(lacking, key=lambda one: one[:2])[2]
    remedy = "compile all sources for the same GPUs; --device GPU judges for one"
    return Problem("warning", at_best.file, f"no GPU runs all of it: at best, {at_best.what}", remedy)
