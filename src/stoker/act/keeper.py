"""The keeper: parent of the build, too small to fail. Runs as `python -I -S keeper.py FOLDER`, stdlib only.

It starts the build and the engine, restarts the engine when that dies, ends the build's whole tree when it gets
SIGTERM, and writes the build's exit status. It knows nothing of jobs, journals or viewers, and imports nothing of
stoker, so that no fault elsewhere can reach it.

Files in FOLDER: reads spec.json {"command", "cwd", "engine"}; writes keeper.json when the build has started and
exit.json when it has ended; the build's output goes straight to output.log.
"""

import ctypes
import json
import os
import signal
import sys
import time

STOP_GRACE_SECONDS = 10.0
"""How long the build's processes may take to end after SIGTERM, before SIGKILL: ninja needs a moment to delete
half-written outputs, and `docker stop` has taught people this figure."""

STOP_POLL_SECONDS = 0.05
"""How often the tree is read while it is being ended."""

ENGINE_RESTARTS_PER_MINUTE = 6
ENGINE_REST_SECONDS = 60.0
"""More deaths than this mean that something kills every engine, such as a machine out of memory; the build then goes
on without one for this long."""

ENGINE_LAST_WORDS_SECONDS = 30.0
"""How long the engine may take to write the end of the journal once the build is over."""

COMMAND_NOT_FOUND = 127
COMMAND_NOT_EXECUTABLE = 126
"""Exit statuses of a command that cannot be started, as shells give them."""

PR_SET_CHILD_SUBREAPER = 36  # linux/prctl.h
WAKE_UP_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT)


