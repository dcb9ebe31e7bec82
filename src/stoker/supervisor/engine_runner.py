"""Keeps an engine running, and acts in its place while it is away or does not answer. Stdlib only.

Acting in its place means that nothing stays stopped forever and that the level is maintained: as running jobs end, jobs
that the engine had stopped are released. It chooses nothing: the engine left the order. Unaware of the build's end.

There is always a process that outlives us and notices our death: the kernel sends SIGCONT to the engine when we die,
which continues a stopped one, and an engine that rests has a process, too.

Files in FOLDER: reads gate.json, and the time of heartbeat, which the engine touches every tick.
"""

import ctypes
import os
import signal
import time
from collections.abc import Callable, Iterable

from stoker.act.held import held_pids, pids_of
from stoker.act.tree import Processes, command_line, signal_tree
from stoker.contract.gate_file import Gate, read_gate
from stoker.contract.process import Key, key_of, lives, stat_fields

READY_FD = "STOKER_READY_FD"
"""Names the file descriptor that the first engine closes when it watches: until then the build waits."""

RESTARTS_PER_MINUTE = 6
REST_SECONDS = 60.0
"""More deaths than this mean that something kills every engine, such as a machine out of memory; the build then
continues for this long before the next one starts."""

LAST_WORDS_SECONDS = 30.0
"""How long the engine may be silent after the end of the build before it has written the end of the journal."""

LONGEST_WORDS_SECONDS = 180.0
"""How long it may take for that in all: it verifies what was built for up to two minutes
(engine/aftermath/verification.py)."""

LISTEN_SECONDS = 5.0
"""How often to check the engine's heartbeat: one small read, and no reason to wake a machine more often."""

DEAF_SECONDS = 15.0
"""An engine that was silent for this long hangs or is stopped: it ticks every second."""

WAKES_ENGINE = (signal.SIGUSR1, signal.SIGCONT)

STAND_IN_SECONDS = 0.25
"""How often to count processes while jobs are stopped and no engine is responsible for them."""

PAUSE_SECONDS = 10.0
"""After so long without an engine even a paused build continues, one job at a time: nobody could unpause it."""

RETRY_SECONDS = 1.0
"""How often to try to start an engine when the machine has no process left for it."""

PR_SET_PDEATHSIG = 1  # linux/prctl.h

NO_PROGRAM = 127
"""Exit status of an engine that cannot be started, as in shells."""


