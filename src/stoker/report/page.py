"""A recorded build as a page: one HTML file, readable without a script or a network. Pure.

Its figures are those of `stoker status --json`. Everything in it that comes from the build is escaped in `html`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from stoker.model.state import BuildState
from stoker.model.status import status_of
from stoker.model.units import format_bytes, format_duration
from stoker.report.arch_costs import ArchCosts, cost_rows
from stoker.report.charts import gantt, jobs_chart, memory_chart
from stoker.report.critical_path import critical_path
from stoker.report.html import Figure, cards, document, folded, paragraph, section, table
from stoker.report.job_records import JobRecord
from stoker.report.phases import phases, targets, together, waits
from stoker.report.recorded import RecordedBuild
from stoker.report.summary import STOKER, cpu_text, largest_first, peak_text, size
from stoker.report.wait_causes import cause_in_words
from stoker.report.whatif import WhatIf
from stoker.show import killed_text, verification_text
from stoker.show.cache_text import closing_lines
from stoker.show.level_text import uncounted

MOST_JOBS = 20
"""Slowest and largest jobs that are listed."""

MOST_DECISIONS = 1000
"""Decisions that are listed; the export has all."""


@dataclass(frozen=True, slots=True)
class Extras:
    """What a page shows beside the journal: builds on paper, the costliest templates, the cost of each architecture."""

    on_paper: Sequence[WhatIf] = ()
    on_paper_note: str = ""
    templates: Sequence[tuple[str, float, int]] = ()
    archs: ArchCosts = field(default_factory=ArchCosts)


def page(build: RecordedBuild, extras: Extras | None = None) -> str:
    """Return the whole page."""
    state, extras = build.state, extras or Extras()
    path = critical_path(build)
    return document(
        f"{state.name or state.id}: {state.phase}",
        [
            *_head(build),
            section("Memory and jobs", memory_chart(build), jobs_chart(build), _waits(build)),
            section("Jobs", gantt(build, path), _critical(build, path)),
            section("What it would have been", _on_paper(build, extras)),
            section("Where the time went", _phases(build), _targets(build)),
            section("Slowest jobs", _ranked(build, sorted(build.jobs, key=lambda j: j.seconds, reverse=True))),
            section("Largest jobs", _ranked(build, largest_first(build.jobs))),
            section("Killed and run again", _killed(build)),
            section("What went wrong", _failures(state)),
            section("Compiler cache", _cache(state)),
            section("Other machines", _hosts(state)),
            section("Verification", _verification(state), _archs(extras)),
            section("Templates that took longest", _templates(extras)),
            section("Decisions", _acts(build)),
            section("Machine and tools", _machine(build)),
        ],
    )


def _head(build: RecordedBuild) -> Iterator[str]:
    state = build.state
    status = status_of(state, build.ended)
    when = datetime.fromtimestamp(build.started, UTC).strftime("%Y-%m-%d %H:%M UTC")
    yield f"<h1>{cell(state.name or state.id)}</h1>"
    yield f"<p><code>{cell(' '.join(state.command))}</code></p>"
    yield paragraph(f"{state.phase} · {when} · {state.host} · in {state.cwd} · {state.id}", "dim")
    if not state.over:
        yield paragraph("This build has not ended: figures are those of its journal so far.", "bad")
    if state.outcome == "failed":
        yield paragraph(state.reason, "bad")
    yield cards(_figures(build, status))
    if build.left_out:
        yield paragraph(f"{build.left_out} jobs and decisions beyond what a page can hold are left out.", "dim")


def cell(words: str) -> str:
    """A text in a headline."""
    return paragraph(words).removeprefix('<p class="">').removesuffix("</p>")


def _figures(build: RecordedBuild, status: dict[str, Any]) -> list[tuple[str, Figure | str]]:
    memory = status["memory"]
    rows: list[tuple[str, Figure | str]] = [
        ("took", Figure("seconds", status["seconds"], format_duration(status["seconds"]))),
        ("exit status", Figure("exit_code", status["exit_code"], str(status["exit_code"]))),
        *_job_figures(build, status["progress"]),
        ("most memory", Figure("memory.build_peak", memory["build_peak"], format_bytes(memory["build_peak"]))),
        ("budget", Figure("memory.budget", memory["budget"], format_bytes(memory["budget"]))),
        ("written to disk", Figure("disk.written", status["disk"]["written"], format_bytes(status["disk"]["written"]))),
    ]
    if status["cache"] is not None:
        cache = status["cache"]
        rows.append(("cache hits", Figure("cache.hits", cache["hits"], f"{cache['hits']}")))
        rows.append(("cache misses", Figure("cache.misses", cache["misses"], f"{cache['misses']}")))
    return rows


def _job_figures(build: RecordedBuild, progress: dict[str, Any]) -> list[tuple[str, Figure | str]]:
    if words := uncounted(build.state):
        return [("jobs", Figure("progress.finished", progress["finished"], words))]
    return [
        ("jobs finished", Figure("progress.finished", progress["finished"], f"{progress['finished']}")),
        ("jobs in all", Figure("progress.total", progress["total"], f"{progress['total']}")),
        ("failed", Figure("progress.failed", progress["failed"], f"{progress['failed']}")),
        ("killed", f"{_killed_and_lost(build)[0]}"),
        ("killed and not built", Figure("progress.killed", progress["killed"], f"{progress['killed']}")),
        ("interrupted", Figure("progress.interrupted", progress["interrupted"], f"{progress['interrupted']}")),
        ("CPU time of jobs", format_duration(sum(job.cpu or 0.0 for job in build.jobs))),
    ]


def _clock(build: RecordedBuild, time: float) -> str:
    return format_duration(time - build.started)


def _waits(build: RecordedBuild) -> str:
    rows = [(cause_in_words(cause), format_duration(seconds), count) for cause, seconds, count in waits(build.jobs)]
    return folded("What jobs waited for", table(("cause", "seconds of all jobs", "jobs"), rows, (1, 2)))


def _critical(build: RecordedBuild, path: Sequence[JobRecord]) -> str:
    rows = [
        (_clock(build, j.born), j.output, format_duration(j.waiting), format_duration(j.seconds), peak_text(j))
        for j in path
    ]
    ran = together((j.began or j.born, j.ended) for j in path)
    known = any(s.deps for s in build.schedulers)
    how = "each waited for the one before it: for its output, its place or its memory"
    how = how if known else "by what ended last before each; the journal holds no graph"
    words = f"Critical path: {len(path)} jobs, {format_duration(ran)} of {format_duration(build.seconds)} ({how})"
    return folded(words, table(("from", "job", "on deck", "ran", "memory"), rows, (0, 2, 3, 4)))


def _on_paper(build: RecordedBuild, extras: Extras) -> str:
    rows = [
        (
            w.name,
            format_duration(w.seconds),
            f"{w.seconds / max(1.0, build.seconds):.2f} x",
            w.kills,
            format_duration(w.lost),
        )
        for w in extras.on_paper
    ]
    measured = ("as it was, measured", format_duration(build.seconds), "1.00 x", *_killed_and_lost(build))
    head = ("the build", "took", "", "killed", "CPU time lost")
    return paragraph(extras.on_paper_note, "dim") + table(head, [measured, *rows], (1, 2, 3, 4)) if rows else ""


def _killed_and_lost(build: RecordedBuild) -> tuple[int, str]:
    killed = [job for job in build.jobs if job.fate == "killed"]
    return len(killed), format_duration(sum(job.cpu or 0.0 for job in killed))


def _phases(build: RecordedBuild) -> str:
    rows = [
        (p.name, p.jobs or "", format_duration(p.seconds), format_duration(p.cpu) if p.jobs else "", size(p.peak))
        for p in phases(build)
    ]
    steps = [
        (
            s.name,
            f"attempt {s.attempt}",
            format_duration(s.ended - s.started),
            "" if s.exit_code is None else s.exit_code,
        )
        for s in build.steps
    ]
    return table(("work", "jobs", "for", "CPU time", "largest"), rows, (1, 2, 3, 4)) + table(
        ("step", "", "took", "exit status"), steps, (2, 3)
    )


def _targets(build: RecordedBuild) -> str:
    rows = [(p.name, p.jobs, format_duration(p.seconds), format_duration(p.cpu), size(p.peak)) for p in targets(build)]
    return folded("Compiles by target", table(("target", "jobs", "for", "CPU time", "largest"), rows, (1, 2, 3, 4)))


def _ranked(build: RecordedBuild, jobs: Sequence[JobRecord]) -> str:
    rows = [
        (
            job.output,
            format_duration(job.seconds),
            cpu_text(job),
            peak_text(job),
            format_duration(job.waiting),
            _clock(build, job.began or job.born),
            job.fate,
        )
        for job in jobs[:MOST_JOBS]
        if job.began is not None
    ]
    return table(("job", "ran", "CPU time", "memory", "on deck", "at", "outcome"), rows, (1, 2, 3, 4, 5))


def _killed(build: RecordedBuild) -> str:
    rows = [
        (_clock(build, j.ended), j.output, j.killed_by, format_duration(j.seconds), peak_text(j))
        for j in build.jobs
        if j.fate == "killed"
    ]
    words = "".join(paragraph(line) for line in killed_text.cost_lines(build.state))
    return words + table(("at", "job", "by", "had run", "memory"), rows, (0, 3, 4))


def _failures(state: BuildState) -> str:
    causes = state.diagnosis.causes if state.diagnosis is not None else ()
    words = "".join(paragraph(f"{c.title}: {c.why} {c.remedy}") for c in causes)
    rows = [(f.output, "" if f.exit_code is None else f.exit_code, " ".join(f.excerpt[:5])) for f in state.failures]
    return words + table(("failed", "exit status", "it said"), rows, (1,))


def _cache(state: BuildState) -> str:
    return table(("", ""), closing_lines(state.cache)) if state.cache is not None else ""


def _hosts(state: BuildState) -> str:
    """What other machines have compiled. What they do within some hundredths of a second is not seen."""
    finished = state.remote.finished
    rows = [
        (h.name, engine.kind, h.slots, finished.get(h.name, 0), h.errors, h.fallbacks, h.why_unused)
        for engine in state.remote.engines
        for h in engine.hosts
    ]
    head = ("host", "engine", "slots", "jobs", "errors", "fell back", "")
    return table(head, rows[:MOST_JOBS], (2, 3, 4, 5)) if rows else ""


def _verification(state: BuildState) -> str:
    found = state.verification
    if found is None:
        return ""
    problems = [(p.severity, p.file, p.what, p.remedy) for p in found.problems]
    return paragraph(verification_text.headline(found)[1]) + table(("", "file", "what", "remedy"), problems)


def _archs(extras: Extras) -> str:
    head, rows = cost_rows(extras.archs)
    return table(head, rows, range(1, len(head))) + (paragraph(extras.archs.how, "dim") if rows else "")


def _templates(extras: Extras) -> str:
    rows = [(name, f"{seconds:.2f} s", count) for name, seconds, count in extras.templates]
    return table(("template", "time, with those within", "times"), rows, (1, 2))


def _acts(build: RecordedBuild) -> str:
    head = ("at", "who", "what", "why")
    kept = build.decisions[:MOST_DECISIONS]
    rows = [(_clock(build, d.time), d.who, d.what, d.why) for d in kept]
    by_hand = [row for row in rows if row[1] not in STOKER]
    levels = [
        (_clock(build, v.time), v.mode, v.target, "" if v.paused == "no" else f"{v.paused} pause", _guard(v.guarded))
        for v in build.levels
    ]
    more = len(build.decisions) - len(kept)
    return (
        (paragraph("By people:") + table(head, by_hand, (0,)) if by_hand else paragraph("No person intervened."))
        + folded(f"All {len(build.decisions)} decisions", table(head, rows, (0,)) + _more(more))
        + folded(f"The level, {len(levels)} times", table(("at", "mode", "jobs", "", ""), levels, (0, 2)))
        + folded(f"{len(build.state.notices)} notices", _notices(build))
    )


def _notices(build: RecordedBuild) -> str:
    return table(("at", "", ""), [(_clock(build, n.time), n.severity, n.text) for n in build.state.notices], (0,))


def _guard(guarded: bool) -> str:
    return "" if guarded else "memory not guarded"


def _more(count: int) -> str:
    return paragraph(f"{count} more are in the export.") if count > 0 else ""


def _machine(build: RecordedBuild) -> str:
    state, machine = build.state, build.state.machine
    rows: list[Sequence[object]] = [
        ("host", state.host),
        ("cores", state.cores),
        ("memory", format_bytes(state.memory_total)),
        ("stoker", state.version),
        *_tools(build),
    ]
    if machine is not None:
        rows.append(("limit", f"{format_bytes(machine.memory_budget)} by {machine.memory_limit_source}"))
        rows += [("GPU", gpu.name) for gpu in machine.gpus]
    if build.others > 0:
        rows.append(("others held", f"{format_bytes(build.others)} of it, on average"))
    return table(("", ""), rows)


def _tools(build: RecordedBuild) -> Iterable[Sequence[object]]:
    schedulers = sorted({(s.tool, s.version) for s in build.schedulers})
    yield from (("scheduler", f"{tool} {version}") for tool, version in schedulers)
    passes = sorted({p.phase for job in build.jobs for p in job.points if p.phase})
    if passes:
        yield ("seen at work", ", ".join(passes[:MOST_JOBS]))
