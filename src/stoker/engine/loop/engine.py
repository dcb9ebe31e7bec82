"""The engine: one loop that looks at the build, writes down what is new and tells the viewers, until the build is over.

It may be killed at any moment: everything it must remember is in the journal. Unaware of screens.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stoker.act.stop import NothingToStopError, stop_build
from stoker.config.paths import BuildPaths, UnsafeFolderError, history_path
from stoker.contract.spec_file import load_spec
from stoker.decide.recovery.deaths import Again
from stoker.engine.aftermath.ending import ending_of, true_status
from stoker.engine.aftermath.failures import RECORD_SECONDS
from stoker.engine.aftermath.findings import findings
from stoker.engine.aftermath.recovery import Recovery
from stoker.engine.govern.governor import Governor
from stoker.engine.govern.jobserver import Lender
from stoker.engine.govern.user_commands import carry_out, counts, let_go
from stoker.engine.learn.cache_meter import CacheMeter
from stoker.engine.learn.expectations import Expectations
from stoker.engine.learn.forecast import LEARNT_FROM, Forecast
from stoker.engine.learn.predecessors import earlier_journals
from stoker.engine.loop.beginning import beginning_of, decided_before
from stoker.engine.loop.build_ramdisk import reader_of
from stoker.engine.loop.event_store import Ledger
from stoker.engine.loop.observer import Observer
from stoker.engine.loop.people import login_name
from stoker.engine.loop.steps import Steps, changes, known_run
from stoker.engine.loop.supervisor_link import SupervisorLink
from stoker.engine.loop.ungoverned_warning import ungoverned_told
from stoker.engine.loop.wakeup import Bell, LogsPace, Pace
from stoker.engine.reload.config_reload import Following
from stoker.model import events as ev
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused
from stoker.record.history import History
from stoker.record.journal import read_kinds
from stoker.sense.machine.gpu import GpuReader
from stoker.sense.machine.machine import MachineReader
from stoker.serve.endpoint import EngineAliveError
from stoker.serve.server import Server

TICK_SECONDS = 1.0
"""Between two looks while a scheduler works: what a person sees as live, and cheap beside 30 compilers."""

TIGHT_TICK_SECONDS = 0.25
"""While memory is in play: a compiler takes up to 200 MiB in a second."""

SEARCH_SECONDS = 0.05
"""While no scheduler runs, its coming is looked for this often: the jobs of a wide ninja must not run unguarded."""

QUICK_SEARCH_SECONDS, AT_ONCE_SECONDS = 0.01, 1.0
"""The same in the build's first second."""

SEARCHING_TICK_SECONDS = 0.2
"""While no scheduler runs: a short ninja (a configure check, the end of a build) must not slip through."""

LISTEN_SECONDS = 0.15
"""After a job's death: ninja says within milliseconds if it has failed, and then nothing new must start."""

ESTIMATE_EVERY = 5.0
LINGER_SECONDS = 3.0
"""How long viewers get to read the end before the socket goes; they find it in the journal as well."""


REPLACED = "the supervisor was killed; a standby has taken its place, and nothing is lost"
LOST = "the supervisor was killed; the build goes on, but its exit status will be lost"


