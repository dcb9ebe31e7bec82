"""The dashboard, the timeline and the end screen put together from their parts. Pure: size in, lines out.

Unaware of Textual; the last line of each page is left to the footer.
"""

from __future__ import annotations

from stoker.model.killed import failed_steps
from stoker.model.progress import progress_of
from stoker.model.state import BuildState, DecisionEntry, FinishedJob
from stoker.model.text import clean
from stoker.model.units import format_bytes, format_duration
from stoker.show import killed_text
from stoker.show.cache_text import closing_lines
from stoker.show.governing_text import is_person, is_routine
from stoker.show.tui.pages import decision_lines, gantt, header, memory_chart, meters
from stoker.show.tui.pages.chart import AXIS_WIDTH, Area, chart, marks, memory_top, sample, time_axis
from stoker.show.tui.pages.job_list import TOOL_NAMES, JobView, soloist
from stoker.show.tui.pages.job_table import TOOL_INKS, lately, table
from stoker.show.tui.pages.lines import (
    BLANK,
    GAP,
    Line,
    Part,
    elide_end,
    elide_middle,
    elide_path,
    fit,
    pad,
    section,
    width_of,
)
from stoker.show.tui.pages.moment import Moment
from stoker.show.tui.pages.names import plain_name
from stoker.show.tui.terminal.glyphs import Glyphs

WIDE = 160
"""Screen width from which decisions stand beside the jobs instead of above them."""

SIDE_WIDTH = 64
MAX_BANNERS = 2
ALONE_NAME = 28
"""Lines of what must not be missed, and cells of a job's name in one of them."""

LEAST_FINISHED = 3
"""Lines below the running jobs from which the finished ones are worth a heading."""

DECK_ROWS = 4
"""Lines for jobs on deck where there is room for what ended last, too: the next ones, and how many more there are."""

GANTT_WIDTH, LEAST_BARS = 100, 3
"""Screen width from which jobs are drawn as bars, and how many lines that is worth."""

LEAST_CHART, MOST_CHART, LEAST_REST = 4, 9, 10
"""Lines of the memory chart with its axis, and how many must be left below it for decisions and jobs."""

TALL = 36
"""Lines of the work panel from which the end of the output is shown below the jobs too."""


def dashboard(m: Moment, width: int, height: int, g: Glyphs, view: JobView, tail: list[Line]) -> list[Line]:
    """All lines of the dashboard; `tail` is the end of the build's output, shown while no job runs."""
    lines = [header.title(m, width, g), header.progress(m, width, g)]
    roomy = height >= 22
    rows = meters.meter_rows(m.state, height)
    lines += [BLANK] * (roomy and not (meters.explained(m.state, rows) and height < 30))
    lines += meters.meters(m, width, g, rows)
    lines += banner(m, width, height, g)
    drawn = _chart(m, width, height - len(lines), g) if roomy else []
    lines += drawn or [BLANK] * roomy
    rest = max(0, height - len(lines))
    if width >= WIDE:
        main = work_panel(m, width - SIDE_WIDTH - 3, rest, g, view, tail)
        side = [
            decisions_heading(SIDE_WIDTH, g),
            *decision_lines.decisions(m, SIDE_WIDTH, max(0, rest - 1), g, whole=True),
        ]
        return lines + _beside(main, side, width - SIDE_WIDTH - 3)
    rows = decision_rows(m.state, height)
    if rows:
        lines += [decisions_heading(width, g), *decision_lines.decisions(m, width, rows, g)]
        lines += [BLANK] * (height >= 36)
    return lines + work_panel(m, width, max(0, height - len(lines)), g, view, tail)


