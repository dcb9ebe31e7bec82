"""The dashboard's meters: memory, CPU, GPUs, RAM disk, disk and level. Pure: a moment and a width in, lines out.

Knows neither Textual nor colours (inks name theme tokens), and not where the moment came from.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from rich.cells import cell_len

from stoker.model.cache_use import CacheUse
from stoker.model.known_peak import SURELY_MEASURED
from stoker.model.progress import progress_of
from stoker.model.samples import GpuSample, MachineSample, RamDisk
from stoker.model.state import BuildState, build_cpu
from stoker.model.text import clean
from stoker.model.to_come import still_to_come
from stoker.model.units import format_bytes, format_of, format_rough
from stoker.show import remote_text
from stoker.show.cache_text import counts_text, rate_text, trouble_text
from stoker.show.level_text import MODES, compilers, is_loose, surplus, tools_limit
from stoker.show.tui.pages.lines import BLANK, GAP, Line, Part, aimed, elide_middle, fit, pad, whole_clauses, width_of
from stoker.show.tui.pages.moment import Moment
from stoker.show.tui.terminal.glyphs import Glyphs

LABEL_WIDTH = 8
VALUE_WIDTH = 18
"""Cells for a meter's main figure: "22.9 of 55.0 GiB" and a gap."""

NO_EDGE = Part(" ")
"""Follows most bars; after the memory bar comes the budget's line instead."""

LEAST_ROWS = 3
"""Minimum lines of the meters: memory, CPU and jobs."""

UNGUARDED = "memory not guarded!"

CORES_LABEL = 36
"""Cells that must be left beside the columns of the cores for a label: it takes 9, the details before it the others."""

LONG_LIMIT_WIDTH = 110
"""Screen width from which the memory limit's cgroup is named."""

DISK_LOW = 5 * 2**30
"""Free bytes below which the disk gets a warning: a CUDA build writes a few GiB in its last links."""

RAMDISK_LOW = 0.1
"""Share of a RAM disk's size below which its free space gets a warning."""

LEAST_HELD_LOAD = 0.5
"""Load of stopped jobs from which it is shown."""

STALL_PERCENT = 1.0
"""Share of time stalled on memory from which it is shown; below it, PSI is noise."""

STALL_WARN_PERCENT = 10.0
"""Share of time stalled from which it is a warning; systemd-oomd, for example, acts at 60 % (oomd.conf(5))."""


def meters(m: Moment, width: int, g: Glyphs, rows: int) -> list[Line]:
    """Return memory, CPU, GPUs, cache, disk and level in at most `rows` lines; drops the least important first."""
    state, machine = m.state, m.state.machine
    if state.over or state.ending:
        return _taken(state, width, g)[:rows]
    if machine is None:
        return [fit((Part("waiting for the first measurement", "text_dim"),), width), *[BLANK] * (rows - 1)]
    bar = bar_width(width)
    gpus = [_gpu(gpu, width, bar, g, several=len(machine.gpus) > 1) for gpu in machine.gpus]
    legend = explained(state, rows)
    hosts = _hosts(state, width, bar, g) if rows > LEAST_ROWS + legend else []
    cache = _cache_line(state, width, bar, g) if rows > LEAST_ROWS + legend + len(hosts) else []
    apart = machine.ramdisk is not None and rows >= 5 + legend + len(cache) + len(hosts) + (
        len(gpus) or bool(machine.gpu_note)
    )
    level, disk = _level(m, width, bar, g), _disk(state, machine, width, None if apart else g)
    lines = [_memory(state, machine, width, bar, g, explained_below=legend)]
    lines += [_memory_legend(m, machine, width, g)] if legend else []
    lines.append(_cpu(state, machine, width, bar, g))
    room = rows - len(lines) - 1 - len(cache) - len(hosts)
    if not gpus and machine.gpu_note and room >= 2:
        gpus = [_row("gpu", (Part(clean(machine.gpu_note, 200), "text_dim"),), width)]
    lines += gpus[: max(0, room - 1) if len(gpus) >= room else len(gpus)]
    lines += [_ramdisk(state, machine.ramdisk, width, bar, g)] if apart and machine.ramdisk is not None else []
    lines += cache
    if len(lines) + 1 + len(hosts) < rows:
        lines.append(disk)
    return [*lines, level, *hosts][:rows]


