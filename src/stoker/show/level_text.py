"""Describes the level, the pause and the deck, for every viewer that has no bars. Pure.

Knows no screens, and not how the state was obtained.
"""

from __future__ import annotations

from stoker.model.progress import Progress, progress_of
from stoker.model.state import BuildState, Level
from stoker.model.text import clean
from stoker.model.units import format_share

MAX_NAME = 16
"""Characters that the kernel keeps of a program's name."""

MODES = {"auto": "automatic", "manual": "by hand"}

PAUSES = {"no": "", "soft": "paused, nothing new starts", "hard": "everything is frozen"}


def level_text(state: BuildState, *, counted: bool = True) -> str:
    """Return the present level: `level 12 (by hand); 5 run, 7 on deck`, preceded by a pause, followed by warnings;
    without the counts if they are not wanted."""
    level = state.level
    if level.target is None:
        return "no level: nothing of this build has been governed"
    loose = ungoverned(state)
    more = surplus(state) if counted else ""
    parts = [PAUSES[level.paused], loose, setting(level), more, tools_limit(state)]
    parts.append(counts(progress_of(state)) if counted and not loose else "")
    if not level.guarded:
        parts.append("memory is not guarded")
    return "; ".join(part for part in parts if part)


def ungoverned(state: BuildState) -> str:
    """Return `nothing is governed: 2 rustc run without a ninja or make` if that is the case; else nothing."""
    if state.over or state.governed:
        return ""
    if state.level.ungoverned:
        return f"nothing is governed: {compilers(state)} without a ninja or make"
    none_yet = state.step is None or state.step.schedulers == 0
    return "nothing is governed while no ninja or make runs" if none_yet else ""


def uncounted(state: BuildState) -> str:
    """Return `2 compilations seen, not governed: no ninja or make ran` of an ended build whose jobs nothing has
    counted, as where setuptools compiles by itself; else nothing. Short ones may have been missed."""
    if not state.over or state.schedulers or progress_of(state).failed:
        return ""
    seen = state.compiled_alone
    what = f"{seen} compilation{'' if seen == 1 else 's'} seen, not governed" if seen else "not counted, not governed"
    return f"{what}: no ninja or make ran"


def is_loose(state: BuildState) -> bool:
    """Return whether compilers run in this step without a ninja or make, also between two of them."""
    return not state.over and not state.governed and state.step is not None and state.step.ungoverned


def compilers(state: BuildState) -> str:
    """Return the compilers that stoker cannot hold: `2 rustc and 1 ld run`."""
    names = " and ".join(f"{count} {clean(name, MAX_NAME)}" for name, count in sorted(state.level.ungoverned.items()))
    return f"{names} {'runs' if sum(state.level.ungoverned.values()) == 1 else 'run'}"


def setting(level: Level) -> str:
    """Return how many jobs may run, and who set that: `level 12 (by hand)`."""
    return f"level {level.target} ({MODES[level.mode]})"


def tools_limit(state: BuildState) -> str:
    """Return `make starts only 1` if the build tools start fewer jobs than a person has allowed; else nothing."""
    if state.level.mode != "manual":
        return ""
    most, tools = _most_started(state), {s.tool for s in state.schedulers.values() if s.ended is None}
    if not tools or most is None or not len(state.jobs) <= most < (state.level.target or 0):
        return ""
    return f"{tools.pop()} starts only {most}" if len(tools) == 1 else f"the build tools start only {most}"


def surplus(state: BuildState) -> str:
    """Return `3 above the level run on` if more jobs run than the automatic level allows: it lets them end,
    where a person's number freezes them. Nothing otherwise, nor while a pause says more."""
    level = state.level
    if level.target is None or level.mode != "auto" or level.paused != "no" or state.over:
        return ""
    # A job that contains a scheduler takes no place.
    inner = sum(s.parent is not None and s.ended is None for s in state.schedulers.values())
    more = progress_of(state).local - inner - level.target
    return f"{more} above the level {'runs' if more == 1 else 'run'} on" if more > 0 else ""


def _most_started(state: BuildState) -> int | None:
    """Return how many jobs the build tools that run start at once; None if one of them has no limit."""
    running = {s.sid: s for s in state.schedulers.values() if s.ended is None}
    most = 0
    for tool in running.values():
        above = running.get(tool.parent) if tool.parent is not None else None
        if tool.width is None:
            return None
        if above is None:
            most += tool.width
        elif (above.tool, tool.tool, above.width) != ("make", "make", tool.width):  # else they share a jobserver
            most += tool.width - 1  # it takes a place of the one above
    return most


def share_text(p: Progress) -> str:
    """Return `43 %`, or `43 %, 59 % begun` where the build's own log counts what has begun; empty if unknown."""
    if p.share is None:
        return ""
    share = format_share(p.share)
    begun = "" if p.begun is None else format_share(p.begun / 100)
    return f"{share}, {begun} begun" if begun not in ("", share) else share


def counts(p: Progress) -> str:
    """Return how many jobs run and wait: `5 run, 7 on deck, 1 frozen`."""
    frozen = f", {p.frozen} frozen" if p.frozen else ""
    lost = f" + {p.hostless} without a host" if p.hostless else ""
    running = f"{p.local} run here + {p.remote} remote{lost}" if p.remote or lost else f"{p.running} run"
    return f"{running}, {p.on_deck} on deck{frozen}"
