"""The verification screen as lines: GPUs, architectures, problems and files, and details of the picked row. Pure.

Does not know Textual, or how binaries are read and judged.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from rich.cells import cell_len

from stoker.model.report import DeviceReport, FileReport, HeldArch, Report
from stoker.model.state import BuildState
from stoker.model.text import clean
from stoker.model.units import format_bytes
from stoker.show.tui.pages.lines import (
    BLANK,
    GAP,
    Line,
    Part,
    aimed,
    elide_end,
    elide_path,
    fit,
    pad,
    section,
    width_of,
    wrap,
)
from stoker.show.tui.pages.verification_details import ArchRow, DeviceRow, Picked, details
from stoker.show.tui.terminal.glyphs import Glyphs
from stoker.show.verification_text import (
    FILE_VERDICTS,
    STANDINGS,
    VERDICTS,
    ProblemGroup,
    Standing,
    device_name,
    distinct,
    headline,
    problem_groups,
    short_name,
)

STANDING_INKS = {"good": "ok", "warn": "warn", "bad": "error"}
SEVERITY_INKS = {"error": "error", "warning": "warn", "info": "text_dim"}
COLUMN = 9
"""Width of a file's verdict for one capability: "PTX-JIT", "others" and a blank."""

ARCHS_FROM = 100
"""Screen width from which a file's row lists its architectures."""

ROOMY = 36
"""Screen height from which blank lines separate the sections."""

MAX_VERDICT, LEAST_LIST = 3, 5
"""Maximum lines of the verdict, and lines of the list from which its last one counts those that do not fit."""

MAX_NAME = 300
_NUMBER = re.compile(r"(\D*)(\d*)(.*)", re.DOTALL)


class VerificationRow(NamedTuple):
    """A row that can be picked, or a heading or remark between rows."""

    picked: Picked | None
    line: Line = BLANK


def standing_mark(standing: Standing, g: Glyphs) -> Part:
    """Return the mark of a verdict."""
    return Part({"good": g.ok, "warn": g.warn, "bad": g.fail}[standing] + " ", f"{STANDING_INKS[standing]} bold")


def verdict_lines(report: Report, width: int, g: Glyphs, tail: str = "") -> list[Line]:
    """Return the verdict in as few lines as possible, followed by `tail`."""
    standing, text = headline(report)
    pieces = wrap(clean(text, MAX_NAME), max(1, width - 2 - len(tail)), MAX_VERDICT) or [""]
    marks = [standing_mark(standing, g), *[Part("  ")] * len(pieces)]
    lines: list[Line] = [(marks[n], Part(piece, f"{STANDING_INKS[standing]} bold")) for n, piece in enumerate(pieces)]
    return [*lines[:-1], (*lines[-1], Part(tail, "text_dim"))]


def rows(report: Report) -> list[Picked]:
    """Return all rows that can be picked, in the order of the screen."""
    devices = [DeviceRow(device, count) for _, device, count in distinct(report)]
    return [*devices, *problem_groups(report), *archs(report), *report.files]


def archs(report: Report) -> list[ArchRow]:
    """Return every architecture that was requested or found, machine code before PTX."""
    asked = {r.arch: r.state for r in report.requested}
    held: dict[str, list[HeldArch]] = {}
    for arch in (a for f in report.files for a in f.code):
        held.setdefault(arch.arch, []).append(arch)
    listed = report.torch.arch_list if report.torch is not None and not report.torch.error else None
    return [
        ArchRow(
            name,
            asked.get(name),
            sum(a.bytes for a in held.get(name, ())),
            len(held.get(name, ())),
            None if listed is None else name in listed,
        )
        for name in sorted({*asked, *held, *(listed or ())}, key=_arch_order)
    ]


def _arch_order(name: str) -> tuple[bool, int, str]:
    match = _NUMBER.fullmatch(name)
    number = match[2] if match is not None else ""
    return not name.startswith("sm_"), int(number[:9] or 0), name


def texts(picked: Picked) -> tuple[str, ...]:
    """Return the texts of a row that the filter searches."""
    if isinstance(picked, DeviceRow):
        return device_name(picked.device), picked.device.why
    if isinstance(picked, ArchRow):
        return (picked.name,)
    if isinstance(picked, ProblemGroup):
        return picked.what, *picked.files
    return picked.path, *(arch.arch for arch in picked.code)


