"""Reasons why a build was not started. Every message is one line that says what is wrong and what to do."""

from __future__ import annotations


class LaunchError(Exception):
    """Nothing was started."""


class RequestError(LaunchError):
    """The request is invalid."""


class DuplicateBuildError(LaunchError):
    """The same command runs in the same folder already."""


class CannotResumeError(LaunchError):
    """The build to resume cannot be resumed."""


class CommandNotFoundError(LaunchError):
    """The command does not exist."""


class NotExecutableError(LaunchError):
    """The file exists but cannot be executed."""
