"""Which terminal a person sits at, by what it leaves in the environment, and what it understands beside text.

Through SSH only TERM and what begins with LC_ arrives, so TERM counts most. Pure. Unaware of what is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Way = Literal["osc9", "osc777", "osc99", "bell"]
"""How a terminal is asked for a desktop notification: OSC 9 (iTerm2), OSC 777 (rxvt-unicode), OSC 99 (kitty), or not at
all: then it is sent a bell."""

Multiplexer = Literal["", "tmux", "screen"]


class KnownTerminal(NamedTuple):
    """How a terminal is recognised: the beginning of TERM, its TERM_PROGRAM, or another variable that it sets.

    `certain`: it is known to show notifications, so that it needs no bell as well. `progress`: it shows OSC 9;4, as far
    as cargo counts on that.
    """

    term: str
    program: str
    variable: str
    way: Way
    certain: bool
    progress: bool


KNOWN = (
    KnownTerminal("xterm-kitty", "kitty", "KITTY_WINDOW_ID", "osc99", certain=True, progress=False),
    KnownTerminal("xterm-ghostty", "ghostty", "GHOSTTY_RESOURCES_DIR", "osc777", certain=True, progress=True),
    KnownTerminal("wezterm", "WezTerm", "WEZTERM_PANE", "osc777", certain=True, progress=True),
    KnownTerminal("foot", "foot", "", "osc777", certain=True, progress=False),
    KnownTerminal("contour", "contour", "", "osc777", certain=True, progress=False),
    KnownTerminal("rxvt-unicode", "", "", "osc777", certain=False, progress=False),
    KnownTerminal("", "iTerm.app", "ITERM_SESSION_ID", "osc9", certain=True, progress=False),
    KnownTerminal("", "WarpTerminal", "", "osc777", certain=True, progress=False),
    KnownTerminal("", "", "WT_SESSION", "bell", certain=True, progress=True),
    KnownTerminal("", "", "ConEmuANSI", "bell", certain=True, progress=True),
    KnownTerminal("konsole", "", "KONSOLE_VERSION", "osc777", certain=False, progress=False),
    KnownTerminal("vte", "", "VTE_VERSION", "osc777", certain=False, progress=False),
)
"""docs/settings.md has the same as a table."""

UNKNOWN = KnownTerminal("", "", "", "bell", certain=True, progress=False)

_ITERM = KNOWN[6]

_WITHOUT_TITLE = ("linux", "dumb", "vt", "ansi", "cons")
"""Beginnings of TERM of consoles, which have no title."""


class TerminalKind(NamedTuple):
    """What may be sent: see KnownTerminal; `inside` is the program between us and the terminal."""

    way: Way
    certain: bool
    progress: bool
    title: bool
    inside: Multiplexer


def multiplexer_of(environ: Mapping[str, str]) -> Multiplexer:
    """Return the program that stands between us and the person's terminal, the inner one of two."""
    term = environ.get("TERM", "")
    if environ.get("TMUX") and not (environ.get("STY") and not term.startswith("tmux")):
        return "tmux"
    return "screen" if environ.get("STY") else ""


def kind_of(environ: Mapping[str, str], client: str = "") -> TerminalKind:
    """Return what the terminal understands. `client` is what tmux knows of it: its TERM, a blank, its name."""
    inside = multiplexer_of(environ)
    found = (_by_client(client) or _by_variable(environ)) if inside else _outside(environ)
    # Inside a multiplexer it depends on its settings whether anything gets through; it passes on a bell at any rate.
    # What stays on a terminal's frame, such as progress, would stay there when another window is looked at.
    certain, progress = found.certain and not inside, found.progress and not inside
    title = inside != "screen" and not environ.get("TERM", "dumb").startswith(_WITHOUT_TITLE)
    return TerminalKind(found.way, certain, progress, title, inside)


def _outside(environ: Mapping[str, str]) -> KnownTerminal:
    """By TERM, then by TERM_PROGRAM, which goes before what a terminal around this one may have left."""
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    found = next((known for known in KNOWN if known.term and term.startswith(known.term)), None)
    if found is None and program:
        found = next((known for known in KNOWN if known.program == program), UNKNOWN)
    found = found or _by_variable(environ)
    # iTerm2 names its features from 3.5 on; "P" is progress (iterm2.com/feature-reporting).
    return found._replace(progress=True) if found is _ITERM and "P" in environ.get("TERM_FEATURES", "") else found


def _by_variable(environ: Mapping[str, str]) -> KnownTerminal:
    if environ.get("LC_TERMINAL") == "iTerm2":
        return _ITERM
    return next((known for known in KNOWN if known.variable and environ.get(known.variable)), UNKNOWN)


def _by_client(client: str) -> KnownTerminal | None:
    """Return the terminal that tmux names; the name is the terminal's own answer (XTVERSION), such as `iTerm2 3.5`."""
    term, _, name = client.lower().partition(" ")
    for known in KNOWN:
        program = known.program.lower().removesuffix(".app").removesuffix("terminal")
        if (known.term and term.startswith(known.term)) or (program and name.startswith(program)):
            return known
    return None
