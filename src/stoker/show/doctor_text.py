"""Renders the doctor's examination as plain text for 80 columns: failures first, then warnings, then the rest.

Does not know how anything was checked.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import replace

from stoker.doctor.check import Check, Examination, Status
from stoker.model.text import Ink, Span, clean, sgr

WIDTH = 80
MARKS: dict[Status, str] = {"fail": "FAIL", "warn": "warn", "ok": "ok"}
_INKS: dict[Status, Ink] = {
    "fail": Ink(fg="red", bold=True),
    "warn": Ink(fg="yellow"),
    "ok": Ink(fg="green"),
}
_MARK, _NAME = 4, 20
_LIMIT = "limit: "


def render(examination: Examination, *, colour: bool) -> str:
    """Return the whole table, which ends with a newline and is safe to print on a terminal."""
    lines = [_headline(examination), ""]
    for check in _folded(examination.checks):
        lines += _rows(check, colour=colour)
    return "\n".join(lines) + "\n"


def _headline(examination: Examination) -> str:
    fails, warns = examination.count("fail"), examination.count("warn")
    parts = [f"{count} {word}" for count, word in ((fails, "must be fixed"), (warns, "worth a look")) if count]
    ready = "Ready" if examination.ok else "Not ready"
    return f"{ready} for {examination.what}{': ' if parts else ''}{', '.join(parts)}."


def _folded(checks: Sequence[Check]) -> Iterator[Check]:
    """Yield the checks, with all limits that are fine merged into one row: nobody looks for them one by one."""
    well = [check for check in checks if check.status == "ok" and check.name.startswith(_LIMIT)]
    for check in checks:
        if check not in well:
            yield check
        elif check is well[0]:
            yield replace(check, name="limits", why="; ".join(f"{c.name.removeprefix(_LIMIT)} {c.why}" for c in well))


def _rows(check: Check, *, colour: bool) -> Iterator[str]:
    mark = Span(MARKS[check.status].ljust(_MARK), _INKS[check.status])
    name = clean(check.name)
    indent = " " * (_MARK + _NAME + 3)
    why = textwrap.wrap(clean(check.why), WIDTH - len(indent), break_long_words=False, break_on_hyphens=False) or [""]
    if len(name) > _NAME:
        yield sgr([mark, Span(f" {name}")], colour=colour)
    else:
        yield sgr([mark, Span(f" {name.ljust(_NAME)}  {why.pop(0)}".rstrip())], colour=colour)
    yield from (indent + line for line in why)
    if check.remedy:
        # A command must stay on one line so that it can be copied.
        yield f"{indent}-> {clean(check.remedy)}"