def _taken(state: BuildState, width: int, g: Glyphs) -> list[Line]:
    """Return what an ended build has taken; its last measurements no longer mean anything."""
    facts = (("memory", most_memory(state)), ("written", written(state)))
    cache = _cache_line(state, width, bar_width(width), g)
    return [*(_row(label, (Part(text),), width) for label, text in facts), *cache]


def most_memory(state: BuildState) -> str:
    """Return the memory peaks; of a build of a few seconds the least, since memory is read once a second."""
    memory = state.memory
    if not memory.used_peak:
        return "not measured: the build had ended before"
    brief = state.ended is not None and state.ended - state.started < SURELY_MEASURED
    own = f"{format_bytes(memory.build_peak)} or more" if brief else f"at most {format_bytes(memory.build_peak)}"
    return f"{own} by the build, {format_bytes(memory.used_peak)} in all"


def written(state: BuildState) -> str:
    """Return what was written to disks, and to the RAM disk."""
    in_memory = f" to disk, at most {format_bytes(state.ramdisk.peak)} in the RAM disk" if state.ramdisk.peak else ""
    return format_bytes(state.disk_written) + in_memory


def meter_rows(state: BuildState, height: int) -> int:
    """Return how many lines the meters get on a screen of `height` lines."""
    machine = state.machine
    # Only a tall screen has a line to spare for the absence of a GPU.
    gpus = 0 if machine is None else len(machine.gpus) or (bool(machine.gpu_note) and height >= 30)
    wanted = 4 + gpus + (machine is not None and machine.ramdisk is not None)
    most = 3 if height < 22 else 5 if height < 30 else height // 4
    cache = (state.cache is not None or bool(trouble_text(state))) and machine is not None and height >= 22
    remote = bool(state.remote.engines) and machine is not None and height >= 22
    return max(3, min(wanted, most)) + cache + remote + (is_governed(state) and machine is not None and height >= 22)


def is_governed(state: BuildState) -> bool:
    """Return whether stoker holds jobs back, not only watches."""
    return state.level.target is not None


def explained(state: BuildState, rows: int) -> bool:
    """Return whether `rows` lines of meters include the memory's legend."""
    return is_governed(state) and state.machine is not None and rows > LEAST_ROWS


