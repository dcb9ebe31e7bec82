"""Describes jobs on other machines, for every viewer. Pure; does not know how hosts are queried."""

from __future__ import annotations

from stoker.model.progress import Progress
from stoker.model.remote import RemoteHost
from stoker.model.state import BuildState
from stoker.model.text import clean

MAX_HOST = 64


def counts(p: Progress) -> str:
    """Return where jobs run: `12 local + 28 remote`, and how many have no host now; `12 running` if all run here."""
    lost = f" + {p.hostless} without a host" if p.hostless else ""
    return f"{p.local} local + {p.remote} remote{lost}" if p.remote or lost else f"{p.running} running"


def slots_text(state: BuildState) -> str:
    """Return the slots on other machines: `28 of 40 slots on 5 hosts`."""
    known = [host for engine in state.remote.engines for host in engine.hosts]
    return f"{use_text(state)} on {count(len(known), 'host')}"


def use_text(state: BuildState) -> str:
    """Return how many slots of other machines are used: `28 of 40 slots`.

    More may be used than exist: jobs wait for a slot there, or finish on a host that gets no new ones. Then the text
    is `4 in use, 2 slots`.
    """
    used, slots = sum(state.used_hosts.values()), state.remote.slots
    return f"{used} in use, {count(slots, 'slot')}" if used > slots else f"{used} of {count(slots, 'slot')}"


def finished_on(state: BuildState, host: RemoteHost) -> int:
    """Return how many jobs a host has finished; an engine's own count has all of them, and passes within a job."""
    return max(state.remote.finished.get(host.name, 0), host.compiled)


def outcome_text(state: BuildState) -> str:
    """Return what other machines did for a build: `at least 31 compiled elsewhere on 2 hosts, 7 fell back`; empty if
    nothing. Only sccache counts by itself: of the others, a job shorter than two looks may be missed."""
    hosts = [host for engine in state.remote.engines for host in engine.hosts]
    done = [finished_on(state, host) for host in hosts]
    back = sum(host.fallbacks for host in hosts)
    if not sum(done) and not back:
        return ""
    fell = f", {back} fell back" if back else ""
    if not sum(done):
        return f"none compiled elsewhere{fell}"
    least = "" if all(engine.kind == "sccache" for engine in state.remote.engines) else "at least "
    return f"{least}{sum(done)} compiled elsewhere on {count(sum(map(bool, done)), 'host')}{fell}"


def count(number: int, what: str) -> str:
    """Return a number with its noun: `1 host`, `2 hosts`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def trouble_text(state: BuildState) -> str:
    """Return what is wrong with hosts now, briefly: one by name, several by number; empty if nothing is."""
    if state.over:
        return ""
    unused = [host for engine in state.remote.engines for host in engine.hosts if host.why_unused]
    if len(unused) == 1:
        return f"{clean(unused[0].name, MAX_HOST)}: {clean(unused[0].why_unused)}"
    if unused:
        return f"{len(unused)} hosts are not used, as {clean(unused[0].name, MAX_HOST)}: {clean(unused[0].why_unused)}"
    return next((clean(engine.note) for engine in state.remote.engines if engine.note), "")