class Engine:
    """One build's engine."""

    def __init__(self, paths: BuildPaths) -> None:
        self._paths = paths
        self._spec = load_spec(paths.root)
        self._steps = Steps(self._spec)
        self._supervisor = SupervisorLink(paths)
        self._ledger = Ledger(paths)
        self._write = self._ledger.write
        self._server = Server(paths.socket, self._command, lambda: self._state)
        self._ledger.publish = self._server.publish
        self._bell = Bell()
        self._enough = asyncio.Event()  # somebody wants the build to end: nothing more is found out about it
        self._pace, self._logs_pace = Pace(), LogsPace()
        self._following = Following(paths, self._spec, self._steps)
        self._expectations = Expectations(self._following.priors, History(history_path()))
        self._cache = CacheMeter(self._spec, paths, self._state, self._expectations)
        self._deaths = self._asked = False
        self._sample_at = self._listen_until = self._ready_at = 0.0
        self._recovery = Recovery(self._supervisor.top, paths.output, self._state, self._steps.alone(self._state))
        self._forecast = Forecast(self._expectations.foretell)
        self._forecast.on_unseen = self._expectations.unseen
        self._ledger.heard = self._heard
        self._estimated_at = 0.0

    @property
    def _state(self) -> BuildState:
        return self._ledger.state

    async def run(self) -> None:
        """Until the build is over; raises nothing that the supervisor would not answer with a new engine."""
        self._listen_to_signals()
        if self._state.over:
            return
        self._recall()
        self._begin()
        await self._open_socket()
        plans = self._empty_scratch()
        observer = self._observer(plans)
        self._write(await self._cache.begin())
        self._supervisor.beat()
        self._tell_ready()
        self._following.start(self._bell.ring)
        try:
            while not self._supervisor.build_is_over():
                await self._look(observer)
                await self._sleep(observer)
            await self._end(observer)
        finally:
            self._following.close()
            await observer.close()
            await self._expectations.close()
            self._recovery.close()
            shutil.rmtree(plans, ignore_errors=True)
        await self._server.close(LINGER_SECONDS)

    def _observer(self, plans: Path) -> Observer:
        """The senses and the governor, which the senses tell of every birth and death."""
        roots = self._steps.roots(self._supervisor.top, known_run(self._supervisor.runs, self._state))
        gpu = GpuReader(tries=self._paths.gpu_tries)
        self._machine = machine = MachineReader(roots.top, roots.cwd, gpu=gpu, ramdisk=reader_of(self._spec))
        self._governor = governor = Governor(
            self._expectations, lambda: machine.memory(governor.deck.held_bytes()), self._state
        )
        self._ledger.learn = lambda event: self._forecast.foretold(governor.finished(event))
        governor.on_kill = self._recovery.killed_by_stoker
        self._recovery.owner = governor.deck.owner
        self._set_demands()
        governor.cores = machine.cores
        governor.set_out(self._spec.jobs)
        with contextlib.suppress(OSError):  # no pool: tools inside jobs keep to one slot each
            governor.lender = Lender(self._paths.jobserver, governor.deck.living_by_scheduler)
        watched_until = self._ledger.watched_until
        observer = Observer(roots, self._state, watched_until, self._paths.output, plans, machine, governor)
        observer.left = self._left
        observer.failures.hear = lambda failure: self._recovery.hear(failure, self._state)
        observer.planner.on_plan = self._forecast.planned
        self._set_limits()
        return observer

    def _set_demands(self) -> None:
        """How what was killed in the attempts before is made in the next one."""
        recovery, governor = self._recovery, self._governor
        needs = recovery.needs()
        governor.alone, governor.first = recovery.must_run_alone(), frozenset(needs)
        governor.one_by_one = recovery.one_by_one
        self._expectations.set_needs(needs)

    def _set_limits(self) -> None:
        """What a person's files say of the step that runs now."""
        number, following = self._supervisor.runs[-1].step, self._following
        self._governor.limit, self._recovery.retries = following.limit(number), following.retries(number)
        self._governor.thresholds, self._machine.own_limit = following.thresholds, following.memory

    def _follow(self) -> list[ev.Event]:
        """What a person has changed in their files, and what follows at once."""
        news = self._following.news(lambda: counts(self._governor), level_by_hand=self._governor.wanted is not None)
        if not news:
            return []
        self._set_limits()
        if self._expectations.set_priors(self._following.priors):
            self._forecast.ask_again()
        return [*news, *self._governor.level_told(), *self._governor.step()]

    def _heard(self, events: Iterable[ev.Event], now: float) -> None:
        """What has been told, at Unix time `now`."""
        events = tuple(events)
        self._recovery.heard(events)
        self._forecast.heard(events, now)

    def _left(self, jid: int) -> None:
        """A job's process has ended: another may start now, and its scheduler will start one in a moment."""
        self._ledger.left(jid)
        self._deaths = True
        self._pace.hurry()
        self._bell.ring()

    def _tell_ready(self) -> None:
        """The build waits for this: nothing of it shall run unseen."""
        self._ready_at = time.monotonic()
        if ready := os.environ.pop("STOKER_READY_FD", ""):
            self._governor.step()  # lends slots: a plain ninja asks for some at its start, and then not for a while
            with contextlib.suppress(OSError, ValueError):
                os.close(int(ready))

    def _empty_scratch(self) -> Path:
        """A folder for plans, without what the planner of a killed engine left in it or is still writing."""
        folder = self._paths.root / "plans"
        for old in folder.glob("*"):
            shutil.rmtree(old, ignore_errors=True)
        mine = folder / str(os.getpid())
        mine.mkdir(parents=True, exist_ok=True)
        return mine

    async def _open_socket(self) -> None:
        """Without a socket there are no live viewers and no commands, but a journal, and the build."""
        try:
            await self._server.start()
        except (UnsafeFolderError, EngineAliveError, OSError) as err:
            self._write([ev.Noticed("error", f"no socket: {err}; viewers read the journal instead")])

    def _listen_to_signals(self) -> None:
        """A terminal's signals are not for the engine; SIGTERM ends it, and the supervisor starts another.

        SIGUSR1: the supervisor has something to ask. SIGCONT: it is dead (engine_runner.py), or we were stopped for a
        while.
        """
        for signum in (signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)
        for signum in (signal.SIGUSR1, signal.SIGCONT):
            asyncio.get_running_loop().add_signal_handler(signum, self._called)

    def _called(self) -> None:
        self._asked = True
        self._bell.ring()

    # -- the journal -------------------------------------------------------------------------------------------

    def _recall(self) -> None:
        """Learn from the journal what engines before this one have learnt from the jobs of this build."""
        for journal in earlier_journals(self._paths, self._spec):
            for record in read_kinds(journal, ev.JobFinished):
                if isinstance(record.event, ev.JobFinished):
                    self._forecast.recall(record.event)
                    self._expectations.recall(record.event)
        for record in read_kinds(self._paths.journal, *LEARNT_FROM):
            self._forecast.heard((record.event,), record.time)
            if isinstance(record.event, ev.JobFinished):
                self._expectations.recall(record.event)

    def _begin(self) -> None:
        """The journal's head, or a word that another engine has taken over."""
        adopted = self._state.seq > 0
        events: list[ev.Event] = []
        if not adopted:
            events += [beginning_of(self._paths, self._spec), *decided_before(self._spec)]
        events.append(ev.EngineStarted(os.getpid(), adopted))
        if adopted:
            why = f"engine {self._state.engine_pid} was gone; the build and {len(self._state.jobs)} jobs went on"
            events.append(ev.Decided("engine", "took over the running build", why))
        if self._state.step is None:
            events.append(self._steps.started(self._supervisor.runs[0], self._recovery.oom_kills()))
        events += [ev.Noticed("warning", str(fault)) for fault in self._following.faults]
        if not adopted:
            events += [ev.Noticed("warning", text) for text in self._spec.notices]
            events += [ev.Noticed("info", note) for note in (self._spec.note,) if note]
        self._write(events, None if adopted else self._supervisor.started)

    # -- the loop ----------------------------------------------------------------------------------------------

    async def _look(self, observer: Observer) -> None:
        now = time.time()
        observer.scan()
        self._look_after_supervisor(observer, now)
        whole = time.monotonic() >= self._sample_at
        if whole:
            self._sample_at = time.monotonic() + TICK_SECONDS * 0.9
        schedulers = len(observer.live_schedulers())
        self._expectations.renew()
        events = await observer.look(now, sample=whole)
        if len(observer.live_schedulers()) > schedulers:
            self._pace.hurry()
        events += [*self._recovery.look(), *self._follow(), *self._governor.level_told(), *self._governor.step()]
        events += [ev.Noticed("warning", note) for note in self._expectations.notes.take()]
        events += self._steps.lost(self._state, events)
        environment = {**os.environ, **self._steps.environment(self._supervisor.runs[-1].step)} if whole else {}
        events += ungoverned_told(self._state, events, environment)
        events += [self._governor.told(m) for m in self._governor.deck.outdated()] if whole else []
        events += [*self._governor.waits_told(), *self._governor.stall_told()] if whole else []
        events += self._cache.look() if whole else []
        if now - self._estimated_at >= ESTIMATE_EVERY or now < self._estimated_at:
            self._estimated_at = now
            guess = self._forecast.look(self._state, now)
            events += [guess] if guess is not None else []
        self._write(events, now)
        self._supervisor.hand_over(self._governor, (book.scheduler.key for book in observer.live_schedulers()))
        await self._answer(observer)
        await self._expectations.flush()
        with contextlib.suppress(UnsafeFolderError, EngineAliveError, OSError):  # until the next login, perhaps
            await self._server.listen_again()

    def _look_after_supervisor(self, observer: Observer, now: float) -> None:
        if self._supervisor.was_killed():
            observer.watch_below(self._supervisor.top)
            self._write([ev.Noticed("warning", REPLACED) if self._supervisor.lives else ev.Noticed("error", LOST)], now)
        if self._supervisor.is_stopping() and not self._enough.is_set():
            let_go(self._governor)
            self._enough.set()
        self._tell_steps(observer, now)

    def _tell_steps(self, observer: Observer, now: float) -> None:
        """Steps, and attempts at them, that the supervisor has started since; some may be over."""
        self._supervisor.read()
        while todo := changes(self._supervisor.runs, self._state):
            change = todo[0]
            if change.before is not None and change.new_step:
                self._write(observer.end_command(now), now)
                self._write(self._steps.ended(self._state, change.before.exit_code), now)
                self._recovery.begin_step()
            self._recovery.begin_attempt(change.now.attempt, self._state)
            self._set_demands()
            observer.watch_command(self._steps.roots(self._supervisor.top, change.now))
            self._write([self._steps.started(change.now, self._recovery.oom_kills())], now)
            self._write(self._steps.swept(self._state), now)
            self._supervisor.read()  # what was scanned anew may be of the next one
        self._set_limits()

    async def _answer(self, observer: Observer) -> None:
        """The command has failed: say whether it runs again."""
        ended = self._supervisor.asked()
        if ended is None:
            return
        self._write(observer.end_command(time.time()))
        found, events = self._recovery.verdict(self._state)
        self._write(events)
        again = isinstance(found, Again)
        self._set_demands()
        self._supervisor.answer(ended, again=again, exit_code=None if again else true_status(ended, self._state))

    async def _sleep(self, observer: Observer) -> None:
        """Until the next look. In between: births, deaths, and ninja's records, each the moment it comes."""
        deadline = time.monotonic() + self._tick(observer)
        search_at, read_at = 0.0, time.monotonic()
        while (left := deadline - time.monotonic()) > 0 and not self._supervisor.build_is_over():
            searching = not observer.live_schedulers()
            # Asked anew each time: whom a look found alone, or nobody, may have company by now.
            left = min(left, max(0.0, read_at + self._governor.reading_pause() - time.monotonic()))
            await self._bell.wait(min(left, self._search_pause() if searching else self._birth_pause(observer)))
            if self._asked:
                self._asked = False
                return
            if searching and time.monotonic() >= search_at:
                search_at = time.monotonic() + self._search_pause()
                if observer.spots_scheduler():
                    return
            self._pulse(observer)
            if time.monotonic() >= read_at + self._governor.reading_pause():
                if self._governor.falling():
                    return
                read_at = time.monotonic()
            if observer.failures.waits:
                deadline = min(deadline, time.monotonic() + RECORD_SECONDS)

    def _search_pause(self) -> float:
        """A command that is a scheduler itself is one at once."""
        return SEARCH_SECONDS if time.monotonic() > self._ready_at + AT_ONCE_SECONDS else QUICK_SEARCH_SECONDS

    def _birth_pause(self, observer: Observer) -> float:
        """Until newborns, or ninja's records of jobs that have ended, are looked for again."""
        newborn = self._pace.next(unready=observer.expecting, due=observer.births_due)
        return min(newborn, self._logs_pace.next(time.monotonic()))

    def _tick(self, observer: Observer) -> float:
        if not observer.live_schedulers():
            return SEARCHING_TICK_SECONDS
        return TIGHT_TICK_SECONDS if self._governor.tight() else TICK_SECONDS

    def _pulse(self, observer: Observer) -> None:
        """What needs an answer within milliseconds."""
        now = time.time()
        events = self._follow()
        if self._deaths:
            self._deaths = False
            self._listen_until = time.monotonic() + LISTEN_SECONDS
            self._logs_pace.hurry(time.monotonic())
            events += self._governor.step()
        if time.monotonic() < self._listen_until:
            events += observer.read_output()
        births = observer.births(now)
        if births:
            self._pace.hurry()
            self._logs_pace.recorded(time.monotonic())
        events += births
        if looks := self._logs_pace.is_time(time.monotonic()):
            events += observer.read_logs(now)
        if events or (looks and self._ledger.owes):
            self._write(events, now)

    async def _end(self, observer: Observer) -> None:
        now = time.time()
        self._tell_steps(observer, now)  # some may have been over before there was a look
        self._write(observer.finish(now), now)
        self._write(await self._cache.finish(), now)
        ending = ending_of(self._paths, self._state, observer.sampler.count_written())
        alone = self._recovery.must_run_alone()
        async with self._supervisor.beating():
            async for events in findings(self._paths, self._spec, self._state, ending, alone, self._enough):
                self._write(events)
        self._write([*self._steps.ended(self._state, ending.exit_code), ending])
        async with self._supervisor.beating():
            await self._ledger.close()
        if ending.outcome == "done":
            self._paths.environment.unlink(missing_ok=True)  # nobody will go on with it

    # -- commands ----------------------------------------------------------------------------------------------

    async def _command(self, verb: str, arguments: dict[str, Any], uid: int) -> None:
        """Carry out what a viewer asks for; raises CommandRefused."""
        if verb != "stop":
            self._write(carry_out(self._governor, verb, arguments, login_name(uid)))
            self._bell.ring()
            return
        force = arguments.get("force", False) is True
        let_go(self._governor)
        self._enough.set()
        try:
            stop_build(self._paths, force)
        except NothingToStopError as err:
            raise CommandRefused(str(err)) from err
        self._write([ev.StopRequested(login_name(uid), force)])
