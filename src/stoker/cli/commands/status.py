"""`stoker status`: what a build is doing now, or how it ended, by its engine or its journal."""

from __future__ import annotations

import argparse
import asyncio
import json
import time
from pathlib import Path

from stoker.cli import arguments
from stoker.cli.errors import FAILURE, CliError
from stoker.cli.recorded_build import write_out
from stoker.cli.which_build import find
from stoker.config.paths import BuildPaths
from stoker.model.killed import failed_steps
from stoker.model.progress import awaits_attempt, progress_of
from stoker.model.state import BuildState
from stoker.model.status import status_of
from stoker.model.text import clean
from stoker.model.to_come import still_to_come
from stoker.model.units import format_bytes, format_duration
from stoker.model.update import Update
from stoker.record.builds import final_state
from stoker.serve.client import BuildSource
from stoker.show import killed_text, remote_text
from stoker.show.cache_text import closing_lines
from stoker.show.left_text import frozen_text, left_text, stalled_text
from stoker.show.level_text import PAUSES, compilers, setting, share_text, uncounted, ungoverned
from stoker.show.prometheus import NoPrometheusError, metrics
from stoker.show.verification_text import headline

NAMED = 5
"""Running jobs that are named, and frozen ones."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """The arguments of `stoker status`."""
    arguments.build_id(parser)
    form = parser.add_mutually_exclusive_group()
    form.add_argument("--json", action="store_true", help="JSON, for programs")
    form.add_argument(
        "--prometheus",
        action="store_true",
        help="metrics in Prometheus's text format; needs: pip install 'stoker[metrics]'",
    )
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help="with --prometheus: output file, replaced atomically (for a textfile collector)",
    )


def run(args: argparse.Namespace) -> int:
    """Print what a build is doing now, or how it ended."""
    if args.output is not None and not args.prometheus:
        raise CliError("-o goes with --prometheus; of --json the shell makes a file: stoker status --json >FILE")
    update = asyncio.run(current(find(args.id)))
    now = time.time()
    if args.prometheus:
        return _metrics(update.state, now, args.output)
    if args.json:
        print(json.dumps({**status_of(update.state, now), "link": update.link, "as_of": update.state.time}))
        return 0
    print("\n".join(_status_lines(update.state, now)))
    if distance := distance_of(update):
        print(f"  as of     {distance}")
    return 0


def _metrics(state: BuildState, now: float, path: Path | None) -> int:
    try:
        write_out([metrics([state], now)], path)
    except NoPrometheusError as err:
        raise CliError(str(err), FAILURE) from err
    return 0


def distance_of(update: Update) -> str:
    """Return the time of figures that do not come from the engine, and why; empty for all others."""
    if update.link not in ("lost", "journal"):
        return ""
    clock = time.strftime("%H:%M:%S", time.localtime(update.state.time))
    why = "no engine answers; the build goes on" if update.link == "lost" else f"from the journal: {update.note}"
    return f"{clock}: {why}"


async def current(paths: BuildPaths) -> Update:
    """From the engine if it answers, else from the journal."""
    found = await anext(BuildSource(paths, read_only=True).updates())
    if found.link not in ("lost", "journal"):
        return found
    state = final_state(paths)
    return Update(state, "ended" if state.over else found.link, found.note)


def _jobs_text(state: BuildState) -> str:
    """Return how many jobs are done, run, wait and have failed, or why that is not known."""
    if state.level.ungoverned:
        return f"{compilers(state)}, which cannot be held or counted"
    if unknown := uncounted(state):
        return unknown
    p = progress_of(state)
    total = str(p.total) if p.total_known else "?"
    share = f"  {text}" if (text := share_text(p)) else ""
    waiting = f"  {p.on_deck} on deck" if p.on_deck else ""
    frozen = f"  {p.frozen} frozen" if p.frozen else ""
    interrupted = f"  {p.interrupted} interrupted" if p.interrupted else ""
    left_out = f"  {text}" if (text := killed_text.not_started_text(state)) else ""
    counts = f"{remote_text.counts(p)}{waiting}{frozen}  {p.failed} failed{interrupted}{left_out}"
    return f"{p.finished}/{total}{share}  {counts}"


def _status_lines(state: BuildState, now: float) -> list[str]:
    took = format_duration((state.ended or now) - state.started)
    lines = [f"{clean(state.id)}  {state.phase}  {took}", f"  command   {clean(' '.join(state.command))}"]
    lines.append(f"  jobs      {_jobs_text(state)}")
    lines += [] if state.over else [*_running_lines(state, now), *_waiting_lines(state)]
    if state.remote.engines:
        trouble = remote_text.trouble_text(state)
        facts = [] if state.over else [remote_text.slots_text(state), trouble]
        lines.append(f"  remote    {'; '.join(filter(None, [*facts, remote_text.outcome_text(state)])) or 'not used'}")
    if not state.over and state.step is not None and state.step.attempt > 1:
        lines.append(f"  attempt   {state.step.attempt} at this step")
    lines += [f"  killed    {text}" for text in _killed_texts(state)]
    lines += [] if state.over else _governed_lines(state)
    if stalled := stalled_text(state):
        lines.append(f"  stalled   {stalled}; stoker thaw JOB lets it go on")
    if frozen := frozen_text(state):
        lines.append(f"  frozen    {frozen}; stoker thaw JOB lets it go on")
    if not state.over and (left := left_text(state, now)):
        lines.append(f"  left      {left}")
    elif any(s.stops for s in state.schedulers.values()) and awaits_attempt(state):
        lines.append("  left      known once the step runs again")
    lines += _disk_lines(state)
    lines += _cache_lines(state)
    if state.over:
        lines.append(f"  ended     {clean(state.reason) or 'well'}")
    lines += [f"  failed    {clean(f.output)}" for f in failed_steps(state)[:5]]
    if state.diagnosis is not None and state.diagnosis.cause is not None:
        lines.append(f"  cause     {clean(state.diagnosis.cause.heading)}")
        lines += [f"            {clean(fact)}" for fact in state.diagnosis.facts]
    if state.verification is not None:
        lines.append(f"  verified  {clean(headline(state.verification)[1])}")
    return [*lines, f"  output    {clean(state.log_path)}"]


def _running_lines(state: BuildState, now: float) -> list[str]:
    """Return the jobs that run, longest first."""
    running = sorted((j for j in state.jobs.values() if j.state == "running"), key=lambda j: -j.age(now))
    jobs = [f"{format_duration(j.age(now)):>8}  {format_bytes(j.rss):>9}  {clean(j.output)}" for j in running[:NAMED]]
    if len(running) > NAMED:
        jobs.append(f"and {len(running) - NAMED} more")
    return [f"  {'' if number else 'running':<9} {job}" for number, job in enumerate(jobs)]


def _waiting_lines(state: BuildState) -> list[str]:
    """Return why the first job on deck waits, and why the frozen ones do."""
    lines = []
    for title, kind, most in (("on deck", "on_deck", 1), ("frozen", "frozen", NAMED)):
        waiting = sorted((job for job in state.jobs.values() if job.state == kind), key=lambda job: job.started)
        jobs = [f"{clean(job.output)}: {clean(job.reason)}" for job in waiting[:most]]
        jobs += [f"and {len(waiting) - most} more"] if len(waiting) > most else []
        lines += [f"  {'' if number else title:<9} {job}" for number, job in enumerate(jobs)]
    return lines


def _killed_texts(state: BuildState) -> list[str]:
    """Return what was killed in this attempt, and what follows, or in earlier ones; of a build that has ended, all that
    was, and what it cost."""
    if state.over:
        return killed_text.cost_lines(state)
    now = killed_text.drain_text(state) or killed_text.outlook_text(state)
    return [text for text in (now, killed_text.earlier_text(state)) if text]


def _governed_lines(state: BuildState) -> list[str]:
    """Return the level and what is known of the memory, while the build runs."""
    lines, level, machine = [], state.level, state.machine
    if level.target is not None:
        window = "" if level.window is None else f"; the build tool may start {level.window}, running or on deck"
        guarded = "" if level.guarded else "; memory is not guarded"
        paused = f"; {PAUSES[level.paused]}" if level.paused != "no" else ""
        loose = f"; {text}" if (text := ungoverned(state)) else ""
        lines.append(f"  level     {setting(level).removeprefix('level ')}{window}{paused}{guarded}{loose}")
    if machine is not None:
        more = still_to_come(state)
        to_come = f", {format_bytes(more)} still to come of running jobs" if more else ""
        reserve = f", {format_bytes(state.memory.reserve)} in reserve" if state.memory.reserve else ""
        used = f"{format_bytes(machine.memory_used)} of {format_bytes(machine.memory_budget)}"
        lines.append(f"  memory    {used}{to_come}{reserve}")
    return lines


def _disk_lines(state: BuildState) -> list[str]:
    """Return what went to disks, and what temporary files took of the memory."""
    lines = [f"  written   {format_bytes(state.disk_written)} to disk"] if state.disk_written else []
    disk = state.machine.ramdisk if state.machine is not None else None
    if disk is not None:
        now = "" if state.over else f"{format_bytes(disk.used)} of {format_bytes(disk.size)}, "
        lines.append(f"  RAM disk  {now}at most {format_bytes(state.ramdisk.peak)}")
    return lines


def _cache_lines(state: BuildState) -> list[str]:
    """Return what a compiler cache did, if one was at work."""
    return [f"  {title:<9} {text}" for title, text in closing_lines(state.cache)] if state.cache is not None else []
