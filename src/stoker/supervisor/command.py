"""Starts a step's command as a child of the supervisor, with its output straight to the log. Stdlib only.

Unaware of steps, of engines and of how the command ends.
"""

import contextlib
import os
import select
import time

from stoker.contract.spec_file import StepSpec
from stoker.supervisor.engine_runner import restore_signals

READY_SECONDS = 60.0
"""How long the command waits for the first engine to watch: otherwise a wide ninja would start dozens of compilers
unguarded. An engine starts in half a second, next to twenty busy compilers in ten; on a machine that swaps, the build
does not wait forever."""

FORK_PAUSES = (0.1, 0.5, 1.0, 2.0, 4.0, 0.0)
"""Seconds between attempts to fork when the limit of processes is reached: others come and go."""

NOT_FOUND = 127
NOT_EXECUTABLE = 126
"""Exit statuses of a command that cannot be started, as in shells."""


def start(step: StepSpec, log: str, ready: int, watching: int) -> int:
    """Fork the command; return its pid, or 0 if no process could be started, which is then written to the log.

    It runs when the last copy of `watching`, the other end of `ready`, is closed.
    """
    failed = OSError()
    for pause in FORK_PAUSES:
        try:
            pid = os.fork()
        except OSError as err:
            failed = err
            time.sleep(pause)
        else:
            if pid == 0:
                _become(step, log, ready, watching)
            return pid
    with contextlib.suppress(OSError):
        fd = _open(log)
        _complain(fd, _words(step)[0], failed)
        os.close(fd)
    return 0


def _become(step: StepSpec, log: str, ready: int, watching: int) -> None:
    """In the child: redirect output to the log and, once somebody watches, exec the command.

    In a session of its own: otherwise, if the supervisor were killed, the kernel would send SIGHUP to the whole of a
    build in whose process group anything is stopped, as make's jobs are (setpgid(2), "orphaned process group").
    """
    command, code = _words(step), NOT_FOUND
    try:
        os.setsid()
        fd = _open(log)
        os.dup2(os.open(os.devnull, os.O_RDONLY), 0)
        os.dup2(fd, 1)
        os.dup2(fd, 2)
        restore_signals()
        os.close(watching)  # or the end of this pipe would never come
        select.select([ready], [], [], READY_SECONDS)
        os.environ.update(step.environment)
        os.chdir(os.fsencode(step.cwd))
        os.execvp(command[0], command)  # noqa: S606  (the user's own command, as a list)
    except OSError as err:
        if not isinstance(err, FileNotFoundError):
            code = NOT_EXECUTABLE
        _complain(2, command[0], err)
    finally:
        os._exit(code)


def _words(step: StepSpec) -> list[bytes]:
    return [os.fsencode(word) for word in step.command]


def _open(log: str) -> int:
    return os.open(log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600)


def _complain(fd: int, program: bytes, err: OSError) -> None:
    os.write(fd, b"stoker: " + program + b": " + os.fsencode(err.strerror or "cannot be started") + b"\n")
