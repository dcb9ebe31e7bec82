"""A recorded build in brief: figures, and short tables of what mattered. Pure; exactly what a screen shows.

Names come from the build: code that shows them must sanitise them.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from stoker.model.known_peak import peak_rank
from stoker.model.status import status_of
from stoker.model.units import format_bytes, format_duration
from stoker.report.arch_costs import ArchCosts, cost_rows
from stoker.report.critical_path import critical_path
from stoker.report.job_records import JobRecord
from stoker.report.phases import phases, together, waits
from stoker.report.recorded import RecordedBuild
from stoker.report.wait_causes import cause_in_words
from stoker.show import budget_text, killed_text, verification_text
from stoker.show.cache_text import closing_lines
from stoker.show.level_text import uncounted

MOST_ROWS = 12
"""Rows of a table: what fits on half of a screen; the page of `stoker report` has more."""


@dataclass(frozen=True, slots=True)
class BriefTable:
    """A title, headings and rows. The first column is a name, all others are figures."""

    title: str
    head: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Brief:
    """A build: who it is, figures as labels and texts, what is to be said in sentences, and tables that hold rows."""

    id: str
    name: str
    command: tuple[str, ...]
    cwd: str
    started: float
    outcome: str
    exit_code: int | None
    figures: tuple[tuple[str, str], ...]
    remarks: tuple[str, ...]
    tables: tuple[BriefTable, ...]


def brief(build: RecordedBuild, archs: ArchCosts) -> Brief:
    """Return the build in brief; `archs` is what each GPU architecture cost."""
    state = build.state
    tables = (
        _phases(build),
        _critical(build),
        _ranked("slowest jobs", sorted(build.jobs, key=lambda j: j.seconds, reverse=True)),
        _ranked("largest jobs", largest_first(build.jobs)),
        _killed(build),
        _waits(build),
        BriefTable("cost of each GPU architecture", *cost_rows(archs)),
    )
    return Brief(
        state.id,
        state.name,
        state.command,
        state.cwd,
        state.started,
        state.outcome or state.phase,
        state.exit_code,
        tuple(_figures(build)),
        (*_remarks(build), *([archs.how] if archs.costs else [])),
        tuple(table for table in tables if table.rows),
    )


def _figures(build: RecordedBuild) -> Iterable[tuple[str, str]]:
    status = status_of(build.state, build.ended)
    progress, memory, cache = status["progress"], status["memory"], build.state.cache
    counts = [(progress["finished"], "done"), *((progress[word], word) for word in ("failed", "killed", "interrupted"))]
    yield "took", format_duration(status["seconds"])
    known = ", ".join(f"{count} {word}" for count, word in counts if count or word == "done")
    nothing_counted = uncounted(build.state)
    yield "jobs", nothing_counted or known
    if not nothing_counted:
        yield "CPU time", format_duration(sum(job.cpu or 0.0 for job in build.jobs))
    peak = f"{format_bytes(memory['build_peak'])} at most" if memory["build_peak"] else "not measured"
    yield "memory", f"{peak}; budget {format_bytes(memory['budget'])}"
    yield "written", format_bytes(status["disk"]["written"])
    yield from closing_lines(cache) if cache is not None else ()


def _remarks(build: RecordedBuild) -> Iterable[str]:
    """What is worth a sentence: why it failed, what was killed, whether it will run, what a person did."""
    state = build.state
    if state.outcome == "failed" and state.reason:
        yield state.reason
    yield from (
        f"{c.title}: {c.why} {c.remedy}" for c in (state.diagnosis.causes if state.diagnosis is not None else ())
    )
    yield from killed_text.cost_lines(state)
    if over := budget_text.over_text(state):
        yield over
    if state.verification is not None:
        yield verification_text.headline(state.verification)[1]
    by_hand = [d for d in build.decisions if d.who not in STOKER]
    yield from (f"{d.who}: {d.what} ({d.why})" for d in by_hand[:MOST_ROWS])


STOKER = ("governor", "engine")
"""Who decides, where no person does (events.Decided)."""


def _phases(build: RecordedBuild) -> BriefTable:
    rows = tuple(
        (p.name, str(p.jobs or ""), format_duration(p.seconds), format_duration(p.cpu) if p.jobs else "", size(p.peak))
        for p in phases(build)[:MOST_ROWS]
    )
    return BriefTable("where the time went", ("", "jobs", "for", "CPU time", "largest"), rows)


def _critical(build: RecordedBuild) -> BriefTable:
    path = critical_path(build)
    ran = together((j.began or j.born, j.ended) for j in path)
    longest = sorted(path, key=lambda j: j.seconds, reverse=True)[:MOST_ROWS]
    rows = tuple((j.output, format_duration(j.seconds), peak_text(j)) for j in path if j in longest)
    share = f"{format_duration(ran)} of {format_duration(build.seconds)}"
    return BriefTable(
        f"critical path: {len(path)} {'job' if len(path) == 1 else 'jobs'}, {share}; its longest",
        ("", "ran", "memory"),
        rows,
    )


def _ranked(title: str, jobs: Sequence[JobRecord]) -> BriefTable:
    rows = tuple(
        (j.output, format_duration(j.seconds), cpu_text(j), peak_text(j))
        for j in jobs[:MOST_ROWS]
        if j.began is not None
    )
    return BriefTable(title, ("", "ran", "CPU time", "memory"), rows)


def _killed(build: RecordedBuild) -> BriefTable:
    rows = [(j.output, j.killed_by, format_duration(j.seconds), peak_text(j)) for j in build.jobs if j.fate == "killed"]
    return BriefTable("killed", ("", "by", "had run", "memory"), tuple(rows[:MOST_ROWS]))


def _waits(build: RecordedBuild) -> BriefTable:
    rows = tuple(
        (cause_in_words(cause), format_duration(seconds), str(jobs)) for cause, seconds, jobs in waits(build.jobs)
    )
    return BriefTable("what jobs waited for", ("", "all together", "jobs"), rows)


def cpu_text(job: JobRecord) -> str:
    """A job's CPU time; empty where nobody measured it."""
    return "" if job.cpu is None else format_duration(job.cpu)


def peak_text(job: JobRecord) -> str:
    """The most that a job held, with a mark where it may have been more or was less; empty where nobody knows."""
    return job.known_peak.text if job.known_peak is not None else ""


def largest_first(jobs: Iterable[JobRecord]) -> list[JobRecord]:
    """Sort jobs by the most that they held."""
    return sorted(jobs, key=lambda job: peak_rank(job.known_peak), reverse=True)


def size(peak: int) -> str:
    """Bytes; empty for none."""
    return format_bytes(peak) if peak else ""
