"""Jobs on other machines in words, for every screen. Pure. Unaware of how hosts are asked."""

from __future__ import annotations

from stoker.model.progress import Progress
from stoker.model.state import BuildState
from stoker.model.text import clean

MAX_HOST = 64


def counts(p: Progress) -> str:
    """Who works where: `12 local + 28 remote`, and how many have lost their host; without other machines only
    `12 running`."""
    lost = f" + {p.hostless} without a host" if p.hostless else ""
    return f"{p.local} local + {p.remote} remote{lost}" if p.remote or lost else f"{p.running} running"


def slots_text(state: BuildState) -> str:
    """How many slots of other machines there are: `28 of 40 slots on 5 hosts`."""
    known = [host for engine in state.remote.engines for host in engine.hosts]
    used, slots = used_slots(state)
    return f"{used} of {count(slots, 'slot')} on {count(len(known), 'host')}"


def used_slots(state: BuildState) -> tuple[int, int]:
    """How many slots of other machines this build uses, and how many it has, those of a host among them that gets no
    more while it ends what it has."""
    used = sum(state.used_hosts.values())
    return used, max(used, state.remote.slots)


def count(number: int, what: str) -> str:
    """A number and its noun: `1 host`, `2 hosts`."""
    return f"{number} {what}" if number == 1 else f"{number} {what}s"


def trouble_text(state: BuildState) -> str:
    """What is wrong with hosts now, in a few words: one by its name, of several how many; empty if nothing is."""
    if state.over:
        return ""
    unused = [host for engine in state.remote.engines for host in engine.hosts if host.why_unused]
    if len(unused) == 1:
        return f"{clean(unused[0].name, MAX_HOST)}: {clean(unused[0].why_unused)}"
    if unused:
        return f"{len(unused)} hosts are not used, as {clean(unused[0].name, MAX_HOST)}: {clean(unused[0].why_unused)}"
    return next((clean(engine.note) for engine in state.remote.engines if engine.note), "")
