"""What jobs wait for, in words. Pure."""

from __future__ import annotations

from stoker.model.reducers.job_events import SHORT_OF_MEMORY

_CAUSES = {
    "place": "a place",
    "memory": "memory, for itself or kept for a job before it",
    "pressure": "less pressure on memory",
    "level": "a person's level",
    "paused": "a person's pause",
    "alone": "a job that runs alone",
    "person": "a person, who froze it",
    "rest": "the effect of the last freeze",
    "unknown": "the first job of an unknown kind",
    "host": "a slot of another machine",
}
"""Causes of waiting (events.WaitCause), as `kind_of_cause` gives them."""


def kind_of_cause(cause: str) -> str:
    """Return the cause under which a report counts it: memory that is short is one, as on the screen at the end."""
    return "memory" if cause in SHORT_OF_MEMORY else cause


def cause_in_words(cause: str) -> str:
    """Return the cause in words; itself where a newer stoker has written it."""
    return _CAUSES.get(cause, cause)
