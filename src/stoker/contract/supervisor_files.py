"""Who runs a build and how it ended: `supervisor.json`, `left_over.json` and `exit.json`, which the supervisor writes
for all others."""

from typing import NamedTuple

from stoker.contract.process import Key, lives, pid_namespace, seen_here

INITIAL_PID_NAMESPACE = 0xEFFFFFFC
"""The PID namespace that contains all others (PROC_PID_INIT_INO in include/linux/proc_ns.h)."""


class Run(NamedTuple):
    """One attempt at a step, both counted from 1; `begun` in Unix seconds. `exit_code` is None until it has ended.

    Its output starts in the log at byte `log_start`.
    """

    step: int
    attempt: int
    pid: int
    begun: float
    log_start: int = 0
    exit_code: int | None = None


class SupervisorRecord(NamedTuple):
    """The supervisor, the standbys above it (nearest first), and the last command that was a process.

    `started` is when the build's first command started, in Unix seconds; `past` are the attempts before the last one,
    which the later fields describe as in `Run`. The pids are those of a PID namespace, in which the machine's name is
    `host`: a container's ID, if it has no other name.
    """

    supervisor_pid: int
    supervisor_start: int
    build_pid: int
    build_start: int
    started: float = 0.0
    standbys: tuple[Key, ...] = ()
    past: tuple[Run, ...] = ()
    step: int = 1
    attempt: int = 1
    pid: int = 0
    begun: float = 0.0
    log_start: int = 0
    pid_namespace: int = 0
    host: str = ""

    @property
    def runs(self) -> list[Run]:
        """All attempts so far; the last one runs now, or was the last of all."""
        return [*self.past, Run(self.step, self.attempt, self.pid, self.begun, self.log_start)]

    @property
    def build(self) -> Key:
        """The command's process."""
        return self.build_pid, self.build_start

    @property
    def is_elsewhere(self) -> bool:
        """Whether the pids mean nothing here: in a container, or outside of ours."""
        return self.pid_namespace not in (0, pid_namespace())

    def living_build(self) -> Key | None:
        """Return the command's process, as it is seen here, if it is alive."""
        return next(iter(self._living([self.build])), None)

    def living_supervisors(self) -> list[Key]:
        """Return the process that supervises the build, or is about to, and the standbys above it, if they are alive.

        As they are seen here: nothing if it is in a container that is not below us.
        """
        return self._living([(self.supervisor_pid, self.supervisor_start), *self.standbys])

    def _living(self, keys: list[Key]) -> list[Key]:
        if not self.is_elsewhere:
            return [key for key in keys if lives(key)]
        return [here for key in keys if (here := seen_here(key, self.pid_namespace)) is not None]

    def may_live_unseen(self) -> bool:
        """Whether it runs where we cannot see it. The initial PID namespace sees everything."""
        return self.is_elsewhere and pid_namespace() != INITIAL_PID_NAMESPACE

    def acting_supervisor(self) -> Key | None:
        """Return the first of them; None if all were killed."""
        return next(iter(self.living_supervisors()), None)


class ExitRecord(NamedTuple):
    """How the build ended, at which step. `exit_code` is 128 + `signal` if a signal ended the command.

    `stopped`: somebody requested its end. `ended` in Unix seconds.
    """

    exit_code: int
    ended: float
    signal: int | None = None
    step: int = 0
    stopped: bool = False


class LeftOver(NamedTuple):
    """What the last command left behind, written before the supervisor ends it: `command` is its process, `signal` what
    ended that, `processes` those that outlived it."""

    command: Key
    signal: int | None
    processes: tuple[Key, ...] = ()


class HookFacts(NamedTuple):
    """What a notify command finds in its environment, whether an engine or the supervisor calls it.

    `state` is the build's phase, `exit_code` None while it runs, `folder` that of the command.
    """

    event: str
    message: str
    id: str
    name: str
    state: str
    exit_code: int | None
    seconds: float
    folder: str
    log: str
    host: str

    def environment(self) -> dict[str, str]:
        """Return the variables that docs/settings.md lists."""
        shown = self._replace(seconds=int(max(0.0, self.seconds)))
        return {f"STOKER_{field.upper()}": "" if v is None else str(v) for field, v in shown._asdict().items()}


class HookDocument(NamedTuple):
    """What a notify command reads on stdin if no engine lived to add the build's status."""

    event: str
    message: str
