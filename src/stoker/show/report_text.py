"""Renders a verification report as plain text. Knows size and colours, but no terminal, and not how it was obtained."""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from stoker.model.report import FileReport, Problem, Report
from stoker.model.text import Ink, Span, clean, sgr
from stoker.model.units import format_bytes
from stoker.show.verification_text import verdict_reason
from stoker.verify.archs import arch_named

HEADLINES = {
    "runs": "All of it will run",
    "part": "It will run in part",
    "no": "Something will not run",
    "unread": "Something cannot be read",
}
VERDICTS = {
    "native": "runs",
    "ptx-jit": "runs, slow first start",
    "part": "RUNS IN PART",
    "no": "WILL NOT RUN",
    "none": "nothing to judge",
}
SEVERITIES = {"error": "ERROR", "warning": "warning", "info": "note"}
WIDTH = 80
"""Columns if the width is unknown."""

_NARROWEST_PAGE = 40
_WHOLE: Any = {"break_long_words": False, "break_on_hyphens": False}
"""Paths stay whole, so that they can be copied."""

_NARROWEST = 30
"""Minimum width of a table's last column, even if the line then exceeds the page."""

_MAX_FILES = 12
_MAX_NAMES = 3
_MAX_PROBLEMS = 30

_GOOD, _PARTLY, _BAD = Ink(fg="green", bold=True), Ink(fg="yellow", bold=True), Ink(fg="red", bold=True)

_INKS = {
    "All of it will run": _GOOD, "runs": _GOOD, "It will run in part": _PARTLY, "RUNS IN PART": _PARTLY,
    "runs, slow first start": _PARTLY, "warning:": _PARTLY, "Something will not run": _BAD, "WILL NOT RUN": _BAD,
    "Something cannot be read": _BAD, "ERROR:": _BAD, "MISSING": _BAD,
}  # fmt: skip
"""In the terminal's own colours."""

_INKED = re.compile("|".join(rf"(?:^|(?<=  )){re.escape(t)}(?=[.:]?(?: |$))" for t in sorted(_INKS, key=len)[::-1]))


def render(report: Report, width: int = WIDTH, height: int = 0, *, colour: bool = False) -> str:
    """Return the whole report, which ends with a newline and is safe to print on a terminal.

    `width` is in columns. If the report is longer than `height` lines, the verdict is repeated at the end.
    """
    width = max(_NARROWEST_PAGE, width)
    headline = textwrap.wrap(verdict_line(report), width, **_WHOLE)
    blocks = [
        headline,
        _devices(report, width),
        _archs(report, width),
        _files(report.files, width),
        _torch(report),
        _runs(report, width),
        list(_problems(report.problems, width)),
    ]
    lines = "\n\n".join("\n".join(block) for block in blocks if block).splitlines()
    if 0 < height <= len(lines):
        lines += ["", *headline]
    lines = [clean(line) for line in lines]
    return "\n".join(map(_inked, lines) if colour else lines) + "\n"


def verdict_line(report: Report) -> str:
    """Return the verdict in one sentence, with its reason and its condition."""
    condition = f"if {clean(report.condition)}" if report.condition else ""
    if report.verdict in HEADLINES:
        what = clean("; ".join(t for t in (verdict_reason(report).removesuffix("."), report.scope) if t))
        return f"{HEADLINES[report.verdict]}{': ' if what else ''}{what}{', ' * bool(condition)}{condition}."
    if report.about or not any(f.has_code for f in report.files):
        loads = f"; it loads {condition}" if condition else ""
        return f"Nothing to judge for NVIDIA GPUs: {clean(report.about) or 'there is no code for them'}{loads}."
    if any(p.severity == "warning" for p in report.problems):
        return "There was no GPU to judge for; see the warnings below."
    return f"No problem was found; there was no GPU to judge for{', ' * bool(condition)}{condition}."


def _inked(line: str) -> str:
    return _INKED.sub(lambda m: sgr([Span(m[0], _INKS[m[0]])], colour=True), line)


def _devices(report: Report, width: int) -> list[str]:
    rows = [
        (f"{d.name} ({d.capability})" if d.capability not in d.name else d.name, VERDICTS[d.verdict], d.why)
        for d in report.devices
    ]
    table = _table(("GPU", "Verdict", "Why"), rows, width)
    if any(re.search(r"\d modules", d.why) for d in report.devices):
        text = "(A module is roughly the device code of one source file; it is loaded when it is first used.)"
        table += textwrap.wrap(text, width)
    return table


