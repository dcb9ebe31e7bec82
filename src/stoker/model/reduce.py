"""reduce(state, record) -> state: the only place where events become what a viewer sees.

Pure and total: any sequence of records gives a state and never an error, because a crash may truncate a journal.
`reducers` has what each event changes, by family. Unaware of where records come from.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce as _fold

from stoker.model.events import Record
from stoker.model.evolve import evolve
from stoker.model.reducers import Reducers, build_events, job_events, kill_events, sample_events, scheduler_events
from stoker.model.state import BuildState

_REDUCERS: Reducers = {
    **build_events.REDUCERS,
    **scheduler_events.REDUCERS,
    **job_events.REDUCERS,
    **kill_events.REDUCERS,
    **sample_events.REDUCERS,
}


def reduce(state: BuildState, record: Record) -> BuildState:
    """Return the state after `record`. Ignores records at or before the state's own number, so resuming is safe."""
    if record.seq <= state.seq:
        return state
    state = evolve(state, seq=record.seq, time=record.time)
    return _REDUCERS[type(record.event)](state, record.event, record.time)


def reduce_all(records: Iterable[Record], state: BuildState | None = None) -> BuildState:
    """Return the state after all of `records`, in order."""
    return _fold(reduce, records, state or BuildState())
