"""Short commands without a new interpreter each: forked from a process that has imported the program already.

A test gives many commands, and most of what `stoker status` costs is the start of Python and its imports. A forked
command is a process like any other, with streams, environment and working folder of its own, and its own exit status.
It shares with the others what an interpreter reads once, as it starts: its locale and PYTHON's variables.
"""

from __future__ import annotations

import atexit
import functools
import gc
import importlib
import io
import json
import os
import selectors
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

READ_AT_START = ("LC_", "LANG", "PYTHON")
"""What the names of variables that an interpreter reads as it starts begin with."""

COMMANDS = ("attach", "diagnose", "events", "history", "jobs", "log", "ls", "report", "run", "status", "stop")
IMPORTED = (
    *(f"stoker.cli.commands.{name}" for name in COMMANDS),
    "concurrent.futures.thread",
    "stoker.sense.machine.machine",
    "stoker.show.json",
)
"""What is imported before the first command is forked, without Textual, which is for screens."""

MAX_REQUEST = 1 << 17


def same_interpreter(env: Mapping[str, str]) -> bool:
    """Whether an interpreter that starts with these variables is as the one that started with ours."""
    return _read_at_start(env) == _read_at_start(_server_environment())


def run(words: Sequence[str], cwd: Path, env: Mapping[str, str], seconds: float) -> subprocess.CompletedProcess[bytes]:
    """As `subprocess.run` of `python -m stoker` with these words: without an input, and with what it says."""
    out, their_out = os.pipe()
    err, their_err = os.pipe()
    reply, their_reply = socket.socketpair()
    with open(os.devnull, "rb") as nothing, reply:
        request = json.dumps([list(words), str(cwd.absolute()), dict(env)]).encode()
        theirs = [nothing.fileno(), their_out, their_err, their_reply.detach()]
        socket.send_fds(_server(), [request], theirs)
        for fd in theirs[1:]:
            os.close(fd)
        answers = reply.makefile("r")
        pid = int(answers.readline())
        try:
            said = _all_of([out, err], time.monotonic() + seconds)
        except TimeoutError:
            os.kill(pid, signal.SIGKILL)
            raise subprocess.TimeoutExpired(list(words), seconds) from None
        finally:
            os.close(out)
            os.close(err)
        return subprocess.CompletedProcess(list(words), int(answers.readline()), *said)


def _all_of(fds: Sequence[int], deadline: float) -> list[bytes]:
    """What is written into these pipes until all who could have closed them. Raises TimeoutError."""
    said = {fd: bytearray() for fd in fds}
    with selectors.DefaultSelector() as selector:
        for fd in fds:
            selector.register(fd, selectors.EVENT_READ)
        while selector.get_map():
            ready = selector.select(max(0.0, deadline - time.monotonic()))
            if not ready:
                raise TimeoutError
            for key, _ in ready:
                if data := os.read(key.fd, 1 << 16):
                    said[key.fd] += data
                else:
                    selector.unregister(key.fd)
    return [bytes(text) for text in said.values()]


def _read_at_start(env: Mapping[str, str]) -> dict[str, str]:
    return {name: value for name, value in env.items() if name.startswith(READ_AT_START)}


@functools.cache
def _server_environment() -> dict[str, str]:
    return dict(os.environ)


@functools.cache
def _server() -> socket.socket:
    """Start the process that forks commands; it ends with us."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        server = subprocess.Popen(
            [sys.executable, "-P", __file__, str(theirs.fileno())],
            env=_server_environment(),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            pass_fds=[theirs.fileno()],
        )

    def end() -> None:
        ours.close()
        server.wait()

    atexit.register(end)
    return ours


# -- in the process that forks commands --------------------------------------------------------------------------------


def _command() -> int:
    """Fork a command for each request; in the command's process, run it and return its exit status."""
    for name in IMPORTED:
        importlib.import_module(name)
    from stoker.cli.entry import main
    from stoker.diagnose.rule import shipped_rules
    from stoker.diagnose.scan import scan

    scan(io.BytesIO(b"error:\n"), shipped_rules())  # reads the rules and makes their index, which every diagnosis needs
    gc.freeze()
    words = _next_request(socket.socket(fileno=int(sys.argv[1])))
    if words is None:
        return 0
    sys.argv = [sys.argv[0], *words]
    return main()


def _next_request(requests: socket.socket) -> list[str] | None:
    """Return, in a process of its own, the words of a command; in the process that forks them, None at the end."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # whoever presses Ctrl-C ends the tests, and with them us
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)  # nobody waits for those who wait for commands
    while True:
        request, fds, _, _ = socket.recv_fds(requests, MAX_REQUEST, 4)
        if not request:
            return None
        if not os.fork():
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            if not (pid := os.fork()):
                requests.close()
                return _begin(request, fds)
            _tell_end(pid, fds)
        for fd in fds:
            os.close(fd)


def _tell_end(pid: int, fds: Sequence[int]) -> None:
    """Tell whoever asked for it the command's number and, once it has ended, its exit status."""
    os.write(fds[-1], b"%d\n" % pid)
    for fd in fds[:-1]:
        os.close(fd)
    _, status = os.waitpid(pid, 0)
    os.write(fds[-1], b"%d\n" % os.waitstatus_to_exitcode(status))
    os._exit(0)


def _begin(request: bytes, fds: Sequence[int]) -> list[str]:
    """Make this process the one that was asked for; return the words of its command."""
    signal.signal(signal.SIGINT, signal.default_int_handler)
    for number, fd in enumerate(fds[:-1]):
        os.dup2(fd, number)
    for fd in fds:
        os.close(fd)
    words, cwd, env = json.loads(request)
    os.chdir(cwd)
    os.environ.clear()
    os.environ.update(env)
    time.tzset()
    return list(words)


if __name__ == "__main__":
    sys.exit(_command())
