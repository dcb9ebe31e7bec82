"""The dashboard, assembled from its parts. Pure: a moment and a size in, lines out.

Does not know Textual. The screen's last line is left to the footer.
"""

from __future__ import annotations

from rich.cells import cell_len

from stoker.model.killed import failed_steps
from stoker.model.progress import frozen_by_person, progress_of, stalled_by
from stoker.model.state import BuildState
from stoker.model.text import clean
from stoker.model.units import format_bytes
from stoker.show import killed_text
from stoker.show.left_text import frozen_by_hand
from stoker.show.level_text import is_loose
from stoker.show.remote_text import count
from stoker.show.tui.pages import decision_lines, gantt, header, memory_chart, meters
from stoker.show.tui.pages.chart import AXIS_WIDTH
from stoker.show.tui.pages.clauses import clauses
from stoker.show.tui.pages.job_list import JobView, soloist
from stoker.show.tui.pages.job_table import lately, table
from stoker.show.tui.pages.lines import (
    BLANK,
    Line,
    Part,
    beside,
    elide_end,
    elide_path,
    fit,
    section,
)
from stoker.show.tui.pages.moment import Moment
from stoker.show.tui.pages.names import plain_name
from stoker.show.tui.terminal.glyphs import Glyphs

WIDE = 160
"""Screen width from which decisions are shown beside the jobs instead of above them."""

SIDE_WIDTH = 64
MAX_BANNERS = 2
LEAST_ALONE_NAME, ALONE_NAME = 12, 28
"""Maximum banner lines, and cells of a job's name in a banner."""

LEAST_FAILED_NAME, ROOMY_FAILED_NAME = 8, 24
"""Minimum cells of a failed step's name in a banner."""

LEAST_FINISHED = 3
"""Minimum lines below the running jobs for a list of finished ones."""

DECK_ROWS = 4
"""Lines for jobs on deck if recently finished jobs are listed too: the next ones, and the number of the others."""

QUEUE_STEP = 4
"""Number of jobs by which the table grows at once, so that the rows below it rarely move."""

GANTT_WIDTH, LEAST_BARS = 100, 3
"""Minimum screen width and lines for drawing jobs as bars."""

LEAST_CHART, MOST_CHART, LEAST_REST = 4, 9, 10
"""Lines of the memory chart with its axis, and lines that must remain below it for decisions and jobs."""

TALL = 36
"""Lines of the work panel from which the end of the output is also shown, below the jobs."""


def dashboard(m: Moment, width: int, height: int, g: Glyphs, view: JobView, tail: list[Line]) -> list[Line]:
    """Return all lines of the dashboard; `tail` is the end of the output, for while no job runs or if there is room."""
    lines = [header.progress(m, width, g)]
    roomy = height >= 22
    rows = meters.meter_rows(m.state, height)
    lines += [BLANK] * (roomy and not (meters.explained(m.state, rows) and height < 30))
    lines += meters.meters(m, width, g, rows)
    lines.insert(0, header.title(m, width, g, bannered=len(lines) + 1 < height))
    lines += [*banner(m, width, height, g), *_absence(m, width, g)]
    drawn = _chart(m, width, height - len(lines), g) if roomy else []
    lines += drawn or [BLANK] * roomy
    rest = max(0, height - len(lines))
    if width >= WIDE:
        main = work_panel(m, width - SIDE_WIDTH - 3, rest, g, view, tail)
        side = [
            decisions_heading(SIDE_WIDTH, g),
            *decision_lines.decisions(m, SIDE_WIDTH, max(0, rest - 1), g, whole=True),
        ]
        return lines + beside(main, side, width - SIDE_WIDTH - 3)
    rows = decision_rows(m.state, height)
    if rows:
        lines += [decisions_heading(width, g), *decision_lines.decisions(m, width, rows, g)]
        lines += [BLANK] * (height >= 36)
    return lines + work_panel(m, width, max(0, height - len(lines)), g, view, tail)


