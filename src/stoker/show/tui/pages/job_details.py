"""All that is known about one job, as the lines of a box: while it lives, and once it has ended. Pure.

Knows neither Textual nor the table in which the job was picked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from stoker.model.job_tree import MAX_NAME, ProcessTree
from stoker.model.killed import death_of
from stoker.model.known_peak import LEAST_MEASURED, SURELY_MEASURED
from stoker.model.state import BuildState, FinishedJob, Job
from stoker.model.text import clean
from stoker.model.tool import tool_name
from stoker.model.units import format_bytes, format_duration, format_rough
from stoker.show.killed_text import fate_text, how_text
from stoker.show.tui.pages.job_list import since
from stoker.show.tui.pages.job_table import dated_reason, job_host, of_expected
from stoker.show.tui.pages.lines import Line, Part, pad, wrap
from stoker.show.tui.pages.moment import time_of_day
from stoker.show.tui.terminal.glyphs import Glyphs

MAX_OUTPUT = 1000

SHELLS = ("sh", "bash", "dash", "zsh", "ksh", "ash", "busybox")
"""Programs that only start a job's actual worker."""

TERMS = {
    "up to": "what is expected, plus the uncertainty of such jobs",
    "left": "what nobody holds now: what is free, to come of running jobs, and the reserve",
    "unpromised": "what is free, minus uncertainty and what is kept for others",
    "extra place": "one beyond the cores, to fill the moments in which a job starts, ends or reads",
}
"""The words of a reason that stand nowhere else on the screen, by those that do."""

OWN = "without the program itself, which jobs share"
"""What a job's memory leaves out, so that the sum over all jobs is less than what the build holds."""

COURSE = "over time"
"""The label of columns that show how a figure has changed over a job's life."""

LEAST_COURSE = 4
"""Minimum measurements for a line about a job's memory or CPU over time."""


def details(
    job: Job, state: BuildState, now: float, width: int, g: Glyphs, tree: ProcessTree | None = None
) -> list[Line]:
    """Return everything that is known about a job that has not ended, for a box of `width` cells."""
    job = _as_measured(job, tree)
    return _box(job.output, _present(job, state, now, g, _pid_text(job, tree)), width)


def _as_measured(job: Job, tree: ProcessTree | None) -> Job:
    """Return the job with the memory that its processes were seen to hold: those stand in the same box, and were
    measured later than the job."""
    if tree is None or tree.more or not tree.rows or job.running_since is None:
        return job
    held = sum(row.rss for row in tree.rows)
    return replace(job, rss=held, peak_rss=max(job.peak_rss, held))


def last_details(job: Job, state: BuildState, width: int) -> list[Line]:
    """Return the details of a job that has ended; `job` is its last known state."""
    ended = next((j for j in reversed(state.history.recent) if j.jid == job.jid), None)
    if job.jid in state.leaving:
        rows = [("state", "its process has ended; the build tool has not reported how")]
    elif ended is None:
        never = job.running_since is None
        rows = [("state", "ended by stoker before it began: another job had failed" if never else "has ended")]
    else:
        death = death_of(state, ended.output, ended.jid) if ended.outcome == "killed" else None
        words = {"ok": "has ended well", "failed": "has failed", "unknown": "has ended", "killed": "was killed"}
        words["interrupted"] = "was interrupted: the build was stopped, or its build tool killed, before it had ended"
        if ended.killed_by is not None:
            words["killed"] = f"was {how_text(ended.killed_by, death.who if death is not None else '')}"
        rows = [("state", words[ended.outcome]), ("took", _took(ended.seconds, ended.stood))]
        if ended.outcome == "killed":
            rows += [("why", clean(death.why))] if death is not None and death.why else []
            rows.append(("then", fate_text(state)))
        rows.append(("ended", time_of_day(ended.ended)))
    peak = max(job.peak_rss, ended.peak_rss or 0 if ended is not None else 0)
    rows = [
        ("tool", tool_name(job.tool, job.output, is_c=job.is_c)),
        *rows,
        ("pid", f"{job.pid}, the job's first process"),
    ]
    rows += [("memory", _most(peak, ended))] if peak else []
    return _box(ended.output if ended is not None else job.output, [*rows, *_whose(job, state)], width)


def _most(peak: int, ended: FinishedJob | None) -> str:
    """Return what an ended job held at most, as far as anybody saw it."""
    if ended is None or ended.seconds >= SURELY_MEASURED:
        return f"at most {format_bytes(peak)}"
    why = "its memory is read once a second" if ended.seconds >= LEAST_MEASURED else "too short to be measured"
    if ended.peak is not None and ended.peak.how == "less":
        return f"{format_bytes(ended.peak.bytes)} or less: {why}; by how such jobs grow"
    return f"{format_bytes(peak)} or more: {why}"


def _took(seconds: float, frozen: float) -> str:
    """Return for how long a job ran, and for how long it was frozen in addition."""
    apart = f", and {format_duration(frozen)} frozen" if frozen >= 1 else ""
    return format_duration(seconds) + apart


