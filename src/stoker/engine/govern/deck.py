"""The live jobs as a decision sees them: candidates on deck, and jobs that run or are frozen.

Sends no signal; unaware of how jobs are found, and of the journal.
"""

from __future__ import annotations

import time
from itertools import islice
from typing import Protocol

from stoker.decide.policy.snapshot import Candidate, LiveJob
from stoker.engine.jobs.managed_job import Life, ManagedJob
from stoker.engine.jobs.remote_watch import RemoteWatch
from stoker.engine.jobs.table import JobExpectations, JobTable
from stoker.model.remote import NO_HOST_YET

SHOWN_JOBS = 64
"""The oldest jobs, whose peak is announced again when the expectation changes: more than a screen shows."""

BEGUN = 4 * 2**20
"""Bytes that a job on deck holds if its compiler had already started when it was stopped; a shell holds far less."""

IDLE_SECONDS = 3.0
"""For so long a job must have run to count as idle when nothing of it works here: launchers take a moment to begin."""


class Chains(Protocol):
    """Knows what waits for a job."""

    chains_version: int
    """Increases whenever the results of `chain` may have changed."""

    def chain(self, sid: int, output: str) -> float | None:
        """Return the seconds from the job's start to the end of the longest chain of jobs that begins with it."""


class DeckView:
    """The input of the policy."""

    def __init__(self, jobs: JobTable, expected: JobExpectations, chains: Chains, remote: RemoteWatch) -> None:
        self._jobs = jobs
        self._expected = expected
        self._remote = remote
        self._chains = chains
        self._chains_version = chains.chains_version

    def outdated(self) -> list[ManagedJob]:
        """Return those of the oldest jobs of whose expected peak there is news."""
        return [job for job in islice(self._jobs, SHOWN_JOBS) if job.counts and self._jobs.has_news(job)]

    def candidates(self) -> tuple[Candidate, ...]:
        """Return the candidates on deck."""
        version = self._expected.version
        if self._chains_version != self._chains.chains_version:
            self._chains_version = self._chains.chains_version
            for job in self._jobs.on_deck():
                job.candidate = None
        return tuple(
            [
                known
                if (known := job.candidate) is not None
                and known.curve is job.curve
                and job.curve_version == version
                and known.remote is self._may_leave(job)
                else self._candidate(job)
                for job in self._jobs.on_deck()
            ]
        )

    def _candidate(self, job: ManagedJob) -> Candidate:
        rss = job.rss if job.rss >= BEGUN else 0
        curve = self._jobs.curve(job)
        if job.chain_known_as != (asked := (self._chains.chains_version, job.name)):
            job.chain = self._chains.chain(job.sid, job.name) if job.name else None
            job.chain_known_as = asked
        job.candidate = Candidate(
            job.jid,
            job.job.label,
            job.arrived,
            curve,
            job.passed_over,
            job.alone,
            job.held,
            job.width,
            job.first,
            rss,
            job.chain,
            self._may_leave(job),
        )
        return job.candidate

    def _may_leave(self, job: ManagedJob) -> bool:
        return job.job.sends is not None and self._remote.has_engine(job.job.sends)

    def remote_jobs(self) -> int:
        """Return how many jobs other machines compile, or are about to."""
        leaving = sum([self._remote.may_leave(job) for job in self._jobs.having(Life.RUNNING)])
        return len(self._jobs.away()) + leaving

    def waiting_for_a_host(self) -> int:
        """Return how many jobs wait for their first host, and will preprocess here once they have one."""
        return sum([job.host == NO_HOST_YET for job in self._jobs.away()])

    def live(self, life: Life) -> tuple[LiveJob, ...]:
        """Running or frozen jobs."""
        now = time.monotonic()
        return tuple(
            LiveJob(
                job.jid,
                job.job.label,
                job.admitted,
                job.age,
                job.rss,
                self._jobs.curve(job),
                job.peak_rss,
                job.peak_age,
                job.seen.phase,
                job.growth.rise,
                job.width,
                job.alone,
                job.moved_by == "person",
                job.by_word,
                job.early,
                job.growth.stale,
                job.moved_by == "fallback",
                job.only_waits and now - job.since >= IDLE_SECONDS,
                job.growth.cores,
            )
            for job in self._jobs.having(life)
        )

    def pass_over(self, admitted: ManagedJob) -> None:
        """Count, for the jobs that waited longer, that a younger one was admitted first; not one that more jobs wait
        for."""
        for job in self._jobs.on_deck():
            if (job.arrived, job.jid) > (admitted.arrived, admitted.jid):
                return
            if (admitted.chain or 0.0) <= (job.chain or 0.0):
                job.passed_over += 1
                job.candidate = None

    def too_many(self, sid: int, failed: str) -> list[ManagedJob]:
        """Return a scheduler's jobs that it would not have started after the failure of `failed`: those on deck, and
        those released between that job's exit and the detection of its failure."""
        exits = [job.exited_at for job in self._jobs.exited(sid) if job.job.output == failed]
        exited_at = min(exits, default=None)
        jobs = [job for job in self._jobs.open_jobs(sid) if job.counts]
        waiting = (Life.ON_DECK, Life.NEWBORN)
        return [j for j in jobs if j.life in waiting or (exited_at is not None and j.admitted >= exited_at)]
