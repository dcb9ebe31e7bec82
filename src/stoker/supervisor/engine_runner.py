"""Keeps an engine running, and stands in for it while it is away or does not answer. Stdlib only.

Standing in means that nothing stays stopped for ever and that the level is kept: as running jobs end, jobs that the
engine had stopped are let go. It chooses nothing: the engine left behind in which order. Unaware of the build's end.

There is always a process that outlives us and will find that out: the kernel sends SIGCONT to the engine when we die,
which sets a stopped one going, and an engine that rests has a process, too.

Files in FOLDER: reads gate.json, and heartbeat's time, touched at every tick.
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
"""More deaths than this mean that something kills every engine, such as a machine out of memory; the build then goes
on for this long before another one begins."""

LAST_WORDS_SECONDS = 30.0
"""How long the engine may be silent, once the build is over, before it has written the end of the journal."""

LONGEST_WORDS_SECONDS = 180.0
"""How long it may take for that in all: it verifies what was built for up to two minutes
(engine/aftermath/verification.py)."""

LISTEN_SECONDS = 5.0
"""How often the engine is listened for: one small read, and no reason to wake a machine more often."""

DEAF_SECONDS = 15.0
"""An engine that was silent for this long hangs or is stopped: it ticks each second."""

WAKES_ENGINE = (signal.SIGUSR1, signal.SIGCONT)

STAND_IN_SECONDS = 0.25
"""How often processes are counted while jobs are stopped and no engine cares for them."""

PAUSE_SECONDS = 10.0
"""After so long without an engine even a build that a person has paused goes on, one job at a time: nobody could
unpause it."""

RETRY_SECONDS = 1.0
"""How often it is tried to start an engine where the machine lets nobody have another process."""

PR_SET_PDEATHSIG = 1  # linux/prctl.h

NO_PROGRAM = 127
"""Exit status of an engine that cannot be started, as shells give it."""


class EngineRunner:
    """One engine after the other. `tree` gives the pids of everything that an engine may have stopped."""

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
        """The engine's process; 0 while there is none, as no process is to be had for it."""

    def path(self, name: str) -> str:
        """Return a file of this build."""
        return os.path.join(self._folder, name)

    # -- the engine's life -------------------------------------------------------------------------------------

    def start(self, ready_fd: int | None = None, rest: float = 0.0) -> None:
        """Fork an engine, in a process group of its own; only the first one gets a `ready_fd`, which is ours now.

        It begins after `rest` seconds, or when it is woken, or when we have died. Where no process is to be had for it,
        the level is kept as while one rests, and `tick` tries again.
        """
        now = time.monotonic()
        self._ready_fd = self._ready_fd if ready_fd is None else ready_fd
        self._adopted = None
        mine = os.getpid()
        try:
            self.pid = os.fork()
        except OSError:
            self.pid, self._rests_until = 0, now + max(rest, RETRY_SECONDS)
            self._set_going_what_is_not_known()
            return
        if self.pid == 0:
            self._become_engine(rest, mine)
        self._silence, self._listened_at, self._rests_until = 0.0, now, now + rest
        if self._ready_fd is not None:
            os.close(self._ready_fd)
            self._ready_fd = None

    def _become_engine(self, rest: float, parent: int) -> None:
        """In the child. One whose `parent` has died before the kernel was asked to signal that does not rest."""
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
            signal.signal(signal.SIGUSR1, signal.SIG_IGN)  # a wake-up that comes before the engine listens
            restore_signals()
            if self._ready_fd is not None:
                os.set_inheritable(self._ready_fd, True)  # noqa: FBT003  (takes no keyword)
                environment[READY_FD] = str(self._ready_fd)
            os.execve(self._argv[0], [*self._argv, self._folder], environment)  # noqa: S606  (our own interpreter)
        finally:
            os._exit(NO_PROGRAM)

    def adopt(self, pid: int) -> None:
        """Mind an engine that somebody else started."""
        self.pid, self._adopted = pid, key_of(pid)

    def inherit(self) -> None:
        """Mind the engine of a supervisor that was killed, which is our child now; start one where there is none."""
        self._adopted, self.pid = None, self._own_engine()
        if not self.pid:
            self.start()

    def _own_engine(self) -> int:
        """Return the engine that is our child, 0 if there is none."""
        words = [os.fsencode(word) for word in (*self._argv, self._folder)]
        return next((pid for pid in Processes().children(os.getpid()) if command_line(pid) == words), 0)

    def ended(self) -> None:
        """The engine has died: start it again, unless it keeps dying. Then it rests, and the level is kept for it.

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
            self._set_going_what_is_not_known()

    def wake(self) -> None:
        """Something has happened that the engine should look at.

        One that rests begins for it, and gets as many tries as the first one had.
        """
        self._deaths.clear()
        self._rests_until = 0.0
        self._signal(signal.SIGUSR1)

    def reap(self) -> int | None:
        """Return the exit status of the engine if it has ended (1 where somebody else is its parent), else None."""
        if self._adopted is not None:
            return None if lives(self._adopted) else 1
        pid, status = os.waitpid(self.pid, os.WNOHANG) if self.pid else (0, 0)
        return status if pid else None

    def await_last_words(self) -> bool:
        """The build is over: let an engine finish the journal, one that rested too, which reads what it missed.

        Return whether one has.
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
        """Try again where no process was to be had."""
        if not self.pid and not self._rests():
            self.start()

    def _signal(self, signum: int) -> None:
        """To the engine, if there is one: pid 0 would be our own process group."""
        signal_tree([self.pid] if self.pid else [], signum)

    # -- in its stead ------------------------------------------------------------------------------------------

    def patience(self) -> float:
        """Seconds until the next tick is due, if nothing happens before."""
        if self._stands_in:
            return STAND_IN_SECONDS
        return LISTEN_SECONDS if self.pid else RETRY_SECONDS

    def tick(self) -> None:
        """Listen for the engine; while it is away, let jobs go in its stead."""
        self._listen()
        self._start_if_missing()
        deaf = self._silence >= DEAF_SECONDS
        away = self._rests() or deaf
        gate = read_gate(self._folder) if away else None
        if deaf and gate is None and not self._rests():
            self._rouse()
        self._stands_in = gate is not None and self._let_go(gate)

    def _rouse(self) -> None:
        """The engine came to nothing in its first tick, at which a wide scheduler's jobs are held: nobody knows whom.

        It is woken, if it was stopped. Should that not help, all that is stopped goes on.
        """
        self._signal(signal.SIGCONT)
        if self._silence >= 2 * DEAF_SECONDS:
            self._set_going_what_is_not_known()

    def set_all_going(self) -> None:
        """Nobody will let jobs go any more: everything that may be stopped goes on."""
        gate = read_gate(self._folder)
        processes = Processes()
        signal_tree([*held_pids(gate, processes), *self._tree()], signal.SIGCONT)

    def _rests(self) -> bool:
        """Say whether the engine has not begun, since it died too often."""
        return time.monotonic() < self._rests_until

    def _listen(self) -> None:
        """Count for how long no heartbeat came.

        By changes of the file's time, as clocks jump; and what we slept through ourselves, as a machine that was
        suspended does, counts as one tick.
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

    def _let_go(self, gate: Gate) -> bool:
        """While fewer jobs run than may: let the next one go. True if some are still stopped."""
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

    def _set_going_what_is_not_known(self) -> None:
        """What an engine stopped and had no time to write down would stay stopped."""
        gate = read_gate(self._folder)
        processes = Processes()
        known = held_pids(gate, processes)
        signal_tree([pid for pid in self._tree() if pid not in known], signal.SIGCONT)


def running_jobs(processes: Processes, schedulers: Iterable[Key]) -> int:
    """Return how many of the schedulers' jobs are not stopped."""
    return sum(not processes.is_stopped(key) for key in jobs_of(processes, schedulers))