def _pid_text(job: Job, tree: ProcessTree | None) -> str:
    """Return the pids of a job's worker and of the shell around it; until those are known, the job's own pid."""
    rows = [row for row in tree.rows if not row.hosted] if tree is not None else []
    workers = [row for row in rows if row.name not in SHELLS]
    if not workers:
        return f"{job.pid} ({clean(rows[0].name, MAX_NAME)})" if rows else f"{job.pid}, the job's first process"
    works = next((row for row in workers if row.name == job.phase), workers[-1])
    shell = f", below its shell {job.pid}" if rows[0].name in SHELLS else ""
    return f"{works.pid} ({clean(works.name, MAX_NAME)}){shell}"


def _present(job: Job, state: BuildState, now: float, g: Glyphs, pid: str) -> list[tuple[str, str]]:
    waits = job.running_since is None
    rows = [
        ("tool", "  ".join(filter(None, (tool_name(job.tool, job.output, is_c=job.is_c), clean(job.phase, 40))))),
        ("pid", pid),
        ("state", _state_text(job)),
        *([("because", reason)] if (reason := dated_reason(job, now)) else []),
        *((term, words) for term, words in TERMS.items() if f" {term}" in reason),
        *([("host", f"{host} compiles it; here only its launcher waits")] if (host := job_host(job)) else []),
        ("waiting for", format_duration(now - since(job)))
        if waits
        else ("running for", _took(job.age(now), job.frozen_for(now))),
        *([] if waits else _used(job, g)),
    ]
    if (expected := _expected(job, now, g)) is not None:
        rows.append(("expected", expected))
    if state.estimate is not None and state.estimate.critical == job.jid:
        rows.append(("critical", "the longest chain of jobs to the end begins here"))
    return [*rows, *_whose(job, state)]


def _expected(job: Job, now: float, g: Glyphs) -> str | None:
    """Return what a job is expected to need, and for how long; once it has exceeded that, what it has held or more."""
    if job.expected is None:
        return None
    lasts = job.lasts if job.lasts is not None and job.lasts > job.age(now) else None
    about = ""
    if lasts is not None:
        about = f"{'less than a second' if lasts < 1 else f'about {format_rough(lasts)}'} on a core of its own"
    if job.expected > job.peak_rss:
        guess = "; a guess, as jobs like it differ by more than a factor of two" if job.guessed else ""
        return f"{format_bytes(job.expected)} at its peak" + (f", for {about}" if about else "") + guess
    holds = "holds" if job.rss == job.peak_rss else "held"
    figure = of_expected(job, g).partition("/")[2].partition(" ")[0]
    in_table = f" ({figure} in the table)" if figure.endswith("+") else ""
    most = f"{format_bytes(job.peak_rss)} or more{in_table}: it {holds} more than was expected"
    return most + (f"; it takes {about}" if about else "")


def _used(job: Job, g: Glyphs) -> list[tuple[str, str]]:
    """Return what a started job holds and uses, now and over its life."""
    if not (job.rss or job.peak_rss):
        return [("memory", "not measured yet")]
    return [
        ("memory", f"{format_bytes(job.rss)}, at most {format_bytes(job.peak_rss)} so far; {OWN}"),
        *_over_time(job.course.rss, job.expected or 0, g),
        ("cpu", "not measured yet since it goes on" if job.cpu_due else f"{job.cpu:.0f} % of one core"),
        *_over_time(job.course.cpu, 100, g),
    ]


def _over_time(values: Sequence[int], least: int, g: Glyphs) -> list[tuple[str, str]]:
    """Return values over a job's life as growing columns; the full height is at least `least`."""
    if len(values) < LEAST_COURSE:
        return []
    top, last = max(1, least, *values), len(g.levels) - 1
    return [(COURSE, "".join(g.levels[max(bool(value), round(value / top * last))] for value in values))]


def _state_text(job: Job) -> str:
    alone = f", alone ({clean(job.alone_by, 20)})" if job.alone_by else ", alone" if job.alone else ""
    state = {"on_deck": "on deck: held before it does anything", "frozen": "frozen: it keeps its memory"}
    return state.get(job.state, "running") + alone


def _whose(job: Job, state: BuildState) -> list[tuple[str, str]]:
    scheduler = state.schedulers.get(job.sid)
    if scheduler is None:
        return []
    return [("started by", f"{scheduler.tool} {clean(scheduler.version, 20)} in {clean(scheduler.directory)}")]


def _box(output: str, rows: Sequence[tuple[str, str]], width: int) -> list[Line]:
    lines: list[Line] = [(Part(piece, "text bold"),) for piece in _broken(clean(output, MAX_OUTPUT), width, 6)]
    lines.append(())
    for label, value in rows:
        prose = label in ("because", "host", "why", "state", "expected", "critical", "memory", *TERMS)
        first, *rest = (wrap(value, width - 13, 4) if prose else _broken(value, width - 13, 4)) or [""]
        lines.append((Part(pad(label, 13), "text_dim"), Part(first, "text_dim" if label in ("", COURSE) else "text")))
        lines += [(Part(" " * 13), Part(piece)) for piece in rest]
    return lines


def _broken(text: str, width: int, limit: int) -> list[str]:
    """Break a path or value into pieces of `width`, behind a slash if possible: paths have no blanks to break at."""
    width, pieces = max(1, width), list[str]()
    while text and len(pieces) < limit:
        slash = text.rfind("/", 0, width) + 1
        cut = slash if len(text) > width and slash > width // 2 else width
        pieces.append(text[:cut])
        text = text[cut:]
    return pieces
