"""`ls`, `status`, `log`, `events`, `stop`: questions to a build, answered live or from its journal."""

from __future__ import annotations

import argparse
import asyncio
import io
import json
import shutil
import sys
import time
from typing import Any

from stoker.act.stop import NothingToStopError
from stoker.cli import streams
from stoker.cli.errors import FAILURE, CliError
from stoker.cli.narration import say
from stoker.cli.screen import in_colour
from stoker.cli.view import find
from stoker.config.paths import BuildPaths
from stoker.config.regular import open_regular
from stoker.diagnose.killed_lines import killed_output
from stoker.launch.live_build import ask_to_stop, await_end
from stoker.launch.repair import repair_all
from stoker.model.codec import encode_record
from stoker.model.events import Record
from stoker.model.killed import failed_steps
from stoker.model.progress import progress_of
from stoker.model.state import BuildState
from stoker.model.status import status_of, time_left
from stoker.model.text import Ink, Span, clean, sgr, spans
from stoker.model.units import format_bytes, format_duration, format_left, format_share
from stoker.model.update import Update
from stoker.record.builds import BuildSummary, builds_with_phase, final_state, is_live, what_and_where
from stoker.record.journal import follow_journal, read_journal
from stoker.serve.client import BuildSource
from stoker.show import killed_text
from stoker.show.cache_text import closing_lines
from stoker.show.level_text import PAUSES, compilers, setting, ungoverned
from stoker.show.verification_text import headline

LEAST_COMMAND = 16
"""Characters of a build's command and folder in the list, in however narrow a terminal."""

POLL_SECONDS = 0.3


def ls(args: argparse.Namespace) -> int:
    """The builds, newest first."""
    for line in repair_all():
        say(line)
    builds = builds_with_phase()
    if args.json:
        rows = [
            {
                "id": b.id,
                "name": b.name,
                "command": list(b.command),
                "cwd": b.cwd,
                "state": b.phase,
                "started": b.started,
                "ended": b.ended,
                "exit_code": b.exit_code,
                "live": b.live,
            }
            for b in builds
        ]
        print(json.dumps(rows))
        return 0
    if not builds:
        print("stoker: no builds yet; start one with: stoker run -- ninja -C build", file=sys.stderr)
    heads = [_head(b) for b in builds]
    widths = [max(map(len, column)) for column in zip(*heads, strict=True)]
    for b, cells in zip(builds, heads, strict=True):
        head = "".join(f"{cell:<{width}}  " for cell, width in zip(cells, widths, strict=True))
        print(head + what_and_where(b, max(LEAST_COMMAND, _columns() - len(head))))
    return 0


def _head(build: BuildSummary) -> tuple[str, ...]:
    """What stands before a build's command in the list."""
    begun = time.localtime(build.started)
    this_year = begun.tm_year == time.localtime().tm_year
    took = format_duration((build.ended or time.time()) - build.started)
    code = f" ({build.exit_code})" if build.exit_code else ""
    return clean(build.id), build.phase + code, time.strftime("%m-%d %H:%M" if this_year else "%Y-%m-%d", begun), took


