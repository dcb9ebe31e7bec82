"""The occasions of a build for which a person is notified. Pure.

Unaware of how they are announced, and of what has been announced already.
"""

from __future__ import annotations

from typing import Literal

from stoker.model.killed import failed_steps
from stoker.model.state import BuildState
from stoker.model.text import clean
from stoker.model.units import format_duration

Occasion = Literal["end", "failure", "killed", "frozen", "waiting"]
"""end: the build has ended; failure: a job has failed; killed: a job was killed for lack of memory; frozen: one was
frozen for it; waiting: nothing has run for a while, and nothing will until a person unpauses the build."""

WAITING_SECONDS = 300.0
"""How long nothing must have run: a pause for a minute is intended."""

MAX_MESSAGE = 160
"""Characters: a notification shows about two lines, and GNU screen passes on strings of 768 bytes at most."""

_MAX_NAME, _MAX_REASON = 40, 100


def occasions_of(state: BuildState) -> tuple[Occasion, ...]:
    """Return the occasions that the build has reached; for an ended one, the end comes last."""
    killed = sum(lost.count for by, lost in state.lost.items() if by != "person")
    found: dict[Occasion, bool] = {
        "failure": bool(failed_steps(state)),
        "killed": killed > 0,
        "frozen": state.restraint.frozen > 0,
        "waiting": not state.over and _waits(state),
        "end": state.over,
    }
    return tuple(occasion for occasion, there in found.items() if there)


def _waits(state: BuildState) -> bool:
    """Say whether nothing has run for long, though there is work."""
    if not state.governed or any(job.state == "running" for job in state.jobs.values()):
        return False
    if not state.jobs and state.level.paused == "no":
        return False
    ended = [job.ended for job in state.history.recent[-1:]]
    decided = [decision.time for decision in state.decisions[-1:]]
    return state.time - max(state.started, *ended, *decided) >= WAITING_SECONDS


def message_of(state: BuildState, occasion: Occasion) -> str:
    """Return one sanitised line that names the occasion and the build: `stoker: pytorch failed after 2 h 3 m: exit
    status 1`."""
    name = clean(state.name, _MAX_NAME) or "build"
    return clean(f"stoker: {name}{_words(state, occasion)}", MAX_MESSAGE)


def _words(state: BuildState, occasion: Occasion) -> str:
    if occasion == "end":
        took = format_duration((state.ended or state.time) - state.started)
        reason = "" if state.outcome == "done" else f": {clean(state.reason, _MAX_REASON)}"
        return f" {'is done' if state.outcome == 'done' else state.outcome} after {took}{reason}"
    if occasion == "failure":
        failed = failed_steps(state)
        return f": {clean(failed[0].output, _MAX_REASON)} failed" if failed else ": a job failed"
    if occasion == "waiting":
        why = next((job.reason for job in state.jobs.values()), "")
        paused = "it is paused" if state.level.paused != "no" else clean(why, _MAX_REASON)
        return f" waits for you: nothing runs, {paused}"
    return f": a job was {occasion} because memory ran short"
