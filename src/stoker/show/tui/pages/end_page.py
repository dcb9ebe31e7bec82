"""The end screen: a build's outcome, what it cost, what a person can do next, and how it went. Pure.

Does not know Textual. The screen's last line is left to the footer.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from rich.cells import cell_len

from stoker.model.killed import failed_steps
from stoker.model.progress import Progress, progress_of
from stoker.model.state import BuildState, FinishedJob
from stoker.model.text import clean
from stoker.model.tool import tool_name
from stoker.model.units import format_bytes, format_duration
from stoker.show import budget_text, killed_text
from stoker.show.cache_text import closing_lines
from stoker.show.level_text import uncounted
from stoker.show.remote_text import outcome_text
from stoker.show.tui.pages import decision_lines, header, meters
from stoker.show.tui.pages.failure_page import failure_mark
from stoker.show.tui.pages.job_table import TOOL_INKS, peak_text
from stoker.show.tui.pages.lines import (
    BLANK,
    GAP,
    Line,
    Part,
    beside,
    elide_end,
    elide_middle,
    elide_path,
    fit,
    pad,
    section,
    whole_clauses,
    width_of,
    wrap,
)
from stoker.show.tui.pages.moment import Moment
from stoker.show.tui.pages.names import distinct_names
from stoker.show.tui.pages.timeline_page import memory_of_life
from stoker.show.tui.terminal.glyphs import Glyphs

MOST_RANKED, LEAST_FOR_BOTH = 10, 14
"""Jobs in each of the lists of the largest and the slowest, and lines from which both are shown."""

LABEL = 9
"""Cells of a fact's label."""

TALL, FAILED_SHOWN = 30, 2
"""Height of the page from which there is room for what a person knows or finds elsewhere, and steps listed that failed
on a smaller one: the rows belong to the heaviest jobs."""

NAMED = 30
"""Cells of a job's name in a sentence."""

PEAK_CELLS = 10
"""Cells of a job's peak in those lists."""

MOST_LINES, ROOMY = 2, 20
"""Maximum lines of a sentence, and the page height from which it may have more than one."""

LEAST_LIFE, MOST_LIFE, LEAST_DECISIONS = 8, 30, 3
"""Lines for the chart of memory over the build, and minimum lines for the decisions below it."""


@dataclass(frozen=True, slots=True)
class CallersWords:
    """What the page does not know by itself."""

    closing: str = ""
    """A line from the caller of the screens that also says how many jobs waited and were frozen, if there is one."""
    go_on: str = ""
    """The key that resumes the build, if one does."""
    unresumable: str = ""
    """What is said of a build that cannot be resumed from a shell, or empty."""


def summary(m: Moment, width: int, height: int, g: Glyphs, words: CallersWords = CallersWords()) -> list[Line]:
    """Return the page: outcome and reason, what it took, failures, the heaviest jobs, and how it went if there is
    room."""
    state, p = m.state, progress_of(m.state)
    mark, word, ink = {
        "done": (g.ok, "done", "ok"),
        "failed": (g.fail, "failed", "error"),
        "stopped": (g.warn, "stopped", "warn"),
        None: (g.dot, "not over", "text"),
    }[state.outcome]
    head = [Part(f" {mark} {word} ", f"{ink} bold reverse"), GAP, Part(clean(state.name, 60), "accent bold"), GAP]
    head.append(Part(_how_it_ended(m, width - width_of(head)), "text bold"))
    lines: list[Line] = [fit(head, width)]
    if (reason := _reason(state)) and reason != word:
        reason_ink = ink if ink != "ok" else "text"
        lines += [(Part(piece, reason_ink),) for piece in wrap(clean(reason), width, MOST_LINES)]
    lines.append(BLANK)
    lines.append(_fact("jobs", uncounted(state) or _counts(p, width - LABEL)))
    lines += _failed(state, width, FAILED_SHOWN if height < TALL else MOST_RANKED, g)
    facts = [
        *([("remote", elsewhere)] if (elsewhere := outcome_text(state)) else []),
        _next(m, words, (width - LABEL) * (MOST_LINES if height >= ROOMY else 1)),
        *(("" if n else "killed", line) for n, line in enumerate(killed_text.cost_lines(state))),
        ("memory", meters.most_memory(state)),
        *([("", over)] if (over := budget_text.over_text(state)) else []),
        *([("governed", restraint)] if (restraint := clean(words.closing) or _restraint(state)) else []),
        *([("waited", waited)] if height >= ROOMY and (waited := _waited(state, g)) else []),
        ("written", meters.written(state)),
        *(closing_lines(state.cache) if state.cache is not None else []),
        *([("command", header.shown_command(state))] if height >= TALL else []),
        ("log", _log(state, width - LABEL)),
    ]
    for label, value in facts:
        paths = label in ("command", "log")  # sentences are wrapped
        room = max(1, width - LABEL)
        value = value if paths or height >= ROOMY else whole_clauses(value, room) or elide_end(value, room, g.ellipsis)
        pieces = [elide_middle(value, room, g.ellipsis)] if paths else wrap(value, room, MOST_LINES)
        lines += [_fact("" if n else label, piece) for n, piece in enumerate(pieces)]
    room = height - len(lines)
    lines += _rankings(state, width, min(room, 2 * (MOST_RANKED + 3)), g)
    return lines + _course(m, width, height - len(lines), g)


