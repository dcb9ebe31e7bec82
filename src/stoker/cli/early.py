"""Signals that arrive while a build has been started and nobody watches it yet: kept until somebody does.

Without this, a Ctrl-C in the first second would end the viewer silently and leave the build running. Unaware of what is
done with them.
"""

from __future__ import annotations

import os
import signal
from types import FrameType

_KEPT = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_came: list[int] = []


def keep() -> None:
    """Keep these signals from now on, if their defaults are in force. Call it in the main thread."""
    for signum in _KEPT:
        if signal.getsignal(signum) in (signal.SIG_DFL, signal.default_int_handler):
            signal.signal(signum, _note)


def came() -> bool:
    """Say whether one was kept; the defaults are in force again."""
    for signum in _KEPT:
        if signal.getsignal(signum) is _note:
            signal.signal(signum, signal.default_int_handler if signum == signal.SIGINT else signal.SIG_DFL)
    return bool(_came)


def raise_again() -> None:
    """Send what was kept once more: somebody handles it now."""
    while _came:
        os.kill(os.getpid(), _came.pop(0))


def _note(signum: int, _frame: FrameType | None) -> None:
    _came.append(signum)
