"""Who runs a build and how it ended: `supervisor.json` and `exit.json`, which the supervisor writes for all others."""

from typing import NamedTuple

from stoker.contract.process import Key, lives


class Run(NamedTuple):
    """One attempt at a step, both counted from 1; `begun` in Unix seconds. `exit_code` is None until it has ended.

    Its output begins in the log at byte `log_start`.
    """

    step: int
    attempt: int
    pid: int
    begun: float
    log_start: int = 0
    exit_code: int | None = None


class SupervisorRecord(NamedTuple):
    """The supervisor, the standbys above it, the nearest first, and the last command that was a process.

    `started` is when the build's first command started, in Unix seconds; `past` are the attempts before the last one,
    which the fields behind it describe as in `Run`.
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

    @property
    def runs(self) -> list[Run]:
        """All attempts so far; the last one runs now, or was the last of all."""
        return [*self.past, Run(self.step, self.attempt, self.pid, self.begun, self.log_start)]

    @property
    def build(self) -> Key:
        """The command's process."""
        return self.build_pid, self.build_start

    def living_supervisors(self) -> list[Key]:
        """Return the process that keeps the build, or is about to, and the standbys above it, as far as they live."""
        return [key for key in ((self.supervisor_pid, self.supervisor_start), *self.standbys) if lives(key)]

    def acting_supervisor(self) -> Key | None:
        """Return the first of them; None if all were killed."""
        return next(iter(self.living_supervisors()), None)


class ExitRecord(NamedTuple):
    """How the build ended, at which step. `exit_code` is 128 + `signal` where a signal ended the command.

    `stopped`: somebody wanted its end. `ended` in Unix seconds.
    """

    exit_code: int
    ended: float
    signal: int | None = None
    step: int = 0
    stopped: bool = False
