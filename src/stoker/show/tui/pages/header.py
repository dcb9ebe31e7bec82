"""The first lines of a page: the build, its phase and its progress. Pure: a moment and a width in, lines out.

Knows neither Textual nor colours (inks name theme tokens), and not where the moment came from.
"""

from __future__ import annotations

from rich.cells import cell_len

from stoker.model.progress import Progress, awaits_attempt, in_next_attempt, progress_of, stalled_by, will_not_run
from stoker.model.state import BuildState
from stoker.model.status import time_left
from stoker.model.text import clean
from stoker.model.units import format_duration
from stoker.show.killed_text import again_text
from stoker.show.left_text import left_text
from stoker.show.level_text import share_text
from stoker.show.tui.pages.lines import GAP, Line, Part, elide_end, elide_middle, pad, spread, width_of
from stoker.show.tui.pages.moment import Moment
from stoker.show.tui.terminal.glyphs import Glyphs

LEAST_BAR = 10
"""Minimum cells of a bar with the gaps around the text after it; if it gets fewer, the band of the ETA is dropped."""

LEAST_STEP = 40
"""Columns from which the title has room for the step beside the name."""

SHARE_ROOM = 4
"""Cells for what share is done."""

ETA_ROOMS = (22, 24, 30, 38)
"""Possible widths of the remaining time: in minutes, before it is known, and in hours. If it took only the cells of its
text, the bar's length would change each second."""

PHASE_INKS = {
    "done": "ok",
    "failed": "error",
    "stopped": "warn",
    "stopping": "warn",
    "paused": "warn bold reverse",
    "frozen": "warn bold reverse",
}
NO_ETA_PAUSED = "no ETA while paused"
"""Shown instead of the remaining time while a person has paused the build."""

NO_ETA_AGAIN = "ETA once it runs again"
"""Shown instead of it while a build tool that starts nothing more after a kill ends: the next attempt has the rest."""

NO_ETA_STALLED = "no ETA: nothing runs"
"""Shown instead of it while all that could run was frozen by a person."""

PAUSING = {"no": "unpausing", "soft": "pausing", "hard": "freezing"}
"""Shown between a key press and the build's reaction."""


def shown_command(state: BuildState) -> str:
    """Return the command as one sanitised line."""
    return clean(" ".join(state.command))


