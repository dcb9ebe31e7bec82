"""The dashboard's upper half as lines: header, progress, meters, decisions. Pure: moment and width in, lines out.

Unaware of Textual, of colours (inks name theme tokens) and of where the moment came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace

from rich.cells import cell_len

from stoker.model.events import GpuSample, MachineSample
from stoker.model.progress import Progress, progress_of
from stoker.model.state import BuildState, Decision, Notice
from stoker.model.text import clean
from stoker.model.units import format_band, format_bytes, format_duration
from stoker.show.tui.glyphs import Glyphs
from stoker.show.tui.lines import BLANK, GAP, Line, Part, elide_end, elide_middle, fit, pad, spread, width_of, wrap
from stoker.show.tui.moment import Moment, time_of_day

LABEL_WIDTH = 8
VALUE_WIDTH = 17
"""Cells for a meter's main figure: "22.9 of 55.0 GiB" and one to spare."""

LONG_LIMIT_WIDTH = 110
"""Screen width from which the memory limit's cgroup is named."""

ENTRY_INDENT = 11
"""Cells before the text of a decision or notice: the time of day, a mark and the blanks between."""

MAX_ENTRY_LINES = 8
PHASE_INKS = {
    "done": "ok",
    "failed": "error",
    "stopped": "warn",
    "stopping": "warn",
    "paused": "warn",
    "frozen": "warn",
}
DISK_LOW = 5 * 2**30
"""Bytes free below which the disk is worth a warning: a CUDA build writes a few GiB in its last links."""

STALL_PERCENT = 1.0
"""Share of time stalled on memory from which it is worth a word; below it PSI is noise."""

STALL_WARN_PERCENT = 10.0
"""Share of time stalled from which it is a warning: systemd-oomd, for one, acts at 60 % (oomd.conf(5))."""


def shown_command(state: BuildState) -> str:
    """The command as one harmless line."""
    return clean(" ".join(state.command))


