"""Tells why jobs wait: once for all that wait for the same, and again only when the reason is another one.

Unaware of how reasons come about.
"""

from __future__ import annotations

from collections.abc import Iterable

from stoker.decide.policy.waits import Wait, Waits
from stoker.engine.jobs.deck import Member
from stoker.model import events as ev


def reasons_told(members: Iterable[Member], waits: Waits) -> list[ev.JobsWaiting]:
    """What is news of why these wait; they keep what was told of each."""
    news: dict[Wait, list[int]] = {}
    for member in members:
        wait = _reason(member, waits)
        if wait is not None and wait.is_news_after(member.wait):
            member.wait = wait
            news.setdefault(wait, []).append(member.jid)
    return [ev.JobsWaiting(tuple(jids), wait.cause, wait.why) for wait, jids in news.items()]


def _reason(member: Member, waits: Waits) -> Wait | None:
    if member.state == "running" or not member.counts:
        return None
    return waits.of.get(member.jid) or (waits.on_deck if member.state == "on_deck" else waits.frozen)
