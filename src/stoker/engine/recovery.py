"""Finds out what died in an attempt of the step, and whether that is a reason to run the step again.

What must outlive this engine is in the journal. Unaware of processes, and of how a step is run again.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from pathlib import Path

from stoker.decide.deaths import (
    MAX_RERUNS,
    Again,
    Attempt,
    Death,
    Evidence,
    FailedStep,
    GiveUp,
    judge,
    verdict,
    will_run_again,
)
from stoker.model import events as ev
from stoker.model.state import MAX_FAILURES, BuildState, Failure
from stoker.model.text import clean, plain
from stoker.model.units import format_bytes
from stoker.sense.cgroup import find_cgroups, memory_group
from stoker.sense.oom import KernelLog, OomCounter, Victim

PART = 32 * 1024
"""Bytes looked at of a failed step's output, from its start and from its end: a make inside a step says in its last
lines what has failed, hundreds of lines after its first."""

MAX_VICTIMS = 20

RUN_AGAIN_LATER = "run the step again, later"
"""The decision at the death of a compiler, when others still run."""

GIVEN_UP = "do not run the step again"
"""The decision whose reason is why the build has failed."""


class Recovery:
    """The deaths of this attempt, and the outputs that are made alone since those before."""

    def __init__(
        self,
        pid: int,
        output: Path,
        state: BuildState,
        alone: frozenset[str] = frozenset(),
        kernel_log: KernelLog | None = None,
    ) -> None:
        """`pid` is in the build's memory group; `output` is the build's output log; `alone` are made alone at first."""
        self._output = output
        self._counter = OomCounter(find_cgroups(pid))
        self._log = kernel_log or KernelLog(group=memory_group(pid))
        self._counted = self._counter.read() or 0
        attempt = self._number = state.step.attempt if state.step is not None else 1
        before = state.step.oom_kills if state.step is not None else None
        self._before = self._counted if before is None else before
        self._victims: list[Victim] = []
        self._ours: dict[str, ev.KilledBy] = {}
        named = [k for k in state.killed if k.output]
        self._alone = alone | {k.output for k in named}
        self._alone_before = alone | {k.output for k in named if k.attempt < attempt}
        self.retries = MAX_RERUNS
        """How often this step may run again."""

    def begin_step(self) -> None:
        """Another step runs: what died before is no matter any more."""
        self._before, self._ours, self._victims = self._counted, {}, []
        self._alone = self._alone_before = frozenset()
        self._number = 1

    def oom_kills(self) -> int | None:
        """The kernel's count now, for the journal's StepStarted."""
        return self._counter.read()

    def must_run_alone(self) -> frozenset[str]:
        """Outputs whose jobs run first, and with nothing beside them."""
        return self._alone

    def was_run_alone(self) -> frozenset[str]:
        """Outputs that were made first and alone in this attempt from its start on."""
        return self._alone_before

    def killed_by_stoker(self, output: str, by: ev.KilledBy = "shed") -> None:
        """A job is about to be killed on purpose. One without a name yet is known by what the journal tells of it."""
        if output:
            self._ours[output] = by
            self._alone |= {output}

    def look(self) -> list[ev.Event]:
        """What has happened since the last look: a read of one small file."""
        events: list[ev.Event] = []
        count = self._counter.read() or 0
        if count > self._counted:
            victims = self._log.victims()
            self._victims = [*self._victims, *victims][-MAX_VICTIMS:]
            events.append(ev.Noticed("warning", _said(count - self._counted, victims)))
        self._counted = max(count, self._counted)
        return events

    def hear(self, failure: ev.FailureFound | Failure, state: BuildState) -> tuple[bool, list[ev.Event]]:
        """Whether a failed step would fail again: it has an error of its own, or it was killed even alone.

        And what a person should know at once of one that was killed, since it may be long before the step runs again.
        """
        oom_kills = max(0, (self._counter.read() or 0) - self._before)
        death = judge(self._step(failure), Evidence(oom_kills, self._killed_on_purpose(state)))
        if death.is_error or (death.by is not None and not self._alone_before.isdisjoint(death.outputs)):
            return True, []
        if death.by in (None, "shed", "person") or self._number > min(MAX_RERUNS, self.retries):
            return False, []
        peaks = self._peaks({death.output, *death.outputs}, state)
        events: list[ev.Event] = [ev.JobKilled(output, death.by, peaks.get(output)) for output in death.outputs]
        if any(job.output not in death.outputs for job in state.jobs.values()):
            events.append(ev.Decided("governor", RUN_AGAIN_LATER, will_run_again(death)))
        return False, events

    def verdict(self, state: BuildState) -> tuple[Again | GiveUp, list[ev.Event]]:
        """Whether the step, which has failed, runs again, and what is to be told of that.

        `state` must hold everything that the output says.
        """
        events = self.look()
        ours = self._killed_on_purpose(state)
        evidence = Evidence(max(0, self._counted - self._before), ours)
        deaths = [judge(step, evidence) for step in self._steps(state)]
        attempt = self._attempt(state, deaths)
        found = verdict(deaths, attempt)
        if len(state.failures) >= MAX_FAILURES:
            found = GiveUp(f"at least {MAX_FAILURES} steps failed")
        if isinstance(found, Again) and attempt.number > self.retries:
            # Without the end of the reason, which says how it would have run.
            cause = found.why.rpartition("; ")[0]
            found = GiveUp(f"{cause}; the profile allows no further attempt at this step")
        known = {(k.output, k.attempt) for k in state.killed} | {(output, attempt.number) for output in ours}
        events += [
            ev.JobKilled(output, death.by, attempt.peaks.get(output))
            for death in deaths
            if death.by is not None
            for output in death.outputs
            if (output, attempt.number) not in known
        ]
        if found.why:
            what = "run the step again" if isinstance(found, Again) else GIVEN_UP
            events.append(ev.Decided("governor", what, found.why))
        if isinstance(found, Again):
            self._number += 1
            self._alone |= set(found.first)
            self._alone_before = self._alone
            self._before, self._ours, self._victims = self._counted, {}, []
        return found, events

    def _killed_on_purpose(self, state: BuildState) -> dict[str, ev.KilledBy]:
        """Who killed which outputs' jobs in this attempt, those included whose name was learnt after their death."""
        told: dict[str, ev.KilledBy] = {
            k.output: k.by
            for k in state.killed
            if k.output and k.attempt == self._number and k.by in ("shed", "person")
        }
        return told | self._ours

    def close(self) -> None:
        """Let go of the kernel's log."""
        self._log.close()

    def _steps(self, state: BuildState) -> list[FailedStep]:
        """What failed in this attempt. Where the output is silent, the jobs that did: stoker may have killed them."""
        if state.failures:
            return [self._step(failure) for failure in state.failures]
        count = state.retired.failed + state.retired.killed
        count += sum(s.failed + s.killed for s in state.schedulers.values())
        failed = [job for job in state.recent if job.outcome in ("failed", "killed")]
        if not 0 < count <= len(failed):
            return []
        return [FailedStep(job.output, "", None, ()) for job in failed[-count:]]

    def _attempt(self, state: BuildState, deaths: Sequence[Death]) -> Attempt:
        number = state.step.attempt if state.step is not None else 1
        wanted = {output for death in deaths for output in (death.output, *death.outputs)}
        peaks = self._peaks(wanted, state)
        if len(self._victims) == 1 and len(wanted) == 1:  # the kernel knows better than a look each second
            peaks = {output: max(self._victims[0].rss, peaks.get(output, 0)) for output in wanted}
        budget = state.machine.memory_budget if state.machine is not None else 0
        return Attempt(number, self._alone_before, peaks, budget)

    def _peaks(self, outputs: Collection[str], state: BuildState) -> dict[str, int]:
        """The most that the jobs of these outputs were seen to hold, bytes; of those that have ended, if any has."""
        living = (*state.leaving.values(), *state.jobs.values())
        known = {job.output: job.peak_rss for job in living if job.output in outputs}
        seen = [job for job in (*state.heaviest, *state.recent) if job.output in outputs]
        return known | {job.output: job.peak_rss or 0 for job in seen}

    def _step(self, failure: ev.FailureFound | Failure) -> FailedStep:
        lines = self._lines(failure.log_start, failure.log_end, header=2 if failure.command else 0)
        return FailedStep(failure.output, failure.command, failure.exit_code, lines or failure.excerpt)

    def _lines(self, start: int, end: int, *, header: int) -> tuple[str, ...]:
        """What a failed step said, first and last; `header` lines are the scheduler's own."""
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


def _said(count: int, victims: Sequence[Victim]) -> str:
    who = ", ".join(f"{clean(v.program, 16)} ({format_bytes(v.rss)})" for v in victims)
    processes = "1 process" if count == 1 else f"{count} processes"
    return f"the kernel killed {processes} for want of memory{': ' if who else ''}{who}"
