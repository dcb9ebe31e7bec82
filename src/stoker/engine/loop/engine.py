"""The engine: tick after tick over one build, from its first event to its last.

It may be killed at any moment: everything it must remember is in the journal. Unaware of screens.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
import os
import shutil
import signal
import time
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from stoker.act.stop import NothingToStopError, stop_build
from stoker.config.paths import BuildPaths, UnsafeFolderError
from stoker.contract.spec_file import BuildSpec
from stoker.decide.policy.calm import TOGETHER_SECONDS
from stoker.decide.recovery.deaths import Again
from stoker.engine.aftermath.ending import ending_of, true_status
from stoker.engine.aftermath.failures import RECORD_SECONDS
from stoker.engine.aftermath.findings import findings
from stoker.engine.govern.governor import Precautions
from stoker.engine.govern.level_control import StepLimits
from stoker.engine.learn.forecast import LEARNT_FROM
from stoker.engine.learn.predecessors import earlier_journals
from stoker.engine.loop.beginning import beginning_of, decided_before
from stoker.engine.loop.container_roots import ContainerRoots
from stoker.engine.loop.later import load_later
from stoker.engine.loop.ungoverned_warning import warn_of_ungoverned
from stoker.engine.loop.wakeup import LogsPace, Pace, Wakeup
from stoker.engine.loop.wiring import Wired, wire
from stoker.engine.reload.people import login_name
from stoker.engine.steps import changes
from stoker.model import events as ev
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused
from stoker.record.journal_reader import read_kinds
from stoker.serve.endpoint import EngineAliveError
from stoker.serve.server import Server

if TYPE_CHECKING:
    from stoker.engine.aftermath.notification import NotifyHook
    from stoker.model.job_tree import ProcessTree

TICK_SECONDS = 1.0
"""Seconds between two ticks while a scheduler works: a person sees it as live, and it is cheap next to 30 compilers."""

TIGHT_TICK_SECONDS = 0.25
"""The same while memory is in play: a compiler takes up to 200 MiB in a second."""

SEARCH_SECONDS = 0.05
"""How often to look for a scheduler while none runs: the jobs of a wide ninja must not run unguarded."""

QUICK_SEARCH_SECONDS, AT_ONCE_SECONDS = 0.01, 1.0
"""The same in the build's first second."""

SEARCHING_TICK_SECONDS = 0.2
"""The tick while no scheduler runs: a short ninja (a configure check, the end of a build) must not slip through."""

LISTEN_SECONDS = 0.15
"""The tick after a job's death: ninja shows within milliseconds whether it has failed, and then nothing new must
start."""

HOOK_POLL_SECONDS = 0.05
ESTIMATE_EVERY = 5.0
RENEW_SECONDS = 5.0
"""How often what was learned is applied to waiting jobs while memory is plenty for all of them: a new curve for each is
work."""

LINGER_SECONDS = 3.0
"""How long viewers get to read the end before the socket closes; it is in the journal as well."""


OUT_OF_REACH = "the container's processes are root's: its jobs can be neither seen nor held; use podman, or run as root"
REPLACED = "the supervisor was killed; a standby has taken its place, and nothing is lost"
LOST = "the supervisor was killed; the build goes on, but its exit status will be lost"