class Keeper:
    """One build, from its start to the engine's last words."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        with open(self.path("spec.json"), encoding="utf-8", errors="surrogateescape") as file:
            self.spec = json.load(file)
        self.build_pid = 0
        self.engine_pid = 0
        self.engine_deaths: list[float] = []
        self.engine_back_at = 0.0
        self.exit_code: int | None = None
        self.build_signal: int | None = None
        self.stop_requests = 0
        self.kill_at = 0.0
        self.asked_to_end: set[int] = set()

    def path(self, name: str) -> str:
        """A file of this build."""
        return os.path.join(self.folder, name)

    def run(self) -> None:
        """Start everything, then wait for children and signals until the build and the engine are done."""
        become_subreaper()
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        signal.pthread_sigmask(signal.SIG_BLOCK, WAKE_UP_SIGNALS)
        self.start_build()
        self.write_keeper_file()
        self.start_engine()
        while not self.build_is_over():
            self.wait_for_something(self.patience())
            self.reap()
            self.press_stop()
            self.revive_engine()
        self.write_exit_file()
        self.await_last_words()

    def build_is_over(self) -> bool:
        """The command has ended; after a stop, everything that it left behind must have ended too."""
        return self.build_pid == 0 and not (self.stop_requests and self.tree())

    def patience(self) -> float | None:
        """Seconds to sleep when nothing happens: for ever, unless a stop is under way or the engine rests."""
        if self.stop_requests:
            return STOP_POLL_SECONDS
        return None if self.engine_pid else ENGINE_REST_SECONDS

    # -- the build ---------------------------------------------------------------------------------------------

    def start_build(self) -> None:
        """Fork the command; it becomes the parent of everything that the build does."""
        self.build_pid = os.fork()
        if self.build_pid == 0:
            self.become_build()

    def become_build(self) -> None:
        """In the child: a process group of its own, output to the log, and the command."""
        os.setpgid(0, 0)
        command = [os.fsencode(word) for word in self.spec["command"]]
        code = COMMAND_NOT_FOUND
        try:
            log = os.open(self.path("output.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            restore_signals()
            os.chdir(os.fsencode(self.spec["cwd"]))
            os.execvp(command[0], command)  # noqa: S606  (the user's own command, as a list)
        except OSError as err:
            if not isinstance(err, FileNotFoundError):
                code = COMMAND_NOT_EXECUTABLE
            os.write(2, b"stoker: " + command[0] + b": " + os.fsencode(err.strerror or "cannot be started") + b"\n")
        finally:
            os._exit(code)

    def build_ended(self, status: int) -> None:
        """Note the command's status in the shell's convention: 128 + signal."""
        code = os.waitstatus_to_exitcode(status)
        self.build_pid = 0
        self.build_signal = -code if code < 0 else None
        self.exit_code = 128 - code if code < 0 else code

    def write_exit_file(self) -> None:
        """What every viewer waits for."""
        self.write_file(
            "exit.json",
            {
                "exit_code": self.exit_code,
                "signal": self.build_signal,
                "ended": time.time(),
                "stopped": self.stop_requests > 0,
            },
        )

    def stop_requested(self, signum: int) -> None:
        """SIGTERM: the same to all, and SIGKILL after the grace time, however often it comes. SIGINT: SIGKILL now."""
        if signum == signal.SIGINT:
            self.kill_at = time.monotonic()
        elif not self.stop_requests:
            self.kill_at = time.monotonic() + STOP_GRACE_SECONDS
        self.stop_requests += 1

    def press_stop(self) -> None:
        """While a stop is under way: one SIGTERM to each process of the tree, or SIGKILL when the time is up.

        Called again and again, because a process may fork while the tree is being read.
        """
        if not self.stop_requests:
            return
        tree = self.tree()
        if time.monotonic() >= self.kill_at:
            signal_tree(tree, signal.SIGKILL)
            return
        signal_tree([pid for pid in tree if pid not in self.asked_to_end], signal.SIGTERM)
        self.asked_to_end.update(tree)

    def tree(self) -> list[int]:
        """Every live descendant but the engine's branch."""
        return descendants(os.getpid(), self.engine_pid)

    # -- the engine --------------------------------------------------------------------------------------------

    def start_engine(self) -> None:
        """Fork the engine, in a process group of its own."""
        argv = self.spec["engine"]
        self.engine_pid = os.fork()
        if self.engine_pid:
            return
        try:
            os.setpgid(0, 0)
            log = os.open(self.path("engine.log"), os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)
            os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
            os.dup2(log, 1)
            os.dup2(log, 2)
            restore_signals()
            os.execv(argv[0], [*argv, self.folder])  # noqa: S606  (our own interpreter)
        finally:
            os._exit(COMMAND_NOT_FOUND)

    def engine_ended(self) -> None:
        """Start it again, unless it keeps dying: then it rests, and all that it may have stopped is set going."""
        self.engine_pid = 0
        now = time.monotonic()
        self.engine_deaths = [t for t in self.engine_deaths if now - t < 60.0] + [now]
        if len(self.engine_deaths) <= ENGINE_RESTARTS_PER_MINUTE:
            self.start_engine()
        else:
            self.engine_back_at = now + ENGINE_REST_SECONDS
            signal_tree(self.tree(), signal.SIGCONT)

    def revive_engine(self) -> None:
        """Try again after its rest: hours of a build must not go unseen because of one bad minute."""
        if not self.engine_pid and time.monotonic() >= self.engine_back_at:
            self.start_engine()

    def await_last_words(self) -> None:
        """The build is over: let an engine finish the journal, one that rested too, which reads what it missed."""
        deadline = time.monotonic() + ENGINE_LAST_WORDS_SECONDS
        if self.engine_pid:
            os.kill(self.engine_pid, signal.SIGCONT)
        else:
            self.start_engine()
        while self.engine_pid and time.monotonic() < deadline:
            self.wait_for_something(deadline - time.monotonic())
            self.reap(restart_engine_on_success=False)
        if self.engine_pid:
            os.kill(self.engine_pid, signal.SIGKILL)

    # -- waiting -----------------------------------------------------------------------------------------------

    def wait_for_something(self, timeout: float | None) -> None:
        """Sleep until a child ends, a signal asks for a stop, or `timeout` seconds are over."""
        if timeout is None:
            info: signal.struct_siginfo | None = signal.sigwaitinfo(WAKE_UP_SIGNALS)
        else:
            info = signal.sigtimedwait(WAKE_UP_SIGNALS, max(0.0, timeout))
        if info is not None and info.si_signo != signal.SIGCHLD:
            self.stop_requested(info.si_signo)

    def reap(self, restart_engine_on_success: bool = True) -> None:
        """Collect every child that has ended: the build, the engine, and orphans that were handed to us."""
        while True:
            try:
                pid, status = os.waitpid(-1, os.WNOHANG)
            except ChildProcessError:
                return
            if pid == 0:
                return
            if pid == self.build_pid:
                self.build_ended(status)
            elif pid == self.engine_pid:
                if status == 0 and not restart_engine_on_success:
                    self.engine_pid = 0
                else:
                    self.engine_ended()

    # -- files -------------------------------------------------------------------------------------------------

    def write_keeper_file(self) -> None:
        """Who is who, for engines and viewers that come later."""
        self.write_file(
            "keeper.json",
            {
                "keeper_pid": os.getpid(),
                "keeper_start": start_ticks(os.getpid()),
                "build_pid": self.build_pid,
                "build_start": start_ticks(self.build_pid),
                "started": time.time(),
            },
        )

    def write_file(self, name: str, value: object) -> None:
        """Whole or not at all; a full disk is tried again, since the exit status must not be lost."""
        data = json.dumps(value).encode()
        for pause in (0.1, 1.0, 5.0, 0.0):
            try:
                self.write_file_once(name, data)
            except OSError:
                time.sleep(pause)
            else:
                return

    def write_file_once(self, name: str, data: bytes) -> None:
        """Replace the file; not O_TRUNC, since exit.json.new holds a block reserved when the disk had room."""
        fd = os.open(self.path(name + ".new"), os.O_WRONLY | os.O_CREAT, 0o600)
        try:
            os.ftruncate(fd, os.write(fd, data))
            os.fsync(fd)
        finally:
            os.close(fd)
        os.replace(self.path(name + ".new"), self.path(name))


