"""Whose turn it is regardless of memory: the user's pause and level, and jobs that must run alone.

Pure. Knows nothing of memory, processes or clocks.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from stoker.decide.policy.situation import age_order
from stoker.decide.policy.snapshot import Candidate, Decision, LiveJob, View
from stoker.decide.policy.waits import Wait


@dataclass(frozen=True, slots=True)
class Turn:
    """Which jobs may run now if memory and the level allow, and the holds to announce.

    `frozen_wait` and `deck_waits` say why the jobs missing from `frozen` and `candidates` wait; `single` holds the
    reasons of jobs that have their own.
    """

    frozen: tuple[LiveJob, ...]
    candidates: tuple[Candidate, ...]
    holds: tuple[Decision, ...] = ()
    frozen_wait: Wait | None = None
    deck_waits: Wait | None = None
    single: Mapping[int, Wait] = field(default_factory=dict)


def obey(view: View, level: int) -> tuple[Decision, ...]:
    """Freeze at once whatever the user's commands forbid to run, however long the jobs would still take."""
    if view.paused == "hard":
        return _stop(view.running, f"paused: 0 of {len(view.running)} may run", announced=True)
    solo = soloist(view)
    if solo is not None:
        others = [j for j in view.running if j.jid != solo.jid]
        return _stop(_youngest_first(others), f"{solo.name} runs alone", announced=False)
    excess = len(view.running) - level
    if view.level is None or excess <= 0:
        return ()
    # The oldest keeps running; jobs that a user has just thawed are stopped last.
    victims = sorted(_youngest_first(view.running)[:-1], key=lambda j: j.by_person)
    return _stop(victims[:excess], f"level {level}, {len(view.running)} were running", announced=True)


def whose_turn(view: View) -> Turn:
    """Return which jobs may start or continue.

    A job on deck that must run alone goes before all others: admitted jobs end first, including frozen ones, because
    they keep their memory; none is admitted meanwhile. No job waits for one that a user froze, which may stay frozen
    forever.
    """
    solo = soloist(view)
    if solo is not None:
        wait = _alone(f"{solo.name} runs alone", solo.name)
        return Turn(tuple(j for j in view.frozen if j.jid == solo.jid), (), frozen_wait=wait, deck_waits=wait)
    frozen = tuple(j for j in view.frozen if not j.by_person)
    if view.paused != "no":
        paused = Wait("paused", "the build is paused: nothing starts until somebody unpauses it")
        return Turn(frozen, (), deck_waits=paused)
    alone = [c for c in view.candidates if c.alone]
    if not alone:
        return Turn(frozen, view.candidates)
    first = min(alone, key=arrival)
    before = len(view.running) + len(frozen)
    if not before:
        return Turn((), (first,), deck_waits=_alone(f"{first.name} runs alone", first.name))
    why = f"runs alone once {'1 job has' if before == 1 else f'{before} jobs have'} ended"
    holds = () if first.held else (Decision("hold", first.jid, why),)
    return Turn(frozen, (), holds, deck_waits=_alone(f"{first.name} {why}", f"{first.name} {before}"))


def _alone(why: str, key: str) -> Wait:
    return Wait("alone", why, key)


def soloist(view: View) -> LiveJob | None:
    """Return the oldest live job that must run alone; None if there is none."""
    alone = [j for j in view.running if j.alone]
    alone += [j for j in view.frozen if j.alone and not j.by_person]
    return min(alone, key=age_order, default=None)


def arrival(candidate: Candidate) -> tuple[float, int]:
    """Sort key: when a candidate came on deck."""
    return candidate.arrived, candidate.jid


def _youngest_first(jobs: Iterable[LiveJob]) -> list[LiveJob]:
    return sorted(jobs, key=age_order, reverse=True)


def _stop(jobs: Iterable[LiveJob], why: str, *, announced: bool) -> tuple[Decision, ...]:
    return tuple(Decision("freeze", j.jid, why, by_word=True, announced=announced) for j in jobs)
