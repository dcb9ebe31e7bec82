"""The supervisor: parent of the build, too small to fail. Runs as `python -I -S supervisor.py FOLDER`, stdlib only.

It starts the build and the engine, restarts the engine when that dies (engine_runner.py), ends the build's whole
process tree on SIGTERM, runs the commands of its steps one after the other, repeats one when the engine says so, and
writes the build's exit status: that of the first step that fails. Standbys take its place when it is killed
(standby.py). It knows nothing of journals or viewers, and of jobs only that the engine may leave some behind. From
stoker it imports only contract/ and modules that are as simple, so that faults elsewhere cannot reach it.

Files in FOLDER, whose contents contract/ defines: reads spec.json; writes supervisor.json when a step has started,
stopping when the build is being stopped, left_over.json before it ends what a command has left behind, ended.json when
its command has failed and the engine is asked what to do, and exit.json when the build has ended; reads the answer from
verdict.json. SIGUSR1 means that there is something to read. The build's output goes straight to output.log.
"""

import contextlib
import os
import signal
import sys
import time
from collections.abc import Iterable

if not __package__:  # run as a file; -I keeps its folder off the path. At the end, so that the stdlib comes first.
    sys.path.append(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))))

from stoker.act import ramdisk, stop_container
from stoker.act.notify_hook import call_hook, claim_end
from stoker.act.tree import Ending, Processes, command_line, descendants, signal_tree
from stoker.contract.container_words import container_command
from stoker.contract.gate_file import read_gate
from stoker.contract.process import Key, key_of, lives, pid_namespace, session_of
from stoker.contract.reserved_file import withdraw, write_reserved
from stoker.contract.retry_files import FailedAttempt, Verdict
from stoker.contract.spec_file import load_spec
from stoker.contract.strict_json import ContractError, dump, load_or_none
from stoker.contract.supervisor_files import ExitRecord, HookDocument, HookFacts, LeftOver, Run, SupervisorRecord
from stoker.supervisor import command
from stoker.supervisor.engine_runner import EngineRunner
from stoker.supervisor.standby import Note, SupervisorState, Will, stand_by
from stoker.supervisor.watchdog import Watchdog

STOP_GRACE_SECONDS = 10.0
"""How long the build's processes may take to end after SIGTERM, before SIGKILL: ninja needs a moment to delete
half-written outputs, and people know this figure from `docker stop`."""

STOP_POLL_SECONDS = 0.05
"""How often to read the process tree while it is being ended."""

LEFT_OVER_SECONDS = 2.0
"""How long compilers whose scheduler was killed may take to end: they only have to clean up their output."""

MAX_ATTEMPTS = 8
"""How often a step's command is started at most, whatever the engine says."""

VERDICT_SECONDS = 60.0
"""How long the engine may take to decide whether a failed command runs again: a new one must first read the journal."""

VERDICT_POLL_SECONDS = 1.0

BIRTH_SECONDS = 5.0
"""How long a process that was just forked may take until it shows whether it is the command or an engine."""

STARTING = -1
"""Replaces the command's pid in the state for standbys while it is being forked."""

WAKE_UP_SIGNALS = (signal.SIGCHLD, signal.SIGTERM, signal.SIGINT, signal.SIGUSR1)