def _chart(m: Moment, width: int, left: int, g: Glyphs) -> list[Line]:
    """The memory of the last minutes and of the next, where the lines that are left have room for it beside the rest.

    How high it is hangs on the screen alone, so that it does not jump.
    """
    rows = max(LEAST_CHART, min(MOST_CHART, left // 4))
    if m.state.over or left < rows + LEAST_REST or not memory_chart.is_worth_drawing(m.state, width):
        return []
    bars = _bars(m.state, left - rows) if width >= GANTT_WIDTH else 0
    margin = gantt.MARGIN if bars else AXIS_WIDTH
    lines = [*memory_chart.memory_chart(m, width, rows, g, margin), *gantt.gantt(m, width, bars, g)]
    return [*lines, *[BLANK] * (left >= TALL)]


def _bars(state: BuildState, left: int) -> int:
    """Lines for the jobs as bars: one for each that may run, where the table of jobs keeps what it needs."""
    spare = left - _expected_rows(state) - LEAST_REST
    wanted = state.level.target or 0
    return min(wanted, spare) if spare >= min(wanted, LEAST_BARS) else 0


def decisions_heading(width: int, g: Glyphs) -> Line:
    """The heading of the decisions, which says whose marks they bear where names are left out."""
    if width >= decision_lines.NAMED_WIDTH:
        return section("decisions", width, g)
    marks = (Part(f" {g.governor} stoker", "text_dim"), Part(f"  {g.person} a person", "person"))
    return section("decisions", width, g, marks)


def decision_rows(state: BuildState, height: int) -> int:
    """Lines for decisions: as many as there are, within a fair share of the screen."""
    share = 1 if height < 20 else 2 if height < 24 else 3 if height < 30 else height // 6
    return min(share, len(decision_lines.entries(state)))


def banner(m: Moment, width: int, height: int, g: Glyphs) -> list[Line]:
    """What must not be missed, and what it means for the build: one line each."""
    state = m.state
    texts = []
    if m.link == "lost":
        note = f" ({clean(m.update.note, 200)})" if m.update.note else ""
        texts.append((g.warn, f"engine lost, reconnecting. The build continues without it{note}", "warn"))
    if m.link == "journal":
        texts.append((g.warn, f"read from the journal: {clean(m.update.note, 200)}", "warn"))
    if state.phase == "paused":
        running = progress_of(state).running
        texts.append((g.warn, f"paused: nothing new starts; running jobs finish ({running} now)", "warn"))
    elif state.phase == "frozen":
        held = format_bytes(state.memory.build)
        texts.append((g.warn, f"frozen: nothing runs; what was started keeps its memory ({held})", "warn"))
    if not (state.level.guarded or state.over or meters.explained(state, meters.meter_rows(state, height))):
        texts.append((g.warn, meters.UNGUARDED, "warn"))
    if alone := _alone_text(m, g):
        texts.append((g.warn, alone, "warn"))
    if killed := killed_text.outlook_text(state):
        texts.append((g.killed, killed, "killed"))
    return [
        fit((Part(elide_end(f"{mark} {text}", width, g.ellipsis), f"{ink} bold"),), width)
        for mark, text, ink in texts[:MAX_BANNERS]
    ]


def _alone_text(m: Moment, g: Glyphs) -> str:
    """Which job runs alone, who said so, and how the others may go on."""
    job = soloist(m.state)
    if job is None:
        return ""
    name = elide_path(plain_name(job.output) or f"pid {job.pid}", ALONE_NAME, g.ellipsis)
    others = len(m.state.jobs) - 1
    runs = "is to run alone" if job.state == "on_deck" else "runs alone"
    wait = f"{others} wait{'s' if others == 1 else ''}" if others else "nothing waits"
    if not job.alone_by:
        return f"{name} {runs}, since it was killed beside others; {wait}"
    undo = f"; to undo: {m.key('job.alone')} on it, or {m.key('level-auto')}" if not m.read_only else ""
    return f"{name} {runs} ({clean(job.alone_by, 20)}); {wait}{undo}"


def _beside(left: list[Line], right: list[Line], left_width: int) -> list[Line]:
    height = max(len(left), len(right))
    left += [BLANK] * (height - len(left))
    right += [BLANK] * (height - len(right))
    return [(*fit(a, left_width), Part("   "), *b) for a, b in zip(left, right, strict=True)]


def work_panel(m: Moment, width: int, rows: int, g: Glyphs, view: JobView, tail: list[Line]) -> list[Line]:
    """The running jobs; while there are none, what is going on and the end of the output."""
    if rows <= 0:
        return []
    if m.state.jobs:
        below = rows // 4 if rows >= TALL and tail else 0
        lines = _jobs_panel(m, width, rows - below - bool(below), view, g)
        lines += [BLANK] * (rows - below - len(lines))
        return [*lines, *([section("output", width, g), *_last(tail, below - 1, width)] if below else [])]
    activity = clean(m.state.activity) or ("between jobs" if m.state.schedulers else "starting")
    if m.state.over:
        activity = "the build has ended"
    head = section("output", width, g)
    lines = [(Part(elide_end(activity, width, g.ellipsis), "text bold"),), head]
    return [*lines, *_last(tail, rows - 2, width)][:rows]


def _jobs_panel(m: Moment, width: int, rows: int, view: JobView, g: Glyphs) -> list[Line]:
    """The running jobs, and in room that they will not need the ones that ended last.

    The place of the latter hangs on what may run, not on the jobs of the moment, so that it does not jump.
    """
    needed = 1 + _expected_rows(m.state)
    spare = rows - needed - 1
    if spare < LEAST_FINISHED or not m.state.history.recent:
        return table(m, width, rows, view, g)
    lines = table(m, width, needed, view, g)
    lines += [BLANK] * (needed + 1 - len(lines))
    return [*lines, *lately(m.state, width, spare, g, view.words)]


def _expected_rows(state: BuildState) -> int:
    """Rows that the jobs may need: as many as may be started, and of those on deck a few."""
    level = state.level
    if level.target is None:
        return max(len(state.jobs), level.window or 0)
    started = sum(job.state != "on_deck" for job in state.jobs.values())
    return max(started, level.target) + DECK_ROWS


def _last(tail: list[Line], rows: int, width: int) -> list[Line]:
    return [fit(line, width) for line in tail[-rows:]] if rows > 0 else []


def timeline(m: Moment, width: int, height: int, g: Glyphs) -> list[Line]:
    """Memory, running jobs and CPU over the build's whole life, with the decisions marked."""
    state = m.state
    lines = [header.title(m, width, g), BLANK] if height >= 18 else [header.title(m, width, g)]
    points = state.timeline.points
    columns = width - AXIS_WIDTH
    if len(points) < 2 or columns < 10 or height < 12:
        return [*lines, (Part("The timeline needs a few seconds of measurements.", "text_dim"),)]
    start, end = points[0].time, max(points[-1].time, points[0].time + 1)
    times = [p.time for p in points]

    def series(values: list[float]) -> list[float]:
        return sample(times, values, columns, start, end)

    used, own = series([p.memory_used for p in points]), series([p.build_rss for p in points])
    jobs, cpu = series([p.running for p in points]), series([p.cpu_percent for p in points])
    deck = series([p.on_deck for p in points])
    budget = state.machine.memory_budget if state.machine else state.memory_total
    rows = height - len(lines) - 6 - any(deck)
    memory_rows = max(3, rows // 2)
    small = max(2, (rows - memory_rows) // 2)
    top, label = memory_top(max(*used, *own), budget)
    lines.append(_legend(state, width, g, budget))
    areas = [Area(own, "memory_build"), Area(used, "memory", line=True)]
    limit = budget if budget <= top else None
    lines += chart(areas, top, memory_rows, g, label, limit=limit, limit_ink="memory_limit")
    most = max(1.0, max(jobs))
    p = progress_of(state)
    waiting = f", {p.on_deck} on deck" if any(deck) else ""
    now = "" if state.over else f"  now {p.running}{waiting}"
    lines.append((Part(" " * AXIS_WIDTH), Part("running jobs", "running"), Part(now, "text_dim")))
    lines += chart([Area(jobs, "running")], most, small, g, f"{most:.0f}")
    if any(deck):
        lines += chart([Area(deck, "on_deck")], max(deck), 1, g, f"deck {max(deck):.0f}")
    now = "" if state.over else f"  now {points[-1].cpu_percent:.0f} %"
    lines.append((Part(" " * AXIS_WIDTH), Part("cpu", "cpu"), Part(now, "text_dim")))
    lines += chart([Area(cpu, "cpu")], 100, small, g, "100 %")
    lines.append(marks("decisions", columns, _decision_marks(state, start, end, g)))
    offset, span = start - state.started, end - start
    labels = [(i / 4, format_duration(offset + span * i / 4)) for i in range(5)]
    return [*lines, *time_axis(columns, labels, g)]


def _legend(state: BuildState, width: int, g: Glyphs, budget: float) -> Line:
    """What is drawn how, and how much it is now; of an ended build how much it was at most."""
    own = state.memory.build_peak if state.over else state.memory.build
    used = state.memory.used_peak if state.over else state.machine.memory_used if state.machine else 0
    parts = [
        Part(pad("at most" if state.over else "", AXIS_WIDTH), "text_dim"),
        Part(f"{g.block} build {format_bytes(own)}", "memory_build"),
        GAP,
        Part(f"{g.edges[1]} all {format_bytes(used)}", "memory"),
        GAP,
        Part(f"{g.dash} budget", "memory_limit"),
    ]
    size = Part(f" {format_bytes(budget)}", "memory_limit")  # the axis shows it too
    return (*parts, size) if width_of((*parts, size)) <= width else tuple(parts)


def _decision_marks(state: BuildState, start: float, end: float, g: Glyphs) -> list[tuple[float, str, str]]:
    """Where something was decided; what is drawn later covers what many others stand beside: a person's word last."""
    span = max(1e-9, end - start)
    ranked = sorted(state.decisions, key=lambda d: (is_person(d), not is_routine(d)))
    return [((d.time - start) / span, *_decision_mark(d, g)) for d in ranked]


def _decision_mark(decision: DecisionEntry, g: Glyphs) -> tuple[str, str]:
    if is_person(decision):
        return g.person, "person"
    if decision.what.startswith("freeze "):
        return g.frozen, "frozen"
    if decision.what.startswith("shed "):
        return g.killed, "killed"
    return g.governor, "text_dim" if is_routine(decision) else "text"


def summary(m: Moment, width: int, height: int, g: Glyphs) -> list[Line]:
    """The end: outcome and why, what it took, the heaviest jobs, what failed, and where the log is."""
    state, p = m.state, progress_of(m.state)
    mark, word, ink = {
        "done": (g.ok, "done", "ok"),
        "failed": (g.fail, "failed", "error"),
        "stopped": (g.warn, "stopped", "warn"),
        None: (g.dot, "not over", "text"),
    }[state.outcome]
    code = "exit code unknown" if state.exit_code is None else f"exit code {state.exit_code}"
    head = [Part(f" {mark} {word} ", f"{ink} bold reverse"), GAP, Part(clean(state.name, 60), "accent bold"), GAP]
    head.append(Part(f"{code}  after {format_duration(m.elapsed)}", "text bold"))
    lines: list[Line] = [fit(head, width)]
    if state.reason and state.reason != word:
        lines.append((Part(elide_end(clean(state.reason), width, g.ellipsis), ink if ink != "ok" else "text"),))
    lines.append(BLANK)
    facts = [
        (
            "jobs",
            f"{p.finished} done"
            + (f", {p.failed} failed" if p.failed else "")
            + _not_run(p.total - p.finished - p.failed),
        ),
        *(("killed", line) for line in killed_text.cost_lines(state)),
        ("memory", meters.most_memory(state)),
        *([("governed", restraint)] if (restraint := _restraint(state)) else []),
        ("written", meters.written(state)),
        *(closing_lines(state.cache) if state.cache is not None else []),
        ("command", header.shown_command(state)),
        ("log", f"{clean(state.log_path)}  ({format_bytes(state.output.size)})"),
    ]
    for label, value in facts:
        cut = elide_middle if label in ("command", "log") else elide_end  # of a sentence the beginning matters most
        lines.append((Part(pad(label, 9), "text_dim"), Part(cut(value, width - 9, g.ellipsis))))
    room = height - len(lines)
    failures = failed_steps(state)
    if failures and room >= 4:
        shown = failures[: max(1, min(len(failures), room // 3))]
        lines += [BLANK, section(f"failures {len(failures)}", width, g)]
        for f in shown:
            status = "" if f.exit_code is None else f"  exit {f.exit_code}"
            text = elide_path(plain_name(f.output) or clean(f.command), width - 2 - len(status), g.ellipsis)
            lines.append((Part(f"{g.fail} ", "error bold"), Part(text, "text"), Part(status, "text_dim")))
    return lines + _rankings(state, width, height - len(lines), g)


def _restraint(state: BuildState) -> str:
    """How the governor kept the build within its memory; empty where it never had to."""
    held, frozen = state.restraint.held, state.restraint.frozen
    waited = f"{held} {'job' if held == 1 else 'jobs'} waited for memory"
    return ", ".join([*([waited] if held else []), *([f"{frozen} frozen"] if frozen else [])])


def _not_run(left: int) -> str:
    return f", {left} not run" if left > 0 else ""


def _rankings(state: BuildState, width: int, room: int, g: Glyphs) -> list[Line]:
    """The heaviest and the slowest jobs, in what room there is."""
    heaviest = list(state.history.heaviest)
    slowest = list(state.history.slowest)
    if room < 4 or not slowest:
        return []
    # What a stop has ended did not fail, and what failed in its last second looks the same.
    bad = Part(f"{g.warn} ", "warn") if state.outcome == "stopped" else Part(f"{g.fail} ", "error")
    if width >= 110 and heaviest:
        half = (width - 3) // 2
        left = _ranking("heaviest jobs", heaviest, bad, half, room - 1, g)
        right = _ranking("slowest jobs", slowest, bad, width - half - 3, room - 1, g)
        return [BLANK, *_beside(left, right, half)]
    both = bool(heaviest) and room >= 9
    lines = (
        [BLANK, *_ranking("heaviest jobs", heaviest, bad, width, room // 2 - 1 if both else room - 1, g)]
        if heaviest
        else []
    )
    if both or not heaviest:
        lines += [BLANK, *_ranking("slowest jobs", slowest, bad, width, room - len(lines) - 1, g)]
    return lines


def _ranking(title: str, jobs: list[FinishedJob], bad: Part, width: int, rows: int, g: Glyphs) -> list[Line]:
    tail = [Part(" " + pad("tool", 5) + pad("time", 8, right=True) + pad("peak", 10, right=True), "text_dim")]
    lines = [section(title, width, g, tail)]
    for job in jobs[: max(0, rows - 1)]:
        peak = format_bytes(job.peak_rss) if job.peak_rss else g.dash
        cells = [
            Part(" " + pad(TOOL_NAMES[job.tool], 5), TOOL_INKS[job.tool]),
            Part(pad(format_duration(job.seconds), 8, right=True)),
            Part(pad(peak, 10, right=True)),
        ]
        room = width - width_of(cells) - 2
        mark = {"failed": bad, "killed": Part(f"{g.killed} ", "killed")}.get(job.outcome, Part("  "))
        lines.append((mark, Part(pad(elide_path(plain_name(job.output), room, g.ellipsis), room)), *cells))
    return lines
