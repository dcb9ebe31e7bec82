"""User commands to a governed build: the level, pauses, and single jobs.

Checks each command, carries it out, and makes the governor act on it at once. Unaware of sockets and of the journal.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

from stoker.engine.govern.gate_driver import GateDriver
from stoker.engine.govern.governor import Governor
from stoker.engine.govern.level_control import LevelControl
from stoker.engine.jobs.managed_job import Life, ManagedJob
from stoker.engine.jobs.table import JobTable
from stoker.model import events as ev
from stoker.model.bounds import MAX_LEVEL
from stoker.model.update import CommandRefused

VERBS = ("level", "pause", "resume", "job", "stop")


class UserCommands:
    """Carries out commands from viewers; `who` is a login name. Each returns events, or raises CommandRefused."""

    def __init__(self, jobs: JobTable, level: LevelControl, gate: GateDriver, governor: Governor) -> None:
        self._jobs = jobs
        self._level_control = level
        self._gate = gate
        self._governor = governor

    def carry_out(self, verb: str, arguments: Mapping[str, Any], who: str) -> list[ev.Event]:
        """Carry out a command and its consequences."""
        if verb == "level":
            events = self._level(arguments, who)
        elif verb == "pause":
            events = self._pause("hard" if arguments.get("now") is True else "soft", who)
        elif verb == "resume":
            events = self._resume(who)
        elif verb == "job":
            events = self._job(arguments, who)
        else:
            raise CommandRefused(f"no command {verb!r}; this engine knows: {', '.join(VERBS)}")
        return [*events, *self._level_control.news(), *self._governor.step(), *self._governor.reasons()]

    def _level(self, arguments: Mapping[str, Any], who: str) -> list[ev.Event]:
        old, was = self._level_control.ordered, self._level_control.orders
        wanted = self._wanted(arguments)
        guarded = arguments.get("ignore_memory") is not True
        orders = replace(was, level=wanted, guarded=guarded)
        if orders == was and not (wanted is None and self._wanted_alone()):
            raise CommandRefused(self._nothing_new(wanted))
        self._level_control.order(orders)
        freed = self._jobs.let_join(self._wanted_alone()) if wanted is None else []
        before = f"automatic ({old})" if was.level is None and wanted == old else str(old)
        word = "automatic" if wanted is None else str(wanted)
        why = f"asked for; {self._jobs.counts()}"
        if guarded != was.guarded:
            why += "; memory is guarded again" if guarded else "; memory is not guarded"
        if freed:
            why += "; nothing runs alone any more"
        if self._level_control.one_by_one:
            why += "; but jobs run one by one until this attempt is over, since nothing else has helped"
        what = f"level stays {word}" if wanted == was.level else f"level {before} → {word}"
        return [ev.Decided(who, what, why), *freed]

    def _nothing_new(self, wanted: int | None) -> str:
        """Return why an order for the present level changes nothing."""
        if wanted is None:
            return f"the level is automatic already, at present {self._level_control.level}"
        lowest = "; to run nothing, pause" if wanted == 1 else ""
        return f"the level is {wanted} already{lowest}"

    def _wanted(self, arguments: Mapping[str, Any]) -> int | None:
        """Return the requested level. A change is relative to the current level, so that a burst of keys adds up."""
        change = _whole(arguments, "change")
        if change is not None:
            return min(MAX_LEVEL, max(1, self._level_control.ordered + max(-MAX_LEVEL, min(MAX_LEVEL, change))))
        jobs = _whole(arguments, "jobs")
        if jobs is not None and not 1 <= jobs <= MAX_LEVEL:
            raise CommandRefused(f"the level is a number from 1 to {MAX_LEVEL}, or auto; to run nothing, pause")
        return jobs

    def _pause(self, paused: ev.Paused, who: str) -> list[ev.Event]:
        if self._level_control.paused == paused:
            raise CommandRefused("everything is frozen already" if paused == "hard" else "the build is paused already")
        self._level_control.order(replace(self._level_control.orders, paused=paused))
        running = self._running()
        if paused == "hard":
            return [ev.Decided(who, "pause now", f"asked for: freezes {_jobs(running)}; unpause ends that")]
        what_runs = f"{_jobs(running)} will finish" if running else "nothing runs"
        return [ev.Decided(who, "pause", f"asked for: nothing new starts; {what_runs}")]

    def _resume(self, who: str) -> list[ev.Event]:
        if self._level_control.paused == "no":
            raise CommandRefused("the build is not paused")
        self._level_control.order(replace(self._level_control.orders, paused="no"))
        frozen = sum(job.by_word for job in self._jobs.having(Life.FROZEN))
        level = self._level_control.level
        places = max(0, level - self._running())
        freed = f"lets {frozen} frozen go on, " if frozen else ""
        if frozen > places:
            freed = f"of {frozen} frozen the level of {level} lets {places} go on, "
        deck = "may start" if places > frozen else "must wait"
        return [ev.Decided(who, "unpause", f"asked for: {freed}{len(self._jobs.on_deck())} on deck {deck}")]

    # -- single jobs -------------------------------------------------------------------------------------------

    def _job(self, arguments: Mapping[str, Any], who: str) -> list[ev.Event]:
        jid, act = _whole(arguments, "jid"), str(arguments.get("act"))
        job = self._jobs.get(jid) if jid is not None else None
        if job is None:
            raise CommandRefused("that job has ended")
        if job.fixed:
            raise CommandRefused(f"{job.job.label} may own the terminal or be waited for; it is never stopped")
        if job.carrier and act in ("freeze", "alone"):
            raise CommandRefused(f"{job.job.label} runs a build of its own; pick one of that build's jobs")
        if job.host and act in ("freeze", "alone"):
            raise CommandRefused(f"{job.host} compiles {job.job.label}; nothing of it runs here")
        acts = {
            "freeze": self._freeze,
            "thaw": self._thaw,
            "alone": self._alone,
            "together": self._together,
            "kill": self._kill,
        }
        if act not in acts:
            raise CommandRefused(f"no such act {act!r}; a job can be: {', '.join(acts)}")
        return acts[act](job, who)

    def _freeze(self, job: ManagedJob, who: str) -> list[ev.Event]:
        if job.life not in (Life.RUNNING, Life.FROZEN):
            raise CommandRefused(f"{job.job.label} does not run now")
        if job.life is Life.FROZEN and job.moved_by == "person":
            raise CommandRefused(f"{job.job.label} is frozen by hand already")
        was_frozen, job.moved_by = job.life is Life.FROZEN, "person"
        if was_frozen:  # by stoker, or by a pause
            kept = "by request; it was frozen already, and stays frozen until you thaw it"
            return [ev.Decided(who, f"freeze {job.job.label}", kept), self._jobs.describe(job)]
        why = ev.Decided(who, f"freeze {job.job.label}", "by request; it stays frozen until you thaw it")
        return [why, *self._gate.freeze_one(job)]

    def _thaw(self, job: ManagedJob, who: str) -> list[ev.Event]:
        """Thaw a job, or start it from the deck ahead of all others."""
        if job.life is Life.RUNNING:
            raise CommandRefused(f"{job.job.label} runs already")
        if self._level_control.paused == "hard":
            raise CommandRefused("everything is frozen; unpause first")
        what = "start" if job.life is Life.ON_DECK else "thaw"
        short = job.wait is not None and job.wait.cause in ("memory", "room")
        why = "by request, though memory is short: others may be frozen, or stopped to run again later"
        job.moved_by = "person"
        said = ev.Decided(who, f"{what} {job.job.label}", why if short else "by request")
        return [said, *self._gate.thaw_one(job)]

    def _alone(self, job: ManagedJob, who: str) -> list[ev.Event]:
        """Run a job alone; of two requests for that, the last one counts."""
        if job.alone:
            raise CommandRefused(f"{job.job.label} runs alone already")
        freed = self._jobs.let_join(self._wanted_alone())
        # A job on deck waits for those that have begun; a begun one makes them wait.
        waits = self._jobs.on_deck() if job.life is Life.ON_DECK else self._jobs
        others = sum(other is not job for other in waits)  # as the screen counts them
        wait = "1 other waits" if others == 1 else f"{others} others wait" if others else "nothing starts"
        why = f"by request; {wait} until it has ended"
        return [ev.Decided(who, f"run {job.job.label} alone", why), *freed, self._jobs.set_alone(job, who)]

    def _together(self, job: ManagedJob, who: str) -> list[ev.Event]:
        if not job.alone:
            raise CommandRefused(f"{job.job.label} does not run alone")
        why = ev.Decided(who, f"no longer alone: {job.job.label}", "by request")
        return [why, *self._jobs.let_join([job])]

    def _kill(self, job: ManagedJob, who: str) -> list[ev.Event]:
        held = job.rss >> 20
        killed = self._gate.kill(job, "person", who=who)
        return [killed, ev.Decided(who, f"kill {job.job.label}", f"by request; it held {held} MiB")]

    def _wanted_alone(self) -> list[ManagedJob]:
        """The jobs that a person wants to run alone."""
        return [job for job in self._jobs if job.alone_by]

    def _running(self) -> int:
        return len(self._jobs.having(Life.RUNNING))


def _jobs(running: int) -> str:
    return "the running job" if running == 1 else f"{running or 'no'} running jobs"


def _whole(arguments: Mapping[str, Any], name: str) -> int | None:
    value: object = arguments.get(name)
    if value is None:
        return None
    if isinstance(value, bool) or not isinstance(value, int):
        raise CommandRefused(f"{name} is a whole number")
    return value
