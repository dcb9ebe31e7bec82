"""Lists the processes that an engine has stopped, from its gate.json. Stdlib only: the supervisor uses it."""

from stoker.act.tree import Processes
from stoker.contract.gate_file import Gate
from stoker.contract.process import Key


def pids_of(gate: Gate, processes: Processes, job: Key) -> list[int]:
    """Return the processes of a job, and those that a cache's server runs for it."""
    return [*processes.job(job), *processes.trees(gate.hosted_of(job))]


def held_pids(gate: Gate | None, processes: Processes) -> set[int]:
    """Return the processes of all jobs that the engine had stopped."""
    return {pid for job in gate.stopped for pid in pids_of(gate, processes, job)} if gate is not None else set()