class Supervisor:
    """One build, from its start to the engine's last events, or from where a killed supervisor left off."""

    def __init__(self, folder: str) -> None:
        self.folder = folder
        self.note = Note()
        self.above: list[Key] = []
        spec = load_spec(folder)
        self.engine = EngineRunner(folder, spec.engine, self.tree)
        self.started = time.time()
        self.steps = spec.steps
        self.step = spec.first
        self.attempt = 0
        self.begun = self.started
        self.begun_ticks = 0
        self.log_start = 0
        self.past: list[Run] = []
        self.build_pid = 0
        self.last_command: Key = (0, 0)
        self.ramdisk = spec.ramdisk.folder if spec.ramdisk is not None else ""
        self.name, self.cwd, self.notify = spec.name, spec.cwd, spec.notify
        self.exit_code = command.NOT_EXECUTABLE
        self.build_signal: int | None = None
        self.asked_at: float | None = None
        self.stop: Ending | None = None
        self.stopping_container = 0

    def path(self, name: str) -> str:
        """Return a file of this build."""
        return os.path.join(self.folder, name)

    def run(self) -> None:
        """Start everything, then wait for children and signals until the build and the engine are done.

        Runs again in a standby when the supervisor was killed.
        """
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)  # if our parent ignores it, children leave no status
        signal.signal(signal.SIGHUP, signal.SIG_IGN)
        self.above = stand_by(self.note, WAKE_UP_SIGNALS)
        will = self.note.read()
        if will is not None and will.progress is not None:
            self.take_over(will.progress)
        else:
            self.begin()
        while not self.build_is_over():
            self.remember()
            self.wait_for_something(self.patience())
            self.reap()
            self.press_stop()
            self.hear_verdict()
            self.engine.tick()
            self.rouse_standbys()
        self.remember()
        self.engine.set_all_going()
        self.let_go_of_ramdisk()
        self.write_exit_file()
        if not self.engine.await_last_words():
            self.announce_end()
        self.rouse_standbys()

    def begin(self) -> None:
        """Start the first step, and an engine."""
        ready, watching = os.pipe()
        self.start_build(ready, watching)
        os.close(ready)
        if not self.build_pid:
            sys.exit("no process can be started for the command: the process limit is reached (ulimit -u, pids.max)")
        self.engine.start(watching)

    def build_is_over(self) -> bool:
        """Say whether the command has ended for good; after a stop, everything that it left behind must have ended
        too."""
        return self.build_pid == 0 and self.asked_at is None and not (self.stop and self.ours())

    def patience(self) -> float:
        """Seconds to sleep if nothing happens."""
        if self.stop:
            return STOP_POLL_SECONDS
        return self.engine.patience() if self.asked_at is None else VERDICT_POLL_SECONDS

    # -- one supervisor after the other ----------------------------------------------------------------------------

    def remember(self) -> None:
        """Store what a standby needs to take our place at any moment."""
        progress = SupervisorState(
            self.started,
            self.run_now(),
            self.begun_ticks,
            tuple(self.past),
            self.build_pid,
            self.last_command,
            self.exit_code,
            self.build_signal,
            self.asked_at,
            self.stop.kill_at if self.stop else None,
        )
        self.note.write(Will(key_of(os.getpid()), progress))

    def rouse_standbys(self) -> None:
        """Continue stopped standbys: one could neither take our place nor end with us, and nobody watches the highest
        one."""
        signal_tree([key[0] for key in self.above if lives(key)], signal.SIGCONT)

    def take_over(self, before: SupervisorState) -> None:
        """Continue where the supervisor was killed: its children are ours now, including those that have ended."""
        self.started, self.past = before.started, list(before.past)
        self.step, self.attempt, _, self.begun, self.log_start, _ = before.run
        self.begun_ticks, self.last_command = before.begun_ticks, before.last_command
        self.exit_code, self.build_signal, self.asked_at = before.exit_code, before.build_signal, before.asked_at
        if before.kill_at is not None:
            self.stop = Ending(before.kill_at - time.monotonic())
        self.build_pid = before.build_pid
        self.engine.inherit()
        if self.build_pid == STARTING:
            self.find_command()
        self.remember()
        if self.last_command[0]:
            self.write_supervisor_file()
        if self.stop:
            self.announce_stop()
        self.engine.wake()
        self.reap()  # no other signal will come for what has already ended

    def find_command(self) -> None:
        """The supervisor was killed while it forked a command: it runs, has run, or was never born and is started
        now."""
        ours, give_up_at = command_line(os.getpid()), time.monotonic() + BIRTH_SECONDS
        while True:
            born = [key for key in Processes().heirs(os.getpid()) if key[1] >= self.begun_ticks]
            nameless = [pid for pid, _ in born if session_of(pid) != pid and command_line(pid) == ours]
            if not nameless or time.monotonic() > give_up_at:
                break
            time.sleep(STOP_POLL_SECONDS)
        born = [key for key in born if session_of(key[0]) == key[0]]
        if born:
            self.build_pid, _ = self.last_command = born[0]
        else:
            self.attempt -= 1
            self.start_again()

    # -- the build ---------------------------------------------------------------------------------------------

    def start_build(self, ready: int, watching: int) -> None:
        """Fork the step's command; it becomes the parent of everything that the step does.

        It runs when the last copy of `watching`, the other end of `ready`, is closed. If no process can be started for
        it, the build is over, as with a command that cannot be executed.
        """
        self.attempt += 1
        self.begun = time.time()
        self.log_start = self.log_size()
        self.begun_ticks = int(time.clock_gettime(time.CLOCK_BOOTTIME) * os.sysconf("SC_CLK_TCK"))
        self.build_pid = STARTING
        self.remember()
        self.build_pid = command.start(self.steps[self.step - 1], self.path("output.log"), ready, watching)
        if self.build_pid:
            self.last_command = key_of(self.build_pid)
        else:
            self.exit_code, self.build_signal = command.NOT_EXECUTABLE, None
        self.remember()
        if self.build_pid or self.past:  # not for a build that has not started: its launcher waits for this file
            self.write_supervisor_file()

    def log_size(self) -> int:
        """Return how many bytes the build has written: an attempt's output follows that of the previous one."""
        try:
            return os.stat(self.path("output.log")).st_size
        except OSError:
            return 0

    def build_ended(self, end: os.waitid_result) -> None:
        """Record the command's status in the shell's convention, 128 + signal; continue, or ask whether that was
        all."""
        run = self.run_now()
        self.build_pid = 0
        self.build_signal = None if end.si_code == os.CLD_EXITED else end.si_status
        self.exit_code = end.si_status if self.build_signal is None else 128 + self.build_signal
        if not self.stop:
            self.end_left_over_jobs(whole_session=self.build_signal is not None)
            self.engine.set_all_going()
            self.past.append(run._replace(exit_code=self.exit_code))
            if self.exit_code == 0 and self.step < len(self.steps):
                self.start_next_step()
            else:
                self.ask()

    def start_next_step(self) -> None:
        """Wake the engine at once: jobs of the new step must not run unseen."""
        self.step += 1
        self.attempt = 0
        self.start_again()

    def start_again(self) -> None:
        """Start a command after the first. It runs once supervisor.json has it, so that its processes are not
        attributed to the last one."""
        ready, holding = os.pipe()
        self.start_build(ready, holding)
        os.close(ready)
        os.close(holding)
        self.engine.wake()

    def end_left_over_jobs(self, *, whole_session: bool) -> None:
        """End compilers that have outlived a killed scheduler: they must not continue to write into the build's folder.

        These are what the engine recorded as jobs, and the whole session of a command that was killed or runs again:
        make does not wait for what a killed recipe leaves. Daemons have sessions of their own, and stay.
        """
        ending, give_up_at = Ending(LEFT_OVER_SECONDS), time.monotonic() + 2 * LEFT_OVER_SECONDS
        gate = read_gate(self.folder)
        jobs = gate.jobs if gate is not None else ()
        session = self.last_command[0] if whole_session else 0
        left, announced = set[Key](), set[Key]()
        if self.build_signal is not None:
            self.announce_left_over()
        while (jobs or session) and time.monotonic() < give_up_at:
            processes = Processes()
            ours = set(processes.below(os.getpid(), self.engine.pid))
            left |= {processes.key(pid) for job in jobs for pid in processes.job(job) if pid in ours}
            left |= {processes.key(pid) for pid in ours if session and session_of(pid) == session}
            if left - announced:
                self.announce_left_over(left)
                announced |= left
            living = [key[0] for key in left if processes.lives(key)]
            if not living:
                return
            ending.press(living)
            time.sleep(STOP_POLL_SECONDS)

    def announce_left_over(self, processes: Iterable[Key] = ()) -> None:
        """Announce to the engine how the command ended and what outlives it, before that is ended: it has not failed.

        Not synced to disk, which may be busy: who asks for it lives now. Without it the engine believes what it sees.
        """
        left = LeftOver(self.last_command, self.build_signal, tuple(processes))
        path = self.path("left_over.json")
        with contextlib.suppress(OSError):
            fd = os.open(f"{path}.part", os.O_WRONLY | os.O_CREAT | os.O_TRUNC, 0o600)
            with open(fd, "wb") as file:
                file.write(dump(left))
            os.replace(f"{path}.part", path)

    def ask(self) -> None:
        """The command has failed: ask the engine, which may know that it was for lack of memory and should run again.

        Not if the command was not found, or if no engine has ever looked at the build.
        """
        hopeless = self.exit_code in (0, command.NOT_FOUND, command.NOT_EXECUTABLE) or self.attempt >= MAX_ATTEMPTS
        hopeless = hopeless or not os.path.exists(self.path("heartbeat"))
        question = FailedAttempt(self.exit_code, self.build_signal, self.attempt, time.time())
        if not hopeless and self.write_file("ended.json", dump(question)):
            self.asked_at = time.monotonic()
            self.engine.wake()

    def hear_verdict(self) -> None:
        """While the engine is asked: run the command again, or let the build be over."""
        if self.asked_at is None:
            return
        verdict = load_or_none(Verdict, self.path("verdict.json"))
        if verdict is not None and verdict.attempt != self.attempt:
            verdict = None
        if verdict is None and not self.stop and time.monotonic() - self.asked_at < VERDICT_SECONDS:
            return
        self.asked_at = None
        if verdict is not None and verdict.again and not self.stop:
            self.end_left_over_jobs(whole_session=True)
            self.clear_ramdisk()
            self.start_again()
        elif verdict is not None and verdict.exit_code is not None:
            self.exit_code = verdict.exit_code
        self.remember()
        for name in ("ended.json", "verdict.json"):
            withdraw(self.path(name))

    # -- temporary files ---------------------------------------------------------------------------------------

    def clear_ramdisk(self) -> None:
        """Before a command starts again: what killed compilers have left there would hold memory."""
        if self.ramdisk and not self.tree():
            ramdisk.clear(self.ramdisk)

    def let_go_of_ramdisk(self) -> None:
        """At the end, remove the RAM disk, unless a daemon that the build leaves behind keeps temporary files there.

        Whatever goes wrong with it, the exit status must be written.
        """
        with contextlib.suppress(Exception):
            if self.ramdisk and not ramdisk.users(self.ramdisk, self.tree()):
                ramdisk.remove(self.ramdisk)

    # -- stopping ----------------------------------------------------------------------------------------------

    def stop_requested(self, signum: int) -> None:
        """On SIGTERM: the same to all, and SIGKILL after the grace period, however often it comes. On SIGINT: SIGKILL
        now.

        The engine must know before anything is continued, or it would stop that again. Not through supervisor.json,
        which is synced to disk: nobody waits for a busy one.
        """
        first, self.stop = self.stop is None, self.stop or Ending(STOP_GRACE_SECONDS)
        if signum == signal.SIGINT:
            self.stop.hurry()
        self.remember()
        if first:
            self.announce_stop()
            self.engine.wake()
        if first or signum == signal.SIGINT:
            self.end_container(0 if signum == signal.SIGINT else int(STOP_GRACE_SECONDS))

    def announce_stop(self) -> None:
        """Announce the stop to the engine, and to processes that start later."""
        with contextlib.suppress(OSError):
            os.close(os.open(self.path("stopping"), os.O_WRONLY | os.O_CREAT, 0o600))

    def end_container(self, seconds: int) -> None:
        """End the step's container, which may not be below us; a second call shortens the first one's time."""
        container = container_command(self.steps[self.step - 1].command)
        if container is not None:
            self.stopping_container = stop_container.start_stopping(container, seconds) or self.stopping_container

    def press_stop(self) -> None:
        """While a stop is in progress: one SIGTERM to each process of the tree, or SIGKILL when the time is up.

        Processes that remove containers get neither, unless they take too long.
        """
        if self.stop is None:
            return
        ours, processes = self.ours(), Processes()
        if time.monotonic() < self.stop.kill_at + stop_container.TIDY_SECONDS:
            tidying = self.stopping_container, *processes.below(self.stopping_container)
            spared = {*stop_container.monitors(processes, os.getpid()), *(tidying if self.stopping_container else ())}
            ours = [pid for pid in ours if pid not in spared]
        self.stop.press(ours)

    def tree(self) -> list[int]:
        """Return every live descendant except the engine's branch."""
        return descendants(os.getpid(), self.engine.pid)

    def ours(self) -> list[int]:
        """Return those that end with the build: not a compiler cache's server, nor what it does for others."""
        processes = Processes()
        return processes.below(os.getpid(), self.engine.pid, *processes.servers(os.getpid()))

    # -- waiting -----------------------------------------------------------------------------------------------

    def wait_for_something(self, timeout: float) -> None:
        """Sleep until a child ends, a signal arrives, or `timeout` seconds are over."""
        info = signal.sigtimedwait(WAKE_UP_SIGNALS, timeout)
        if info is not None and info.si_signo in (signal.SIGTERM, signal.SIGINT):
            self.stop_requested(info.si_signo)

    def reap(self) -> None:
        """Collect every child that has ended: the build, the engine, and inherited orphans.

        Only after recording the consequences: a standby that takes our place meanwhile finds the same child.
        """
        while (end := first_end()) is not None:
            if end.si_pid == self.build_pid:
                self.build_ended(end)
                self.remember()
            os.waitpid(end.si_pid, 0)
            if end.si_pid == self.engine.pid:
                self.engine.ended()

    # -- files -------------------------------------------------------------------------------------------------

    def write_supervisor_file(self) -> None:
        """Write the processes, for engines and viewers that come later; the last command that was a process."""
        now = {**self.run_now()._asdict(), "pid_namespace": pid_namespace(), "host": os.uname().nodename}
        del now["exit_code"]
        supervisor, command_key = key_of(os.getpid()), self.last_command
        record = SupervisorRecord(*supervisor, *command_key, self.started, tuple(self.above), tuple(self.past), **now)
        self.write_file("supervisor.json", dump(record))

    def run_now(self) -> Run:
        """Return which attempt at which step this is."""
        return Run(self.step, self.attempt, self.build_pid, self.begun, self.log_start)

    def write_exit_file(self) -> None:
        """Write what every viewer waits for."""
        record = ExitRecord(self.exit_code, time.time(), self.build_signal, self.step, self.stop is not None)
        self.write_file("exit.json", dump(record), last=True)

    def announce_end(self) -> None:
        """If no engine could: call the notify command, and leave it to its own limit."""
        name = "".join(c if c.isprintable() else "?" for c in self.name)
        message = f"stoker: {name} ended with {self.exit_code}; no engine was left to report more"
        state = "stopped" if self.stop else "failed" if self.exit_code else "done"
        seconds, log, host = time.time() - self.started, self.path("output.log"), os.uname().nodename
        build = os.path.basename(self.folder)
        facts = HookFacts("end", message, build, name, state, self.exit_code, seconds, self.cwd, log, host)
        with contextlib.suppress(Exception):
            if self.notify and claim_end(self.folder):
                document = dump(HookDocument("end", message))
                call_hook(self.notify, self.cwd, self.path("notify.log"), facts.environment(), document)

    def write_file(self, name: str, data: bytes, *, last: bool = False) -> bool:
        """Write completely or not at all, and for the `last` time without space for the next version.

        If the disk is full, try again, because the exit status must not be lost.
        """
        for pause in (0.1, 1.0, 5.0, 0.0):
            try:
                write_reserved(self.path(name), data, last=last)
            except OSError:
                time.sleep(pause)
            else:
                return True
        return False


def first_end() -> os.waitid_result | None:
    """Return a child that has ended and has not been reaped; None if there is none."""
    try:
        return os.waitid(os.P_ALL, 0, os.WEXITED | os.WNOHANG | os.WNOWAIT)
    except ChildProcessError:
        return None


def main() -> None:
    """`FOLDER`, or `FOLDER --watchdog PID`."""
    stands_in = sys.argv[2:3] == ["--watchdog"]
    try:
        supervisor = Watchdog(sys.argv[1], int(sys.argv[3])) if stands_in else Supervisor(sys.argv[1])
    except ContractError as err:
        sys.exit(str(err))
    try:
        supervisor.run()
    except BaseException as err:
        supervisor.engine.set_all_going()  # or what an engine has stopped would wait forever
        if isinstance(err, Exception) and isinstance(supervisor, Supervisor) and supervisor.above:
            sys.excepthook(*sys.exc_info())
            os.kill(os.getpid(), signal.SIGKILL)  # a standby takes over, as from one that was killed
        raise


if __name__ == "__main__":
    main()
