"""The details of one row of the verification screen, as lines. Pure.

Knows neither the list above it nor Textual.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from stoker.model.report import DeviceReport, FileReport, Report, RequestState
from stoker.model.text import clean
from stoker.model.units import format_bytes
from stoker.show.tui.pages.lines import Line, Part, pad, section, wrap
from stoker.show.tui.terminal.glyphs import Glyphs
from stoker.show.verification_text import (
    SEVERITIES,
    VERDICTS,
    ProblemGroup,
    device_name,
    distinct,
    problem_groups,
    problems_of,
    short_name,
)

MAX_LINES = 12
"""Maximum lines of one text: a list of file names may be long."""

MAX_TEXT = 2000
LABEL = 9
_SEVERITY_INKS = {"error": "error", "warning": "warn", "info": "text_dim"}
_FILE_WORDS = {
    "native": "runs as it is",
    "ptx-jit": "compiled by the driver at the first start, which is slow once",
    "partly": "runs in part: some of its kernels have no code for it",
    "no": "will not run",
    "other": "holds code for other GPUs only",
    "": "holds no device code",
}


@dataclass(frozen=True, slots=True)
class DeviceRow:
    """A row: one kind of GPU."""

    device: DeviceReport
    count: int


@dataclass(frozen=True, slots=True)
class ArchRow:
    """A row: an architecture, whether it was requested, the code for it, and whether torch lists it (None: unknown)."""

    name: str
    state: RequestState | None
    bytes: int
    files: int
    torch: bool | None


Picked = DeviceRow | ArchRow | ProblemGroup | FileReport


def details(picked: Picked, report: Report, width: int, g: Glyphs) -> list[Line]:
    """Return a heading and all details."""
    if isinstance(picked, DeviceRow):
        return [section(_title(device_name(picked.device)), width, g), *_device(picked, report, width)]
    if isinstance(picked, ArchRow):
        return [section(_title(picked.name), width, g), *_arch(picked, report, width)]
    if isinstance(picked, ProblemGroup):
        return [section(SEVERITIES[picked.severity], width, g), *_problem(picked, width)]
    return [section(_title(short_name(picked.path)), width, g), *_file(picked, report, width)]


def _title(text: str) -> str:
    return clean(text, 40)


def _row(label: str, text: str, width: int, ink: str = "text") -> list[Line]:
    """Return a labelled, wrapped text."""
    first, *rest = wrap(clean(text, MAX_TEXT), max(10, width - LABEL), MAX_LINES) or [""]
    head: Line = (Part(pad(label, LABEL), "text_dim"), Part(first, ink))
    return [head, *((Part(" " * LABEL), Part(piece, ink)) for piece in rest)]


def _rows(label: str, texts: Iterable[str], width: int) -> list[Line]:
    return [line for i, text in enumerate(texts) for line in _row(label if i == 0 else "", text, width)]


def _device(picked: DeviceRow, report: Report, width: int) -> list[Line]:
    device = picked.device
    lines = _row("verdict", f"{VERDICTS[device.verdict]}: {device.why}", width)
    facts = [f"{picked.count} of them"] if picked.count > 1 else []
    facts += [f"{format_bytes(device.memory)} of memory"] if device.memory else []
    facts += [f"driver {device.driver}"] if device.driver else []
    facts += [f"up to CUDA {device.cuda}"] if device.cuda else []
    if facts:
        lines += _row("has", ", ".join(facts), width)
    for group in problem_groups(report):
        if device.name and device.name in group.what and group.severity != "info":
            lines += _problem(group, width)
    return lines


def _arch(picked: ArchRow, report: Report, width: int) -> list[Line]:
    asked = {
        "present": "asked for and present",
        "missing": "asked for, but in no file",
        "extra": "not asked for",
        None: "not asked for" if report.requested else "nothing was asked for: TORCH_CUDA_ARCH_LIST was not set",
    }[picked.state]
    lines = _row("asked", asked, width)
    if picked.torch is not None:
        lines += _row("torch", "says that it was built for it" if picked.torch else "does not name it", width)
    kind = "machine code" if picked.name.startswith("sm_") else "PTX, which the driver compiles for later GPUs"
    lines += _row("is", kind, width)
    holders = [(f, a) for f in report.files for a in f.code if a.arch == picked.name]
    lines += _rows("in", (f"{f.path}: {format_bytes(a.bytes)} in {_pieces(a.count)}" for f, a in holders), width)
    if not holders:
        lines += _row("in", "no file", width)
    return lines


def _problem(group: ProblemGroup, width: int) -> list[Line]:
    lines = _row(SEVERITIES[group.severity], group.what, width, _SEVERITY_INKS[group.severity])
    if group.remedy:
        lines += _row("remedy", group.remedy, width)
    return [*lines, *_rows("in", group.files, width)]


def _file(file: FileReport, report: Report, width: int) -> list[Line]:
    lines = _row("file", f"{file.path} ({format_bytes(file.size)})", width)
    for place, device, _count in distinct(report):
        if place < len(file.verdicts):
            lines += _row("on", f"{device_name(device)}: {_FILE_WORDS[file.verdicts[place]]}", width)
    for problem in problems_of(report, file.path):
        group = ProblemGroup(problem.severity, problem.what, problem.remedy, ())
        lines += _problem(group, width)
    held = (
        f"{a.arch}: {format_bytes(a.bytes)} in {_pieces(a.count)}" + (f", {a.kernels} kernels" if a.kernels else "")
        for a in file.code
    )
    return [*lines, *_rows("holds", held, width)]


def _pieces(count: int) -> str:
    return "1 piece" if count == 1 else f"{count} pieces"