def stopped_jobs(processes: Processes, schedulers: Iterable[Key]) -> list[Key]:
    """Return those that are, the oldest first. A stopped engine has had no time to write down the last ones."""
    return sorted((k for k in jobs_of(processes, schedulers) if processes.is_stopped(k)), key=lambda k: (k[1], k[0]))


def is_settled(before: Processes, schedulers: Iterable[Key]) -> bool:
    """Say whether the schedulers rest since that scan: one that is awake may be about to start a job in place
    of one that has ended, and both that and one of ours would run."""
    states = [b"".join(stat_fields(pid)[:1]) for pid, _ in schedulers]
    asleep = not any(state in (b"R", b"D") for state in states)
    return asleep and set(jobs_of(before, schedulers)) == set(jobs_of(Processes(), schedulers))


def jobs_of(processes: Processes, schedulers: Iterable[Key]) -> list[Key]:
    """Return the schedulers' children, but for those that only carry another scheduler."""
    living = {key[0] for key in schedulers if processes.lives(key)}
    children = [processes.key(child) for pid in living for child in processes.children(pid)]
    return [key for key in children if not living.intersection(processes.job(key))]


def restore_signals() -> None:
    """Before exec: what Python and the supervisor ignore, catch or block must not reach a compiler."""
    for signum in (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())
