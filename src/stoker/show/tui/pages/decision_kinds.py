"""Kinds of decisions and notices, and those on one job gathered into one entry. Pure.

Does not know how an entry is drawn.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Container, Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from stoker.model.state import DecisionEntry, Notice
from stoker.model.units import format_duration
from stoker.show.governing_text import is_person, is_usual
from stoker.show.tui.pages.moment import time_of_day

DecisionKind = Literal["frozen", "waits", "level", "alone", "stops", "other", "people", "notices"]

KINDS: tuple[DecisionKind, ...] = ("frozen", "waits", "level", "alone", "stops", "other", "people", "notices")
"""In the order in which a key goes through them."""

_VERBS: Mapping[str, DecisionKind] = {
    "freeze": "frozen", "thaw": "frozen", "hold": "waits", "admit": "waits", "start": "waits", "level": "level",
    "pause": "level", "unpause": "level", "kill": "stops", "shed": "stops", "stop": "stops", "drop": "stops",
}  # fmt: skip
"""First words of decisions."""

_ENDS: Mapping[str, str] = {"thaw": "freeze", "admit": "hold", "start": "hold"}
"""First words of decisions that end what another one began."""


def kind_of(entry: DecisionEntry | Notice) -> DecisionKind:
    """Return the kind of an entry: that a person decided it, or what stoker decided. Each has one, so that the numbers
    of all kinds add up."""
    if isinstance(entry, Notice):
        return "notices"
    if is_person(entry):
        return "people"
    if (own := _VERBS.get(entry.what.split(" ", 1)[0])) is not None:
        return own
    alone = entry.what.endswith(" alone") or "runs alone" in entry.why or entry.what.startswith("no longer alone")
    return "alone" if alone else "other"


def counts(entries: Iterable[DecisionEntry | Notice]) -> dict[DecisionKind, int]:
    """Return how many entries there are of each kind, without the kinds of which there are none."""
    number = Counter(map(kind_of, entries))
    return {kind: number[kind] for kind in KINDS if number[kind]}


@dataclass(slots=True)
class _Stops:
    """What stoker decided about the freezes of one job, or about its wait on deck.

    `open`: the last one has no end. `at`: its place among all entries.
    """

    decisions: list[DecisionEntry] = field(default_factory=list)
    seconds: float = 0.0
    open: bool = False
    at: int = 0

    def begin(self, decision: DecisionEntry) -> None:
        if decision.what.startswith("hold "):
            began = self.decisions.pop().time if self.open else decision.since
            time = decision.time if began is None else min(began, decision.time)
            later = "last: " if decision.time - time >= 1 else ""  # its figures are not of the time that is shown
            decision = replace(decision, time=time, why=f"{later}{decision.why}")
        self.decisions.append(decision)
        self.open = True

    def end(self, time: float) -> None:
        self.seconds += max(0.0, time - self.decisions[-1].time)
        self.open = False

    def entry(self, *, frozen: bool) -> DecisionEntry:
        """Return the entry; `frozen` says whether the job is frozen now."""
        last, number = self.decisions[-1], len(self.decisions)
        took = format_duration(self.seconds) if self.seconds >= 1 else "less than 1 s"
        if number == 1:
            unknown = last.what.startswith("hold ") and self.seconds < 1
            return last if self.open or unknown else replace(last, why=f"for {took}; {last.why}")
        since = time_of_day(self.decisions[0].time)
        now = "" if not last.what.startswith("freeze ") else ", frozen now" if frozen else ", thawed again"
        now = now if frozen or not self.open else ""  # it was killed
        # The reason of the last one first, as the entry has its time: what comes last is cut where there is no room.
        return replace(last, what=f"{last.what} {number} times", why=f"{last.why}; {took} in all since {since}{now}")


def with_stops_gathered(
    entries: Sequence[DecisionEntry | Notice], frozen: Container[str], now: float, left_at: float | None = None
) -> list[DecisionEntry | Notice]:
    """Return the entries by time, with one for all freezes of a job by stoker, at the time of the last, and one for its
    wait on deck, at the time when that began. Freezes before and after the user left, at `left_at`, are two entries; so
    are those for memory and those for a job that runs alone.

    `frozen` are the outputs of the jobs that are frozen now, at Unix time `now`. What a person decided stays.
    """
    found: dict[tuple[str, str], list[_Stops]] = {}
    placed: list[tuple[float, int, DecisionEntry | Notice]] = [
        (entry.time, at, entry)
        for at, entry in enumerate(entries)
        if isinstance(entry, Notice) or not _is_taken(entry, at, found, left_at)
    ]
    for (verb, name), parts in found.items():
        last, is_frozen = parts[-1], verb == "freeze" and name in frozen
        if last.open and is_frozen:
            last.seconds += max(0.0, now - last.decisions[-1].time)  # and goes on
        for stops in parts:
            entry = stops.entry(frozen=is_frozen and last.open and stops is last)
            placed.append((entry.time, stops.at, entry))
    return [entry for _, _, entry in sorted(placed, key=lambda place: place[:2])]


def _is_taken(
    decision: DecisionEntry, at: int, found: dict[tuple[str, str], list[_Stops]], left_at: float | None
) -> bool:
    """Add the decision at this place to what was `found` of its job; return whether it needs no entry of its own."""
    verb, _, name = decision.what.partition(" ")
    own = not is_person(decision)
    if own and verb in ("freeze", "hold"):
        parts = found.setdefault((verb, name), [_Stops()])
        before = parts[-1].decisions[-1] if parts[-1].decisions else None
        if verb == "freeze" and before is not None and not _belong_together(before, decision, left_at):
            parts.append(_Stops())
        parts[-1].begin(decision)
        parts[-1].at = at
        return True
    stops = found.get((_ENDS.get(verb, ""), name), [_Stops()])[-1]
    if not stops.open:
        return False
    stops.end(decision.time)
    return own and (verb == "thaw" or is_usual(decision))


def _belong_together(before: DecisionEntry, later: DecisionEntry, left_at: float | None) -> bool:
    """Return whether two freezes of a job are one entry: both for memory, or both for a job that runs alone, which a
    person asked for; and both on the same side of where the user left."""
    return _is_for_one_alone(before) is _is_for_one_alone(later) and (
        left_at is None or (before.time <= left_at) is (later.time <= left_at)
    )


def _is_for_one_alone(freeze: DecisionEntry) -> bool:
    return freeze.why.endswith(" runs alone")