class Engine:
    """One build's engine."""

    def __init__(self, paths: BuildPaths) -> None:
        self._paths = paths
        self._wakeup = Wakeup()
        self._calm = False
        self._wired: Wired = wire(paths, self._exit_noticed)
        self._loop, self._parts = self._wired.loop, self._wired.parts
        self._supervisor, self._recovery = self._wired.supervisor, self._wired.recovery
        self._containers = ContainerRoots(self._see_container)
        questions = {"processes": self._processes_of}
        self._server = Server(paths.socket, self._command, lambda: self._state, questions=questions)
        self._hook = _notify_hook(paths, self._wired.spec)
        self._files_changed = True
        self._enough = asyncio.Event()  # somebody wants the build to end: find out nothing more about it
        self._pace, self._logs_pace = Pace(), LogsPace()
        self._asked = False
        self._steps_version = 0
        self._sample_at = self._listen_until = self._ready_at = self._estimated_at = self._renew_at = 0.0

    @property
    def _state(self) -> BuildState:
        return self._wired.store.state

    async def run(self) -> None:
        """Run until the build is over; raises nothing that the supervisor would not answer with a new engine."""
        self._listen_to_signals()
        if self._state.over:
            await self._await_hook()
            await self._close()
            return
        wired = self._wired
        self._recall()
        self._begin()
        self._take_precautions()
        self._set_limits()
        await self._open_socket()
        self._write(await wired.cache.begin())
        self._supervisor.beat()
        self._announce_ready()
        wired.reload.start(self._see_files)
        try:
            while not self._supervisor.build_is_over():
                await self._tick()
                await self._sleep()
            await self._end()
        finally:
            await self._close()
        await self._server.close(LINGER_SECONDS)

    async def _close(self) -> None:
        self._wired.reload.close()
        self._containers.close()
        await self._parts.planner.close()
        self._parts.senses.close()
        self._parts.machine.close()
        self._parts.remote.close()
        await self._wired.expectations.close()
        self._recovery.close()
        shutil.rmtree(self._wired.scratch, ignore_errors=True)

    # -- one turn ----------------------------------------------------------------------------------------------

    async def _tick(self) -> None:
        """Make one tick: facts, state, decisions, actions, events."""
        now, wired = time.time(), self._wired
        self._loop.scan()
        self._look_after_supervisor(now)
        whole = self._is_whole()
        schedulers = len(self._parts.schedulers.books())
        self._renew_expectations()
        events = await self._loop.tick(now, whole=whole)
        if len(self._parts.schedulers.books()) > schedulers:
            self._pace.hurry()
        self._recovery.watch((pid, self._supervisor.runs[-1].begun) for pid in self._parts.schedulers.contained())
        events += [*self._recovery.look(), *self._reload(), *self._govern()]
        events += self._remarks(events, whole=whole)
        events += [*self._parts.governor.news(), *self._parts.memory.stalls(), *wired.cache.look()] if whole else []
        events += [*self._parts.forecast.blocked(self._state), *self._estimate(now)]
        self._write(events, now)
        self._write(self._notified(now), now)
        keys = [book.scheduler.key for book in self._parts.schedulers.books()]
        self._supervisor.hand_over(self._parts.level, keys, self._parts.jobs, self._parts.gate.hosted)
        await self._answer()
        await wired.expectations.flush()
        with contextlib.suppress(UnsafeFolderError, EngineAliveError, OSError):  # until the next login, perhaps
            await self._server.listen_again()
        self._calm = self._loop.is_calm()

    def _renew_expectations(self) -> None:
        """Apply what was learned since."""
        if not self._calm or time.monotonic() >= self._renew_at:
            self._renew_at = time.monotonic() + RENEW_SECONDS
            self._wired.expectations.renew()

    def _is_whole(self) -> bool:
        """Say whether this tick samples everything: one per second does."""
        if time.monotonic() < self._sample_at:
            return False
        self._sample_at = time.monotonic() + TICK_SECONDS * 0.9
        return True

    def _govern(self) -> list[ev.Event]:
        """Return the level, if it changed, and the current decisions."""
        return [*self._parts.level.news(), *self._parts.governor.step()]

    def _remarks(self, events: Sequence[ev.Event], *, whole: bool) -> list[ev.Event]:
        """Return what a person should know about what is new."""
        wired = self._wired
        remarks: list[ev.Event] = [ev.Noticed("warning", note) for note in wired.expectations.notes.take()]
        if any(isinstance(event, ev.SchedulerStarted) for event in events):
            remarks += wired.steps.lost(self._state, events)
        if whole and not self._parts.schedulers.keys():
            environment = {**os.environ, **wired.steps.environment(self._supervisor.runs[-1].step)}
            remarks += warn_of_ungoverned(self._state, events, environment)
        return remarks

    def _estimate(self, now: float) -> list[ev.Event]:
        """Return the time left, every few seconds."""
        if 0 <= now - self._estimated_at < ESTIMATE_EVERY:
            return []
        cpu = {job.jid: job.age for job in self._parts.jobs}
        estimate = self._parts.forecast.look(self._state, now, cpu)
        if estimate is None:  # until there is a plan, which shows at once what should start first
            return []
        self._estimated_at = now
        return [estimate]

    def _exit_noticed(self) -> None:
        """A job's process has ended: answer now, or soon, together with others and with the births that follow."""
        self._wakeup.wake_within(self._loop.answer_pause(calm=self._calm))

    def _pulse(self) -> None:
        """Handle what needs an answer within milliseconds: the exits, births and records since the last tick."""
        now, calm = time.time(), self._calm
        events = self._reload()
        exits = self._loop.take_exits()
        if exits:
            self._listen_until = time.monotonic() + LISTEN_SECONDS
            self._logs_pace.hurry(time.monotonic())
            if not calm:
                events += self._parts.governor.step()
        if time.monotonic() < self._listen_until:
            events += self._loop.read_output()
        events += self._loop.follow_remote(now)
        births = self._loop.births(now)
        if births:
            self._calm = calm and self._loop.is_calm()
            self._logs_pace.recorded(time.monotonic())
        elif exits and calm:
            events += self._parts.governor.step()
        # While calm, a newborn for each job that has ended is all that is likely.
        if (births or exits) and not (self._calm and _started(births) == exits):
            self._pace.hurry()
        events += births
        if looks := self._logs_pace.is_time(time.monotonic()):
            events += self._loop.read_logs(now)
        if events or (looks and self._parts.jobs.owes_exits):
            self._write(events, now)

    async def _sleep(self) -> None:
        """Wait until the next tick. In between, handle births, exits and ninja's records the moment they come."""
        deadline = time.monotonic() + self._tick_seconds()
        memory = self._parts.memory
        search_at, read_at = 0.0, time.monotonic()
        while (left := deadline - time.monotonic()) > 0 and not self._supervisor.build_is_over():
            searching = not self._parts.schedulers.books()
            # Asked again each time: a scheduler that was alone at a tick, or none, may have company by now.
            left = min(left, max(0.0, read_at + memory.reading_pause() - time.monotonic()))
            self._parts.senses.listen(time.time())
            pause = self._search_pause() if searching else self._birth_pause()
            woken = await self._wakeup.wait(min(left, pause))
            if self._asked:
                self._asked = False
                return
            if searching and time.monotonic() >= search_at:
                search_at = time.monotonic() + self._search_pause()
                if self._parts.senses.spots_scheduler(self._parts.schedulers.keys()):
                    return
            # While all places are taken, often only memory is to be read again: nothing can have been born or recorded.
            if woken or pause < math.inf or time.monotonic() < self._listen_until:
                self._pulse()
            if time.monotonic() >= read_at + memory.reading_pause():
                if memory.falling():
                    return
                read_at = time.monotonic()
            if self._parts.failures.waits:
                deadline = min(deadline, time.monotonic() + RECORD_SECONDS)

    def _search_pause(self) -> float:
        """Return the seconds between two searches for a scheduler: the command itself may be one."""
        return SEARCH_SECONDS if time.monotonic() > self._ready_at + AT_ONCE_SECONDS else QUICK_SEARCH_SECONDS

    def _birth_pause(self) -> float:
        """Return the seconds until the next check for newborns, or for ninja's records of ended jobs."""
        due = self._parts.schedulers.births_due()
        newborn = self._pace.next(unready=self._parts.senses.expecting, due=due)
        pause = min(newborn, self._logs_pace.next(time.monotonic()), self._loop.remote_pause())
        return max(pause, TOGETHER_SECONDS) if self._calm else pause

    def _tick_seconds(self) -> float:
        if not self._parts.schedulers.books():
            return SEARCHING_TICK_SECONDS
        return TIGHT_TICK_SECONDS if self._parts.memory.tight() else TICK_SECONDS

    # -- the journal -------------------------------------------------------------------------------------------

    def _write(self, events: Iterable[ev.Event], now: float | None = None) -> None:
        """Announce these events of Unix time `now`: to the journal, to viewers, and to the parts that learn from them.

        Exits of jobs come first, because another job may have taken the place by then.
        """
        now = time.time() if now is None else now
        exits = self._parts.jobs.take_exits(self._state.last_jid)
        forecast = self._parts.forecast
        events = [forecast.foretold(e) if isinstance(e, ev.JobFinished) else e for e in (*exits, *events)]
        self._wired.store.write(events, now, self._server.publish)
        self._recovery.heard(events)
        forecast.heard(events, round(now, 3))
        for event in events:
            if isinstance(event, ev.JobKilled):
                self._wired.expectations.killed(event)

    def _recall(self) -> None:
        """Learn from the journal what earlier engines have learned from the jobs of this build."""
        expectations, forecast = self._wired.expectations, self._parts.forecast
        for journal in earlier_journals(self._paths, self._wired.spec):
            for record in read_kinds(journal, ev.JobFinished, ev.JobKilled):
                if isinstance(record.event, ev.JobFinished):
                    forecast.recall(record.event)
                    expectations.recall(record.event)
                elif isinstance(record.event, ev.JobKilled):
                    expectations.killed(record.event)
        for record in read_kinds(self._paths.journal, *LEARNT_FROM):
            forecast.heard((record.event,), record.time)
            if isinstance(record.event, ev.JobFinished):
                expectations.recall(record.event)
            elif isinstance(record.event, ev.JobKilled):
                expectations.killed(record.event)

    def _begin(self) -> None:
        """Announce the journal's first event, or that another engine has taken over."""
        wired, spec = self._wired, self._wired.spec
        adopted = self._state.seq > 0
        events: list[ev.Event] = []
        if not adopted:
            events += [beginning_of(self._paths, spec), *decided_before(spec)]
        events.append(ev.EngineStarted(os.getpid(), adopted))
        if adopted:
            why = f"engine {self._state.engine_pid} was gone; the build and {len(self._state.jobs)} jobs went on"
            events.append(ev.Decided("engine", "took over the running build", why))
        if self._state.step is None:
            events.append(wired.steps.started(self._supervisor.runs[0], self._recovery.oom_kills()))
        events += [ev.Noticed("warning", str(fault)) for fault in wired.reload.faults]
        if not adopted:
            events += [ev.Noticed("warning", text) for text in spec.notices]
            events += [ev.Noticed("info", note) for note in (spec.note,) if note]
        self._write(events, None if adopted else self._supervisor.started)

    # -- the supervisor, and the commands that it runs -------------------------------------------------------------

    def _listen_to_signals(self) -> None:
        """Ignore a terminal's signals; on SIGTERM end, and the supervisor starts another engine.

        SIGUSR1: the supervisor has a question. SIGCONT: it is dead (engine_runner.py), or we were stopped for a while.
        """
        for signum in (signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)
        for signum in (signal.SIGUSR1, signal.SIGCONT):
            asyncio.get_running_loop().add_signal_handler(signum, self._called)

    def _called(self) -> None:
        self._asked = True
        self._wakeup.wake()

    def _announce_ready(self) -> None:
        """Let the build start. It waits for this, so that nothing of it runs unseen."""
        self._ready_at = time.monotonic()
        if ready := os.environ.pop("STOKER_READY_FD", ""):
            self._parts.governor.step()  # offers slots: a plain ninja asks for some at its start, then not for a while
            with contextlib.suppress(OSError, ValueError):
                os.close(int(ready))
        load_later()

    def _see_container(self, pid: int) -> None:
        """Add the first process of a container that is not below the build: its descendants belong to the build too."""
        self._parts.senses.include(pid)
        try:
            os.stat(f"/proc/{pid}/root/")
        except PermissionError:
            self._write([ev.Noticed("warning", OUT_OF_REACH)])
        except OSError:  # it has already ended
            return

    def _look_after_supervisor(self, now: float) -> None:
        if self._supervisor.was_killed():
            self._loop.watch_below(self._supervisor.top)
            self._write([ev.Noticed("warning", REPLACED) if self._supervisor.lives else ev.Noticed("error", LOST)], now)
        if self._supervisor.is_stopping() and not self._enough.is_set():
            self._parts.gate.release_all()
            self._enough.set()
        self._announce_steps(now)

    def _announce_steps(self, now: float) -> None:
        """Announce steps, and attempts at them, that the supervisor has started since; some may be over."""
        steps = self._wired.steps
        self._supervisor.read()
        if self._supervisor.version == self._steps_version:
            return
        while todo := changes(self._supervisor.runs, self._state):
            change = todo[0]
            if change.before is not None and change.new_step:
                self._write(self._loop.end_command(now), now)
                self._write(steps.ended(self._state, change.before.exit_code), now)
                self._recovery.begin_step()
            self._recovery.begin_attempt(change.now.attempt, self._state)
            self._take_precautions()
            roots = steps.roots(self._supervisor.top, change.now)
            self._loop.watch_command(roots)
            self._containers.follow(roots)
            self._write([steps.started(change.now, self._recovery.oom_kills())], now)
            self._write(steps.swept(self._state), now)
            self._supervisor.read()  # the new scan may show processes of the next one
        self._steps_version = self._supervisor.version
        self._set_limits()

    async def _answer(self) -> None:
        """The command has failed: answer whether it runs again."""
        ended = self._supervisor.asked()
        if ended is None:
            return
        self._write(self._loop.end_command(time.time()))
        verdict, events = self._recovery.verdict(self._state)
        self._write(events)
        again = isinstance(verdict, Again)
        self._take_precautions()
        self._supervisor.answer(ended, again=again, exit_code=None if again else true_status(ended, self._state))

    async def _end(self) -> None:
        now, wired = time.time(), self._wired
        self._announce_steps(now)  # some may have been over before there was a tick
        self._write(self._loop.finish(now), now)
        self._write(await wired.cache.finish(), now)
        self._write(await self._parts.remote.finish(), now)
        ending = ending_of(self._paths, self._state, self._parts.sampler.count_written())
        alone = self._recovery.must_run_alone()
        # Before the findings, which take seconds: until then, viewers would show the last measurements as if it ran.
        if self._state.step is None or not self._state.step.ended:  # else an engine wrote it and was killed
            self._write(wired.steps.ended(self._state, ending.exit_code))
        async with self._supervisor.beating():
            async for events in findings(self._paths, wired.spec, self._state, ending, alone, self._enough):
                self._write(events)
        self._write([ending])
        await self._await_hook()
        async with self._supervisor.beating():
            await wired.store.close()
        if ending.outcome == "done":
            self._paths.environment.unlink(missing_ok=True)  # nobody will resume it

    async def _await_hook(self) -> None:
        """Make the remaining calls of the notify command, and record how they ended; its own limit bounds this."""
        async with self._supervisor.beating():
            self._write(self._notified(time.time()))
            while self._hook is not None and self._hook.runs:
                await asyncio.sleep(HOOK_POLL_SECONDS)
                self._write(self._notified(time.time()))

    def _notified(self, now: float) -> list[ev.Event]:
        return self._hook.look(self._state, now) if self._hook is not None else []

    # -- what a person's files say, and what was killed before -------------------------------------------------

    def _take_precautions(self) -> None:
        """Apply how the jobs that were killed in earlier attempts run in the next one."""
        recovery, needs = self._recovery, self._recovery.needs()
        self._parts.governor.take_precautions(
            Precautions(recovery.must_run_alone(), frozenset(needs), recovery.one_by_one)
        )
        self._wired.expectations.set_needs(needs)

    def _set_limits(self) -> None:
        """Apply what configuration files say about the current step."""
        number, reload = self._supervisor.runs[-1].step, self._wired.reload
        self._parts.level.limit(StepLimits(reload.limit(number), reload.thresholds))
        self._recovery.allow(reload.retries(number))
        self._parts.machine.limit(reload.memory)

    def _see_files(self) -> None:
        self._files_changed = True
        self._wakeup.wake()

    def _reload(self) -> list[ev.Event]:
        """Return what has changed in configuration files, and the immediate consequences."""
        if not self._files_changed:
            return []
        self._files_changed = False
        reload, level = self._wired.reload, self._parts.level
        news = reload.news(self._parts.jobs.counts, level_by_hand=level.orders.level is not None)
        if not news:
            return []
        self._set_limits()
        if self._wired.expectations.set_priors(reload.priors):
            self._parts.forecast.ask_again()
        return [*news, *self._govern()]

    # -- viewers -----------------------------------------------------------------------------------------------

    async def _open_socket(self) -> None:
        """Open the socket. Without it there are no live viewers and no commands, but a journal, and the build."""
        try:
            await self._server.start()
        except (UnsafeFolderError, EngineAliveError, OSError) as err:
            self._write([ev.Noticed("error", f"no socket: {err}; viewers read the journal instead")])

    def _processes_of(self, arguments: Mapping[str, Any]) -> ProcessTree:
        """Answer a viewer's query for the processes of one job; raises CommandRefused."""
        from stoker.engine.jobs.ask_processes import ask_processes  # by later.py, if it was not yet

        return ask_processes(self._parts.jobs, arguments)

    async def _command(self, verb: str, arguments: dict[str, Any], uid: int) -> None:
        """Carry out a viewer's command; raises CommandRefused."""
        if verb != "stop":
            self._write(self._wired.commands.carry_out(verb, arguments, login_name(uid)))
            self._wakeup.wake()
            return
        force = arguments.get("force", False) is True
        self._parts.gate.release_all()
        self._enough.set()
        try:
            stop_build(self._paths, force)
        except NothingToStopError as err:
            raise CommandRefused(str(err)) from err
        self._write([ev.StopRequested(login_name(uid), force)])


def _notify_hook(paths: BuildPaths, spec: BuildSpec) -> NotifyHook | None:
    """Return what calls the build's notify command; most builds have none and do not wait until this is loaded."""
    if not spec.notify:
        return None
    from stoker.engine.aftermath.notification import NotifyHook

    return NotifyHook(paths, spec)


def _started(events: Iterable[ev.Event]) -> int:
    """Return how many jobs these events start."""
    return sum(isinstance(event, ev.JobStarted) for event in events)
