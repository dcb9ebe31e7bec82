"""What is found out about a build when it is over and before it says so: what it is good for, or why it failed.

A fault in here costs the build nothing but the answer; what it takes is loaded only then, as a build waits for its
engine to start. Unaware of the journal's writing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from stoker.config.paths import BuildPaths
from stoker.contract.spec_file import BuildSpec
from stoker.engine.loop.build_ramdisk import let_go
from stoker.model.events import BuildEnded, Diagnosed, Event, Noticed
from stoker.model.state import BuildState


async def findings(
    paths: BuildPaths,
    spec: BuildSpec,
    state: BuildState,
    ending: BuildEnded,
    alone: frozenset[str],
    enough: asyncio.Event,
) -> AsyncIterator[list[Event]]:
    """Events as there is something to tell; nothing that an engine before this one has found out already.

    `alone` are the outputs that were made alone in the last attempt. No more is verified once `enough` is set.
    """
    what = "verification" if ending.outcome == "done" else "diagnosis"
    yield let_go(spec)
    try:
        if ending.outcome == "done" and state.verification is None:
            from stoker.engine.aftermath.verification import verify_build

            async for events in verify_build(paths.journal, spec, state.started, enough):
                yield events
        elif ending.outcome == "failed" and ending.exit_code is not None and state.diagnosis is None:
            from stoker.engine.aftermath.diagnosis import diagnose_build

            yield [Diagnosed(await diagnose_build(paths.output, state, _folder(spec, state), alone))]
    except Exception as err:  # noqa: BLE001  (a fault in here must not cost the build its end)
        yield [Noticed("warning", f"{what} failed: {err!r}")]


def _folder(spec: BuildSpec, state: BuildState) -> str:
    """Where the last step ran."""
    return spec.step(state.step.index).cwd if state.step is not None else spec.cwd
