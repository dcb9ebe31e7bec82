"""Identifies the user's terminal from the environment, and what it understands besides text.

SSH passes on only TERM and variables that begin with LC_, so TERM counts most. Pure; does not know what is sent.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal, NamedTuple

Way = Literal["osc9", "osc777", "osc99", "bell"]
"""How a terminal is asked for a desktop notification: OSC 9 (iTerm2), OSC 777 (rxvt-unicode), OSC 99 (kitty); if it
understands none of them, it gets a bell."""

Multiplexer = Literal["", "tmux", "screen"]


class KnownTerminal(NamedTuple):
    """How to recognise a terminal: a prefix of TERM, its TERM_PROGRAM, or another variable that it sets.

    `certain`: it is known to show notifications, so no bell is needed as well. `progress`: it shows OSC 9;4, according
    to cargo's list.
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
"""docs/settings.md contains the same table."""

UNKNOWN = KnownTerminal("", "", "", "bell", certain=True, progress=False)

_ITERM = KNOWN[6]

_WITHOUT_TITLE = ("linux", "dumb", "vt", "ansi", "cons")
"""Prefixes of TERM on consoles, which have no title."""


class TerminalKind(NamedTuple):
    """What may be sent, as in KnownTerminal; `inside` is the multiplexer between stoker and the terminal."""

    way: Way
    certain: bool
    progress: bool
    title: bool
    inside: Multiplexer


def multiplexer_of(environ: Mapping[str, str]) -> Multiplexer:
    """Return the multiplexer between stoker and the user's terminal; the inner one if there are two."""
    term = environ.get("TERM", "")
    if environ.get("TMUX") and not (environ.get("STY") and not term.startswith("tmux")):
        return "tmux"
    return "screen" if environ.get("STY") else ""


def kind_of(environ: Mapping[str, str], client: str = "") -> TerminalKind:
    """Return what the terminal understands. `client` is what tmux knows about it: its TERM, a blank, its name."""
    inside = multiplexer_of(environ)
    found = (_by_client(client) or _by_variable(environ)) if inside else _outside(environ)
    # A multiplexer's settings decide whether anything but a bell gets through.
    # Progress is shown on the terminal's frame and would stay there when the user switches to another window.
    certain, progress = found.certain and not inside, found.progress and not inside
    title = inside != "screen" and not environ.get("TERM", "dumb").startswith(_WITHOUT_TITLE)
    return TerminalKind(found.way, certain, progress, title, inside)


def _outside(environ: Mapping[str, str]) -> KnownTerminal:
    """Look up TERM, then TERM_PROGRAM, which takes precedence over variables that an outer terminal may have set."""
    term, program = environ.get("TERM", ""), environ.get("TERM_PROGRAM", "")
    found = next((known for known in KNOWN if known.term and term.startswith(known.term)), None)
    if found is None and program:
        found = next((known for known in KNOWN if known.program == program), UNKNOWN)
    found = found or _by_variable(environ)
    # iTerm2 lists its features from 3.5 on; "P" is progress (iterm2.com/feature-reporting).
    return found._replace(progress=True) if found is _ITERM and "P" in environ.get("TERM_FEATURES", "") else found


def _by_variable(environ: Mapping[str, str]) -> KnownTerminal:
    if environ.get("LC_TERMINAL") == "iTerm2":
        return _ITERM
    return next((known for known in KNOWN if known.variable and environ.get(known.variable)), UNKNOWN)


def _by_client(client: str) -> KnownTerminal | None:
    """Return the terminal that tmux reports; the name is the terminal's answer to XTVERSION, such as `iTerm2 3.5`."""
    term, _, name = client.lower().partition(" ")
    for known in KNOWN:
        program = known.program.lower().removesuffix(".app").removesuffix("terminal")
        if (known.term and term.startswith(known.term)) or (program and name.startswith(program)):
            return known
    return None