def _how_it_ended(m: Moment, room: int) -> str:
    """Return exit code and time, or where only one fits, the time: the word before it says how it ended.

    A stopped tool ends by the signal or by a status of its own, as it happens; that says nothing.
    """
    code = "exit code unknown" if m.state.exit_code is None else f"exit code {m.state.exit_code}"
    after = f"after {format_duration(m.elapsed)}"
    if m.state.outcome == "stopped":
        return after
    return next((text for text in (f"{code}  {after}", after) if cell_len(text) <= room), after)


def _fact(label: str, text: str) -> Line:
    return Part(pad(label, LABEL), "text_dim"), Part(text)


def _reason(state: BuildState) -> str:
    """Return why it ended, without the exit status in the line above and the failed job in those below."""
    where, found, rest = state.reason.partition(f"exit status {state.exit_code}")
    failures = failed_steps(state)
    said = not rest or (failures and rest.startswith(f": {failures[0].output} failed"))
    return f"in {where.removesuffix(': ')}" if where and found and said else "" if found and said else state.reason


def _log(state: BuildState, room: int) -> str:
    """Return where the output is; where its path does not fit, the command that prints it: half a path is of no use."""
    size = format_bytes(state.output.size)
    whole = f"{clean(state.log_path)}  ({size})"
    return whole if cell_len(whole) <= room else f"stoker log {clean(state.id)}  ({size})"


def _failed(state: BuildState, width: int, most: int, g: Glyphs) -> list[Line]:
    """Return the steps that failed, `most` at most, and how many more did."""
    failures = failed_steps(state)
    names = distinct_names(f.output for f in failures)
    lines: list[Line] = []
    for number, f in enumerate(failures[:most], 1):
        rest = "" if f.exit_code is None else f"  exit {f.exit_code}"
        if number == most < len(failures):
            rest += f"  and {len(failures) - most} more"
        text = elide_path(names[f.output] or clean(f.command), width - LABEL - 2 - len(rest), g.ellipsis)
        label = Part(pad("failed" if number == 1 else "", LABEL), "text_dim")
        lines.append((label, failure_mark(f, g), Part(text), Part(rest, "text_dim")))
    return lines


def _next(m: Moment, words: CallersWords, room: int) -> tuple[str, str]:
    """Return what a person can do next: here with the key that resumes the build, if one does, and in a shell; where
    both do not fit into `room` cells, one of them in full."""
    command = f"stoker {'report' if m.state.outcome == 'done' else 'run --resume'} {clean(m.state.id)}"
    go_on = words.go_on
    if words.unresumable and m.state.outcome != "done":
        whole = f"{go_on} resumes it now; {words.unresumable}" if go_on else words.unresumable
        return "next", whole if cell_len(whole) <= room else words.unresumable
    here = f"{go_on} resumes it, or " if go_on else ""
    whole = f"{here}from a shell: {command}"
    return "next", whole if cell_len(whole) <= room else f"{go_on} resumes it" if go_on else command


