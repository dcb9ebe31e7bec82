"""The engine: one loop that looks at the build, writes down what is new and tells the viewers, until the build is over.

It may be killed at any moment: everything it must remember is in the journal. Unaware of screens.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import pwd
import shutil
import signal
import socket
import time
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from stoker import __version__
from stoker.act.keeper import start_ticks
from stoker.act.stop import NothingToStopError, stop_build
from stoker.config.paths import BuildPaths, UnsafeFolderError
from stoker.decide.eta import estimate
from stoker.engine.ending import ending_of
from stoker.engine.observer import Observer, Roots
from stoker.engine.verification import announcement, verify_written
from stoker.engine.written import find_written
from stoker.model import events as ev
from stoker.model.reduce import reduce
from stoker.model.state import BuildState
from stoker.model.update import CommandRefused
from stoker.record.journal import JournalWriter, load_state
from stoker.sense.watch import watch
from stoker.serve.endpoint import EngineAliveError
from stoker.serve.server import Server

TICK_SECONDS = 1.0
"""Between two looks while a scheduler works: what a person sees as live, and cheap beside 30 compilers."""

SEARCHING_TICK_SECONDS = 0.2
"""While no scheduler runs: a short ninja (a configure check, the end of a build) must not slip through."""

ESTIMATE_EVERY = 5.0
LINGER_SECONDS = 3.0
"""How long viewers get to read the end before the socket goes; they find it in the journal as well."""


class Engine:
    """One build's engine."""

    def __init__(self, paths: BuildPaths) -> None:
        self._paths = paths
        self._spec: dict[str, Any] = json.loads(paths.spec.read_bytes())
        self._keeper: dict[str, Any] = json.loads(paths.keeper.read_bytes())
        self._journal = JournalWriter(paths.journal)
        self._state: BuildState = load_state(paths.journal)
        self._server = Server(paths.socket, self._command, lambda: self._state)
        self._keeper_lives = self._keeper_is_there()
        self._wake = asyncio.Event()
        self._watched: frozenset[str] = frozenset()
        self._watcher: asyncio.Task[None] | None = None
        self._estimated_at = 0.0
        self._journal_problem: str | None = None

    async def run(self) -> None:
        """Until the build is over; raises nothing that the keeper would not answer with a new engine."""
        self._listen_to_signals()
        if self._state.over:
            return
        self._begin()
        await self._open_socket()
        plans = self._empty_scratch()
        observer = Observer(self._roots(), self._state, self._paths.output, plans)
        try:
            while not self._build_is_over():
                await self._look(observer)
                await self._sleep(observer)
            await self._end(observer)
        finally:
            self._watch_logs(frozenset())
            await observer.close()
            shutil.rmtree(plans, ignore_errors=True)
        await self._server.close(LINGER_SECONDS)

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
            text = f"no socket for viewers: {err}; they read the journal instead"
            self._write([ev.Noticed("error", text)], time.time())

    def _listen_to_signals(self) -> None:
        """A terminal's signals are not for the engine; SIGTERM ends it, and the keeper starts another."""
        for signum in (signal.SIGINT, signal.SIGHUP):
            signal.signal(signum, signal.SIG_IGN)

    # -- the journal -------------------------------------------------------------------------------------------

    def _begin(self) -> None:
        """The journal's head, or a word that another engine has taken over."""
        adopted = self._state.seq > 0
        events: list[ev.Event] = []
        command = tuple(self._spec["command"])
        if not adopted:
            events.append(
                ev.BuildStarted(
                    self._paths.id,
                    self._spec["name"],
                    command,
                    self._spec["cwd"],
                    str(self._paths.output),
                    socket.gethostname(),
                    os.cpu_count() or 1,
                    os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
                    __version__,
                )
            )
        events.append(ev.EngineStarted(os.getpid(), adopted))
        if adopted:
            why = f"engine {self._state.engine_pid} was gone; the build and {len(self._state.jobs)} jobs went on"
            events.append(ev.Decided("engine", "took over the running build", why))
        if self._state.step is None:
            events.append(ev.StepStarted(1, 1, self._spec["name"], command, self._keeper["build_pid"]))
        self._write(events, self._keeper["started"] if not adopted else time.time())

    def _write(self, events: Iterable[ev.Event], now: float) -> None:
        """Journal, state, viewers: in this order, so that nobody sees what is not written down."""
        lines, records = [], []
        for event in events:
            record, line = self._journal.append(event, now)
            self._state = reduce(self._state, record)
            records.append(record)
            lines.append(line)
        self._journal.flush()
        self._journal.checkpoint(self._state)
        self._server.publish(lines, records)
        self._report_journal_problem(now)

    def _report_journal_problem(self, now: float) -> None:
        """A journal that cannot be written is told to viewers once; it is in memory, and written when there is room."""
        problem = self._journal.problem
        if problem != self._journal_problem:
            self._journal_problem = problem
            event = ev.Noticed("error", problem) if problem else ev.Noticed("info", "the journal can be written again")
            self._write([event], now)

    # -- the loop ----------------------------------------------------------------------------------------------

    def _roots(self) -> Roots:
        build = self._keeper["build_pid"]
        top = self._keeper["keeper_pid"] if self._keeper_lives else build
        return Roots(top, build, self._spec["cwd"], tuple(self._spec["command"]))

    def _keeper_is_there(self) -> bool:
        return bool(start_ticks(self._keeper["keeper_pid"]) == self._keeper["keeper_start"])

    async def _look(self, observer: Observer) -> None:
        now = time.time()
        if self._keeper_lives and not self._keeper_is_there():
            self._keeper_lives = False
            observer.watch_below(self._keeper["build_pid"])
            text = "the keeper was killed; the build goes on, but its exit status will be lost"
            self._write([ev.Noticed("error", text)], now)
        events = await observer.look(now)
        if now - self._estimated_at >= ESTIMATE_EVERY:
            self._estimated_at = now
            guess = estimate(self._state, now)
            events += [guess] if guess is not None else []
        self._write(events, now)
        self._watch_logs(observer.log_folders())
        with contextlib.suppress(UnsafeFolderError, EngineAliveError, OSError):  # until the next login, perhaps
            await self._server.listen_again()

    async def _sleep(self, observer: Observer) -> None:
        """Until the next look; ninja's records that arrive in between are written down at once."""
        deadline = time.monotonic() + (TICK_SECONDS if observer.live_schedulers() else SEARCHING_TICK_SECONDS)
        while (left := deadline - time.monotonic()) > 0 and not self._build_is_over():
            with contextlib.suppress(TimeoutError):
                await asyncio.wait_for(self._wake.wait(), left)
            if self._wake.is_set():
                self._wake.clear()
                now = time.time()
                self._write(observer.read_logs(now), now)

    def _watch_logs(self, folders: frozenset[str]) -> None:
        """Watch these folders from now on: ninja's records wake the loop."""
        if folders == self._watched:
            return
        self._watched = folders
        if self._watcher is not None:
            self._watcher.cancel()
        self._watcher = asyncio.create_task(self._wake_on_change(folders))

    async def _wake_on_change(self, folders: frozenset[str]) -> None:
        async for _ in watch(folders):
            self._wake.set()

    def _build_is_over(self) -> bool:
        if self._paths.exit.exists():
            return True
        return not self._keeper_is_there() and start_ticks(self._keeper["build_pid"]) != self._keeper["build_start"]

    async def _end(self, observer: Observer) -> None:
        now = time.time()
        self._write(observer.finish(now), now)
        ending = ending_of(self._paths, self._state)
        if ending.outcome == "done" and self._state.verification is None:
            await self._verify()
            now = time.time()
        self._write([ev.StepEnded(1, ending.exit_code), ending], now)
        self._journal.close()

    async def _verify(self) -> None:
        """What the build wrote for GPUs; whatever comes of it, the build has ended well."""
        try:
            written = await asyncio.to_thread(find_written, self._paths.journal, self._state.started)
            self._write(announcement(written), time.time())
            if written.paths:
                self._write(await verify_written(written, os.environ), time.time())
        except Exception as err:  # noqa: BLE001  (a fault in here must not cost the build its end)
            self._write([ev.Noticed("warning", f"verification failed: {err!r}")], time.time())

    # -- commands ----------------------------------------------------------------------------------------------

    async def _command(self, verb: str, arguments: dict[str, Any], uid: int) -> None:
        """Carry out what a viewer asks for; raises CommandRefused."""
        if verb != "stop":
            raise CommandRefused(f"no command {verb!r}; this engine knows: stop")
        force = arguments.get("force", False) is True
        try:
            stop_build(self._paths, force)
        except NothingToStopError as err:
            raise CommandRefused(str(err)) from err
        self._write([ev.StopRequested(_login_name(uid), force)], time.time())


def _login_name(uid: int) -> str:
    try:
        return pwd.getpwuid(uid).pw_name
    except KeyError:
        return f"uid {uid}"
