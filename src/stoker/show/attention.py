"""Draws attention to a build that nobody is looking at: notification or bell, the terminal's title, progress.

Knows a build by its state only, and does not write to the terminal. All text in an escape has passed the sanitiser.
"""

from __future__ import annotations

import subprocess
from collections.abc import Mapping

from stoker.config.attention_settings import AttentionSettings
from stoker.model.occasions import Occasion, message_of, occasions_of
from stoker.model.progress import progress_of
from stoker.model.state import BuildState
from stoker.model.text import clean
from stoker.model.update import Update
from stoker.show.ascii import to_ascii
from stoker.show.terminal_kind import TerminalKind, kind_of

LOUD: tuple[Occasion, ...] = ("failure", "killed", "waiting", "end")
"""Occasions that deserve a notification. A frozen job does not: that is the governor at work, and on the screen."""

BELL = "\x07"
SAVE_TITLE, RESTORE_TITLE = "\x1b[22;2t", "\x1b[23;2t"
"""XTWINOPS: the terminal keeps its title on a stack (xterm's ctlseqs)."""

NO_PROGRESS = "\x1b]9;4;0;\x07"
_NORMAL, _ERROR, _UNKNOWN, _PAUSED = 1, 2, 3, 4
"""States of OSC 9;4, as ConEmu defined them."""

_MAX_TITLE_NAME = 60

_ASK_SECONDS = 1.0
"""How long tmux may take to report which terminal displays it."""

_ASK_TMUX = ("tmux", "display-message", "-p", "#{client_termname} #{client_termtype}")


class Attention:
    """One viewer's notifications, each sent once, and its title and progress, which are kept up to date."""

    def __init__(self, environ: Mapping[str, str], settings: AttentionSettings, *, ascii_only: bool = False) -> None:
        self._environ, self._settings, self._ascii_only = environ, settings, ascii_only
        kind = kind_of(environ)
        self._titled = settings.title == "yes" and kind.title
        self._progress = settings.progress == "yes" or (settings.progress == "auto" and kind.progress)
        self._inside = kind.inside
        self._announced: set[Occasion] | None = None
        self._title = self._shown = ""

    def look(self, update: Update) -> str:
        """Return what to send to the terminal: new occasions, title, progress; for a replay only the title."""
        state = update.state
        if not state.seq:
            return ""
        replay = update.link == "replay"
        now = set(occasions_of(state))
        before = now if replay or self._announced is None else self._announced
        self._announced = now | before
        news = [self._notification(message_of(state, occasion)) for occasion in LOUD if occasion in now - before]
        title = self._plain(title_of(state)) if self._titled else ""
        if title != self._title:
            news.append(f"\x1b]2;{title}\x07")
        progress = "" if replay or not self._progress else wrapped(progress_escape(state), self._inside)
        if progress != self._shown:
            news.append(progress)
        self._title, self._shown = title, progress
        return "".join(news)

    def begin(self) -> str:
        """Return what to send before the title is changed."""
        return SAVE_TITLE if self._titled else ""

    def end(self) -> str:
        """Return what restores the terminal; the next `look` starts from scratch."""
        progress = wrapped(NO_PROGRESS, self._inside) * bool(self._shown)
        self._title = self._shown = ""
        return progress + RESTORE_TITLE * self._titled

    def _notification(self, text: str) -> str:
        how = self._settings.notify
        if how == "off":
            return ""
        if how == "bell":
            return BELL
        kind = kind_of(self._environ, _tmux_client() if self._inside == "tmux" and how == "auto" else "")
        if how != "auto":
            kind = kind._replace(way=how, certain=not kind.inside)
        return notification(kind, self._plain(text))

    def _plain(self, text: str) -> str:
        return to_ascii(text) if self._ascii_only else text


def notification(kind: TerminalKind, text: str) -> str:
    """Return the escape that makes a terminal of this kind announce `text`, which is one sanitised line."""
    title, _, body = text.partition(": ")
    escapes = {
        "osc9": f"\x1b]9;{text}\x07",  # never begins with a digit: `9;4;` is progress
        "osc777": f"\x1b]777;notify;{title.replace(';', ',')};{body}\x07",
        "osc99": f"\x1b]99;i=stoker:d=0;{title}\x07\x1b]99;i=stoker:p=body;{body}\x07",
        "bell": "",
    }
    escape = escapes[kind.way]
    return wrapped(escape, kind.inside) + BELL * (not escape or not kind.certain)


def wrapped(escape: str, inside: str) -> str:
    """Wrap an escape for the terminal around a multiplexer in a DCS string, which the multiplexer passes through.

    The escapes must end with BEL: an ST inside would end GNU screen's string early.
    """
    if not escape or not inside:
        return escape
    if inside == "tmux":
        doubled = escape.replace("\x1b", "\x1b\x1b")
        return f"\x1bPtmux;{doubled}\x1b\\"
    parts = (f"\x1bP{part}\x07\x1b\\" for part in escape.split("\x07") if part)
    return "".join(parts)


def title_of(state: BuildState) -> str:
    """Return the terminal title for a build: `pytorch 45 %`, `pytorch failed`."""
    name, share = clean(state.name, _MAX_TITLE_NAME) or "build", progress_of(state).share
    if state.phase != "running" or share is None:
        return f"{name} {state.phase}"
    return f"{name} {int(100 * share)} %"


def progress_escape(state: BuildState) -> str:
    """Return OSC 9;4 for this state of a build; it clears the progress once the build has succeeded."""
    share = progress_of(state).share
    percent = 0 if share is None else int(100 * share)
    if state.outcome == "done":
        return NO_PROGRESS
    if state.over:
        return f"\x1b]9;4;{_ERROR};{percent or 100}\x07"
    if state.phase in ("paused", "frozen"):
        return f"\x1b]9;4;{_PAUSED};{percent}\x07"
    return f"\x1b]9;4;{_UNKNOWN};\x07" if share is None else f"\x1b]9;4;{_NORMAL};{percent}\x07"


def _tmux_client() -> str:
    """Return what tmux knows about the terminal that displays it now, which can change; empty if it does not answer."""
    try:
        done = subprocess.run(
            _ASK_TMUX, capture_output=True, timeout=_ASK_SECONDS, check=False, stdin=subprocess.DEVNULL
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return clean(done.stdout, 200).strip()
