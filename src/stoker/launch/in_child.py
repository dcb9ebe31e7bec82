"""Resumes a build for a screen, in a separate process, so that the screen's terminal and signals do not reach it.

Unaware of what a resumed build is. `python -m stoker.launch.in_child` is that process: one request on stdin, one answer
on stdout, both JSON.
"""

import asyncio
import os
import sys
from typing import NamedTuple

from stoker.config.paths import BuildPaths, UnsafeFolderError, build_paths
from stoker.contract.strict_json import ContractError, dump, parse
from stoker.launch.child import start_child
from stoker.launch.refusals import LaunchError
from stoker.launch.resume import ResumeRequest, resume
from stoker.model.text import clean
from stoker.model.update import CommandRefused
from stoker.record.journal_error import JournalError

PATIENCE_SECONDS = 90.0
"""A start takes a second, git's answer on submodules up to a minute on a slow file server."""

MAX_ANSWER = 1 << 16


class ResumeWish(NamedTuple):
    """The build to resume, and whether its remedy is applied first."""

    build: str
    remedy: bool


class ResumeAnswer(NamedTuple):
    """The ID of the build that was started, or in one line why there is none."""

    build: str = ""
    refused: str = ""


class ResumeInChild:
    """Requests it; `next` is the build that was started, once there is one."""

    def __init__(self, paths: BuildPaths) -> None:
        self._paths = paths
        self.next: BuildPaths | None = None

    async def __call__(self, *, remedy: bool) -> None:
        """Resume the build, with the diagnosis's remedy if wanted. Raises CommandRefused."""
        try:
            process = await start_child("stoker.launch.in_child", MAX_ANSWER)
            async with asyncio.timeout(PATIENCE_SECONDS):
                out, _ = await process.communicate(dump(ResumeWish(self._paths.id, remedy)))
        except TimeoutError as err:
            raise CommandRefused("no answer so far; 'stoker ls' shows whether it was resumed") from err
        except OSError as err:
            raise CommandRefused(f"cannot start it: {err.strerror}") from err
        try:
            answer = parse(ResumeAnswer, out, "the answer")
        except ContractError:
            raise CommandRefused(f"exit status {process.returncode}") from None
        if answer.refused:
            raise CommandRefused(clean(answer.refused))
        self.next = build_paths(answer.build)


def main() -> None:
    """Answer one request."""
    wish = parse(ResumeWish, sys.stdin.buffer.read(MAX_ANSWER), "the request")
    out = os.dup(1)
    os.dup2(2, 1)  # only the answer goes to the caller
    try:
        paths, _ = resume(ResumeRequest(wish.build, wish.remedy), _ignore, _ignore)
        answer = ResumeAnswer(build=paths.id)
    except (LaunchError, JournalError, UnsafeFolderError) as err:
        answer = ResumeAnswer(refused=str(err))
    except OSError as err:
        answer = ResumeAnswer(refused=f"{err.filename or 'starting it'}: {err.strerror or err}")
    os.write(out, dump(answer))


def _ignore(_line: str) -> None:
    """The build's own notices show it on the screen."""


if __name__ == "__main__":
    main()
