"""Stops jobs and releases them: each signal together with the job's change of state.

Also corrects jobs that others have stopped or continued. Does not decide which jobs; unaware of the journal.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace

from stoker.act import gate
from stoker.act.tree import Processes, listed_children, shows_stop
from stoker.contract.process import Key
from stoker.engine.govern.hosted_gate import HostedGate
from stoker.engine.jobs.managed_job import Life, ManagedJob
from stoker.engine.jobs.table import JobTable
from stoker.model import events as ev
from stoker.model.remote import HOSTLESS
from stoker.sense.proc.jobs import JobUse

STUCK_TICKS = 3
"""Ticks for which a job that should run may be stopped before it is continued."""

GREW = 0.1
"""CPU seconds after which a job that should be stopped must have been continued by somebody else, and counts as
running."""

NoteKill = Callable[[ManagedJob, ev.KilledBy], None]


class GateDriver:
    """The signals of one build's jobs. `note_kill` is called before each job that is killed on purpose."""

    def __init__(self, jobs: JobTable, note_kill: NoteKill, clock: Callable[[], float]) -> None:
        self._jobs = jobs
        self._note_kill = note_kill
        self._clock = clock
        self.hosted = HostedGate()
        self.open = False
        """Whether the build is being stopped: nothing is held any more."""

    def release_all(self) -> None:
        """The build is being stopped, by anybody: hold nothing any more, and end what a server does for it."""
        self.open = True
        gate.end_hosted([job.target for job in self._jobs])

    # -- who stands where --------------------------------------------------------------------------------------

    def prefer(self, job: ManagedJob) -> None:
        """Make the kernel prefer the job over other processes if it must kill."""
        if not job.fixed:
            job.pids.update(gate.raise_oom_score([job.job.pid]))

    def hold(self, jobs: Iterable[ManagedJob]) -> None:
        """Stop those newborn jobs that have not been released."""
        for job in jobs:
            if job.life is Life.NEWBORN and job.lives:
                # Only ninja's jobs have a process group that contains everything they may have forked by now.
                job.whole = not job.target.leads
                was_there = all(gate.freeze([job.target])) if job.whole else gate.hold(job.target)
                self._jobs.place(job, Life.ON_DECK, self._clock())
                self._doom_unless(was_there, job)

    def release(self, job: ManagedJob) -> list[ev.Event]:
        """Let a job go from the deck; nothing to announce where it has gone, or of a newborn that was not held."""
        if job.life is not Life.NEWBORN:
            # What it had forked when it was stopped may have missed its score.
            job.pids.update(gate.raise_oom_score(listed_children(job.job.pid)))
        was_there = all(gate.thaw([job.target])) if job.whole else gate.release(job.target)
        if job.life is Life.NEWBORN:
            self._jobs.place(job, Life.RUNNING, self._clock())
            self._doom_unless(was_there, job)
            return []
        return [self.moved(job, Life.RUNNING)] if self._doom_unless(was_there, job) else []

    def freeze(self, jobs: Sequence[ManagedJob]) -> None:
        """Stop whole process trees in one go; then change the state of each job."""
        self._each(jobs, gate.freeze)

    def thaw(self, jobs: Sequence[ManagedJob]) -> None:
        """Continue whole process trees in one go; then change the state of each job."""
        self._each(jobs, gate.thaw)

    def freeze_one(self, job: ManagedJob) -> list[ev.Event]:
        """Stop one job; returns nothing to announce if it has gone."""
        self.freeze([job])
        return [self.moved(job, Life.FROZEN)] if job.lives else []

    def thaw_one(self, job: ManagedJob) -> list[ev.Event]:
        """Continue one job; returns nothing to announce if it has gone."""
        self.thaw([job])
        return [self.moved(job, Life.RUNNING)] if job.lives else []

    def _each(self, jobs: Sequence[ManagedJob], act: Callable[[Sequence[gate.Target]], list[bool]]) -> None:
        for job, done in zip(jobs, act([job.target for job in jobs]) if jobs else (), strict=True):
            self._doom_unless(done, job)

    def _doom_unless(self, was_there: bool, job: ManagedJob) -> bool:
        if not was_there:
            self._jobs.doom(job, "gone")
        return was_there

    def moved(self, job: ManagedJob, life: Life) -> ev.JobMoved:
        """Record a job's new state after its signal was sent."""
        return self._jobs.move(job, life, self._clock())

    def kill(self, job: ManagedJob, by: ev.KilledBy, *, who: str = "", why: str = "") -> ev.JobKilled:
        """Kill a job on purpose. The event identifies it by number, because its output may still be unknown."""
        self._note_kill(job, by)
        gate.kill(job.target)
        self._jobs.doom(job, "killed")
        return ev.JobKilled(job.job.output, by, job.peak_rss, job.jid, who, why)

    def drop(self, jobs: Iterable[ManagedJob]) -> None:
        """End jobs that never ran because only stoker held them back."""
        for job in jobs:
            gate.kill(job.target)
            self._jobs.doom(job, "dropped")

    def exited(self, job: ManagedJob) -> None:
        """A job's first process has ended: leave none of its processes stopped."""
        gate.leave(job.target, job.pids)

    # -- what others did ---------------------------------------------------------------------------------------

    def carry(self, nested: Mapping[Key, Key]) -> list[ev.Event]:
        """Note the jobs in which schedulers run now, with those schedulers. One that is stopped continues: its own jobs
        can be held."""
        stopped = self._jobs.set_carriers(frozenset(nested.values()))
        if stopped:
            gate.thaw([job.target for job in stopped])
        return [self.moved(job, Life.RUNNING) for job in stopped]

    def take_back(self, jobs: Mapping[ManagedJob, tuple[Key, ...]]) -> list[ev.Event]:
        """Jobs that were remote work here again: stop them like newborns, until a decision about them.

        Their launchers, given with them, continue: they may still have to talk to another machine.
        """
        events: list[ev.Event] = []
        for job, launchers in jobs.items():
            host = job.was_away or (job.host if job.host not in HOSTLESS else "no other machine")
            why = f"{host} has not compiled it; what it does here waits for its turn"
            events.append(ev.Decided("governor", f"take back {job.job.label}", why))
            self.spare(job, launchers)
            self._jobs.take_back(job)
        if self.open:
            return events
        self.freeze(list(jobs))
        for job in jobs:
            if job.lives:
                job.moved_by = "fallback"
                events.append(self.moved(job, Life.FROZEN))
        return events

    def spare(self, job: ManagedJob, launchers: tuple[Key, ...]) -> None:
        """Never stop these processes of a job that has already started."""
        if job.life in (Life.RUNNING, Life.FROZEN) and job.target.spared != launchers:
            job.target = replace(job.target, spared=launchers)

    def correct(self, uses: Mapping[ManagedJob, JobUse]) -> list[ev.Event]:
        """Take in what the jobs use now, and correct each job that is not in its intended state.

        If a stopped job has the same object as before, nothing about it was read again. One that should run still runs
        on by the clock, asleep or stopped by others.
        """
        events: list[ev.Event] = []
        for job, use in uses.items():
            if not job.lives or (use is job.seen and job.is_stopped):
                continue
            grew = use.cpu_seconds - job.age
            if not (job.fixed or job.pids.issuperset(use.pids)):
                gate.raise_oom_score(pid for pid in use.pids if pid not in job.pids)
            self._jobs.measure(job, use)
            if use.hosted or self.hosted.used:
                self.hosted.see(job, use)
            if job.counts:
                events += self._corrected(job, use, grew)
        return events

    def _corrected(self, job: ManagedJob, use: JobUse, grew: float) -> list[ev.Event]:
        if job.is_stopped and use.state == "running":
            return self._escaped(job, grew)
        if job.life is Life.RUNNING and use.state == "frozen":
            return self._stuck(job)
        if job.life is Life.ON_DECK and (use.starting or use.hosted):
            # Before it was stopped it had asked a cache's server to compile, which now does, or had begun to start one.
            return self.thaw_one(job)
        return []

    def _escaped(self, job: ManagedJob, grew: float) -> list[ev.Event]:
        """Something of it forked while it was being stopped, or the supervisor released it while no engine ran.

        Or it was measured before it was stopped: then there is nothing to do.
        """
        if self.open:  # whoever ends the build has continued it, or it could not act on the signal
            return [self.moved(job, Life.RUNNING)]
        key, lives = job.job.key, job.target.lives
        if not lives or shows_stop(key) or Processes().is_stopped(key):
            return []
        if grew < GREW:
            job.whole = True
            gate.freeze([job.target])
            return []
        return [self.moved(job, Life.RUNNING)]

    def _stuck(self, job: ManagedJob) -> list[ev.Event]:
        """It should run but has been stopped for several ticks: continue it, once. If somebody stops it again, they
        have a reason."""
        job.stuck += 1
        if job.stuck != STUCK_TICKS:
            return []
        self.thaw([job])
        return [ev.Decided("governor", f"set {job.job.label} going", "something else had stopped it")]
