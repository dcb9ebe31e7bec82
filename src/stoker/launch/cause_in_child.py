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
from collections.abc import Collection
from dataclasses import dataclass, replace

from stoker.config.paths import BuildPaths
from stoker.launch.child import start_child
from stoker.model.codec import CodecError, decode, encode
from stoker.model.diagnosis import Cause
from stoker.model.events import KilledBy
from stoker.model.state import Failure

PATIENCE_SECONDS = 60.0
"""A search takes a second; ten on a machine that is very busy."""

MAX_ANSWER = 1 << 20


@dataclass(frozen=True, slots=True)
class _Request:
    """A log, a failed step in it, and who may have killed what that ran."""

    log: str
    failure: Failure
    killers: tuple[KilledBy, ...]


@dataclass(frozen=True, slots=True)
class _Answer:
    """The cause, if a rule knows it."""

    cause: Cause | None = None


class CauseInChild:
    """Finds causes in the output of one build, one at a time."""

    def __init__(self, paths: BuildPaths) -> None:
        self._log = str(paths.output)
        self._turn = asyncio.Lock()

    async def __call__(self, failure: Failure, killers: Collection[KilledBy]) -> Cause | None:
        """Return the cause; None if no rule knows it. Raises OSError if the search has failed, or takes too long."""
        request = _Request(self._log, replace(failure, command="", excerpt=()), tuple(sorted(killers)))
        async with self._turn:
            return await self._answer(request)

    async def _answer(self, request: _Request) -> Cause | None:
        process = await start_child("stoker.launch.cause_in_child", MAX_ANSWER)
        try:
            async with asyncio.timeout(PATIENCE_SECONDS):
                out, _ = await process.communicate(json.dumps(encode(request)).encode())
            return decode(_Answer, json.loads(out)).cause
        except (ValueError, CodecError) as err:
            raise OSError("the search gave no answer") from err
        finally:
            with contextlib.suppress(ProcessLookupError):  # the viewer may be left meanwhile
                process.kill()


def main() -> None:
    """Answer one request. Only this process imports the rules."""
    from stoker.diagnose.killed_causes import cause_of_step
    from stoker.diagnose.own_rules import usable_rules

    request = decode(_Request, json.loads(sys.stdin.buffer.read(MAX_ANSWER)))
    with open(request.log, "rb") as file:
        cause = cause_of_step(file, request.failure, request.killers, usable_rules())
    sys.stdout.write(json.dumps(encode(_Answer(cause))))


if __name__ == "__main__":
    main()
