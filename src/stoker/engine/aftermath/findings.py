"""What is found out about a build after it is over and before its end is reported: the verdict, or the cause of
failure.

An error in here costs only the answer. Imports what it needs when it is asked, because a build waits until its engine
has started.
Unaware of how the journal is written.
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
    """Yield events as there is something to report; nothing that an earlier engine has already found.

    `alone` are the outputs that ran alone in the last attempt. Verification stops once `enough` is set.
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
    """Return the folder in which the last step ran."""
    return spec.step(state.step.index).cwd if state.step is not None else spec.cwd


def _remove_ramdisk(spec: BuildSpec) -> list[Event]:
    """Remove the RAM disk of a build that is over, as the supervisor does if it is alive; say so if it must stay."""
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
