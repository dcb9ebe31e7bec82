"""Runs one part of stoker with so many jobs in its own process: prints seconds, memory and other figures as JSON.

    python -m bench.scale_parts journal 10000 FOLDER

FOLDER is kept between parts: `journal` writes what `reduce`, `reopen` and `replay` read. Each part does its work once.
"""

from __future__ import annotations

import asyncio
import json
import math
import resource
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench.eta import Watched
from bench.eta_builds import Build, PaperJob, planned, play, write_manifest
from bench.scale_stream import START, looks
from stoker.model.reduce import reduce, reduce_all
from stoker.model.state import BuildState
from stoker.record.checkpoint import checkpoint_path
from stoker.record.journal_reader import load_state, read_journal
from stoker.record.journal_writer import JournalWriter
from stoker.record.replay import ReplaySource
from stoker.simulate.runner import simulate as simulated
from stoker.simulate.synthetic import pytorch
from stoker.simulate.trace import read, write

GIB = 2**30
Found = dict[str, float]


def journal(jobs: int, folder: Path) -> Found:
    """As the engine does: number, reduce, write, and now and then a checkpoint."""
    path = folder / "journal.jsonl"
    path.unlink(missing_ok=True)
    state, writer = BuildState(), JournalWriter(path)
    spent = 0.0
    for now, events in looks(jobs):
        begin = time.process_time()
        for event in events:
            record, _line = writer.append(event, now)
            state = reduce(state, record)
        writer.flush()
        writer.checkpoint(state)
        spent += time.process_time() - begin
    writer.close()
    return {"seconds": spent, "bytes": path.stat().st_size, "checkpoint_bytes": checkpoint_path(path).stat().st_size}


def reduced(_jobs: int, folder: Path) -> Found:
    """A whole journal, from its first record."""
    begin = time.process_time()
    state = reduce_all(read_journal(folder / "journal.jsonl"))
    assert state.over
    return {"seconds": time.process_time() - begin}


def reopened(_jobs: int, folder: Path) -> Found:
    """What a new engine, or `status`, waits for: from the last checkpoint on."""
    begin = time.process_time()
    state = load_state(folder / "journal.jsonl")
    assert state.over
    return {"seconds": time.process_time() - begin}


def replayed(_jobs: int, folder: Path) -> Found:
    """Played to the end as fast as it goes; then back to the middle, and near the start."""
    return asyncio.run(_replayed(folder / "journal.jsonl"))


async def _replayed(path: Path) -> Found:
    source = ReplaySource(path, math.inf, hold_at_end=True)
    updates = source.updates()
    begin = time.process_time()
    async for update in updates:
        if update.note == "the end":
            break
    seconds, end = time.process_time() - begin, update.state.time
    await source.command("replay_speed", factor=1.0)
    await source.command("replay_pause")
    seeks = []
    for part in (0.5, 0.1, 0.9):
        target = (end - START) * part
        begin = time.process_time()
        await source.command("replay_seek", seconds=target, relative=False)
        update = await anext(updates)
        seeks.append(time.process_time() - begin)
        assert abs(update.state.time - START - target) < 2.0, (update.state.time - START, target)
    await updates.aclose()  # type: ignore[attr-defined]
    return {"seconds": seconds, "seek_ms": 1000 * max(seeks)}


def resident_mib() -> float:
    """What this process holds now."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * resource.getpagesize() / 2**20


def project(jobs: int) -> list[PaperJob]:
    """A third of all objects in one library, as torch_cpu is, the longest first, as ninja from 1.12 on takes them.

    The rest in libraries of 58 objects, each with an archive and a program that links the last four.
    """
    found = [PaperJob(f"large/unit_{n}.cc.o", "cxx", 30.0 - 20.0 * n / jobs, ()) for n in range(jobs // 3)]
    archives = [len(found)]
    found.append(PaperJob("large/large.so", "link", 20.0, tuple(range(len(found)))))
    while len(found) < jobs:
        name, first = f"lib{len(archives)}", len(found)
        seconds = 5.0 + len(archives) % 7
        found += [PaperJob(f"{name}/unit_{n}.cc.o", "cxx", seconds + n % 11, ()) for n in range(58)]
        found.append(PaperJob(f"{name}/{name}.a", "link", 0.5, tuple(range(first, first + 58))))
        archives.append(len(found) - 1)
        found.append(PaperJob(f"{name}/test", "link", 2.0, tuple(archives[-4:])))
    return found


def forecast(jobs: int, folder: Path) -> Found:
    """The plan of a graph by the real planner, and the time left every five seconds and at each start and end.

    What the bench itself holds of the build that is played (`own_mib`) does not count.
    """
    place = folder / f"graph{jobs}"
    place.mkdir(exist_ok=True)
    at_first = resident_mib()
    all_jobs = project(jobs)
    ran = play(all_jobs, 64)
    moments = sorted([(job.start, 0, n) for n, job in enumerate(ran)] + [(job.end, 1, n) for n, job in enumerate(ran)])
    own = resident_mib() - at_first
    write_manifest(all_jobs, place, [job.seconds for job in all_jobs])
    begin = time.process_time()
    plan = asyncio.run(planned(place, time.time()))
    seconds_to_plan = time.process_time() - begin
    watched = Watched(Build("", 64, 64, ran, plan, []))
    spent, asked, next_look = 0.0, [], 5.0
    begin = time.process_time()
    for now, ends, number in moments:
        (watched.end if ends else watched.begin)(ran[number], number + 1)
        if now >= next_look:
            next_look = now + 5.0
            look = time.process_time()
            watched.forecast.look(watched.state, now)
            asked.append(time.process_time() - look)
    spent = time.process_time() - begin
    child = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024
    return {
        "seconds": spent,
        "plan_seconds": seconds_to_plan,
        "planner_mib": child,
        "look_ms": 1000 * sorted(asked)[len(asked) // 2],
        "own_mib": own,
    }


def simulate(jobs: int, folder: Path) -> Found:
    """A build on paper under the policy, from a trace in a file."""
    path = folder / f"trace{jobs}.jsonl"
    begin = time.process_time()
    write(pytorch("scattered", 1, jobs), path)
    written = time.process_time()
    trace = read(path)
    loaded = time.process_time()
    result = simulated(trace, 16, 64 * GIB, "stoker", "noisy")
    done = time.process_time()
    simulated(trace, 16, 64 * GIB, "fixed:16")
    return {
        "seconds": done - loaded,
        "write_seconds": written - begin,
        "read_seconds": loaded - written,
        "fixed_seconds": time.process_time() - done,
        "ratio": result.ratio,
        "kills": result.kills,
    }


PARTS: dict[str, Callable[[int, Path], Found]] = {
    "journal": journal,
    "reduce": reduced,
    "reopen": reopened,
    "replay": replayed,
    "forecast": forecast,
    "simulate": simulate,
}


def main() -> None:
    """One part."""
    name, jobs, folder = sys.argv[1], int(sys.argv[2]), Path(sys.argv[3])
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    found: dict[str, Any] = PARTS[name](jobs, folder)
    after = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024 - found.pop("own_mib", 0.0)
    print(json.dumps({"part": name, "jobs": jobs, "mib": after, "mib_before": before, **found}))


if __name__ == "__main__":
    main()