def verification(report: Report, every: list[Picked], width: int, height: int, g: Glyphs, chosen: int) -> list[Line]:
    """Return the page below the header, in at most `height` lines, with the rows of `every`; row `chosen` is picked."""
    lines = verdict_lines(report, width, g)
    torch = report.torch
    if torch is not None and not torch.error and height >= 14:
        built = clean(" ".join(torch.arch_list), MAX_NAME) or "no GPU"
        text = f"torch {clean(torch.version, 40)} with CUDA {clean(torch.cuda, 20) or 'none'} says: built for {built}"
        lines.append((Part(elide_end(text, width, g.ellipsis), "text_dim"),))
    lines += [BLANK] * (height >= 22)
    picked = every[chosen] if chosen < len(every) else None
    # The list's height must not depend on the picked row, or rows would jump as the cursor moves.
    room = max(3, height - len(lines) - max(4, height // 3))
    lines += _window(report, every, width, g, chosen, room, roomy=height >= ROOMY)
    below = [BLANK] * (height >= ROOMY) + (details(picked, report, width, g) if picked is not None else [])
    return [*lines, *below[: max(0, height - len(lines))]]


def _window(
    report: Report, every: list[Picked], width: int, g: Glyphs, chosen: int, room: int, *, roomy: bool
) -> list[Line]:
    """Return the part of the list around the picked row, in at most `room` lines."""
    entries = _entries(report, every, width, g, roomy=roomy)
    places = [i for i, e in enumerate(entries) if e.picked is not None]
    at = places[chosen] if chosen < len(places) else 0
    first = max(0, min(at - room // 2, len(entries) - room))
    columns = capabilities(report, width)
    below = len(entries) - first - room
    hint: list[Line] = [(Part(f"  +{below + 1} more lines", "text_dim"),)] if below > 0 and room > LEAST_LIST else []
    shown = entries[first : first + room - len(hint)]
    if hint and shown[-1].picked is None:  # a heading of rows that do not fit, or the line above it
        shown, hint = shown[:-1], [(Part(f"  +{below + 2} more lines", "text_dim"),), BLANK]
    drawn = [
        e.line
        if e.picked is None
        else aimed(row_line(e.picked, report, columns, width, g, chosen=i == at), f"row:{places.index(i)}")
        for i, e in enumerate(shown, first)
    ]
    return [*drawn, *hint]


def _entries(report: Report, every: list[Picked], width: int, g: Glyphs, *, roomy: bool) -> list[VerificationRow]:
    gap = [VerificationRow(None)] * roomy
    devices = [p for p in every if isinstance(p, DeviceRow)]
    problems = [p for p in every if isinstance(p, ProblemGroup)]
    kinds = [p for p in every if isinstance(p, ArchRow)]
    entries = [VerificationRow(None, section("GPUs", width, g)), *map(VerificationRow, devices)]
    if not report.devices:
        text = "none here; for another machine: stoker verify --device H100 PATH"
        entries.append(VerificationRow(None, (Part(f"  {elide_end(text, width - 2, g.ellipsis)}", "text_dim"),)))
    if problems:
        entries += [
            *gap,
            VerificationRow(None, section(_problems_title(problems), width, g)),
            *map(VerificationRow, problems),
        ]
    if kinds:
        entries += [
            *gap,
            VerificationRow(None, section("architectures", width, g, _arch_heads(report))),
            *map(VerificationRow, kinds),
        ]
    files = [p for p in every if isinstance(p, FileReport)]
    if files:
        title = f"files {len(report.files)}" + (f" of {len(report.files) + report.left_out}" if report.left_out else "")
        heads = _file_heads(report, width)
        entries += [*gap, VerificationRow(None, section(title, width, g, heads)), *map(VerificationRow, files)]
    return entries


def _problems_title(problems: Sequence[ProblemGroup]) -> str:
    """Return the heading of problems, or of what is only to be known."""
    remarks = all(problem.severity == "info" for problem in problems)
    return f"{'notes' if remarks else 'problems'} {len(problems)}"


def _file_heads(report: Report, width: int) -> Line:
    names = pad("architectures", width // 3) if width >= ARCHS_FROM else ""
    columns = "".join(pad(f" {c}", COLUMN) for c, _ in capabilities(report, width))
    return (Part(f" {names}{pad('code', 10, right=True)}{columns}", "text_dim"),)


def _arch_heads(report: Report) -> Line:
    torch = pad(" torch", 7) if report.torch is not None and not report.torch.error else ""
    asked = pad(" asked for", 11) if report.requested else ""
    return (Part(f"{asked}{torch}{pad('size', 10, right=True)}{pad('files', 9, right=True)}", "text_dim"),)


def capabilities(report: Report, width: int) -> list[tuple[str, int]]:
    """Return the capabilities that get a column, each with the index of its first device."""
    first: dict[str, int] = {}
    for place, device in enumerate(report.devices):
        first.setdefault(clean(device.capability, COLUMN - 2), place)
    return list(first.items())[: max(0, (width - 30) // COLUMN)]


def row_line(
    picked: Picked, report: Report, columns: Sequence[tuple[str, int]], width: int, g: Glyphs, *, chosen: bool
) -> Line:
    """Return one row of the list."""
    if isinstance(picked, DeviceRow):
        names = max(cell_len(clean(device_name(device), MAX_NAME)) for device in report.devices) + len("99 ")
        line = _device_line(picked.device, picked.count, names, width, g)
    elif isinstance(picked, ArchRow):
        line = _arch_line(picked, report, width, g)
    elif isinstance(picked, ProblemGroup):
        line = _problem_line(picked, width, g)
    else:
        line = _file_line(picked, columns, width, g)
    line = fit(line, width)
    return tuple(part._replace(ink="cursor_text on cursor") for part in line) if chosen else line


def _device_line(device: DeviceReport, count: int, names: int, width: int, g: Glyphs) -> Line:
    standing = STANDINGS[device.verdict]
    name = device_name(device) if count == 1 else f"{count} {device_name(device)}"
    verdict = VERDICTS[device.verdict]
    columns = min(names, 40, width // 2 - 2)
    room = width - 2 - columns - 1
    text = elide_end(clean(name, MAX_NAME), columns, g.ellipsis)
    why = elide_end(clean(device.why, MAX_NAME), room - len(verdict) - 2, g.ellipsis)
    ink = f"{STANDING_INKS[standing]} bold"
    return (
        standing_mark(standing, g), Part(pad(text, columns + 1)), Part(elide_end(verdict, room, g.ellipsis), ink),
        GAP, Part(why, "text_dim"),
    )  # fmt: skip


def _problem_line(group: ProblemGroup, width: int, g: Glyphs) -> Line:
    mark = {"error": g.fail, "warning": g.warn, "info": g.info}[group.severity]
    more = f" and {len(group.files) - 1} more" if len(group.files) > 1 else ""
    name = clean(short_name(group.files[0]), MAX_NAME) if group.files else ""
    place = elide_path(name, max(12, width // 3 - len(more)), g.ellipsis) + more
    text = f"{place}: {clean(group.what, MAX_NAME)}" if place else clean(group.what, MAX_NAME)
    return Part(f"{mark} ", f"{SEVERITY_INKS[group.severity]} bold"), Part(elide_end(text, width - 2, g.ellipsis))


def _arch_line(arch: ArchRow, report: Report, width: int, g: Glyphs) -> Line:
    mark, ink = {"present": (g.ok, "ok"), "missing": (g.fail, "error"), "extra": (g.dot, "text_dim"), None: (" ", "")}[
        arch.state
    ]
    cells = []
    if report.requested:
        words = {"present": "yes", "missing": "MISSING", "extra": "no", None: "no"}[arch.state]
        cells.append(Part(pad(f" {words}", 11), ink or "text_dim"))
    if arch.torch is not None:
        cells.append(Part(pad(" yes" if arch.torch else " no", 7), "text" if arch.torch else "text_dim"))
    cells.append(Part(pad(format_bytes(arch.bytes) if arch.files else g.dash, 10, right=True)))
    cells.append(Part(pad(f"{arch.files} of {len(report.files)}", 9, right=True), "text_dim"))
    room = width - 2 - width_of(cells)
    return Part(f"{mark} ", f"{ink or 'text'} bold"), Part(pad(clean(arch.name, 40), room)), *cells


def _file_line(file: FileReport, columns: Sequence[tuple[str, int]], width: int, g: Glyphs) -> Line:
    own = [file.verdicts[place] if place < len(file.verdicts) else "" for _, place in columns]
    inks = {"native": "ok", "ptx-jit": "warn", "partly": "warn", "no": "error", "other": "text_dim", "": "text_dim"}
    cells = [Part(pad(f" {FILE_VERDICTS[v]}", COLUMN), inks[v]) for v in own]
    mark = standing_mark("bad" if "no" in own else "warn" if {"ptx-jit", "partly"} & {*own} else "good", g)
    if not own:
        mark = Part("  ")
    held = format_bytes(sum(a.bytes for a in file.code)) if file.code else "no code"
    cells.insert(0, Part(pad(held, 10, right=True), "text_dim"))
    if width >= ARCHS_FROM:
        names = clean(" ".join(a.arch for a in file.code), MAX_NAME)
        cells.insert(0, Part(pad(elide_end(names, width // 3, g.ellipsis), width // 3), "text_dim"))
    room = width - 2 - width_of(cells) - 1
    return mark, Part(pad(elide_path(clean(file.path, MAX_NAME), room, g.ellipsis), room + 1)), *cells


def no_report(state: BuildState, width: int, g: Glyphs) -> list[Line]:
    """Return what will be verified and when, or why nothing was, and how to do it by hand."""
    nvcc = state.history.finished_by_tool.get("nvcc")
    if not state.over:
        count = f" So far {nvcc} CUDA compilations are done." if nvcc is not None else ""
        text = (
            "Nothing is verified yet. When the build has ended well, the files that it linked or archived and that "
            f"hold CUDA device code are judged, for the GPUs of its machine and for TORCH_CUDA_ARCH_LIST.{count}"
        )
    elif state.outcome != "done":
        text = "Nothing was verified: the build did not end well."
    elif nvcc is not None:
        text = "Nothing was verified, though CUDA code was compiled; decisions and notices (d) say why."
    else:
        text = "Nothing was verified: no file that ninja or make linked holds CUDA device code."
    hand = (
        "By hand, for any file, wheel, folder or installed package:",
        "  stoker verify PATH",
        "  stoker verify --device H100 --arch-list '8.0;9.0+PTX' PATH",
    )
    lines: list[Line] = [(Part(piece),) for piece in wrap(text, width, 12)]
    return [*lines, BLANK, *((Part(elide_end(line, width, g.ellipsis), "text_dim"),) for line in hand)]
