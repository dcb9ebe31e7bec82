"""Finds for a screen why a step failed, in a separate process: the rules take memory that no viewer should keep.

It takes half a second of CPU time, once a step, and a person waits for it; so it has the viewer's own priority. At
nice 10, beside four busy processes a core, it took 23 s instead of 3.

Unaware of rules and of screens. `python -m stoker.launch.cause_in_child` is that process: one request on stdin, one
answer on stdout, both JSON.
"""

import asyncio
import contextlib
import json
import sys
from dataclasses import dataclass
from typing import NamedTuple

from stoker.config.paths import BuildPaths
from stoker.contract.strict_json import dump, parse
from stoker.launch.child import start_child
from stoker.model.codec import CodecError, decode, encode
from stoker.model.diagnosis import Cause
from stoker.model.state import Failure

PATIENCE_SECONDS = 60.0
"""A search takes a second; ten on a machine that is very busy."""

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
        """Return the cause; None if no rule knows it. Raises OSError if the search has failed, or takes too long."""
        async with self._turn:
            return await self._answer(_Request(self._log, failure.log_start, failure.log_end))

    async def _answer(self, request: _Request) -> Cause | None:
        process = await start_child("stoker.launch.cause_in_child", MAX_ANSWER)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                out, _ = await process.communicate(dump(request))
            return decode(_Answer, json.loads(out)).cause
        except (ValueError, CodecError) as err:
            raise OSError("the search gave no answer") from err
        finally:
            with contextlib.suppress(ProcessLookupError):  # the viewer may be left meanwhile
                process.kill()


def main() -> None:
    """Answer one request. Only this process imports the rules."""
    from stoker.diagnose.own_rules import usable_rules
    from stoker.diagnose.step_cause import step_cause

    request = parse(_Request, sys.stdin.buffer.read(MAX_ANSWER), "the request")
    with open(request.log, "rb") as file:
        cause = step_cause(file, request.start, request.end, usable_rules())
    sys.stdout.write(json.dumps(encode(_Answer(cause))))


if __name__ == "__main__":
    main()