def header(m: Moment, width: int, g: Glyphs) -> Line:
    """Name, command, step, phase, elapsed, and the link when it is not simply live."""
    state = m.state
    right: list[Part] = []
    if state.step is not None and state.step.count > 1:
        step = f"step {state.step.index}/{state.step.count}"
        name = clean(state.step.name, 24)
        right += [Part(f"{step} {name}" if name and width >= 100 else step, "text_dim"), GAP]
    link, ink = link_text(m)
    if link:
        right += [Part(link, ink), GAP]
    right += [Part(_phase_mark(state, g) + state.phase, PHASE_INKS.get(state.phase, "text")), GAP]
    right.append(Part(format_duration(m.elapsed), "text bold"))
    room = max(0, width - width_of(right) - 2)
    name = elide_end(clean(state.name) or "build", max(8, room // 2), g.ellipsis)
    command_room = room - cell_len(name) - 2
    left = [Part(name, "accent bold"), GAP]
    if command_room >= 10:
        left.append(Part(elide_middle(shown_command(state), command_room, g.ellipsis), "text_dim"))
    return spread(left, right, width)


def _phase_mark(state: BuildState, g: Glyphs) -> str:
    mark = {"done": g.ok, "failed": g.fail, "stopped": g.warn, "frozen": g.frozen}.get(state.phase, "")
    return f"{mark} " if mark else ""


def link_text(m: Moment) -> tuple[str, str]:
    """How the build is linked, in words, and the ink; nothing for a live link."""
    if m.link == "lost":
        return "engine lost, reconnecting", "warn bold"
    if m.link == "replay":
        return f"replay {clean(m.update.note, 30)}".rstrip(), "accent"
    return ("read-only", "text_dim") if m.read_only and m.link == "live" else ("", "text")


def progress(m: Moment, width: int, g: Glyphs) -> Line:
    """One honest bar with counts, failures and the remaining time; no bar and no percent while the total is unknown."""
    state, p = m.state, progress_of(m.state)
    tail: list[Part] = []
    share = p.share
    if share is not None and p.total_known:
        tail.append(Part(f"{p.finished}/{p.total}", "text bold"))
    elif state.schedulers:
        tail.append(Part(f"{p.finished} done", "text bold"))
    if share is not None:
        tail += [GAP, Part(f"{int(100 * share)} %", "text bold")]
    if p.failed:
        tail += [GAP, Part(f"{g.fail} {p.failed} failed", "error bold")]
    eta = eta_text(m, p)
    if eta:
        tail += [GAP, Part(_plain_dashes(eta, g), "text")]
    room = width - width_of(tail) - 2
    if not tail:
        return (Part(g.todo * width, "bar_empty"),)
    return (*progress_bar(share, max(0, room), g, failed=bool(p.failed)), GAP, *tail)


def progress_bar(share: float | None, width: int, g: Glyphs, *, failed: bool = False) -> Line:
    """A thin bar, full only when all is done."""
    done = 0 if share is None else int(share * width)
    ink = "error" if failed else "accent"
    return Part(g.done * done, ink), Part(g.todo * (width - done), "bar_empty")


def eta_text(m: Moment, p: Progress) -> str:
    """The remaining time as a band; says so when nothing is known yet."""
    state = m.state
    if state.over:
        return ""
    if state.estimate is None:
        return "ETA after the first jobs" if state.schedulers and p.total_known else ""
    gone = max(0.0, m.now - state.estimate.time)
    low, high = (max(0.0, value - gone) for value in (state.estimate.low, state.estimate.high))
    return f"ETA {format_band(low, high)}" if high >= 1 else "ETA any moment"


def _plain_dashes(text: str, g: Glyphs) -> str:
    return text.replace("–", g.en_dash)


def meters(m: Moment, width: int, g: Glyphs, rows: int) -> list[Line]:
    """Memory, CPU, GPUs, disk and level: at most `rows` lines, the least important left out first."""
    state, machine = m.state, m.state.machine
    if machine is None:
        return [fit((Part("waiting for the first measurement", "text_dim"),), width), *[BLANK] * (rows - 1)]
    bar = bar_width(width)
    gpus = [_gpu(gpu, width, bar, g, several=len(machine.gpus) > 1) for gpu in machine.gpus]
    level, disk = _level(m, width, bar, g), _disk(state, machine, width)
    lines = [_memory(state, machine, width, bar, g), _cpu(machine, width, bar, g)]
    room = rows - 3
    if not gpus and machine.gpu_note and room >= 2:
        gpus = [_row("gpu", (Part(clean(machine.gpu_note, 200), "text_dim"),), width)]
    lines += gpus[: max(0, room - 1) if len(gpus) >= room else len(gpus)]
    if len(lines) + 1 < rows:
        lines.append(disk)
    return [*lines, level][:rows]


def meter_rows(state: BuildState, height: int) -> int:
    """How many lines the meters deserve on a screen of `height` lines."""
    machine = state.machine
    gpus = 0 if machine is None else len(machine.gpus) or bool(machine.gpu_note)
    wanted = 4 + gpus
    return max(3, min(wanted, 3 if height < 22 else 5 if height < 30 else height // 4))


def bar_width(width: int) -> int:
    """Cells of a meter's bar."""
    return max(10, min(60, width // 4))


def meter_bar(shares: Sequence[tuple[float, str, str]], width: int, g: Glyphs) -> Line:
    """A bar of shares (0..1, glyph, ink) one after the other; what is left is empty."""
    parts: list[Part] = []
    used = 0
    total = 0.0
    for share, glyph, ink in shares:
        total += max(0.0, share)
        cells = min(width, round(total * width)) - used
        if share > 0 and cells <= 0 and used < width:
            cells = 1  # something is never drawn as nothing
        if cells > 0:
            parts.append(Part(glyph * cells, ink))
            used += cells
    return (*parts, Part(g.empty * (width - used), "bar_empty"))


def _row(label: str, rest: Iterable[Part], width: int) -> Line:
    return fit((Part(pad(label, LABEL_WIDTH), "text_dim"), *rest), width)


def _metered(label: str, bar: Line, value: str, details: Iterable[Line], width: int) -> Line:
    """A meter: label, bar, main figure, then each detail that still fits whole."""
    used = LABEL_WIDTH + width_of(bar) + 2 + VALUE_WIDTH
    parts: list[Part] = [*bar, GAP, Part(pad(value, VALUE_WIDTH), "text")]
    for detail in details:
        needed = width_of(detail)
        if used + needed <= width:
            parts += [*detail, GAP]
            used += needed + 2
    return _row(label, parts, width)


def of_total(used: float, total: float) -> str:
    """Two sizes in the unit of the whole, so that they fit and compare: 22.9 of 55.0 GiB, 0.7 of 23.5 GiB."""
    whole = format_bytes(total)
    number, _, unit = whole.partition(" ")
    first, _, own_unit = format_bytes(used).partition(" ")
    if own_unit != unit and (total or used):
        scale = total / float(number) if float(number) else 1.0
        first = f"{used / scale:.1f}" if used else "0"
    return f"{first} of {whole}"


def _memory(state: BuildState, machine: MachineSample, width: int, bar: int, g: Glyphs) -> Line:
    budget = max(1, machine.memory_budget)
    own = min(state.build_rss, machine.memory_used)
    shares = [(own / budget, g.full, "memory_build"), ((machine.memory_used - own) / budget, g.other, "memory")]
    details: list[Line] = [(Part(f"{g.full} build ", "memory_build"), Part(format_bytes(state.build_rss), "text"))]
    stall = machine.pressure_memory
    if stall is not None and stall.some >= STALL_PERCENT:
        ink = "warn bold" if stall.some >= STALL_WARN_PERCENT else "text"
        details.append((Part(f"{g.warn} stalled {stall.some:.0f} %", ink),))
    if machine.swap_used:
        details.append((Part("swap ", "text_dim"), Part(format_bytes(machine.swap_used), "text")))
    details.append((Part("peak ", "text_dim"), Part(format_bytes(state.build_peak_rss), "text")))
    if machine.memory_limit_source not in ("", "machine"):
        source = elide_middle(clean(machine.memory_limit_source, 200), width - 90, g.ellipsis)
        words = f"limit of {source}" if width >= LONG_LIMIT_WIDTH else "cgroup limit"
        details.insert(1 if stall is None or stall.some < STALL_PERCENT else 2, (Part(words, "text_dim"),))
    return _metered("memory", meter_bar(shares, bar, g), of_total(machine.memory_used, budget), details, width)


def _cpu(machine: MachineSample, width: int, bar: int, g: Glyphs) -> Line:
    available = max(0.1, machine.cpu_available)
    value = f"{machine.cpu_percent:.0f} % of {available:.3g} cores"
    details: list[Line] = []
    stall = machine.pressure_io
    if stall is not None and stall.some >= STALL_WARN_PERCENT:
        details.append((Part(f"{g.warn} stalled on disk {stall.some:.0f} %", "warn"),))
    cores = machine.cpu_cores
    room = width - LABEL_WIDTH - bar - 2 - VALUE_WIDTH - 2
    if cores and len(cores) <= room:
        details.append((Part("".join(column(c / 100, g) for c in cores), "cpu"),))
    details.append((Part("load ", "text_dim"), Part(f"{machine.load:.1f}", "text")))
    return _metered("cpu", meter_bar([(machine.cpu_percent / 100, g.full, "cpu")], bar, g), value, details, width)


def column(share: float, g: Glyphs) -> str:
    """One growing column for a share of 0..1."""
    top = len(g.levels) - 1
    return g.levels[min(top, max(0, round(share * top)))]


def _gpu(gpu: GpuSample, width: int, bar: int, g: Glyphs, *, several: bool) -> Line:
    use = gpu.utilisation
    details: list[Line] = []
    if gpu.memory_used is not None and gpu.memory_total:
        details.append((Part(of_total(gpu.memory_used, gpu.memory_total), "text"),))
    if gpu.temperature is not None:
        degree = " C" if g.ascii else " °C"
        details.append((Part(f"{gpu.temperature:.0f}{degree}", "text_dim"),))
    if gpu.power_watts is not None:
        details.append((Part(f"{gpu.power_watts:.0f} W", "text_dim"),))
    details.append((Part(clean(gpu.name, 40), "text_dim"),))
    label = f"gpu {gpu.index}" if several or gpu.index else "gpu"
    value = "use unknown" if use is None else f"{use:.0f} %"
    return _metered(label, meter_bar([((use or 0) / 100, g.full, "gpu")], bar, g), value, details, width)


def _disk(state: BuildState, machine: MachineSample, width: int) -> Line:
    parts: list[Part] = []
    if machine.disk_write_rate is not None:
        parts += [Part(f"{format_bytes(machine.disk_write_rate)}/s", "disk"), Part(" written", "text_dim"), GAP]
    if machine.disk_free is not None:
        low = machine.disk_free < DISK_LOW
        parts += [Part(format_bytes(machine.disk_free), "warn bold" if low else "text"), Part(" free", "text_dim"), GAP]
    if state.build_written:
        parts += [Part(format_bytes(state.build_written), "text"), Part(" by the build", "text_dim")]
    return _row("disk", parts or [Part("unknown", "text_dim")], width)


def _level(m: Moment, width: int, bar: int, g: Glyphs) -> Line:
    """Running, level and window; how many wait on deck or are frozen; who sets the level."""
    p, level = progress_of(m.state), m.state.level
    scale = max(level.window or 0, level.target or 0, p.running + p.frozen + p.on_deck, m.state.cores, 1)
    shares = [
        (p.running / scale, g.full, "running"),
        (p.frozen / scale, g.other, "frozen"),
    ]
    value = f"{p.running} running"
    details: list[Line] = []
    if level.target is not None:
        details.append((Part("level ", "text_dim"), Part(str(level.target), "text bold")))
    if p.on_deck or level.target is not None:
        details.append((Part(f"{g.on_deck} {p.on_deck} on deck", "on_deck" if p.on_deck else "text_dim"),))
    if p.frozen or level.target is not None:
        details.append((Part(f"{g.frozen} {p.frozen} frozen", "frozen" if p.frozen else "text_dim"),))
    if level.window is not None:
        details.append((Part("window ", "text_dim"), Part(str(level.window), "text")))
    mode = "watching" if level.target is None else {"auto": "automatic", "manual": "by hand"}[level.mode]
    details.append((Part(mode, "text_dim"),))
    return _metered("jobs", meter_bar(shares, bar, g), value, details, width)


def entries(state: BuildState) -> list[Decision | Notice]:
    """Decisions and notices in order of time."""
    return sorted([*state.decisions, *state.notices], key=lambda e: e.time)


def decisions(m: Moment, width: int, rows: int, g: Glyphs, *, whole: bool = False) -> list[Line]:
    """The newest decisions and notices, newest last: when, who, what, why; on one line each, or `whole` and wrapped."""
    newest = entries(m.state)[-rows:] if rows else []
    if whole:
        lines = [line for entry in newest for line in entry_lines(entry, width, g)][-rows:]
    else:
        lines = [entry_line(entry, width, g) for entry in newest]
    if not lines and rows:
        lines = [fit((Part("none yet", "text_dim"),), width)]
    return [*lines, *[BLANK] * (rows - len(lines))]


def entry_line(entry: Decision | Notice, width: int, g: Glyphs) -> Line:
    """A decision (person and governor told apart by mark and ink) or a notice, on one line."""
    when = Part(time_of_day(entry.time) + " ", "text_dim")
    if isinstance(entry, Notice):
        mark, ink = {"error": (g.fail, "error"), "warning": (g.warn, "warn"), "info": (g.info, "text_dim")}[
            entry.severity
        ]
        room = width - 11
        return fit((when, Part(f"{mark} ", f"{ink} bold"), Part(elide_end(clean(entry.text), room, g.ellipsis))), width)
    person = entry.who not in ("governor", "engine")
    ink = "person" if person else "text_dim"
    who = elide_end(clean(entry.who), 12, g.ellipsis)
    what, why = clean(entry.what), clean(entry.why)
    room = width - 9 - 2 - cell_len(who) - 2
    what = elide_end(what, max(10, room), g.ellipsis)
    why = elide_end(why, max(0, room - cell_len(what) - 2), g.ellipsis)
    mark = g.person if person else g.governor
    return fit((when, Part(f"{mark} {who}", ink), GAP, Part(what), GAP, Part(why, "text_dim")), width)


def entry_lines(entry: Decision | Notice, width: int, g: Glyphs) -> list[Line]:
    """An entry whole: as one line if it fits, else with its text wrapped below."""
    text = clean(entry.text) if isinstance(entry, Notice) else clean(entry.why)
    room = width - ENTRY_INDENT
    used = 0 if isinstance(entry, Notice) else cell_len(clean(entry.who)) + cell_len(clean(entry.what)) + 4
    if used + cell_len(text) <= room:
        return [entry_line(entry, width, g)]
    if isinstance(entry, Notice):
        head = entry_line(replace(entry, text=""), ENTRY_INDENT, g)
        first, *rest = wrap(text, room, MAX_ENTRY_LINES)
        return [(*head, Part(first)), *((Part(" " * ENTRY_INDENT), Part(piece)) for piece in rest)]
    head = entry_line(replace(entry, why=""), width, g)
    return [head, *((Part(" " * ENTRY_INDENT), Part(piece, "text_dim")) for piece in wrap(text, room, MAX_ENTRY_LINES))]


def section(title: str, width: int, g: Glyphs, tail: Sequence[Part] = ()) -> Line:
    """A heading inside a thin rule; the only frame there is."""
    head = Part(f"{title} ", "accent")
    room = width - cell_len(head.text) - width_of(tail)
    return fit((head, Part(g.rule * max(0, room), "rule"), *tail), width)