def _archs(report: Report, width: int) -> list[str]:
    """Return every architecture, requested or found: its size, and in how many files it is."""
    asked = {r.arch: r.state for r in report.requested}
    coded = [f for f in report.files if f.has_code]
    held = {(a.kind, a.arch) for f in coded for a in f.code}
    ranked = sorted(held, key=lambda use: (use[0], arch_named(use[1])))
    names = [*(name for _, name in ranked), *(r.arch for r in report.requested if r.state == "missing")]
    words = {"present": "yes", "missing": "yes: MISSING", "extra": "no"}
    rows = []
    for name in names:
        uses = [a for f in coded for a in f.code if a.arch == name]
        pieces = str(sum(a.count for a in uses)) if uses else ""
        size = format_bytes(sum(a.bytes for a in uses)) if uses else ""
        needs = max(((a.ptx, a.driver) for a in uses if a.driver), key=lambda n: _numbers(n[1]), default=None)
        where = f"{len(uses)} of {len(coded)}" + (f"; PTX {needs[0]} from driver {needs[1]}" if needs else "")
        rows.append((name, words[asked[name]] if name in asked else "", size, pieces, where))
    table = _table(("Architecture", "Asked for", "Size", "Pieces", "Files"), rows, width)
    return table if report.requested else [line.replace("Asked for", " " * 9, 1) for line in table]


def _numbers(version: str) -> list[int]:
    return [int(part) for part in version.split(".")]


def _files(files: Sequence[FileReport], width: int) -> list[str]:
    coded = sorted((f for f in files if f.archs), key=lambda f: -f.device_bytes)
    if not coded:
        read = sum(not any(problem.unreadable for problem in file.problems) for file in files)
        return [f"No code for NVIDIA's GPUs in {_count(read, 'binary', 'binaries')}."] if read else []
    lines = []
    for file in coded[:_MAX_FILES]:
        names = " ".join(a.arch for a in file.code) or "no kernel"
        lines.append(f"{_name(file.path)}  {format_bytes(file.device_bytes)} of device code")
        lines += textwrap.wrap(names, width, initial_indent="    ", subsequent_indent="    ")
    if len(coded) > _MAX_FILES:
        rest = coded[_MAX_FILES:]
        lines.append(f"and {len(rest)} more files, {format_bytes(sum(f.device_bytes for f in rest))}")
    return lines


def _torch(report: Report) -> list[str]:
    facts = report.torch
    if facts is None or facts.error:
        return []
    abi = "unknown" if facts.cxx11_abi is None else str(int(facts.cxx11_abi))
    versions = f"torch {facts.version}, CUDA {facts.cuda or 'none'}, cuDNN {facts.cudnn or 'none'}"
    return [
        f"Torch says: {versions}, NCCL {facts.nccl or 'none'}, C++11 ABI {abi}",
        f"            built for {' '.join(facts.arch_list) or 'no GPU'}",
    ]


def _runs(report: Report, width: int) -> list[str]:
    rows = [
        (f"{r.device} ({r.capability})", r.error or "correct", f"{r.seconds:.1f} s by {r.how}") for r in report.runs
    ]
    return _table(("Matrix product on", "Result", ""), rows, width)


def _problems(problems: Sequence[Problem], width: int) -> Iterator[str]:
    """Yield one entry per distinct text, however many files it is about."""
    groups: dict[tuple[str, str, str], list[str]] = {}
    for problem in problems:
        # If a file cannot be read, its folder may be the reason, so show the whole path.
        name = problem.file if problem.unreadable else _name(problem.file)
        groups.setdefault((problem.severity, problem.what, problem.remedy), []).append(name)
    for (severity, what, remedy), files in list(groups.items())[:_MAX_PROBLEMS]:
        named = [name for name in files if name]
        if len(named) > _MAX_NAMES:
            named = [*named[:_MAX_NAMES], f"{len(named) - _MAX_NAMES} more"]
        place = f"{', '.join(named)}: " if named else ""
        yield from textwrap.wrap(f"{SEVERITIES[severity]}: {place}{what}", width, subsequent_indent="    ", **_WHOLE)
        if remedy:
            yield from textwrap.wrap(remedy, width, initial_indent="    -> ", subsequent_indent="       ", **_WHOLE)
    if len(groups) > _MAX_PROBLEMS:
        yield f"and {len(groups) - _MAX_PROBLEMS} more problems: see --json"


def _name(path: str) -> str:
    """Return a path's last part; for a member of a wheel, its path within the wheel."""
    return path.rsplit("::", 1)[-1] if "::" in path else path.rsplit("/", 1)[-1]


def _table(head: Sequence[str], rows: Iterable[Sequence[str]], width: int) -> list[str]:
    body = [[clean(cell) for cell in row] for row in rows]
    if not body:
        return []
    widths = [max(len(row[i]) for row in [list(head), *body]) for i in range(len(head) - 1)]
    indent = sum(widths) + 2 * len(widths)
    lines = []
    for row in [list(head), *body]:
        first, *more = textwrap.wrap(row[-1], max(_NARROWEST, width - indent), **_WHOLE) or [""]
        lines.append("  ".join([*(c.ljust(w) for c, w in zip(row, widths, strict=False)), first]).rstrip())
        lines += [" " * indent + text for text in more]
    return lines


def _count(number: int, one: str, many: str) -> str:
    return f"{number} {one if number == 1 else many}"
