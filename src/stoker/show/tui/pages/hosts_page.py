"""Other machines that compile for the build: one row each, with its slots and the results of its jobs. Pure.

Knows neither Textual nor colours (inks name theme tokens), and not how engines report.
"""

from __future__ import annotations

from stoker.model.progress import progress_of
from stoker.model.remote import RemoteHost
from stoker.model.state import BuildState
from stoker.model.text import clean
from stoker.show.remote_text import count, counts, finished_on, outcome_text, slots_text
from stoker.show.tui.pages.lines import BLANK, Line, Part, elide_end, fit, pad, section, width_of, wrap
from stoker.show.tui.pages.meters import meter_bar
from stoker.show.tui.pages.names import found_text, matches
from stoker.show.tui.terminal.glyphs import Glyphs

MAX_NAME = 128

BAR = 10
"""Cells of a host's bar."""

_FIGURES = (("slots", 7), ("done", 7), ("errors", 8), ("fell back", 11))

NO_HOSTS = (
    "No other machine compiles for this build.",
    "Jobs run on other machines if the compiler is called through distcc, icecc or sccache.",
)


def hosts(state: BuildState, words: str = "") -> list[tuple[str, RemoteHost]]:
    """Return the hosts of all engines that match `words`, each with its engine's name."""
    every = ((engine.kind, host) for engine in state.remote.engines for host in engine.hosts)
    return [(kind, h) for kind, h in every if matches(words, f"{h.name} {kind} {h.why_unused}")]


def page(state: BuildState, width: int, height: int, first: int, words: str, g: Glyphs) -> list[Line]:
    """Return the hosts from row `first` on, below a heading and a summary."""
    every = hosts(state)
    found = hosts(state, words)
    lines = [section(found_text("hosts", words, len(found), len(every)), width, g)]
    if not state.remote.engines:
        lines.append(BLANK)
        return [*lines, *((Part(piece, "text_dim"),) for text in NO_HOSTS for piece in wrap(text, width, 4))]
    lines += _summary(state, width)
    notes = (clean(engine.note, 200) for engine in state.remote.engines if engine.note)
    lines += [(Part(piece, "warn"),) for note in notes for piece in wrap(note, width, 2)]
    lines += [BLANK, _heading(width)]
    used = state.used_hosts
    rows: list[Line] = []
    for kind, host in found[first:]:
        rows.append(_row(kind, host, used.get(host.name, 0), finished_on(state, host), width, g))
        if host.taken:
            rows.append(fit((Part(f"    {g.other} {count(host.taken, 'slot')} taken by others", "text_dim"),), width))
        if host.why_unused:
            rows.append(fit((Part("    "), Part(clean(host.why_unused), "warn")), width))
    if not rows:
        rows = [(Part("No host has these words." if words else "No host is known yet.", "text_dim"),)]
    return [*lines, *rows][:height]


def _summary(state: BuildState, width: int) -> list[Line]:
    words = [slots_text(state), outcome_text(state)]
    if not state.over:
        words.insert(0, counts(progress_of(state)))
    return [(Part(piece, "text"),) for piece in wrap(", ".join(filter(None, words)), width, 2)]


def _heading(width: int) -> Line:
    cells = "".join(pad(title, cells, right=True) for title, cells in _FIGURES)
    return fit((Part(pad("  host", width - len(cells)), "text_dim"), Part(cells, "text_dim")), width)


def _row(kind: str, host: RemoteHost, used: int, finished: int, width: int, g: Glyphs) -> Line:
    taken = f"{used + host.taken}/{host.slots}" if host.slots else ""  # not every engine reports slots
    bad = "warn" if host.errors else "text_dim"
    figures = (
        Part(pad(taken, _FIGURES[0][1], right=True), "text"),
        Part(pad(str(finished), _FIGURES[1][1], right=True), "text"),
        Part(pad(str(host.errors), _FIGURES[2][1], right=True), bad),
        Part(pad(str(host.fallbacks), _FIGURES[3][1], right=True), "warn" if host.fallbacks else "text_dim"),
    )
    scale = max(1, host.slots)
    bar = meter_bar([(used / scale, g.full, "running"), (host.taken / scale, g.other, "text_dim")], BAR, g)
    mark = Part(f"{g.warn} ", "warn") if host.why_unused else Part("  ")
    room = width - width_of(figures) - BAR - 4
    name = elide_end(f"{clean(host.name, MAX_NAME)}  {kind}", room, g.ellipsis)
    return fit((mark, Part(pad(name, room)), Part(" "), *bar, Part(" "), *figures), width)