def bar_width(width: int) -> int:
    """Return the cells of a meter's bar."""
    return max(10, min(60, width // 4 - 1))


def memory_bar(state: BuildState, machine: MachineSample, width: int, g: Glyphs) -> Line:
    """Return a bar of the build's memory, other memory and memory to come, with the reserve at its right end."""
    budget = max(1, machine.memory_budget)
    own = min(state.memory.build, machine.memory_used)
    shares = [
        (own / budget, g.full, "memory_build"),
        ((machine.memory_used - own) / budget, g.other, "memory"),
        (still_to_come(state) / budget, g.promised, "memory"),
    ]
    filled = meter_bar(shares, width, g)
    empty = len(filled[-1].text)
    reserve = min(empty, max(state.memory.reserve > 0, round(state.memory.reserve / budget * width)))
    free = filled[-1]._replace(text=g.empty * (empty - reserve))
    return (*filled[:-1], free, Part(g.reserve * reserve, "memory_limit"))


def meter_bar(shares: Sequence[tuple[float, str, str]], width: int, g: Glyphs) -> Line:
    """Return a bar of consecutive shares (0..1, glyph, ink); the rest is empty."""
    parts: list[Part] = []
    used = 0
    total = 0.0
    for share, glyph, ink in shares:
        total += max(0.0, share)
        cells = min(width, round(total * width)) - used
        if share > 0 and cells <= 0 and used < width:
            cells = 1  # a share above zero is always visible
        if cells > 0:
            parts.append(Part(glyph * cells, ink))
            used += cells
    return (*parts, Part(g.empty * (width - used), "bar_empty"))


def _row(label: str, rest: Iterable[Part], width: int) -> Line:
    return fit((Part(pad(label, LABEL_WIDTH), "text_dim"), *rest), width)


def _metered(label: str, bar: Line, value: str, details: Iterable[Line], width: int, edge: Part = NO_EDGE) -> Line:
    """Return a meter: label, bar and its edge, main figure, then each detail that fits completely."""
    value = pad(value, max(VALUE_WIDTH, cell_len(value) + 2))
    parts: list[Part] = [*bar, edge, Part(" "), Part(value, "text")]
    used = LABEL_WIDTH + width_of(parts)
    for detail in details:
        needed = width_of(detail)
        if used + needed <= width:
            parts += [*detail, GAP]
            used += needed + 2
    return _row(label, parts, width)


def _memory(
    state: BuildState, machine: MachineSample, width: int, bar: int, g: Glyphs, *, explained_below: bool
) -> Line:
    """Return the memory meter; with `explained_below`, a legend follows on the next line."""
    budget = max(1, machine.memory_budget)
    details: list[Line] = [(Part(f"{g.full} build ", "memory_build"), Part(format_bytes(state.memory.build), "text"))]
    stall = machine.pressure_memory
    if stall is not None and stall.some >= STALL_PERCENT:
        ink = "warn bold" if stall.some >= STALL_WARN_PERCENT else "text"
        others = machine.stalls_by_others(state.memory.reserve)
        words = f"others stall {stall.some:.0f} %" if others else f"stalled {stall.some:.0f} %"
        details.append((Part(f"{g.warn} {words}", "text" if others else ink),))
    if machine.swap_used:
        details.append((Part("swap ", "text_dim"), Part(format_bytes(machine.swap_used), "text")))
    details.append((Part("peak ", "text_dim"), Part(format_bytes(state.memory.build_peak), "text")))
    if machine.memory_limit_source not in ("", "machine"):
        words = _limit_words(clean(machine.memory_limit_source, 200), width, g)
        details.insert(1 if stall is None or stall.some < STALL_PERCENT else 2, (Part(words, "text_dim"),))
    if not explained_below and _others_count(state, machine):
        details.append((Part(f"{g.other} others ", "memory"), Part(format_bytes(_foreign(state, machine)), "text")))
    value, edge = format_of(machine.memory_used, budget), Part(g.mark, "memory_limit")
    return _metered("memory", memory_bar(state, machine, bar, g), value, details, width, edge)


def _limit_words(source: str, width: int, g: Glyphs) -> str:
    """Return what limits the memory: a cgroup by its path, or a person's setting."""
    if not source.startswith("/"):
        return f"{elide_middle(source, 20, g.ellipsis)} budget"
    return f"budget of {elide_middle(source, width - 91, g.ellipsis)}" if width >= LONG_LIMIT_WIDTH else "cgroup budget"


def unguarded(m: Moment) -> str:
    """Return the warning that memory is not guarded, with the key that changes it."""
    if m.read_only or m.link == "replay":
        return f"{UNGUARDED} An automatic level guards it."
    return f"{UNGUARDED} {m.key('level-auto')}: automatic level, which guards it"


def _memory_legend(m: Moment, machine: MachineSample, width: int, g: Glyphs) -> Line:
    """Return the legend of the memory bar with sizes; or the warning that memory is not guarded."""
    state = m.state
    if not state.level.guarded:
        return _row("", (Part(f"{g.warn} {unguarded(m)}", "warn bold"),), width)
    more = still_to_come(state)
    free = max(0, machine.memory_budget - machine.memory_used - more - state.memory.reserve)
    shares = (
        (g.other, "memory", _foreign(state, machine)),
        (g.promised, "memory", more),
        (g.reserve, "memory_limit", state.memory.reserve),
        (g.empty, "text_dim", free),
    )
    budget = [(Part(f"{g.mark} ", "memory_limit"), Part("budget", "text_dim"), GAP)]
    long = _shares(shares, ("other programs", "still to come", "reserve", "free"))
    short = _shares(shares, ("others", "to come", "reserve", "free"))
    first = 0 if _others_count(state, machine) else 1
    # If there is not enough room, drop the sizes that change least first.
    wide = ([*long[first:], *budget], [*short[first:], *budget], short[first:])
    ways = (*wide, short[1:], [short[1], short[3]], short[3:])
    whole = [way for way in ways if sum(map(width_of, way)) - width_of((GAP,)) <= width - LABEL_WIDTH]
    return _row("", [part for share in (whole or [short[3:]])[0] for part in share], width)


def _shares(shares: Iterable[tuple[str, str, float]], words: Iterable[str]) -> list[Line]:
    """Return each share's sign and bytes, with its word and a gap."""
    return [
        (Part(f"{sign} ", ink), Part(format_bytes(size)), Part(f" {word}", "text_dim"), GAP)
        for (sign, ink, size), word in zip(shares, words, strict=True)
    ]


def _foreign(state: BuildState, machine: MachineSample) -> int:
    """Return the bytes that count against the budget and are not the build's."""
    return machine.memory_used - min(state.memory.build, machine.memory_used)


def _others_count(state: BuildState, machine: MachineSample) -> bool:
    """Return whether memory of other programs counts: not against a budget that a person gave to the build alone."""
    of_machine = machine.memory_limit_source in ("", "machine")
    return of_machine or machine.limiting_group != "" or _foreign(state, machine) > 0


def _cpu(state: BuildState, machine: MachineSample, width: int, bar: int, g: Glyphs) -> Line:
    count, usable = len(machine.cpu_cores) or max(1, round(machine.cpu_available)), machine.cpu_available
    value = f"{machine.cpu_percent:.0f} % of {cores_text(count)}"
    own = own_cpu(state, machine)
    limit = f" (may use {cores_text(usable)})" if usable < count else ""
    details: list[Line] = [(Part(f"{g.full} build ", "cpu"), Part(f"{own:.0f} %", "text"), Part(limit, "text_dim"))]
    stall = machine.pressure_io
    if stall is not None and stall.some >= STALL_WARN_PERCENT:
        details.append((Part(f"{g.warn} stalled on disk {stall.some:.0f} %", "warn"),))
    cores = machine.cpu_cores
    room = width - LABEL_WIDTH - bar - 2 - VALUE_WIDTH - 2
    if cores and len(cores) <= room:
        label = (Part("per core ", "text_dim"),) if len(cores) + CORES_LABEL <= room else ()
        details.append((*label, Part("".join(column(c / 100, g) for c in cores), "cpu")))
    held = min(machine.load, machine.load_held)
    waiting = f" ({held:.1f} of waiting jobs)" if held >= LEAST_HELD_LOAD else ""
    details.append((Part("load ", "text_dim"), Part(f"{machine.load:.1f}", "text"), Part(waiting, "text_dim")))
    shares = [(own / 100, g.full, "cpu"), ((machine.cpu_percent - own) / 100, g.other, "cpu")]
    return _metered("cpu", meter_bar(shares, bar, g), value, details, width)


def own_cpu(state: BuildState, machine: MachineSample) -> float:
    """Return the percentage of the whole machine that the build takes."""
    return machine.share_of_cpu(build_cpu(state.cpu, state.jobs.values()))


def cores_text(cores: float) -> str:
    """Return a number of cores in words."""
    return f"{cores:.3g} {'core' if cores == 1 else 'cores'}"


def column(share: float, g: Glyphs) -> str:
    """Return one growing column for a share of 0..1."""
    top = len(g.levels) - 1
    return g.levels[min(top, max(0, round(share * top)))]


def _gpu(gpu: GpuSample, width: int, bar: int, g: Glyphs, *, several: bool) -> Line:
    use = gpu.utilisation
    details: list[Line] = []
    if gpu.memory_used is not None and gpu.memory_total:
        details.append((Part(format_of(gpu.memory_used, gpu.memory_total), "text"),))
    if gpu.temperature is not None:
        degree = " C" if g.ascii else " °C"
        details.append((Part(f"{gpu.temperature:.0f}{degree}", "text_dim"),))
    if gpu.power_watts is not None:
        details.append((Part(f"{gpu.power_watts:.0f} W", "text_dim"),))
    details.append((Part(clean(gpu.name, 40), "text_dim"),))
    label = f"gpu {gpu.index}" if several or gpu.index else "gpu"
    value = "use unknown" if use is None else f"{use:.0f} %"
    return _metered(label, meter_bar([((use or 0) / 100, g.full, "gpu")], bar, g), value, details, width)


def _ramdisk(state: BuildState, disk: RamDisk, width: int, bar: int, g: Glyphs) -> Line:
    """Return the RAM disk's meter; its file system may be smaller than the size that the build may use."""
    details: list[Line] = [(Part("peak ", "text_dim"), Part(format_bytes(state.ramdisk.peak), "text"))]
    if disk.free is not None and disk.free < RAMDISK_LOW * disk.size:
        details.insert(0, (Part(f"{g.warn} {format_bytes(disk.free)} free", "warn bold"),))
    if state.ramdisk.reserve:
        details.append((Part(format_bytes(state.ramdisk.reserve), "text"), Part(" reserve for it", "text_dim")))
    shares = [(disk.used / max(1, disk.size), g.full, "disk")]
    return _metered("ramdisk", meter_bar(shares, bar, g), format_of(disk.used, disk.size), details, width)


def _disk_with_ramdisk(state: BuildState, machine: MachineSample, disk: RamDisk, width: int, g: Glyphs) -> Line:
    """Return disk and RAM disk in one line, for small screens; what does not fit completely is left out."""
    facts: list[tuple[str, str, str]] = []
    if machine.disk_free is not None:
        ink = "warn bold" if machine.disk_free < DISK_LOW else "text"
        facts.append((format_bytes(machine.disk_free), ink, " free"))
    facts.append((format_of(disk.used, disk.size), "text", " in RAM"))
    if disk.free is not None and disk.free < RAMDISK_LOW * disk.size:
        facts.append((f"{g.warn} {format_bytes(disk.free)} free", "warn bold", ""))
    facts.append((format_bytes(state.disk_written), "text", " written"))
    if machine.disk_write_rate is not None:
        facts.append((f"{format_bytes(machine.disk_write_rate)}/s", "disk", ""))
    return _row("disk", _whole(facts, width), width)


def _disk(state: BuildState, machine: MachineSample, width: int, for_both: Glyphs | None) -> Line:
    """Return the disk of the build; with `for_both`, also the RAM disk, which then has no line of its own."""
    if for_both is not None and machine.ramdisk is not None:
        return _disk_with_ramdisk(state, machine, machine.ramdisk, width, for_both)
    facts: list[tuple[str, str, str]] = []
    if machine.disk_write_rate is not None:
        facts.append((f"{format_bytes(machine.disk_write_rate)}/s", "disk", " written"))
    if machine.disk_free is not None:
        low = machine.disk_free < DISK_LOW
        facts.append((format_bytes(machine.disk_free), "warn bold" if low else "text", " free"))
    if state.disk_written:
        facts.append((format_bytes(state.disk_written), "text", " written by the build"))
    return _row("disk", _whole(facts, width) or [Part("unknown", "text_dim")], width)


def _whole(facts: Iterable[tuple[str, str, str]], width: int) -> list[Part]:
    """Return figures with their inks and words; what does not fit completely is left out."""
    parts: list[Part] = []
    for figure, ink, words in facts:
        fact = [Part(figure, ink), Part(words, "text_dim"), GAP]
        if LABEL_WIDTH + width_of(parts) + width_of(fact[:2]) <= width:
            parts += fact
    return parts


def _cache_line(state: BuildState, width: int, bar: int, g: Glyphs) -> list[Line]:
    """Return the compiler cache's meter; while a shared cache has trouble, only that."""
    trouble = trouble_text(state)
    if trouble and not state.over:
        return [_row("cache", (Part(trouble, "warn"),), width)]
    return [_cache(state.cache, width, bar, g)] if state.cache is not None else []


def _cache(use: CacheUse, width: int, bar: int, g: Glyphs) -> Line:
    """Return the compiler cache's hit rate."""
    details: list[Line] = [(Part(counts_text(use), "text"),)]
    if use.size is not None:
        size = format_of(use.size, use.size_limit) if use.size_limit else format_bytes(use.size)
        details.append((Part(f"holds {size}", "text_dim"),))
    if use.saved_seconds is not None and use.saved_seconds >= 1:
        details.append((Part(f"saved about {format_rough(use.saved_seconds)}", "text_dim"),))
    value = f"{rate_text(use)} hits" if use.rate is not None else "no hits yet"
    return _metered(use.tool, meter_bar([(use.rate or 0.0, g.full, "ok")], bar, g), value, details, width)


def _level(m: Moment, width: int, bar: int, g: Glyphs) -> Line:
    """Return how many jobs run and may run, how many wait on deck or are frozen, and who sets the level."""
    if not is_governed(m.state):
        return _ungoverned(m.state, width, bar, g)
    p, level = progress_of(m.state), m.state.level
    scale = max(level.target or 0, p.local + p.frozen, 1)
    shares = [(p.local / scale, g.full, "running"), (p.frozen / scale, g.other, "frozen")]
    asked = m.pending.level
    change = f"{g.becomes}{asked}" if isinstance(asked, int) and asked != level.target else ""
    limit = tools_limit(m.state) or surplus(m.state)
    details: list[Line] = [
        _mode(m, width, g),
        *([(Part(limit, "warn"),)] if limit else []),
        (Part(f"{g.on_deck} {p.on_deck} on deck", "on_deck" if p.on_deck else "text_dim"),),
    ]
    if p.frozen:
        details.append((Part(f"{g.frozen} {p.frozen} frozen", "frozen"),))
    value = f"{p.running} running of {level.target}{change}"
    if p.remote or p.hostless:
        room = width - LABEL_WIDTH - bar - 2 - cell_len(change)
        value = f"{whole_clauses(remote_text.counts(p), room)}{change}"
    if is_loose(m.state):
        shares, value = [], "not governed: no ninja or make"
        details = [(Part(compilers(m.state), "text"),)] if level.ungoverned else []
    return _metered("jobs", meter_bar(shares, bar, g), value, details, width)


def _hosts(state: BuildState, width: int, bar: int, g: Glyphs) -> list[Line]:
    """Return how many slots on other machines are used, and what is wrong with them."""
    if not state.remote.engines:
        return []
    used, slots = sum(state.used_hosts.values()), state.remote.slots
    hosts = [host for engine in state.remote.engines for host in engine.hosts]
    errors, back = sum(h.errors for h in hosts), sum(h.fallbacks for h in hosts)
    details: list[Line] = [(Part(remote_text.count(len(hosts), "host"), "text_dim"),)]
    details += [(Part(remote_text.count(errors, "error"), "warn"),)] if errors else []
    details += [(Part(f"{back} fell back", "warn"),)] if back else []
    room = width - LABEL_WIDTH - bar - VALUE_WIDTH - 4 - sum(width_of(d) + 2 for d in details)
    if trouble := whole_clauses(remote_text.trouble_text(state), room):
        details.append((Part(trouble, "warn"),))
    meter = meter_bar([(used / max(1, slots), g.full, "running")], bar, g)
    return [aimed(_metered("remote", meter, remote_text.use_text(state), details, width), "key:hosts")]


def _mode(m: Moment, width: int, g: Glyphs) -> Line:
    """Return who sets the level; a pending request is highlighted."""
    level, asked = m.state.level, m.pending.level
    automatic = MODES["auto"] if width >= LONG_LIMIT_WIDTH else "auto"
    if asked == "auto" and level.mode != "auto":
        return (Part(f"{g.becomes}{automatic}", "person bold"),)
    by_hand = level.mode == "manual" or isinstance(asked, int)
    return (Part(MODES["manual"], "person"),) if by_hand else (Part(automatic, "text_dim"),)


def _ungoverned(state: BuildState, width: int, bar: int, g: Glyphs) -> Line:
    """Return how many jobs run, and how many the scheduler may start by itself."""
    p, window = progress_of(state), state.level.window
    scale = max(window or 0, p.running + p.frozen + p.on_deck, state.cores, 1)
    details: list[Line] = [] if window is None else [(Part(f"at most {window} at once", "text_dim"),)]
    details.append((Part("only watched", "text_dim"),))
    shares = [(p.running / scale, g.full, "running"), (p.frozen / scale, g.other, "frozen")]
    return _metered("jobs", meter_bar(shares, bar, g), f"{p.running} running", details, width)
