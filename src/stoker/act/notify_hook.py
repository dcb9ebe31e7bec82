"""Runs the notify command: detached, with a time limit. Stdlib only.

coreutils' timeout enforces the limit, so it holds even when the caller has been killed. Facts about the build are
passed as variables and as a document on stdin: none becomes part of a shell's text. Unaware of what is announced.
"""

import os
import signal
from collections.abc import Mapping

LIMIT_SECONDS = 30
"""Time limit: mail and chat answer within seconds, and the build's folder is in use meanwhile."""

KILL_SECONDS = 5
"""From the limit's SIGTERM to SIGKILL."""

_IN_FOLDER = 'cd "$1" 2>/dev/null; exec /bin/sh -c "$2"'

_PLAIN_AGAIN = (signal.SIGHUP, signal.SIGINT, signal.SIGPIPE, signal.SIGTERM, signal.SIGUSR1, signal.SIGXFSZ)
"""Signals that engine and supervisor ignore or catch and a command must not."""


def claim_end(folder: str) -> bool:
    """Say whether nobody has announced the end of the build in `folder` yet, and mark it as announced."""
    try:
        os.close(os.open(os.path.join(folder, "notified"), os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600))
    except FileExistsError:
        return False
    except OSError:
        return True  # a full disk: twice is better than never
    return True


def call_hook(command: str, cwd: str, log: str, facts: Mapping[str, str], document: bytes) -> int:
    """Run `command` with the shell in `cwd`, and return its pid. Raises OSError, and ValueError if it contains NUL.

    `facts` are added to our environment, `document` is its stdin; its output is appended to the file `log`.
    """
    stdin = os.memfd_create("stoker-notify")
    try:
        rest = memoryview(document)
        while rest:
            rest = rest[os.write(stdin, rest) :]
        os.lseek(stdin, 0, os.SEEK_SET)
        limit = ("timeout", "-k", str(KILL_SECONDS), str(LIMIT_SECONDS))
        return os.posix_spawnp(
            "timeout",
            [*limit, "/bin/sh", "-c", _IN_FOLDER, "stoker", cwd, command],
            {**os.environ, **facts},
            file_actions=[
                (os.POSIX_SPAWN_DUP2, stdin, 0),
                (os.POSIX_SPAWN_OPEN, 1, log, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o600),
                (os.POSIX_SPAWN_DUP2, 1, 2),
            ],
            setsid=True,
            setsigmask=(),
            setsigdef=_PLAIN_AGAIN,
        )
    finally:
        os.close(stdin)
