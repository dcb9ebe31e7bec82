"""Whether a failed command runs again: the supervisor asks in `ended.json`, the engine answers in `verdict.json`."""

from typing import NamedTuple


class FailedAttempt(NamedTuple):
    """The command failed in this attempt, which counts from 1; does it run again?

    `exit_code` is 128 + `signal` if a signal ended the command. `ended` in Unix seconds.
    """

    exit_code: int
    signal: int | None
    attempt: int
    ended: float = 0.0


class Verdict(NamedTuple):
    """The answer for one attempt; `exit_code` replaces the command's own, unless it is None."""

    attempt: int
    again: bool
    exit_code: int | None = None
