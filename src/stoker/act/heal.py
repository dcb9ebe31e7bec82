"""Looks after a build whose keeper, standbys, guard and engine were all killed: its held jobs would wait for ever.

Any command that looks at builds calls this. Unaware of who asked and of what is shown.
"""

from __future__ import annotations

from stoker.act.call_guard import call_guard, minders_of
from stoker.act.stop import NothingToStopError, running, set_going
from stoker.config.paths import BuildPaths


def heal(paths: BuildPaths) -> str:
    """Give the build a guard, which starts an engine, where nobody is left to let its jobs go on.

    What was done in one line, empty where nothing had to be done. Without a process for a guard everything that is
    stopped goes on. Of a build whose command was killed as well nothing is left to heal: the kernel hangs up on jobs
    that are stopped when their scheduler dies.
    """
    try:
        keepers, build = running(paths)
    except NothingToStopError:
        return ""
    if keepers or not build or minders_of(paths):
        return ""
    try:
        call_guard(paths, 0)
    except OSError as err:
        try:
            going = set_going(paths)
        except NothingToStopError:  # it has ended meanwhile
            return ""
        done = f"no other can be started ({err.strerror}), so {going} stopped processes go on"
        return f"{paths.id}: keeper and engine were killed; {done}"
    return f"{paths.id}: keeper and engine were killed; a guard and an engine take their place, the exit status is lost"
