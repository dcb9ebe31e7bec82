"""Assembles an engine: creates each part once, and passes it what it needs. The only place that knows all parts."""

from __future__ import annotations

import contextlib
import os
import shutil
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

from stoker.act import ramdisk
from stoker.config.paths import BuildPaths, history_path
from stoker.contract.spec_file import BuildSpec, load_spec
from stoker.engine.aftermath.failures import Failures
from stoker.engine.aftermath.recovery import Recovery
from stoker.engine.govern.gate_driver import GateDriver
from stoker.engine.govern.governor import Governor
from stoker.engine.govern.growth_watch import GrowthWatch
from stoker.engine.govern.jobserver import Jobserver
from stoker.engine.govern.level_control import LevelControl
from stoker.engine.govern.memory_watch import MemoryWatch
from stoker.engine.govern.user_commands import UserCommands
from stoker.engine.jobs.interruptions import Interruptions
from stoker.engine.jobs.output_watch import OutputWatch
from stoker.engine.jobs.planner import Planner
from stoker.engine.jobs.remote_watch import RemoteWatch
from stoker.engine.jobs.scheduler_table import SchedulerTable
from stoker.engine.jobs.table import JobTable
from stoker.engine.learn.cache_meter import CacheMeter
from stoker.engine.learn.expectations import Expectations
from stoker.engine.learn.forecast import Forecast
from stoker.engine.loop.build_loop import BuildLoop, Parts
from stoker.engine.loop.event_store import EventStore
from stoker.engine.loop.sampler import Sampler
from stoker.engine.loop.senses import Senses
from stoker.engine.loop.supervisor_link import SupervisorLink
from stoker.engine.reload.config_reload import ConfigReload
from stoker.engine.steps import Roots, Steps, known_run
from stoker.model.state import BuildState
from stoker.record.history import History
from stoker.sense.machine.gpu import GpuReader
from stoker.sense.machine.machine import MachineReader
from stoker.sense.machine.tmpfs_use import RamDiskReader
from stoker.sense.remote.remote_reader import RemoteReader


@dataclass(frozen=True, slots=True)
class Wired:
    """The parts of one engine. `scratch` is the folder in which plans are made."""

    spec: BuildSpec
    store: EventStore
    supervisor: SupervisorLink
    steps: Steps
    reload: ConfigReload
    expectations: Expectations
    cache: CacheMeter
    recovery: Recovery
    parts: Parts
    loop: BuildLoop
    commands: UserCommands
    scratch: Path


def wire(paths: BuildPaths, wake: Callable[[], None]) -> Wired:
    """Create all parts of a build's engine; `wake` triggers a tick at once."""
    spec = load_spec(paths.root)
    store, supervisor, steps = EventStore(paths), SupervisorLink(paths), Steps(spec)
    state = store.state
    reload = ConfigReload(paths, spec, steps)
    expectations = Expectations(reload.priors, History(paths.history if spec.apart else history_path()))
    forecast = Forecast(expectations.foretell, expectations.unseen)
    roots = steps.roots(
        supervisor.top, known_run(supervisor.runs, state) if state.step is not None else supervisor.runs[0]
    )
    scratch = _empty_scratch(paths)
    jobs = JobTable(expectations, state)
    recovery = Recovery(supervisor.top, paths.output, state, jobs.owner, steps.alone(state))
    machine = _machine(paths, spec, roots)
    level = LevelControl(state, spec.jobs)
    level.set_cores(machine.cores)
    memory = MemoryWatch(jobs, level, machine.memory)
    gate = GateDriver(jobs, recovery.killed_by_stoker, time.monotonic)
    jobserver = None
    with contextlib.suppress(OSError):  # no jobserver: each tool inside a job has only its one slot
        jobserver = Jobserver(paths.jobserver, jobs.living_by_scheduler)
    remote = RemoteWatch(_remote_readers, state.remote.engines, state.time)
    governor = Governor(jobs, expectations, level, memory, gate, forecast, remote, jobserver)
    interruptions = Interruptions(
        lambda: supervisor.is_stopping() or store.state.phase == "stopping", supervisor.left_over
    )
    schedulers = SchedulerTable(jobs, state, interruptions)
    output = OutputWatch(paths.output, state)
    parts = Parts(
        expectations,
        machine,
        Senses(roots.top, roots.build, schedulers.resolve, wake),
        _sampler(machine, roots, state),
        jobs,
        schedulers,
        Planner(scratch),
        forecast,
        output,
        Failures(
            output,
            governor,
            lambda failure: recovery.hear(failure, store.state),
            schedulers.is_recorded,
            interruptions.any_now,
        ),
        level,
        memory,
        GrowthWatch(jobs, memory),
        gate,
        governor,
        remote,
        interruptions,
    )
    return Wired(
        spec,
        store,
        supervisor,
        steps,
        reload,
        expectations,
        CacheMeter(spec, paths, state, expectations),
        recovery,
        parts,
        BuildLoop(parts, roots, store.watched_until),
        UserCommands(jobs, level, gate, governor),
        scratch,
    )


def _machine(paths: BuildPaths, spec: BuildSpec, roots: Roots) -> MachineReader:
    disk = spec.ramdisk
    reader = RamDiskReader(ramdisk.tmpdir(disk.folder), disk.size) if disk is not None else None
    return MachineReader(roots.top, roots.cwd, gpu=GpuReader(tries=paths.gpu_tries), ramdisk=reader)


def _sampler(machine: MachineReader, roots: Roots, state: BuildState) -> Sampler:
    return Sampler(machine, roots.top, state.disk_written, state.compiled_alone, orphaned=roots.top == roots.build)


def _remote_readers() -> list[RemoteReader]:
    from stoker.sense.remote.readers import all_readers  # by later.py, if it was not yet

    return all_readers()


def _empty_scratch(paths: BuildPaths) -> Path:
    """Return a folder for plans, without what the planner of a killed engine left in it or is still writing."""
    folder = paths.root / "plans"
    for old in folder.glob("*"):
        shutil.rmtree(old, ignore_errors=True)
    mine = folder / str(os.getpid())
    mine.mkdir(parents=True, exist_ok=True)
    return mine
