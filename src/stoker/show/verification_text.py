"""Describes a verification: the verdict in one line, and the lines that end a plain build. Pure.

Knows no screens. The texts contain strings from binaries and drivers: callers must sanitise them.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from stoker.model.report import DeviceReport, FileVerdict, Problem, Report, Severity, Verdict

Standing = Literal["good", "warn", "bad"]

VERDICTS: Mapping[Verdict, str] = {
    "native": "native",
    "ptx-jit": "PTX-JIT: slow first start",
    "part": "runs in part",
    "no": "will not run",
    "none": "nothing to judge",
}
FILE_VERDICTS: Mapping[FileVerdict, str] = {
    "native": "native",
    "ptx-jit": "PTX-JIT",
    "partly": "in part",
    "no": "no",
    "other": "other GPUs",
    "": "no code",
}
SEVERITIES: Mapping[Severity, str] = {"error": "error", "warning": "warning", "info": "note"}
STANDINGS: Mapping[Verdict, Standing] = {
    "native": "good",
    "ptx-jit": "warn",
    "part": "warn",
    "no": "bad",
    "none": "warn",
}

_VERDICT_CLAUSES: Sequence[tuple[Verdict, str]] = (
    ("no", "will not run on"),
    ("part", "runs in part on"),
    ("ptx-jit", "slow first start on"),
    ("native", "runs natively on"),
    ("none", "no device code for"),
)
MAX_NAMES = 3
MAX_LINES = 6
"""Problems listed at the end of a plain build; the others are on the screen and in `status --json`."""


class ProblemGroup(NamedTuple):
    """One problem and all files that have it."""

    severity: Severity
    what: str
    remedy: str
    files: tuple[str, ...]


def headline(report: Report) -> tuple[Standing, str]:
    """Return the verdict in one line, worst news first."""
    clauses = [
        f"{words} {_and_more(_devices(d for d in report.devices if d.verdict == verdict))}"
        for verdict, words in _VERDICT_CLAUSES
        if any(d.verdict == verdict for d in report.devices)
    ]
    missing = [r.arch for r in report.requested if r.state == "missing"]
    if missing:
        clauses.insert(0, f"{_and_more(missing)} asked for and missing")
    errors = sum(g.severity == "error" for g in problem_groups(report))
    if errors and not missing and all(d.verdict != "no" for d in report.devices):
        clauses.insert(0, "1 error" if errors == 1 else f"{errors} errors")
    if not report.devices:
        if report.verdict == "part":
            clauses.append(verdict_reason(report))
        held = list(dict.fromkeys(a.arch for f in report.files for a in f.code))
        asked = " as asked for" if report.requested and all(r.state == "present" for r in report.requested) else ""
        held_text = f"holds {_and_more(held, 8)}{asked}; no GPU here to judge for"
        clauses += [held_text] if held else [_without_code(report)] if report.verdict != "part" else []
    clauses += [report.scope] if report.scope else []
    condition = f", if {report.condition}" if report.condition else ""
    return standing(report), "; ".join(clauses) + condition


def _without_code(report: Report) -> str:
    if report.verdict in ("no", "part"):
        return verdict_reason(report)
    return f"no code for NVIDIA's GPUs: {report.about}" if report.about else "no device code was found"


def verdict_reason(report: Report) -> str:
    """Return the reason for a verdict that is not good: its GPUs, or the first problem of the same severity."""
    if report.verdict not in ("part", "no", "unread"):
        return ""
    devices = [d for d in report.devices if d.verdict == report.verdict]
    if devices:
        alike = [d for d in devices if d.why == devices[0].why]
        more = f" and {len(alike) - 1} more" if len(alike) > 1 else ""
        others = "; for the others see their rows" if len(alike) < len(devices) else ""
        return f"on {device_name(devices[0])}{more}: {devices[0].why}{others}"
    missing = [r.arch for r in report.requested if r.state == "missing"]
    if missing and report.verdict == "no":
        return f"{_and_more(missing)} asked for and missing"
    first = _first_problem(report)
    if first is None:
        return ""
    return f"{short_name(first.file)}: {first.what}" if first.file else first.what


def _first_problem(report: Report) -> Problem | None:
    """Return the problem that decided: an error, or, if it runs in part, a warning about a file that does not load, or
    any if there was no GPU to judge for."""
    if report.verdict != "part":
        return next((p for p in report.problems if p.severity == "error"), None)
    lost = {f.path for f in report.files if not f.loads}
    warnings = [p for p in report.problems if p.severity == "warning"]
    about_lost = [p for p in warnings if p.file in lost]
    return next(iter(about_lost or (warnings if not report.devices else [])), None)


def standing(report: Report) -> Standing:
    """Return "good" if everything runs as it is, "bad" if something does not run at all or is missing, else "warn"."""
    if not report.ok:
        return "bad"
    good = report.verdict != "part" and all(STANDINGS[d.verdict] == "good" for d in report.devices)
    return "good" if good else "warn"


def problem_groups(report: Report) -> list[ProblemGroup]:
    """Return the problems, most severe first, each text once."""
    groups: dict[tuple[Severity, str, str], list[str]] = {}
    for problem in report.problems:
        groups.setdefault((problem.severity, problem.what, problem.remedy), []).append(problem.file)
    return [ProblemGroup(*key, tuple(f for f in files if f)) for key, files in groups.items()]


def problems_of(report: Report, path: str) -> list[Problem]:
    """Return the problems of one file, or of its members; a library's member is named LIBRARY(MEMBER)."""
    return [p for p in report.problems if p.file == path or p.file.startswith(f"{path}(")]


