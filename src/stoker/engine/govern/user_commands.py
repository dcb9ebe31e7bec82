"""What a person asks of a governed build: the level, pauses, and single jobs.

Checks what arrives, changes what the governor keeps, and has it act at once. Unaware of sockets and of the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from stoker.act import gate
from stoker.engine.govern.governor import Governor
from stoker.engine.govern.hosted_gate import end_hosted
from stoker.engine.jobs.deck import Member
from stoker.model import events as ev
from stoker.model.events import MAX_LEVEL
from stoker.model.update import CommandRefused

VERBS = ("level", "pause", "resume", "job", "stop")


def carry_out(governor: Governor, verb: str, arguments: Mapping[str, Any], who: str) -> list[ev.Event]:
    """Do what a person named `who` asks for; the events that tell of it. Raises CommandRefused."""
    if verb == "level":
        return _level(governor, arguments, who)
    if verb == "pause":
        return _pause(governor, "hard" if arguments.get("now") is True else "soft", who)
    if verb == "resume":
        return _resume(governor, who)
    if verb == "job":
        return _job(governor, arguments, who)
    raise CommandRefused(f"no command {verb!r}; this engine knows: {', '.join(VERBS)}")


def _level(governor: Governor, arguments: Mapping[str, Any], who: str) -> list[ev.Event]:
    old, guarded = governor.level, governor.guarded
    wanted = _wanted(governor, arguments)
    governor.wanted = wanted
    freed = governor.let_join(_wanted_alone(governor)) if wanted is None else []
    governor.guarded = arguments.get("ignore_memory") is not True
    word = "automatic" if wanted is None else str(wanted)
    why = f"asked for; {counts(governor)}"
    if governor.guarded != guarded:
        why += "; memory is cared for again" if governor.guarded else "; memory is not cared for"
    if freed:
        why += "; nothing runs alone any more"
    return [ev.Decided(who, f"level {old} → {word}", why), *freed, *_effect(governor)]


def let_go(governor: Governor) -> None:
    """The build is being stopped, by whomever: nothing is held any more, and what a server does for it ends too."""
    governor.open = True
    end_hosted(governor.deck)


def counts(governor: Governor) -> str:
    """How many jobs run, and how many wait."""
    return f"{len(governor.deck.having('running'))} run, {len(governor.deck.having('on_deck'))} on deck"


def _wanted(governor: Governor, arguments: Mapping[str, Any]) -> int | None:
    """The level that is asked for. A change counts from the present one, so that a burst of keys adds up."""
    change = _whole(arguments, "change")
    if change is not None:
        return min(MAX_LEVEL, max(1, governor.level + max(-MAX_LEVEL, min(MAX_LEVEL, change))))
    jobs = _whole(arguments, "jobs")
    if jobs is not None and not 1 <= jobs <= MAX_LEVEL:
        raise CommandRefused(f"the level is a number from 1 to {MAX_LEVEL}, or auto; to run nothing, pause")
    return jobs


def _whole(arguments: Mapping[str, Any], name: str) -> int | None:
    value: object = arguments.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise CommandRefused(f"{name} is a whole number")
    return value


def _pause(governor: Governor, paused: ev.Paused, who: str) -> list[ev.Event]:
    if governor.paused == paused:
        raise CommandRefused("everything is frozen already" if paused == "hard" else "the build is paused already")
    governor.paused = paused
    running = len(governor.deck.having("running"))
    if paused == "hard":
        told = ev.Decided(who, "pause now", f"asked for: running jobs are frozen ({running}), nothing starts")
    else:
        told = ev.Decided(who, "pause", f"asked for: running jobs go on to their end ({running}), nothing starts")
    return [told, *_effect(governor)]


def _resume(governor: Governor, who: str) -> list[ev.Event]:
    if governor.paused == "no":
        raise CommandRefused("the build is not paused")
    governor.paused = "no"
    frozen, waiting = len(governor.deck.having("frozen")), len(governor.deck.having("on_deck"))
    return [ev.Decided(who, "resume", f"asked for: {frozen} frozen, {waiting} on deck"), *_effect(governor)]


def _job(governor: Governor, arguments: Mapping[str, Any], who: str) -> list[ev.Event]:
    jid, act = _whole(arguments, "jid"), str(arguments.get("act"))
    member = governor.deck.get(jid) if jid is not None else None
    if member is None or member.ended:
        raise CommandRefused("that job has ended")
    if member.fixed:
        raise CommandRefused(f"{member.job.label} may own the terminal or be waited for; it is never stopped")
    if member.carrier and act in ("freeze", "alone"):
        raise CommandRefused(f"{member.job.label} runs a build of its own; pick one of that build's jobs")
    acts = {"freeze": _freeze, "thaw": _thaw, "alone": _alone, "together": _together, "kill": _kill}
    if act not in acts:
        raise CommandRefused(f"no such act {act!r}; a job can be: {', '.join(acts)}")
    events = acts[act](governor, member, who)
    return [*events, *_effect(governor)]


def _freeze(governor: Governor, member: Member, who: str) -> list[ev.Event]:
    if member.state != "running":
        raise CommandRefused(f"{member.job.label} does not run now")
    member.by_person = True
    gate.freeze([member.target])
    told = ev.Decided(who, f"freeze {member.job.label}", "asked for; it goes on when it is thawed by hand")
    return [told, governor.moved(member, "frozen")]


def _thaw(governor: Governor, member: Member, who: str) -> list[ev.Event]:
    """Also a start from the deck, past all others."""
    if member.state == "running":
        raise CommandRefused(f"{member.job.label} runs already")
    if governor.paused == "hard":
        raise CommandRefused("everything is frozen; resume first")
    was, member.by_person, member.by_word = member.state, True, False
    gate.thaw([member.target])
    what = "start" if was == "on_deck" else "thaw"
    return [ev.Decided(who, f"{what} {member.job.label}", "asked for"), governor.moved(member, "running")]


def _alone(governor: Governor, member: Member, who: str) -> list[ev.Event]:
    """Of two that a person wants alone, the one asked for last is meant."""
    if member.alone:
        raise CommandRefused(f"{member.job.label} runs alone already")
    freed = governor.let_join(_wanted_alone(governor))
    member.alone, member.alone_by, member.by_person, member.candidate = True, who, False, None
    others = len(governor.deck.having("running")) - (member.state == "running")
    why = f"asked for; {others} others wait until it has ended"
    return [ev.Decided(who, f"run {member.job.label} alone", why), *freed, governor.told(member)]


def _together(governor: Governor, member: Member, who: str) -> list[ev.Event]:
    if not member.alone:
        raise CommandRefused(f"{member.job.label} does not run alone")
    told = ev.Decided(who, f"let others run beside {member.job.label}", "asked for")
    return [told, *governor.let_join([member])]


def _wanted_alone(governor: Governor) -> list[Member]:
    """The jobs that a person wants alone."""
    return [m for m in governor.deck if m.alone_by]


def _kill(governor: Governor, member: Member, who: str) -> list[ev.Event]:
    killed = governor.kill(member, "person", who=who)
    return [killed, ev.Decided(who, f"kill {member.job.label}", f"asked for; it held {member.rss >> 20} MiB")]


def _effect(governor: Governor) -> list[ev.Event]:
    """What follows at once."""
    return [*governor.level_told(), *governor.step(), *governor.waits_told()]
