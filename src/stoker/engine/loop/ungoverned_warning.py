"""Warns once per step that nothing of it is governed: compilers run that no ninja or make has started.

Unaware of how they were found.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from stoker.model import events as ev
from stoker.model.state import BuildState

HEARS = {"rustc": ("cargo", "CARGO_BUILD_JOBS"), "compile": ("go", "GOFLAGS")}
"""Whose compilers these are, and the variable by which it knows how many may run at once."""


def warn_of_ungoverned(state: BuildState, events: Iterable[ev.Event], environment: Mapping[str, str]) -> list[ev.Event]:
    """Return a warning the first time a step shows such compilers; `environment` is that of the step."""
    found = next((e.ungoverned for e in events if isinstance(e, ev.Sampled) and e.ungoverned), None)
    if found is None or state.step is None or state.step.ungoverned:
        return []
    names = " and ".join(sorted(found))
    known = (HEARS[program] for program in sorted(found) if program in HEARS)
    heard = [f"{who} goes by {name}={environment[name]}" for who, name in known if environment.get(name)]
    run = "runs" if len(found) == 1 else "run"
    text = (
        f"nothing is governed: {names} {run} without a ninja or make, so no level and no pause holds that, and nothing "
        "waits for memory; memory and processes are watched"
    )
    return [ev.Noticed("warning", "; ".join([text, *heard]))]