def _course(m: Moment, width: int, room: int, g: Glyphs) -> list[Line]:
    """Return how the build went, in the remaining room: memory over the whole build, and decisions below it."""
    if room < LEAST_LIFE:
        return []
    wanted = len(decision_lines.entries(m.state)) + 2
    rows = min(MOST_LIFE, room - 2, max(MOST_LIFE // 3, room - 2 - wanted))
    decided = room - 2 - rows - 2 >= LEAST_DECISIONS and wanted > 2
    drawn = memory_of_life(m.state, width, rows if decided else min(MOST_LIFE, room - 2), g)
    lines = [BLANK, section("memory over the build", width, g), *drawn] if drawn else []
    left = room - len(lines) - 2
    if left < LEAST_DECISIONS or wanted == 2:
        return lines
    return [*lines, BLANK, section("decisions", width, g), *decision_lines.decisions(m, width, left, g)]


def _restraint(state: BuildState) -> str:
    """Return how the governor kept the build within its memory; empty if it never had to."""
    restraint = state.restraint
    waited = {"memory": restraint.held, "the first of an unknown kind": restraint.after_first}
    counts = [f"{number} for {what}" for what, number in waited.items() if number]
    if counts:
        first, rest = counts[0].split(" ", 1)
        counts[0] = f"{first} {'job' if first == '1' else 'jobs'} waited {rest}"
    return ", ".join([*counts, *([restraint.freezes] if restraint.freezes else [])])


def _waited(state: BuildState, g: Glyphs) -> str:
    """Return which of the jobs that waited for memory were on deck longest; empty if none was for a second."""
    jobs = [job for job in state.restraint.longest if job.seconds >= 1]
    names = distinct_names(job.output for job in jobs)
    texts = [f"{elide_path(names[j.output], NAMED, g.ellipsis)} for {format_duration(j.seconds)}" for j in jobs]
    return (
        ("longest on deck: " if state.restraint.held > len(jobs) else "on deck: ") + ", ".join(texts) if texts else ""
    )


def _counts(p: Progress, room: int) -> str:
    """Return how many jobs are done, have failed, were killed and not built, were interrupted, and never ran:
    each job once."""
    ends = ((p.failed, "failed"), (p.killed, "killed"), (p.interrupted, "interrupted"), (p.never_ran, "not run"))
    counts = [f"{p.finished} done", *(f"{count} {what}" for count, what in ends if count)]
    return whole_clauses(", ".join(counts), max(1, room)) or ", ".join(counts[:-1])


def _rankings(state: BuildState, width: int, room: int, g: Glyphs) -> list[Line]:
    """Return the heaviest and the slowest jobs, as far as there is room."""
    heaviest, slowest = list(state.history.heaviest), list(state.history.slowest)
    if room < 4 or not slowest:
        return []
    if heaviest and all(job.peak is None for job in heaviest):
        said = [BLANK, _none_measured(state, width)]
        return [*said, BLANK, *_ranking(_title("slowest", slowest), slowest, width, room - 3, g)]
    if width >= 110 and heaviest:
        half = (width - 3) // 2
        left = _ranking(_title("heaviest", heaviest), heaviest, half, room - 1, g)
        right = _ranking(_title("slowest", slowest), slowest, width - half - 3, room - 1, g)
        return [BLANK, *beside(left, right, half)]
    both = bool(heaviest) and room >= LEAST_FOR_BOTH
    lines = (
        [BLANK, *_ranking(_title("heaviest", heaviest), heaviest, width, room // 2 - 1 if both else room - 1, g)]
        if heaviest
        else []
    )
    if both or not heaviest:
        lines += [BLANK, *_ranking(_title("slowest", slowest), slowest, width, room - len(lines) - 1, g)]
    return lines


def _none_measured(state: BuildState, width: int) -> Line:
    """Return what replaces a list of the heaviest jobs of which nobody knows what they held."""
    longest = max(job.seconds for job in state.history.heaviest)
    held = f"; the build held {format_bytes(state.memory.build_peak)} at most" if state.memory.build_peak else ""
    return fit((Part(f"no job ran for over {math.ceil(longest)} s, too short to measure{held}"),), width)


def _title(which: str, jobs: list[FinishedJob]) -> str:
    """Return the title of a list; if a job in it was frozen, it says that times exclude that."""
    return f"{which} jobs" + (", minus time frozen" if any(job.stood for job in jobs) else "")


def _ranking(title: str, jobs: list[FinishedJob], width: int, rows: int, g: Glyphs) -> list[Line]:
    names = distinct_names(job.output for job in jobs)
    measured = any(job.peak is not None for job in jobs)
    head = "peak" if measured else ""
    tail = [Part(" " + pad("tool", 5) + pad("time", 8, right=True) + pad(head, PEAK_CELLS, right=True), "text_dim")]
    lines = [section(title, width, g, tail)]
    marks = {
        "failed": Part(f"{g.fail} ", "error"),
        "interrupted": Part(f"{g.warn} ", "warn"),
        "killed": Part(f"{g.killed} ", "killed"),
    }
    for job in jobs[: max(0, rows - 1)]:
        peak = (peak_text(job) or g.dash) if measured else ""
        cells = [
            Part(" " + pad(tool_name(job.tool, job.output, is_c=job.is_c), 5), TOOL_INKS[job.tool]),
            Part(pad(format_duration(job.seconds), 8, right=True)),
            Part(pad(peak, PEAK_CELLS, right=True)),
        ]
        room = width - width_of(cells) - 2
        mark = marks.get(job.outcome, Part("  "))
        lines.append((mark, Part(pad(elide_path(names[job.output], room, g.ellipsis), room)), *cells))
    return lines
