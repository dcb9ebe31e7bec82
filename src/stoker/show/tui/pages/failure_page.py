"""The diagnosis as lines: a list of causes, and the details of the picked one. Pure.

Does not know Textual, or how a cause is found and repaired.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from stoker.model.diagnosis import Cause, Diagnosis, words_of
from stoker.model.state import Failure
from stoker.model.text import clean
from stoker.show.closing_text import place_of
from stoker.show.tui.pages.lines import BLANK, Line, Part, elide_end, elide_middle, fit, pad, section, width_of, wrap
from stoker.show.tui.terminal.glyphs import Glyphs

LABEL = 8
"""Cells of a label such as `why` or `remedy`."""

FACT_LINES = 2
SHARES = (
    (99, 9, 99, 99),
    (9, 2, 6, 6),
    (9, 2, 2, 6),
    (2, 2, 2, 6),
    (2, 1, 2, 6),
    (1, 1, 2, 4),
    (1, 1, 0, 4),
    (0, 0, 0, 4),
    (0, 0, 0, 2),
    (0, 0, 0, 1),
)
"""Number of figures, lines per figure, lines of why, and lines of remedy; the first row that fits is used. The remedy
is cut last."""

STEP_SHARE = (2, 4)
"""Maximum lines of why and of remedy above the output of a failed step."""

LEAST_CONTEXT = 3
"""Minimum lines of output shown, however long the explanation: the line of the cause and its neighbours."""

HERE_LINES = 3
ROOMY = 30
"""Screen height from which blank lines separate the parts."""

_ANOTHER_JOB = re.compile(r"\s{0,40}(?:\[\d{1,7}/\d{1,7}\] |FAILED: )")
"""Marks the end of one job's output in ninja's: a status line, or the failure of another job."""

MAX_TEXT = 500
MAX_PROSE = 2000


def failure_mark(failure: Failure, g: Glyphs) -> Part:
    """Return the sign before a failed step: another one if its compiler was killed."""
    return Part(f"{g.fail} ", "error bold") if failure.killed_by is None else Part(f"{g.killed} ", "killed bold")


def cause_line(cause: Cause, width: int, g: Glyphs, *, first: bool, chosen: bool) -> Line:
    """Return one cause in the list."""
    tail = "" if cause.line is None else f"  line {cause.line}"
    tail += f" and {cause.count - 1} more" if cause.count > 1 else ""
    mark = Part(f"{g.fail} ", "error bold") if first else Part(f"{g.dot} ", "text_dim")
    title = elide_end(clean(cause.heading), width - 4 - len(tail), g.ellipsis)
    text = Part(title, "text bold" if first else "text")
    line = fit((Part(f"{g.pointer if chosen else ' '} "), mark, text), width - len(tail))
    line = (*line, Part(tail, "text_dim"))
    return tuple(part._replace(ink="cursor_text on cursor") for part in line) if chosen else line


def verdict_line(diagnosis: Diagnosis, width: int, g: Glyphs, tail: str = "", sent: str = "") -> Line:
    """Return the first cause in one line; `tail` is never cut. `sent`: a signal that ended a build without one."""
    cause = diagnosis.cause
    unknown = f"{sent[0].upper()}{sent[1:]}".partition(",")[0] if sent else "No known cause was found in the output"
    text = clean(cause.heading) if cause is not None else unknown
    text = elide_end(text, width - 2 - len(tail), g.ellipsis)
    ink = "error bold" if cause is not None else "text"
    return Part(f"{g.fail} ", "error bold"), Part(text, ink), Part(tail, "text_dim")


def line_of_cause(diagnosis: Diagnosis, width: int) -> list[Line]:
    """Return the output line of the first cause, which names the file or the symbol."""
    text = clean(diagnosis.cause.message, MAX_TEXT) if diagnosis.cause is not None else ""
    return [(Part(f"  {piece}"),) for piece in wrap(text, width - 2, FACT_LINES)]


def details(diagnosis: Diagnosis, cause: Cause, keys: tuple[str, str], width: int, rows: int, g: Glyphs) -> list[Line]:
    """Return all about one cause in at most `rows` lines. `keys` are those of remedy and resume, empty if not offered.

    Why and remedy come first, at any size; the output is shown below as far as there is room.
    """
    first = diagnosis.cause is cause
    gap = [BLANK] if rows >= ROOMY // 2 + 4 else []
    place, do = [*gap, _place_line(cause, width, g)], key_lines(diagnosis, keys, width) if first else []
    tail = [*gap, *do] if do else []
    least = len(place) + len(_context(cause, width, LEAST_CONTEXT, g)) + len(tail)
    for share in SHARES:
        explanation = _explanation(cause, diagnosis.facts if first else (), share, width)
        if least + len(gap) + len(explanation) <= rows:
            break
    above = [*gap, *explanation][: max(0, rows - len(tail))]  # the keys are cut last
    top = [*above, *tail, *place]
    context = _context(cause, width, max(LEAST_CONTEXT, rows - len(top)), g)
    return [*top, *context][: max(0, rows)]


def _explanation(cause: Cause, facts: tuple[str, ...], share: tuple[int, int, int, int], width: int) -> list[Line]:
    """Return the figures, why, and remedy, in as many lines as `share` allows."""
    figures, each, why, remedy = share
    lines: list[Line] = []
    for number, fact in enumerate(facts[:figures]):
        lines += _labelled("" if number else "figures", wrap(clean(fact, MAX_TEXT), width - LABEL, each))
    for label, text, most in (("why", cause.why, why), ("remedy", cause.remedy, remedy)):
        lines += _labelled(label, wrap(clean(text, MAX_PROSE), width - LABEL, most))
    return lines


def _place_line(cause: Cause, width: int, g: Glyphs) -> Line:
    place = elide_middle(place_of(cause), max(0, width - 24), g.ellipsis)
    return section("in the output", width, g, (Part(f" {place}", "text_dim"),) if place else ())


def _context(cause: Cause, width: int, rows: int, g: Glyphs) -> list[Line]:
    """Return the line of the cause and as many lines around it as there is room for."""
    if not cause.context or cause.line is None:
        text = clean(cause.text, MAX_TEXT)
        return [(Part(elide_end(text, width, g.ellipsis)),)] if text else []
    at = cause.line - cause.context_line
    begin, end = _own_lines(cause.context, at)
    numbers = len(str(cause.context_line + len(cause.context)))
    head = f"{g.pointer} {pad(str(cause.line), numbers, right=True)}  "
    here = _here(head, clean(cause.context[at], MAX_TEXT), width) if 0 <= at < len(cause.context) else []
    rows = max(1, rows - max(0, len(here) - 1))
    first = max(begin, min(at - rows // 3, end - rows))
    shown = enumerate(cause.context[first : min(end, first + rows)], first)
    lines: list[Line] = []
    for i, text in shown:
        if i == at:
            lines += here
        else:
            head = f"  {pad(str(cause.context_line + i), numbers, right=True)}  "
            body = elide_end(clean(text, MAX_TEXT), width - width_of((Part(head),)), g.ellipsis)
            lines.append((Part(head, "text_dim"), Part(body)))
    return lines


def _own_lines(context: Sequence[str], at: int) -> tuple[int, int]:
    """Return the range of lines that belong to the same job: from its FAILED or status line up to the next job's."""
    if not 0 <= at < len(context):
        return 0, len(context)
    begin = next((i for i in range(at, -1, -1) if _ANOTHER_JOB.match(context[i])), 0)
    end = next((i for i in range(at + 1, len(context)) if _ANOTHER_JOB.match(context[i])), len(context))
    return begin, end


