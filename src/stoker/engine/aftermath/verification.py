"""Verifies what a build has written, in a separate process: an unknown binary must not harm the engine.

Every problem in here becomes a notice. Unaware of how the journal is written, and of how binaries are judged.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
from asyncio import StreamReader
from asyncio.subprocess import DEVNULL, PIPE, Process
from collections.abc import AsyncIterator, Sequence
from dataclasses import replace
from pathlib import Path

from stoker.contract.spec_file import BuildSpec
from stoker.engine.aftermath.artifacts import Written, what_to_verify
from stoker.model.codec import CodecError, decode
from stoker.model.events import Event, Noticed, Verified
from stoker.model.report import Report, bounded
from stoker.verify.archs import ArchError, parse_arch_list, with_dots

VERIFY_SECONDS = 15.0
"""Time limit for files found through the journal. With the search for files less than 20 s, which the build's exit
waits at most: a library of 1 GB takes 50 ms."""

NAMED_SECONDS = 120.0
"""Time limit for files that a profile names, where somebody wants the result: each member of a wheel is inflated and
hashed; torch's takes 19 s on two busy cores."""

DRIVER_SHARE = 1 / 3
"""The part of that time in which the driver may list this machine's GPUs. One or two wake up in 5 s (1 to 3 s each, if
persistence mode is off). A verdict without them, which says so, is better than none."""

NICENESS = 10
"""Niceness: after everything else on the machine, like `nice` without a number (nice(1))."""

ARCH_LIST = "TORCH_CUDA_ARCH_LIST"
"""The variable that `stoker verify` names; most projects use it."""

MAX_REPORT = 2 << 20
"""Bytes of JSON that are read: 200 files need half of it."""

MAX_COMPLAINT = 1 << 16
_CHUNK = 1 << 16


async def verify_build(
    journal: Path, spec: BuildSpec, since: float, enough: asyncio.Event
) -> AsyncIterator[list[Event]]:
    """Verify what the build of this journal wrote since Unix time `since`; yield events when there is something to
    report.

    Ends early when `enough` is set.
    """
    written = await asyncio.to_thread(what_to_verify, journal, spec, since)
    yield announcement(written)
    if written.paths:
        asked_for = os.environ.get(spec.arch_list, "").strip()
        yield await verify_written(written, spec.arch_list, asked_for, enough)


def announcement(written: Written) -> list[Event]:
    """Return a message before the wait, or a reason why there is nothing to wait for. Empty for a build without device
    code."""
    count = len(written.paths)
    events: list[Event] = []
    if written.unmatched:
        text = f"this build wrote nothing that its profile has under verify: {', '.join(written.unmatched)}"
        events.append(Noticed("warning", text))
    if count:
        more = f" (and {written.left_out} smaller ones not)" if written.left_out else ""
        files = f"{count} file{'' if count == 1 else 's'}{' with device code' if written.by_journal else ''}"
        events.append(Noticed("info", f"verifying {files}{more}"))
    elif written.nvcc:
        text = "nothing is verified: what nvcc wrote is gone or holds no device code; by hand: stoker verify PATH"
        events.append(Noticed("info", text))
    return events


async def verify_written(written: Written, variable: str, wanted: str, enough: asyncio.Event) -> list[Event]:
    """Return the verdict, or why there is none. `wanted` are the architectures that the build should contain, in
    `variable`'s form."""
    events: list[Event] = []
    try:
        wanted = with_dots(wanted)
        parse_arch_list(wanted) if wanted else ()
    except ArchError as err:
        events.append(Noticed("warning", f"{variable} is not checked: {err}"))
        wanted = ""
    listed = [f"--arch-list={wanted}"] if wanted else []
    seconds = VERIFY_SECONDS if written.by_journal else NAMED_SECONDS
    try:
        words = ["--json", f"--driver-wait={seconds * DRIVER_SHARE:g}", *listed, *(str(p) for p in written.paths)]
        found = await _ask(words, seconds, enough)
    except _NoReportError as err:
        text = f"verification gave no result: {err}; by hand: stoker verify {written.paths[0]}"
        return [*events, Noticed("warning", text)]
    found = _in_its_words(replace(found, left_out=written.left_out), variable)
    return [*events, Verified(bounded(found))]


def _in_its_words(found: Report, variable: str) -> Report:
    """Return remedies that name the variable which this build uses."""
    problems = (
        replace(p, what=p.what.replace(ARCH_LIST, variable), remedy=p.remedy.replace(ARCH_LIST, variable))
        for p in found.problems
    )
    return replace(found, problems=tuple(problems))


class _NoReportError(Exception):
    """Say in a few words why there is no report."""


async def _ask(words: Sequence[str], seconds: float, enough: asyncio.Event) -> Report:
    # -P: as for the engine itself, the working folder must not shadow stoker's modules.
    command = [sys.executable, "-P", "-m", "stoker", "verify", *words]
    try:
        process = await asyncio.create_subprocess_exec(
            *command, stdin=DEVNULL, stdout=PIPE, stderr=PIPE, start_new_session=True
        )
    except OSError as err:
        raise _NoReportError(f"it cannot be started: {err.strerror}") from err
    reading, asked = asyncio.create_task(_read(process)), asyncio.create_task(enough.wait())
    try:
        await asyncio.wait((reading, asked), timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
        if not reading.done():
            raise _NoReportError("it was stopped" if enough.is_set() else f"not done after {seconds:.0f} s")
        out, complaint = reading.result()
    finally:
        reading.cancel()
        asked.cancel()
        await _end(process)
    try:
        return decode(Report, json.loads(out))
    except (ValueError, RecursionError, CodecError) as err:
        last = complaint.decode("utf-8", "replace").strip().rpartition("\n")[2]
        raise _NoReportError(last or f"exit status {process.returncode}") from err


async def _read(process: Process) -> tuple[bytes, bytes]:
    """Read everything that it prints, within bounds."""
    with contextlib.suppress(OSError):
        os.setpriority(os.PRIO_PROCESS, process.pid, NICENESS)
    out, complaint = await asyncio.gather(_bounded(process.stdout, MAX_REPORT), _bounded(process.stderr, MAX_COMPLAINT))
    await process.wait()
    if len(out) > MAX_REPORT:
        raise _NoReportError("the report is too long")
    return out, complaint


async def _bounded(stream: StreamReader | None, limit: int) -> bytes:
    """Return up to `limit` bytes, and one more if there is more. Reads the rest too, so that the writer does not
    block."""
    data = bytearray()
    while stream is not None and (chunk := await stream.read(_CHUNK)):
        data += chunk[: limit + 1 - len(data)]
    return bytes(data)


async def _end(process: Process) -> None:
    """Kill the whole process group: torch may be running in a child process."""
    with contextlib.suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    await process.wait()
