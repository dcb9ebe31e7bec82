"""What is found out about a build when it is over and before it says so: what it is good for, or why it failed.

A fault in here costs the build nothing but the answer; what it takes is loaded only then, as a build waits for its
engine to start. Unaware of the journal's writing.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

from stoker.act import ramdisk
from stoker.config.paths import BuildPaths
from stoker.contract.spec_file import BuildSpec
from stoker.model.events import BuildEnded, Diagnosed, Event, Noticed
from stoker.model.state import BuildState
from stoker.sense.proc.processes import read_cmdline


async def findings(
    paths: BuildPaths,
    spec: BuildSpec,
    state: BuildState,
    ending: BuildEnded,
    alone: frozenset[str],
    enough: asyncio.Event,
) -> AsyncIterator[list[Event]]:
    """Events as there is something to report; nothing that an engine before this one has found out already.

    `alone` are the outputs that were made alone in the last attempt. No more is verified once `enough` is set.
    """
    what = "verification" if ending.outcome == "done" else "diagnosis"
    yield _remove_ramdisk(spec)
    try:
        if ending.outcome == "done" and state.verification is None:
            from stoker.engine.aftermath.verification import verify_build

            async for events in verify_build(paths.journal, spec, state.started, enough):
                yield events
        elif ending.outcome == "failed" and ending.exit_code is not None and state.diagnosis is None:
            from stoker.engine.aftermath.find_cause import diagnose_build

            yield [Diagnosed(await diagnose_build(paths.output, state, _folder(spec, state), alone))]
    except Exception as err:  # noqa: BLE001  (a fault in here must not cost the build its end)
        yield [Noticed("warning", f"{what} failed: {err!r}")]


def _folder(spec: BuildSpec, state: BuildState) -> str:
    """Where the last step ran."""
    return spec.step(state.step.index).cwd if state.step is not None else spec.cwd


def _remove_ramdisk(spec: BuildSpec) -> list[Event]:
    """Remove the folder of a build that is over, as the supervisor did if it was alive; say so if it must stay."""
    if spec.ramdisk is None:
        return []
    folder = spec.ramdisk.folder
    users = ramdisk.users(folder)
    if not users and ramdisk.remove(folder):
        return []
    if not users:
        text = f"{folder} cannot be removed: files of other users are in it, or something is mounted there"
        return [Noticed("warning", text)]
    names = ", ".join(sorted({f"{' '.join(read_cmdline(pid)[:1])} (process {pid})" for pid in users[:3]}))
    text = f"{folder} stays: {names} still runs with its TMPDIR there; the first build after its end removes it"
    return [Noticed("info", text)]
