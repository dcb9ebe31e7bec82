"""Why a build was not started. Every message is one line that says what is wrong and what to do."""

from __future__ import annotations


class LaunchError(Exception):
    """Nothing was started, and nothing of it runs."""


class RequestError(LaunchError):
    """What was asked for makes no sense."""


class DuplicateBuildError(LaunchError):
    """The same command runs in the same folder already."""


class CannotResumeError(LaunchError):
    """The build that was meant cannot be resumed."""


class CommandNotFoundError(LaunchError):
    """There is no such command."""


class NotExecutableError(LaunchError):
    """There is such a file, and it cannot be run."""
