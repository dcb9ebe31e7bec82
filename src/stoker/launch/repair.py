"""Repairs builds whose supervisor, standbys, watchdog and engine were all killed: held jobs would wait forever.

Every command that looks at builds calls this. Unaware of who asked and of what is shown.
"""

from __future__ import annotations

from stoker.act.stop import NothingToStopError, continue_build, running
from stoker.act.watchdog_call import call_watchdog, watchdogs_and_engines_of
from stoker.config.paths import BuildPaths
from stoker.record.folders import unended_builds


def repair(paths: BuildPaths) -> str:
    """Start a watchdog for the build, which starts an engine, if no process is left to release its jobs.

    Returns what was done in one line, empty if nothing was necessary. If no process can be started for a watchdog,
    continues everything that is stopped. If the build's command was killed as well, nothing is left to repair: the
    kernel sends SIGHUP to stopped jobs when their scheduler dies.
    """
    try:
        supervisors, build = running(paths)
    except NothingToStopError:
        return ""
    if supervisors or not build or watchdogs_and_engines_of(paths):
        return ""
    try:
        call_watchdog(paths, 0)
    except OSError as err:
        try:
            going = continue_build(paths)
        except NothingToStopError:  # it has ended meanwhile
            return ""
        done = f"no other can be started ({err.strerror}), so {going} stopped processes go on"
        return f"{paths.id}: supervisor and engine were killed; {done}"
    return (
        f"{paths.id}: supervisor and engine were killed; "
        "a watchdog and an engine take their place, the exit status is lost"
    )


def repair_all() -> list[str]:
    """Repair every build whose end is unknown; return what was done, a line for each repaired one."""
    return [done for paths in unended_builds() if (done := repair(paths))]