def become_subreaper() -> None:
    """Orphans of the build come to the keeper, not to init, so that stopping finds them (prctl(2))."""
    ctypes.CDLL(None, use_errno=True).prctl(PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def restore_signals() -> None:
    """Before exec: what Python and the keeper ignore or block must not be inherited by a compiler."""
    for signum in (signal.SIGHUP, signal.SIGPIPE, signal.SIGXFSZ):
        signal.signal(signum, signal.SIG_DFL)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def stat_fields(pid: int) -> list[bytes]:
    """The fields of /proc/PID/stat behind the command's name: state, ppid, ...; empty if the process is gone."""
    try:
        with open(f"/proc/{pid}/stat", "rb") as file:
            return file.read().rpartition(b")")[2].split()
    except OSError:
        return []


def start_ticks(pid: int) -> int | None:
    """When the process started, in clock ticks since boot: with the pid, its identity. None for a zombie too."""
    fields = stat_fields(pid)
    return int(fields[19]) if fields and fields[0] != b"Z" else None


def descendants(root: int, spared: int = 0) -> list[int]:
    """Pids of all processes below `root` that are not zombies, leaving out `spared` and what is below it."""
    children: dict[int, list[int]] = {}
    zombies = set()
    for name in os.listdir("/proc"):
        if name.isdigit() and (fields := stat_fields(int(name))):
            children.setdefault(int(fields[1]), []).append(int(name))
            if fields[0] == b"Z":
                zombies.add(int(name))
    found: list[int] = []
    todo = [root]
    while todo:
        below = [pid for pid in children.get(todo.pop(), ()) if pid != spared]
        todo += below
        found += [pid for pid in below if pid not in zombies]
    return found


def signal_tree(pids: list[int], signum: int) -> None:
    """Send `signum`; what is stopped is set going, or it could not act on it."""
    for pid in pids:
        try:
            os.kill(pid, signum)
            if signum != signal.SIGCONT:
                os.kill(pid, signal.SIGCONT)
        except (ProcessLookupError, PermissionError):
            continue


if __name__ == "__main__":
    Keeper(sys.argv[1]).run()