def _chart(m: Moment, width: int, left: int, g: Glyphs) -> list[Line]:
    """Return the memory chart of the last and the next minutes, if the remaining lines have room for it.

    Its height depends only on the screen, so that it does not jump.
    """
    rows = max(LEAST_CHART, min(MOST_CHART, left // 4))
    if m.state.over or m.state.ending or left < rows + LEAST_REST or not memory_chart.is_worth_drawing(m.state, width):
        return []
    bars = _bars(m.state, left - rows) if width >= GANTT_WIDTH else 0
    margin = gantt.MARGIN if bars else AXIS_WIDTH
    lines = [*memory_chart.memory_chart(m, width, rows, g, margin), *gantt.gantt(m, width, bars, g)]
    return [*lines, *[BLANK] * (left >= TALL)]


def _bars(state: BuildState, left: int) -> int:
    """Return the lines for jobs as bars: one per job that may run, as far as the table of jobs leaves room."""
    spare = left - _expected_rows(state) - LEAST_REST
    wanted = 0 if is_loose(state) else state.level.target or 0
    return min(wanted, spare) if spare >= min(wanted, LEAST_BARS) else 0


def decisions_heading(width: int, g: Glyphs) -> Line:
    """Return the heading of the decisions, with a legend of the marks if names are left out."""
    if width >= decision_lines.NAMED_WIDTH:
        return section("decisions", width, g)
    marks = (Part(f" {g.governor} stoker", "text_dim"), Part(f"  {g.person} a person", "person"))
    return section("decisions", width, g, marks)


def decision_rows(state: BuildState, height: int) -> int:
    """Return the lines for decisions: at most a share of the screen; a single decision may take two lines."""
    share = 1 if height < 20 else 2 if height < 24 else 3 if height < 30 else height // 6
    count = len(decision_lines.entries(state))
    return min(share, max(2, count)) if count else 0


def banner(m: Moment, width: int, height: int, g: Glyphs) -> list[Line]:
    """Return the warnings that must not be missed, and what they mean for the build, one line each."""
    state = m.state
    texts = []
    if m.link == "lost":
        note = f" ({clean(m.update.note, 200)})" if m.update.note else ""
        texts.append((g.warn, f"engine lost, reconnecting. The build continues without it{note}", "warn"))
    if m.link == "journal":
        texts.append((g.warn, f"read from the journal: {clean(m.update.note, 200)}", "warn"))
    if state.phase == "paused":
        texts.append((g.warn, _paused_text(m), "warn"))
    elif state.phase == "frozen":
        texts.append((g.warn, _frozen_text(m), "warn"))
    if stalled := _stalled_text(m, width - 2, g):
        texts.append((g.warn, stalled, "warn"))
    if failed := _failed_text(m, width - 2, g):
        texts.append((g.fail, failed, "error"))
    if not (state.level.guarded or state.over or meters.explained(state, meters.meter_rows(state, height))):
        texts.append((g.warn, meters.unguarded(m), "warn"))
    if alone := _alone_text(m, width - 2, g):
        texts.append((g.warn, alone, "warn"))
    if killed := _killed_text(state, width - 2):
        texts.append((g.killed, killed, "killed"))
    return [
        fit((Part(f"{mark} {clauses(text, width - 2, g.ellipsis)}", f"{ink} bold"),), width)
        for mark, text, ink in texts[:MAX_BANNERS]
    ]


def _absence(m: Moment, width: int, g: Glyphs) -> list[Line]:
    """Return the line about what happened while the user was away."""
    if not m.absence:
        return []
    return [fit((Part(f"{g.info} {clauses(m.absence, width - 2, g.ellipsis)}", "accent bold"),), width)]


def _failed_text(m: Moment, width: int, g: Glyphs) -> str:
    """Return which step of a running build failed, how many others did, what follows, and the key that shows why."""
    found = () if m.state.over else failed_steps(m.state)
    if not found:
        return ""
    more = f" and {len(found) - 1} more" if len(found) > 1 else ""
    name = plain_name(found[0].output) or "a step"
    rest = f"; {m.key('failures')} shows why"
    stopping = next((s.tool for s in m.state.schedulers.values() if s.stops), "")
    stops = f"; {stopping} finishes what runs and stops" if stopping else ""
    if width - cell_len(f"{more} failed{stops}{rest}") < min(cell_len(name), ROOMY_FAILED_NAME):
        stops = f"; {stopping} stops" if stopping else ""
    rest = f"{more} failed{stops}{rest}"
    return elide_path(name, max(LEAST_FAILED_NAME, width - cell_len(rest)), g.ellipsis) + rest


def _killed_text(state: BuildState, width: int) -> str:
    """Return how many jobs were killed and when they run again, as exactly as `width` allows."""
    drains = killed_text.drain_text(state)
    longer = f"{drains}, killed jobs first"
    fitting = (text for text in (longer, drains) if drains and cell_len(text) <= width)
    return next(fitting, killed_text.outlook_text(state))


def _paused_text(m: Moment) -> str:
    """Return what a pause does, also to frozen jobs, and which key ends it."""
    running = progress_of(m.state).running
    frozen = sum(job.state == "frozen" and job.moved_by != "person" for job in m.state.jobs.values())
    both = f"{running} running and {frozen} frozen"
    jobs = both if running and frozen else count(running, "running job") if running else count(frozen, "frozen job")
    rest = f"{jobs} will finish" if running or frozen else ""
    unpause = f"{m.key('pause-softly')} unpauses" if _may_unpause(m) else ""
    return "; ".join(filter(None, ("paused: nothing new starts", rest, unpause)))


def _frozen_text(m: Moment) -> str:
    """Return what is frozen, and which key ends that."""
    stopped = [job for job in m.state.jobs.values() if job.state != "on_deck"]
    keep = f"{'keeps' if len(stopped) == 1 else 'keep'} {format_bytes(sum(job.rss for job in stopped))}"
    held = f"{count(len(stopped), 'job')} {keep}" if stopped else "nothing runs and nothing starts"
    unpause = f"{m.key('pause-softly')} unpauses" if _may_unpause(m) else ""
    return "; ".join(filter(None, (f"frozen: {held}", unpause)))


def _stalled_text(m: Moment, width: int, g: Glyphs) -> str:
    """Return that nothing runs, or that the build cannot end, because of jobs that a person froze, and which key lets
    them go on."""
    jobs = frozen_by_person(m.state)
    if not jobs:
        return ""
    head = "nothing runs: " if stalled_by(m.state) else "the build cannot end: "
    thaw = f"; {m.key('job.freeze')} thaws the picked job" if _may_unpause(m) else ""
    rest = f" {frozen_by_hand(len(jobs))}{thaw}"
    room = max(LEAST_ALONE_NAME, width - cell_len(head + rest))
    return head + elide_path(plain_name(jobs[0].output) or f"pid {jobs[0].pid}", room, g.ellipsis) + rest


def _may_unpause(m: Moment) -> bool:
    return not m.read_only and m.link != "replay"


def _alone_text(m: Moment, width: int, g: Glyphs) -> str:
    """Return which job runs alone, who asked for it, and which key lets the others continue."""
    job = soloist(m.state)
    if job is None:
        return ""
    begins = job.state == "on_deck"  # it waits for those that have begun, not they for it
    others = sum(other.state == "on_deck" or not begins for other in m.state.jobs.values()) - 1
    runs = "is to run alone" if begins else "runs alone"
    wait = f"{others} wait{'s' if others == 1 else ''}" if others else "nothing waits"
    undo = f"; {m.key('job.alone')} undoes it" if job.alone_by and not m.read_only else ""
    who = f" ({clean(job.alone_by, 20)})" if job.alone_by else ", since it was killed beside others"
    rest = f" {runs}{who}; {wait}{undo}"
    room = max(LEAST_ALONE_NAME, min(ALONE_NAME, width - cell_len(rest)))
    return elide_path(plain_name(job.output) or f"pid {job.pid}", room, g.ellipsis) + rest


def work_panel(m: Moment, width: int, rows: int, g: Glyphs, view: JobView, tail: list[Line]) -> list[Line]:
    """Return the running jobs; if there are none, the current activity and the end of the output."""
    if rows <= 0:
        return []
    if m.state.jobs:
        below = rows // 4 if rows >= TALL and tail else 0
        lines = _jobs_panel(m, width, rows - below - bool(below), view, g)
        lines += [BLANK] * (rows - below - len(lines))
        return [*lines, *([section("output", width, g), *_last(tail, below - 1, width)] if below else [])]
    schedulers = m.state.schedulers.values()
    idle = "between jobs" if any(s.ended is None for s in schedulers) else "no build tool runs now"
    activity = clean(m.state.activity) or (idle if schedulers else "starting")
    if m.state.over:
        activity = "the build has ended"
    elif m.state.ending:
        activity = "the command has ended; stoker looks at what it made, or why it failed"
    head = section("output", width, g)
    lines = [(Part(elide_end(activity, width, g.ellipsis), "text bold"),), head]
    return [*lines, *_last(tail, rows - 2, width)][:rows]


def _jobs_panel(m: Moment, width: int, rows: int, view: JobView, g: Glyphs) -> list[Line]:
    """Return the jobs, and in the room that they will not need the recently finished ones.

    The position of the latter depends on the level, and in steps on the number of jobs, so that it rarely jumps.
    """
    jobs = QUEUE_STEP * -(-len(m.state.jobs) // QUEUE_STEP)
    needed = max(1 + _expected_rows(m.state), min(1 + jobs, rows - 1 - LEAST_FINISHED))
    spare = rows - needed - 1
    if spare < LEAST_FINISHED or not m.state.history.recent:
        return table(m, width, rows, view, g)
    lines = table(m, width, needed, view, g)
    lines += [BLANK] * (needed + 1 - len(lines))
    return [*lines, *lately(m.state, width, spare, g, view.words)]


def _expected_rows(state: BuildState) -> int:
    """Return the rows that the jobs may need: all that may be started, and a few on deck."""
    level = state.level
    if level.target is None:
        return max(len(state.jobs), level.window or 0)
    started = sum(job.state != "on_deck" for job in state.jobs.values())
    return max(started, level.target) + DECK_ROWS


def _last(tail: list[Line], rows: int, width: int) -> list[Line]:
    return [fit(line, width) for line in tail[-rows:]] if rows > 0 else []
