"""Errors of the command line: one line that names the problem and the remedy, and an exit status."""

from __future__ import annotations

from stoker.launch.refusals import (
    CannotResumeError,
    CommandNotFoundError,
    LaunchError,
    NotExecutableError,
    RequestError,
)

USAGE = 2
"""Exit status for bad usage, as argparse and most shells' builtins have it."""

FAILURE = 1

OWN_FAILURE = 125
"""`stoker run` itself failed and no build ran; timeout(1), env(1) and docker use the same."""

NOT_EXECUTABLE = 126
NOT_FOUND = 127
"""A command that cannot be run, or found, as shells say it."""

LEFT = 75
"""The user who started the build left before its end (EX_TEMPFAIL, sysexits.h): in `run && install`, install must
wait."""

STOPPED = 130
"""A person ended the build (128 + SIGINT)."""


_STATUS: dict[type[LaunchError], int] = {
    RequestError: USAGE,
    CannotResumeError: FAILURE,
    CommandNotFoundError: NOT_FOUND,
    NotExecutableError: NOT_EXECUTABLE,
}


def status_of(err: LaunchError) -> int:
    """Return the exit status of a build that was not started."""
    return _STATUS.get(type(err), OWN_FAILURE)


class CliError(Exception):
    """Ends the program with one line on stderr and this exit status."""

    def __init__(self, message: str, status: int = USAGE) -> None:
        super().__init__(message)
        self.status = status