def closing_lines(report: Report) -> list[tuple[Standing, str]]:
    """Return the verdict, its reasons, and the remedies, for the end of a plain build."""
    lines = [headline(report)]
    whys = dict.fromkeys((d.verdict, device_name(d), d.why) for d in report.devices if d.verdict != "native")
    lines += [(STANDINGS[verdict], f"{name}: {VERDICTS[verdict]}: {why}") for verdict, name, why in whys]
    grave = [g for g in problem_groups(report) if g.severity != "info"]
    for group in grave[:MAX_LINES]:
        remedy = f" -> {group.remedy}" if group.remedy else ""
        place = f"{_and_more([short_name(f) for f in group.files])}: " if group.files else ""
        colour: Standing = "bad" if group.severity == "error" else "warn"
        lines.append((colour, f"{SEVERITIES[group.severity]}: {place}{group.what}{remedy}"))
    if len(grave) > MAX_LINES:
        lines.append(("warn", f"and {len(grave) - MAX_LINES} more: see stoker status --json"))
    return lines


def device_name(device: DeviceReport) -> str:
    """Return a GPU's name with its capability, unless the name contains it, as in "compute capability 9.0"."""
    return device.name if device.capability in device.name else f"{device.name} ({device.capability})"


def short_name(path: str) -> str:
    """Return the last part of a path, of a file or of a wheel's member."""
    return path.rpartition("::")[2].rpartition("/")[2] or path


def distinct(report: Report) -> list[tuple[int, DeviceReport, int]]:
    """Return each kind of GPU once: its first index among the devices, the device, and their number."""
    counts = Counter((d.name, d.capability, d.verdict) for d in report.devices)
    first: dict[tuple[str, str, Verdict], tuple[int, DeviceReport]] = {}
    for place, device in enumerate(report.devices):
        first.setdefault((device.name, device.capability, device.verdict), (place, device))
    return [(place, device, counts[key]) for key, (place, device) in first.items()]


def _devices(devices: Iterable[DeviceReport]) -> list[str]:
    counts = Counter(device_name(d) for d in devices)
    return [name if count == 1 else f"{count} {name}" for name, count in counts.items()]


def _and_more(names: Sequence[str], most: int = MAX_NAMES) -> str:
    more = len(names) - most
    return ", ".join(names) if more <= 0 else f"{', '.join(names[:most])} and {more} more"