def _here(head: str, text: str, width: int) -> list[Line]:
    """Return the line of the cause, wrapped: the important part may follow a long path."""
    room = width - width_of((Part(head),))
    pieces = wrap(text, room, HERE_LINES) or [""]
    heads = [head, *[" " * (width - room)] * len(pieces)]
    return [(Part(heads[n], "error bold"), Part(piece, "error bold")) for n, piece in enumerate(pieces)]


def _labelled(label: str, pieces: list[str]) -> list[Line]:
    heads = [label, *[""] * len(pieces)]
    return [(Part(pad(heads[i], LABEL), "accent"), Part(piece)) for i, piece in enumerate(pieces)]


def key_lines(diagnosis: Diagnosis, keys: tuple[str, str], width: int) -> list[Line]:
    """Return what the keys do; without keys (a replay, a read-only viewer), what could be done."""
    remedy, go_on = keys
    lines: list[Line] = []
    if diagnosis.action is not None:
        lines += _key_line(remedy or "safe", words_of(diagnosis.action), width)
    if go_on and not lines:
        return _key_line(
            go_on,
            f"fix the cause, then press {go_on} to resume: the same command, from the step where it ended",
            width,
        )
    return lines + resume_line(go_on, width)


def step_cause(cause: Cause | str, width: int, *, brief: bool) -> list[Line]:
    """Return why one step failed, and its remedy, or in words why the cause is not known; `brief` shortens them."""
    if isinstance(cause, str):
        return _labelled("cause", wrap(cause, width - LABEL, FACT_LINES))
    why, remedy = STEP_SHARE if brief else (MAX_PROSE, MAX_PROSE)
    lines = _labelled("cause", wrap(clean(cause.heading, MAX_TEXT), width - LABEL, FACT_LINES))
    lines += _labelled("why", wrap(clean(cause.why, MAX_PROSE), width - LABEL, why))
    return lines + _labelled("remedy", wrap(clean(cause.remedy, MAX_PROSE), width - LABEL, remedy))


def until_the_end(keys: tuple[str, str], width: int) -> list[Line]:
    """Return what can be done about a failure while the build runs. `keys` are those of stop and resume, empty if not
    offered."""
    stop, go_on = keys
    lines: list[Line] = []
    if go_on:
        lines += _key_line(go_on, "resumes the build once it has ended: fix the cause by then", width)
    if stop:
        lines += _key_line(stop, "stops the build now", width)
    return lines


def resume_line(go_on: str, width: int) -> list[Line]:
    """Return what the key for resuming does; nothing without a key."""
    return _key_line(go_on, "resume as it was, from the step where it ended", width) if go_on else []


def _key_line(key: str, words: str, width: int) -> list[Line]:
    pieces = wrap(clean(words, MAX_TEXT), width - LABEL, FACT_LINES)
    return [(Part(pad("" if n else key, LABEL), "accent bold"), Part(piece)) for n, piece in enumerate(pieces)]
