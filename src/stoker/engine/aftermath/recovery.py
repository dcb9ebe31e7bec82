"""Finds out what died in an attempt of the step, and whether that justifies running the step again.

What must outlive this engine is in the journal. Unaware of processes, and of how a step is run again.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from stoker.decide.recovery.deaths import (
    MAX_RERUNS,
    OWN_WANT,
    Again,
    Attempt,
    Death,
    Evidence,
    FailedStep,
    GiveUp,
    judge,
    need_after,
    taken_back,
    verdict,
    will_not_run_again,
    will_run_again,
)
from stoker.engine.aftermath.killed_jobs import KilledJobs, KnownKill
from stoker.engine.jobs.managed_job import ManagedJob
from stoker.model import events as ev
from stoker.model.killed import failed_by_itself
from stoker.model.memory_shortage import KERNEL_KILLED
from stoker.model.state import MAX_FAILURES, BuildState, Failure
from stoker.model.text import clean, plain
from stoker.model.units import format_bytes
from stoker.sense.machine.cgroup import find_cgroups, memory_group
from stoker.sense.machine.oom import KernelLog, OomCounter, Victim, pids_are_ours

PART = 32 * 1024
"""Bytes read of a failed step's output, from its start and from its end: a make inside a step reports the failure in
its last lines, hundreds of lines after its first."""

MAX_VICTIMS = 20

RUN_AGAIN_LATER = "run the step again, later"
"""The decision at the death of a compiler while others still run."""

NOT_AGAIN = "let the others end"
"""The decision instead, where a step has failed by itself: the killed one does not run again."""

GIVEN_UP = "do not run the step again"
"""The decision whose reason says why the build has failed."""


@dataclass(frozen=True, slots=True)
class Demands:
    """How jobs that were killed in earlier attempts run in this one: alone, or next to what fits, with room for the
    memory (bytes) that they are assumed to need."""

    alone: frozenset[str] = frozenset()
    needs: Mapping[str, float] = field(default_factory=dict)

    def after(self, alone: Iterable[str], needs: Mapping[str, float]) -> Demands:
        """Return the demands after one more attempt, whose killed jobs are to run alone, or need that much."""
        together = self.alone | frozenset(alone)
        return Demands(together, {o: need for o, need in {**self.needs, **needs}.items() if o not in together})


def _demands(state: BuildState, attempt: int) -> Demands:
    """Return what earlier attempts have left according to the journal, which is all that a successor engine knows."""
    found = Demands()
    for number in range(1, attempt):
        dead = {k.output: k for k in state.killed if k.attempt == number and k.output}
        alone = [o for o, k in dead.items() if k.by == "unknown" or not k.rss or o in found.needs]
        found = found.after(alone, {o: need_after(k.by, k.rss or 0) for o, k in dead.items()})
    return found


def _spent(state: BuildState, attempt: int) -> int:
    """How many earlier attempts lost jobs because the build itself ran out of memory."""
    return len({k.attempt for k in state.killed if k.attempt < attempt and k.by in OWN_WANT})


class Recovery:
    """The deaths of this attempt, and the outputs that run alone because of earlier ones."""

    def __init__(
        self,
        pid: int,
        output: Path,
        state: BuildState,
        owner: Callable[[int], ManagedJob | None],
        alone: frozenset[str] = frozenset(),
        kernel_log: KernelLog | None = None,
    ) -> None:
        """`pid` is in the build's memory group; `output` is the build's output log; `owner` finds the job that a
        process was seen to belong to; the outputs in `alone` run alone from the start."""
        self._output = output
        self._counter = OomCounter(find_cgroups(pid))
        self._log = kernel_log or KernelLog(group=memory_group(pid))
        self._containers: set[int] = set()
        self._counted = self._counter.read() or 0
        attempt = self._number = state.step.attempt if state.step is not None else 1
        before = state.step.oom_kills if state.step is not None else None
        self._before = self._counted if before is None else before
        self._victims: list[Victim] = []
        self._killed = KilledJobs()
        for k in state.killed:
            if k.attempt == attempt and k.by in ("shed", "person"):
                self._killed.add(KnownKill(k.jid, k.output, (), k.by, k.rss))
        self._explained: set[str] = set()
        error = failed_by_itself(state)
        self._error = error.output if error is not None else ""
        self._pids_are_ours = pids_are_ours()
        self._owner = owner
        self._asked_alone = alone
        self._spent = _spent(state, attempt)
        self._before_now = _demands(state, attempt)
        self._retries = MAX_RERUNS

    def allow(self, retries: int) -> None:
        """Run this step again at most this often."""
        self._retries = retries

    def watch(self, containers: Iterable[tuple[int, float]]) -> None:
        """Also count the kernel's kills in the containers of these processes, for attempts begun at a Unix time."""
        for pid, begun in containers:
            if pid not in self._containers:
                self._containers.add(pid)
                self._counter.include(find_cgroups(pid), begun)
                if group := memory_group(pid):
                    self._log.include(group)

    def begin_step(self) -> None:
        """Another step runs: earlier deaths no longer matter."""
        self._begin_attempt()
        self._asked_alone, self._before_now = frozenset(), Demands()
        self._number, self._spent = 1, 0

    def begin_attempt(self, number: int, state: BuildState) -> None:
        """Start that attempt at the step. The engine that requested it may be gone: the journal has its findings."""
        if number == self._number:
            return
        self._begin_attempt()
        self._number, self._spent = number, _spent(state, number)
        self._before_now = _demands(state, number)

    def oom_kills(self) -> int | None:
        """Return the kernel's current count, for the journal's StepStarted."""
        return self._counter.read()

    def must_run_alone(self) -> frozenset[str]:
        """Outputs whose jobs run first in this attempt, with nothing next to them."""
        return self._asked_alone | self._before_now.alone

    def needs(self) -> Mapping[str, float]:
        """Outputs whose jobs run first in this attempt, and their assumed peak in bytes."""
        return self._before_now.needs

    @property
    def one_by_one(self) -> bool:
        """Whether this attempt is the last, which runs one job at a time."""
        return self._spent >= MAX_RERUNS

    def _begin_attempt(self) -> None:
        self._before = self._counted
        self._killed.clear()
        self._victims.clear()
        self._explained.clear()
        self._error = ""

    def killed_by_stoker(self, job: ManagedJob, by: ev.KilledBy = "shed") -> None:
        """Note that a job is about to be killed on purpose."""
        self._killed.add(KnownKill(job.jid, job.job.output, job.job.argv, by, job.peak_rss))

    def heard(self, events: Iterable[ev.Event]) -> None:
        """Take in announced events: they may name jobs that were killed before their output was known."""
        for event in events:
            if isinstance(event, ev.JobStarted | ev.JobFinished) and event.jid is not None:
                self._killed.name(event.jid, event.output)

    def look(self) -> list[ev.Event]:
        """Return what has happened since the last look: two small reads."""
        events: list[ev.Event] = []
        count, victims = self._counter.read() or 0, self._log.victims()
        for victim in victims:
            self._place(victim)
        self._victims = [*self._victims, *victims][-MAX_VICTIMS:]
        if count > self._counted:
            events.append(ev.Noticed("warning", _said(count - self._counted, victims)))
        self._counted = max(count, self._counted)
        return events

    def _named(self) -> list[ev.Event]:
        """Name jobs that stoker or a person killed, if only the build's output since then names them."""
        named = self._killed.take_named()
        return [ev.JobKilled(c.output, c.by, c.rss, c.jid) for c in named if c.by != "memory"]

    def _place(self, victim: Victim) -> None:
        """Return the jobs of processes that the kernel killed. A job may survive that: its death is announced if it
        fails."""
        job = self._owner(victim.pid) if self._pids_are_ours else None
        if job is not None:
            held = max(victim.rss, job.peak_rss)
            self._killed.add(KnownKill(job.jid, job.job.output, job.job.argv, "memory", held))

    def _evidence(self, steps: Iterable[FailedStep], *, unplaced: int = 0) -> Evidence:
        """Return what is known about these steps beyond their output."""
        killed = {step.output: c.by for step in steps if (c := self._killed.find(step.output, step.command))}
        return Evidence(max(0, self._counted - self._before), killed, unplaced)

    def _unplaced(self) -> int:
        """Return how many of the kernel's kills nothing accounts for."""
        placed = sum(c.by == "memory" for c in self._killed)
        return max(0, self._counted - self._before - placed - len(self._explained))

    def _judge(self, step: FailedStep) -> Death:
        """Say why a step failed. The kernel's known kills explain it if its output does not."""
        death = judge(step, self._evidence([step]))
        if death.is_error and (unplaced := self._unplaced()):
            death = judge(step, self._evidence([step], unplaced=unplaced))
        if death.by == "memory" and self._killed.find(step.output, step.command) is None:
            self._explained.add(step.output)
        return death

    def hear(self, failure: ev.FailureFound | Failure, state: BuildState) -> tuple[bool, list[ev.Event]]:
        """Say whether a failed step would fail again: it has an error of its own, or it was killed even though it ran
        alone.

        Also return what a person should know at once about a killed one, since it may be long before the step runs
        again.
        """
        events = self.look()
        death = self._judge(self._step(failure))
        events += self._named()
        if death.is_error and not self._error:
            self._error = death.output
            events += self._taken_back(death, state)
        if death.is_error or (death.by is not None and not self.must_run_alone().isdisjoint(death.outputs)):
            return True, events
        if death.by in (None, "shed", "person") or self._spent >= min(MAX_RERUNS, self._retries):
            return False, events
        peaks = self._peaks({death.output, *death.outputs}, state)
        events += [ev.JobKilled(output, death.by, peaks.get(output)) for output in death.outputs]
        if any(job.output not in death.outputs for job in state.jobs.values()):
            events.append(_outlook(death, self._error))
        return False, events

    def _taken_back(self, error: Death, state: BuildState) -> list[ev.Event]:
        """Say that what was killed before this first error does not run again, if others still run."""
        dead = [k for k in state.killed if k.attempt == self._number and k.output]
        if not dead or all(job.output in error.outputs for job in state.jobs.values()):
            return []
        return [ev.Decided("governor", NOT_AGAIN, taken_back(error, [k.output for k in dead]))]

    def verdict(self, state: BuildState) -> tuple[Again | GiveUp, list[ev.Event]]:
        """Decide whether the failed step runs again, and return what to announce about that.

        `state` must include everything in the output.
        """
        events = self.look()
        deaths = self._deaths(self._steps(state))
        events += self._named()
        attempt = self._attempt(state, deaths)
        found = verdict(deaths, attempt)
        if len(state.failures) >= MAX_FAILURES:
            found = GiveUp(f"at least {MAX_FAILURES} steps failed")
        if isinstance(found, Again) and attempt.spent >= self._retries:
            # Without the end of the reason, which would describe the next run.
            cause = found.why.rpartition("; ")[0]
            found = GiveUp(f"{cause}; the profile allows no further attempt at this step")
        known = {(k.output, k.attempt) for k in state.killed}
        known |= {(c.output, self._number) for c in self._killed if c.by != "memory"}
        events += [
            ev.JobKilled(output, death.by, attempt.peaks.get(output))
            for death in deaths
            if death.by is not None
            for output in death.outputs
            if (output, self._number) not in known
        ]
        if found.why:
            what = "run the step again" if isinstance(found, Again) else GIVEN_UP
            events.append(ev.Decided("governor", what, found.why))
        if isinstance(found, Again):
            self._number += 1
            self._spent += any(death.by in OWN_WANT for death in deaths)
            self._before_now = self._before_now.after(found.alone, found.needs)
            self._begin_attempt()
            if self.one_by_one:
                why = f"{self._spent} attempts lost jobs to memory; until this step is over nothing runs beside another"
                events.append(ev.Decided("governor", "one job at a time", why))
        return found, events

    def _deaths(self, steps: Sequence[FailedStep]) -> list[Death]:
        """Say why these steps failed. Kernel kills that their own output does not explain may explain the others."""
        self._explained.clear()
        for step in steps:
            if judge(step, self._evidence([step])).by == "memory" and not self._killed.find(step.output, step.command):
                self._explained.add(step.output)
        return [self._judge(step) for step in steps]

    def close(self) -> None:
        """Close the kernel's log."""
        self._log.close()

    def _steps(self, state: BuildState) -> list[FailedStep]:
        """Return what failed in this attempt. If the output is silent, the failed jobs: stoker may have killed them."""
        if state.failures:
            return [self._step(failure) for failure in state.failures]
        count = state.retired.failed + state.retired.killed
        count += sum(s.failed + s.killed for s in state.schedulers.values())
        failed = [job for job in state.history.recent if job.outcome in ("failed", "killed")]
        if not 0 < count <= len(failed):
            return []
        return [FailedStep(job.output, "", None, ()) for job in failed[-count:]]

    def _attempt(self, state: BuildState, deaths: Sequence[Death]) -> Attempt:
        wanted = {output for death in deaths for output in (death.output, *death.outputs)}
        peaks = self._peaks(wanted, state)
        if len(self._victims) == 1 and len(wanted) == 1:  # the kernel knows better than a sample every second
            peaks = {output: max(self._victims[0].rss, peaks.get(output, 0)) for output in wanted}
        for c in self._killed:
            if c.output in wanted and c.rss:
                peaks[c.output] = max(c.rss, peaks.get(c.output, 0))
        budget = state.machine.memory_budget if state.machine is not None else 0
        return Attempt(self._spent, self.must_run_alone(), peaks, budget, frozenset(self._before_now.needs))

    def _peaks(self, outputs: Collection[str], state: BuildState) -> dict[str, int]:
        """Return the most bytes that the jobs of these outputs were seen to hold; only of ended ones, if any has
        ended."""
        living = (*state.leaving.values(), *state.jobs.values())
        known = {job.output: job.peak_rss for job in living if job.output in outputs}
        seen = [job for job in (*state.history.heaviest, *state.history.recent) if job.output in outputs]
        return known | {job.output: job.peak_rss or 0 for job in seen}

    def _step(self, failure: ev.FailureFound | Failure) -> FailedStep:
        lines = self._lines(failure.log_start, failure.log_end, header=2 if failure.command else 0)
        return FailedStep(failure.output, failure.command, failure.exit_code, lines or failure.excerpt)

    def _lines(self, start: int, end: int, *, header: int) -> tuple[str, ...]:
        """Return the first and last output of a failed step; `header` lines are the scheduler's own."""
        try:
            with self._output.open("rb") as file:
                file.seek(start)
                data = file.read(min(end - start, 2 * PART))
                if end - start > 2 * PART:
                    file.seek(end - PART)
                    data = data[:PART] + b"\n" + file.read(PART)
        except (OSError, ValueError):
            return ()
        lines = data.splitlines()
        indent = min(
            (len(line) - len(line.lstrip(b" \t")) for line in (lines[:1] + lines[-1:]) if line.strip()), default=0
        )
        return tuple(plain(line[indent:]) for line in lines[header:])


def _outlook(death: Death, error: str) -> ev.Decided:
    """Announce what follows a death; `error` is the output of a step that has failed by itself, if any."""
    if error:
        return ev.Decided("governor", NOT_AGAIN, will_not_run_again(death, error))
    return ev.Decided("governor", RUN_AGAIN_LATER, will_run_again(death))


def _said(count: int, victims: Sequence[Victim]) -> str:
    who = ", ".join(f"{clean(v.program, 16)} ({format_bytes(v.rss)})" for v in victims)
    processes = "1 process" if count == 1 else f"{count} processes"
    return f"{KERNEL_KILLED}{processes} for lack of memory{': ' if who else ''}{who}"
