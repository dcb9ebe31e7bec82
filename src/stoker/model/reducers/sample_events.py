"""Measurements: the machine, the build and its jobs at one tick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping

from stoker.model import events as ev
from stoker.model.evolve import evolve
from stoker.model.reducers import Reducers
from stoker.model.reducers.job_events import at_least
from stoker.model.remote import UNNAMED, got_its_name
from stoker.model.samples import JobSample, MachineSample
from stoker.model.state import BuildState, Job, MemoryUse, OutputUse, RamDiskUse, build_cpu
from stoker.model.timeline import TimelinePoint

MOST_BETWEEN = 5.0
"""Seconds between two samples that are counted: nobody knows what happened in a longer gap."""


def _sampled(state: BuildState, e: ev.Sampled, time: float) -> BuildState:
    jobs = _with_samples(state.jobs, e.jobs, time)
    states = Counter(job.state for job in jobs.values())
    used = e.machine.memory_used
    running, on_deck, frozen = states["running"], states["on_deck"], states["frozen"]
    cpu = build_cpu(e.build_cpu, jobs.values())
    cpus = e.machine.cpu_percent, e.machine.share_of_cpu(cpu)
    point = TimelinePoint(time, used, e.build_rss, running, cpus[0], on_deck, frozen, cpus[1])
    step, memory = state.step, state.memory
    if step is not None and e.ungoverned and not step.ungoverned:
        step = evolve(step, ungoverned=True)
    ramdisk_used = e.machine.ramdisk.used if e.machine.ramdisk is not None else 0
    return evolve(
        state,
        step=step,
        jobs=jobs,
        level=evolve(state.level, ungoverned=e.ungoverned),
        activity=e.activity,
        machine=_with_ramdisk(e.machine, state.machine),
        cpu=e.build_cpu,
        memory=MemoryUse(
            e.build_rss,
            max(memory.build_peak, e.build_rss),
            max(memory.used_peak, used),
            e.promised,
            e.reserve,
            e.outlook,
            *_time_over(memory, e.machine, time),
        ),
        ramdisk=RamDiskUse(max(state.ramdisk.peak, ramdisk_used), e.ramdisk_reserve),
        disk_written=e.build_written,
        compiled_alone=max(state.compiled_alone, e.compiled_alone),
        output=OutputUse(e.log_size, max(state.output.read, e.log_read), state.output.failures_end),
        timeline=state.timeline.with_point(point),
        recent=state.recent.with_newest(point),
    )


def _time_over(memory: MemoryUse, machine: MachineSample, time: float) -> tuple[float, float | None]:
    """How long the budget has been exceeded in all, and when it was last seen exceeded, if it still is."""
    since = memory.over_at if memory.over_at is not None else time
    seconds = memory.over_seconds + min(max(0.0, time - since), MOST_BETWEEN)
    return seconds, time if machine.memory_used > machine.memory_budget > 0 else None


def _with_samples(jobs: Mapping[int, Job], samples: tuple[JobSample, ...], time: float) -> dict[int, Job]:
    measured = dict(jobs)
    for s in samples:
        job = jobs.get(s.jid)
        if job is not None:
            peak = max(job.peak_rss, s.rss)
            measured[s.jid] = evolve(
                job,
                rss=s.rss,
                peak_rss=peak,
                expected=at_least(job.expected, peak),
                cpu=0.0 if s.state == "frozen" else s.cpu,  # it says what the job used before it was frozen
                cpu_due=False,
                phase=s.phase,
                is_c=job.is_c or s.phase == "cc1",
                phase_pid=s.phase_pid,
                host=s.host,
                course=job.course.with_sample(time, s.rss, s.cpu),
                state="on_deck" if job.state == "on_deck" else s.state,
            )
    return measured


def _with_ramdisk(machine: MachineSample, before: MachineSample | None) -> MachineSample:
    """A RAM disk that is gone still existed: it is removed a moment before the build's end is known."""
    if machine.ramdisk is not None or before is None or before.ramdisk is None:
        return machine
    return evolve(machine, ramdisk=evolve(before.ramdisk, used=0))


def _remote_seen(state: BuildState, e: ev.RemoteSeen, _time: float) -> BuildState:
    finished = dict(state.remote.finished)
    if (named := got_its_name(state.remote.engines, e.engines)) and UNNAMED in finished:
        finished[named] = finished.get(named, 0) + finished.pop(UNNAMED)
    return evolve(state, remote=evolve(state.remote, engines=e.engines, finished=finished))


REDUCERS: Reducers = {ev.Sampled: _sampled, ev.RemoteSeen: _remote_seen}