class EngineRunner:
    """One engine after the other. `tree` returns the pids of everything that an engine may have stopped."""

    def __init__(self, folder: str, argv: tuple[str, ...], tree: Callable[[], list[int]]) -> None:
        self._folder = folder
        self._argv = argv
        self._tree = tree
        self._adopted: Key | None = None
        self._deaths: list[float] = []
        self._rests_until = 0.0
        self._beat = 0
        self._listened_at = time.monotonic()
        self._silence = 0.0
        self._stands_in = False
        self._ready_fd: int | None = None
        self.pid = 0
        """The engine's process; 0 while there is none, because no process could be started for it."""

    def path(self, name: str) -> str:
        """Return a file of this build."""
        return os.path.join(self._folder, name)

    # -- the engine's life -------------------------------------------------------------------------------------

    def start(self, ready_fd: int | None = None, rest: float = 0.0) -> None:
        """Fork an engine, in a process group of its own; only the first one gets a `ready_fd`, which is ours now.

        It starts after `rest` seconds, or when it is woken, or when we have died. If no process can be started for it,
        the level is maintained as while an engine rests, and `tick` tries again.
        """
        now = time.monotonic()
        self._ready_fd = self._ready_fd if ready_fd is None else ready_fd
        self._adopted = None
        mine = os.getpid()
        try:
            self.pid = os.fork()
        except OSError:
            self.pid, self._rests_until = 0, now + max(rest, RETRY_SECONDS)
            self._continue_unknown()
            return
        if self.pid == 0:
            self._become_engine(rest, mine)
        self._silence, self._listened_at, self._rests_until = 0.0, now, now + rest
        if self._ready_fd is not None:
            os.close(self._ready_fd)
            self._ready_fd = None

    def _become_engine(self, rest: float, parent: int) -> None:
        """In the child. If its `parent` died before the kernel was asked for a signal at its death, it does not
        rest."""
        try:
            environment = dict(os.environ)
            os.setpgid(0, 0)
            signal.pthread_sigmask(signal.SIG_BLOCK, WAKES_ENGINE)
            ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGCONT, 0, 0, 0)
            if rest and os.getppid() == parent:
                signal.sigtimedwait(WAKES_ENGINE, rest)
            log = os.open(self.path("engine.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # a wakeup that arrives before the engine listens
            restore_signals()
            if self._ready_fd is not None:
                os.set_inheritable(self._ready_fd, True)  # noqa: FBT003  (takes no keyword)
                environment[READY_FD] = str(self._ready_fd)
            os.execve(self._argv[0], [*self._argv, self._folder], environment)  # noqa: S606  (our own interpreter)
        finally:
            os._exit(NO_PROGRAM)

    def adopt(self, pid: int) -> None:
        """Supervise an engine that somebody else started."""
        self.pid, self._adopted = pid, key_of(pid)

    def inherit(self) -> None:
        """Supervise the engine of a killed supervisor, which is our child now; start one if there is none."""
        self._adopted, self.pid = None, self._own_engine()
        if not self.pid:
            self.start()

    def _own_engine(self) -> int:
        """Return the engine that is our child, 0 if there is none."""
        words = [os.fsencode(word) for word in (*self._argv, self._folder)]
        return next((pid for pid in Processes().children(os.getpid()) if command_line(pid) == words), 0)

    def ended(self) -> None:
        """The engine has died: start it again, unless it keeps dying. Then it rests, and the level is maintained for
        it.

        There may be another one, which a supervisor started as it was killed and which we did not find at once.
        """
        if other := self._own_engine():
            self._adopted, self.pid = None, other
            return
        now = time.monotonic()
        self._deaths = [t for t in self._deaths if now - t < 60.0] + [now]
        if len(self._deaths) <= RESTARTS_PER_MINUTE:
            self.start()
        else:
            self.start(rest=REST_SECONDS)
            self._continue_unknown()

    def wake(self) -> None:
        """Something has happened that the engine should look at.

        A resting engine starts for it, and gets as many tries as the first one.
        """
        self._deaths.clear()
        self._rests_until = 0.0
        self._signal(signal.SIGUSR1)

    def reap(self) -> int | None:
        """Return the exit status of the engine if it has ended (1 if somebody else is its parent), otherwise None."""
        if self._adopted is not None:
            return None if lives(self._adopted) else 1
        pid, status = os.waitpid(self.pid, os.WNOHANG) if self.pid else (0, 0)
        return status if pid else None

    def await_last_words(self) -> bool:
        """The build is over: let an engine, even a resting one, finish the journal and read what it missed.

        Return whether one has done so.
        """
        give_up_at = time.monotonic() + LONGEST_WORDS_SECONDS
        self._silence = self._rests_until = 0.0
        self._signal(signal.SIGCONT)
        while (
            (not self.pid or not self._rests()) and self._silence < LAST_WORDS_SECONDS and time.monotonic() < give_up_at
        ):
            self._listen()
            self._start_if_missing()
            status = self.reap()
            if status == 0:
                return True
            if status is None:
                time.sleep(0.02)
            else:
                self.ended()
        self._signal(signal.SIGKILL)
        return False

    def _start_if_missing(self) -> None:
        """Try again after no process could be started."""
        if not self.pid and not self._rests():
            self.start()

    def _signal(self, signum: int) -> None:
        """Signal the engine, if there is one: pid 0 would be our own process group."""
        signal_tree([self.pid] if self.pid else [], signum)

    # -- in its place ------------------------------------------------------------------------------------------

    def patience(self) -> float:
        """Seconds until the next tick is due if nothing happens before."""
        if self._stands_in:
            return STAND_IN_SECONDS
        return LISTEN_SECONDS if self.pid else RETRY_SECONDS

    def tick(self) -> None:
        """Check the engine's heartbeat; while it is away, release jobs in its place."""
        self._listen()
        self._start_if_missing()
        deaf = self._silence >= DEAF_SECONDS
        away = self._rests() or deaf
        gate = read_gate(self._folder) if away else None
        if deaf and gate is None and not self._rests():
            self._rouse()
        self._stands_in = gate is not None and self._release_next(gate)

    def _rouse(self) -> None:
        """The engine failed in its first tick, at which a wide scheduler's jobs are held: nobody knows which.

        Wake it, in case it was stopped. If that does not help, everything that is stopped continues.
        """
        self._signal(signal.SIGCONT)
        if self._silence >= 2 * DEAF_SECONDS:
            self._continue_unknown()

    def set_all_going(self) -> None:
        """Nobody will release jobs any more: continue everything that may be stopped."""
        gate = read_gate(self._folder)
        processes = Processes()
        signal_tree([*held_pids(gate, processes), *self._tree()], signal.SIGCONT)

    def _rests(self) -> bool:
        """Say whether the engine has not started, because it died too often."""
        return time.monotonic() < self._rests_until

    def _listen(self) -> None:
        """Measure how long there was no heartbeat.

        By changes of the file's time, as clocks jump; and time that we slept through ourselves, as on a suspended
        machine, counts as one tick.
        """
        try:
            beat = os.stat(self.path("heartbeat")).st_mtime_ns
        except OSError:
            beat = 0
        now = time.monotonic()
        self._silence += min(now - self._listened_at, LISTEN_SECONDS)
        if beat != self._beat:
            self._beat, self._silence = beat, 0.0
        self._listened_at = now

    def _release_next(self, gate: Gate) -> bool:
        """While fewer jobs run than may: release the next one. True if some are still stopped."""
        processes = Processes()
        level = gate.level or (1 if self._silence > PAUSE_SECONDS else 0)
        listed = [key for key in gate.stopped if processes.is_stopped(key)]
        stopped = [*listed, *(key for key in stopped_jobs(processes, gate.schedulers) if key not in listed)]
        free = max(0, level - running_jobs(processes, gate.schedulers))
        if free and stopped and not is_settled(processes, gate.schedulers):
            return True
        for key in stopped[:free]:
            signal_tree(pids_of(gate, processes, key), signal.SIGCONT)
        return len(stopped) > free

    def _continue_unknown(self) -> None:
        """Continue what an engine stopped and had no time to write down; it would stay stopped otherwise."""
        gate = read_gate(self._folder)
        processes = Processes()
        known = held_pids(gate, processes)
        signal_tree([pid for pid in self._tree() if pid not in known], signal.SIGCONT)


def running_jobs(processes: Processes, schedulers: Iterable[Key]) -> int:
    """Return how many of the schedulers' jobs are not stopped."""
    return sum(not processes.is_stopped(key) for key in jobs_of(processes, schedulers))


def stopped_jobs(processes: Processes, schedulers: Iterable[Key]) -> list[Key]:
    """Return those that are, oldest first. A stopped engine has had no time to write down the last ones."""
    return sorted((k for k in jobs_of(processes, schedulers) if processes.is_stopped(k)), key=lambda k: (k[1], k[0]))


def is_settled(before: Processes, schedulers: Iterable[Key]) -> bool:
    """Say whether the schedulers have slept since that scan: one that is awake may be about to start a job in place of
    one that has ended, and both that and one of ours would run."""
    states = [b"".join(stat_fields(pid)[:1]) for pid, _ in schedulers]
    asleep = not any(state in (b"R", b"D") for state in states)
    return asleep and set(jobs_of(before, schedulers)) == set(jobs_of(Processes(), schedulers))


def jobs_of(processes: Processes, schedulers: Iterable[Key]) -> list[Key]:
    """Return the schedulers' children, except those that only contain another scheduler."""
    living = {key[0] for key in schedulers if processes.lives(key)}
    children = [processes.key(child) for pid in living for child in processes.children(pid)]
    return [key for key in children if not living.intersection(processes.job(key))]


def restore_signals() -> None:
    """Before exec: reset signals that Python and the supervisor ignore, catch or block, so that they do not reach a
    compiler."""
    for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