def title(m: Moment, width: int, g: Glyphs, *, bannered: bool = False) -> Line:
    """Return name, command, step, phase, elapsed time, and the link if it is not live; `bannered`: not where a banner
    of the page says so, with more words."""
    state = m.state
    right = _step(state, width) if width >= LEAST_STEP else []
    link, ink = ("", "") if bannered and m.link in ("lost", "journal") else link_text(m)
    if link:
        right += [Part(link, ink), GAP]
    right += [*_phase(m, g), GAP]
    right.append(Part(format_duration(m.elapsed), "text bold"))
    room = max(0, width - width_of(right) - 2)
    unnamed = "build" if state.seq else g.ellipsis
    name = elide_end(clean(state.name) or unnamed, max(8, room // 2), g.ellipsis)
    command_room = room - cell_len(name) - 2
    left = [Part(name, "accent bold"), GAP]
    if command_room >= 10:
        left.append(Part(elide_middle(shown_command(state), command_room, g.ellipsis), "text_dim"))
    return spread(left, right, width)


def _step(state: BuildState, width: int) -> list[Part]:
    """Return the step, if there are several, and the attempt, if it is not the first."""
    if state.step is None:
        return []
    parts: list[Part] = []
    if state.step.count > 1:
        step = f"step {state.step.index}/{state.step.count}"
        name = clean(state.step.name, 24)
        parts += [Part(f"{step} {name}" if name and width >= 100 else step, "text_dim"), GAP]
    if state.step.attempt > 1:
        parts += [Part(f"attempt {state.step.attempt}", "warn"), GAP]
    return parts


def _phase(m: Moment, g: Glyphs) -> Line:
    """Return the build's phase; a pause is highlighted, and so is a pending one."""
    state, asked = m.state, m.pending.paused
    if asked is not None and asked != state.level.paused:
        return (Part(f" {PAUSING[asked]}{g.ellipsis} ", "warn bold"),)
    mark = {"done": g.ok, "failed": g.fail, "stopped": g.warn, "frozen": g.frozen}.get(state.phase, "")
    phase = "ending" if state.phase == "running" and state.ending else state.phase
    words = f"{mark} {phase}" if mark else phase
    ink = PHASE_INKS.get(state.phase, "text")
    return (Part(f" {words.upper()} " if "reverse" in ink else words, ink),)


def link_text(m: Moment) -> tuple[str, str]:
    """Return how the viewer is linked to the build, and the ink; nothing for a live link."""
    if m.link == "lost":
        return "engine lost, reconnecting", "warn bold"
    if m.link == "journal":
        return "from the journal", "text_dim"
    if m.link == "replay":
        return f"replay {clean(m.update.note, 30)}".rstrip(), "accent"
    return ("read-only", "text_dim") if m.read_only and m.link == "live" else ("", "text")


def progress(m: Moment, width: int, g: Glyphs) -> Line:
    """Return a bar with counts, failures and the remaining time; the bar is empty while the total is unknown."""
    p = progress_of(m.state)
    tail = _counts(m.state, p, g)
    room = width - width_of(tail) - LEAST_BAR
    eta = eta_text(m, p)
    if eta and cell_len(eta) > room:
        eta = eta_text(m, p, band=False)
    if width_of(tail) + cell_len(eta) + 4 > width:
        tail = _counts(m.state, p, g, brief=True)
    if eta:
        tail += [GAP, Part(_plain_dashes(pad(eta, _eta_room(eta, room)), g), "text")]
    room = width - width_of(tail) - 2
    if not tail:
        return (Part(g.todo * width, "bar_empty"),)
    return (*progress_bar(p.share, max(0, room), g, failed=bool(p.failed)), GAP, *tail)


def _counts(state: BuildState, p: Progress, g: Glyphs, *, brief: bool = False) -> list[Part]:
    """Return how many jobs are done, have failed, were killed and will not run; `brief` leaves out words."""
    parts: list[Part] = []
    if p.share is not None and p.total_known:
        parts.append(Part(f"{p.finished:>{len(str(p.total))}}/{p.total}", "text bold"))
    elif state.schedulers:
        parts.append(Part(f"{p.finished} done", "text bold"))
    if p.share is not None:
        share, _, begun = share_text(p).partition(", ")
        parts += [GAP, Part(pad(share, SHARE_ROOM, right=True), "text bold")]
        parts += [Part(f", {begun}", "text_dim")] if begun and not brief else []
    if p.failed:
        parts += [GAP, Part(f"{g.fail} {p.failed}" + ("" if brief else " failed"), "error bold")]
    if p.killed:
        words = "" if brief else f" {again_text(state)}"
        parts += [GAP, Part(f"{g.killed} {p.killed}{words}", "killed bold")]
    if left_out := will_not_run(state):
        parts += [GAP, Part(f"{left_out} will not run", "warn bold")]
    if waiting := in_next_attempt(state):
        parts += [GAP, Part(f"{waiting} wait" + ("" if brief else " for that"), "killed bold")]
    return parts


def _eta_room(eta: str, room: int) -> int:
    """Return how many cells the remaining time takes: as many as it will take for a while, if there is `room`."""
    return next((cells for cells in ETA_ROOMS if cell_len(eta) <= cells <= room), cell_len(eta))


def progress_bar(share: float | None, width: int, g: Glyphs, *, failed: bool = False) -> Line:
    """Return a thin bar, full only when everything is done."""
    done = 0 if share is None else int(share * width)
    ink = "error" if failed else "accent"
    return Part(g.done * done, ink), Part(g.todo * (width - done), "bar_empty")


def eta_text(m: Moment, p: Progress, *, band: bool = True) -> str:
    """Return the remaining time, with its band unless `band` is False, or when an estimate can be expected."""
    state = m.state
    if state.over:
        return ""
    if state.level.paused != "no":
        return NO_ETA_PAUSED
    if stalled_by(state):
        return NO_ETA_STALLED
    left = time_left(state, m.now)
    if left is None and awaits_attempt(state):
        return NO_ETA_AGAIN
    if left is None:
        live = any(s.ended is None and not s.stops for s in state.schedulers.values())
        return "ETA after the first jobs" if live and p.total_known else ""
    if left[2] < 1:
        return "ETA any moment"
    return f"ETA {left_text(state, m.now, band=band)}"


def _plain_dashes(text: str, g: Glyphs) -> str:
    return text.replace("–", g.en_dash)