def _columns() -> int:
    """The terminal's; what goes elsewhere is whole."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else sys.maxsize


def status(args: argparse.Namespace) -> int:
    """What a build is doing now, or how it ended."""
    update = asyncio.run(current(find(args.id)))
    now = time.time()
    if args.json:
        print(json.dumps({**status_of(update.state, now), "link": update.link, "as_of": update.state.time}))
        return 0
    print("\n".join(_status_lines(update.state, now)))
    if distance := distance_of(update):
        print(f"  as of     {distance}")
    return 0


def distance_of(update: Update) -> str:
    """As of when figures are that do not come from the engine, and why; empty for all others."""
    if update.link not in ("lost", "journal"):
        return ""
    clock = time.strftime("%H:%M:%S", time.localtime(update.state.time))
    why = "no engine answers; the build goes on" if update.link == "lost" else f"by the journal: {update.note}"
    return f"{clock}: {why}"


async def current(paths: BuildPaths) -> Update:
    """From the engine if it answers, else from the journal."""
    found = await anext(BuildSource(paths, read_only=True).updates())
    if found.link not in ("lost", "journal"):
        return found
    state = final_state(paths)
    return Update(state, "ended" if state.over else found.link, found.note)


def _status_lines(state: BuildState, now: float) -> list[str]:
    p = progress_of(state)
    took = format_duration((state.ended or now) - state.started)
    lines = [f"{clean(state.id)}  {state.phase}  {took}", f"  command   {clean(' '.join(state.command))}"]
    total = str(p.total) if p.total_known else "?"
    share = "" if p.share is None else f"  {format_share(p.share)}"
    waiting = f"  {p.on_deck} on deck" if p.on_deck else ""
    frozen = f"  {p.frozen} frozen" if p.frozen else ""
    if state.level.ungoverned:
        lines.append(f"  jobs      {compilers(state)}, which nobody can hold or count")
    else:
        lines.append(
            f"  jobs      {p.finished}/{total}{share}  {p.running} running{waiting}{frozen}  {p.failed} failed"
        )
    lines += [f"  killed    {text}" for text in _killed_texts(state)]
    lines += [] if state.over else _governed_lines(state)
    if (left := time_left(state, now)) is not None and not state.over:
        lines.append(f"  left      {format_left(*left)}")
    lines += _disk_lines(state)
    lines += _cache_lines(state)
    if state.over:
        lines.append(f"  ended     {clean(state.reason) or 'well'}")
    lines += [f"  failed    {clean(f.output)}" for f in failed_steps(state)[:5]]
    if state.diagnosis is not None and state.diagnosis.cause is not None:
        lines.append(f"  cause     {clean(state.diagnosis.cause.title)}")
        lines += [f"            {clean(fact)}" for fact in state.diagnosis.facts]
    if state.verification is not None:
        lines.append(f"  verified  {clean(headline(state.verification)[1])}")
    return [*lines, f"  output    {clean(state.log_path)}"]


def _killed_texts(state: BuildState) -> list[str]:
    """What was killed and is to run again; of a build that has ended, all that was, and what it cost."""
    now = killed_text.outlook_text(state)
    return killed_text.cost_lines(state) if state.over else [now] if now else []


def _governed_lines(state: BuildState) -> list[str]:
    """The level and what is known of the memory, while the build runs."""
    lines, level, machine = [], state.level, state.machine
    if level.target is not None:
        window = "" if level.window is None else f", window {level.window}"
        guarded = "" if level.guarded else "; memory is not guarded"
        paused = f"; {PAUSES[level.paused]}" if level.paused != "no" else ""
        loose = f"; {text}" if (text := ungoverned(state)) else ""
        lines.append(f"  level     {setting(level).removeprefix('level ')}{window}{paused}{guarded}{loose}")
    if machine is not None:
        promised = f", {format_bytes(state.memory.promised)} promised to jobs" if state.memory.promised else ""
        reserve = f", {format_bytes(state.memory.reserve)} in reserve" if state.memory.reserve else ""
        used = f"{format_bytes(machine.memory_used)} of {format_bytes(machine.memory_budget)}"
        lines.append(f"  memory    {used}{promised}{reserve}")
    return lines


def _disk_lines(state: BuildState) -> list[str]:
    """What went to disks, and what temporary files took of the memory."""
    lines = [f"  written   {format_bytes(state.disk_written)} to disk"] if state.disk_written else []
    disk = state.machine.ramdisk if state.machine is not None else None
    if disk is not None:
        now = "" if state.over else f"{format_bytes(disk.used)} of {format_bytes(disk.size)}, "
        lines.append(f"  RAM disk  {now}at most {format_bytes(state.ramdisk.peak)}")
    return lines


def _cache_lines(state: BuildState) -> list[str]:
    """What a compiler cache did, if one was at work."""
    return [f"  {title:<9} {text}" for title, text in closing_lines(state.cache)] if state.cache is not None else []


def log(args: argparse.Namespace) -> int:
    """The output: every byte into a pipe or file, only harmless text and colour onto a terminal."""
    paths = find(args.id)
    terminal = sys.stdout.isatty()
    try:
        file = open_regular(paths.output)
    except FileNotFoundError:
        return 0
    with file:
        while True:
            over = not args.follow or not is_live(paths)
            if terminal:
                _show(file, paths)
            else:
                _copy(file)
            if over:
                return 0
            time.sleep(POLL_SECONDS)


def _copy(file: Any) -> None:
    while chunk := file.read(1 << 16):
        streams.write_bytes(chunk)
    sys.stdout.buffer.flush()


def _show(file: Any, paths: BuildPaths) -> None:
    """Harmless lines; those that call a job failed which was killed say so."""
    state, colour = final_state(paths), in_colour()
    begin = state.step.log_start if state.step is not None else 0
    now, before = killed_output(state), killed_output(state, earlier=True)
    position = file.seek(0, io.SEEK_CUR)
    while line := file.readline(1 << 16):
        position += len(line)
        output = (now if position > begin else before)(line)
        mark = (Span(f"[{killed_text.mark_text(state, output)}] ", Ink(fg="magenta")),) if output else ()
        print(sgr((*mark, *spans(line.rstrip(b"\n"))), colour=colour))
    sys.stdout.flush()


def events(args: argparse.Namespace) -> int:
    """The journal, one event a line."""
    paths = find(args.id)
    seq = 0
    for record in read_journal(paths.journal):
        seq = record.seq
        _print_record(record, as_json=args.json)
    if args.follow:
        asyncio.run(_follow(paths, seq, as_json=args.json))
    return 0


async def _follow(paths: BuildPaths, seq: int, *, as_json: bool) -> None:
    async for record in follow_journal(paths.journal, seq, over=lambda: not is_live(paths)):
        _print_record(record, as_json=as_json)


def _print_record(record: Record, *, as_json: bool) -> None:
    data = encode_record(record)
    if as_json:
        print(json.dumps(data), flush=True)
        return
    clock = time.strftime("%H:%M:%S", time.localtime(record.time))
    facts = {k: v for k, v in data.items() if k not in ("v", "seq", "t", "type")}
    print(f"{clock} {record.event.kind:<18} {clean(json.dumps(facts, ensure_ascii=False), 500)}", flush=True)


def stop(args: argparse.Namespace) -> int:
    """End a build and wait until nothing of it is left."""
    paths = find(args.id)
    if not is_live(paths):
        raise CliError(f"{paths.id} has ended already; 'stoker status {paths.id}' says how", FAILURE)
    print(f"stoker: {'killing' if args.force else 'stopping'} {paths.id}", file=sys.stderr)
    try:
        asyncio.run(ask_to_stop(paths, force=args.force))
    except NothingToStopError as err:
        raise CliError(str(err), FAILURE) from err
    if not await_end(paths):
        cure = "something of it waits for a disk or a device; look at its processes" if args.force else ""
        raise CliError(f"{paths.id} still runs; {cure or f'try: stoker stop --force {paths.id}'}", FAILURE)
    return 0
