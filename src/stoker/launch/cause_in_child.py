"""Finds for a screen why a step failed, in a separate process of low priority: the build needs the cores, and the rules
take half a second and memory that no viewer should keep.

Unaware of rules and of screens. `python -m stoker.launch.cause_in_child` is that process: one request on stdin, one
answer on stdout, both JSON.
"""

import asyncio
import contextlib
import json
import os
import sys
from dataclasses import dataclass
from typing import NamedTuple

from stoker.config.paths import BuildPaths
from stoker.contract.strict_json import dump, parse
from stoker.launch.child import start_child
from stoker.model.codec import CodecError, decode, encode
from stoker.model.diagnosis import Cause
from stoker.model.state import Failure

NICENESS = 10
PATIENCE_SECONDS = 30.0
"""A search takes a second; ten on a machine that is busy."""

MAX_ANSWER = 1 << 20


class _Request(NamedTuple):
    """A log, and the bytes of it that a step wrote."""

    log: str
    start: int
    end: int


@dataclass(frozen=True, slots=True)
class _Answer:
    """The cause, if a rule knows it."""

    cause: Cause | None = None


class CauseInChild:
    """Finds causes in the output of one build, one at a time."""

    def __init__(self, paths: BuildPaths) -> None:
        self._log = str(paths.output)
        self._turn = asyncio.Lock()

    async def __call__(self, failure: Failure) -> Cause | None:
        """Return the cause; None if no rule knows it, or the search has failed."""
        async with self._turn:
            return await self._answer(_Request(self._log, failure.log_start, failure.log_end))

    async def _answer(self, request: _Request) -> Cause | None:
        try:
            process = await start_child("stoker.launch.cause_in_child", MAX_ANSWER)
        except OSError:
            return None
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                out, _ = await process.communicate(dump(request))
            return decode(_Answer, json.loads(out)).cause
        except (TimeoutError, OSError, ValueError, CodecError):
            return None
        finally:
            with contextlib.suppress(ProcessLookupError):  # the viewer may be left meanwhile
                process.kill()


def main() -> None:
    """Answer one request. Only this process imports the rules."""
    from stoker.diagnose.own_rules import usable_rules
    from stoker.diagnose.step_cause import step_cause

    os.nice(NICENESS)
    request = parse(_Request, sys.stdin.buffer.read(MAX_ANSWER), "the request")
    with open(request.log, "rb") as file:
        cause = step_cause(file, request.start, request.end, usable_rules())
    sys.stdout.write(json.dumps(encode(_Answer(cause))))


if __name__ == "__main__":
    main()
